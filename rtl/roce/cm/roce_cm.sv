// SPDX-License-Identifier: Apache-2.0

// Connection manager, both sides (IBTA 12.9.7; RDMA IP CM service, annex A11): opens and accepts connections by messages on QP1,
// sets queue pairs up and takes them down, and reports to their owners.
//
// One event at a time, each in a bounded number of cycles: a message about a known connection takes about 20 cycles and its
// answer's beats; a REQ, a REP and a `connect` search all connections, QPS cycles more. An event waits for the answer of the
// queue pairs and for the frame to leave, but not for the peer, for its MAC address or for an owner: those are states of the
// connection, with a timer each. A message that arrives meanwhile waits in a queue (roce_cm_rx); the stream of frames never stops.
//
// A message to a peer goes to the MAC address from which its REQ or REP came, an answer about no connection to the source of the
// message. Only the address of a peer that a client calls is looked up; while it is not known, the timer repeats the look-up.
//
// `limits` bounds the connections with one address, and those that are half open, so that no peer can take all resources, whatever
// source addresses it uses; a REQ beyond a limit is refused. Messages that name a connection have a queue apart from all others.
//
// An owner gets its events on `conn`, in the order in which they happened, and answers those that need an answer by `conn_answer`,
// different connections in any order. A refused CONN_OPENED leaves the connection free at once, without CONN_CLOSED. The owner
// closes a connection by `close`. While `conn` is stopped, no owner gets events and no `connect` is taken that finds no QP.
//
// Software makes queue pairs too (roce_qp_direct); roce_cm_numbers says which numbers are whose.
//
// The random numbers (communication ids, starting PSNs) come from an LFSR: hard to guess for a bystander, not cryptographic.
module roce_cm
  import packet_pkg::*;
  import frame_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import roce_cm_pkg::*;
  import time_pkg::*;
#(
    parameter int unsigned     DATA_W = 512,
    parameter int unsigned     QPS = 16,            // connections, a power of two
    parameter int unsigned     CLIENTS = 2,         // at most 4
    parameter int unsigned     RD_DEPTH = 8,        // READs and atomics at once, at most 16
    parameter longint unsigned CLOCK_HZ = 250_000_000,
    parameter int unsigned     MSG_DEPTH = 32,      // messages that may wait, of each of two kinds
    parameter logic [3:0]      MAX_RETRIES = 3,     // of a REP or DREQ; a REQ may allow fewer
    parameter logic [3:0]      REQ_RETRIES = 15,    // of a REQ
    parameter cm_timeout_t     CM_TIMEOUT = 20,     // for the answers to a REQ, and carried in it: 4.096 us * 2^20 = 4.3 s
    parameter cm_timeout_t     MRA_TIMEOUT = 22,    // the time in an MRA: 17 s, of which half are used
    parameter logic [1:0]      MRAS = 3,            // at most, for one REQ
    parameter logic [2:0]      RNR_RETRIES = 6,     // of the peer, carried in the REP
    parameter logic [4:0]      TARGET_ACK_DELAY = 15, // carried in the REP: 4.096 us * 2^15 = 134 ms
    // Domain and access rights of QPs that peers open, by client.
    parameter pd_t [3:0]       PASSIVE_PD = {client_pd(2'd3), client_pd(2'd2), client_pd(2'd1), client_pd(2'd0)},
    parameter access_t [3:0]   PASSIVE_ACCESS = '1
) (
    input  logic        clk,
    input  logic        rst,
    input  local_addr_t local_addr,
    input  logic [CLIENTS-1:0][15:0] port,  // RDMA IP CM port on which each client listens; 0: it does not
    input  mtu_code_t   max_mtu,         // largest path MTU that the device takes
    input  logic [4:0]  min_rnr_timer,   // for the QPs
    input  logic        extensions,      // selective repeat is offered and taken
    input  logic [31:0] seed,            // of the random numbers; taken again whenever it changes
    input  time_t       now,             // device cycles; may jump ahead
    input  cm_limits_t  limits,          // of what peers open

    stream_if.sink      rx,              // frame_rx_t, of QP1
    axis_if.sink        rx_payload,
    stream_if.source    tx,              // frame_tx_t
    axis_if.source      tx_payload,

    stream_if.source    arp_query,       // ipv4_addr_t
    stream_if.sink      arp_answer,      // arp_answer_t

    stream_if.source    qp_cmd,          // qp_cmd_t
    stream_if.sink      qp_done,         // logic
    stream_if.sink      qp_event,        // qp_event_t; always taken
    stream_if.sink      close,           // qpn_t: the owner closes it
    input  logic [QPS-1:0] by_hand,      // numbers of QPs that software makes
    output logic [QPS-1:0] mine,         // numbers that are taken here

    stream_if.sink      connect,         // connect_t
    stream_if.source    conn,            // conn_event_t
    stream_if.sink      conn_answer,     // conn_answer_t; to nothing: ignored

    output cm_events_t  events,
    output logic        idle
);
  localparam int unsigned IDX_W = $clog2(QPS);
  typedef logic [IDX_W-1:0] idx_t;

  // Cycles of 4.096 us.
  localparam longint unsigned TICK = (CLOCK_HZ * 64'd4096 >= 64'd1_000_000_000) ? CLOCK_HZ * 64'd4096 / 64'd1_000_000_000 : 1;

  // No timer runs longer.
  localparam int unsigned DELAY_BITS = $clog2((TICK << CM_TIMEOUT_MAX) + 1);

  if (QPS < 2 || 2 ** IDX_W != QPS) begin : g_bad_qps
    $fatal(1, "roce_cm: QPS must be a power of two, 2 or more");
  end
  if (CLIENTS < 1 || CLIENTS > 4 || RD_DEPTH < 1 || RD_DEPTH > 16) begin : g_bad_limits
    $fatal(1, "roce_cm: CLIENTS must be 1..4, RD_DEPTH 1..16");
  end

  // ---- messages in and out ----
  stream_if #(.T(cm_msg_t)) msg ();
  stream_if #(.T(cm_send_t)) send ();
  logic rx_idle, drop_malformed, drop_overflow, named;
  comm_id_t   names_id;
  ipv4_addr_t names_ip;

  roce_cm_rx #(.DATA_W(DATA_W), .CLIENTS(CLIENTS), .DEPTH(MSG_DEPTH)) receiver (
      .clk, .rst, .local_ip(local_addr.ip), .port, .max_mtu, .frame(rx), .payload(rx_payload),
      .names_id, .names_ip, .named, .msg,
      .drop_malformed, .drop_overflow, .idle(rx_idle)
  );
  roce_cm_tx #(
      .DATA_W(DATA_W), .CM_TIMEOUT(CM_TIMEOUT), .REQ_RETRIES(REQ_RETRIES), .MRA_TIMEOUT(MRA_TIMEOUT),
      .RNR_RETRIES(RNR_RETRIES), .TARGET_ACK_DELAY(TARGET_ACK_DELAY)
  ) sender (
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

  // ---- the event at work ----
  typedef enum logic [4:0] {
    S_CLEAR,     // after reset: every connection idle
    S_IDLE,      // picks the next event
    S_SEARCH,    // the same connection, one that becomes stale, a free one
    S_SEARCHED,
    S_READ,
    S_MATCH,
    S_RESOLVE,   // the MAC address of the peer, for `connect`
    S_RESOLVED,
    S_DECIDE,    // what the event means for this connection
    S_DELAY,
    S_LOAD,      // its private data, a word a cycle
    S_SEND,
    S_QP,        // command to the queue pairs
    S_QP_DONE,
    S_SAVE,      // its private data
    S_STAMP,
    S_COMMIT
  } fsm_e;

  fsm_e     fsm_q;
  cm_op_e   op_q;
  idx_t     idx_q;
  cm_conn_t work_q, work_d;  // the connection: as it was until S_DECIDE, then as it will be
  logic     was_occupied_q;
  cm_plan_t plan_q, plan_d;
  logic     matched_q;       // the message is about this connection
  logic     called_q;        // or answers its REQ
  logic     right_qpn_q;     // names its QP
  logic     acceptable_q;    // is a REQ that the device can take
  logic     expired_q;
  arp_answer_t resolved_q;
  time_t    delay_q;

  wire picking = fsm_q == S_IDLE;
  wire clearing = fsm_q == S_CLEAR;
  wire commit = fsm_q == S_COMMIT;

  // ---- connections ----
  cm_conn_t found;
  idx_t search_q;
  roce_cm_table #(.QPS(QPS)) connections (
      .clk, .clear(clearing), .write(commit && plan_q.write), .idx(clearing ? search_q : idx_q), .conn(work_q),
      .read_idx(fsm_q == S_SEARCH ? search_q : idx_q), .found, .names_id, .names_ip, .named
  );

  // ---- their private data ----
  private_t private_data;
  logic     loaded, saved;

  // ---- search, one connection a cycle, from behind the place that was taken last ----
  logic seen_valid_q, duplicate, stale, free;
  idx_t seen_q, duplicate_idx, stale_idx, free_idx, turn_q;
  logic per_peer, half_open, half_open_per_peer;
  wire  searched = seen_valid_q && seen_q == idx_t'(turn_q - 1'b1);

  always_ff @(posedge clk) begin
    seen_valid_q <= fsm_q == S_SEARCH && !searched;
    seen_q       <= search_q;
    if (rst) turn_q <= '0;
    else if (fsm_q == S_SEARCHED && free) turn_q <= free_idx + 1'b1;
  end

  roce_cm_search #(.QPS(QPS)) search (
      .clk, .begins(picking), .limits, .msg(msg.data), .seen_valid(seen_valid_q), .seen(seen_q), .found,
      .by_software(by_hand[seen_q]), .duplicate, .duplicate_idx, .stale, .stale_idx, .free, .free_idx,
      .per_peer, .half_open, .half_open_per_peer
  );

  // ---- events for the owners ----
  logic tell_pending, conn_free, owners_idle;
  idx_t tell_idx;
  conn_event_e tell_kind;
  roce_cm_owners #(.QPS(QPS)) owners (
      .clk, .rst, .commit, .op(op_q), .idx(idx_q), .plan(plan_q), .work(work_q), .private_data,
      .pending(tell_pending), .pending_idx(tell_idx), .pending_kind(tell_kind), .free(conn_free), .conn, .idle(owners_idle)
  );

  // ---- timers: about 4 cycles for each connection that is looked at ----
  logic walk_due, round_due;
  idx_t walk;
  logic pick_walk;
  // A connection at work whose timer runs: set just now, or found in this round.
  wire timed = cm_timed(work_q.state) && (commit ? plan_q.write : fsm_q == S_DECIDE && op_q == OP_WALK && !expired_q);
  roce_cm_timers #(.QPS(QPS), .DELAY_BITS(DELAY_BITS)) timers (
      .clk, .rst, .now, .look(pick_walk), .idx(walk), .due(walk_due), .due_next(round_due), .timed, .deadline(work_q.deadline)
  );

  // ---- the next event ----
  logic   makes_stale, answer_foreign, pick_valid, pick_idle;
  cm_op_e pick_op;
  idx_t   pick_idx;
  roce_cm_pick #(.QPS(QPS)) pick (
      .clk, .rst, .picking, .qp_event, .close, .makes_stale(fsm_q == S_DECIDE && makes_stale), .stale_idx,
      .answer_valid(conn_answer.valid), .answer_qpn(conn_answer.data.qpn), .answer_foreign,
      .tell_valid(tell_pending && conn_free), .tell_idx,
      .msg_valid(msg.valid), .msg_id(msg.data.ids.remote_comm_id),   // a communication id of ours holds the index
      .walk_valid(walk_due), .walk_idx(walk), .walk_taken(pick_walk), .connect_valid(connect.valid),
      .valid(pick_valid), .op(pick_op), .idx(pick_idx), .idle(pick_idle)
  );

  assign conn_answer.ready = commit && op_q == OP_ANSWER || answer_foreign;
  assign msg.ready         = commit && op_q == OP_MESSAGE;
  assign connect.ready     = commit && op_q == OP_CONNECT;

  // ---- what the event means ----
  wire is_req = msg.data.attr == CM_REQ;
  wire is_rep = msg.data.attr == CM_REP;
  // A caller that ends before it has our REP names its REQ by its own id (IBTA 12.6.7.2, reason 4).
  wire names_own = msg.data.attr == CM_REJ && msg.data.ids.remote_comm_id == '0;
  cm_events_t decided;

  roce_cm_decide #(
      .RD_DEPTH(RD_DEPTH), .MAX_RETRIES(MAX_RETRIES), .REQ_RETRIES(REQ_RETRIES), .CM_TIMEOUT(CM_TIMEOUT),
      .MRA_TIMEOUT(MRA_TIMEOUT), .MRAS(MRAS), .PASSIVE_PD(PASSIVE_PD), .PASSIVE_ACCESS(PASSIVE_ACCESS)
  ) decide (
      .op(op_q),
      .msg(msg.data),
      .connect(connect.data),
      .right_qpn(right_qpn_q),
      .acceptable(acceptable_q),
      .matched(matched_q),
      .called(called_q),
      .duplicate,
      .stale,
      .per_peer,
      .half_open,
      .half_open_per_peer,
      .free,
      .expired(expired_q),
      .resolved(resolved_q.found),
      .mac(resolved_q.mac),
      .accepted(conn_answer.data.accept),
      .told(tell_kind),
      .max_mtu,
      .extensions,
      .new_comm_id({1'b1, random_q[62:32+IDX_W], idx_q}),
      .new_psn(random_q[23:0]),
      .was(work_q),
      .becomes(work_d),
      .plan(plan_d),
      .makes_stale,
      .counts(decided)
  );

  assign send.valid = fsm_q == S_SEND;
  assign send.data = '{
      attr: plan_q.attr, about: plan_q.about, reason: plan_q.reason, qpn: qp_number(qp_index_t'(idx_q)), conn: work_q,
      private_data: private_data
  };

  // ---- the other units ----
  wire resolves = op_q == OP_CONNECT || expired_q;
  assign arp_query.valid  = fsm_q == S_RESOLVE && resolves;
  assign arp_query.data   = (op_q == OP_CONNECT) ? connect.data.ip : work_q.ip;
  assign arp_answer.ready = fsm_q == S_RESOLVED;
  assign qp_cmd.valid     = fsm_q == S_QP;
  assign qp_done.ready    = fsm_q == S_QP_DONE;
  assign qp_cmd.data = '{
      op: plan_q.setup ? QP_SETUP : QP_RESET,
      qpn: qp_number(qp_index_t'(idx_q)),
      state: plan_q.setup ? QPS_RTS : QPS_RESET,
      attr: '{
          dst_mac: work_q.mac,
          dst_ip: work_q.ip,
          dest_qp_num: work_q.remote_qpn,
          pd: work_q.pd,
          client: work_q.client,
          access: work_q.access,
          path_mtu: work_q.path_mtu,
          selective_repeat: work_q.selective_repeat,
          rq_psn: work_q.starting_psn,
          min_rnr_timer: min_rnr_timer,
          max_dest_rd_atomic: 8'(work_q.responder_resources),
          sq_psn: msg.data.starting_psn,   // setting up is always a message's effect
          timeout: work_q.ack_timeout,
          retry_cnt: work_q.retry_count,
          rnr_retry: work_q.rnr_retry_count,
          max_rd_atomic: 8'(work_q.initiator_depth)
      }
  };

  // ---- numbers of queue pairs ----
  logic gives_way, again, first_try;
  wire qp_refused = fsm_q == S_QP_DONE && qp_done.valid && !qp_done.data && plan_q.setup;
  roce_cm_numbers #(.QPS(QPS)) numbers (
      .clk, .rst, .by_hand, .mine,
      .take(fsm_q == S_SEARCHED && free && (op_q == OP_CONNECT || (is_req && !duplicate))), .take_idx(free_idx),
      .reading(fsm_q == S_READ), .idx(idx_q), .gives_way, .refused(qp_refused), .active(work_q.active), .again, .first(first_try),
      .commit, .message(op_q == OP_MESSAGE), .occupied(plan_q.write ? cm_occupied(work_q) : was_occupied_q)
  );
  always_ff @(posedge clk) if (!rst) assert (fsm_q inside {S_SEARCHED, S_READ} || (mine & by_hand) == '0);

  // ---- the course of an event ----
  wire fsm_e finish = plan_q.save ? S_SAVE : S_STAMP;
  // The queue pair is set up before the REP or RTU, since its first packet may follow at once; and it is reset before the DREQ,
  // DREP or REJ, so that its last packet, which may be a NAK, leaves before the connection ends.
  wire fsm_e begin_ = plan_q.setup || plan_q.reset ? S_QP : plan_q.send ? S_SEND : finish;

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
        search_q <= turn_q;
        if (pick_valid) begin
          op_q  <= pick_op;
          idx_q <= pick_idx;
          fsm_q <= pick_op == OP_CONNECT || (pick_op == OP_MESSAGE && (is_req || is_rep || names_own)) ? S_SEARCH : S_READ;
        end
      end

      S_SEARCH: begin
        search_q <= search_q + 1'b1;
        if (searched) fsm_q <= S_SEARCHED;
      end

      S_SEARCHED: begin
        if (op_q == OP_CONNECT) idx_q <= free_idx;
        else if (!is_rep) idx_q <= duplicate ? duplicate_idx : free_idx;
        // No place for the connection, nor on `conn` for the refusal: again later.
        fsm_q <= (op_q == OP_CONNECT && !free && !conn_free) ? S_IDLE : S_READ;
      end

      S_READ: fsm_q <= gives_way ? S_IDLE : S_MATCH;

      S_MATCH: begin
        work_q    <= found;
        matched_q <= names_own ? duplicate : cm_has_peer(found.state) && found.ip == msg.data.ip
            && found.ids.local_comm_id == msg.data.ids.remote_comm_id && found.ids.remote_comm_id == msg.data.ids.local_comm_id;
        called_q  <= found.state == CM_REQ_SENT && found.ip == msg.data.ip
            && found.ids.local_comm_id == msg.data.ids.remote_comm_id;
        right_qpn_q  <= msg.data.qpn == qp_number(qp_index_t'(idx_q));
        acceptable_q <= msg.data.refusal == REJ_NONE;
        expired_q <= cm_timed(found.state) && !time_ahead(now, found.deadline, DELAY_BITS);
        fsm_q     <= (op_q == OP_CONNECT && free || op_q == OP_WALK && found.state == CM_RESOLVING) ? S_RESOLVE : S_DECIDE;
      end

      S_RESOLVE: if (!resolves) fsm_q <= S_DECIDE;
      else if (arp_query.ready) fsm_q <= S_RESOLVED;

      S_RESOLVED: begin
        resolved_q <= arp_answer.data;
        if (arp_answer.valid) fsm_q <= S_DECIDE;
      end

      S_DECIDE: begin
        if (op_q != OP_MESSAGE || first_try) events <= decided;
        events.drop_malformed <= drop_malformed || decided.drop_malformed;
        events.drop_overflow <= drop_overflow;
        work_q <= work_d;
        plan_q <= plan_d;
        was_occupied_q <= cm_occupied(work_q);
        fsm_q <= (op_q == OP_WALK && !expired_q) ? S_IDLE : S_DELAY;
      end

      S_DELAY: begin
        delay_q <= time_t'(TICK) << plan_q.timeout;
        fsm_q   <= plan_q.load ? S_LOAD : begin_;
      end

      S_LOAD: if (loaded) fsm_q <= begin_;

      S_SEND:
      if (send.ready) begin
        events.req_sent  <= plan_q.attr == CM_REQ;
        events.rep_sent  <= plan_q.attr == CM_REP;
        events.rtu_sent  <= plan_q.attr == CM_RTU;
        events.mra_sent  <= plan_q.attr == CM_MRA;
        events.rej_sent  <= plan_q.attr == CM_REJ;
        events.dreq_sent <= plan_q.attr == CM_DREQ;
        events.drep_sent <= plan_q.attr == CM_DREP;
        fsm_q <= finish;
      end

      S_QP: if (qp_cmd.ready) fsm_q <= S_QP_DONE;

      S_QP_DONE:
      if (qp_done.valid) begin
        fsm_q <= plan_q.send ? S_SEND : finish;
        if (again) fsm_q <= S_IDLE;
        else if (qp_refused) begin
          // A caller is refused, and its REQ is dropped; a peer that we called is refused, and the owner is notified.
          plan_q.setup  <= 1'b0;
          plan_q.send   <= 1'b1;
          plan_q.attr   <= CM_REJ;
          plan_q.about  <= work_q.active ? CM_MSG_REP : CM_MSG_REQ;
          plan_q.reason <= REJ_NO_QP;
          plan_q.save   <= work_q.active;
          plan_q.tell   <= work_q.active;
          plan_q.kind   <= CONN_REFUSED;
          plan_q.why    <= conn_reason_t'(REJ_NO_QP);
          plan_q.write  <= work_q.active;
          work_q.state  <= CM_IDLE;
          work_q.owed   <= OWED_REFUSED;
          fsm_q <= S_SEND;
        end
      end

      S_SAVE: if (saved) fsm_q <= S_STAMP;

      S_STAMP: begin
        work_q.deadline <= now + delay_q;
        fsm_q <= S_COMMIT;
      end

      default: begin   // S_COMMIT
        if (plan_q.tell) begin
          events.connection_opened <= plan_q.kind inside {CONN_OPENED, CONN_ESTABLISHED};
          events.connection_closed <= plan_q.kind == CONN_CLOSED;
        end
        fsm_q <= S_IDLE;
      end
    endcase

    if (rst) begin
      fsm_q    <= S_CLEAR;
      search_q <= '0;
      events   <= '0;
    end
  end

  // ---- the private data at work ----
  private_t came;
  always_comb begin
    unique case (op_q)
      OP_MESSAGE: came = msg.data.private_data;
      OP_ANSWER:  came = conn_answer.data.private_data;
      OP_CONNECT: came = connect.data.private_data;
      default:    came = '0;
    endcase
  end
  roce_cm_private #(.QPS(QPS)) privates (
      .clk, .idx(idx_q), .take(fsm_q == S_DECIDE), .clear(qp_refused),   // a refusal of our own making brings none
      .came, .loading(fsm_q == S_LOAD), .loaded, .saving(fsm_q == S_SAVE), .saved, .at_work(private_data)
  );

  assign idle = rx_idle && owners_idle && !msg.valid && pick_idle && !qp_event.valid
      && !close.valid && !conn_answer.valid && !connect.valid && picking && !walk_due && !round_due;
endmodule
