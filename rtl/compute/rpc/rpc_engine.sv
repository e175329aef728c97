// SPDX-License-Identifier: Apache-2.0

// The RPC engine: lets a caller set up regions of device memory and call functions over RDMA, wire-compatible with NAAICE
// (docs/reference/rpc.md has the messages and the states).
//
//   rpc_connections  the state of each connection and its contexts; takes all events
//   rpc_setup        AAR -> memory, keys, A (rpc_messages, rpc_extents)
//   rpc_description  publishes the description of the device
//   rpc_clear        clears memory before it is granted
//   rpc_regions      the tables of regions
//   rpc_dispatch     calls -> jobs of the sockets (rpc_queue, rpc_waiting; rpc_choice chooses one)
//   rpc_chain        chains -> calls
//   rpc_deadlines    calls that take too long
//   rpc_answer       results -> WRITEs
//
// Latency: receive completion of a start -> first beat of its job 7 cycles, 8 if CONTEXTS is more than 1; result -> first request 6 cycles if region 0 is the first
// output, otherwise 8; a region message: see rpc_setup. Completions are always accepted, one every 3 cycles.
module rpc_engine
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import compute_pkg::*;
  import rpc_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned QPS = 16,                              // a power of two
    parameter int unsigned CONTEXTS = 1,                          // of a connection at most: 1, 2 or 4 (docs/reference/calls.md)
    parameter bit LONG_SET_UP = 1'b0,                             // long set-ups are taken; needs more than one context
    parameter int unsigned CYCLES_PER_MS = 250_000,
    parameter int unsigned SOCKETS = 1,                           // at most 16
    parameter int unsigned MAX_REGIONS = 32,                      // per connection, internal ones included
    parameter int unsigned SQ_DEPTH = 32,                         // sends outstanding on a QP
    parameter addr_t DESCRIPTION_BASE = addr_t'(4 << 20),         // description of the device
    parameter addr_t CTRL_BASE = '0,                              // QPS * CONTEXTS * rpc_pkg::CTRL_BYTES for messages
    parameter addr_t HEAP_BASE = addr_t'(1 << 20),                // regions
    parameter addr_t HEAP_SIZE = addr_t'(1 << 20),
    parameter int unsigned LONGEST_W = LONGEST_WRITE_W,           // of an answer no WRITE has more than 2^LONGEST_W bytes
    parameter pd_t PD = '0,                                       // protection domain of its connections: its number among the clients
    parameter bit READ_BACK = 1'b1                                // a caller may also read its regions, and use atomics on them
) (
    input  logic        clk,
    input  logic        rst,
    stream_if.sink      conn_event,       // conn_event_t: CONN_OPENED and CONN_CLOSED; always accepted once the description is published
    stream_if.source    conn_answer,      // conn_answer_t: one for each, as soon as possible
    stream_if.source    wqe,              // rdma_wqe_t: receives (RECEIVES per context) and sends (at most MAX_REGIONS per QP)
    stream_if.sink      cqe,              // rdma_cqe_t
    stream_if.source    mr_cmd,           // mr_cmd_t
    stream_if.sink      mr_rsp,           // mr_rsp_t
    axi_if.master       mem,              // messages
    axi_if.master       clear_mem,        // zeros, in the background
    input  logic        others_write,     // see axi_clear
    input  ticks_t      now,              // time, which may also jump ahead; for deadlines
    input  logic [29:0] memory_per_caller, // KiB of regions for all connections of one peer address; 0: no limit
    output admission_entry_t quota_of,    // an entry of admission:
    input  logic [29:0] quota,            // likewise, for all connections of it; same cycle. 0: memory_per_caller
    stream_if.source    job[SOCKETS],     // job_t
    input  function_set_t [SOCKETS-1:0] functions,  // of each socket, without code 0
    input  held_t [SOCKETS-1:0] held,     // the image in each, for the description
    input  logic [SOCKETS-1:0] paused,    // it takes no new job now, for a bounded time
    output window_t [SOCKETS-1:0] window,
    output logic [SOCKETS-1:0] cancel,    // the connection of the running job is closed, or its caller cancels it
    stream_if.sink      done[SOCKETS],    // done_t: every job ends with one within a bounded time (guaranteed by the socket)
    stream_if.source    close,            // qpn_t: the connection has failed, CONN_CLOSED is expected
    output rpc_events_t events,
    output logic [SOCKETS-1:0] running,   // sockets that have a call
    output call_progress_t progress,      // what happens to calls, for telemetry
    output logic        idle              // running jobs of sockets are not included
);
  if (MAX_REGIONS > SQ_DEPTH || MAX_REGIONS < 2) begin : g_bad_regions
    $fatal(1, "rpc_engine: an answer must fit the send queue: MAX_REGIONS 2..SQ_DEPTH");
  end
  if (2 ** $clog2(QPS) != QPS || QPS < 2 || QPS > 1024) begin : g_bad_qps
    $fatal(1, "rpc_engine: QPS must be a power of two, 2..1024");
  end
  if (!(CONTEXTS inside {1, 2, MAX_CONTEXTS}) || CONTEXTS > MAX_REGIONS) begin : g_bad_contexts
    $fatal(1, "rpc_engine: CONTEXTS must be 1, 2 or 4, and at most MAX_REGIONS");
  end
  if (LONG_SET_UP && CONTEXTS == 1) begin : g_bad_long_set_up
    $fatal(1, "rpc_engine: LONG_SET_UP needs contexts");
  end
  if (LONG_SET_UP && (MAX_REGIONS > 2 ** $bits(region_number_t) || LONGEST_W > LONGEST_WRITE_W)) begin : g_bad_answers
    $fatal(1, "rpc_engine: with LONG_SET_UP MAX_REGIONS is at most 32, and LONGEST_W 31");
  end
  if (SOCKETS < 1 || SOCKETS > 16) begin : g_bad_sockets
    $fatal(1, "rpc_engine: SOCKETS must be 1..16");
  end
  if (CTRL_BASE % addr_t'(CTRL_BYTES) != '0 || HEAP_BASE % addr_t'(1 << PAGE_W) != '0 || HEAP_SIZE % addr_t'(1 << PAGE_W) != '0)
  begin : g_bad_alignment
    $fatal(1, "rpc_engine: CTRL_BASE, HEAP_BASE and HEAP_SIZE must be multiples of 4096");
  end
  if (64'(HEAP_BASE) > 64'd1 << HEAP_ADDR_W || 64'(HEAP_SIZE) > (64'd1 << HEAP_ADDR_W) - 64'(HEAP_BASE)) begin : g_bad_heap
    $fatal(1, "rpc_engine: regions must lie below 2^40");
  end
  if (CTRL_BASE < HEAP_BASE + HEAP_SIZE && HEAP_BASE < CTRL_BASE + addr_t'(QPS * CONTEXTS * CTRL_BYTES)) begin : g_bad_layout
    $fatal(1, "rpc_engine: regions and messages overlap in memory");
  end

  // Readers of the tables of regions.
  localparam int unsigned ANSWER = 0, DISPATCH = 1, SETUP = 2, READERS = 3;

  stream_if #(.T(region_key_t)) view_read[READERS] ();
  logic [READERS-1:0] view_valid;
  region_view_t       view;
  logic               region_write, grant_write;
  region_key_t        write_key;
  region_t            region;
  grant_t             grant;

  closing_t closing;
  slot_t    asked[3];    // by rpc_dispatch, rpc_answer, rpc_clear
  logic     gone[3];
  logic     connections_idle, setup_idle, clear_idle, dispatch_idle, answer_idle;
  logic     setup_empty, releases_empty, refusals_empty, reposts_empty, closes_empty, answers_empty, cancels_empty, rests_empty;
  logic     aborted, ignored, started, finished, failed, cancelled, granted, refused, malformed;

  ticks_t       began, limit;
  logic         decides, step_write, chain_idle, deadlines_idle;
  step_write_t  step;

  description_t description;
  logic         published;
  load_t        load;
  waiting_count_t     waiting_calls;
  logic [SOCKETS-1:0] busy;

  stream_if #(.T(conn_event_t)) conn_in ();
  stream_if #(.T(setup_job_t)) setup_in (), setup_job ();
  stream_if #(.T(release_job_t)) release_in (), release_job ();
  stream_if #(.T(setup_done_t)) setup_done ();
  stream_if #(.T(extent_t)) extent ();
  stream_if #(.T(cleared_t)) cleared ();
  stream_if #(.T(call_t)) call_in (), call ();
  stream_if #(.T(chain_t)) chain_in ();
  stream_if #(.T(outcome_t)) outcome ();
  stream_if #(.T(cancel_t)) cancel_in (), cancel_out (), cancelling ();
  stream_if #(.T(result_t)) refused_in (), refusal_in (), refusal (), result ();
  stream_if #(.T(answer_t)) rest_in (), rest (), answer ();
  stream_if #(.T(posted_t)) posted ();
  stream_if #(.T(receive_t)) repost_in (), repost ();
  stream_if #(.T(qpn_t)) close_in ();
  stream_if #(.T(qpn_t)) answer_in (), answer_out ();
  stream_if #(.T(rdma_wqe_t)) sends[2] ();
  stream_if #(.T(rdma_wqe_t)) send (), request ();

  // No connection is accepted before the description is published: the REP contains its address.
  assign conn_in.valid    = conn_event.valid && published;
  assign conn_in.data     = conn_event.data;
  assign conn_event.ready = conn_in.ready && published;

  rpc_connections #(.QPS(QPS), .CONTEXTS(CONTEXTS), .SOCKETS(SOCKETS), .LONG_SET_UP(LONG_SET_UP)) connections_unit (
      .clk, .rst, .conn_event(conn_in), .conn_answer(answer_in), .cqe, .setup_done, .posted,
      .setup(setup_in), .release_(release_in), .call(call_in), .chain(chain_in), .cancel(cancel_in), .refusal(refused_in), .rest(rest_in),
      .repost(repost_in), .close(close_in),
      .closing, .asked, .gone, .functions, .busy, .decides, .now, .began, .started, .aborted, .ignored, .idle(connections_idle)
  );

  // One entry for every context: rpc_connections never stalls.
  localparam int unsigned ALL = QPS * CONTEXTS;
  stream_fifo #(.T(setup_job_t), .DEPTH(ALL)) setups (.clk, .rst, .in(setup_in), .out(setup_job), .empty(setup_empty));
  stream_fifo #(.T(release_job_t), .DEPTH(ALL)) releases (
      .clk, .rst, .in(release_in), .out(release_job), .empty(releases_empty)
  );
  stream_fifo #(.T(result_t), .DEPTH(ALL)) refusals (.clk, .rst, .in(refusal_in), .out(refusal), .empty(refusals_empty));
  stream_fifo #(.T(receive_t), .DEPTH(ALL * RECEIVES)) reposts (
      .clk, .rst, .in(repost_in), .out(repost), .empty(reposts_empty)
  );
  stream_fifo #(.T(qpn_t), .DEPTH(QPS)) closes (.clk, .rst, .in(close_in), .out(close), .empty(closes_empty));
  stream_fifo #(.T(qpn_t), .DEPTH(QPS)) answers (
      .clk, .rst, .in(answer_in), .out(answer_out), .empty(answers_empty)
  );

  // ---- long set-ups ----
  if (LONG_SET_UP) begin : g_long_set_up
    stream_if #(.T(call_t)) step_call ();
    stream_if #(.T(result_t)) step_refusal ();
    stream_if #(.T(cancel_t)) expired ();
    rpc_chain #(.QPS(QPS), .CONTEXTS(CONTEXTS), .SOCKETS(SOCKETS)) chain (
        .clk, .rst, .step_write, .step, .begins(chain_in), .outcome, .result, .cancels(cancelling.valid && cancelling.ready),
        .cancel(cancelling.data), .call(step_call), .refusal(step_refusal), .functions, .busy, .idle(chain_idle)
    );
    rpc_deadlines #(.QPS(QPS), .CONTEXTS(CONTEXTS)) deadlines (
        .clk, .rst, .now, .limits(grant_write), .limited(write_key.of), .limit,
        .starts(call_in.valid || chain_in.valid), .starting(chain_in.data.of), .odd(chain_in.data.odd), .arrived(began),
        .expired, .idle(deadlines_idle)
    );
    // rpc_connections never waits. What it decides is late in a cycle, that it decides is early.
    assign call.valid          = call_in.valid || step_call.valid && !decides;
    assign call.data           = decides ? call_in.data : step_call.data;
    assign step_call.ready     = !decides;
    assign refusal_in.valid    = refused_in.valid || step_refusal.valid && !decides;
    assign refusal_in.data     = decides ? refused_in.data : step_refusal.data;
    assign step_refusal.ready  = !decides;
    // A chain that begins has not been cancelled yet: rpc_chain must learn that first.
    assign cancelling.valid    = (cancel_out.valid || expired.valid) && !decides;
    assign cancelling.data     = cancel_out.valid ? cancel_out.data : expired.data;
    assign cancel_out.ready    = cancelling.ready && !decides;
    assign expired.ready       = cancelling.ready && !decides && !cancel_out.valid;
    // The rest of an answer first: there was much to send before it.
    stream_fifo #(.T(answer_t), .DEPTH(ALL)) rests (.clk, .rst, .in(rest_in), .out(rest), .empty(rests_empty));
    assign answer.valid        = rest.valid || result.valid;
    assign answer.data         = rest.valid ? rest.data : '{result: result.data, from: '0};
    assign rest.ready          = answer.ready;
    assign result.ready        = answer.ready && !rest.valid;
  end else begin : g_no_long_set_up
    assign call.valid       = call_in.valid;
    assign call.data        = call_in.data;
    assign refusal_in.valid = refused_in.valid;
    assign refusal_in.data  = refused_in.data;
    assign result.valid     = outcome.valid;
    assign result.data      = outcome.data.result;
    assign outcome.ready    = result.ready;
    assign cancelling.valid = cancel_out.valid;
    assign cancelling.data  = cancel_out.data;
    assign cancel_out.ready = cancelling.ready;
    assign chain_in.ready   = 1'b1;
    assign chain_idle       = 1'b1;
    assign deadlines_idle   = 1'b1;
    assign answer.valid     = result.valid;
    assign answer.data      = '{result: result.data, from: '0};
    assign result.ready     = answer.ready;
    assign rest_in.ready    = 1'b1;
    assign rest.valid       = 1'b0;
    assign rests_empty      = 1'b1;
    wire unused = &{1'b0, decides, began, limit, step_write, step, chain_in.valid, chain_in.data, outcome.data, rest_in.valid, rest_in.data};
  end
  assign call_in.ready    = 1'b1;
  assign refused_in.ready = refusal_in.ready;

  if (CONTEXTS > 1) begin : g_cancels
    stream_fifo #(.T(cancel_t), .DEPTH(ALL)) cancels (
        .clk, .rst, .in(cancel_in), .out(cancel_out), .empty(cancels_empty)
    );
  end else begin : g_no_cancels
    assign cancel_in.ready  = 1'b1;
    assign cancel_out.valid = 1'b0;
    assign cancel_out.data  = '0;
    assign cancels_empty    = 1'b1;
  end
  assign conn_answer.valid = answer_out.valid;
  assign conn_answer.data  = '{qpn: answer_out.data, accept: 1'b1, private_data: description_private(description)};
  assign answer_out.ready  = conn_answer.ready;

  rpc_setup #(
      .DATA_W(DATA_W), .QPS(QPS), .CONTEXTS(CONTEXTS), .MAX_REGIONS(MAX_REGIONS),
      .LONG_SET_UP(LONG_SET_UP), .CYCLES_PER_MS(CYCLES_PER_MS),
      .DESCRIPTION_BASE(DESCRIPTION_BASE), .CTRL_BASE(CTRL_BASE), .HEAP_BASE(HEAP_BASE), .HEAP_SIZE(HEAP_SIZE), .PD(PD), .READ_BACK(READ_BACK),
      .SOCKETS(SOCKETS)
  ) setup (
      .clk, .rst, .job(setup_job), .release_(release_job), .load, .held, .paused(|paused), .clear_idle, .description, .published, .done(setup_done), .extent, .cleared,
      .opened(conn_event.valid && conn_event.ready && conn_event.data.kind == CONN_OPENED),
      .opened_slot(slot_t'(qp_index(conn_event.data.qpn))), .opened_ip(conn_event.data.ip), .opened_by(conn_event.data.by),
      .memory_per_caller, .quota_of, .quota,
      .mem, .mr_cmd, .mr_rsp, .wqe(sends[1]),
      .region_write, .grant_write, .write_key, .region, .grant, .step_write, .step, .limit,
      .view_read(view_read[SETUP]), .view_valid(view_valid[SETUP]), .view,
      .granted, .refused, .malformed, .idle(setup_idle)
  );

  rpc_clear #(.DATA_W(DATA_W), .QPS(QPS), .CONTEXTS(CONTEXTS)) clear (
      .clk, .rst, .extent, .cleared, .asked(asked[2]), .gone(gone[2]), .mem(clear_mem), .others_write, .idle(clear_idle)
  );

  rpc_regions #(
      .QPS(QPS), .CONTEXTS(CONTEXTS), .MAX_REGIONS(MAX_REGIONS), .LONG_SET_UP(LONG_SET_UP), .READERS(READERS)
  ) region_tables (
      .clk, .rst, .region_write, .grant_write, .write_key, .region, .grant, .read(view_read), .view_valid, .view
  );

  rpc_dispatch #(.QPS(QPS), .CONTEXTS(CONTEXTS), .SOCKETS(SOCKETS), .MAX_REGIONS(MAX_REGIONS), .LONG_SET_UP(LONG_SET_UP)) dispatch (
      .clk, .rst, .closing, .asked(asked[0]), .gone(gone[0]), .call, .cancel(cancelling), .refusal,
      .view_read(view_read[DISPATCH]), .view_valid(view_valid[DISPATCH]), .view,
      .job, .window, .paused, .abort(cancel), .busy, .running, .waiting(waiting_calls), .progress, .done, .result(outcome), .idle(dispatch_idle)
  );

  rpc_answer #(.LONG_SET_UP(LONG_SET_UP), .LONGEST_W(LONGEST_W)) answer_unit (
      .clk, .rst, .asked(asked[1]), .gone(gone[1]), .answer,
      .view_read(view_read[ANSWER]), .view_valid(view_valid[ANSWER]), .view,
      .wqe(sends[0]), .posted, .finished, .failed, .cancelled, .idle(answer_idle)
  );

  // ---- work requests: receives first, so that a receive is always posted again before the answer ----
  stream_arbiter #(.T(rdma_wqe_t), .N(2)) send_arbiter (.clk, .rst, .in(sends), .last('1), .out(send));

  always_comb begin
    request.data = send.data;
    if (repost.valid) begin
      request.data            = '0;
      request.data.opcode     = WR_RECV;
      request.data.qpn        = qp_number(repost.data.slot);
      request.data.wr_id      = 16'(repost.data.buffer);
      request.data.lkey       = LOCAL_DMA_LKEY;
      request.data.local_addr = receive_addr(CTRL_BASE, repost.data, CONTEXTS);
      request.data.length     = 32'(MESSAGE_BYTES);
    end
  end
  assign request.valid = repost.valid || send.valid;
  assign repost.ready  = request.ready;
  assign send.ready    = request.ready && !repost.valid;
  stream_slice #(.T(rdma_wqe_t)) wqe_slice (.clk, .rst, .in(request), .out(wqe));

  // ---- load ----
  logic [$clog2(QPS+1)-1:0] connections_q;
  logic [47:0]              calls_q;
  wire conn_taken = conn_event.valid && conn_event.ready;
  always_ff @(posedge clk) begin
    if (conn_taken) connections_q <= conn_event.data.kind == CONN_OPENED ? connections_q + 1'b1 : connections_q - 1'b1;
    if (started) calls_q <= calls_q + 1'b1;
    if (rst) begin
      connections_q <= '0;
      calls_q       <= '0;
    end
  end
  assign load = '{
      connections: 32'(connections_q),
      running: 32'($countones(running)),
      waiting: 32'(waiting_calls),
      calls: 64'(calls_q),
      default: '0
  };

  assign events = '{
      regions_granted: granted,
      regions_refused: refused,
      call_started: started,
      call_finished: finished,
      call_failed: failed || aborted,
      call_cancelled: cancelled,
      message_malformed: malformed,
      immediate_ignored: ignored
  };
  assign idle = connections_idle && setup_idle && clear_idle && dispatch_idle && answer_idle && setup_empty && releases_empty && refusals_empty
             && chain_idle && deadlines_idle && cancels_empty && reposts_empty && closes_empty && answers_empty
             && rests_empty && !answer.valid && !posted.valid && !request.valid && !wqe.valid;
endmodule
