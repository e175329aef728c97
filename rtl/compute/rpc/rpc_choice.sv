// SPDX-License-Identifier: Apache-2.0

// Chooses the socket for a function, one cycle after it is asked for: of several sockets that have it, the first without a call; if
// all have one, round robin. A socket that was chosen out of turn also moves to the end of the round-robin order.
module rpc_choice
  import compute_pkg::*;
#(
    parameter int unsigned SOCKETS = 1
) (
    input  logic           clk,
    input  logic           rst,
    input  function_set_t [SOCKETS-1:0] functions,  // of each socket
    input  logic [SOCKETS-1:0] busy,                // sockets with a call
    input  function_code_t function_code,
    output logic           known,   // a socket has the function that was asked for in the cycle before:
    output logic [3:0]     socket,  // this one
    input  logic           take     // it gets a call; no other function counts in this cycle
);
  logic [3:0]         socket_d;
  logic [SOCKETS-1:0] having, in_turn;
  always_comb begin
    for (int unsigned i = 0; i < SOCKETS; i++) having[i] = functions[i][function_code];
    socket_d = '0;
    for (int unsigned i = SOCKETS; i > 0; i--) if (in_turn[i-1]) socket_d = 4'(i - 1);
    for (int unsigned i = SOCKETS; i > 0; i--) if (having[i-1] && !busy[i-1]) socket_d = 4'(i - 1);
  end
  always_ff @(posedge clk) begin
    known  <= |having;
    socket <= socket_d;
  end

  round_robin #(.N(SOCKETS)) turns (.clk, .rst, .request(take ? SOCKETS'(1) << socket : having), .take, .grant(in_turn));
endmodule
