// SPDX-License-Identifier: Apache-2.0

// The state of each connection: takes every event of the engine, one at a time, and starts the other units.
//
// A connection processes one request at a time, in order of arrival: a set-up, or a call, each until its answer is acknowledged (so the
// outstanding sends of a connection never exceed one answer, and memory that may be retransmitted is not changed). Further arrivals wait:
// the receive of each is posted again only when it is processed, so at most RECEIVES arrivals wait. A start during a call is counted and
// ignored.
//
// A connection that closes keeps its extent and keys until its set-up or call has ended; only its own CONN_CLOSED waits for that, and is
// answered when everything is freed.
//
// One event every 3 cycles; a start leaves on `call` 3 cycles after its completion was taken. The queues behind the outputs have an entry
// for every connection, so this unit never stalls, and completions and connection events are always accepted.
module rpc_connections
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import compute_pkg::*;
  import rpc_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned SOCKETS = 1
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.sink   conn_event,  // conn_event_t
    stream_if.source conn_answer, // qpn_t: its event has been processed
    stream_if.sink   cqe,         // rdma_cqe_t
    stream_if.sink   setup_done,  // setup_done_t
    stream_if.sink   answered,    // result_t: the answer of a call was posted, or discarded
    stream_if.source setup,       // setup_job_t
    stream_if.source release_,    // release_job_t: the connection has no other job until this one is done
    stream_if.source call,        // call_t
    stream_if.source refusal,     // result_t: a call without a socket
    stream_if.source repost,      // receive_t
    stream_if.source close,       // qpn_t: connections that failed
    input  function_set_t [SOCKETS-1:0] functions,  // of each socket
    input  logic [SOCKETS-1:0] busy,  // sockets with a call
    output closing_t closing,     // one cycle for each; `gone` is updated in that cycle
    input  slot_t    asked[3],    // connections queried by other units
    output logic     gone[3],     // same cycle: closed
    output logic     started,     // events
    output logic     aborted,
    output logic     ignored,
    output logic     idle
);
  localparam int unsigned SLOT_W = $clog2(QPS);
  typedef logic [SLOT_W-1:0] index_t;

  typedef enum logic [1:0] {
    FREE,     // ready for a request
    SETUP,    // rpc_setup has a message
    CALL,     // a call waits for its socket, runs, or is being answered
    ANSWERED  // the answer was posted: until it is acknowledged
  } phase_e;

  typedef struct packed {
    logic       open;
    logic       failed;   // a completion failed: `close` was sent to the CM
    logic       granted;  // has regions
    phase_e     phase;
    logic [1:0] waiting;  // arrivals waiting
    logic       oldest;   // index of the oldest of them
  } connection_t;

  typedef enum logic [2:0] {
    OPENED,
    CLOSED,
    ARRIVED,
    ACKNOWLEDGED,
    FAILED,
    SET_UP,
    CALL_DONE
  } event_e;

  typedef struct packed {
    event_e      kind;
    logic        waited;   // ARRIVED: taken from the inbox
    slot_t       slot;
    arrival_t    arrival;
    setup_done_t setup;
  } event_t;

  typedef enum logic [2:0] {
    CLEAR,    // the table after reset
    PICK,
    READ,
    APPLY,
    RESUME,   // process the oldest waiting arrival
    OPEN_2    // post the second receive
  } state_e;

  (* ram_style = "distributed" *) logic [$bits(connection_t)-1:0] states[QPS];
  (* ram_style = "distributed" *) logic [$bits(arrival_t)-1:0] inbox[QPS*RECEIVES];
  (* ram_style = "distributed" *) logic closed[QPS];

  state_e      state_q, state_d;
  event_t      event_q, event_d;
  connection_t connection_q, now;  // before and after the event
  index_t      clear_q;
  closing_t    closing_q;

  // ---- selection of the event ----
  wire qpn_t cqe_slot = qp_index(cqe.data.qpn);
  wire       cqe_ours = cqe_slot < qpn_t'(QPS);
  wire       picking = state_q == PICK;
  assign answered.ready   = picking;
  assign setup_done.ready = picking && !answered.valid;
  assign cqe.ready        = picking && !answered.valid && !setup_done.valid;
  assign conn_event.ready = picking && !answered.valid && !setup_done.valid && !cqe.valid;

  event_t picked;
  logic   any;
  always_comb begin
    picked = '{
        kind: ARRIVED,
        waited: 1'b0,
        slot: slot_t'(cqe_slot),
        arrival: '{
            immediate: cqe.data.opcode == WC_RECV_RDMA_WITH_IMM,
            buffer: cqe.data.wr_id[0],
            length: cqe.data.byte_len,
            imm_data: cqe.data.imm_data
        },
        setup: setup_done.data
    };
    any = 1'b1;
    if (answered.valid) begin
      picked.kind = CALL_DONE;
      picked.slot = answered.data.slot;
    end else if (setup_done.valid) begin
      picked.kind = SET_UP;
      picked.slot = setup_done.data.slot;
    end else if (cqe.valid) begin
      any = cqe_ours;
      if (cqe.data.status != WC_SUCCESS) picked.kind = FAILED;
      else if (!(cqe.data.opcode inside {WC_RECV, WC_RECV_RDMA_WITH_IMM})) picked.kind = ACKNOWLEDGED;
    end else begin
      any         = conn_event.valid;
      picked.kind = conn_event.data.kind == CONN_OPENED ? OPENED : CLOSED;
      picked.slot = slot_t'(qp_index(conn_event.data.qpn));
    end
  end

  // ---- effect of the event ----
  arrival_t arrival;
  assign arrival = event_q.arrival;

  // The immediate is decoded and the socket selected while the connection is read. Of several sockets with the function, the first without
  // a call is selected; if all have one, round robin.
  logic [3:0] socket, socket_q;
  logic       known, known_q;
  logic       start_q;   // a start
  logic       nothing_q; // the immediate is 0
  logic [SOCKETS-1:0] having, in_turn;
  always_comb begin
    for (int unsigned i = 0; i < SOCKETS; i++) having[i] = functions[i][arrival.imm_data[6:0]];
    known  = |having;
    socket = '0;
    for (int unsigned i = SOCKETS; i > 0; i--) if (in_turn[i-1]) socket = 4'(i - 1);
    for (int unsigned i = SOCKETS; i > 0; i--) if (having[i-1] && !busy[i-1]) socket = 4'(i - 1);
  end

  // A free socket that was selected out of turn also moves to the end of the round-robin order.
  round_robin #(.N(SOCKETS)) turns (
      .clk, .rst, .request(call.valid ? SOCKETS'(1) << socket_q : having), .take(call.valid), .grant(in_turn)
  );

  wire applying = state_q == APPLY;
  wire arrived = applying && event_q.kind == ARRIVED && connection_q.open && !connection_q.failed;
  wire no_start = arrived && arrival.immediate && !start_q;
  // A start during a call, unless a message waits before it; or before regions were granted.
  wire out_of_turn = arrived && arrival.immediate && start_q
                   && (connection_q.phase == CALL && connection_q.waiting == '0 || connection_q.phase == FREE && !connection_q.granted);
  wire take_start = arrived && arrival.immediate && start_q && connection_q.phase == FREE && connection_q.granted;
  wire take_message = arrived && !arrival.immediate && connection_q.phase == FREE;
  wire park = arrived && !no_start && !out_of_turn && !take_start && !take_message;
  wire over = event_q.kind == SET_UP && !event_q.setup.close || event_q.kind == CALL_DONE;  // a set-up or call has ended
  // The connection is closed and idle: its extent and keys can be released.
  wire free_now = applying && (event_q.kind == CLOSED && connection_q.phase inside {FREE, ANSWERED} || over && !connection_q.open);
  wire fail = applying && connection_q.open && !connection_q.failed
            && (event_q.kind == FAILED || event_q.kind == SET_UP && event_q.setup.failed);

  always_comb begin
    now = connection_q;
    unique case (event_q.kind)
      OPENED: now = '{open: 1'b1, phase: FREE, default: '0};
      CLOSED: begin
        now.open = 1'b0;
        if (connection_q.phase == ANSWERED) now.phase = FREE;
      end
      ARRIVED: begin
        if (take_start) now.phase = CALL;
        if (take_message) now.phase = SETUP;
        if (park) now.waiting = connection_q.waiting + 1'b1;
        else if (event_q.waited) begin
          now.waiting = connection_q.waiting - 1'b1;
          now.oldest  = !connection_q.oldest;
        end
      end
      ACKNOWLEDGED: if (connection_q.phase == ANSWERED) now.phase = FREE;
      FAILED: now.failed = 1'b1;
      SET_UP: begin
        now.granted = event_q.setup.held;
        now.failed  = connection_q.failed || event_q.setup.failed;
        now.phase   = connection_q.open ? ANSWERED : FREE;
      end
      CALL_DONE: now.phase = connection_q.open ? ANSWERED : FREE;
      default: now = connection_q;
    endcase
  end

  // After this event the connection can process the oldest waiting arrival.
  wire resume = now.open && !now.failed && now.phase == FREE && now.waiting != '0;

  always_comb begin
    state_d = state_q;
    event_d = event_q;
    unique case (state_q)
      CLEAR: if (clear_q == index_t'(QPS - 1)) state_d = PICK;
      PICK: begin
        event_d = picked;
        if (any) state_d = READ;
      end
      READ:  state_d = APPLY;
      APPLY: state_d = event_q.kind == OPENED ? OPEN_2 : resume ? RESUME : PICK;
      RESUME: begin
        event_d.kind    = ARRIVED;
        event_d.waited  = 1'b1;
        event_d.arrival = inbox[{index_t'(event_q.slot), connection_q.oldest}];
        state_d         = READ;
      end
      OPEN_2:  state_d = PICK;
      default: state_d = PICK;
    endcase
  end

  always_ff @(posedge clk) begin
    state_q   <= state_d;
    event_q   <= event_d;
    socket_q  <= socket;
    known_q   <= known;
    start_q   <= arrival.imm_data[7] && arrival.imm_data[6:0] != '0;
    nothing_q <= arrival.imm_data == '0;
    clear_q   <= clear_q + 1'b1;
    if (state_q == READ) connection_q <= states[index_t'(event_q.slot)];
    if (applying) connection_q <= now;
    if (rst) begin
      state_q <= CLEAR;
      clear_q <= '0;
    end
  end

  wire clearing = state_q == CLEAR;
  always_ff @(posedge clk) begin
    if (clearing || applying) states[clearing ? clear_q : index_t'(event_q.slot)] <= clearing ? '0 : now;
    if (clearing || applying) closed[clearing ? clear_q : index_t'(event_q.slot)] <= clearing || !now.open;
  end
  for (genvar i = 0; i < 3; i++) begin : g_gone
    assign gone[i] = closed[index_t'(asked[i])];
  end
  always_ff @(posedge clk) begin
    if (park) inbox[{index_t'(event_q.slot), connection_q.oldest ^ connection_q.waiting[0]}] <= arrival;
  end

  // ---- outputs ----
  assign setup.valid = take_message;
  assign setup.data  = '{
      slot: event_q.slot,
      held: now.granted,
      buffer: arrival.buffer,
      length: arrival.length
  };
  assign release_.valid = free_now;
  assign release_.data  = '{slot: event_q.slot, held: now.granted};
  assign call.valid    = take_start && known_q;
  assign call.data     = '{
      socket: socket_q,
      slot: event_q.slot,
      function_code: arrival.imm_data[6:0],
      user: arrival.imm_data[31:8]
  };
  assign refusal.valid = take_start && !known_q;
  assign refusal.data  = '{slot: event_q.slot, code: RESULT_UNKNOWN_FUNCTION};
  assign repost.valid  = no_start || out_of_turn || take_start || applying && event_q.kind == OPENED || state_q == OPEN_2;
  assign repost.data   = '{slot: event_q.slot, buffer: event_q.kind == OPENED ? state_q == OPEN_2 : arrival.buffer};
  assign close.valid   = fail;
  assign close.data    = qp_number(event_q.slot);
  assign started       = call.valid;
  assign aborted       = no_start && nothing_q;
  assign ignored       = no_start && !nothing_q || out_of_turn;

  // Every event of the connection manager is answered; at most one per connection is pending.
  assign conn_answer.valid = state_q == OPEN_2 || applying && event_q.kind == SET_UP && event_q.setup.close;
  assign conn_answer.data  = qp_number(event_q.slot);
  assign closing           = closing_q;
  assign idle              = picking && !any;

  wire unused = &{1'b0, cqe.data.with_imm, cqe.data.solicited, answered.data.code};

  always_ff @(posedge clk) closing_q <= '{valid: !rst && applying && event_q.kind == CLOSED, slot: event_q.slot};

  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (!setup.valid || setup.ready);
      assert (!release_.valid || release_.ready);
      assert (!call.valid || call.ready);
      assert (!refusal.valid || refusal.ready);
      assert (!repost.valid || repost.ready);
      assert (!close.valid || close.ready);
      assert (!conn_answer.valid || conn_answer.ready);
      assert (!park || connection_q.waiting < 2'(RECEIVES));
    end
  end
endmodule
