// SPDX-License-Identifier: Apache-2.0

// Dispatches calls to sockets: one call per socket at a time, further calls wait in order of arrival (at most one per connection). A job is
// read from the table of regions into a queue of its socket, so that a slow socket does not delay the others. The window of a socket is the
// extent of its call's connection, from before the first beat of the job until its result.
//
// First beat of a job 5 cycles after `call`, the others 4 cycles apart; a result leaves 1 cycle after `done`. A call of a closed connection
// is not started, and a running one is cancelled: its socket ends it at once.
module rpc_dispatch
  import memory_pkg::*;
  import compute_pkg::*;
  import rpc_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned SOCKETS = 1,
    parameter int unsigned MAX_REGIONS = 32
) (
    input  logic         clk,
    input  logic         rst,
    input  closing_t     closing,          // a connection closes now
    output slot_t        asked,            // this connection
    input  logic         gone,             // is closed. Same cycle
    stream_if.sink       call,             // call_t; there is an entry for one of every connection
    stream_if.sink       refusal,          // result_t: of calls without a socket; arbitrated with the results
    stream_if.source     view_read,        // region_key_t
    input  logic         view_valid,
    input  region_view_t view,
    stream_if.source     job[SOCKETS],     // job_t
    output window_t [SOCKETS-1:0] window,
    output logic [SOCKETS-1:0] cancel,     // the connection of the running job is closed
    output logic [SOCKETS-1:0] busy,       // a call waits or runs
    stream_if.sink       done[SOCKETS],    // done_t; ignored if its tag is not the job's
    stream_if.source     result,           // result_t
    output logic         idle
);
  typedef enum logic [1:0] {
    PICK,
    LOOK_UP,   // read a region
    LOOKED_UP,
    DROP       // the connection is closed
  } state_e;

  state_e             state_q;
  call_t              call_q;
  logic [SOCKETS-1:0] socket_q;            // one-hot, of call_q
  region_index_t      index_q;
  tag_t               tag_q;

  stream_if #(.T(call_t)) waiting[SOCKETS] ();
  stream_if #(.T(result_t)) outcome[SOCKETS+2] ();
  logic [SOCKETS-1:0] pending, free, chosen, call_ready, queues_empty, jobs_empty;
  call_t              next[SOCKETS];

  // ---- selection of a call: round robin over the free sockets ----
  wire picking = state_q == PICK;
  round_robin #(.N(SOCKETS)) turns (.clk, .rst, .request(pending & free), .take(picking), .grant(chosen));

  call_t picked;
  always_comb begin
    picked = '0;
    for (int unsigned i = 0; i < SOCKETS; i++) if (chosen[i]) picked |= next[i];
  end

  logic gone_q;
  wire found = state_q == LOOKED_UP && view_valid;
  wire dead = gone_q && index_q == '0;  // not started; if the connection closes later, the job is cancelled
  wire beat = found && !dead;
  wire job_t job_beat = '{
      tag: tag_q,
      function_code: call_q.function_code,
      user: call_q.user,
      last: index_q == view.grant.last,
      input_: view.region.input_,
      output_: view.region.output_,
      internal_: view.region.internal_,
      addr: view.addr,
      size: view.region.size
  };

  assign asked           = call_q.slot;
  assign view_read.valid = state_q == LOOK_UP;
  assign view_read.data  = '{slot: call_q.slot, index: index_q};
  assign call.ready      = &call_ready;
  // Calls that wait for a running job do not count as activity.
  assign idle            = picking && &(queues_empty | pending & ~free) && &jobs_empty && !call.valid && !result.valid;

  always_ff @(posedge clk) begin
    gone_q <= gone;
    unique case (state_q)
      PICK: begin
        call_q   <= picked;
        socket_q <= chosen;
        index_q  <= '0;
        if (|chosen) begin
          tag_q   <= tag_q + 1'b1;
          state_q <= LOOK_UP;
        end
      end
      LOOK_UP: if (view_read.ready) state_q <= LOOKED_UP;
      LOOKED_UP:
      if (found) begin
        index_q <= index_q + 1'b1;
        state_q <= dead ? DROP : job_beat.last ? PICK : LOOK_UP;
      end
      DROP: if (outcome[SOCKETS].ready) state_q <= PICK;
      default: state_q <= PICK;
    endcase
    if (rst) begin
      state_q <= PICK;
      tag_q   <= '0;
    end
  end

  // ---- sockets ----
  for (genvar i = 0; i < SOCKETS; i++) begin : g_socket
    stream_if #(.T(call_t)) queued ();
    stream_if #(.T(job_t)) beats ();
    logic    running_q, cancel_q;
    slot_t   slot_q;
    tag_t    own_tag_q;
    window_t window_q;

    assign queued.valid  = call.valid && call.data.socket == 4'(i);
    assign queued.data   = call.data;
    assign call_ready[i] = queued.ready;
    stream_fifo #(.T(call_t), .DEPTH(QPS)) queue (
        .clk, .rst, .in(queued), .out(waiting[i]), .empty(queues_empty[i])
    );
    assign pending[i]       = waiting[i].valid;
    assign next[i]          = waiting[i].data;
    assign waiting[i].ready = picking && chosen[i];

    assign beats.valid = beat && socket_q[i];
    assign beats.data  = job_beat;
    stream_fifo #(.T(job_t), .DEPTH(2 ** $clog2(MAX_REGIONS))) jobs (
        .clk, .rst, .in(beats), .out(job[i]), .empty(jobs_empty[i])
    );

    // When a job's result arrives, the whole job was taken.
    assign free[i]   = !running_q;
    assign busy[i]   = running_q || !queues_empty[i];
    assign window[i] = window_q;
    assign cancel[i] = cancel_q;
    wire ours = running_q && done[i].data.tag == own_tag_q;
    assign outcome[i].valid = done[i].valid && ours;
    assign outcome[i].data  = '{slot: slot_q, code: done[i].data.code};
    assign done[i].ready    = outcome[i].ready || !ours;

    always_ff @(posedge clk) begin
      if (waiting[i].valid && waiting[i].ready) slot_q <= waiting[i].data.slot;
      if (beat && socket_q[i]) begin
        own_tag_q <= tag_q;
        window_q  <= '{base: page_addr(view.grant.base), size: page_addr(view.grant.pages)};
      end
      if (running_q && closing.valid && closing.slot == slot_q) cancel_q <= 1'b1;
      if (waiting[i].valid && waiting[i].ready) running_q <= 1'b1;
      else if (outcome[i].valid && outcome[i].ready || state_q == DROP && socket_q[i]) begin
        running_q <= 1'b0;
        cancel_q  <= 1'b0;
        window_q  <= '0;
      end
      if (rst) begin
        running_q <= 1'b0;
        cancel_q  <= 1'b0;
        window_q  <= '0;
      end
    end

    always_ff @(posedge clk) if (!rst) assert (!beats.valid || beats.ready);
  end

  wire unused = &{1'b0, call_q.socket};

  // ---- results ----
  assign outcome[SOCKETS].valid = state_q == DROP;
  assign outcome[SOCKETS].data  = '{slot: call_q.slot, code: RESULT_SOCKET_UNAVAIL};
  assign outcome[SOCKETS+1].valid = refusal.valid;
  assign outcome[SOCKETS+1].data  = refusal.data;
  assign refusal.ready            = outcome[SOCKETS+1].ready;
  stream_arbiter #(.T(result_t), .N(SOCKETS + 2)) arbiter (.clk, .rst, .in(outcome), .last('1), .out(result));
endmodule
