// SPDX-License-Identifier: Apache-2.0

// The systolic array: ROWS x COLS cells. In each cycle it takes one value for each row and one for each column, in step:
// the skew is made here. `complete` follows the last step of a tile when the last cell has its sum.
// Results are read by row: COLS sums of one row and slot, one cycle after they are requested.
module matmul_array
  import matmul_pkg::*;
#(
    parameter int unsigned ROWS = 8,
    parameter int unsigned COLS = 8
) (
    input  logic                    clk,
    input  logic                    rst,
    input  logic                    float32,
    input  step_t                   step,
    input  logic [ROWS-1:0][31:0]   west,
    input  logic [COLS-1:0][31:0]   north,
    output logic                    complete,
    input  logic                    drain,
    input  logic                    drain_bank,
    input  logic [$clog2(ROWS)-1:0] drain_row,
    input  slot_t                   drain_slot,
    output logic [COLS-1:0][31:0]   drained
);
  localparam int unsigned MUL_LATENCY = 7;
  localparam int unsigned ADD_LATENCY = 7;
  localparam int unsigned LATENCY = MUL_LATENCY + ADD_LATENCY;
  localparam int unsigned STEPS = ROWS + COLS - 1 + LATENCY;

  if (ADD_LATENCY >= SLOTS) begin : g_bad_slots
    $fatal(1, "SLOTS must cover the latency of the adder and the cycle in which the sum is kept");
  end

  // ---- control: one line of it, the cells of a diagonal do the same ----
  step_t [STEPS-1:0] steps;
  step_t [STEPS-1:1] steps_q;
  assign steps = {steps_q, step};
  localparam int unsigned EDGE = ROWS > COLS ? ROWS : COLS;
  logic [EDGE-1:0] valids;
  for (genvar i = 0; i < EDGE; i++) begin : g_valid
    assign valids[i] = steps[i].valid;
  end
  for (genvar i = 1; i < STEPS; i++) begin : g_step
    always_ff @(posedge clk) begin
      if (rst) steps_q[i] <= '0;
      else if (steps[i-1].valid || steps[i].valid) steps_q[i] <= steps[i-1];
    end
  end
  always_ff @(posedge clk) complete <= !rst && steps[STEPS-1].valid && steps[STEPS-1].last;

  // ---- data: row r enters r cycles late, column c c cycles late ----
  logic [31:0] a[ROWS][COLS+1];
  logic [31:0] b[ROWS+1][COLS];
  for (genvar r = 0; r < ROWS; r++) begin : g_west
    matmul_delay #(.CYCLES(r)) late (.clk, .valid(valids[r:0]), .in(west[r]), .out(a[r][0]));
  end
  for (genvar c = 0; c < COLS; c++) begin : g_north
    matmul_delay #(.CYCLES(c)) late (.clk, .valid(valids[c:0]), .in(north[c]), .out(b[0][c]));
  end

  logic [COLS-1:0][31:0] row[ROWS];
  for (genvar r = 0; r < ROWS; r++) begin : g_row
    for (genvar c = 0; c < COLS; c++) begin : g_cell
      matmul_cell #(.MUL_LATENCY(MUL_LATENCY), .ADD_LATENCY(ADD_LATENCY)) work (
          .clk, .rst, .float32, .step(steps[r+c+:LATENCY+1]), .west(a[r][c]), .north(b[r][c]), .east(a[r][c+1]),
          .south(b[r+1][c]), .drain_bank, .drain_slot, .drained(row[r][c])
      );
    end
  end

  always_ff @(posedge clk) if (drain) drained <= row[drain_row];
endmodule
