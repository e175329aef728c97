// SPDX-License-Identifier: Apache-2.0

// The private data of every connection (first those of the REQ, then those of the answer), and the current ones: those of the event until
// the connection's are loaded. A word a cycle: loading takes WORDS + 1 cycles, saving WORDS.
module roce_cm_private
  import roce_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input  logic                   clk,
    input  logic [$clog2(QPS)-1:0] idx,
    input  logic                   take,      // `came` becomes current
    input  logic                   clear,     // the current data become zero
    input  private_t               came,
    input  logic                   loading,   // until `loaded`: load the connection's data
    output logic                   loaded,
    input  logic                   saving,    // until `saved`: store the current data, which rotate in place
    output logic                   saved,
    output private_t               at_work
);
  localparam int unsigned WORDS = 4;
  typedef logic [$bits(private_t)/WORDS-1:0] word_t;
  typedef logic [$clog2(WORDS+1)-1:0] count_t;

  (* ram_style = "block" *) word_t words[QPS*WORDS];
  word_t             read_q;
  word_t [WORDS-1:0] at_work_q;
  count_t            word_q;
  wire [$clog2(WORDS)-1:0] word = word_q[$clog2(WORDS)-1:0];

  assign at_work = at_work_q;
  assign loaded  = word_q == count_t'(WORDS);
  assign saved   = word_q == count_t'(WORDS - 1);

  always_ff @(posedge clk) begin
    if (saving) words[{idx, word}] <= at_work_q[0];
    read_q <= words[{idx, word}];
  end

  always_ff @(posedge clk) begin
    word_q <= loading || saving ? word_q + 1'b1 : '0;
    if (take) at_work_q <= came;
    else if (clear) at_work_q <= '0;
    else if (saving) at_work_q <= {at_work_q[0], at_work_q[WORDS-1:1]};
    else if (loading && word_q != '0) at_work_q <= {read_q, at_work_q[WORDS-1:1]};
  end
endmodule
