// SPDX-License-Identifier: Apache-2.0

// Computes the ICRC of frames (IBTA annex A17.3.3) and inserts it where the frame has zeros. One beat a cycle, no bubble. Every beat leaves
// at least LATENCY cycles after it arrived, so that no frame is interrupted by the wait for its ICRC. Holds 32 or 33 beats when `out`
// stalls, then stalls `in`. `in.tready` is registered, `out` is not: whoever comes next has a register. A beat with tuser keeps it, and its part of the ICRC is inverted: the
// frame is invalid for a receiver that checks either.
module icrc_insert
  import crc32_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input logic                        clk,
    input logic                        rst,
    axis_if.sink                       in,
    input logic                        icrc_here,  // the ICRC begins in this beat
    input logic [$clog2(DATA_W/8)-1:0] icrc_lane,  // at this byte: 2 modulo 4, always the case after 14 bytes of Ethernet header
    input logic                        icrc_frame, // with each beat: its frame has an ICRC,
    input logic                        v6,         // and is of IPv6
    axis_if.source                     out,
    output logic                       out_icrc_frame // likewise
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);
  localparam int unsigned GROUPS = BYTES / 4;
  localparam int unsigned GROUP_W = LANE_W - 2;
  localparam int unsigned DEPTH = DATA_W < 128 ? 16 : 32;      // more than LATENCY
  localparam int unsigned PTR_W = $clog2(DEPTH);
  localparam int unsigned STATE_CYCLES = 2;                    // icrc_state
  localparam int unsigned UNWIND_STAGES = (GROUP_W + 1) / 2;   // crc32_unwind
  localparam int unsigned LATENCY = STATE_CYCLES + UNWIND_STAGES + 1;

  typedef logic [GROUP_W-1:0] group_t;
  typedef logic [PTR_W:0] ptr_t;

  typedef struct packed {
    logic              icrc_frame;
    logic              icrc_here;
    group_t            group;  // the ICRC begins at byte 4 * group + 2
    logic              last;
    logic              bad;
    logic [BYTES-1:0]  keep;
    logic [DATA_W-1:0] data;
  } beat_t;

  // ---- frames wait for their ICRC ----
  (* ram_style = "distributed" *) logic [$bits(beat_t)-1:0] beats[DEPTH];
  (* ram_style = "distributed" *) logic [31:0] icrcs[DEPTH];

  ptr_t  write_q, read_q;
  beat_t came, beat;
  group_t group;
  wire   take = in.tvalid && in.tready;
  logic  fire;  // a beat leaves

  assign group = icrc_lane[LANE_W-1:2];
  assign came  = '{icrc_frame: icrc_frame, icrc_here: icrc_here, group: group, last: in.tlast, bad: in.tuser, keep: in.tkeep, data: in.tdata};

  // Space for one beat after the one that may arrive in this cycle.
  logic  room_q;
  assign in.tready = room_q;
  always_ff @(posedge clk) room_q <= !rst && ptr_t'(write_q - read_q) <= ptr_t'(DEPTH - 2);

  always_ff @(posedge clk) if (take) beats[write_q[PTR_W-1:0]] <= came;
  assign beat = beat_t'(beats[read_q[PTR_W-1:0]]);

  // ---- ICRC: computed up to the end of the beat, then unwound to the byte where it begins ----
  logic first_q;
  always_ff @(posedge clk) begin
    if (rst) first_q <= 1'b1;
    else if (take) first_q <= in.tlast;
  end

  logic   state_valid, icrc_valid;
  crc32_t state, unwound;
  group_t behind_q[STATE_CYCLES];  // groups of four bytes after the ICRC's
  always_ff @(posedge clk) begin
    behind_q[0] <= ~group;
    for (int unsigned i = 1; i < STATE_CYCLES; i++) behind_q[i] <= behind_q[i-1];
  end

  // At least two bytes always follow the ICRC's beginning.
  icrc_state #(.DATA_W(DATA_W), .BACK(2)) crc (
      .clk, .rst,
      .in_valid(take), .in_first(first_q), .in_last(icrc_here), .in_v6(v6), .in_data(in.tdata),
      .out_valid(state_valid), .out_state(state)
  );
  crc32_unwind #(.COUNT_W(GROUP_W), .STEP(4)) unwind (
      .clk, .rst,
      .in_valid(state_valid), .in_state(state), .in_count(behind_q[STATE_CYCLES-1]),
      .out_valid(icrc_valid), .out_state(unwound)
  );

  // Never more ICRCs than beats.
  ptr_t icrc_write_q, icrc_read_q;
  logic icrc_used;
  always_ff @(posedge clk) if (icrc_valid) icrcs[icrc_write_q[PTR_W-1:0]] <= ~unwound;

  // ---- release: one token a beat, at the time of its ICRC ----
  logic [LATENCY-3:0] token_q;
  ptr_t               tokens_q;

  always_ff @(posedge clk) begin
    token_q[0] <= take && !rst;
    for (int unsigned i = 1; i < LATENCY - 2; i++) token_q[i] <= token_q[i-1] && !rst;
    if (rst) begin
      write_q      <= '0;
      read_q       <= '0;
      tokens_q     <= '0;
      icrc_write_q <= '0;
      icrc_read_q  <= '0;
    end else begin
      write_q      <= write_q + ptr_t'(take);
      read_q       <= read_q + ptr_t'(fire);
      tokens_q     <= tokens_q + ptr_t'(token_q[LATENCY-3]) - ptr_t'(fire);
      icrc_write_q <= icrc_write_q + ptr_t'(icrc_valid);
      icrc_read_q  <= icrc_read_q + ptr_t'(icrc_used);
    end
  end

  // ---- insert: little-endian, each byte of the ICRC has a fixed position in every group of four bytes ----
  crc32_t icrc;
  logic   rest_q;  // the ICRC's upper half follows, at byte 0
  logic [DATA_W-1:0] inserted;
  assign icrc = icrcs[icrc_read_q[PTR_W-1:0]] ^ {32{beat.bad}};

  wire splits = beat.icrc_here && beat.group == group_t'(GROUPS - 1);

  for (genvar g = 0; g < GROUPS; g++) begin : g_insert
    wire low = beat.icrc_here && beat.group == group_t'(g);
    wire high = g == 0 ? rest_q : beat.icrc_here && beat.group == group_t'(g - 1);
    assign inserted[g*32+:32] = beat.data[g*32+:32] | {icrc[15:0] & {16{low}}, icrc[31:16] & {16{high}}};
  end

  assign fire      = out.tvalid && out.tready;
  assign icrc_used = fire && (rest_q || (beat.icrc_here && !splits));

  always_ff @(posedge clk) begin
    if (rst) rest_q <= 1'b0;
    else if (fire) rest_q <= splits;
  end

  assign out.tvalid = tokens_q != '0;
  assign out.tdata  = inserted;
  assign out.tkeep  = beat.keep;
  assign out.tlast  = beat.last;
  assign out.tuser  = beat.bad;
  assign out_icrc_frame = beat.icrc_frame;

  always_ff @(posedge clk)
    if (!rst) begin
      if (take && icrc_here) assert (icrc_lane[1:0] == 2'd2);
      if (fire && (beat.icrc_here || rest_q)) assert (icrc_read_q != icrc_write_q);
      assert (tokens_q <= ptr_t'(write_q - read_q));
      assert (ptr_t'(write_q - read_q) <= ptr_t'(DEPTH));
    end
endmodule
