// SPDX-License-Identifier: Apache-2.0

// A kernel that does not say what it is, for tests: no socket lets a job come to it. As long as it is out of reset it reads, writes,
// posts work requests and accesses the device's registers as fast as it can, and answers no register.
module kernel_mute
  import memory_pkg::*;
  import compute_pkg::*;
  import roce_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W   = 4
) (
    input  logic             clk,
    input  logic             rst,
    output kernel_identity_t identity,
    axil_if.slave            ctrl,
    stream_if.sink           job,
    stream_if.source         done,
    axi_if.master            mem,
    axis_if.sink             rx,
    axis_if.source           tx,
    stream_if.source         wqe,
    stream_if.sink           cqe,
    stream_if.source         connect,
    stream_if.sink           conn,
    axil_if.master           bus,
    axis_if.source           msg_tx,
    axis_if.sink             msg_rx
);
  assign identity     = '0;
  assign ctrl.awready = 1'b0;
  assign ctrl.wready  = 1'b0;
  assign ctrl.bvalid  = 1'b0;
  assign ctrl.bresp   = AXI_OKAY;
  assign ctrl.arready = 1'b0;
  assign ctrl.rvalid  = 1'b0;
  assign ctrl.rdata   = '0;
  assign ctrl.rresp   = AXI_OKAY;
  assign job.ready    = 1'b0;
  assign done.valid   = 1'b0;
  assign done.data    = '0;

  assign mem.arvalid  = 1'b1;
  assign mem.araddr   = '0;
  assign mem.arid     = ID_W'(0);
  assign mem.arlen    = '0;
  assign mem.rready   = 1'b1;
  assign mem.awvalid  = 1'b1;
  assign mem.awaddr   = '0;
  assign mem.awid     = ID_W'(0);
  assign mem.awlen    = '0;
  assign mem.wvalid   = 1'b1;
  assign mem.wdata    = {DATA_W / 8{8'hdd}};
  assign mem.wstrb    = '1;
  assign mem.wlast    = 1'b1;
  assign mem.bready   = 1'b1;
  assign wqe.valid    = 1'b1;
  assign wqe.data     = '{opcode: WR_SEND, length: 32'd64, default: '0};
  assign cqe.ready    = 1'b1;

  kernel_no_stream no_stream (.rx, .tx, .msg_tx, .msg_rx);
  kernel_no_connections no_connections (.connect, .conn);

  assign bus.arvalid  = 1'b1;
  assign bus.araddr   = '0;
  assign bus.rready   = 1'b1;
  assign bus.awvalid  = 1'b1;
  assign bus.awaddr   = '0;
  assign bus.wvalid   = 1'b1;
  assign bus.wdata    = '1;
  assign bus.wstrb    = '1;
  assign bus.bready   = 1'b1;

  logic unused_ok;
  assign unused_ok = &{1'b0, clk, rst, ctrl.awaddr, ctrl.awvalid, ctrl.wdata, ctrl.wstrb, ctrl.wvalid, ctrl.bready, ctrl.araddr, ctrl.arvalid,
                       ctrl.rready, job.valid, job.data, done.ready, mem.awready, mem.wready, mem.bid, mem.bresp, mem.bvalid, mem.arready,
                       mem.rdata, mem.rid, mem.rresp, mem.rlast, mem.rvalid, wqe.ready, cqe.valid, cqe.data, bus.awready, bus.wready, bus.bvalid, bus.bresp,
                       bus.arready, bus.rvalid, bus.rdata, bus.rresp};
endmodule
