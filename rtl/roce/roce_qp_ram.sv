// SPDX-License-Identifier: Apache-2.0

// RAM of WORDS words, block RAM below 2048 words and UltraRAM, which has 4096 of 72 bits, from there on: one write and one read a cycle. A word read is on
// `read_data` one cycle after `read`, until the next read; one that is written in the cycle in which it is read comes as it was
// before. Not reset.
module roce_qp_ram #(
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
  logic [$bits(T)-1:0] read_q;

  if (WORDS >= 2048) begin : g_memory
    (* ram_style = "ultra" *) logic [$bits(T)-1:0] words[WORDS];
    always_ff @(posedge clk) begin
      if (write) words[write_at] <= write_data;
      if (read) read_q <= words[read_at];
    end
  end else begin : g_memory
    (* ram_style = "block" *) logic [$bits(T)-1:0] words[WORDS];
    always_ff @(posedge clk) begin
      if (write) words[write_at] <= write_data;
      if (read) read_q <= words[read_at];
    end
  end
  assign read_data = T'(read_q);
endmodule
