// SPDX-License-Identifier: Apache-2.0

// In place of roce_management in a device without a management port: no software controls its queue pairs. It is a client of the engine that
// never asks for anything. Its block of registers is there, so that programs find those behind it: type and version are 0, NEXT is
// the block of admission, all else is answered with DECERR. One access at a time, 1 cycle later.
module roce_no_management
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
(
    input  logic     clk,
    input  logic     rst,
    axil_if.slave    bus,             // 12 bits of address

    stream_if.source hand_cmd,        // the ports of roce_management
    stream_if.sink   hand_done,
    stream_if.sink   qp_event,
    output qpn_t     view_qpn,
    stream_if.source rate_view,
    stream_if.sink   rate_viewed,
    stream_if.source counters_view,
    stream_if.sink   counters_viewed,
    stream_if.source wqe,
    stream_if.sink   cqe,
    stream_if.source mr_cmd,
    stream_if.sink   mr_rsp,
    stream_if.source connect,
    stream_if.sink   conn,
    stream_if.source conn_answer,
    stream_if.source close,

    output logic     idle             // no access in progress
);
  localparam logic [11:0] AT_TYPE = 12'h000, AT_VERSION = 12'h004, AT_NEXT = 12'h008;
  localparam logic [31:0] NEXT = {12'd0, cci_map_pkg::ADMISSION_PAGE, 12'd0};

  wire [11:0] at = {bus.araddr[11:2], 2'b00};
  wire        known = at inside {AT_TYPE, AT_VERSION, AT_NEXT};
  wire        write = bus.awvalid && bus.wvalid && !bus.bvalid;
  assign bus.awready = write;
  assign bus.wready  = write;
  assign bus.bresp   = AXI_DECERR;
  assign bus.arready = !bus.rvalid;
  assign idle        = !bus.awvalid && !bus.arvalid && !bus.bvalid && !bus.rvalid;

  always_ff @(posedge clk) begin
    if (bus.arready) begin
      bus.rdata <= at == AT_NEXT ? NEXT : '0;
      bus.rresp <= known ? AXI_OKAY : AXI_DECERR;
    end
    bus.bvalid <= !rst && (write || (bus.bvalid && !bus.bready));
    bus.rvalid <= !rst && ((bus.arvalid && bus.arready) || (bus.rvalid && !bus.rready));
  end

  assign view_qpn            = '0;
  assign hand_cmd.valid      = 1'b0;
  assign hand_cmd.data       = '0;
  assign rate_view.valid     = 1'b0;
  assign rate_view.data      = '0;
  assign counters_view.valid = 1'b0;
  assign counters_view.data  = '0;
  assign wqe.valid           = 1'b0;
  assign wqe.data            = '0;
  assign mr_cmd.valid        = 1'b0;
  assign mr_cmd.data         = '0;
  assign connect.valid       = 1'b0;
  assign connect.data        = '0;
  assign conn_answer.valid   = 1'b0;
  assign conn_answer.data    = '0;
  assign close.valid         = 1'b0;
  assign close.data          = '0;

  assign hand_done.ready       = 1'b1;
  assign qp_event.ready        = 1'b1;
  assign rate_viewed.ready     = 1'b1;
  assign counters_viewed.ready = 1'b1;
  assign cqe.ready             = 1'b1;
  assign mr_rsp.ready          = 1'b1;
  assign conn.ready            = 1'b1;

  logic unused_ok;
  assign unused_ok = &{1'b0, bus.awaddr, bus.wdata, bus.wstrb, bus.araddr[1:0], hand_done.valid, hand_done.data, qp_event.valid, qp_event.data,
      rate_viewed.valid, rate_viewed.data, counters_viewed.valid, counters_viewed.data, cqe.valid, cqe.data, mr_rsp.valid, mr_rsp.data,
      conn.valid, conn.data, hand_cmd.ready, rate_view.ready, counters_view.ready, wqe.ready, mr_cmd.ready, connect.ready, conn_answer.ready, close.ready};
endmodule
