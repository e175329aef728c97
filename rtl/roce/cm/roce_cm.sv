// SPDX-License-Identifier: Apache-2.0

// Connection manager, both sides (IBTA 12.9.7; RDMA IP CM service, annex A11): opens and accepts connections by messages on QP1,
// sets queue pairs up and takes them down, and reports to their owners.
//
// One event at a time, each in a bounded number of cycles: a message for a known connection takes about 20 cycles plus the beats of its
// answer; a REQ, a REP and a `connect` search all connections, QPS cycles more. An event waits for the answer to a QP command and for its
// frame to be sent, but not for the peer, for a MAC address or for an owner: those are states of the connection, each with a timer.
// Messages that arrive meanwhile are queued (roce_cm_rx); the stream of frames never stalls.
//
// A message to a peer is sent to the source MAC address of its REQ or REP; an answer to a message without a connection is sent to that
// message's source. Only the MAC address of a peer that a client connects to is resolved by ARP; until it is known, the timer repeats the
// query.
//
// A REQ is refused unless admission (roce_admission) admits its caller; a token in it goes no further. The connections of an entry that
// has ended are closed in the next round over all connections, which `sweep` asks for; the DREQ says why.
//
// `limits` bounds the connections per peer address, and those that are half open, so that no peer can exhaust the resources with whatever
// source addresses; a REQ above a limit is rejected. Messages that name a connection have a queue of their own.
//
// An owner receives its events on `conn`, in order, and answers those that need an answer on `conn_answer`, in any order across
// connections. If a CONN_OPENED is refused, the connection is free at once, without CONN_CLOSED. The owner closes a connection by `close`.
// While `conn` stalls, no owner receives events, and no `connect` is accepted if no QP is free.
//
// Software creates queue pairs as well (roce_qp_direct); roce_cm_numbers assigns the QP numbers.
//
// The random numbers (communication ids, starting PSNs) come from an LFSR: hard to guess for a node that does not see the messages, not
// cryptographic.
module roce_cm
  import packet_pkg::*;
  import frame_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import roce_cm_pkg::*;
  import time_pkg::*;
  import event_log_pkg::*;
#(
    parameter int unsigned     DATA_W = 512,
    parameter int unsigned     QPS = 16,            // connections, a power of two
    parameter int unsigned     CLIENTS = 2,         // at most 4
    parameter bit              IPV6 = 1'b1,         // peers may have IPv6 addresses
    parameter int unsigned     RD_DEPTH = 8,        // READs and atomics outstanding per QP, at most 16
    parameter longint unsigned CLOCK_HZ = 250_000_000,
    parameter int unsigned     MSG_DEPTH = 32,      // messages queued, in each of the two queues
    parameter logic [3:0]      MAX_RETRIES = 3,     // of a REP or DREQ; a REQ may allow fewer
    parameter logic [3:0]      REQ_RETRIES = 15,    // of a REQ
    parameter cm_timeout_t     CM_TIMEOUT = 20,     // for the answer to a REQ, and sent in it: 4.096 us * 2^20 = 4.3 s
    parameter cm_timeout_t     MRA_TIMEOUT = 22,    // the time in an MRA: 17 s, of which half are used
    parameter logic [1:0]      MRAS = 3,            // at most, for one REQ
    parameter logic [2:0]      RNR_RETRIES = 6,     // of the peer, sent in the REP
    parameter logic [4:0]      TARGET_ACK_DELAY = 15, // sent in the REP: 4.096 us * 2^15 = 134 ms
    // Of QPs opened by peers, by client: protection domain, access rights,
    parameter pd_t [3:0]       PASSIVE_PD = {client_pd(2'd3), client_pd(2'd2), client_pd(2'd1), client_pd(2'd0)},
    parameter access_t [3:0]   PASSIVE_ACCESS = '1,
    parameter contexts_t [3:0] PASSIVE_CONTEXTS = '0, // contexts of a connection, at most: 0, 1, 2 or 4
    parameter logic [3:0] PASSIVE_LONG_SET_UP = '0,   // long set-ups are accepted, by a client with contexts
    parameter bit SELECTIVE_REPEAT = 1'b1,            // is offered and accepted
    parameter bit ACTIVE = 1'b1                       // a client connects; else `connect` is never valid
) (
    input  logic        clk,
    input  logic        rst,
    input  local_addr_t local_addr,
    input  logic [63:0] guid,            // the device's, by which messages name it
    input  logic [CLIENTS-1:0][15:0] port,  // RDMA IP CM port on which each client listens; 0: it does not
    input  mtu_code_t   max_mtu,         // largest path MTU that the device supports
    input  logic [4:0]  min_rnr_timer,   // for the QPs
    input  dscp_settings_t dscp,
    input  logic        extensions,      // selective repeat is offered and accepted, contexts are accepted
    input  logic [31:0] seed,            // of the random numbers; loaded again whenever it changes
    input  time_t       now,             // device cycles; may jump ahead
    input  cm_limits_t  limits,          // for connections opened by peers
    input  own_set_t    leaving,         // addresses of the device that go: no connection is accepted on them, and `close` has that reason
    input  logic        abandon,         // `close` does not wait for the peer any longer

    output logic        asks,            // a REQ is processed:
    output admission_ask_t ask,          // who sent it
    input  logic        judged,          // while `asks`, with
    input  admission_verdict_t verdict,
    output logic        admits,          // pulse: a connection by entry `admitted` begins,
    output logic        leaves,          // ends: its owner has released everything
    output admission_entry_t admitted,
    input  admission_ended_t ended,      // entries whose connections are to be closed
    input  logic        sweep,           // pulse: there is one more

    stream_if.sink      rx,              // frame_rx_t, of QP1
    axis_if.sink        rx_payload,
    stream_if.source    tx,              // frame_tx_t
    axis_if.source      tx_payload,

    stream_if.source    arp_query,       // ip_addr_t
    stream_if.sink      arp_answer,      // arp_answer_t

    stream_if.source    qp_cmd,          // qp_cmd_t
    stream_if.sink      qp_done,         // logic
    stream_if.sink      qp_event,        // qp_event_t; always taken
    stream_if.sink      close,           // close_t: the owner closes it, or its address goes
    input  logic [QPS-1:0] by_hand,      // numbers of QPs created by software
    output logic [QPS-1:0] mine,         // numbers in use by connections

    stream_if.sink      connect,         // connect_t
    stream_if.source    conn,            // conn_event_t
    stream_if.sink      conn_answer,     // conn_answer_t; ignored if no event awaits an answer

    output cm_events_t  events,
    output log_event_t  to_log,            // connections that begin, end and are refused
    output logic        idle
);
  localparam int unsigned IDX_W = $clog2(QPS);
  typedef logic [IDX_W-1:0] idx_t;

  // Cycles of 4.096 us.
  localparam longint unsigned TICK = (CLOCK_HZ * 64'd4096 >= 64'd1_000_000_000) ? CLOCK_HZ * 64'd4096 / 64'd1_000_000_000 : 1;

  // Longest timer.
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
  ip_addr_t   names_ip;

  roce_cm_rx #(.DATA_W(DATA_W), .CLIENTS(CLIENTS), .IPV6(IPV6), .ACTIVE(ACTIVE), .DEPTH(MSG_DEPTH)) receiver (
      .clk, .rst, .port, .leaving, .max_mtu, .frame(rx), .payload(rx_payload),
      .names_id, .names_ip, .named, .msg,
      .drop_malformed, .drop_overflow, .idle(rx_idle)
  );
  roce_cm_tx #(
      .DATA_W(DATA_W), .ACTIVE(ACTIVE), .CM_TIMEOUT(CM_TIMEOUT), .REQ_RETRIES(REQ_RETRIES), .MRA_TIMEOUT(MRA_TIMEOUT),
      .RNR_RETRIES(RNR_RETRIES), .TARGET_ACK_DELAY(TARGET_ACK_DELAY)
  ) sender (
      .clk, .rst, .local_addr, .guid, .max_mtu, .msg(send), .frame(tx), .payload(tx_payload)
  );

  // ---- random numbers: x^64 + x^63 + x^61 + x^60 + 1, one step a cycle ----
  logic [63:0] random_q;
  logic [31:0] seed_q;
  always_ff @(posedge clk) begin
    seed_q <= seed;
    if (rst || seed != seed_q) random_q <= {seed, ~seed};   // never all zero
    else random_q <= {random_q[62:0], random_q[63] ^ random_q[62] ^ random_q[60] ^ random_q[59]};
  end

  // ---- the current event ----
  typedef enum logic [4:0] {
    S_CLEAR,     // after reset: every connection idle
    S_IDLE,      // select the next event
    S_SEARCH,    // for a duplicate REQ, a stale connection, a free index
    S_SEARCHED,
    S_READ,
    S_MATCH,
    S_RESOLVE,   // MAC address of the peer, for `connect`
    S_RESOLVED,
    S_DECIDE,    // apply the rules of the protocol
    S_DELAY,
    S_LOAD,      // read its private data, a word a cycle
    S_SEND,
    S_QP,        // command to the queue pairs
    S_QP_DONE,
    S_SAVE,      // write its private data
    S_STAMP,
    S_COMMIT
  } fsm_e;

  fsm_e     fsm_q;
  cm_op_e   op_q;
  idx_t     idx_q;
  cm_conn_t work_q, work_d;  // the connection: before the event until S_DECIDE, then after it
  logic     was_occupied_q;
  cm_plan_t plan_q, plan_d;
  logic     matched_q;       // the message's ids and address match this connection
  logic     called_q;        // or the message answers its REQ
  logic     right_qpn_q;     // the message names its QP
  logic     acceptable_q;    // a REQ that the device supports
  logic     expired_q;
  logic     is_req_q;        // the event is a REQ
  logic     lost_q;          // OP_CLOSE: only if its address goes
  admission_verdict_t verdict_q;
  admission_why_e ended_q, ended_d;  // the entry of this caller's connection has ended
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

  // ---- search, one connection a cycle, starting after the index that was allocated last ----
  logic seen_valid_q, duplicate, stale, free;
  idx_t seen_q, duplicate_idx, stale_idx, free_idx, turn_q;
  logic per_peer, half_open, half_open_per_peer;
  wire  concluded = fsm_q == S_SEARCHED && (!asks || judged);
  wire  searched = seen_valid_q && seen_q == idx_t'(turn_q - 1'b1);

  always_ff @(posedge clk) begin
    seen_valid_q <= fsm_q == S_SEARCH && !searched;
    seen_q       <= search_q;
    if (rst) turn_q <= '0;
    else if (concluded && free) turn_q <= free_idx + 1'b1;
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

  // ---- timers: about 4 cycles for each connection that is checked ----
  logic walk_due, round_due;
  idx_t walk;
  logic pick_walk;
  // The current connection has a timer: set by this event, or found running in this round.
  wire timed = cm_timed(work_q.state) && (commit ? plan_q.write : fsm_q == S_DECIDE && op_q == OP_WALK && !expired_q);
  roce_cm_timers #(.QPS(QPS), .DELAY_BITS(DELAY_BITS)) timers (
      .clk, .rst, .now, .sweep, .look(pick_walk), .idx(walk), .due(walk_due), .due_next(round_due), .timed, .deadline(work_q.deadline)
  );

  // ---- the next event ----
  logic   makes_stale, answer_foreign, pick_valid, pick_lost, pick_idle;
  cm_op_e pick_op;
  idx_t   pick_idx;
  roce_cm_pick #(.QPS(QPS)) pick (
      .clk, .rst, .picking, .qp_event, .close, .makes_stale(fsm_q == S_DECIDE && makes_stale), .stale_idx,
      .answer_valid(conn_answer.valid), .answer_qpn(conn_answer.data.qpn), .answer_foreign,
      .tell_valid(tell_pending && conn_free), .tell_idx,
      .msg_valid(msg.valid), .msg_id(msg.data.ids.remote_comm_id),   // the local communication id contains the index
      .walk_valid(walk_due), .walk_idx(walk), .walk_taken(pick_walk), .connect_valid(connect.valid),
      .valid(pick_valid), .op(pick_op), .lost(pick_lost), .idx(pick_idx), .idle(pick_idle)
  );

  assign conn_answer.ready = commit && op_q == OP_ANSWER || answer_foreign;
  assign msg.ready         = commit && op_q == OP_MESSAGE;
  assign connect.ready     = commit && op_q == OP_CONNECT;

  // ---- decision ----
  wire is_req = msg.data.attr == CM_REQ;
  wire is_rep = msg.data.attr == CM_REP;
  // A caller that gives up before it has received the REP names its REQ by its own id (IBTA 12.6.7.2, reason 4).
  wire names_own = msg.data.attr == CM_REJ && msg.data.ids.remote_comm_id == '0;
  cm_events_t decided;

  roce_cm_decide #(
      .RD_DEPTH(RD_DEPTH), .MAX_RETRIES(MAX_RETRIES), .REQ_RETRIES(REQ_RETRIES), .CM_TIMEOUT(CM_TIMEOUT),
      .MRA_TIMEOUT(MRA_TIMEOUT), .MRAS(MRAS), .PASSIVE_PD(PASSIVE_PD), .PASSIVE_ACCESS(PASSIVE_ACCESS),
      .PASSIVE_CONTEXTS(PASSIVE_CONTEXTS),
      .PASSIVE_LONG_SET_UP(PASSIVE_LONG_SET_UP),
      .SELECTIVE_REPEAT(SELECTIVE_REPEAT), .ACTIVE(ACTIVE)
  ) decide (
      .op(op_q),
      .msg(msg.data),
      .connect(connect.data),
      .right_qpn(right_qpn_q),
      .acceptable(acceptable_q),
      .verdict(verdict_q),
      .ended(ended_q),
      .matched(matched_q),
      .called(ACTIVE && called_q),
      .duplicate,
      .stale,
      .per_peer,
      .half_open,
      .half_open_per_peer,
      .free,
      .expired(expired_q),
      .resolved(resolved_q.found),
      .mac(resolved_q.mac),
      .leaving,
      .lost(lost_q),
      .abandon,
      .accepted(conn_answer.data.accept),
      .told(tell_kind),
      .max_mtu,
      .dscp,
      .extensions,
      .new_comm_id({1'b1, random_q[62:32+IDX_W], idx_q}),
      .new_psn(random_q[23:0]),
      .was(work_q),
      .becomes(work_d),
      .plan(plan_d),
      .makes_stale,
      .counts(decided)
  );

  // ---- admission ----
  assign asks = is_req_q && !(fsm_q inside {S_CLEAR, S_IDLE});
  assign ask  = '{has_token: msg.data.has_token, token: msg.data.private_data[$bits(token_t)-1:0], ip: msg.data.ip};
  assign admits   = commit && plan_q.write && work_q.by.valid && !was_occupied_q && cm_occupied(work_q);
  assign leaves   = commit && plan_q.write && work_q.by.valid && was_occupied_q && !cm_occupied(work_q);
  assign admitted = work_q.by.entry;

  always_comb begin
    ended_d = ADM_NONE;
    if (found.by.valid && cm_callers(found.state)) begin
      if (ended.revoked[found.by.entry]) ended_d = ADM_REVOKED;
      if (ended.time_over[found.by.entry]) ended_d = ADM_TIME_OVER;
    end
  end

  assign send.valid = fsm_q == S_SEND;
  assign send.data = '{
      attr: plan_q.attr, about: plan_q.about, reason: plan_q.reason, qpn: qp_number(qp_index_t'(idx_q)), conn: work_q,
      private_data: private_data
  };

  // ---- the other units ----
  wire resolves = ACTIVE && (op_q == OP_CONNECT || expired_q);
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
          own: work_q.own,
          traffic_class: {work_q.dscp, 2'b00},
          dest_qp_num: work_q.remote_qpn,
          pd: work_q.pd,
          client: work_q.client,
          access: work_q.access,
          path_mtu: work_q.path_mtu,
          selective_repeat: work_q.selective_repeat,
          rq_psn: work_q.starting_psn,
          min_rnr_timer: min_rnr_timer,
          max_dest_rd_atomic: 8'(work_q.responder_resources),
          sq_psn: msg.data.starting_psn,   // only a message sets up a QP
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
      .take(concluded && free && (op_q == OP_CONNECT || (is_req && !duplicate))), .take_idx(free_idx),
      .reading(fsm_q == S_READ), .idx(idx_q), .gives_way, .refused(qp_refused), .active(work_q.active), .again, .first(first_try),
      .commit, .message(op_q == OP_MESSAGE), .occupied(plan_q.write ? cm_occupied(work_q) : was_occupied_q)
  );
  always_ff @(posedge clk) if (!rst) assert (fsm_q inside {S_SEARCHED, S_READ} || (mine & by_hand) == '0);

  // ---- sequence of an event ----
  wire fsm_e finish = plan_q.save ? S_SAVE : S_STAMP;
  // The queue pair is set up before the REP or RTU is sent, because the peer's first packet may follow at once; and it is reset before the
  // DREQ, DREP or REJ, so that its last packet, which may be a NAK, leaves before the connection ends.
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
          lost_q <= pick_lost;
          is_req_q <= pick_op == OP_MESSAGE && is_req;
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
        verdict_q <= verdict;
        // Neither a free connection nor a free `conn` for the refusal: retried later.
        if (concluded) fsm_q <= (op_q == OP_CONNECT && !free && !conn_free) ? S_IDLE : S_READ;
      end

      S_READ: fsm_q <= gives_way ? S_IDLE : S_MATCH;

      S_MATCH: begin
        work_q    <= found;
        if (!ACTIVE) work_q.active <= 1'b0;
        matched_q <= names_own ? duplicate : cm_has_peer(found.state) && found.ip == msg.data.ip
            && found.ids.local_comm_id == msg.data.ids.remote_comm_id && found.ids.remote_comm_id == msg.data.ids.local_comm_id;
        called_q  <= found.state == CM_REQ_SENT && found.ip == msg.data.ip
            && found.ids.local_comm_id == msg.data.ids.remote_comm_id;
        right_qpn_q  <= msg.data.qpn == qp_number(qp_index_t'(idx_q));
        acceptable_q <= msg.data.reason == conn_reason_t'(REJ_NONE);
        expired_q <= cm_timed(found.state) && !time_ahead(now, found.deadline, DELAY_BITS);
        ended_q   <= ended_d;
        if (op_q == OP_WALK && ended_d != ADM_NONE) op_q <= OP_END;
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
          // The peer's REQ is rejected and dropped; the peer's REP is rejected and the owner receives CONN_REFUSED.
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

  // ---- private data of the current event ----
  private_t came;
  always_comb begin
    unique case (op_q)
      OP_MESSAGE: begin
        came = msg.data.private_data;
        if (msg.data.has_token) came[$bits(token_t)-1:0] = '0;
      end
      OP_ANSWER:  came = conn_answer.data.private_data;
      OP_CONNECT: came = connect.data.private_data;
      default:    came = '0;
    endcase
  end
  roce_cm_private #(.QPS(QPS)) privates (
      .clk, .idx(idx_q), .take(fsm_q == S_DECIDE), .clear(qp_refused),   // a REJ generated by the device has none
      .came, .loading(fsm_q == S_LOAD), .loaded, .saving(fsm_q == S_SAVE), .saved, .at_work(private_data)
  );

  // ---- event log ----
  wire answered = commit && op_q == OP_ANSWER && plan_q.send && plan_q.attr == CM_REP;
  wire told = commit && plan_q.tell;
  wire opened = answered || told && plan_q.kind == CONN_ESTABLISHED;
  wire closed = told && plan_q.kind == CONN_CLOSED && op_q != OP_ANSWER;   // else nobody was told that it was opened
  wire failed = told && plan_q.kind == CONN_REFUSED;
  wire refused = fsm_q == S_SEND && send.ready && plan_q.attr == CM_REJ && plan_q.about == CM_MSG_REQ && !plan_q.tell && !work_q.active;

  log_closed_e cause;
  always_comb begin
    unique case (op_q)
      OP_MESSAGE: cause = CLOSED_BY_PEER;
      OP_WALK:    cause = CLOSED_TIMEOUT;
      OP_STALE:   cause = CLOSED_STALE;
      OP_END:     cause = work_q.why == ADM_REVOKED ? CLOSED_REVOKED : CLOSED_TIME_OVER;
      default:    cause = CLOSED_BY_DEVICE;
    endcase
  end

  wire log_peer_t peer = '{
      about: closed ? cause : work_q.by.valid ? 8'(work_q.by.entry) : LOG_NO_ENTRY,
      qpn: qp_number(qp_index_t'(idx_q))
  };
  wire log_refusal_t refusal = '{reason: 16'(plan_q.reason), why: 16'(work_q.why)};
  always_ff @(posedge clk) begin
    to_log.valid     <= !rst && (opened || closed || failed || refused);
    to_log.item.kind <= opened ? LOG_OPENED : closed ? LOG_CLOSED : failed ? LOG_CONNECT_FAILED : LOG_REFUSED;
    to_log.item.a    <= ipv4_of(work_q.ip);   // of an IPv6 address the last 32 bits
    to_log.item.b    <= refused ? refusal : failed ? 32'(plan_q.why) : peer;
  end

  assign idle = rx_idle && owners_idle && !msg.valid && pick_idle && !qp_event.valid
      && !close.valid && !conn_answer.valid && !connect.valid && picking && !walk_due && !round_due;
endmodule
