// SPDX-License-Identifier: Apache-2.0

// A kernel that violates the rules for kernels, for tests: function 2, any job. The `user` bits of the immediate select what it
// does until its reset:
//   0 reads as fast as it can   1 writes, likewise   2 bursts of a page (256 beats at most), otherwise of one beat
//   3 promises writes and never delivers their data   4 takes neither R nor B nor completions nor answers of registers
//   5 posts SENDs of a page on queue pair 8..19, each when the previous one was taken; 23: receives instead, 8 of them
//   6 all of that at an address far outside of its window, otherwise in region 0   7 answers at once and continues, otherwise it never answers
//   20 reads registers of the device, 21 writes them, as fast as it can: every word of 16 pages in turn, 22: the first counter alone
// Registers: kernel_hostile.rdl, four words again and again.
module kernel_hostile
  import memory_pkg::*;
  import compute_pkg::*;
  import kernel_hostile_pkg::*;
  import roce_wire_pkg::*;
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
  localparam int unsigned PAGE_BEATS = 4096 / (DATA_W / 8);
  localparam logic [7:0] PAGE_LEN = PAGE_BEATS > 256 ? 8'd255 : 8'(PAGE_BEATS - 1);
  localparam logic [19:0] COUNTER = 20'h00400;
  localparam logic [15:0] STRIDE = 16'hd41c;    // it meets every word
  localparam addr_t FAR = addr_t'(1) << 28;

  typedef struct packed {
    logic receives;
    logic counter;
    logic sets;
    logic asks;
    qpn_t qpn;
    logic early;
    logic outside_;
    logic posts;
    logic deaf;
    logic withholds;
    logic long_;
    logic writes;
    logic reads;
  } mode_t;

  mode_t       mode_q;
  logic        running_q, answer_q;
  addr_t       addr_q;
  logic [7:0]  w_beat_q;
  logic [15:0] refused_q, completed_q, posted_q;
  wc_status_e  status_q;
  logic [15:0] read_at_q, write_at_q;
  logic [15:0] read_q, written_q;
  wire [7:0]   len = mode_q.long_ ? PAGE_LEN : '0;

  assign identity = IDENTITY;
  assign job.ready  = !running_q;
  assign done.valid = answer_q;
  assign done.data  = '{tag: '1, code: RESULT_SUCCESS};   // not its tag

  assign mem.arvalid = running_q && mode_q.reads;
  assign mem.araddr  = addr_q;
  assign mem.arid    = ID_W'(0);
  assign mem.arlen   = len;
  assign mem.rready  = !mode_q.deaf;
  assign mem.awvalid = running_q && mode_q.writes;
  assign mem.awaddr  = addr_q;
  assign mem.awid    = ID_W'(0);
  assign mem.awlen   = len;
  assign mem.wvalid  = running_q && mode_q.writes && !mode_q.withholds;
  assign mem.wdata   = {DATA_W / 8{8'hee}};
  assign mem.wstrb   = '1;
  assign mem.wlast   = w_beat_q == len;
  assign mem.bready  = !mode_q.deaf;

  assign wqe.valid = running_q && mode_q.posts && !(mode_q.receives && posted_q[3]);
  assign wqe.data  = '{
      opcode: mode_q.receives ? WR_RECV : WR_SEND, signaled: posted_q[0], qpn: mode_q.qpn, wr_id: posted_q, local_addr: addr_q, length: 32'd4096, default: '0
  };
  assign cqe.ready = !mode_q.deaf;

  // The pages of the device, and those of eight sockets.
  function automatic logic [19:0] word_at(logic [15:0] number);
    return {3'd0, number[15], 1'b0, number[14:0]};
  endfunction

  assign bus.arvalid = running_q && mode_q.asks;
  assign bus.araddr  = mode_q.counter ? COUNTER : word_at(read_at_q);
  assign bus.rready  = !mode_q.deaf;
  assign bus.awvalid = running_q && mode_q.sets;
  assign bus.awaddr  = mode_q.counter ? COUNTER : word_at(write_at_q);
  assign bus.wvalid  = running_q && mode_q.sets;
  assign bus.wdata   = '1;
  assign bus.wstrb   = '1;
  assign bus.bready  = !mode_q.deaf;

  rdma_cqe_t came;
  assign came = cqe.data;

  always_ff @(posedge clk) begin
    if (job.valid && job.ready) begin
      mode_q <= '{
          receives: job.data.user[23], counter: job.data.user[22], sets: job.data.user[21], asks: job.data.user[20],
          qpn: qpn_t'(job.data.user[19:8]), default: '0
      };
      mode_q[7:0] <= job.data.user[7:0];
      addr_q <= job.data.user[6] ? FAR : {job.data.addr[ADDR_W-1:12], 12'd0};
    end
    if (mem.wvalid && mem.wready) w_beat_q <= mem.wlast ? '0 : w_beat_q + 1'b1;
    if (wqe.valid && wqe.ready) posted_q <= posted_q + 1'b1;
    if (cqe.valid && cqe.ready) begin
      completed_q <= completed_q + 1'b1;
      status_q    <= came.status;
    end
    if ((mem.rvalid && mem.rready && mem.rlast && mem.rresp[1]) || (mem.bvalid && mem.bready && mem.bresp[1])) begin
      refused_q <= refused_q + 1'b1;
    end
    if (bus.arvalid && bus.arready) read_at_q <= read_at_q + STRIDE;
    if (bus.awvalid && bus.awready) write_at_q <= write_at_q + STRIDE;
    if (bus.rvalid && bus.rready && bus.rresp == AXI_OKAY) read_q <= read_q + 1'b1;
    if (bus.bvalid && bus.bready && bus.bresp == AXI_OKAY) written_q <= written_q + 1'b1;
    if (rst) begin
      running_q   <= 1'b0;
      answer_q    <= 1'b0;
      mode_q      <= '0;
      w_beat_q    <= '0;
      refused_q   <= '0;
      completed_q <= '0;
      posted_q    <= '0;
      read_at_q   <= '0;
      write_at_q  <= '0;
      read_q      <= '0;
      written_q   <= '0;
    end else begin
      if (job.valid && job.ready) running_q <= job.data.user[7:0] != 8'h80 || job.data.user[20] || job.data.user[21];
      if (job.valid && job.ready && job.data.user[7]) answer_q <= 1'b1;
      else if (done.ready) answer_q <= 1'b0;
    end
  end

  assign ctrl.awready = 1'b0;
  assign ctrl.wready  = 1'b0;
  assign ctrl.bvalid  = 1'b0;
  assign ctrl.bresp   = AXI_OKAY;
  assign ctrl.arready = !ctrl.rvalid;
  always_ff @(posedge clk) begin
    if (ctrl.arready) begin
      ctrl.rdata <= ctrl.araddr[3] ? {written_q, read_q} : ctrl.araddr[2] ? 32'(status_q) : {refused_q, completed_q};
    end
    ctrl.rresp  <= AXI_OKAY;
    ctrl.rvalid <= !rst && (ctrl.rvalid ? !ctrl.rready : ctrl.arvalid);
  end

  kernel_no_stream no_stream (.rx, .tx, .msg_tx, .msg_rx);
  kernel_no_connections no_connections (.connect, .conn);
endmodule
