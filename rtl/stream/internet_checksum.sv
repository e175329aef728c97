// SPDX-License-Identifier: Apache-2.0

// One's complement sum of the 16-bit words of packets (RFC 1071), network byte order; bytes without `keep` count as zero.
// One beat a cycle, never stops. `out_sum` follows the packet's last beat by 3 cycles: 32 bits, for the user to add a
// pseudo-header to and to fold.
module internet_checksum #(
    parameter int unsigned DATA_W = 512  // a multiple of 64
) (
    input  logic                clk,
    input  logic                rst,
    input  logic                in_valid,
    input  logic                in_first,
    input  logic                in_last,
    input  logic [DATA_W-1:0]   in_data,
    input  logic [DATA_W/8-1:0] in_keep,
    output logic                out_valid,
    output logic [31:0]         out_sum
);
  localparam int unsigned GROUPS = DATA_W / 64;  // of four words

  typedef struct packed {
    logic first;
    logic last;
  } flags_t;

  logic [1:0]  valid_q;
  flags_t      flags_q[2];
  logic [17:0] group_q[GROUPS];
  logic [21:0] beat_q;
  logic [31:0] sum_q;
  logic        out_valid_q;

  function automatic logic [17:0] group_sum(logic [63:0] data, logic [7:0] keep);
    logic [17:0] sum;
    sum = '0;
    for (int unsigned w = 0; w < 4; w++)
      sum += {2'b0, data[w*16+:8] & {8{keep[w*2]}}, data[w*16+8+:8] & {8{keep[w*2+1]}}};
    return sum;
  endfunction

  logic [21:0] beat;
  always_comb begin
    beat = '0;
    for (int unsigned g = 0; g < GROUPS; g++) beat += 22'(group_q[g]);
  end

  always_ff @(posedge clk) begin
    valid_q     <= rst ? '0 : {valid_q[0], in_valid};
    out_valid_q <= valid_q[1] && flags_q[1].last && !rst;
    if (in_valid) begin
      flags_q[0] <= '{first: in_first, last: in_last};
      for (int unsigned g = 0; g < GROUPS; g++) group_q[g] <= group_sum(in_data[g*64+:64], in_keep[g*8+:8]);
    end
    if (valid_q[0]) begin
      flags_q[1] <= flags_q[0];
      beat_q <= beat;
    end
    if (valid_q[1]) sum_q <= (flags_q[1].first ? '0 : sum_q) + 32'(beat_q);
  end

  assign out_valid = out_valid_q;
  assign out_sum   = sum_q;
endmodule
