// SPDX-License-Identifier: Apache-2.0

// The memory of both directions in one block RAM with two ports, so that each is written a word a cycle: received in the lower
// half by port 0, sent in the upper half by port 1. Port 0 reads when it does not write: `read` is what was at `read_at` one
// cycle before, if nothing was received then.
module trace_memory #(
    parameter int unsigned WIDTH = 512,
    parameter int unsigned DEPTH = 512      // for each direction: a power of two
) (
    input  logic                   clk,
    input  logic [1:0]             write,
    input  logic [1:0][$clog2(DEPTH)-1:0] write_at,
    input  logic [1:0][WIDTH-1:0]  data,
    input  logic [$clog2(DEPTH):0] read_at, // the upper bit is the direction
    output logic [WIDTH-1:0]       read
);
  wire [$clog2(DEPTH):0] at0 = write[0] ? {1'b0, write_at[0]} : read_at;
  wire [$clog2(DEPTH):0] at1 = {1'b1, write_at[1]};

  (* ram_style = "block" *) logic [WIDTH-1:0] memory[2*DEPTH];
  always_ff @(posedge clk) begin
    if (write[0]) memory[at0] <= data[0];
    if (write[1]) memory[at1] <= data[1];
    read <= memory[at0];
  end
endmodule
