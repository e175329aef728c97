// SPDX-License-Identifier: Apache-2.0

// Cuts copies into pieces that end where the source has a multiple of PIECE bytes, so that each is one burst to read. A copy of length 0, and a
// bad one, is one piece without a read. Behind a bad one nothing is taken until `give_up`.
//
// Latency 1 cycle from `copy` to `piece`, one piece a cycle, a cycle of pause between two copies. While `give_up` is high what is left of a copy and further copies
// are forgotten; a piece that was offered stays. Stalls while `piece` stalls.
module copy_cutter
  import memory_pkg::*;
  import copy_pkg::*;
#(
    parameter int unsigned PIECE = PIECE_BYTES    // a power of two, at most PIECE_BYTES
) (
    input  logic     clk,
    input  logic     rst,
    input  logic     give_up,
    stream_if.sink   copy,     // copy_t
    stream_if.source piece,    // copy_piece_t
    output addr_t    source,   // of the piece
    output logic     idle
);
  localparam int unsigned PIECE_W = $clog2(PIECE);
  typedef logic [PIECE_W:0] span_t;

  copy_t now_q;
  logic  active_q, halted_q;
  span_t room, span;
  logic  last;

  assign room = span_t'(PIECE) - span_t'(now_q.source[PIECE_W-1:0]);
  assign last = now_q.bad || now_q.length <= 32'(room);
  assign span = now_q.bad ? '0 : last ? span_t'(now_q.length) : room;

  assign copy.ready  = !active_q && (!halted_q || give_up);
  assign piece.valid = active_q;
  assign source      = now_q.source;
  always_comb begin
    piece.data.bad         = now_q.bad;
    piece.data.last        = last;
    piece.data.report      = now_q.report || now_q.bad;
    piece.data.interrupts   = now_q.interrupts;
    piece.data.tag         = now_q.tag;
    piece.data.length      = piece_size_t'(span);
    piece.data.destination = now_q.destination;
  end
  assign idle = !active_q;

  always_ff @(posedge clk) begin
    if (copy.ready) now_q <= copy.data;
    else if (piece.ready) begin
      now_q.source      <= {now_q.source[ADDR_W-1:PIECE_W] + 1'b1, PIECE_W'(0)};
      now_q.destination <= now_q.destination + addr_t'(room);
      now_q.length      <= now_q.length - 32'(room);
    end
    if (rst) begin
      active_q <= 1'b0;
      halted_q <= 1'b0;
    end else begin
      if (copy.ready) active_q <= copy.valid && !give_up;
      else if (piece.ready) active_q <= !last && !give_up;
      if (give_up) halted_q <= 1'b0;
      else if (copy.ready && copy.valid) halted_q <= copy.data.bad;
    end
  end
endmodule
