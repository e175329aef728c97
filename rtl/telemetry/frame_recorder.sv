// SPDX-License-Identifier: Apache-2.0

// Says what of the frames of one stream is recorded, and where, without an effect on the stream: the first `snap_rows` beats of
// each as rows of a memory, and an entry that says when, how long, and where. Both memories are rings. A beat of every cycle is
// recorded.
//
// The rows of a frame are written as it passes; whether it stays is known at its end. So in ring mode the oldest frame loses up
// to a frame's rows before its place is needed: one whose first row is more than ROWS - snap_rows behind `rows` is not whole. A
// frame that began before `records` is not recorded. Frames that are recorded or match are told one cycle after their last beat.
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
    output logic         row_write,           // the beat that passes is row
    output logic [$clog2(ROWS)-1:0] row_at,
    output logic         recorded,            // pulse: a frame, as `entry`
    output trace_entry_t entry,
    output logic         matched,             // pulse: a frame that matches
    output logic [31:0]  frames,              // recorded since the start, modulo 2^32
    output logic [15:0]  rows,                // likewise, modulo 2^16
    output logic [15:0]  missed               // frames for which there was no room; no more than 0xffff
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);
  localparam int unsigned BEAT_W = 16 - LANE_W;

  typedef logic [LANE_W-1:0] lane_t;
  typedef logic [BEAT_W-1:0] beats_t;

  // The number of the last lane of a keep that is contiguous from lane 0: the half that it is in, the quarter, and so on.
  function automatic lane_t last_lane(logic [BYTES-1:0] keep);
    lane_t at;
    logic [BYTES-1:0] half;
    half = keep;
    for (int unsigned k = LANE_W; k > 0; k--) begin
      at[k-1] = half[1<<(k-1)];
      if (at[k-1]) half = half >> (1 << (k - 1));
    end
    return at;
  endfunction

  // ---- a frame as it passes ----
  logic        in_frame_q = 1'b0;   // kept in reset, too: the rest of a frame is not taken for one
  logic        taken_q;             // this frame is recorded, if it stays
  logic        over_q;              // some of it has no place
  beats_t      beats_q;             // before this one
  logic [15:0] row_q, begin_q;
  logic [47:0] ticks_q;
  wire beat  = seen.tvalid && seen.tready;
  wire first = !in_frame_q;
  wire taken = first ? records : taken_q;
  wire beats_t beats = first ? '0 : beats_q;
  wire kept = beat && taken && beats < beats_t'(mode.snap_rows);

  // ---- its end, one cycle later ----
  logic  ended_q, bad_q, fits;
  logic [BYTES-1:0] keep_q;
  wire   wanted = ended_q && records && (!mode.matching || fits);
  wire   room = mode.ring || !(over_q || frames[$clog2(FRAMES)]);   // without a ring neither goes on when it is full
  assign recorded = wanted && room;
  assign matched  = ended_q && records && fits;

  frame_match #(.DATA_W(DATA_W), .PEER_AT(PEER_AT)) filter (
      .clk, .beat, .first, .data(seen.tdata), .keep(seen.tkeep), .match, .fits
  );

  wire [15:0] begins = recorded ? row_q : rows;          // where the next frame begins
  wire [15:0] row    = first ? begins : row_q;
  wire over = row[$clog2(ROWS)] || (!first && over_q);
  assign row_write = kept && (mode.ring || !over);
  assign row_at    = row[$clog2(ROWS)-1:0];
  assign entry = '{
      bad: bad_q,
      length: &beats_q ? '1 : 16'({beats_q - 1'b1, last_lane(keep_q)} + 1'b1),
      row: begin_q,
      ticks: ticks_q
  };

  always_ff @(posedge clk) begin
    ended_q <= beat && seen.tlast && taken && !rst && !start;
    if (beat) begin
      in_frame_q <= !seen.tlast;
      taken_q    <= taken;
      beats_q    <= &beats ? beats : beats + 1'b1;
      row_q      <= row + 16'(kept);
      over_q     <= kept ? over : !first && over_q;
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
endmodule
