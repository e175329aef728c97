// SPDX-License-Identifier: Apache-2.0

// Frames and bytes of each entry. One frame a cycle; a counter has it in the next cycle. Counters wrap. They are cleared one at a time, and
// all at the end of a reset, for as many cycles as there are positions, in which nothing is counted.
module classify_counters
  import classify_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        count,            // a frame
    input  position_t   position,
    input  logic [15:0] length,           // its bytes
    input  position_t   at,               // that are read or cleared
    input  logic        clear,            // not in a cycle with `count`: done in the first cycle without it
    output logic        cleared,
    output logic [31:0] frames,           // a cycle behind `at`
    output logic [47:0] bytes
);
  typedef struct packed {
    logic [31:0] frames;
    logic [47:0] bytes;
  } counts_t;
  localparam int unsigned W = $bits(position_t);

  // Written like this it is one memory with two ports to read.
  (* ram_style = "distributed" *) logic [$bits(counts_t)-1:0] memory[POSITIONS];
  logic [W:0] cleaning_q;                 // the position that is cleared after a reset; the upper bit: all are
  wire        cleaning = !cleaning_q[W];
  counts_t    old, read, new_;
  assign old  = memory[position];
  assign new_ = '{frames: old.frames + 1'b1, bytes: old.bytes + 48'(length)};

  wire        counts = count && !cleaning;
  assign cleared = clear && !counts && !cleaning;
  wire position_t target = cleaning ? cleaning_q[W-1:0] : counts ? position : at;
  always_ff @(posedge clk) if (cleaning || counts || cleared) memory[target] <= counts ? new_ : '0;

  always_ff @(posedge clk) begin
    read <= counts_t'(memory[at]);
    if (rst) cleaning_q <= '0;
    else if (cleaning) cleaning_q <= cleaning_q + 1'b1;
  end
  assign frames = read.frames;
  assign bytes  = read.bytes;
endmodule
