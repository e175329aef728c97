// SPDX-License-Identifier: Apache-2.0

// A queue of connections, in which each is at most once: one that joins while it is in the queue keeps its place.
//
// One join a cycle, always accepted; latency as that of stream_fifo. If ONCE is 0 the user ensures that a connection is in the queue at
// most once. After reset it clears its tables for QPS cycles, during which nothing may join.
module rpc_queue
  import rpc_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter bit ONCE = 1'b1
) (
    input  logic     clk,
    input  logic     rst,
    input  logic     joins,   // this connection
    input  slot_t    joining,
    stream_if.source out,     // slot_t
    output logic     empty
);
  typedef logic [$clog2(QPS)-1:0] index_t;

  logic present;
  stream_if #(.T(slot_t)) in ();
  assign in.valid = joins && !present;
  assign in.data  = joining;
  stream_fifo #(.T(slot_t), .DEPTH(QPS)) slots (.clk, .rst, .in, .out, .empty);

  if (ONCE) begin : g_once
    // It is present if it has entered once more than it has left, modulo 2.
    (* ram_style = "distributed" *) logic entered[QPS];
    (* ram_style = "distributed" *) logic left[QPS];
    logic   clearing_q;
    index_t clear_q;
    wire index_t at = index_t'(joining);
    wire index_t leaving = index_t'(out.data);
    wire leaves = out.valid && out.ready;
    assign present = entered[at] != left[at];

    always_ff @(posedge clk) begin
      clear_q <= clear_q + 1'b1;
      if (rst) begin
        clearing_q <= 1'b1;
        clear_q    <= '0;
      end else if (clear_q == index_t'(QPS - 1)) clearing_q <= 1'b0;
    end
    always_ff @(posedge clk) if (clearing_q || in.valid) entered[clearing_q ? clear_q : at] <= !clearing_q && !left[at];
    always_ff @(posedge clk) if (clearing_q || leaves) left[clearing_q ? clear_q : leaving] <= !clearing_q && !left[leaving];
    always_ff @(posedge clk) if (!rst) assert (!joins || !clearing_q);
  end else begin : g_always
    assign present = 1'b0;
  end

  always_ff @(posedge clk) if (!rst) assert (!in.valid || in.ready);
endmodule
