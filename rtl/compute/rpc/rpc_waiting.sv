// SPDX-License-Identifier: Apache-2.0

// The calls that wait for a socket: at most one of each context.
//
// A call is added by `call` and removed by `take`. `waits`, `sockets`, `odd` and `in_chain` show those of the connection `asked` in the
// same cycle; a call is visible from the cycle after it was added. `details` are those of the context `of`, one cycle later. With one
// context the user knows which calls wait: `waits` is always set. After reset it clears its tables for QPS cycles, during which nothing
// may be added.
module rpc_waiting
  import compute_pkg::*;
  import rpc_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned CONTEXTS = 1,
    parameter bit CHAINS = 1'b0       // calls may be steps of a chain
) (
    input  logic     clk,
    input  logic     rst,
    input  logic     add,
    input  call_t    call,
    input  slot_t    asked,
    output logic [CONTEXTS-1:0] waits,
    output logic [CONTEXTS-1:0][3:0] sockets,  // valid if it waits
    output logic [CONTEXTS-1:0] odd,
    output logic [CONTEXTS-1:0] in_chain,      // it is a step
    input  logic [CONTEXTS-1:0] take,          // these calls of connection `asked` wait no more
    input  context_t of,
    output call_t    details                   // odd, function_code, user and part
);
  typedef logic [$clog2(QPS)-1:0] slot_index_t;
  typedef logic [$clog2(QPS*CONTEXTS)-1:0] index_t;

  typedef struct packed {
    part_t          part;            // first, so that a device without chains stores the rest alone
    logic           odd;
    function_code_t function_code;
    logic [23:0]    user;
  } details_t;

  localparam int unsigned DETAILS_W = $bits(details_t) - (CHAINS ? 0 : $bits(part_t));
  (* ram_style = "block" *) logic [DETAILS_W-1:0] calls[QPS*CONTEXTS];
  details_t details_q;
  always_ff @(posedge clk) begin
    if (add) calls[index_t'(context_index(call.of, CONTEXTS))] <= DETAILS_W'({call.part, call.odd, call.function_code, call.user});
    details_q <= details_t'(calls[index_t'(context_index(of, CONTEXTS))]);
  end
  assign details = '{
      odd: details_q.odd, function_code: details_q.function_code, user: details_q.user, part: details_q.part, default: '0
  };

  if (CONTEXTS > 1) begin : g_contexts
    logic        clearing_q;
    slot_index_t clear_q;
    always_ff @(posedge clk) begin
      clear_q <= clear_q + 1'b1;
      if (rst) begin
        clearing_q <= 1'b1;
        clear_q    <= '0;
      end else if (clear_q == slot_index_t'(QPS - 1)) clearing_q <= 1'b0;
    end
    always_ff @(posedge clk) if (!rst) assert (!add || !clearing_q);

    for (genvar i = 0; i < CONTEXTS; i++) begin : g_context
      // A call waits if one more was added than taken, modulo 2.
      localparam int unsigned SOCKET_W = CHAINS ? 6 : 5;
      (* ram_style = "distributed" *) logic [SOCKET_W-1:0] socket[QPS];   // call.part.chain, call.odd, call.socket
      (* ram_style = "distributed" *) logic added[QPS];
      (* ram_style = "distributed" *) logic removed[QPS];
      wire slot_index_t at = slot_index_t'(asked);
      wire slot_index_t adding = slot_index_t'(call.of.slot);
      wire adds = add && call.of.number == number_t'(i);
      assign waits[i]   = added[at] != removed[at];
      assign {in_chain[i], odd[i], sockets[i]} = 6'(socket[at]);
      always_ff @(posedge clk) if (adds) socket[adding] <= SOCKET_W'({call.part.chain, call.odd, call.socket});
      always_ff @(posedge clk) if (clearing_q || adds) added[clearing_q ? clear_q : adding] <= !clearing_q && !removed[adding];
      always_ff @(posedge clk) if (clearing_q || take[i]) removed[clearing_q ? clear_q : at] <= !clearing_q && !removed[at];
      always_ff @(posedge clk) if (!rst) assert (!adds || added[adding] == removed[adding]);
    end
  end else begin : g_one
    assign waits   = '1;
    assign sockets = '0;
    assign odd     = '0;
    assign in_chain = '0;
    wire unused = &{1'b0, rst, asked, take, call.socket, call.odd};
  end
endmodule
