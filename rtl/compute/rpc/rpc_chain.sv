// SPDX-License-Identifier: Apache-2.0

// Runs chains (docs/reference/calls.md): begins the first step of a chain, and each further one when the step before it has succeeded.
// Each step is a call of its own to rpc_dispatch. Any other outcome is the result of the call and passes in the same cycle.
//
// A chain is cancelled in any of three places: rpc_dispatch has a step that waits, or one that runs, or the chain is here. So each `cancel`
// that rpc_dispatch takes is noted, and compared in the cycle in which a step is given to it.
//
// A step leaves on `call` 3 cycles after the outcome of the one before.
module rpc_chain
  import compute_pkg::*;
  import rpc_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned CONTEXTS = 1,
    parameter int unsigned SOCKETS = 1
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        step_write,   // a step of a context that has no call
    input  step_write_t step,
    stream_if.sink      begins,       // chain_t; always accepted
    stream_if.sink      outcome,      // outcome_t
    stream_if.source    result,       // result_t: those that end a call
    input  logic        cancels,      // pulse, not with `begins`: rpc_dispatch takes
    input  cancel_t     cancel,
    stream_if.source    call,         // call_t
    stream_if.source    refusal,      // result_t: of a chain that ends between two steps
    input  function_set_t [SOCKETS-1:0] functions,  // of each socket
    input  logic [SOCKETS-1:0] busy,  // sockets with a call
    output logic        idle
);
  localparam int unsigned ALL = QPS * CONTEXTS;
  typedef logic [$clog2(ALL)-1:0] index_t;

  function automatic index_t index_of(context_t of);
    return index_t'(context_index(of, CONTEXTS));
  endfunction

  typedef enum logic [1:0] {
    IDLE,
    READ,     // the step
    CHOOSE,   // a socket for it
    ISSUE
  } state_e;

  state_e      state_q;
  chain_t      chain_q;
  step_index_t number_q;
  step_t       step_q;

  stream_if #(.T(chain_t)) begun ();
  logic begun_empty;
  stream_fifo #(.T(chain_t), .DEPTH(ALL)) begun_chains (.clk, .rst, .in(begins), .out(begun), .empty(begun_empty));

  (* ram_style = "block" *) logic [$bits(step_t)-1:0] steps[ALL*MAX_STEPS];
  always_ff @(posedge clk) begin
    if (step_write) steps[{index_of(step.of), step.number}] <= step.step;
    step_q <= steps[{index_of(chain_q.of), number_q}];
  end

  // The newest cancel since the chain began. A context that has none is not looked at.
  typedef struct packed {
    logic valid;
    logic odd;
    logic late;
  } note_t;
  (* ram_style = "distributed" *) logic [$bits(note_t)-1:0] notes[ALL];
  always_ff @(posedge clk) begin
    if (begins.valid || cancels) begin
      notes[index_of(begins.valid ? begins.data.of : cancel.of)] <= begins.valid ? '0 : {1'b1, cancel.odd, cancel.late};
    end
  end
  note_t note;
  assign note = note_t'(notes[index_of(chain_q.of)]);
  // In the cycle of ISSUE it is known whether there was one up to the cycle before.
  logic cancelled_q;
  wire cancels_now = cancels && cancel.of == chain_q.of && cancel.odd == chain_q.odd;
  always_ff @(posedge clk) cancelled_q <= cancels_now || note.valid && note.odd == chain_q.odd;

  logic       known;
  logic [3:0] socket;
  rpc_choice #(.SOCKETS(SOCKETS)) choice (
      .clk, .rst, .functions, .busy, .function_code(step_q.function_code), .known, .socket, .take(call.valid && call.ready)
  );

  // ---- outcomes ----
  wire goes_on = outcome.data.more && outcome.data.result.code == RESULT_SUCCESS;
  wire continues = outcome.valid && goes_on;
  assign result.valid  = outcome.valid && !goes_on;
  assign result.data   = outcome.data.result;
  assign outcome.ready = goes_on ? state_q == IDLE : result.ready;
  assign begun.ready   = state_q == IDLE && !continues;

  wire issues = state_q == ISSUE;
  assign call.valid = issues && !cancelled_q && known;
  assign call.data  = '{
      socket: socket,
      of: chain_q.of,
      odd: chain_q.odd,
      function_code: step_q.function_code,
      user: step_q.user,
      part: '{
          chain: 1'b1, more: !step_q.last, number: number_q,
          first_region: step_q.first_region, last_region: step_q.last_region
      }
  };
  assign refusal.valid = issues && (cancelled_q || !known);
  assign refusal.data  = '{of: chain_q.of, code: cancelled_q ? cancel_code(note.late) : RESULT_UNKNOWN_FUNCTION};
  assign idle          = state_q == IDLE && begun_empty && !outcome.valid;

  always_ff @(posedge clk) begin
    unique case (state_q)
      IDLE: begin
        chain_q  <= continues ? '{of: outcome.data.result.of, odd: outcome.data.odd} : begun.data;
        number_q <= continues ? outcome.data.number + 1'b1 : '0;
        if (continues || begun.valid) state_q <= READ;
      end
      READ:   state_q <= CHOOSE;
      CHOOSE: state_q <= ISSUE;
      ISSUE:  if (call.valid ? call.ready : refusal.ready) state_q <= IDLE;
    endcase
    if (rst) state_q <= IDLE;
  end

  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (!begins.valid || begins.ready);
      assert (!begins.valid || !cancels);
    end
  end
endmodule
