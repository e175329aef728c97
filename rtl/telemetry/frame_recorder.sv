// SPDX-License-Identifier: Apache-2.0

// Records the frames of one stream, without an effect on it: the first `mode.snap` bytes of each in rows of block RAM, one a beat, and an
// entry that says when, how long, and where. Both memories are rings. A beat of every cycle is recorded.
//
// The rows of a frame are written as it passes; whether it stays is known at its end. So in ring mode the oldest frame loses up to a
// frame's rows before its place is needed: a frame of which the first row is more than ROWS - (rows of a frame) behind `rows` is not whole.
// A frame that began before `records` is not recorded. Recorded frames are told (`recorded`) one cycle after their last beat, as are
// those that match. `row` and `entry` follow `row_at` and `entry_at` by one cycle.
module frame_recorder
  import trace_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ROWS = 512,        // a power of two, below 2^16
    parameter int unsigned FRAMES = 256,      // likewise
    parameter int unsigned PEER_AT = 26       // frame_match
) (
    input  logic         clk,
    input  logic         rst,
    input  logic [47:0]  now,
    axis_if.monitor      seen,
    input  logic         start,               // forget everything
    input  logic         records,
    input  trace_mode_t  mode,
    input  trace_match_t match,
    output logic         recorded,            // pulse: a frame,
    output logic         matched,             // that fits
    output logic [15:0]  frames,              // recorded since the start, modulo 2^16
    output logic [15:0]  rows,                // likewise
    output logic [15:0]  missed,              // frames for which there was no room; no more than 0xffff
    input  logic [$clog2(ROWS)-1:0]   row_at,
    output logic [DATA_W-1:0]         row,
    input  logic [$clog2(FRAMES)-1:0] entry_at,
    output trace_entry_t              entry
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);
  localparam int unsigned ROW_W = $clog2(ROWS);
  localparam int unsigned FRAME_W = $clog2(FRAMES);
  localparam int unsigned BEAT_W = 16 - LANE_W;

  typedef logic [LANE_W-1:0] lane_t;
  typedef logic [BEAT_W-1:0] beats_t;

  // The number of the last lane of a keep that is contiguous from lane 0.
  function automatic lane_t last_lane(logic [BYTES-1:0] keep);
    lane_t at;
    at = '0;
    for (int unsigned k = LANE_W; k > 0; k--) at[k-1] = keep[at|lane_t'(1<<(k-1))];
    return at;
  endfunction

  // ---- a frame as it passes ----
  logic        in_frame_q = 1'b0;   // kept in reset, too: the rest of a frame is not taken for one
  logic        taken_q;      // this frame is recorded, if it stays
  beats_t      beats_q;      // before this one
  logic [15:0] row_q, begin_q;
  logic [47:0] ticks_q;
  wire beat  = seen.tvalid && seen.tready;
  wire first = !in_frame_q;
  wire taken = first ? records : taken_q;
  wire beats_t beats = first ? '0 : beats_q;
  wire beats_t snap_beats = beats_t'((mode.snap + 14'(BYTES - 1)) >> LANE_W);
  wire kept = beat && taken && beats < snap_beats;

  // ---- its end, one cycle later ----
  logic  ended_q, bad_q;
  logic [BYTES-1:0] keep_q;
  logic  fits;
  wire   wanted = ended_q && records && (!mode.matching || fits);
  wire   room = mode.ring || (row_q <= 16'(ROWS) && frames < 16'(FRAMES));
  assign recorded = wanted && room;
  assign matched  = ended_q && records && fits;

  frame_match #(.DATA_W(DATA_W), .PEER_AT(PEER_AT)) filter (
      .clk, .beat, .first, .data(seen.tdata), .keep(seen.tkeep), .match, .fits
  );

  wire [15:0] begins = recorded ? row_q : rows;          // where the next frame begins
  wire [15:0] write_row = first ? begins : row_q;
  wire in_memory = mode.ring || write_row < 16'(ROWS);

  always_ff @(posedge clk) begin
    ended_q <= beat && seen.tlast && taken && !rst && !start;
    if (beat) begin
      in_frame_q <= !seen.tlast;
      taken_q    <= taken;
      beats_q    <= &beats ? beats : beats + 1'b1;
      row_q      <= write_row + 16'(kept);
      bad_q      <= seen.tuser;
      keep_q     <= seen.tkeep;
      if (first) begin
        begin_q <= begins;
        ticks_q <= now;
      end
    end
    if (recorded) begin
      rows   <= row_q;
      frames <= frames + 1'b1;
    end
    if (wanted && !room) missed <= missed + 16'(!(&missed));
    if (rst || start) begin
      taken_q <= 1'b0;
      rows    <= '0;
      frames  <= '0;
      missed  <= '0;
    end
  end

  // ---- memories ----
  (* ram_style = "block" *) logic [DATA_W-1:0] row_memory[ROWS];
  always_ff @(posedge clk) if (kept && in_memory) row_memory[write_row[ROW_W-1:0]] <= seen.tdata;
  always_ff @(posedge clk) row <= row_memory[row_at];

  wire trace_entry_t ended = '{
      bad: bad_q,
      length: &beats_q ? '1 : 16'({beats_q - 1'b1, last_lane(keep_q)} + 1'b1),
      row: begin_q,
      ticks: ticks_q
  };
  (* ram_style = "block" *) logic [$bits(trace_entry_t)-1:0] entry_memory[FRAMES];
  always_ff @(posedge clk) if (recorded) entry_memory[frames[FRAME_W-1:0]] <= ended;
  always_ff @(posedge clk) entry <= entry_memory[entry_at];
endmodule
