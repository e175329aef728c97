// SPDX-License-Identifier: Apache-2.0

// N clients share a server that answers each command once, in order: commands go through a fair arbiter, each answer goes back to
// the client whose command it answers. Up to DEPTH commands are under way; then, or when the server stops, the clients stop.
// Latency 1 cycle there, 0 back; one command a cycle. A client that does not take its answer holds up the others.
module stream_share #(
    parameter type COMMAND = logic,
    parameter type ANSWER = logic,
    parameter int unsigned N = 2,
    parameter int unsigned DEPTH = 4   // power of two
) (
    input logic      clk,
    input logic      rst,
    stream_if.sink   command[N],       // COMMAND
    stream_if.source answer[N],        // ANSWER
    stream_if.source to_server,        // COMMAND
    stream_if.sink   from_server       // ANSWER
);
  localparam int unsigned INDEX_W = N > 1 ? $clog2(N) : 1;
  typedef logic [INDEX_W-1:0] index_t;
  typedef struct packed {
    index_t index;
    COMMAND command;
  } named_t;

  stream_if #(.T(named_t)) named[N] ();
  stream_if #(.T(named_t)) chosen ();
  stream_if #(.T(index_t)) asked ();
  stream_if #(.T(index_t)) next ();

  for (genvar i = 0; i < N; i++) begin : g_client
    assign named[i].valid   = command[i].valid;
    assign named[i].data    = '{index: index_t'(i), command: command[i].data};
    assign command[i].ready = named[i].ready;

    assign answer[i].valid = from_server.valid && next.valid && next.data == index_t'(i);
    assign answer[i].data  = from_server.data;
  end

  stream_arbiter #(.T(named_t), .N(N)) arbiter (.clk, .rst, .in(named), .last('1), .out(chosen));
  stream_fifo #(.T(index_t), .DEPTH(DEPTH)) under_way (.clk, .rst, .in(asked), .out(next), .empty());

  assign to_server.valid = chosen.valid && asked.ready;
  assign to_server.data  = chosen.data.command;
  assign chosen.ready    = to_server.ready && asked.ready;
  assign asked.valid     = chosen.valid && to_server.ready;
  assign asked.data      = chosen.data.index;

  logic [N-1:0] taken;
  for (genvar i = 0; i < N; i++) begin : g_taken
    assign taken[i] = answer[i].valid && answer[i].ready;
  end
  assign from_server.ready = |taken;
  assign next.ready        = |taken;

  // An answer comes for a command that was given.
  always_ff @(posedge clk) if (!rst) assert (!from_server.valid || next.valid);
endmodule
