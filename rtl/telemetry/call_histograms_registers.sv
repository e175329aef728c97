// SPDX-License-Identifier: Apache-2.0

// The registers of the histograms on AXI4-Lite (histograms.rdl): one page of 4 KiB. A write takes 3 cycles, a read 4.
module call_histograms_registers
  import histogram_pkg::*;
  import histograms_regs_pkg::*;
#(
    parameter int unsigned SOCKETS = 2,
    parameter logic [31:0] CLOCK_HZ = 250_000_000,
    parameter logic [31:0] NEXT = '0          // the block after this one
) (
    input  logic        clk,
    input  logic        rst,
    axil_if.slave       bus,                  // 12 bits of address
    input  logic [47:0] now,
    input  logic [SOCKETS-1:0] running,
    output socket_t     since_of,
    input  time_t       since,                // a cycle after `read`
    output logic        clear,                // pulse
    input  logic        clearing,
    input  logic        lost,                 // pulse
    output logic        read,                 // looks at what is asked for:
    output bin_t        read_bin,
    output histogram_e  read_sum,
    input  logic [31:0] count,                // a cycle later
    input  sum_t        sum,                  // likewise
    output logic        idle                  // no access in progress
);
  if (AT_QUEUE != {QUEUE_ROW, 6'd0} || AT_LATENCY != {LATENCY_ROW, 6'd0} || AT_RUN != {RUN_ROW, 6'd0}
      || QUEUE_WORDS != QUEUE_BINS * SOCKETS_MAX || LATENCY_WORDS != TIME_BINS * SOCKETS_MAX || RUN_WORDS != TIME_BINS * SOCKETS_MAX)
  begin : g_check_bins
    $fatal(1, "call_histograms_registers: the bins of the memory must be where the registers have them");
  end
  if (AT_LATENCY_SUM_LO != {SUM_ROW, 6'd0} || AT_LATENCY_SUM_HI != {SUM_ROW + 6'd1, 6'd0} || AT_RUN_SUM_LO != {SUM_ROW + 6'd2, 6'd0}
      || AT_RUN_SUM_HI != {SUM_ROW + 6'd3, 6'd0} || AT_QUEUE_SUM_LO != {SUM_ROW + 6'd4, 6'd0} || AT_QUEUE_SUM_HI != {SUM_ROW + 6'd5, 6'd0})
  begin : g_check_sums
    $fatal(1, "call_histograms_registers: the sums must be in the order of the histograms");
  end

  logic [11:0] at;
  logic [31:0] wdata, read_data;
  logic        write;
  logic [7:0]  clears_q, lost_q;
  logic [31:0] memory_word;
  wire row_t sum_row = at[11:6] - SUM_ROW;
  wire is_sum = at[11:6] < QUEUE_ROW;

  assign memory_word = !is_sum ? count : sum_row[0] ? 32'(sum[SUM_W-1:32]) : sum[31:0];
  always_comb begin
    unique case (at)
      AT_TYPE:     read_data = BLOCK_TYPE;
      AT_VERSION:  read_data = BLOCK_VERSION;
      AT_NEXT:     read_data = NEXT;
      AT_CLOCK_HZ: read_data = CLOCK_HZ;
      AT_NOW_LO:   read_data = now[31:0];
      AT_NOW_HI:   read_data = 32'(now[47:32]);
      AT_SHAPE:    read_data = {8'd0, 8'(FIRST), 8'(SOCKETS), 8'(TIME_BINS)};
      AT_STATUS:   read_data = {8'd0, clears_q, lost_q, 7'd0, clearing};
      AT_RUNNING:  read_data = 32'(running);
      default:     read_data = at[11:6] == AT_SINCE[11:6] ? since[TIME_W-1:TIME_W-32] : memory_word;
    endcase
  end

  assign since_of = at[5:2];
  assign read_bin = at[11:2];
  assign read_sum = histogram_e'(sum_row[2:1]);
  assign clear    = write && at == AT_COMMAND && wdata[0];
  always_ff @(posedge clk) begin
    read <= bus.arvalid && bus.arready;
    if (clear) clears_q <= clears_q + 1'b1;
    if (lost && !(&lost_q)) lost_q <= lost_q + 1'b1;
    if (rst) begin
      clears_q <= '0;
      lost_q   <= '0;
    end
  end

  axil_access access (
      .clk, .rst, .bus, .at, .write, .wdata, .readable(readable(at)), .writable(writable(at)), .rdata(read_data), .idle
  );
endmodule
