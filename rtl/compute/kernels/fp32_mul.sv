// SPDX-License-Identifier: Apache-2.0

// a * b in IEEE 754-2019 binary32, rounded to nearest, ties to even. Subnormals, infinities and signed zeros as the standard
// has them; every NaN that comes out is 0x7fc00000. Latency 7 cycles (`result` with `result_valid`), one product a cycle.
// Never stops; without `valid` nothing moves.
module fp32_mul (
    input  logic        clk,
    input  logic        rst,
    input  logic        valid,
    input  logic [31:0] a,
    input  logic [31:0] b,
    output logic        result_valid,
    output logic [31:0] result
);
  localparam int unsigned STAGES = 7;

  typedef struct packed {
    logic        sign;
    logic [7:0]  exponent;
    logic [22:0] fraction;
  } fp32_t;

  typedef enum logic [1:0] {
    FINITE,
    INFINITE,
    NAN
  } kind_e;

  // What goes along unchanged.
  typedef struct packed {
    kind_e      kind;
    logic       sign;
    logic       right;     // too small: shift right by `amount` to get exponent 1
    logic [5:0] amount;
  } head_t;

  // Significand with its highest bit worth 1.0, exponent as it is stored (biased) for that. What is shifted out sticks to
  // the lowest bit.
  typedef struct packed {
    logic signed [9:0] exponent;
    logic [47:0]       significand;
  } value_t;

  function automatic value_t shift(value_t v, head_t head, int unsigned by);
    value_t r;
    r = v;
    if (head.right) begin
      if ((head.amount & 6'(by)) != '0) r.significand = v.significand >> by | 48'((v.significand << (48 - by)) != '0);
    end else if ((v.significand >> (48 - by)) == '0 && v.exponent > 10'(by)) begin
      r.significand = v.significand << by;
      r.exponent    = v.exponent - 10'(by);
    end
    return r;
  endfunction

  fp32_t             x, y;
  logic              x_zero, y_zero, x_special, y_special, x_nan, y_nan;
  logic signed [9:0] exponent;

  assign x         = fp32_t'(a);
  assign y         = fp32_t'(b);
  assign x_zero    = a[30:0] == '0;
  assign y_zero    = b[30:0] == '0;
  assign x_special = &x.exponent;
  assign y_special = &y.exponent;
  assign x_nan     = x_special && x.fraction != '0;
  assign y_nan     = y_special && y.fraction != '0;
  assign exponent  = 10'({2'b0, x.exponent} + 10'(x.exponent == '0)) + 10'({2'b0, y.exponent} + 10'(y.exponent == '0)) - 10'd126;

  logic [STAGES-1:0] valid_q;
  logic [23:0]       x_q, y_q;
  logic signed [9:0] exponent_q;
  logic              sign_q;
  kind_e             kind_q;
  head_t             product_head_q, ready_head_q, coarse_head_q, middle_head_q, fine_head_q;
  value_t            product_q, ready_q, coarse_q, middle_q, fine_q;
  logic [31:0]       magnitude;

  // The exponent that is stored, and the rounding, in one sum: a carry moves into the exponent as it must.
  assign magnitude = {1'b0, fine_q.significand[47] ? 8'(fine_q.exponent) : 8'd0, fine_q.significand[46:24]}
      + 32'(fine_q.significand[23] && (fine_q.significand[22:0] != '0 || fine_q.significand[24]));

  assign result_valid = valid_q[STAGES-1];

  // A process for each stage: a simulator then runs them last stage first, and copies no register of an idle multiplier.
  always_ff @(posedge clk) valid_q <= rst ? '0 : {valid_q[STAGES-2:0], valid};

  always_ff @(posedge clk)
    if (valid) begin
      x_q        <= {x.exponent != '0, x.fraction};
      y_q        <= {y.exponent != '0, y.fraction};
      exponent_q <= exponent;
      sign_q     <= x.sign ^ y.sign;
      kind_q     <= x_nan || y_nan || (x_special && y_zero) || (y_special && x_zero) ? NAN
                  : x_special || y_special ? INFINITE : FINITE;
    end

  always_ff @(posedge clk)
    if (valid_q[0]) begin
      product_head_q <= '{
          kind: kind_q, sign: sign_q, right: exponent_q < 10'sd1,
          amount: exponent_q < -10'sd62 ? 6'd63 : 6'(10'sd1 - exponent_q)
      };
      product_q      <= '{exponent: exponent_q, significand: 48'(x_q) * 48'(y_q)};
    end

  always_ff @(posedge clk)
    if (valid_q[1]) begin
      ready_head_q <= product_head_q;
      ready_q      <= shift(product_q, product_head_q, 32);
    end

  always_ff @(posedge clk)
    if (valid_q[2]) begin
      coarse_head_q <= ready_head_q;
      coarse_q      <= shift(ready_q, ready_head_q, 16);
    end

  always_ff @(posedge clk)
    if (valid_q[3]) begin
      middle_head_q <= coarse_head_q;
      middle_q      <= shift(shift(coarse_q, coarse_head_q, 8), coarse_head_q, 4);
    end

  always_ff @(posedge clk)
    if (valid_q[4]) begin
      fine_head_q <= middle_head_q;
      fine_q      <= shift(shift(middle_q, middle_head_q, 2), middle_head_q, 1);
    end

  always_ff @(posedge clk)
    if (valid_q[5]) begin
      if (fine_head_q.kind == NAN) result <= 32'h7fc0_0000;
      else if (fine_head_q.kind == INFINITE || (fine_q.significand[47] && fine_q.exponent > 10'sd254))
        result <= {fine_head_q.sign, 8'hff, 23'd0};
      else result <= {fine_head_q.sign, magnitude[30:0]};
    end

  logic unused_ok;
  assign unused_ok = &{1'b0, magnitude[31], fine_head_q.right, fine_head_q.amount};
endmodule
