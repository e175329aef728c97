// SPDX-License-Identifier: Apache-2.0

// Brings a level into the domain of `clk`: two flip-flops, of which the first may be metastable. Latency 2 to 3 cycles of `clk`.
// For one bit, or for bits of which at most one changes at a time (a Gray code): others may be seen in different cycles.
// Constrain the path into `meta_q` as a false path or to less than one period of the faster clock (`set_max_delay -datapath_only`).
module cdc_bit #(
    parameter int unsigned WIDTH = 1
) (
    input  logic             clk,
    input  logic [WIDTH-1:0] in,    // from registers of another clock
    output logic [WIDTH-1:0] out
);
  (* ASYNC_REG = "TRUE" *) logic [WIDTH-1:0] meta_q = '0;
  (* ASYNC_REG = "TRUE" *) logic [WIDTH-1:0] out_q = '0;

  always_ff @(posedge clk) begin
    meta_q <= in;
    out_q  <= meta_q;
  end
  assign out = out_q;
endmodule
