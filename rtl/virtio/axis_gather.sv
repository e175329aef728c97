// SPDX-License-Identifier: Apache-2.0

// Joins parts to a packet, which has its first byte in lane OFFSET of its first beat. A part is a packet on `in`, as it lies in memory:
// whole beats, of which those from lane `first` of the first one to lane `last` of the last one are its bytes. Those up to the part whose
// note has `ends` follow each other. From a beat with tuser on `error` is set, up to the last beat. A part that was not read (`none`) has no packet on `in`; if it ends a group the group is incomplete.
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
  typedef logic [LANE_W-1:0] lane_t;

  logic [BYTES-1:0][7:0] hold_q, rotated, merged, data;
  lane_t                 fill_q;         // lanes in use
  logic [BYTES-1:0]      below, keep;    // lanes in use; lanes of the beat that is made
  logic                  opens_q;        // the beat on `in` is the first of its part
  logic                  rest_q, error_q;// what is held is all that is left of a group
  lane_t                 amount;         // lane 0 of `out` has this one of `in`
  logic [LANE_W+1:0]     total;

  wire free = !out.valid || out.ready;
  wire empty = note.valid && note.data.none;
  wire here = note.valid && !note.data.none && in.tvalid && !rest_q;
  wire step = free && (here || rest_q || (empty && note.data.ends));
  wire ends = here && in.tlast && note.data.ends;
  wire fills = total >= (LANE_W + 2)'(BYTES);
  wire over = total > (LANE_W + 2)'(BYTES);
  wire last = rest_q || empty || (ends && !over);

  // Bytes before the part's first one are rotated to where those before it are held, or behind its last.
  wire lane_t first_lane = opens_q ? lane_t'(note.data.first) : '0;
  wire lane_t last_lane = in.tlast ? lane_t'(note.data.last) : '1;
  assign amount = first_lane - fill_q;
  assign total  = (LANE_W + 2)'(fill_q) + (LANE_W + 2)'(last_lane) + 1'b1 - (LANE_W + 2)'(first_lane);

  byte_funnel #(.DATA_W(DATA_W)) rotate (.low(in.tdata), .high(in.tdata), .amount, .out(rotated));
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
      if (step) out.data <= BEAT'({empty && !rest_q, error_q || (here && in.tuser), last, keep, data});
      if (here) begin
        hold_q  <= fills ? rotated : merged;
        fill_q  <= ends && !over ? LANE_W'(OFFSET) : total[LANE_W-1:0];
        error_q <= (error_q || in.tuser) && !(ends && !over);
        rest_q  <= ends && over;
      end else if (rest_q || (empty && note.data.ends)) begin
        fill_q  <= LANE_W'(OFFSET);
        error_q <= 1'b0;
        rest_q  <= 1'b0;
      end
    end
    if (rst) opens_q <= 1'b1;
    else if (in.tvalid && in.tready) opens_q <= in.tlast;
    if (rst) begin
      out.valid <= 1'b0;
      fill_q    <= LANE_W'(OFFSET);
      error_q   <= 1'b0;
      rest_q    <= 1'b0;
    end else if (free) begin
      out.valid <= step && (rest_q || empty || fills || ends);
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, in.tkeep};
endmodule
