// SPDX-License-Identifier: Apache-2.0

// One write port, one read port with 1 cycle of latency. Block RAM, or distributed RAM if it is shallow.
module matmul_ram #(
    parameter int unsigned WIDTH = 512,
    parameter int unsigned DEPTH = 512
) (
    input  logic                     clk,
    input  logic                     write,
    input  logic [$clog2(DEPTH)-1:0] write_index,
    input  logic [WIDTH-1:0]         write_data,
    input  logic                     read,
    input  logic [$clog2(DEPTH)-1:0] read_index,
    output logic [WIDTH-1:0]         read_data
);
  if (DEPTH > 64) begin : g_ram
    (* ram_style = "block" *) logic [WIDTH-1:0] words[DEPTH];
    always_ff @(posedge clk) if (write) words[write_index] <= write_data;
    always_ff @(posedge clk) if (read) read_data <= words[read_index];
  end else begin : g_ram
    (* ram_style = "distributed" *) logic [WIDTH-1:0] words[DEPTH];
    always_ff @(posedge clk) if (write) words[write_index] <= write_data;
    always_ff @(posedge clk) if (read) read_data <= words[read_index];
  end
endmodule
