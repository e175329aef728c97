// SPDX-License-Identifier: Apache-2.0

// Store of received frames. A frame goes in whole while it comes, before anything is known about it. With its verdict comes which part of
// it is handed on, moved to byte 0 of a beat, if any; the rest leaves no trace.
//
// One beat a cycle in and out, no bubble between the parts of different frames, verdicts back to back. Latency 2 cycles from the
// verdict to the first beat out (block RAM, then the beat behind it). `in` cannot stop: the user lets in no more than `room` and
// `frames_room` allow.
module packet_store
  import packet_pkg::*;
  import packet_rx_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned DEPTH = 512,               // beats, a power of two
    parameter int unsigned FRAMES = 32,               // a power of two
    parameter bit          IPV6 = 1'b1                // the places behind IPv6 headers are used
) (
    input  logic                   clk,
    input  logic                   rst,
    input  logic                   in_valid,
    input  logic [DATA_W-1:0]      in_data,
    input  logic                   in_last,           // the frame has ended, with or without this beat
    input  extent_t                extent,            // the part of the frame that gets its verdict in the next cycle
    input  logic                   verdict,           // on the oldest frame that has none,
    input  logic [$clog2(DEPTH):0] beats,             // which has so many beats:
    input  logic                   wanted,            // its part is handed on, if that has a length
    axis_if.source                 out,
    output logic [$clog2(DEPTH):0] room,              // free beats, two cycles late
    output logic [$clog2(FRAMES):0] frames_room,      // so many frames may begin, two cycles late
    output logic                   empty
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);
  localparam int unsigned PTR_W = $clog2(DEPTH);
  localparam int unsigned FRAME_W = $clog2(FRAMES);

  typedef logic [PTR_W:0] ptr_t;
  typedef logic [FRAME_W:0] frame_t;
  typedef logic [16-LANE_W:0] count_t;                // of beats
  typedef logic [LANE_W-1:0] lane_t;
  typedef logic [DATA_W-1:0] data_t;

  if (2 ** PTR_W != DEPTH || 2 ** FRAME_W != FRAMES) begin : g_bad
    $fatal(1, "packet_store: DEPTH and FRAMES must be powers of two");
  end

  // ---- the shifter: two steps. Without IPv6 both have four choices, so that each takes one LUT a bit. Sums of both are all places ----
  localparam int unsigned COARSES = IPV6 ? 5 : 4;
  localparam logic [4:0][7:0] COARSE = IPV6 ? {8'(50 % BYTES), 8'(34 % BYTES), 8'(18 % BYTES), 8'd2, 8'd0}
                                            : {8'd0, 8'(54 % BYTES), 8'(42 % BYTES), 8'd2, 8'd0};
  localparam logic [3:0][7:0] FINE = IPV6 ? {8'd12, 8'd8, 8'd4, 8'd0} : {8'd16, 8'd8, 8'd4, 8'd0};
  localparam int unsigned FINE_MAX = IPV6 ? 12 : 16;

  typedef struct packed {
    logic [2:0] coarse;
    logic [1:0] fine;
  } shift_t;

  function automatic shift_t shift_of(int unsigned bytes);
    shift_t s;
    s = '0;
    for (int unsigned f = 0; f < COARSES; f++)
      for (int unsigned n = 0; n < 4; n++) if (32'(COARSE[f]) + 32'(FINE[n]) == bytes) s = '{coarse: 3'(f), fine: 2'(n)};
    return s;
  endfunction

  function automatic logic is_used(int unsigned place);
    return IPV6 || place < IPV4_PLACES || place == 32'(RX_PLACE_0);
  endfunction

  for (genvar p = 0; p < RX_PLACES; p++) begin : g_place
    localparam int unsigned SHIFT = 32'(RX_PLACE_BYTES[p]) % BYTES;
    localparam shift_t STEPS = shift_of(SHIFT);
    if (is_used(p) && 32'(COARSE[STEPS.coarse]) + 32'(FINE[STEPS.fine]) != SHIFT) begin : g_bad
      $fatal(1, "packet_store: a place that the shifter does not reach");
    end
  end

  // ---- how a part is read ----
  typedef struct packed {
    ptr_t   first;                                    // beat of the store
    count_t more;                                     // beats behind it
    logic   joins;                                    // the last of these makes no beat of its own
    lane_t  top;                                      // last byte of the last beat out
    shift_t shift;
  } job_t;

  job_t   plan_q, came;                               // `first` of plan_q: within the frame
  logic   some_q;                                     // it has a length
  ptr_t   base_q;                                     // begin of the oldest frame without a verdict
  count_t out_more;
  lane_t  top, lane;
  wire    joins = lane != '0 && top >= lane_t'(-lane);
  assign {out_more, top} = 17'(extent.length) - 17'd1;

  always_comb begin
    lane = '0;
    for (int unsigned p = 0; p < RX_PLACES; p++) if (is_used(p) && extent.place == rx_place_t'(p)) lane |= lane_t'(RX_PLACE_BYTES[p]);
    came = plan_q;
    came.first = base_q + plan_q.first;
  end

  always_ff @(posedge clk) begin
    some_q <= extent.length != '0;
    plan_q <= '{first: '0, more: out_more + count_t'(joins), joins: joins, top: top, shift: '0};
    for (int unsigned p = 0; p < RX_PLACES; p++)
      if (is_used(p) && extent.place == rx_place_t'(p)) begin
        plan_q.first <= ptr_t'(32'(RX_PLACE_BYTES[p]) / BYTES);
        plan_q.shift <= shift_of(32'(RX_PLACE_BYTES[p]) % BYTES);
      end
  end

  // ---- frames, and jobs that wait ----
  (* ram_style = "block" *) data_t frames[DEPTH];
  (* ram_style = "distributed" *) logic [$bits(job_t)-1:0] jobs[FRAMES];

  ptr_t   write_q;
  frame_t job_write_q, job_read_q;
  job_t   job;
  wire    comes = verdict && wanted && some_q;
  wire    none_waits = job_write_q == job_read_q;
  wire    job_valid = comes || !none_waits;
  assign job = none_waits ? came : job_t'(jobs[job_read_q[FRAME_W-1:0]]);

  always_ff @(posedge clk) if (in_valid) frames[write_q[PTR_W-1:0]] <= in_data;
  always_ff @(posedge clk) if (comes) jobs[job_write_q[FRAME_W-1:0]] <= came;

  // ---- read, a beat a cycle, job after job ----
  typedef struct packed {
    logic   last;
    logic   joins;
    lane_t  top;
    shift_t shift;
  } mark_t;

  data_t  read_q, held_q;
  logic   read_valid_q, held_valid_q;
  mark_t  read_mark_q, held_mark_q;
  logic   reading_q;                                  // in the middle of a job
  ptr_t   next_q;                                     // its next beat,
  count_t more_q;                                     // and how many there are
  wire    takes = !held_valid_q || out.tready;        // the beat that was read goes on
  wire    steps = !read_valid_q || takes;
  wire    begins = steps && !reading_q && job_valid;
  wire    ptr_t address = reading_q ? next_q : job.first;

  always_ff @(posedge clk) if (steps) read_q <= frames[address[PTR_W-1:0]];

  always_ff @(posedge clk) begin
    if (steps) begin
      next_q <= address + 1'b1;
      more_q <= reading_q ? more_q - 1'b1 : job.more;
      read_mark_q.last <= reading_q ? more_q == count_t'(1) : job.more == '0;
      if (!reading_q) begin
        read_mark_q.joins <= job.joins;
        read_mark_q.top   <= job.top;
        read_mark_q.shift <= job.shift;
      end
    end
    if (rst) begin
      write_q      <= '0;
      base_q       <= '0;
      job_write_q  <= '0;
      job_read_q   <= '0;
      reading_q    <= 1'b0;
      read_valid_q <= 1'b0;
    end else begin
      if (in_valid) write_q <= write_q + 1'b1;
      if (verdict) base_q <= base_q + beats;
      if (comes) job_write_q <= job_write_q + 1'b1;
      if (begins) job_read_q <= job_read_q + 1'b1;
      if (steps) begin
        reading_q    <= reading_q ? more_q != count_t'(1) : job_valid && job.more != '0;
        read_valid_q <= reading_q || job_valid;
      end
    end
  end

  // ---- realign: a beat out begins in the beat that is held and ends in the one that was read behind it ----
  wire ends = held_mark_q.last || (read_mark_q.last && read_mark_q.joins);
  wire used_up = held_valid_q && !held_mark_q.last && ends;  // all of the beat that was read is in the beat out

  wire [2*DATA_W+FINE_MAX*8-1:0] both = {(FINE_MAX * 8)'(0), read_q, held_q};
  logic [DATA_W+FINE_MAX*8-1:0]  moved;
  always_comb begin
    moved = '0;
    for (int unsigned f = 0; f < COARSES; f++) if (held_mark_q.shift.coarse == 3'(f)) moved |= both[32'(COARSE[f])*8+:DATA_W+FINE_MAX*8];
    out.tdata = '0;
    for (int unsigned n = 0; n < 4; n++) if (held_mark_q.shift.fine == 2'(n)) out.tdata |= moved[32'(FINE[n])*8+:DATA_W];
    for (int unsigned i = 0; i < BYTES; i++) out.tkeep[i] = i == 0 || !ends || lane_t'(i) <= held_mark_q.top;
  end

  assign out.tvalid = held_valid_q && (held_mark_q.last || read_valid_q);
  assign out.tlast  = ends;
  assign out.tuser  = 1'b0;

  always_ff @(posedge clk) begin
    if (read_valid_q && takes) begin
      held_q      <= read_q;
      held_mark_q <= read_mark_q;
    end
    if (rst) held_valid_q <= 1'b0;
    else if (read_valid_q && takes) held_valid_q <= !used_up;
    else if (out.tvalid && out.tready) held_valid_q <= 1'b0;
  end

  // ---- room: whatever is older than the next beat to read is free ----
  ptr_t oldest_q;
  always_ff @(posedge clk) begin
    oldest_q <= rst ? '0 : reading_q ? next_q : none_waits ? base_q : job.first;
    room     <= rst ? '0 : ptr_t'(DEPTH) - (write_q - oldest_q);
  end

  // Frames that have come, but their part has not begun to leave and they are not without one. That a part has begun is counted a cycle
  // late: the consumer of `out` decides it.
  frame_t frames_q;
  logic   begun_q;
  wire    without = verdict && !comes;
  always_ff @(posedge clk) begin
    begun_q     <= !rst && begins;
    frames_q    <= rst ? '0 : frames_q + frame_t'(in_last) - frame_t'(begun_q) - frame_t'(without);
    frames_room <= rst ? '0 : frame_t'(FRAMES) - frames_q;
  end

  assign empty = write_q == base_q && none_waits && !reading_q && !read_valid_q && !held_valid_q;

  always_ff @(posedge clk)
    if (!rst) begin
      assert (ptr_t'(write_q - oldest_q) <= ptr_t'(DEPTH));
      if (comes) assert (ptr_t'(plan_q.first + ptr_t'(plan_q.more)) < beats);
    end
endmodule
