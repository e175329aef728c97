// SPDX-License-Identifier: Apache-2.0

// Joins packets to one: those of `in` up to the one whose note has `ends`, byte after byte, with their first byte in lane OFFSET of
// the first beat. A note of a packet that was not read (`none`) has no packet on `in`; if it ends a group the group is incomplete.
// One beat a cycle, one more where a packet's last beat overflows; latency 1 cycle. When `out` stops, `in` does.
module axis_gather #(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned OFFSET = 0,
    parameter type BEAT = logic          // of `out`: {none, error, last, tkeep, tdata}
) (
    input  logic     clk,
    input  logic     rst,
    axis_if.sink     in,
    stream_if.sink   note,               // gather_note_t, for each packet
    stream_if.source out
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);
  typedef logic [LANE_W:0] count_t;      // 0 to BYTES

  logic [BYTES-1:0][7:0] hold_q, rotated, merged, data;
  logic [LANE_W-1:0] fill_q;             // lanes in use
  logic [BYTES-1:0]  below, keep;        // lanes in use; lanes of the beat that is made
  logic              rest_q, error_q;    // what is held is all that is left of a group
  count_t            added;
  logic [LANE_W+1:0] total;

  wire free = !out.valid || out.ready;
  wire empty = note.valid && note.data.none;
  wire here = note.valid && !note.data.none && in.tvalid && !rest_q;
  wire step = free && (here || rest_q || (empty && note.data.ends));
  wire ends = here && in.tlast && note.data.ends;
  wire fills = total >= (LANE_W + 2)'(BYTES);
  wire over = total > (LANE_W + 2)'(BYTES);
  wire last = rest_q || empty || (ends && !over);

  always_comb begin
    added = '0;
    for (int unsigned i = 0; i < BYTES; i++) if (in.tkeep[i] && (i == BYTES - 1 || !in.tkeep[(i+1)%BYTES])) added |= count_t'(i + 1);
  end
  assign total = (LANE_W + 2)'(fill_q) + (LANE_W + 2)'(added);

  byte_funnel #(.DATA_W(DATA_W)) rotate (.low(in.tdata), .high(in.tdata), .amount(-fill_q), .out(rotated));
  assign below = ~(BYTES'('1) << fill_q);
  for (genvar i = 0; i < BYTES; i++) begin : g_lane
    assign merged[i] = below[i] ? hold_q[i] : rotated[i];
  end
  assign data = rest_q ? hold_q : merged;
  assign keep = rest_q ? below : fills ? '1 : ~(BYTES'('1) << total[LANE_W-1:0]);

  assign in.tready  = free && note.valid && !note.data.none && !rest_q;
  assign note.ready = free && !rest_q && (note.data.none || (in.tvalid && in.tlast));

  always_ff @(posedge clk) begin
    if (free) begin
      if (step) out.data <= BEAT'({empty && !rest_q, error_q || (here && in.tlast && in.tuser), last, keep, data});
      if (here) begin
        hold_q  <= fills ? rotated : merged;
        fill_q  <= ends && !over ? LANE_W'(OFFSET) : total[LANE_W-1:0];
        error_q <= (error_q || (in.tlast && in.tuser)) && !(ends && !over);
        rest_q  <= ends && over;
      end else if (rest_q || (empty && note.data.ends)) begin
        fill_q  <= LANE_W'(OFFSET);
        error_q <= 1'b0;
        rest_q  <= 1'b0;
      end
    end
    if (rst) begin
      out.valid <= 1'b0;
      fill_q    <= LANE_W'(OFFSET);
      error_q   <= 1'b0;
      rest_q    <= 1'b0;
    end else if (free) begin
      out.valid <= step && (rest_q || empty || fills || ends);
    end
  end
endmodule
