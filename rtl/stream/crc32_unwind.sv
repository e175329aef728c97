// SPDX-License-Identifier: Apache-2.0

// Takes `in_count` times STEP zero bytes back out of a CRC-32 state: multiplies by x^(-8 * STEP * in_count), one binary digit of the
// count after the other, two a stage. One state a cycle, never stops; latency ceil(COUNT_W / 2) - 1 cycles: there is a register
// between two stages and none behind the last.
module crc32_unwind
  import crc32_pkg::*;
#(
    parameter int unsigned COUNT_W = 6,
    parameter int unsigned STEP = 1
) (
    input  logic               clk,
    input  logic               rst,
    input  logic               in_valid,
    input  crc32_t             in_state,
    input  logic [COUNT_W-1:0] in_count,
    output logic               out_valid,
    output crc32_t             out_state
);
  localparam int unsigned STAGES = (COUNT_W + 1) / 2;

  // Before each stage; the first is the input itself.
  logic                valid[STAGES];
  crc32_t              state[STAGES];
  logic [2*STAGES-1:0] count[STAGES];
  crc32_t              undone[STAGES];

  assign valid[0] = in_valid;
  assign state[0] = in_state;
  assign count[0] = (2 * STAGES)'(in_count);

  for (genvar s = 0; s < STAGES; s++) begin : g_stage
    crc32_t half;
    crc32_undo #(.BYTES(STEP * 4 ** s)) first (.state(state[s]), .enable(count[s][2*s]), .undone(half));
    crc32_undo #(.BYTES(STEP * 2 * 4 ** s)) second (.state(half), .enable(count[s][2*s+1]), .undone(undone[s]));
    if (s + 1 < STAGES) begin : g_register
      always_ff @(posedge clk) begin
        valid[s+1] <= valid[s] && !rst;
        state[s+1] <= undone[s];
        count[s+1] <= count[s];
      end
    end
  end

  assign out_valid = valid[STAGES-1];
  assign out_state = undone[STAGES-1];
endmodule
