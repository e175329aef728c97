// SPDX-License-Identifier: Apache-2.0

// Function 2: drives the transport as its registers say, as perftest does from a host: COUNT work requests, spread over QPS queue
// pairs in turn, never more than DEPTH outstanding on each, and counts completions. A job starts one run and is done when
// the last request is complete; BAD_ARGUMENTS if one failed. Or START, without a job. The QPs must belong to the kernels' client.
//
// One work request every 3 cycles; completions are taken one a cycle at all times, but for the 1 024 cycles in which a run begins:
// nothing is outstanding then.
//
// Registers: kernel_traffic.rdl. Request i is for the addresses + (i mod WRAP) * STRIDE. Settings hold from the next start on; written
// while a run goes on they answer SLVERR and change nothing. An access that no register has is answered with DECERR.
module kernel_traffic
  import memory_pkg::*;
  import compute_pkg::*;
  import kernel_traffic_pkg::*;
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
  localparam int unsigned INDEX_W = $clog2(MAX_QPS);
  typedef logic [INDEX_W-1:0] index_t;

  assign identity = IDENTITY;

  // ---- settings: the registers from OPCODE to WRAP ----
  typedef struct packed {
    logic [31:0] opcode;
    logic [31:0] length;
    logic [31:0] qpn;
    logic [31:0] qps;
    logic [31:0] depth;
    logic [31:0] count;
    logic [31:0] local_lo;
    logic [31:0] local_hi;
    logic [31:0] remote_lo;
    logic [31:0] remote_hi;
    logic [31:0] rkey;
    logic [31:0] stride;
    logic [31:0] wrap;
  } settings_t;
  localparam int unsigned SETTINGS = $bits(settings_t) / 32;
  if (AT_WRAP - AT_OPCODE != 12'(4 * (SETTINGS - 1))) begin : g_check
    $fatal(1, "kernel_traffic: kernel_traffic.rdl has other settings than settings_t");
  end

  logic [SETTINGS-1:0][31:0] settings_q;   // [SETTINGS-1] is the first
  settings_t set;
  assign set = settings_t'(settings_q);

  // ---- the run ----
  typedef enum logic [2:0] {
    IDLE,
    CLEAR,     // nothing outstanding anywhere
    LOOK,      // the QP's counts arrive
    CHECK,
    POST,
    DRAIN      // all posted: wait for completions
  } state_e;

  state_e      state_q;
  index_t      at_q;
  logic [31:0] posted_q, completed_q, failed_q, place_q, cycles_q, last_cycles_q, first_cycles_q;
  logic [39:0] offset_q;
  wc_status_e  status_q;
  logic        by_job_q, stopped_q, job_last_q, answer_q;
  tag_t        tag_q;

  // Requests of each QP modulo 256: posted and completed, one writer each. Cleared at the start of a run.
  (* ram_style = "distributed" *) logic [7:0] posted[MAX_QPS];
  (* ram_style = "distributed" *) logic [7:0] completed[MAX_QPS];
  logic [7:0] qp_posted_q, qp_completed_q;
  rdma_cqe_t  came;
  index_t     came_index;

  assign came       = cqe.data;
  assign came_index = index_t'(came.qpn - qpn_t'(set.qpn));
  wire clearing  = state_q == CLEAR;
  // A run of receives counts receive completions, any other run send completions.
  wire receives  = set.opcode[3:0] == WR_RECV;
  wire completes = cqe.valid && (came.opcode inside {WC_RECV, WC_RECV_RDMA_WITH_IMM}) == receives;
  wire free_slot = qp_posted_q - qp_completed_q < set.depth[7:0];
  wire post      = wqe.valid && wqe.ready;
  wire last_qp   = 32'(at_q) + 32'd1 >= set.qps;
  wire all_done  = posted_q == completed_q;

  assign cqe.ready = !clearing;

  always_ff @(posedge clk) begin
    if (clearing || post) posted[at_q] <= clearing ? '0 : qp_posted_q + 1'b1;
    if (clearing || (completes && cqe.ready)) completed[clearing ? at_q : came_index] <= clearing ? '0 : completed[came_index] + 1'b1;
    qp_posted_q    <= post ? qp_posted_q + 1'b1 : posted[at_q];
    qp_completed_q <= completed[at_q];
  end

  assign wqe.valid = state_q == POST;
  assign wqe.data  = '{
      opcode: wr_opcode_e'(set.opcode[3:0]),
      signaled: 1'b1,
      qpn: qpn_t'(set.qpn) + qpn_t'(at_q),
      wr_id: posted_q[15:0],
      local_addr: addr_t'({set.local_hi, set.local_lo}) + addr_t'(offset_q),
      length: set.length,
      remote_addr: {set.remote_hi, set.remote_lo} + 64'(offset_q),
      rkey: set.rkey,
      imm_data: posted_q,
      swap_add: 64'd1,
      default: '0
  };

  logic start, stop, job_start;
  assign job_start = job.valid && job.ready && job.data.last;
  assign job.ready = state_q == IDLE && !job_last_q;
  assign done.valid = answer_q;
  assign done.data  = '{tag: tag_q, code: failed_q == '0 ? RESULT_SUCCESS : RESULT_BAD_ARGUMENTS};

  always_ff @(posedge clk) begin
    if (job_start) tag_q <= job.data.tag;
    if (state_q != IDLE) cycles_q <= cycles_q + 1'b1;
    if (state_q inside {LOOK, CHECK, POST, DRAIN}) begin
      if (completes) begin
        completed_q   <= completed_q + 1'b1;
        last_cycles_q <= cycles_q;
        if (completed_q == '0) first_cycles_q <= cycles_q;
        if (came.status != WC_SUCCESS) begin
          failed_q <= failed_q + 1'b1;
          if (failed_q == '0) status_q <= came.status;
        end
      end
      if (post) begin
        posted_q <= posted_q + 1'b1;
        place_q  <= place_q + 32'd1 >= set.wrap ? '0 : place_q + 1'b1;
        offset_q <= place_q + 32'd1 >= set.wrap ? '0 : offset_q + 40'(set.stride);
      end
    end

    if (rst) begin
      state_q   <= IDLE;
      at_q      <= '0;
      stopped_q <= 1'b0;
      by_job_q  <= 1'b0;
      job_last_q <= 1'b0;
      answer_q  <= 1'b0;
    end else begin
      if (stop) stopped_q <= 1'b1;
      if (done.ready) answer_q <= 1'b0;
      unique case (state_q)
        IDLE: begin
          if (start || job_start) begin
            state_q     <= CLEAR;
            by_job_q    <= job_start;
            job_last_q  <= job_start;
            stopped_q   <= 1'b0;
            at_q        <= '0;
            posted_q    <= '0;
            completed_q <= '0;
            failed_q    <= '0;
            status_q    <= WC_SUCCESS;
            place_q     <= '0;
            offset_q    <= '0;
            cycles_q    <= '0;
          end else if (answer_q && done.ready) job_last_q <= 1'b0;
        end
        CLEAR: begin
          at_q <= at_q + 1'b1;
          if (&at_q) begin
            state_q  <= LOOK;
            cycles_q <= '0;
          end
        end
        LOOK: state_q <= posted_q == set.count || stopped_q ? DRAIN : CHECK;
        CHECK: begin
          state_q <= free_slot ? POST : LOOK;
          if (!free_slot) at_q <= last_qp ? '0 : at_q + 1'b1;
        end
        POST:
        if (wqe.ready) begin
          state_q <= LOOK;
          at_q    <= last_qp ? '0 : at_q + 1'b1;
        end
        DRAIN:
        if (all_done) begin
          state_q  <= IDLE;
          answer_q <= by_job_q;
        end
        default: state_q <= IDLE;
      endcase
    end
  end

  // ---- registers: one access at a time, answered a cycle later ----
  logic [31:0] value;
  logic        write, setting, control, taken;
  logic [3:0]  number;
  logic [11:0] read_at, write_at;

  assign write  = ctrl.awvalid && ctrl.wvalid && !ctrl.bvalid;
  assign read_at  = {ctrl.araddr[11:2], 2'b00};
  assign write_at = {ctrl.awaddr[11:2], 2'b00};
  assign number  = 4'((write_at - AT_OPCODE) >> 2);
  assign setting = write_at >= AT_OPCODE && write_at <= AT_WRAP;
  assign control = write_at == AT_CONTROL;
  assign taken   = write && state_q == IDLE && setting;
  assign start   = write && state_q == IDLE && control && ctrl.wdata[0];
  assign stop    = write && control && ctrl.wdata[1];

  always_comb begin
    unique case (read_at)
      AT_STATUS: value = 32'(state_q != IDLE);
      AT_POSTED: value = posted_q;
      AT_COMPLETED: value = completed_q;
      AT_FAILED: value = failed_q;
      AT_FAILURE: value = 32'(status_q);
      AT_CYCLES: value = last_cycles_q;
      AT_FIRST: value = first_cycles_q;
      default: value = '0;
    endcase
  end

  assign ctrl.awready = write;
  assign ctrl.wready  = write;
  assign ctrl.arready = !ctrl.rvalid;
  always_ff @(posedge clk) begin
    if (taken) settings_q[4'(SETTINGS - 1) - number] <= ctrl.wdata;
    if (write) ctrl.bresp <= !writable(write_at) ? AXI_DECERR : taken || start || stop ? AXI_OKAY : AXI_SLVERR;
    if (ctrl.arvalid && ctrl.arready) begin
      ctrl.rdata <= value;
      ctrl.rresp <= readable(read_at) ? AXI_OKAY : AXI_DECERR;
    end
    ctrl.bvalid <= !rst && (write || (ctrl.bvalid && !ctrl.bready));
    ctrl.rvalid <= !rst && ((ctrl.arvalid && ctrl.arready) || (ctrl.rvalid && !ctrl.rready));
    if (rst) settings_q <= '0;
  end

  // ---- unused ports ----
  kernel_no_stream no_stream (.rx, .tx, .msg_tx, .msg_rx);
  kernel_no_connections no_connections (.connect, .conn);
  kernel_no_bus no_bus (.bus);
  kernel_no_memory #(.DATA_W(DATA_W), .ID_W(ID_W)) no_memory (.mem);

  logic unused_ok;
  assign unused_ok = &{1'b0, job.data, set.opcode, set.qpn, set.depth, set.local_hi, came, ctrl.wstrb, ctrl.awaddr, ctrl.araddr};
endmodule
