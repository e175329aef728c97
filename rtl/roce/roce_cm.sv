// SPDX-License-Identifier: Apache-2.0

// Connection manager, passive side (IBTA 12.9.7; RDMA IP CM service, annex A11): answers callers on QP1, sets queue pairs up
// and takes them down, and tells their owner.
//
// One event at a time, each in a bounded number of cycles: a message about a known connection takes about 12 cycles and its
// answer's beats; a REQ looks through all connections, QPS cycles more. Waits inside for the address resolution, for the
// answer of the queue pairs and for the frame to leave, never for the peer and never for the owner: those are states of the
// connection, with a timer each. A message that arrives meanwhile waits in a queue (roce_cm_rx); the stream of frames never stops.
//
// The owner is asked one event at a time: `conn` gives an event, `conn_answer` answers it (CONN_OPENED: 1 accept, 0 refuse;
// CONN_CLOSED: either). A refused connection is at once free again, without CONN_CLOSED. The owner closes one by `close`.
//
// The random numbers (communication ids, starting PSNs) come from an LFSR: hard to guess for a bystander, not cryptographic.
module roce_cm
  import packet_pkg::*;
  import roce_pkg::*;
  import cm_pkg::*;
#(
    parameter int unsigned     DATA_W = 512,
    parameter int unsigned     QPS = 16,            // connections, a power of two
    parameter longint unsigned CLOCK_HZ = 250_000_000,
    parameter int unsigned     MSG_DEPTH = 32,      // messages that may wait
    parameter logic [3:0]      MAX_RETRIES = 3,     // of a REP or DREQ; a REQ may ask for less
    parameter logic [2:0]      RNR_RETRIES = 6,     // asked of the peer in the REP
    parameter logic [4:0]      TARGET_ACK_DELAY = 15 // told to the peer: 4.096 us * 2^15 = 134 ms
) (
    input  logic        clk,
    input  logic        rst,
    input  local_addr_t local_addr,
    input  logic [15:0] port,            // RDMA IP CM port of the service
    input  mtu_code_t   max_mtu,         // largest path MTU that the device takes
    input  logic [4:0]  min_rnr_timer,   // for the QPs
    input  logic [31:0] seed,            // of the random numbers; taken again whenever it changes
    input  logic [47:0] now,             // device cycles; may jump ahead

    stream_if.sink      rx,              // frame_rx_t, of QP1
    axis_if.sink        rx_payload,
    stream_if.source    tx,              // frame_tx_t
    axis_if.source      tx_payload,

    stream_if.source    arp_query,       // ipv4_addr_t
    stream_if.sink      arp_answer,      // arp_answer_t

    stream_if.source    qp_cmd,          // qp_cmd_t
    stream_if.sink      qp_done,         // logic
    stream_if.sink      qp_event,        // qp_event_t: a QP failed; always taken
    stream_if.sink      close,           // qpn_t: the owner is done with it

    stream_if.source    conn,            // conn_event_t
    stream_if.sink      conn_answer,     // logic

    output cm_events_t  events,
    output logic        idle
);
  localparam int unsigned IDX_W = $clog2(QPS);
  typedef logic [IDX_W-1:0] idx_t;

  localparam int unsigned ROUND_CYCLES = 4096;

  // Cycles of 4.096 us.
  localparam longint unsigned TICK = (CLOCK_HZ * 64'd4096 >= 64'd1_000_000_000) ? CLOCK_HZ * 64'd4096 / 64'd1_000_000_000 : 1;

  if (QPS < 2 || 2 ** IDX_W != QPS) begin : g_check
    $fatal(1, "roce_cm: QPS must be a power of two, 2 or more");
  end

  // ---- messages in and out ----
  stream_if #(.T(cm_msg_t)) msg ();
  stream_if #(.T(cm_send_t)) send ();
  logic rx_idle, drop_malformed, drop_overflow;

  roce_cm_rx #(.DATA_W(DATA_W), .DEPTH(MSG_DEPTH)) receiver (
      .clk, .rst, .local_ip(local_addr.ip), .port, .max_mtu, .frame(rx), .payload(rx_payload), .msg,
      .drop_malformed, .drop_overflow, .idle(rx_idle)
  );
  roce_cm_tx #(.DATA_W(DATA_W), .RNR_RETRIES(RNR_RETRIES), .TARGET_ACK_DELAY(TARGET_ACK_DELAY)) sender (
      .clk, .rst, .local_addr, .max_mtu, .msg(send), .frame(tx), .payload(tx_payload)
  );

  // ---- random numbers: x^64 + x^63 + x^61 + x^60 + 1, one step a cycle ----
  logic [63:0] random_q;
  logic [31:0] seed_q;
  always_ff @(posedge clk) begin
    seed_q <= seed;
    if (rst || seed != seed_q) random_q <= {seed, ~seed};   // never all zero
    else random_q <= {random_q[62:0], random_q[63] ^ random_q[62] ^ random_q[60] ^ random_q[59]};
  end

  // ---- what is going on ----
  typedef enum logic [3:0] {
    S_CLEAR,     // after reset: every connection idle
    S_IDLE,      // picks the next event
    S_SEARCH,    // REQ: looks for the same connection, one that it makes stale, a free one
    S_SEARCHED,
    S_READ,
    S_MATCH,
    S_DECIDE,    // what the event means for this connection
    S_DELAY,
    S_RESOLVE,   // the peer's MAC address
    S_RESOLVED,
    S_SEND,
    S_QP,        // command to the queue pairs
    S_QP_DONE,
    S_STAMP,
    S_COMMIT
  } fsm_e;

  fsm_e     fsm_q;
  cm_op_e   op_q;
  idx_t     idx_q;
  cm_conn_t conn_q;          // as it was
  cm_conn_t work_q, work_d;  // as it will be
  cm_plan_t plan_q, plan_d;
  logic     matched_q;       // the message is about this connection
  logic     expired_q;
  logic     answer_q;
  conn_event_e answered_q;
  mac_t     mac_q;
  logic [47:0] delay_q;
  logic     was_timed_q;

  // ---- connections ----
  (* ram_style = "block" *) logic [$bits(cm_conn_t)-1:0] conns[QPS];
  logic [$bits(cm_conn_t)-1:0] read_q;
  cm_conn_t found;
  idx_t search_q, walk_q;
  wire  clearing = fsm_q == S_CLEAR;
  wire  commit = fsm_q == S_COMMIT;
  wire idx_t read_idx = (fsm_q == S_SEARCH) ? search_q : idx_q;

  always_ff @(posedge clk) begin
    if (clearing || (commit && plan_q.write)) conns[clearing ? search_q : idx_q] <= clearing ? '0 : work_q;
    read_q <= conns[read_idx];
  end
  assign found = cm_conn_t'(read_q);

  // ---- search of a REQ, one connection a cycle ----
  logic seen_valid_q, dup_q, stale_q, free_q;
  idx_t seen_q, dup_idx_q, stale_idx_q, free_idx_q;
  wire same_peer = found.state != CM_IDLE && found.ip == msg.data.ip;
  wire same_id = found.ids.remote_comm_id == msg.data.ids.local_comm_id;
  wire same_qpn = found.remote_qpn == msg.data.qpn;

  always_ff @(posedge clk) begin
    seen_valid_q <= fsm_q == S_SEARCH && !(seen_valid_q && seen_q == idx_t'(QPS - 1));
    seen_q       <= search_q;
    if (fsm_q == S_IDLE) begin
      dup_q   <= 1'b0;
      stale_q <= 1'b0;
      free_q  <= 1'b0;
    end else if (seen_valid_q) begin
      if (same_peer && same_id) begin
        dup_q     <= 1'b1;
        dup_idx_q <= seen_q;
      end
      // The peer has one connection a QP: it forgot this one (IBTA 12.9.8.3.1).
      if (same_peer && same_qpn && !same_id && found.state != CM_DREQ_SENT) begin
        stale_q     <= 1'b1;
        stale_idx_q <= seen_q;
      end
      if (found.state == CM_IDLE && !found.held) begin
        free_q     <= 1'b1;
        free_idx_q <= seen_q;
      end
    end
  end
  wire searched = seen_valid_q && seen_q == idx_t'(QPS - 1);

  // ---- the owner: one event at a time. A connection has at most one that is not answered, so there is always place ----
  stream_if #(.T(conn_event_t)) tell ();
  stream_if #(.T(conn_event_t)) told ();
  logic told_empty, asked_q;
  stream_fifo #(.T(conn_event_t), .DEPTH(QPS)) owner_events (.clk, .rst, .in(tell), .out(told), .empty(told_empty));

  function automatic qpn_t qpn_of(idx_t idx);
    return 24'(idx) + QPN_FIRST;
  endfunction

  assign tell.valid = commit && (plan_q.opened || plan_q.closed);
  assign tell.data  = '{event_: plan_q.opened ? CONN_OPENED : CONN_CLOSED, qpn: qpn_of(idx_q)};
  assign conn.valid = told.valid && !asked_q;
  assign conn.data  = told.data;
  assign told.ready = conn_answer.valid && conn_answer.ready;
  always_ff @(posedge clk) begin
    if (rst || told.ready) asked_q <= 1'b0;
    else if (conn.valid && conn.ready) asked_q <= 1'b1;
    if (!rst) assert (!tell.valid || tell.ready);
  end

  // ---- failed QPs: taken at any time, for a queue pair's reset may wait for that. Each side of a QP fails once ----
  stream_if #(.T(idx_t)) fails ();
  stream_if #(.T(idx_t)) failed ();
  logic failed_empty;
  stream_fifo #(.T(idx_t), .DEPTH(2 * QPS)) failures (.clk, .rst, .in(fails), .out(failed), .empty(failed_empty));
  assign fails.valid    = qp_event.valid && qp_index(qp_event.data.qpn) < qpn_t'(QPS);
  assign fails.data     = idx_t'(qp_index(qp_event.data.qpn));
  assign qp_event.ready = fails.ready;

  // ---- the walker: looks at every timer when ROUND_CYCLES have passed since the last round, and at once after a jump of time ----
  logic [IDX_W:0] timed_q;   // connections with a timer
  logic [47:$clog2(ROUND_CYCLES)] round_q;
  logic in_round_q, round_due_q;
  wire  round_due = timed_q != 0 && round_q != now[47:$clog2(ROUND_CYCLES)];
  wire  walk_due = in_round_q || round_due_q;
  always_ff @(posedge clk) round_due_q <= !rst && round_due;

  // ---- the next event: failures first, so that none outlives its connection; the walker and the messages take turns ----
  logic stale_pending_q;     // OP_CLOSE of stale_close_q
  idx_t stale_close_q;
  logic walk_turn_q;

  wire picking = fsm_q == S_IDLE;
  wire pick_failed = picking && failed.valid;
  wire pick_close = picking && !failed.valid && close.valid;
  wire pick_stale = picking && !failed.valid && !close.valid && stale_pending_q;
  wire none_urgent = picking && !failed.valid && !close.valid && !stale_pending_q;
  wire pick_answer = none_urgent && conn_answer.valid && asked_q;
  wire none_asked = none_urgent && !(conn_answer.valid && asked_q);
  wire pick_message = none_asked && msg.valid && !(walk_due && walk_turn_q);
  wire pick_walk = none_asked && walk_due && (!msg.valid || walk_turn_q);

  assign failed.ready      = picking;
  assign close.ready       = picking && !failed.valid;
  assign conn_answer.ready = none_urgent && asked_q;
  assign msg.ready         = commit && op_q == OP_MESSAGE;

  // ---- what it means ----
  wire is_req = msg.data.attr == CM_REQ;
  wire is_new = op_q == OP_MESSAGE && is_req && !dup_q;
  logic makes_stale;
  cm_events_t decided;

  roce_cm_decide #(.MAX_RETRIES(MAX_RETRIES)) decide (
      .op(op_q),
      .msg(msg.data),
      .qpn(qpn_of(idx_q)),
      .matched(matched_q),
      .duplicate(dup_q),
      .stale(stale_q),
      .free(free_q),
      .expired(expired_q),
      .answered(answered_q),
      .accepted(answer_q),
      .new_comm_id({1'b1, random_q[62:32+IDX_W], idx_q}),
      .new_psn(random_q[23:0]),
      .was(conn_q),
      .becomes(work_d),
      .plan(plan_d),
      .makes_stale,
      .counts(decided)
  );

  assign send.valid = fsm_q == S_SEND;
  assign send.data = '{
      mac: mac_q, attr: plan_q.attr, about: plan_q.about, reason: plan_q.reason, qpn: qpn_of(idx_q), conn: work_q
  };

  // ---- the other units ----
  assign arp_query.valid  = fsm_q == S_RESOLVE;
  assign arp_query.data   = work_q.ip;
  assign arp_answer.ready = fsm_q == S_RESOLVED;
  assign qp_cmd.valid     = fsm_q == S_QP;
  assign qp_done.ready    = fsm_q == S_QP_DONE;
  always_comb begin
    qp_cmd.data.op = plan_q.setup ? QP_SETUP : QP_RESET;
    qp_cmd.data.qpn = qpn_of(idx_q);
    qp_cmd.data.attr.dst_mac = mac_q;
    qp_cmd.data.attr.dst_ip = work_q.ip;
    qp_cmd.data.attr.dest_qp_num = work_q.remote_qpn;
    qp_cmd.data.attr.rq_psn = work_q.starting_psn;
    qp_cmd.data.attr.sq_psn = msg.data.starting_psn;
    qp_cmd.data.attr.path_mtu = msg.data.path_mtu;
    qp_cmd.data.attr.timeout = msg.data.local_ack_timeout;
    qp_cmd.data.attr.retry_cnt = msg.data.retry_count;
    qp_cmd.data.attr.rnr_retry = msg.data.rnr_retry_count;
    qp_cmd.data.attr.min_rnr_timer = min_rnr_timer;
  end

  // ---- the course of an event ----
  always_ff @(posedge clk) begin
    events <= '0;
    events.drop_malformed <= drop_malformed;
    events.drop_overflow <= drop_overflow;

    unique case (fsm_q)
      S_CLEAR: begin
        search_q <= search_q + 1'b1;
        if (search_q == idx_t'(QPS - 1)) fsm_q <= S_IDLE;
      end

      S_IDLE: begin
        search_q <= '0;
        answer_q <= conn_answer.data;
        answered_q <= told.data.event_;
        if (pick_failed) begin
          op_q  <= OP_CLOSE;
          idx_q <= failed.data;
          fsm_q <= S_READ;
        end
        if (pick_close) begin
          op_q  <= OP_CLOSE;
          idx_q <= idx_t'(qp_index(close.data));
          if (qp_index(close.data) < qpn_t'(QPS)) fsm_q <= S_READ;
        end
        if (pick_stale) begin
          op_q  <= OP_CLOSE;
          idx_q <= stale_close_q;
          stale_pending_q <= 1'b0;
          fsm_q <= S_READ;
        end
        if (pick_answer) begin
          op_q  <= OP_ANSWER;
          idx_q <= idx_t'(qp_index(told.data.qpn));
          fsm_q <= S_READ;
        end
        if (pick_message) begin
          op_q  <= OP_MESSAGE;
          idx_q <= idx_t'(msg.data.ids.remote_comm_id);   // ours holds the index
          walk_turn_q <= 1'b1;
          fsm_q <= is_req ? S_SEARCH : S_READ;
        end
        if (pick_walk) begin
          op_q   <= OP_WALK;
          idx_q  <= walk_q;
          walk_q <= walk_q + 1'b1;
          walk_turn_q <= 1'b0;
          in_round_q  <= walk_q != idx_t'(QPS - 1);
          if (walk_q == 0) round_q <= now[47:$clog2(ROUND_CYCLES)];
          fsm_q  <= S_READ;
        end
      end

      S_SEARCH: begin
        search_q <= search_q + 1'b1;
        if (searched) fsm_q <= S_SEARCHED;
      end

      S_SEARCHED: begin
        idx_q <= dup_q ? dup_idx_q : free_idx_q;
        fsm_q <= S_READ;
      end

      S_READ: fsm_q <= S_MATCH;

      S_MATCH: begin
        conn_q    <= found;
        matched_q <= found.state != CM_IDLE && found.ip == msg.data.ip && found.ids.local_comm_id == msg.data.ids.remote_comm_id
            && found.ids.remote_comm_id == msg.data.ids.local_comm_id;
        expired_q <= cm_timed(found.state) && now >= found.deadline;
        fsm_q     <= S_DECIDE;
      end

      S_DECIDE: begin
        events <= decided;
        events.drop_malformed <= drop_malformed || decided.drop_malformed;
        events.drop_overflow <= drop_overflow;
        work_q <= work_d;
        plan_q <= plan_d;
        was_timed_q <= !is_new && cm_timed(conn_q.state);
        if (makes_stale) begin
          stale_pending_q <= 1'b1;
          stale_close_q   <= stale_idx_q;
        end
        fsm_q <= (op_q == OP_WALK && !expired_q) ? S_IDLE : S_DELAY;
      end

      S_DELAY: begin
        delay_q <= 48'(TICK) << plan_q.timeout;
        if (plan_q.send || plan_q.setup) fsm_q <= S_RESOLVE;
        else if (plan_q.reset) fsm_q <= S_QP;
        else fsm_q <= S_STAMP;
      end

      S_RESOLVE: if (arp_query.ready) fsm_q <= S_RESOLVED;

      S_RESOLVED: begin
        mac_q <= arp_answer.data.mac;
        if (arp_answer.valid) begin
          if (arp_answer.data.found) fsm_q <= plan_q.setup ? S_QP : S_SEND;
          else begin
            events.drop_unresolved <= 1'b1;
            if (plan_q.setup) begin
              plan_q.write  <= 1'b0;
              plan_q.opened <= 1'b0;
            end
            fsm_q <= plan_q.reset ? S_QP : S_STAMP;
          end
        end
      end

      S_SEND:
      if (send.ready) begin
        events.rep_sent  <= plan_q.attr == CM_REP;
        events.rej_sent  <= plan_q.attr == CM_REJ;
        events.dreq_sent <= plan_q.attr == CM_DREQ;
        events.drep_sent <= plan_q.attr == CM_DREP;
        fsm_q <= plan_q.reset ? S_QP : S_STAMP;
      end

      S_QP: if (qp_cmd.ready) fsm_q <= S_QP_DONE;

      S_QP_DONE:
      if (qp_done.valid) begin
        fsm_q <= S_STAMP;
        if (plan_q.setup && !qp_done.data) begin
          plan_q <= '0;
          plan_q.send   <= 1'b1;
          plan_q.attr   <= CM_REJ;
          plan_q.about  <= CM_MSG_REQ;
          plan_q.reason <= REJ_NO_QP;
          fsm_q <= S_SEND;
        end
      end

      S_STAMP: begin
        work_q.deadline <= now + delay_q;
        fsm_q <= S_COMMIT;
      end

      default: begin   // S_COMMIT
        if (plan_q.write) timed_q <= timed_q + (IDX_W + 1)'(cm_timed(work_q.state)) - (IDX_W + 1)'(was_timed_q);
        if (plan_q.opened) events.connection_opened <= 1'b1;
        if (plan_q.closed) events.connection_closed <= 1'b1;
        fsm_q <= S_IDLE;
      end
    endcase

    if (rst) begin
      fsm_q           <= S_CLEAR;
      search_q        <= '0;
      walk_q          <= '0;
      walk_turn_q     <= 1'b0;
      in_round_q      <= 1'b0;
      round_q         <= '0;
      stale_pending_q <= 1'b0;
      timed_q         <= '0;
      events          <= '0;
    end
  end

  assign idle = rx_idle && (told_empty || asked_q) && !stale_pending_q && !qp_event.valid && failed_empty && !close.valid
      && !(conn_answer.valid && asked_q) && picking && !walk_due && !round_due;
endmodule
