// SPDX-License-Identifier: Apache-2.0

// One cell of the systolic array: multiplies the operand from the west by the one from the north and adds the product to
// one of its accumulators, and passes both on one cycle later. One step a cycle; SLOTS sums take turns, so that a sum is
// complete before its next step needs it. Two banks of accumulators: one works, the other is read out.
// Float: product and sum rounded each (fp32_mul, fp32_add); a sum starts from +0. Integer: modulo 2^32.
module matmul_cell
  import matmul_pkg::*;
#(
    parameter int unsigned MUL_LATENCY = 7,
    parameter int unsigned ADD_LATENCY = 7,
    parameter int unsigned INT_LATENCY = 2
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        float32,
    input  step_t [MUL_LATENCY+ADD_LATENCY:0] step,            // [0] now, [i] the one i cycles before
    input  logic [31:0] west,
    input  logic [31:0] north,
    output logic [31:0] east,
    output logic [31:0] south,
    input  logic        drain_bank,
    input  slot_t       drain_slot,
    output logic [31:0] drained                                // same cycle
);
  (* ram_style = "distributed" *) logic [31:0] sums[2*SLOTS];

  step_t       adding, written;
  logic [31:0] so_far, product, sum, int_product_q, int_product_qq;
  logic        product_valid, sum_valid;

  assign adding  = float32 ? step[MUL_LATENCY] : step[INT_LATENCY];
  assign written = float32 ? step[MUL_LATENCY+ADD_LATENCY] : step[INT_LATENCY];
  assign so_far  = adding.first ? '0 : sums[{adding.bank, adding.slot}];

  fp32_mul mul (
      .clk, .rst, .valid(step[0].valid && float32), .a(west), .b(north), .result_valid(product_valid), .result(product)
  );
  fp32_add add (.clk, .rst, .valid(product_valid), .a(so_far), .b(product), .result_valid(sum_valid), .result(sum));

  always_ff @(posedge clk) begin
    if (step[0].valid) begin
      east  <= west;
      south <= north;
      if (!float32) int_product_q <= west * north;
    end
    if (step[1].valid && !float32) int_product_qq <= int_product_q;
    if (float32 ? sum_valid : written.valid) sums[{written.bank, written.slot}] <= float32 ? sum : so_far + int_product_qq;
  end

  assign drained = sums[{drain_bank, drain_slot}];

  logic unused_ok;
  assign unused_ok = &{1'b0, adding.valid, adding.last, written.first, written.last};
endmodule
