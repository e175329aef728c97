// SPDX-License-Identifier: Apache-2.0

// RAM of WORDS words with a write port and a read port: one write and one read a cycle. The word read is on `read_data` one cycle
// after `read`, until the next read; a word that is written in the cycle in which it is read comes as it was before. Not reset.
//
// The kind of memory follows from the size, here and nowhere else: distributed RAM for few or narrow words, UltraRAM, which has 4096
// words of 72 bits, for many, else block RAM.
module ram_1w1r #(
    parameter type T = logic,
    parameter int unsigned WORDS = 256
) (
    input  logic                     clk,
    input  logic                     write,
    input  logic [$clog2(WORDS)-1:0] write_at,
    input  T                         write_data,
    input  logic                     read,
    input  logic [$clog2(WORDS)-1:0] read_at,
    output T                         read_data
);
  localparam string STYLE = WORDS >= 2048 ? "ultra" : WORDS <= 64 || $bits(T) <= 16 ? "distributed" : "block";

  (* ram_style = STYLE *) logic [$bits(T)-1:0] words[WORDS];
  logic [$bits(T)-1:0] read_q;
  always_ff @(posedge clk) begin
    if (write) words[write_at] <= write_data;
    if (read) read_q <= words[read_at];
  end
  assign read_data = T'(read_q);
endmodule
