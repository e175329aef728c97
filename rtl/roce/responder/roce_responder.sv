// SPDX-License-Identifier: Apache-2.0

// The responder: checks each request of every QP against the receive state of its QP, and executes it: memory writes, acknowledgements,
// receive completions (IBTA 9.7). CNPs, and responses with congestion experienced (CE), pass the same checks of QP and peer and are only
// counted and reported.
//
// One pipeline owns the receive state. An operation enters at most every second cycle: a packet, a command, the report of a write error by
// memory, the flush of one receive of a QP in the error state, or a fence after the invalidation of a key.
//
//   0 enter   1 QP number   2, 3 attributes, form   4 read state   5 check   6 decide   7 act   8 out   -> dispatch -> confirm -> complete
//
// Latency from `packet` to `write`: 9 cycles. One packet every 2 cycles, also on one QP; payload one beat a cycle. After a command, and
// after a SEND with invalidate, no other operation enters for HOLD cycles. A command is answered when everything outstanding of the QP has
// left by `respond`, memory and `completion`. For this `completion` must always be taken. A fence completes when memory has confirmed
// everything that was decided before it, of any QP; packets behind it proceed meanwhile. When an output stalls, up to ACTIONS decided
// packets are buffered, then `packet` stalls. Responses leave in the order of the packets, each before the completion of its message.
module roce_responder
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import roce_rx_pkg::*;
#(
    parameter int unsigned DATA_W   = 512,
    parameter int unsigned QPS      = 16,
    parameter int unsigned RQ_DEPTH = 4,
    parameter int unsigned ACTIONS  = 16,     // power of two, 8 or more
    parameter int unsigned PENDING  = 64,     // packets that memory has not confirmed; power of two
    parameter int unsigned FAR_PENDING = 256, // likewise, in the lane of each of the other memories
    parameter bit          SELECTIVE_REPEAT = 1'b1,   // else no QP has it
    parameter int unsigned LANES    = 1,      // memories
    parameter memory_map_t MAP      = '0      // their addresses
) (
    input  logic            clk,
    input  logic            rst,
    // requests, CNPs and marked responses
    stream_if.sink          packet,           // rc_packet_t
    axis_if.sink            payload,          // of those with payload_length > 0
    // responses
    stream_if.source        respond,          // respond_t
    output qp_index_t       rd_done_slot,     // READs and atomics of this QP answered so far,
    input  rd_count_t       rd_done,          // modulo 256, in the same cycle
    // memory
    stream_if.source        write,            // dma_cmd_t, length > 0
    axis_if.source          data,
    stream_if.sink          done[LANES],      // dma_done_t, of each memory
    input  targets_t        write_room,       // this memory's buffers accept a packet of any size
    output logic            reserve,          // pulse: a packet will be written,
    output write_size_t     reserve_size,     // of this size
    // the access check (roce_mr): granted 3 cycles after query
    output mr_query_t       query,
    output logic            asks,             // `query` is valid in this cycle
    input  logic            granted,
    output logic            pause,            // roce_mr pauses its commands: an invalidation may follow
    output logic            invalidate,
    output logic [31:0]     invalid_key,
    output logic [1:0][31:0] key,             // of the message in progress, and of the receive of a message that begins:
    input  logic [1:0]      key_live,         // still valid, one cycle later
    stream_if.sink          mr_fence,         // logic: a key was invalidated
    output logic            fenced,           // pulse: memory has confirmed everything decided before that
    // the response unit's fences, requested after a key was invalidated
    output logic            fence,            // pulse
    input  fence_t          fence_number,
    input  fence_t          fences_through,
    // receives
    stream_if.sink          post,             // rx_post_t
    stream_if.source        completion,       // rdma_cqe_t
    // queue pairs
    stream_if.sink          cmd,              // qp_cmd_t
    stream_if.source        answer,           // logic
    stream_if.source        qp_event,         // qp_event_t: QP_FATAL of the receive side, COMM_EST
    stream_if.sink          failed,           // qp_failed_t: a READ or atomic request of this QP's peer cannot be answered
    // received packets, by pulse
    output logic            active,           // a packet from the peer of a live QP
    output logic            ecn_marked,       // it had congestion experienced (CE)
    output logic            cnp,              // it was a CNP
    output qpn_t            active_qpn,       // its QP
    output logic [15:0]     active_bytes,     // its payload length
    output roce_rx_events_t events,           // all except those of roce_rx and of the response unit
    output logic            idle
);
  localparam int unsigned FLIGHT_W = $clog2(ACTIONS) + 1;
  localparam int unsigned PENDING_W = $clog2(PENDING) + 1;
  localparam logic [3:0]  HOLD = 4'd12;       // cycles from a command, or a SEND with invalidate, to the next operation
  localparam logic [3:0]  HOLD_FREE = 4'd3;   // in the last cycles of HOLD the tables hold the result

  // ---- 0: operation select ----
  typedef struct packed {
    rx_op_e     op;
    rc_packet_t packet;                       // of the other operations only the QP number is used
  } rx_operation_t;

  stream_if #(.T(qpn_t)) unwritten ();         // QPs for which memory reported a write error
  stream_if #(.T(qp_failed_t)) refusal[2] ();  // those, and QPs whose READ or atomic the response unit cannot answer
  stream_if #(.T(qp_failed_t)) fault ();
  stream_if #(.T(qpn_t)) flush ();
  stream_if #(.T(qpn_t)) kick ();
  stream_if #(.T(action_t)) decided ();
  stream_if #(.T(action_t)) action ();
  stream_if #(.T(outcome_t)) outcome ();
  action_t  action_7, action_8, said_8;
  outcome_t outcome_7, outcome_8;

  logic                table_ready, commanded_q, flush_busy, inv_q;
  logic [3:0]          hold_q;
  logic [FLIGHT_W-1:0] flight_q, flight_d;    // operations from entry to the end of dispatch
  logic [PENDING_W-1:0] pending_q, pending_d; // operations from entry until their outcome, if they have one, has left
  logic [LANES-1:0]    outcome_left;
  logic                spare_q;               // every lane accepts an operation that is not a packet
  logic [7:1]          valid;                 // operations, by stage
  qp_cmd_t             cmd_now, cmd_q;
  rc_packet_t          packet_now;
  qp_failed_t          failing;
  assign cmd_now    = cmd.data;
  assign failing    = fault.data;
  assign packet_now = packet.data;

  // The grant is decided one cycle ahead: a requester that was pending then is still pending, unless it has just entered; packets have the
  // lowest priority.
  logic fault_turn, flush_turn, cmd_turn, fence_turn, packet_turn;
  wire fault_waits = fault.valid && spare_q;
  wire flush_waits = flush.valid && spare_q;
  wire cmd_waits   = cmd.valid && spare_q && !commanded_q && !flush_busy;
  wire fence_waits = mr_fence.valid && spare_q;
  wire pauses      = valid[1];                // an operation entered in the previous cycle
  wire take_fault  = fault_turn && fault.valid && !pauses;
  wire take_flush  = flush_turn && flush.valid && !pauses;
  wire take_cmd    = cmd_turn && cmd.valid && !flush_busy && !pauses;
  wire take_fence  = fence_turn && mr_fence.valid && !pauses;
  wire take_packet = packet_turn && packet.valid && !pauses;
  wire enter       = take_fault || take_flush || take_cmd || take_fence || take_packet;
  wire may_enter   = table_ready && hold_q <= 4'd1 && !flight_d[FLIGHT_W-1] && !pending_d[PENDING_W-1];
  always_ff @(posedge clk) begin
    fault_turn  <= !rst && may_enter && fault_waits;
    flush_turn  <= !rst && may_enter && !fault_waits && flush_waits;
    cmd_turn    <= !rst && may_enter && !fault_waits && !flush_waits && cmd_waits;
    fence_turn  <= !rst && may_enter && !fault_waits && !flush_waits && !cmd_waits && fence_waits;
    packet_turn <= !rst && may_enter && !fault_waits && !flush_waits && !cmd_waits && !fence_waits;
  end

  assign refusal[0].valid = unwritten.valid;
  assign refusal[0].data  = '{qpn: unwritten.data, denied: 1'b0};
  assign unwritten.ready  = refusal[0].ready;
  assign refusal[1].valid = failed.valid;
  assign refusal[1].data  = failed.data;
  assign failed.ready     = refusal[1].ready;
  stream_arbiter #(.T(qp_failed_t), .N(2)) refusals (.clk, .rst, .in(refusal), .last('1), .out(fault));

  assign fault.ready  = fault_turn && !pauses;
  assign flush.ready  = take_flush;
  assign cmd.ready    = take_cmd;
  assign mr_fence.ready = take_fence;
  assign packet.ready = packet_turn && !pauses;

  // The operation and the data gathered for it, by stage. The pipeline never stalls.
  rx_operation_t stage[1:7];
  logic [6:2]    exists;
  qp_index_t     slot[2:6];
  qp_rx_attr_t   attr_2, attr[2:7];
  form_t         form[4:7];
  rq_pointer_t   tail[4:6];
  rd_count_t     rd_done_5, rd_done_6;

  // ---- 1: QP number ----
  qpn_t      index_1;
  qp_index_t slot_1;
  assign index_1 = qp_index(stage[1].packet.qpn);
  assign slot_1  = qp_index_t'(index_1);

  always_ff @(posedge clk) begin
    stage[1].op     <= take_fault ? (failing.denied ? OP_DENIED : OP_FAULT) : take_flush ? OP_FLUSH : take_cmd ? OP_COMMAND
                     : take_fence ? OP_FENCE : OP_PACKET;
    stage[1].packet <= packet.data;
    if (take_fault) stage[1].packet.qpn <= failing.qpn;
    else if (take_flush) stage[1].packet.qpn <= flush.data;
    else if (take_cmd) stage[1].packet.qpn <= cmd_now.qpn;
    else if (take_fence) stage[1].packet.qpn <= '0;   // no QP

    for (int unsigned i = 2; i <= 7; i++) stage[i] <= stage[i-1];
    for (int unsigned i = 3; i <= 7; i++) attr[i] <= attr[i-1];
    for (int unsigned i = 5; i <= 7; i++) form[i] <= form[i-1];
    for (int unsigned i = 3; i <= 6; i++) slot[i] <= slot[i-1];
    for (int unsigned i = 5; i <= 6; i++) tail[i] <= tail[i-1];
    slot[2]   <= slot_1;
    exists    <= {exists[5:2], index_1 < qpn_t'(QPS)};
    rd_done_5 <= rd_done;
    rd_done_6 <= rd_done_5;
    if (take_cmd) cmd_q <= cmd_now;
    if (enter) inv_q <= take_packet && packet_now.with_inv;

    if (rst) begin
      valid       <= '0;
      commanded_q <= 1'b0;
      hold_q      <= '0;
      flight_q    <= '0;
      pending_q   <= '0;
    end else begin
      valid     <= {valid[6:1], enter};
      flight_q  <= flight_d;
      pending_q <= pending_d;
      if (take_cmd) commanded_q <= 1'b1;
      else if (answer.valid && answer.ready) commanded_q <= 1'b0;
      if (take_cmd || (take_packet && packet_now.with_inv)) hold_q <= HOLD - 1'b1;
      else if (hold_q != '0) hold_q <= hold_q - 1'b1;
    end
  end

  // Entries and exits are counted one cycle late; no operation enters in the cycle after another.
  logic dispatched_q, ended_q, left_q;
  always_ff @(posedge clk) begin
    dispatched_q <= !rst && action.valid && action.ready;
    ended_q      <= !rst && decided.valid && !(said_8.waits && said_8.lane == '0);
    left_q       <= !rst && outcome_left[0];
  end
  assign flight_d  = flight_q + FLIGHT_W'(valid[1]) - FLIGHT_W'(dispatched_q);
  assign pending_d = pending_q + PENDING_W'(valid[1]) - PENDING_W'(ended_q) - PENDING_W'(left_q);

  // ---- 2, 3: attributes; the access check begins ----
  roce_responder_check form_ (.clk, .packet(stage[2].packet), .attr(attr[2]), .form(form[4]));

  rc_packet_t packet_3;
  assign packet_3 = stage[3].packet;
  always_comb begin
    query = '{
        key: packet_3.with_inv ? packet_3.word : packet_3.reth.rkey,
        pd: attr[3].pd,
        qpn: packet_3.qpn,
        bounded: !packet_3.with_inv,
        va: packet_3.reth.va,
        length: packet_3.kind == RC_ATOMIC ? ATOMIC_BYTES : packet_3.reth.dmalen,
        access: '0
    };
    unique case (packet_3.kind)
      RC_SEND:   query.access.remote_invalidate = 1'b1;
      RC_READ:   query.access.remote_read = 1'b1;
      RC_ATOMIC: query.access.remote_atomic = 1'b1;
      default:   query.access.remote_write = 1'b1;
    endcase
  end
  assign asks  = valid[3] && stage[3].op == OP_PACKET;
  assign pause = inv_q && hold_q >= HOLD_FREE;

  // ---- 4: read   5: check   6: decide ----
  qp_rx_t      state_5, old_6, new_6;
  qp_rx_attr_t attr_new;
  receive_t    receive_6;
  verdict_e [1:0] verdict_6;                          // indexed by whether the key of the message in progress is valid
  qp_rx_view_t view;
  qp_index_t   view_slot;
  logic        queue_idle, consumes_6, remember_6, advance_6, present_6, left_6, needs_key_6, obeyed_6;
  logic        lost_7;                               // the packet needs a valid key and the key is not valid
  psn_t        expected_6;

  stream_if #(.T(rx_reject_t)) reject ();

  target_t     packet_target_6;                      // the memory of the address in the packet
  target_t     target_6, lane_6, target_7, lane_7;   // the memory of the payload; the lane of the outcome
  logic        busy_6, full_6;
  qp_index_t   left_index[LANES];

  assign attr_new = '{
      dst_ip: cmd_q.attr.dst_ip,
      pd: cmd_q.attr.pd,
      access: cmd_q.attr.access,
      path_mtu: cmd_q.attr.path_mtu,
      selective_repeat: cmd_q.attr.selective_repeat,
      min_rnr_timer: cmd_q.attr.min_rnr_timer,
      max_dest_rd_atomic: cmd_q.attr.max_dest_rd_atomic
  };

  function automatic qp_rx_attr_t as_built(qp_rx_attr_t of_qp);
    as_built = of_qp;
    if (!SELECTIVE_REPEAT) as_built.selective_repeat = 1'b0;
  endfunction
  assign attr[2] = as_built(attr_2);

  wire changes_6 = valid[6] && exists[6];
  wire set_up_6  = changes_6 && obeyed_6 && cmd_q.op == QP_SETUP;

  roce_qp_rx #(.QPS(QPS)) qps (
      .clk, .rst,
      .ready(table_ready),
      .attr_slot(slot_1), .attr(attr_2),
      .attr_write(set_up_6), .attr_write_slot(slot[6]), .attr_new,
      .read_slot(slot[4]), .state(state_5),
      .write(changes_6), .write_slot(slot[6]), .write_state(new_6), .fails(lost_7),
      .view_slot, .view
  );

  roce_qp_rx_queue #(.QPS(QPS), .RQ_DEPTH(RQ_DEPTH)) receives (
      .clk, .rst,
      .post, .reject, .kick, .idle(queue_idle),
      .view_slot, .view,
      .tail_slot(slot[4]), .tail(tail[4]),
      .read_slot(slot[5]), .read_head(state_5.rq_head), .receive(receive_6)
  );

  assign rd_done_slot = slot[4];
  assign key          = {receive_6.lkey, state_5.key};

  if (SELECTIVE_REPEAT) begin : g_window
    roce_responder_window #(.QPS(QPS)) window (
        .clk, .rst,
        .read_slot(slot[4]),
        .psn(stage[4].packet.psn), .next(form[4].next),
        .present(present_6), .expected(expected_6), .left(left_6),
        .write(changes_6), .write_slot(slot[6]), .clear(set_up_6), .remember(remember_6), .advance(advance_6)
    );
  end else begin : g_no_window   // nothing is placed ahead
    psn_t next_5;
    always_ff @(posedge clk) begin
      next_5     <= form[4].next;
      expected_6 <= next_5;
    end
    assign present_6 = 1'b0;
    assign left_6    = 1'b0;
    logic unused_ok;
    assign unused_ok = &{1'b0, remember_6, advance_6};
  end

  roce_responder_decide decide (
      .clk,
      .check_op(stage[5].op), .check_exists(exists[5]), .check_packet(stage[5].packet), .check_attr(attr[5]),
      .check_form(form[5]), .check_state(state_5), .check_tail(tail[5]), .check_rd_done(rd_done_5), .cmd(cmd_q),
      .op(stage[6].op), .exists(exists[6]), .packet(stage[6].packet), .form(form[6]),
      .selective_repeat(attr[6].selective_repeat), .tail(tail[6]), .rd_done(rd_done_6), .receive(receive_6), .target(packet_target_6), .granted,
      .busy(busy_6), .full(full_6),
      .present(present_6), .expected(expected_6),
      .old_state(old_6), .new_state(new_6), .verdict(verdict_6), .needs_key(needs_key_6), .obeyed(obeyed_6), .consumes(consumes_6), .remember(remember_6),
      .advance(advance_6)
  );

  // ---- 6: which memory, and its lane ----
  always_ff @(posedge clk) packet_target_6 <= target_of(MAP, LANES, addr_t'(stage[5].packet.reth.va));

  if (LANES == 1) begin : g_one_lane
    assign target_6 = '0;
    assign lane_6   = '0;
    assign busy_6   = 1'b0;
    assign full_6   = 1'b0;
    assign spare_q  = 1'b1;

    logic unused_ok;
    assign unused_ok = &{1'b0, write_room, left_index[0]};
  end else begin : g_lanes
    // Lane entries reserved for responses to refused packets, and for operations that are not packets.
    localparam int unsigned ANSWERS = 32, OTHERS = 16;
    typedef logic [$clog2(FAR_PENDING):0] far_t;

    rc_packet_t       packet_6;
    targets_t         waits_6, room_q, answers_q, spares;
    logic             fences_6;
    assign packet_6 = stage[6].packet;
    wire data_6 = stage[6].op == OP_PACKET && packet_6.payload_length != '0 && packet_6.kind inside {RC_SEND, RC_WRITE};

    always_comb begin
      if (!packet_6.first) target_6 = old_6.target;
      else target_6 = packet_6.kind == RC_SEND ? receive_6.access.target : packet_target_6;
      // A fence must follow everything decided before it, of any QP: it enters the last lane.
      fences_6 = stage[6].op == OP_FENCE || (stage[6].op == OP_PACKET && packet_6.with_inv);
      lane_6   = data_6 ? target_6 : '0;
      for (int unsigned i = 1; i < LANES; i++) if (target_t'(i) > lane_6 && (waits_6[i] || fences_6)) lane_6 = target_t'(i);
    end
    assign busy_6 = (data_6 && !write_room[target_6]) || !room_q[lane_6];
    assign full_6 = !answers_q[lane_6];

    assign {waits_6[0], room_q[0], answers_q[0], spares[0]} = 4'b0111;
    for (genvar i = LANES; i < MAX_TARGETS; i++) begin : g_no_lane
      assign {waits_6[i], room_q[i], answers_q[i], spares[i]} = 4'b0111;
    end
    for (genvar i = 1; i < LANES; i++) begin : g_lane
      far_t held_q;                           // outcomes in this lane
      wire  enters = valid[7] && outcome_waits(outcome_7) && action_7.lane == target_t'(i);
      roce_qp_outstanding #(.QPS(QPS), .COUNT_W($clog2(FAR_PENDING) + 1)) waiting (
          .clk, .rst, .begins(enters), .begins_index(qp_index_t'(qp_index(stage[7].packet.qpn))),
          .ends(outcome_left[i]), .ends_index(left_index[i]), .index(slot[6]), .outstanding(waits_6[i])
      );
      assign room_q[i]    = held_q < far_t'(FAR_PENDING - ANSWERS - OTHERS);
      assign answers_q[i] = held_q < far_t'(FAR_PENDING - OTHERS);
      always_ff @(posedge clk) begin
        spares[i] <= held_q < far_t'(FAR_PENDING - 8);
        if (rst) held_q <= '0;
        else held_q <= held_q + far_t'(enters) - far_t'(outcome_left[i]);
      end
    end
    assign spare_q = &spares;
  end
  always_ff @(posedge clk) begin
    lane_7   <= lane_6;
    target_7 <= target_6;
  end

  // ---- 7: act ----
  verdict_e [1:0]  verdicts_7;
  verdict_e        verdict_7;
  logic            live_7, needs_key_7;
  qp_rx_t          new_7, old_7;
  logic            consumes_7, left_7, fails_7, from_peer_7;
  roce_rx_events_t events_7, events_8;

  always_ff @(posedge clk) begin
    verdicts_7  <= verdict_6;
    live_7      <= key_live[0];
    needs_key_7 <= needs_key_6 && changes_6;
    new_7      <= new_6;
    old_7      <= old_6;
    consumes_7 <= consumes_6;
    left_7     <= left_6;
  end

  assign verdict_7 = verdicts_7[live_7];
  assign lost_7    = needs_key_7 && !live_7;

  roce_responder_act act (
      .op(stage[7].op), .packet(stage[7].packet), .form(form[7]), .attr(attr[7]),
      .old_state(old_7), .new_state(new_7), .verdict(verdict_7), .consumes(consumes_7), .left(left_7), .target(target_7), .lane(lane_7),
      .key_live(key_live[1]), .cmd(cmd_q),
      .action(action_7), .outcome(outcome_7), .fails(fails_7), .from_peer(from_peer_7), .events(events_7)
  );

  // ---- 8: outputs of the decision ----
  logic    valid_8, fails_8;
  target_t target_8;
  qpn_t    qpn_8;
  always_ff @(posedge clk) begin
    valid_8   <= valid[7] && !rst;
    action_8  <= action_7;
    outcome_8 <= outcome_7;
    target_8  <= target_7;
    fails_8   <= valid[7] && !rst && fails_7;
    qpn_8     <= stage[7].packet.qpn;
    invalidate  <= valid[7] && !rst && verdict_7 == VERDICT_ACCEPT && stage[7].packet.with_inv && !outcome_7.lapsed;
    invalid_key <= stage[7].packet.word;
  end
  assign decided.valid = valid_8;
  assign decided.data  = said_8;
  always_comb begin
    said_8       = action_8;
    said_8.waits = outcome_waits(outcome_8);
  end

  logic actions_empty;
  stream_fifo #(.T(action_t), .DEPTH(ACTIONS)) actions (
      .clk, .rst, .in(decided), .out(action), .empty(actions_empty)
  );

  // ---- receives of QPs in the error state ----
  roce_responder_flush #(.QPS(QPS)) flusher (
      .clk, .rst,
      .list(fails_8), .list_qpn(qpn_8),
      .kick, .kick_allowed(!cmd.valid),
      .flush, .flushed(valid[7] && stage[7].op == OP_FLUSH), .flushed_one(consumes_7),
      .busy(flush_busy)
  );

  // ---- dispatch and completion ----
  logic dispatched, dispatch_idle, confirm_idle, complete_idle;
  target_t dispatched_lane;
  stream_if #(.T(confirmed_t)) confirmed ();

  assign outcome.valid = valid_8 && said_8.waits;
  assign outcome.data  = outcome_8;
  assign reserve       = valid[7] && action_7.write;
  assign reserve_size  = write_size(target_7, action_7.length);

  roce_responder_dispatch #(.DATA_W(DATA_W)) dispatch (
      .clk, .rst,
      .action, .qp_event, .dispatched, .dispatched_lane, .payload, .write, .data,
      .idle(dispatch_idle)
  );

  roce_responder_confirm #(.LANES(LANES), .PENDING(PENDING), .FAR_PENDING(FAR_PENDING)) confirm (
      .clk, .rst,
      .outcome, .target(target_8), .lane(action_8.lane), .dispatched, .dispatched_lane, .done, .confirmed,
      .left(outcome_left), .left_index, .idle(confirm_idle)
  );

  roce_responder_complete #(.QPS(QPS), .TELLING(DATA_W < 128 ? 16 : 32)) complete (
      .clk, .rst,
      .confirmed, .reject, .respond, .completion, .answer, .fault(unwritten),
      .fence, .fenced, .fence_number, .fences_through,
      .idle(complete_idle)
  );

  // ---- events ----
  always_ff @(posedge clk) begin
    events_8   <= valid[7] && !rst ? events_7 : '0;
    active     <= valid[7] && !rst && from_peer_7;
    ecn_marked <= valid[7] && !rst && from_peer_7 && stage[7].packet.ce;
    cnp        <= valid[7] && !rst && from_peer_7 && stage[7].packet.kind == RC_CNP;
    active_qpn <= stage[7].packet.qpn;
    active_bytes <= stage[7].packet.payload_length;
  end
  always_comb begin
    events = events_8;
    events.resp_cqe_flush_error = valid_8 && outcome_8.completes && action_8.status == WC_WR_FLUSH_ERR;
  end

  assign idle = table_ready && !fault.valid && !failed.valid && !packet.valid && !cmd.valid && !mr_fence.valid && !valid[1] && flight_q == '0 && !commanded_q
                && actions_empty && !flush_busy && queue_idle && dispatch_idle && confirm_idle && complete_idle && hold_q == '0 && events == '0;

  // The queues always accept a decision.
  always_ff @(posedge clk) if (!rst && valid_8) assert (decided.ready && (!outcome.valid || outcome.ready));
endmodule
