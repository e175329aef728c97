// SPDX-License-Identifier: Apache-2.0

// Counters of one stream of events, one a cycle: 32 bits each, modulo 2^32, all 0 after reset. `value` follows `read_at` in the
// same cycle.
module virtio_counter_bank
  import virtio_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        count,
    input  counter_t    at,
    input  counter_t    read_at,
    output logic [31:0] value
);
  localparam int unsigned WORDS = 2 ** $bits(counter_t);

  (* ram_style = "distributed" *) logic [31:0] totals[WORDS];
  logic [WORDS-1:0] begun_q;             // those that have counted: the others have no total yet
  wire [31:0] total = begun_q[at] ? totals[at] : '0;

  assign value = begun_q[read_at] ? totals[read_at] : '0;
  always_ff @(posedge clk) begin
    if (count) totals[at] <= total + 1'b1;
    if (rst) begun_q <= '0;
    else if (count) begun_q[at] <= 1'b1;
  end
endmodule
