// SPDX-License-Identifier: Apache-2.0

// Selective repeat (docs/reference/extensions.md): a bitmap for each QP of the 127 packets after the expected one that were placed ahead of
// a gap. One bit a packet, at its PSN modulo 128, in block RAM; all bits of a QP without the extension are 0.
//
//   cycle 0: read_slot, psn, next        cycle 1: the run        cycle 2: present, expected, left; write
//
// One operation every 2 cycles, also on the same QP, as in roce_qp_rx. The run of set bits from `next` on is found by a carry: a one added
// at its first bit propagates through the ones and stops at the first zero. If the carry leaves the top of the bitmap, the run continues at
// bit 0, where another one is added.
module roce_responder_window
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_rx_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input  logic      clk,
    input  logic      rst,
    // cycle 0
    input  qp_index_t read_slot,
    input  psn_t      psn,           // of the packet
    input  psn_t      next,          // PSN after it
    // cycle 2
    output logic      present,       // the bit of `psn` is set
    output psn_t      expected,      // the first PSN from `next` on whose bit is not set
    output logic      left,          // bits behind that one are set
    input  logic      write,         // with one of the following, or none
    input  qp_index_t write_slot,
    input  logic      clear,         // clear the bitmap
    input  logic      remember,      // set the bit of `psn`
    input  logic      advance        // clear the bits before `expected`
);
  localparam int unsigned WINDOW = 128;
  localparam int unsigned SLOT_W = $clog2(QPS);
  localparam int unsigned PLACE_W = $clog2(WINDOW);
  typedef logic [SLOT_W-1:0]  slot_t;
  typedef logic [WINDOW-1:0]  window_t;
  typedef logic [PLACE_W-1:0] place_t;

  (* ram_style = "block" *) logic [WINDOW-1:0] windows[QPS];

  // ---- read; the newest write is forwarded, as in roce_qp_rx ----
  logic    pending_q, held_valid_q, forward_q;
  slot_t   held_slot_q;
  window_t held_q, stored_q, now, new_window;

  always_ff @(posedge clk) stored_q <= windows[slot_t'(read_slot)];
  always_ff @(posedge clk) if (pending_q) windows[held_slot_q] <= held_q;
  always_ff @(posedge clk) begin
    pending_q <= write && !rst;
    forward_q <= write ? slot_t'(write_slot) == slot_t'(read_slot) : held_valid_q && held_slot_q == slot_t'(read_slot);
    if (write) begin
      held_slot_q  <= slot_t'(write_slot);
      held_q       <= new_window;
      held_valid_q <= 1'b1;
    end
    if (rst) held_valid_q <= 1'b0;
  end

  assign now = forward_q ? held_q : stored_q;

  // ---- cycle 1: the carry ----
  psn_t    next_1;
  window_t psn_bit_1, next_bit_1;
  always_ff @(posedge clk) begin
    next_1     <= next;
    psn_bit_1  <= window_t'(1) << place_t'(psn);
    next_bit_1 <= window_t'(1) << place_t'(next);
  end

  logic    wraps;
  window_t sum, round;                // flipped in the run and in the zero behind it
  assign {wraps, sum} = {1'b0, now} + {1'b0, next_bit_1};
  assign round        = now + 1'b1;

  window_t now_q, kept_q, stop_q, psn_bit_q;
  psn_t    next_q;
  logic [23-PLACE_W:0] round_q;       // upper part of `next` after a wrap
  logic    wrapped_q, present_q;

  always_ff @(posedge clk) begin
    now_q     <= now;
    kept_q    <= now & sum & (wraps ? round : '1);
    stop_q    <= ~now & (wraps ? round : sum);   // one-hot: the first zero
    wrapped_q <= wraps;
    psn_bit_q <= psn_bit_1;
    present_q <= forward_q ? |(held_q & psn_bit_1) : |(stored_q & psn_bit_1);
    next_q    <= next_1;
    round_q   <= next_1[23:PLACE_W] + 1'b1;
  end

  // ---- cycle 2 ----
  place_t stop_place;
  always_comb begin
    stop_place = '0;
    for (int unsigned i = 0; i < WINDOW; i++) if (stop_q[i]) stop_place |= place_t'(i);
  end

  assign expected = {wrapped_q ? round_q : next_q[23:PLACE_W], stop_place};
  assign left     = |kept_q;
  assign present  = present_q;

  always_comb begin
    if (clear) new_window = '0;
    else if (advance) new_window = kept_q;
    else new_window = remember ? now_q | psn_bit_q : now_q;
  end
endmodule
