// SPDX-License-Identifier: Apache-2.0

// Checksums that a device completes for its driver (virtio 1.2, 5.1.6.2, VIRTIO_NET_F_CSUM): beside the store of frames to send it sums each
// frame from csum_start on, in which the driver has left the sum of the pseudo header, and puts the result into the frame that leaves the
// store. A result of 0 is sent as 0xffff, as UDP wants it (RFC 768).
//
// One beat a cycle on both sides. The sum of a frame is there 5 cycles after its last beat; `out` waits for it, and follows `in` by 1 cycle.
module virtio_net_csum
  import virtio_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned FRAMES = 32          // in the store, at most: a power of two
) (
    input  logic                clk,
    input  logic                rst,
    input  logic                sum_valid,      // a beat of a frame goes into the store,
    input  logic                sum_last,
    input  logic [DATA_W-1:0]   sum_data,
    input  logic [DATA_W/8-1:0] sum_keep,
    input  csum_ask_t           sum_ask,        // of the frame, from its first beat on,
    input  logic [15:0]         sum_start_now,  // sum_ask.start, from the cycle before
    input  logic                sum_kept,       // with the last one: it will come out
    input  logic                sum_over,       // pulse: the frame ends, or is given up
    axis_if.sink                in,             // the store
    axis_if.source              out,
    output logic                idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);
  localparam int unsigned SUM_CYCLES = 3;
  typedef logic [15-LANE_W:0] beat_t;

  // What is to be put into a frame.
  typedef struct packed {
    logic        asks;
    logic        odd;        // words are counted from byte 0 of the frame: the bytes of the sum are to be exchanged
    logic [15:0] at;         // byte of the frame
    logic [15:0] extra;
  } place_t;
  typedef struct packed {
    logic        asks;
    logic [15:0] at;
    logic [15:0] value;      // its first byte is the upper one
  } result_t;

  // ---- the sum ----
  beat_t sum_beat_q;
  logic [BYTES-1:0] from_on;
  logic             before_q, behind_q;           // csum_start is not in this beat, but after or before it
  wire beat_t from_beat = sum_start_now[15:LANE_W];
  wire beat_t sum_beat = sum_over ? '0 : sum_valid ? sum_beat_q + 1'b1 : sum_beat_q;
  assign from_on = before_q ? '0 : behind_q ? '1 : BYTES'('1) << sum_ask.start[LANE_W-1:0];

  logic                  summed;
  logic [31:0]           sum;
  logic [SUM_CYCLES-1:0] kept_q;
  place_t                place_q[SUM_CYCLES];
  internet_checksum #(.DATA_W(DATA_W)) checksum (
      .clk, .rst, .in_valid(sum_valid), .in_first(sum_beat_q == '0), .in_last(sum_last), .in_data(sum_data),
      .in_keep(sum_keep & from_on), .out_valid(summed), .out_sum(sum)
  );
  always_ff @(posedge clk) begin
    kept_q     <= {kept_q[SUM_CYCLES-2:0], sum_valid && sum_last && sum_kept};
    place_q[0] <= '{asks: sum_ask.asks, odd: sum_ask.start[0], at: sum_ask.at, extra: sum_ask.extra};
    for (int unsigned i = 1; i < SUM_CYCLES; i++) place_q[i] <= place_q[i-1];
    sum_beat_q <= rst ? '0 : sum_beat;
    before_q   <= sum_beat < from_beat;
    behind_q   <= sum_beat > from_beat;
  end

  // The carries are added twice: the first may carry once more. Then 0 or 1 is left, and so the carry is put into bit 0.
  logic [17:0] once_q;
  logic        once_valid_q;
  place_t      once_place_q;
  wire [16:0] twice = 17'(once_q[15:0]) + 17'(once_q[17:16]);
  wire [15:0] inverted = ~{twice[15:1], twice[0] || twice[16]};
  always_ff @(posedge clk) begin
    once_q       <= 18'(sum[31:16]) + 18'(sum[15:0]) + 18'(place_q[SUM_CYCLES-1].extra);
    once_place_q <= place_q[SUM_CYCLES-1];
    once_valid_q <= summed && kept_q[SUM_CYCLES-1] && !rst;
  end

  stream_if #(.T(result_t)) result_in ();
  stream_if #(.T(result_t)) result ();
  logic none;
  assign result_in.valid = once_valid_q;
  assign result_in.data  = '{
      asks: once_place_q.asks,
      at: once_place_q.at,
      value: inverted == '0 ? '1 : once_place_q.odd ? {inverted[7:0], inverted[15:8]} : inverted
  };
  stream_fifo #(.T(result_t), .DEPTH(2 * FRAMES), .BLOCK_RAM(1'b0)) results (
      .clk, .rst, .in(result_in), .out(result), .empty(none)
  );

  // ---- its place: two bytes, perhaps in two beats ----
  beat_t beat_q;
  logic  second_q;                               // the second byte is the first one of this beat
  wire   here = result.data.asks && beat_q == result.data.at[15:LANE_W];
  wire   free = !out.tvalid || out.tready;
  logic [BYTES-1:0] hit;
  for (genvar i = 0; i < BYTES; i++) begin : g_lane
    assign hit[i] = here && result.data.at[LANE_W-1:0] == LANE_W'(i);
    wire second = i == 0 ? second_q : hit[(i+BYTES-1)%BYTES];
    always_ff @(posedge clk) begin
      if (free) out.tdata[i*8+:8] <= hit[i] ? result.data.value[15:8] : second ? result.data.value[7:0] : in.tdata[i*8+:8];
    end
  end
  assign in.tready    = free && result.valid;
  assign result.ready = in.tvalid && in.tready && in.tlast;
  assign out.tuser    = 1'b0;
  assign idle         = none && !out.tvalid;

  always_ff @(posedge clk) begin
    if (free) begin
      out.tkeep <= in.tkeep;
      out.tlast <= in.tlast;
    end
    if (rst) begin
      beat_q     <= '0;
      second_q   <= 1'b0;
      out.tvalid <= 1'b0;
    end else begin
      if (free) out.tvalid <= in.tvalid && result.valid;
      if (in.tvalid && in.tready) begin
        beat_q   <= in.tlast ? '0 : beat_q + 1'b1;
        second_q <= hit[BYTES-1] && !in.tlast;
      end
    end
  end

  always_ff @(posedge clk) if (!rst) assert (!result_in.valid || result_in.ready) else $error("more sums than there is room for");

  logic unused_ok;
  assign unused_ok = &{1'b0, in.tuser};
endmodule
