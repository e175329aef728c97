// SPDX-License-Identifier: Apache-2.0

// A queue of connections for one server, in which each is at most once, and not while it is served: so each waits for every other one once.
//
// `join` puts a connection in, unless it is in the queue or served. If it comes while it is served (from `serve` to `ends`), or in the cycle
// of `serve`, it is put in when that has ended; and so is one that `serve` says has more to do. `serve` begins with the connection that left
// the queue last; it is served if `begins`.
//
// One join a cycle, in any cycle; latency as that of stream_fifo. After reset it clears its tables for QPS cycles, during which nothing may
// join.
module rpc_queue
  import rpc_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input  logic     clk,
    input  logic     rst,
    input  logic     joins,
    input  slot_t    joining,
    stream_if.source out,     // slot_t
    input  logic     serve,   // pulse, when nothing is served: the turn of
    input  slot_t    served,  // this connection
    input  logic     begins,  // with `serve`: is used
    input  logic     more,    // with `begins`: and it is to join again when it ends
    input  logic     ends,    // pulse; if it lasts, its first cycle counts
    output logic     empty    // and nothing will join by itself
);
  typedef logic [$clog2(QPS)-1:0] index_t;

  logic  serving_q, again_q, rejoins_q, slots_empty;
  slot_t served_q;                       // is served, or rejoins

  wire is_served = serve ? joining == served : (serving_q || rejoins_q) && joining == served_q;
  wire holds = joins && is_served;       // it joins later
  wire rejoining = rejoins_q && !joins;
  assign empty = slots_empty && !rejoins_q;

  always_ff @(posedge clk) begin
    if (serve) served_q <= served;
    if (serve) again_q <= more || holds;
    else if (ends) again_q <= 1'b0;
    else if (holds) again_q <= 1'b1;
    if (rst) begin
      serving_q <= 1'b0;
      rejoins_q <= 1'b0;
    end else begin
      if (serve) serving_q <= begins;
      else if (ends) serving_q <= 1'b0;
      rejoins_q <= serve && holds && !begins || ends && (again_q || holds) || rejoins_q && joins;
    end
  end

  // ---- who is in the queue: a connection has entered once more than it has left, modulo 2 ----
  (* ram_style = "distributed" *) logic entered[QPS];
  (* ram_style = "distributed" *) logic left[QPS];
  logic   clearing_q;
  index_t clear_q;
  wire index_t joining_at = index_t'(joining);
  wire index_t rejoining_at = index_t'(served_q);
  wire index_t leaving_at = index_t'(out.data);
  wire leaves = out.valid && out.ready;
  wire enters = joins && !is_served && entered[joining_at] == left[joining_at];

  always_ff @(posedge clk) begin
    clear_q <= clear_q + 1'b1;
    if (rst) begin
      clearing_q <= 1'b1;
      clear_q    <= '0;
    end else if (clear_q == index_t'(QPS - 1)) clearing_q <= 1'b0;
  end
  always_ff @(posedge clk) begin
    if (clearing_q || enters || rejoining) begin
      entered[clearing_q ? clear_q : joins ? joining_at : rejoining_at] <= !clearing_q && !left[joins ? joining_at : rejoining_at];
    end
  end
  always_ff @(posedge clk) if (clearing_q || leaves) left[clearing_q ? clear_q : leaving_at] <= !clearing_q && !left[leaving_at];

  stream_if #(.T(slot_t)) in ();
  assign in.valid = enters || rejoining;
  assign in.data  = joins ? joining : served_q;
  stream_fifo #(.T(slot_t), .DEPTH(QPS)) slots (.clk, .rst, .in, .out, .empty(slots_empty));

  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (!in.valid || in.ready);
      assert (!joins || !clearing_q);
      assert (!serve || !serving_q);
      assert (!rejoining || entered[rejoining_at] == left[rejoining_at]);
    end
  end
endmodule
