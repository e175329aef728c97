// SPDX-License-Identifier: Apache-2.0

// Checksums that a device completes for its driver (virtio 1.2, 5.1.6.2, VIRTIO_NET_F_CSUM): beside the store of frames to send it
// sums each frame from csum_start on, in which the driver has left the sum of the pseudo header, and puts the result into the frame
// that leaves the store. A result of 0 is sent as 0xffff, as UDP wants it (RFC 768).
//
// One beat a cycle on both sides. The sum of a frame is there 4 cycles after its last beat; `out` waits for it.
module virtio_net_csum
  import virtio_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned FRAMES = 64          // in the store, at most
) (
    input  logic                clk,
    input  logic                rst,
    input  logic                sum_valid,      // a beat of a frame goes into the store,
    input  logic                sum_last,
    input  logic [DATA_W-1:0]   sum_data,
    input  logic [DATA_W/8-1:0] sum_keep,
    input  logic [15:0]         sum_from,       // csum_start,
    input  logic                sum_kept,       // with the last one: it will come out
    input  logic                sum_over,       // pulse: the frame ends, or is given up
    axis_if.sink                in,             // the store
    input  logic                in_ready,       // what is known of its frame, below, is valid
    input  logic                in_asks,        // VIRTIO_NET_HDR_F_NEEDS_CSUM
    input  logic [15:0]         in_from,        // csum_start
    input  logic [15:0]         in_at,          // where the checksum goes
    axis_if.source              out,
    output logic                idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);
  localparam int unsigned SUM_CYCLES = 3;
  typedef logic [15-LANE_W:0] beat_t;

  // ---- the sum ----
  beat_t sum_beat_q;
  logic [BYTES-1:0] from_on;
  wire beat_t from_beat = sum_from[15:LANE_W];
  assign from_on = sum_beat_q < from_beat ? '0 : sum_beat_q > from_beat ? '1 : BYTES'('1) << sum_from[LANE_W-1:0];

  logic                  summed;
  logic [31:0]           sum;
  logic [SUM_CYCLES-1:0] kept_q;
  internet_checksum #(.DATA_W(DATA_W)) checksum (
      .clk, .rst, .in_valid(sum_valid), .in_first(sum_beat_q == '0), .in_last(sum_last), .in_data(sum_data),
      .in_keep(sum_keep & from_on), .out_valid(summed), .out_sum(sum)
  );
  always_ff @(posedge clk) begin
    kept_q <= {kept_q[SUM_CYCLES-2:0], sum_valid && sum_last && sum_kept};
    if (rst) sum_beat_q <= '0;
    else if (sum_over) sum_beat_q <= '0;
    else if (sum_valid) sum_beat_q <= sum_beat_q + 1'b1;
  end

  // The carries are added twice: the first may carry once more.
  function automatic logic [15:0] fold(logic [31:0] value);
    logic [16:0] once;
    once = 17'(value[31:16]) + 17'(value[15:0]);
    return once[15:0] + 16'(once[16]);
  endfunction

  stream_if #(.T(logic [15:0])) result_in ();
  stream_if #(.T(logic [15:0])) result ();
  assign result_in.valid = summed && kept_q[SUM_CYCLES-1];
  assign result_in.data  = fold(sum);
  stream_fifo #(.T(logic [15:0]), .DEPTH(2 * FRAMES), .BLOCK_RAM(1'b0)) results (
      .clk, .rst, .in(result_in), .out(result), .empty(idle)
  );

  // ---- its place: two bytes, perhaps in two beats ----
  // Words are counted from byte 0 of the frame; if csum_start is odd the bytes of the sum are exchanged.
  beat_t beat_q;
  logic [15:0] value;
  wire [15:0] inverted = ~result.data;
  wire [15:0] second_at = in_at + 1'b1;
  wire first_here = in_asks && beat_q == in_at[15:LANE_W];
  wire second_here = in_asks && beat_q == second_at[15:LANE_W];
  assign value = inverted == '0 ? '1 : in_from[0] ? {inverted[7:0], inverted[15:8]} : inverted;

  wire open = in_ready && result.valid;
  for (genvar i = 0; i < BYTES; i++) begin : g_lane
    assign out.tdata[i*8+:8] = first_here && in_at[LANE_W-1:0] == LANE_W'(i) ? value[15:8]
                             : second_here && second_at[LANE_W-1:0] == LANE_W'(i) ? value[7:0] : in.tdata[i*8+:8];
  end
  assign out.tvalid   = in.tvalid && open;
  assign out.tkeep    = in.tkeep;
  assign out.tlast    = in.tlast;
  assign out.tuser    = in.tuser;
  assign in.tready    = out.tready && open;
  assign result.ready = in.tvalid && in.tready && in.tlast;

  always_ff @(posedge clk) begin
    if (rst) beat_q <= '0;
    else if (in.tvalid && in.tready) beat_q <= in.tlast ? '0 : beat_q + 1'b1;
  end

  always_ff @(posedge clk) if (!rst) assert (!result_in.valid || result_in.ready) else $error("more sums than there is room for");
endmodule
