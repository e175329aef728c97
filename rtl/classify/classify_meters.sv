// SPDX-License-Identifier: Apache-2.0

// Token buckets, by which rules and flows limit the rate of their frames. A bucket is filled at its rate up to its burst, and a frame for
// which it has enough takes its length in bytes, or 1, out of it; a frame for which it has not takes nothing, and is over.
//
// What a bucket has is the difference of two numbers, each of which has one writer: what was filled in, by a visit to each meter every METERS
// cycles, and what was taken out, by frames. So no cycle has to do both. A visit fills in what the setting says, in 2^-20 of a byte or frame.
//
// One frame a cycle, `over` a cycle later. New settings are in use, with a full bucket, within METERS + 3 cycles; a meter without is never over.
module classify_meters
  import classify_pkg::*;
(
    input  logic            clk,
    input  logic            rst,
    input  logic            valid,       // a frame
    input  meter_t          meter,
    input  logic [15:0]     length,      // its bytes
    output logic            over,        // a cycle later
    output logic            to_host,     // with it: such frames are for the host
    input  logic            put,         // a meter gets new settings,
    input  logic            remove,      // or none
    input  meter_t          at,
    input  meter_settings_t settings,
    output meter_settings_t current,     // of `at`; undefined if it has none
    output logic [METERS-1:0] present
);
  localparam int unsigned TOKEN_W = $bits(settings.burst) + 3;     // differences of neighbours have a sign
  typedef logic [TOKEN_W-1:0] tokens_t;
  typedef struct packed {
    tokens_t                   whole;
    logic [METER_FRACTION-1:0] fraction;
  } filled_t;

  (* ram_style = "distributed" *) logic [$bits(filled_t)-1:0] filled[METERS];
  (* ram_style = "distributed" *) logic [$bits(tokens_t)-1:0] taken[METERS];
  (* ram_style = "distributed" *) logic [$bits(meter_settings_t)-1:0] all_settings[METERS];
  logic [METERS-1:0] fresh_q, present_q;                           // the next visit fills it up; it has settings and has been filled
  assign current = meter_settings_t'(all_settings[at]);
  assign present = present_q | fresh_q;
  always_ff @(posedge clk) if (put) all_settings[at] <= settings;

  // ---- a frame ----
  filled_t         has;
  meter_settings_t mine;
  assign has  = filled_t'(filled[meter]);
  assign mine = meter_settings_t'(all_settings[meter]);
  wire tokens_t spent  = taken[meter];
  wire tokens_t cost   = mine.frames ? tokens_t'(1) : tokens_t'(length);
  wire tokens_t rest   = has.whole - spent - cost;                 // negative: there is not enough
  wire          enough = !rest[TOKEN_W-1];
  always_ff @(posedge clk) if (valid && enough) taken[meter] <= spent + cost;
  always_ff @(posedge clk) begin
    over    <= valid && present_q[meter] && !enough && !rst;
    to_host <= mine.to_host;
  end

  // ---- visits: read; add up; compare and write ----
  meter_t          visit_q, visit1_q, visit2_q;
  meter_settings_t visited;
  logic            fresh1_q, fresh2_q;
  filled_t         old_q, sum_q, full1_q, full2_q;
  logic [31:0]     rate_q;
  assign visited = meter_settings_t'(all_settings[visit_q]);
  wire filled_t room = full2_q - sum_q;                            // negative: more than the bucket holds
  always_ff @(posedge clk) begin
    visit_q  <= rst ? '0 : visit_q + 1'b1;
    visit1_q <= visit_q;
    old_q    <= filled_t'(filled[visit_q]);
    rate_q   <= visited.rate;
    full1_q  <= '{whole: taken[visit_q] + tokens_t'(visited.burst), fraction: '0};
    fresh1_q <= fresh_q[visit_q] && !(remove && at == visit_q) && !rst;
    visit2_q <= visit1_q;
    sum_q    <= old_q + ($bits(filled_t))'(rate_q);
    full2_q  <= full1_q;
    fresh2_q <= fresh1_q && !(remove && at == visit1_q) && !rst;
  end
  always_ff @(posedge clk) filled[visit2_q] <= fresh2_q || room[$bits(filled_t)-1] ? full2_q : sum_q;

  always_ff @(posedge clk) begin
    fresh_q[visit_q] <= 1'b0;
    if (fresh2_q) present_q[visit2_q] <= 1'b1;
    if (put) fresh_q[at] <= 1'b1;
    if (remove) begin
      fresh_q[at]   <= 1'b0;
      present_q[at] <= 1'b0;
    end
    if (rst) begin
      fresh_q   <= '0;
      present_q <= '0;
    end
  end
endmodule
