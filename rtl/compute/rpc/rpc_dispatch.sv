// SPDX-License-Identifier: Apache-2.0

// Dispatches calls to sockets: one call per socket at a time, further calls wait. Connections queue for a socket, each at most once and not
// while it has a call there (rpc_queue); its turn is one call, of its contexts in turn. So connections are served in order of arrival, and
// one with several calls delays another by one call, as if it had one. A job is read from the table of regions into a queue of its socket, so that a slow socket does not
// delay the others. The window of a socket is the extent of its call's context, from before the first beat of the job until its result.
//
// First beat of a job 5 cycles after `call`, 6 if connections may have several contexts, 8 of a step of a chain, the others 4 cycles
// apart; a result leaves 1 cycle after `done`. A call of a closed connection is not started, and a running one is cancelled: its socket ends it at once. `cancel` ends a
// call that waits in the cycle after the current job is read; of a running one it is as for a closed connection, but for the result.
module rpc_dispatch
  import memory_pkg::*;
  import compute_pkg::*;
  import rpc_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned CONTEXTS = 1,
    parameter int unsigned SOCKETS = 1,
    parameter int unsigned MAX_REGIONS = 32,
    parameter bit LONG_SET_UP = 1'b0        // calls may be steps of a chain, regions have 2^32 bytes and more; needs more than one context
) (
    input  logic         clk,
    input  logic         rst,
    input  closing_t     closing,          // a connection closes now
    output slot_t        asked,            // this connection
    input  logic         gone,             // is closed. Same cycle
    stream_if.sink       call,             // call_t; always accepted, one of every context
    stream_if.sink       cancel,           // cancel_t
    stream_if.sink       refusal,          // result_t: of calls without a socket; arbitrated with the results
    stream_if.source     view_read,        // region_key_t
    input  logic         view_valid,
    input  region_view_t view,
    stream_if.source     job[SOCKETS],     // job_t
    output window_t [SOCKETS-1:0] window,
    input  logic [SOCKETS-1:0] paused,     // no job is begun there: calls wait
    output logic [SOCKETS-1:0] abort,      // the connection of the running job is closed, or its caller cancels it
    output logic [SOCKETS-1:0] busy,       // a call waits or runs, or would have to wait
    output logic [SOCKETS-1:0] running,    // a call runs
    output waiting_count_t waiting,        // calls that wait
    output call_progress_t progress,       // for telemetry; a cycle late
    stream_if.sink       done[SOCKETS],    // done_t; ignored if its tag is not the job's
    stream_if.source     result,           // outcome_t: of each call
    output logic         idle
);
  localparam bit SEVERAL = CONTEXTS > 1;
  typedef logic [$bits(job_t)-SIZE_W+size_w(LONG_SET_UP)-1:0] stored_job_t;

  typedef enum logic [2:0] {
    PICK,
    CHOOSE,    // one of the connection's calls for the socket
    STEP,      // of a chain: its details,
    STEPPED,   // and its first region
    CANCEL,    // find the call
    LOOK_UP,   // read a region
    LOOKED_UP,
    DROP       // the call ends without a job: its connection is closed, or it is cancelled
  } state_e;

  state_e             state_q;
  context_t           of_q;                // of the call, or of `cancel`
  call_t              call_q;              // its details, from LOOKED_UP on
  logic [SOCKETS-1:0] socket_q;            // one-hot
  region_index_t      index_q;
  tag_t               tag_q;
  logic               odd_q;               // of `cancel`
  logic               cancelled_q, late_q;
  socket_number_t     drop_at_q;           // the socket of a call that ends without a job
  logic               begun_q;             // the first region has been read

  stream_if #(.T(slot_t)) turn[SOCKETS] ();
  stream_if #(.T(outcome_t)) outcome[SOCKETS+2] ();
  logic [SOCKETS-1:0] pending, free, chosen, queues_empty, jobs_empty;
  slot_t              next[SOCKETS];
  number_t            previous[SOCKETS];   // context of the connection whose call this socket got last

  // ---- selection of a socket: round robin over those that are free ----
  wire picking = state_q == PICK && !cancel.valid;
  round_robin #(.N(SOCKETS)) turns (.clk, .rst, .request(pending & free), .take(picking), .grant(chosen));

  slot_t picked;
  always_comb begin
    picked = '0;
    for (int unsigned i = 0; i < SOCKETS; i++) if (chosen[i]) picked |= next[i];
  end

  // ---- selection of a call: the next context behind that of the last call ----
  logic [CONTEXTS-1:0]      waits, odd, in_chain, ready, later, in_line, from, first;
  logic [CONTEXTS-1:0][3:0] sockets;
  number_t                  number, last;
  always_comb begin
    last = '0;
    for (int unsigned i = 0; i < SOCKETS; i++) if (socket_q[i]) last |= previous[i];
    for (int unsigned c = 0; c < CONTEXTS; c++) begin
      ready[c] = 1'b0;
      for (int unsigned i = 0; i < SOCKETS; i++) ready[c] |= waits[c] && socket_q[i] && sockets[c] == 4'(i);
      later[c] = number_t'(c) > last;
    end
    in_line = ready & later;
    from    = |in_line ? in_line : ready;
    first   = from & (~from + 1'b1);
    number  = '0;
    for (int unsigned c = 0; c < CONTEXTS; c++) if (first[c]) number |= number_t'(c);
  end
  wire choosing = state_q == CHOOSE && |ready;
  wire starts = SEVERAL ? choosing : picking && |chosen;
  wire [SOCKETS-1:0] starting = SEVERAL ? socket_q : chosen;
  wire context_t start = SEVERAL ? '{slot: of_q.slot, number: number} : '{slot: picked, number: '0};

  // ---- cancel: no job is being read then, so the call waits, runs, or has ended ----
  logic [CONTEXTS-1:0] named;
  always_comb begin
    for (int unsigned c = 0; c < CONTEXTS; c++) named[c] = SEVERAL && waits[c] && odd[c] == odd_q && of_q.number == number_t'(c);
  end
  assign cancel.ready = state_q == PICK;

  rpc_waiting #(.QPS(QPS), .CONTEXTS(CONTEXTS), .CHAINS(LONG_SET_UP)) waiting_calls (
      .clk, .rst, .add(call.valid), .call(call.data), .asked(of_q.slot), .waits, .sockets, .odd, .in_chain,
      .take(state_q == CHOOSE ? first : state_q == CANCEL ? named : '0), .of(of_q), .details(call_q)
  );
  assign call.ready = 1'b1;

  waiting_count_t waiting_q;
  assign waiting = waiting_q;
  wire taken = starts || state_q == CANCEL && |named;
  always_ff @(posedge clk) begin
    waiting_q <= waiting_q + waiting_count_t'(call.valid) - waiting_count_t'(taken);
    if (rst) waiting_q <= '0;
  end

  logic gone_q;
  wire found = state_q == LOOKED_UP && view_valid;
  wire dead = gone_q && !begun_q;  // not started; if the connection closes later, the job is cancelled
  wire beat = found && !dead;
  wire job_t job_beat = '{
      size: view.region.size,
      tag: tag_q,
      function_code: call_q.function_code,
      user: call_q.user,
      last: index_q == (LONG_SET_UP && call_q.part.chain ? call_q.part.last_region : view.grant.last),
      input_: view.region.input_,
      output_: view.region.output_,
      internal_: view.region.internal_,
      addr: view.addr
  };

  assign asked           = of_q.slot;
  assign view_read.valid = state_q == LOOK_UP;
  assign view_read.data  = '{of: of_q, index: index_q};
  // Calls that wait for a running job do not count as activity.
  assign idle            = picking && &(queues_empty | pending & ~free) && &jobs_empty
                        && !call.valid && !result.valid;

  always_ff @(posedge clk) begin
    gone_q <= gone;
    unique case (state_q)
      PICK: begin
        index_q     <= '0;
        begun_q     <= 1'b0;
        cancelled_q <= 1'b0;
        odd_q       <= cancel.data.odd;
        late_q      <= cancel.data.late;
        if (cancel.valid) begin
          of_q    <= cancel.data.of;
          state_q <= CANCEL;
        end else begin
          of_q     <= '{slot: picked, number: '0};
          socket_q <= chosen;
          if (|chosen) state_q <= SEVERAL ? CHOOSE : LOOK_UP;
        end
      end
      CHOOSE: begin
        of_q.number <= number;
        state_q     <= !(|ready) ? PICK : LONG_SET_UP && |(first & in_chain) ? STEP : LOOK_UP;
      end
      STEP: state_q <= STEPPED;
      STEPPED: begin
        index_q <= call_q.part.first_region;
        state_q <= LOOK_UP;
      end
      CANCEL: begin
        cancelled_q <= 1'b1;
        socket_q    <= '0;
        state_q     <= |named ? DROP : PICK;
      end
      LOOK_UP: if (view_read.ready) state_q <= LOOKED_UP;
      LOOKED_UP:
      if (found) begin
        index_q <= index_q + 1'b1;
        begun_q <= 1'b1;
        state_q <= dead ? DROP : job_beat.last ? PICK : LOOK_UP;
      end
      default: if (outcome[SOCKETS].ready) state_q <= PICK;  // DROP
    endcase
    if (starts) tag_q <= tag_q + 1'b1;
    if (rst) begin
      state_q <= PICK;
      tag_q   <= '0;
    end
  end

  // ---- sockets ----
  for (genvar i = 0; i < SOCKETS; i++) begin : g_socket
    stream_if #(.T(stored_job_t)) beats (), stored ();
    logic     running_q, running_odd_q, abort_q, abort_late_q, ended_q;
    part_t    running_part_q;
    context_t running_of_q;
    tag_t     own_tag_q;
    window_t  window_q;

    wire begins = starts && starting[i];
    wire ends = ended_q || state_q == DROP && socket_q[i];

    wire comes = call.valid && call.data.socket == 4'(i);
    if (SEVERAL) begin : g_several
      rpc_queue #(.QPS(QPS)) queue (
          .clk, .rst, .joins(comes), .joining(call.data.of.slot), .out(turn[i]), .serve(state_q == CHOOSE && socket_q[i]), .served(of_q.slot),
          .begins(|ready), .more(|(ready & (ready - 1'b1))), .ends, .empty(queues_empty[i])
      );
    end else begin : g_one
      stream_if #(.T(slot_t)) in ();
      assign in.valid = comes;
      assign in.data  = call.data.of.slot;
      stream_fifo #(.T(slot_t), .DEPTH(QPS)) queue (.clk, .rst, .in, .out(turn[i]), .empty(queues_empty[i]));
      always_ff @(posedge clk) if (!rst) assert (!comes || in.ready);
    end
    assign pending[i]    = turn[i].valid;
    assign next[i]       = turn[i].data;
    assign turn[i].ready = picking && chosen[i];

    if (SEVERAL) begin : g_previous
      typedef logic [$clog2(QPS)-1:0] slot_index_t;
      (* ram_style = "distributed" *) number_t numbers[QPS];
      always_ff @(posedge clk) if (choosing && socket_q[i]) numbers[slot_index_t'(of_q.slot)] <= number;
      assign previous[i] = numbers[slot_index_t'(of_q.slot)];
    end else begin : g_previous
      assign previous[i] = '0;
    end

    assign beats.valid = beat && socket_q[i];
    assign beats.data  = stored_job_t'(job_beat);
    stream_fifo #(.T(stored_job_t), .DEPTH(2 ** $clog2(MAX_REGIONS))) jobs (
        .clk, .rst, .in(beats), .out(stored), .empty(jobs_empty[i])
    );
    assign job[i].valid = stored.valid;
    assign job[i].data  = job_t'(stored.data);
    assign stored.ready = job[i].ready;

    // When a job's result arrives, the whole job was taken.
    assign free[i]   = !running_q && !paused[i];
    assign running[i] = running_q;
    assign busy[i]   = running_q || paused[i] || !queues_empty[i] || state_q == CHOOSE && socket_q[i];
    assign window[i] = window_q;
    assign abort[i]  = abort_q;
    wire ours = running_q && !ended_q && done[i].data.tag == own_tag_q;
    assign outcome[i].valid = done[i].valid && ours;
    // A socket does not know why its job is cancelled.
    wire [6:0] code = abort_late_q && done[i].data.code == RESULT_CANCELLED ? RESULT_DEADLINE : done[i].data.code;
    assign outcome[i].data  = '{
        result: '{of: running_of_q, code: code},
        odd: running_odd_q,
        number: running_part_q.number,
        more: LONG_SET_UP && running_part_q.more
    };
    assign done[i].ready    = outcome[i].ready || !ours;

    wire closes = closing.valid && closing.slot == running_of_q.slot;
    wire cancels = SEVERAL && state_q == CANCEL && running_of_q == of_q && running_odd_q == odd_q;
    always_ff @(posedge clk) begin
      if (begins) running_of_q <= start;
      if (beat && socket_q[i]) begin
        own_tag_q     <= tag_q;
        running_odd_q <= call_q.odd;
        running_part_q <= call_q.part;
        window_q      <= '{base: page_addr(view.grant.base), size: page_addr(view.grant.pages)};
      end
      ended_q <= outcome[i].valid && outcome[i].ready;
      if (running_q && (closes || cancels)) abort_q <= 1'b1;
      if (running_q && cancels && !abort_q) abort_late_q <= late_q;
      if (begins) running_q <= 1'b1;
      else if (ends) begin
        running_q <= 1'b0;
        abort_q   <= 1'b0;
        abort_late_q <= 1'b0;
        window_q  <= '0;
      end
      if (rst) begin
        running_q <= 1'b0;
        ended_q   <= 1'b0;
        abort_q   <= 1'b0;
        abort_late_q <= 1'b0;
        window_q  <= '0;
      end
    end

    always_ff @(posedge clk) if (!rst) assert (!beats.valid || beats.ready);
  end

  // ---- telemetry ----
  function automatic socket_number_t number_of(logic [SOCKETS-1:0] one_hot);
    socket_number_t at;
    at = '0;
    for (int unsigned i = 0; i < SOCKETS; i++) if (one_hot[i]) at |= socket_number_t'(i);
    return at;
  endfunction

  logic [SOCKETS-1:0] ended;
  for (genvar i = 0; i < SOCKETS; i++) begin : g_ended
    assign ended[i] = outcome[i].valid && outcome[i].ready;
  end
  socket_number_t named_at;
  always_comb begin
    named_at = '0;
    for (int unsigned c = 0; c < CONTEXTS; c++) if (named[c]) named_at |= sockets[c];
  end
  always_ff @(posedge clk) begin
    if (starts) drop_at_q <= number_of(starting);
    else if (state_q == CANCEL) drop_at_q <= named_at;
    progress <= '{
        arrives: call.valid,
        arrives_at: call.data.socket,
        arriving: call.data.of,
        begins: starts,
        begins_at: number_of(starting),
        beginning: start,
        ends: ended != '0,
        ends_at: number_of(ended),
        leaves: state_q == DROP && outcome[SOCKETS].ready,
        leaves_at: drop_at_q
    };
    if (rst) progress <= '0;
  end

  // ---- results ----
  assign outcome[SOCKETS].valid = state_q == DROP;
  wire [6:0] drop_code = cancelled_q ? cancel_code(late_q) : RESULT_SOCKET_UNAVAIL;
  assign outcome[SOCKETS].data  = '{result: '{of: of_q, code: drop_code}, default: '0};
  assign outcome[SOCKETS+1].valid = refusal.valid;
  assign outcome[SOCKETS+1].data  = '{result: refusal.data, default: '0};
  assign refusal.ready            = outcome[SOCKETS+1].ready;
  stream_arbiter #(.T(outcome_t), .N(SOCKETS + 2)) arbiter (.clk, .rst, .in(outcome), .last('1), .out(result));
endmodule
