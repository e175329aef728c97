// SPDX-License-Identifier: Apache-2.0

// a + b in IEEE 754-2019 binary32, rounded to nearest, ties to even. Subnormals, infinities and signed zeros as the standard
// has them; every NaN that comes out is 0x7fc00000. Latency 7 cycles (`result` with `result_valid`), one sum a cycle.
// Never stops; without `valid` nothing moves.
module fp32_add (
    input  logic        clk,
    input  logic        rst,
    input  logic        valid,
    input  logic [31:0] a,
    input  logic [31:0] b,
    output logic        result_valid,
    output logic [31:0] result
);
  localparam int unsigned STAGES = 7;

  typedef enum logic [1:0] {
    FINITE,
    INFINITE,
    NAN
  } kind_e;

  typedef struct packed {
    kind_e      kind;
    logic       sign;        // of the larger magnitude
    logic       subtract;    // the signs differ
    logic [8:0] exponent;    // as stored, 1 for a subnormal
  } head_t;

  // Significands have three bits more at the low end: guard, round, sticky. Their highest bit is [26], the carry [27].
  typedef logic [27:0] significand_t;

  typedef struct packed {
    head_t        head;
    significand_t sum;
  } value_t;

  function automatic logic [8:0] effective(logic [7:0] exponent);
    return 9'(exponent) + 9'(exponent == '0);
  endfunction

  function automatic significand_t align(significand_t s, logic [4:0] by);
    significand_t shifted;
    shifted    = s >> by;
    shifted[0] = shifted[0] || (s & ~(significand_t'('1) << by)) != '0;
    return shifted;
  endfunction

  function automatic value_t up(value_t v, int unsigned by);
    value_t r;
    r = v;
    if ((v.sum >> (27 - by)) == '0 && v.head.exponent > 9'(by)) begin
      r.sum           = v.sum << by;
      r.head.exponent = v.head.exponent - 9'(by);
    end
    return r;
  endfunction

  function automatic value_t down(value_t v);
    value_t r;
    r = v;
    r.sum           = {1'b0, v.sum[27:2], v.sum[1] || v.sum[0]};
    r.head.exponent = v.head.exponent + 1'b1;
    return r;
  endfunction

  logic         swap, a_special, b_special, a_nan, b_nan;
  logic [31:0]  greater, lesser;
  logic [8:0]   a_over_b, b_over_a, distance;

  assign swap      = b[30:0] > a[30:0];
  assign greater     = swap ? b : a;
  assign lesser    = swap ? a : b;
  assign a_over_b  = effective(a[30:23]) - effective(b[30:23]);
  assign b_over_a  = effective(b[30:23]) - effective(a[30:23]);
  assign distance  = swap ? b_over_a : a_over_b;
  assign a_special = &a[30:23];
  assign b_special = &b[30:23];
  assign a_nan     = a_special && a[22:0] != '0;
  assign b_nan     = b_special && b[22:0] != '0;

  logic [STAGES-1:0] valid_q;
  head_t             ordered_q, aligned_q;
  logic [4:0]        distance_q;
  significand_t      large_q, small_q, aligned_large_q, aligned_small_q;
  value_t            sum_q, coarse_q, middle_q, fine_q;
  logic [31:0]       magnitude;

  assign magnitude = {1'b0, fine_q.sum[26] ? 8'(fine_q.head.exponent) : 8'd0, fine_q.sum[25:3]}
      + 32'(fine_q.sum[2] && (fine_q.sum[1:0] != '0 || fine_q.sum[3]));

  assign result_valid = valid_q[STAGES-1];

  // A process for each stage: a simulator then runs them last stage first, and copies no register of an idle adder.
  always_ff @(posedge clk) valid_q <= rst ? '0 : {valid_q[STAGES-2:0], valid};

  always_ff @(posedge clk)
    if (valid) begin
      ordered_q <= '{
          kind: a_nan || b_nan || (a_special && b_special && a[31] != b[31]) ? NAN : a_special || b_special ? INFINITE : FINITE,
          sign: greater[31], subtract: a[31] != b[31], exponent: effective(greater[30:23])
      };
      distance_q <= distance > 9'd31 ? 5'd31 : 5'(distance);
      large_q    <= {1'b0, greater[30:23] != '0, greater[22:0], 3'b0};
      small_q    <= {1'b0, lesser[30:23] != '0, lesser[22:0], 3'b0};
    end

  always_ff @(posedge clk)
    if (valid_q[0]) begin
      aligned_q       <= ordered_q;
      aligned_large_q <= large_q;
      aligned_small_q <= align(small_q, distance_q);
    end

  always_ff @(posedge clk)
    if (valid_q[1]) begin
      sum_q.head <= aligned_q;
      sum_q.sum  <= aligned_q.subtract ? aligned_large_q - aligned_small_q : aligned_large_q + aligned_small_q;
    end

  always_ff @(posedge clk) if (valid_q[2]) coarse_q <= sum_q.sum[27] ? down(sum_q) : up(sum_q, 16);
  always_ff @(posedge clk) if (valid_q[3]) middle_q <= up(up(coarse_q, 8), 4);
  always_ff @(posedge clk) if (valid_q[4]) fine_q <= up(up(middle_q, 2), 1);

  always_ff @(posedge clk)
    if (valid_q[5]) begin
      if (fine_q.head.kind == NAN) result <= 32'h7fc0_0000;
      else if (fine_q.head.kind == INFINITE || (fine_q.sum[26] && fine_q.head.exponent > 9'd254))
        result <= {fine_q.head.sign, 8'hff, 23'd0};
      // An exact zero from unlike signs is +0 (6.3).
      else result <= {fine_q.head.sign && !(fine_q.head.subtract && fine_q.sum == '0), magnitude[30:0]};
    end

  logic unused_ok;
  assign unused_ok = &{1'b0, magnitude[31], lesser[31]};
endmodule
