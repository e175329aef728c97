// SPDX-License-Identifier: Apache-2.0

// Computes the ICRC of frames (IBTA annex A17.3.3) and puts it in its place, where the frame has zeros so far.
// One beat a cycle, no bubble. Every beat leaves LATENCY cycles after it came at the earliest, so that no frame is torn
// apart by the wait for its ICRC. Holds 33 beats when `out` stops, then stops `in`.
// A beat with tuser keeps it, and its part of the ICRC is inverted: the frame is bad for whoever looks at either.
module icrc_insert
  import crc32_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input logic                        clk,
    input logic                        rst,
    axis_if.sink                       in,
    input logic                        icrc_here,  // the ICRC begins in this beat
    input logic [$clog2(DATA_W/8)-1:0] icrc_lane,  // at this byte: 2 modulo 4, as it always is behind 14 bytes of Ethernet header
    axis_if.source                     out
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);
  localparam int unsigned GROUPS = BYTES / 4;
  localparam int unsigned DEPTH = 32;
  localparam int unsigned STATE_CYCLES = 3;                  // icrc_state
  localparam int unsigned UNWIND_CYCLES = (LANE_W + 1) / 2;  // crc32_unwind
  localparam int unsigned LATENCY = STATE_CYCLES + UNWIND_CYCLES + 1;

  typedef logic [LANE_W-1:0] lane_t;
  typedef logic [LANE_W-3:0] group_t;

  // ---- frames wait ----
  typedef struct packed {
    logic              icrc_here;
    group_t            group;  // the ICRC begins at byte 4 * group + 2
    logic              last;
    logic              bad;
    logic [BYTES-1:0]  keep;
    logic [DATA_W-1:0] data;
  } beat_t;

  stream_if #(.T(beat_t)) beat_in ();
  stream_if #(.T(beat_t)) beat_out ();
  logic beats_empty;

  assign beat_in.valid = in.tvalid;
  assign beat_in.data  = '{icrc_here: icrc_here, group: icrc_lane[LANE_W-1:2], last: in.tlast, bad: in.tuser, keep: in.tkeep, data: in.tdata};
  assign in.tready     = beat_in.ready;

  stream_fifo #(.T(beat_t), .DEPTH(DEPTH)) beats (.clk, .rst, .in(beat_in), .out(beat_out), .empty(beats_empty));

  // ---- while their ICRC is computed, up to the end of the beat, then back to the byte where it begins ----
  logic   take, first_q;
  assign  take = in.tvalid && in.tready;
  always_ff @(posedge clk) begin
    if (rst) first_q <= 1'b1;
    else if (take) first_q <= in.tlast;
  end

  logic   state_valid, icrc_valid;
  crc32_t state, icrc_state_value;
  lane_t  zeros_q[STATE_CYCLES];
  always_ff @(posedge clk) begin
    zeros_q[0] <= -icrc_lane;
    for (int unsigned i = 1; i < STATE_CYCLES; i++) zeros_q[i] <= zeros_q[i-1];
  end

  icrc_state #(.DATA_W(DATA_W)) crc (
      .clk, .rst,
      .in_valid(take), .in_first(first_q), .in_last(icrc_here), .in_data(in.tdata), .in_keep('1),
      .out_valid(state_valid), .out_state(state)
  );
  crc32_unwind #(.COUNT_W(LANE_W)) unwind (
      .clk, .rst,
      .in_valid(state_valid), .in_state(state), .in_zeros(zeros_q[STATE_CYCLES-1]),
      .out_valid(icrc_valid), .out_state(icrc_state_value)
  );

  stream_if #(.T(crc32_t)) icrc_in ();
  stream_if #(.T(crc32_t)) icrc_out ();
  logic icrcs_empty;

  assign icrc_in.valid = icrc_valid;
  assign icrc_in.data  = ~icrc_state_value;

  stream_fifo #(.T(crc32_t), .DEPTH(DEPTH)) icrcs (.clk, .rst, .in(icrc_in), .out(icrc_out), .empty(icrcs_empty));

  // ---- release: one token a beat, as late as its ICRC ----
  logic [LATENCY-2:0]       token_q;
  logic [$clog2(DEPTH)+1:0] tokens_q;
  wire fire = out.tvalid && out.tready;

  always_ff @(posedge clk) begin
    if (rst) begin
      token_q  <= '0;
      tokens_q <= '0;
    end else begin
      token_q  <= {token_q[LATENCY-3:0], take};
      tokens_q <= tokens_q + $bits(tokens_q)'(token_q[LATENCY-2]) - $bits(tokens_q)'(fire);
    end
  end

  // ---- insert: little-endian, each byte of the ICRC has its place in every group of four bytes ----
  beat_t  beat;
  crc32_t icrc;
  logic   rest_q;  // the ICRC's upper half is still to come, at byte 0
  assign beat = beat_out.data;
  assign icrc = icrc_out.data ^ {32{beat.bad}};

  wire splits = beat.icrc_here && beat.group == group_t'(GROUPS - 1);

  for (genvar g = 0; g < GROUPS; g++) begin : g_insert
    wire low = beat.icrc_here && beat.group == group_t'(g);
    wire high = g == 0 ? rest_q : beat.icrc_here && beat.group == group_t'(g - 1);
    assign out.tdata[g*32+:32] = beat.data[g*32+:32]
                                 | {icrc[15:0] & {16{low}}, icrc[31:16] & {16{high}}};
  end

  assign out.tvalid = beat_out.valid && tokens_q != '0;
  assign out.tkeep  = beat.keep;
  assign out.tlast  = beat.last;
  assign out.tuser  = beat.bad;

  assign beat_out.ready = fire;
  assign icrc_out.ready = fire && (rest_q || (beat.icrc_here && !splits));

  always_ff @(posedge clk) begin
    if (rst) rest_q <= 1'b0;
    else if (fire) rest_q <= splits;
  end

  always_ff @(posedge clk)
    if (!rst) begin
      assert (!icrc_in.valid || icrc_in.ready);
      if (take && icrc_here) assert (icrc_lane[1:0] == 2'd2);
      if (out.tvalid) assert (!beat.icrc_here || icrc_out.valid);
      if (tokens_q != '0) assert (!beats_empty);
      if (rest_q) assert (!icrcs_empty);
    end
endmodule
