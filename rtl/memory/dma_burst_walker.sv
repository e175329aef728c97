// SPDX-License-Identifier: Apache-2.0

// Splits transfers into AXI bursts: one for each block of BURST_BYTES that a transfer touches, so that no burst crosses 4 KiB or has more
// than 256 beats (AMBA IHI 0022, A3.4.1). A transfer of length 0 passes as one value with `none` set. Latency 2 cycles from `cmd` to
// `burst`, one burst a cycle, also from one transfer to the next. Stalls while `burst` stalls.
module dma_burst_walker
  import memory_pkg::*;
#(
    parameter int unsigned DATA_W      = 512,
    parameter int unsigned BURST_BYTES = 4096   // power of two, at most 4096
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.sink   cmd,      // dma_cmd_t
    stream_if.source burst,    // dma_burst_t
    output logic     idle      // no transfer inside
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);
  localparam int unsigned BLOCK_BYTES = BURST_BYTES < 256 * BYTES ? BURST_BYTES : 256 * BYTES;
  localparam int unsigned BLOCK_W = $clog2(BLOCK_BYTES);

  if (BURST_BYTES > 4096 || (BURST_BYTES & (BURST_BYTES - 1)) != 0 || BURST_BYTES < BYTES) begin : g_bad_burst
    $fatal(1, "BURST_BYTES must be a power of two from one beat to 4096");
  end
  if (DATA_W < 16 || DATA_W > 1024 || (DATA_W & (DATA_W - 1)) != 0) begin : g_bad_width
    $fatal(1, "DATA_W must be a power of two from 16 to 1024");
  end

  typedef logic [BLOCK_W:0] span_t;   // bytes of one burst: 0 to BLOCK_BYTES

  addr_t             addr_q;
  logic [31:0]       remaining_q;
  logic [LANE_W-1:0] shift_q, tail_q;
  logic              active_q, first_q;

  dma_burst_t burst_d, burst_q;
  logic       burst_valid_q, step, last;
  span_t      room, span, end_lane;
  logic [LANE_W:0] end_of_all;

  assign room     = span_t'(BLOCK_BYTES) - span_t'(addr_q[BLOCK_W-1:0]);
  assign last     = remaining_q <= 32'(room);
  assign span     = last ? span_t'(remaining_q) : room;
  assign end_lane = span_t'(addr_q[LANE_W-1:0]) + span - 1'b1;
  assign end_of_all = (LANE_W + 1)'(shift_q) + (LANE_W + 1)'(tail_q);

  always_comb begin
    burst_d       = '0;
    burst_d.addr  = addr_q;
    burst_d.len   = 8'(end_lane >> LANE_W);
    burst_d.first = first_q;
    burst_d.last  = last;
    burst_d.none  = remaining_q == '0;
    burst_d.shift = 7'(shift_q);
    burst_d.tail  = 7'(tail_q);
    burst_d.lane  = 7'(end_of_all[LANE_W-1:0]);
    burst_d.wraps = end_of_all[LANE_W];
  end

  assign step        = active_q && (!burst_valid_q || burst.ready);
  assign cmd.ready   = !active_q || (step && last);
  assign burst.valid = burst_valid_q;
  assign burst.data  = burst_q;
  assign idle        = !active_q && !burst_valid_q;

  always_ff @(posedge clk) begin
    if (cmd.ready && cmd.valid) begin
      addr_q      <= cmd.data.addr;
      remaining_q <= cmd.data.length;
      shift_q     <= cmd.data.addr[LANE_W-1:0];
      tail_q      <= LANE_W'(cmd.data.length - 1'b1);
      first_q     <= 1'b1;
    end else if (step) begin
      addr_q      <= {addr_q[ADDR_W-1:BLOCK_W] + 1'b1, BLOCK_W'(0)};
      remaining_q <= remaining_q - 32'(room);
      first_q     <= 1'b0;
    end
    if (step) burst_q <= burst_d;
    if (rst) begin
      active_q      <= 1'b0;
      burst_valid_q <= 1'b0;
    end else begin
      if (cmd.ready) active_q <= cmd.valid;
      if (!burst_valid_q || burst.ready) burst_valid_q <= active_q;
    end
  end
endmodule
