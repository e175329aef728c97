// SPDX-License-Identifier: Apache-2.0

// The state of each connection and of its contexts (docs/reference/calls.md; without that extension a connection has one): takes every
// event of the engine, one at a time, and starts the other units.
//
// A context processes one request at a time, in order of arrival: a set-up, or a call, each until its answer is acknowledged (so the
// outstanding sends of a context never exceed one answer, and memory that may be retransmitted is not changed). Further arrivals wait:
// the receive of each is posted again only when it is processed. At most RECEIVES arrivals wait for a context; one more ends the
// connection, which has RECEIVES receives for each context, so this cannot happen if it has one. A start during a call is counted and
// ignored. A cancel is processed at once: it goes to rpc_dispatch if there is a call, and cancels the start that waits if there is one.
//
// A context of a connection that closes keeps its extent and keys until its set-up or call has ended; only CONN_CLOSED of this connection
// waits for that, and is answered when everything is freed.
//
// One event every 3 cycles, CONN_OPENED and CONN_CLOSED 2 or 3 more for each context; a start leaves on `call` 3 cycles after its
// completion was taken. The queues behind the outputs have an entry for every context, so this unit never stalls, and completions and
// connection events are always accepted.
module rpc_connections
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import compute_pkg::*;
  import rpc_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned CONTEXTS = 1,
    parameter int unsigned SOCKETS = 1,
    parameter bit LONG_SET_UP = 1'b0   // there are deadlines and chains; needs more than one context
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.sink   conn_event,  // conn_event_t
    stream_if.source conn_answer, // qpn_t: its event has been processed
    stream_if.sink   cqe,         // rdma_cqe_t
    stream_if.sink   setup_done,  // setup_done_t
    stream_if.sink   posted,      // posted_t: the answer of a call, or the first part of it; or it was discarded
    stream_if.source setup,       // setup_job_t
    stream_if.source release_,    // release_job_t: the context has no other job until this one is done
    stream_if.source call,        // call_t
    stream_if.source chain,       // chain_t: a call that runs a chain
    stream_if.source cancel,      // cancel_t: at most one for each call
    stream_if.source refusal,     // result_t: a call that does not reach a socket
    stream_if.source rest,        // answer_t: an answer is to be continued
    stream_if.source repost,      // receive_t
    stream_if.source close,       // qpn_t: connections that failed
    input  function_set_t [SOCKETS-1:0] functions,  // of each socket
    input  logic [SOCKETS-1:0] busy,  // sockets with a call
    output closing_t closing,     // one cycle for each; `gone` is updated in that cycle
    input  slot_t    asked[3],    // connections queried by other units
    output logic     gone[3],     // same cycle: closed
    output logic     decides,     // `call`, `chain`, `cancel` and `refusal` come only while it is high, at most every third cycle
    input  ticks_t   now,
    output ticks_t   began,       // with `call` and `chain`: when the start came
    output logic     started,     // events
    output logic     aborted,
    output logic     ignored,
    output logic     idle
);
  typedef logic [$clog2(QPS)-1:0] slot_index_t;
  typedef logic [$clog2(QPS*CONTEXTS)-1:0] index_t;
  typedef logic [$clog2(RECEIVES*MAX_CONTEXTS)-1:0] receive_index_t;
  typedef logic [$clog2(RECEIVES+1)-1:0] waiting_t;

  function automatic index_t index_of(context_t of);
    return index_t'(context_index(of, CONTEXTS));
  endfunction

  typedef enum logic [1:0] {
    FREE,     // ready for a request
    SETUP,    // rpc_setup has a message
    CALL,     // a call waits for its socket, runs, or is being answered
    ANSWERED  // the answer, or what may be outstanding of it, was posted: until it is acknowledged
  } phase_e;

  typedef struct packed {
    logic      open;
    logic      failed;     // a completion failed, or the caller broke a rule: `close` was sent to the CM
    contexts_t agreed;     // contexts that the caller has; 0: it has one, without the extension
    logic      long_;       // long set-ups are agreed
    contexts_t held;       // closed: contexts that are not released yet
  } connection_t;

  typedef struct packed {
    logic     unfinished;  // the first part of the answer was posted, but not all. First, as there is none without long set-ups
    logic     granted;     // has regions,
    logic     chain;       // and a chain
    phase_e   phase;
    waiting_t waiting;     // arrivals waiting
    logic     oldest;      // index of the oldest of them
    logic     cancelled;   // CALL: the call, if its answer has not begun; otherwise the start that waits
    logic     odd;         // the last call for a socket: see call_t
  } state_t;

  typedef enum logic [2:0] {
    OPENED,
    CLOSED,
    ARRIVED,      // a message or a start
    CANCEL,
    UNKNOWN,      // an arrival without meaning
    ACKNOWLEDGED,
    FAILED,
    DONE          // a set-up, a release or a call
  } event_e;

  typedef struct packed {
    event_e    kind;
    logic      waited;     // ARRIVED: taken from the inbox
    context_t  of;
    contexts_t agreed;     // OPENED
    logic      long_;       // OPENED
    arrival_t  arrival;
    logic      call;       // DONE: a call, otherwise `setup`
    logic      more;       // and its answer is not complete
    progress_t from;       // ACKNOWLEDGED: where it is continued, if it is not
    setup_done_t setup;
  } event_t;

  typedef enum logic [2:0] {
    CLEAR,    // the tables after reset
    PICK,
    READ,
    APPLY,
    RESUME,   // read the oldest waiting arrival,
    RESUMED,  // and process it
    NEXT,     // CLOSED: the next context
    OPEN      // post a receive
  } fsm_e;

  (* ram_style = "distributed" *) logic [$bits(connection_t)-1:0] connections[QPS];
  (* ram_style = "distributed" *) logic [$bits(contexts_t)-1:0] agreements[QPS];
  (* ram_style = "distributed" *) logic closed[QPS];
  localparam int unsigned STATE_W = $bits(state_t) - (LONG_SET_UP ? 0 : 1);
  (* ram_style = "distributed" *) logic [STATE_W-1:0] states[QPS*CONTEXTS];
  // Without deadlines it does not matter when a start came.
  localparam int unsigned INBOX_W = $bits(arrival_t) - (LONG_SET_UP ? 0 : $bits(ticks_t));
  (* ram_style = "block" *) logic [INBOX_W-1:0] inbox[QPS*CONTEXTS*RECEIVES];

  fsm_e           fsm_q, fsm_d;
  event_t         event_q, event_d;
  connection_t    connection_q, connection;  // before and after the event
  state_t         state_q, state;
  arrival_t       oldest_q;
  index_t         clear_q;
  receive_index_t posted_q;                  // OPEN: receives posted
  closing_t       closing_q;

  // ---- selection of the event ----
  wire qpn_t cqe_slot = qp_index(cqe.data.qpn);
  wire       cqe_ours = cqe_slot < qpn_t'(QPS);
  wire       picking = fsm_q == PICK;
  assign posted.ready     = picking;
  assign setup_done.ready = picking && !posted.valid;
  assign cqe.ready        = picking && !posted.valid && !setup_done.valid;
  assign conn_event.ready = picking && !posted.valid && !setup_done.valid && !cqe.valid;

  // With contexts an immediate begins with the number of its context. A SEND without one is a message of context 0.
  wire contexts_t agreed = CONTEXTS > 1 ? contexts_t'(agreements[slot_index_t'(cqe_slot)]) : '0;
  wire is_write = cqe.data.opcode == WC_RECV_RDMA_WITH_IMM;
  wire is_receive = cqe.data.opcode inside {WC_RECV, WC_RECV_RDMA_WITH_IMM};
  wire names = agreed != '0 && (is_write || cqe.data.with_imm);
  wire [7:0] named = cqe.data.imm_data[31:24];
  // Less than `agreed`, which is 1, 2 or 4.
  wire       there = named[7:2] == '0 && (agreed[2] || !named[1] && (agreed[1] || !named[0]));
  wire [7:0] request = cqe.data.imm_data[7:0];
  localparam logic [7:0] REQUEST_MESSAGE = 8'd1, REQUEST_CANCEL = 8'd2;

  event_t picked;
  logic   any;
  always_comb begin
    picked = '{
        kind: ARRIVED,
        waited: 1'b0,
        of: '{slot: slot_t'(cqe_slot), number: '0},
        agreed: CONTEXTS > 1 ? conn_event.data.contexts : '0,
        long_: LONG_SET_UP && conn_event.data.long_set_up,
        arrival: '{time_: LONG_SET_UP ? now : '0, message: !is_write, buffer: buffer_t'(cqe.data.wr_id), value: cqe.data.imm_data},
        call: posted.valid,
        more: LONG_SET_UP && posted.data.more,
        from: LONG_SET_UP ? answer_from(cqe.data.wr_id) : '0,
        setup: setup_done.data
    };
    if (names) picked.arrival.value[31:24] = '0;
    if (!is_write) picked.arrival.value = message_t'{with_imm: names, reserved: '0, length: message_length(cqe.data.byte_len)};
    any = 1'b1;
    if (posted.valid) begin
      picked.kind = DONE;
      picked.of   = posted.data.of;
    end else if (setup_done.valid) begin
      picked.kind = DONE;
      picked.of   = setup_done.data.of;
    end else if (cqe.valid) begin
      any = cqe_ours;
      if (cqe.data.status != WC_SUCCESS) picked.kind = FAILED;
      else if (!is_receive) begin
        picked.kind      = ACKNOWLEDGED;
        picked.of.number = number_t'(cqe.data.wr_id);
      end else if (names) begin
        picked.of.number = number_t'(named);
        if (!there) picked.kind = FAILED;
        else if (!is_write && request == REQUEST_CANCEL) picked.kind = CANCEL;
        else if (!is_write && request != REQUEST_MESSAGE) picked.kind = UNKNOWN;
      end
    end else begin
      any            = conn_event.valid;
      picked.kind    = conn_event.data.kind == CONN_OPENED ? OPENED : CLOSED;
      picked.of.slot = slot_t'(qp_index(conn_event.data.qpn));
    end
    if (CONTEXTS == 1) picked.of.number = '0;
  end

  // ---- effect of the event ----
  connection_t found;
  assign found = connection_t'(connections[slot_index_t'(event_q.of.slot)]);

  arrival_t arrival;
  assign arrival = event_q.arrival;

  // The immediate is decoded and the socket selected while the state is read.
  logic [3:0] socket;
  logic       known;
  logic       start_q;   // a start
  logic       nothing_q; // the immediate is 0
  logic       whole_q;   // function 0: that of a chain
  rpc_choice #(.SOCKETS(SOCKETS)) choice (
      .clk, .rst, .functions, .busy, .function_code(arrival.value[6:0]), .known, .socket, .take(call.valid)
  );

  wire applying = fsm_q == APPLY;
  wire live = applying && connection_q.open && !connection_q.failed;
  wire arrived = live && event_q.kind == ARRIVED;
  wire no_start = arrived && !arrival.message && !start_q;
  // A start during a call, unless a message waits before it; or before regions were granted.
  wire out_of_turn = arrived && !arrival.message && start_q
                   && (state_q.phase == CALL && state_q.waiting == '0 || state_q.phase == FREE && !state_q.granted);
  wire take_start = arrived && !arrival.message && start_q && state_q.phase == FREE && state_q.granted;
  wire take_message = arrived && arrival.message && state_q.phase == FREE;
  wire waits = arrived && !no_start && !out_of_turn && !take_start && !take_message;
  wire no_room = CONTEXTS > 1 && state_q.waiting == waiting_t'(RECEIVES);
  wire park = waits && !no_room;
  wire cancels = live && event_q.kind == CANCEL;
  wire calls = state_q.phase == CALL && !state_q.unfinished;  // the call can still be cancelled
  wire unknown = live && event_q.kind == UNKNOWN;
  wire set_up = event_q.kind == DONE && !event_q.call;
  wire released = applying && set_up && event_q.setup.close;
  wire over = event_q.kind == DONE && !(set_up && event_q.setup.close);  // a set-up or call has ended
  // The connection is closed and the context idle: its extent and keys can be released.
  wire free_now = applying && (event_q.kind == CLOSED && state_q.phase inside {FREE, ANSWERED} || over && !connection_q.open);
  wire fail = live && (event_q.kind == FAILED || waits && no_room || set_up && event_q.setup.failed);
  wire first = event_q.of.number == '0;
  wire contexts_t contexts = contexts_of(connection_q.agreed);
  wire last = contexts_t'(event_q.of.number) == contexts - 1'b1;

  always_comb begin
    connection = connection_q;
    if (event_q.kind == OPENED) connection = '{open: 1'b1, agreed: event_q.agreed, long_: event_q.long_, default: '0};
    if (event_q.kind == CLOSED) begin
      connection.open = 1'b0;
      if (first) connection.held = contexts;
    end
    if (released) connection.held = connection_q.held - 1'b1;
    if (fail) connection.failed = 1'b1;
  end

  always_comb begin
    state = state_q;
    unique case (event_q.kind)
      CLOSED: if (state_q.phase == ANSWERED) state.phase = FREE;
      ARRIVED: begin
        if (take_start) state.phase = CALL;
        if (call.valid || chain.valid) state.odd = !state_q.odd;
        if (take_message) state.phase = SETUP;
        if (park) state.waiting = state_q.waiting + 1'b1;
        else if (event_q.waited) begin
          state.waiting = state_q.waiting - 1'b1;
          state.oldest  = !state_q.oldest;
          if (!take_start) state.cancelled = 1'b0;
        end
      end
      CANCEL: if (calls || state_q.waiting != '0) state.cancelled = 1'b1;
      ACKNOWLEDGED: if (state_q.phase == ANSWERED) state.phase = state_q.unfinished ? CALL : FREE;
      DONE: begin
        state.phase = connection_q.open ? ANSWERED : FREE;
        if (event_q.call) begin
          if (calls) state.cancelled = 1'b0;
          state.unfinished = event_q.more;
        end else begin
          state.granted = event_q.setup.held;
          state.chain   = LONG_SET_UP && event_q.setup.chain;
        end
      end
      default: state = state_q;
    endcase
  end

  // After this event the context can process its oldest waiting arrival.
  wire resume = connection.open && !connection.failed && state.phase == FREE && state.waiting != '0;

  always_comb begin
    fsm_d   = fsm_q;
    event_d = event_q;
    unique case (fsm_q)
      CLEAR: if (clear_q == index_t'(QPS * CONTEXTS - 1)) fsm_d = PICK;
      PICK: begin
        event_d = picked;
        if (any) fsm_d = READ;
      end
      READ:  fsm_d = APPLY;
      APPLY: fsm_d = event_q.kind == OPENED ? OPEN : event_q.kind == CLOSED && !last ? NEXT : resume ? RESUME : PICK;
      RESUME: begin
        event_d.kind   = ARRIVED;
        event_d.waited = 1'b1;
        fsm_d          = RESUMED;
      end
      RESUMED: begin
        event_d.arrival = oldest_q;
        fsm_d           = READ;
      end
      NEXT: begin
        event_d.of.number = event_q.of.number + 1'b1;
        fsm_d             = READ;
      end
      default: begin  // OPEN
        event_d.of.number = number_t'((posted_q + 1'b1) >> 1);
        if (last && posted_q[0]) fsm_d = PICK;
      end
    endcase
  end

  always_ff @(posedge clk) begin
    fsm_q     <= fsm_d;
    event_q   <= event_d;
    // With contexts function 0 is a start, too: that of a chain.
    start_q   <= arrival.value[7] && (arrival.value[6:0] != '0 || CONTEXTS > 1 && found.agreed != '0);
    nothing_q <= arrival.value == '0;
    whole_q   <= arrival.value[6:0] == '0;
    clear_q   <= clear_q + 1'b1;
    posted_q  <= fsm_q == OPEN ? posted_q + 1'b1 : '0;
    if (fsm_q == READ) begin
      connection_q <= found;
      state_q      <= state_t'(states[index_of(event_q.of)]);
    end
    if (applying) begin
      connection_q <= connection;
      state_q      <= state;
    end
    if (rst) begin
      fsm_q   <= CLEAR;
      clear_q <= '0;
    end
  end

  wire clearing = fsm_q == CLEAR;
  wire opening = fsm_q == OPEN;
  wire slot_index_t at = clearing ? slot_index_t'(clear_q) : slot_index_t'(event_q.of.slot);
  always_ff @(posedge clk) begin
    if (clearing || applying) connections[at] <= clearing ? '0 : connection;
    if (clearing || applying) agreements[at] <= clearing ? '0 : connection.agreed;
    if (clearing || applying) closed[at] <= clearing || !connection.open;
  end
  always_ff @(posedge clk) begin
    if (clearing || applying || opening) begin
      states[clearing ? clear_q : index_of(event_q.of)] <= clearing || opening ? '0 : STATE_W'(state);
    end
  end
  for (genvar i = 0; i < 3; i++) begin : g_gone
    assign gone[i] = closed[slot_index_t'(asked[i])];
  end
  always_ff @(posedge clk) begin
    if (park) inbox[{index_of(event_q.of), state_q.oldest ^ state_q.waiting[0]}] <= INBOX_W'(arrival);
    oldest_q <= arrival_t'(inbox[{index_of(event_q.of), state_q.oldest}]);
  end

  // ---- outputs ----
  assign setup.valid = take_message;
  assign setup.data  = '{
      of: event_q.of,
      contexts: contexts,
      long_: connection_q.long_,
      held: state.granted,
      chain: state.chain,
      buffer: arrival.buffer,
      message: message_t'(arrival.value)
  };
  assign release_.valid = free_now;
  assign release_.data  = '{of: event_q.of, held: state.granted};
  assign call.valid    = take_start && known && !state_q.cancelled;
  assign call.data     = '{
      socket: socket,
      of: event_q.of,
      odd: state.odd,
      function_code: arrival.value[6:0],
      user: arrival.value[31:8],
      part: '0
  };
  assign chain.valid   = LONG_SET_UP && take_start && whole_q && state_q.chain && !state_q.cancelled;
  assign chain.data    = '{of: event_q.of, odd: state.odd};
  assign began         = arrival.time_;
  assign decides       = applying;
  assign cancel.valid  = cancels && calls && !state_q.cancelled;
  assign cancel.data   = '{of: event_q.of, odd: state_q.odd, late: 1'b0};
  assign refusal.valid = take_start && !call.valid && !chain.valid;
  assign refusal.data  = '{of: event_q.of, code: state_q.cancelled ? RESULT_CANCELLED : RESULT_UNKNOWN_FUNCTION};
  assign rest.valid    = applying && event_q.kind == ACKNOWLEDGED && state_q.phase == ANSWERED && state_q.unfinished;
  assign rest.data     = '{result: '{of: event_q.of, code: RESULT_SUCCESS}, from: event_q.from};
  assign repost.valid  = no_start || out_of_turn || take_start || cancels || unknown || opening;
  assign repost.data   = '{slot: event_q.of.slot, buffer: opening ? buffer_t'(posted_q) : arrival.buffer};
  assign close.valid   = fail;
  assign close.data    = qp_number(event_q.of.slot);
  assign started       = call.valid || chain.valid;
  // The connection is closed before the rest of an answer was posted.
  wire   cut_off       = applying && (event_q.kind == CLOSED && state_q.phase == ANSWERED && state_q.unfinished
                                      || event_q.kind == DONE && event_q.call && event_q.more && !connection_q.open);
  assign aborted       = no_start && nothing_q || cut_off;
  assign ignored       = no_start && !nothing_q || out_of_turn || unknown;

  // Every event of the connection manager is answered; at most one per connection is pending.
  assign conn_answer.valid = opening && last && posted_q[0] || released && connection_q.held == contexts_t'(1);
  assign conn_answer.data  = qp_number(event_q.of.slot);
  assign closing           = closing_q;
  assign idle              = picking && !any;

  wire unused = &{1'b0, cqe.data.solicited, event_q.setup.of};

  always_ff @(posedge clk) closing_q <= '{valid: !rst && applying && event_q.kind == CLOSED && first, slot: event_q.of.slot};

  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (!setup.valid || setup.ready);
      assert (!release_.valid || release_.ready);
      assert (!call.valid || call.ready);
      assert (!chain.valid || chain.ready);
      assert (!cancel.valid || cancel.ready);
      assert (!refusal.valid || refusal.ready);
      assert (!rest.valid || rest.ready);
      assert (!repost.valid || repost.ready);
      assert (!close.valid || close.ready);
      assert (!conn_answer.valid || conn_answer.ready);
      assert (!waits || state_q.waiting < waiting_t'(RECEIVES) || no_room);
    end
  end
endmodule
