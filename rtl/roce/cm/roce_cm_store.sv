// SPDX-License-Identifier: Apache-2.0

// Two FIFOs of wide values in one narrow block RAM, with one output; a value is written and read a word a cycle. When both hold values,
// they are read alternately. A value takes WORDS = $bits(T) / 72 cycles, rounded up, on each side, and 2 cycles in between; `in` is taken
// in the last of its cycles, and must be stable until then. Each FIFO holds DEPTH values, and `out` one more.
module roce_cm_store #(
    parameter type T = logic,
    parameter int unsigned DEPTH = 32       // a power of two, 2 or more
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.sink   in,
    input  logic     queue,                 // the FIFO that `in` is written to
    output logic     full,                  // this FIFO is full
    stream_if.source out,
    output logic     idle                   // no activity: values inside wait for `out`
);
  localparam int unsigned WORD_BITS = 72;
  localparam int unsigned WORDS = ($bits(T) + WORD_BITS - 1) / WORD_BITS;
  localparam int unsigned WORD_W = $clog2(WORDS + 1);
  localparam int unsigned PTR_W = $clog2(DEPTH);
  typedef logic [WORDS-1:0][WORD_BITS-1:0] words_t;
  typedef logic [WORD_W-1:0] word_t;

  if (DEPTH < 2 || 2 ** PTR_W != DEPTH) begin : g_bad
    $fatal(1, "roce_cm_store: DEPTH must be a power of two, 2 or more");
  end

  (* ram_style = "block" *) logic [WORD_BITS-1:0] words[2*DEPTH*2**WORD_W];
  logic [1:0][PTR_W:0] write_q, read_q;
  word_t  write_word_q, read_word_q;
  logic [WORD_BITS-1:0] word_q;
  words_t out_q;
  logic   out_valid_q;
  logic   last_q;                           // the FIFO of the value at `out`, or of the one being read
  words_t in_words;
  assign in_words = (WORDS * WORD_BITS)'(in.data);

  wire storing = in.valid && !full;
  wire [1:0] waiting = {read_q[1] != write_q[1], read_q[0] != write_q[0]};
  wire from = (read_word_q == '0 && waiting[!last_q]) ? !last_q : last_q;
  wire loading = !out_valid_q && waiting[from];
  wire loaded = read_word_q == word_t'(WORDS);

  assign full      = write_q[queue] == {~read_q[queue][PTR_W], read_q[queue][PTR_W-1:0]};
  assign in.ready  = storing && write_word_q == word_t'(WORDS - 1);
  assign out.valid = out_valid_q;
  assign out.data  = T'(out_q);
  assign idle      = !in.valid && !loading && !(out_valid_q && out.ready);

  always_ff @(posedge clk) begin
    if (storing) words[{queue, write_q[queue][PTR_W-1:0], write_word_q}] <= in_words[write_word_q];
    word_q <= words[{from, read_q[from][PTR_W-1:0], read_word_q}];
    if (loading && read_word_q != '0) out_q[read_word_q-1'b1] <= word_q;

    if (storing) write_word_q <= in.ready ? '0 : write_word_q + 1'b1;
    read_word_q <= loading && !loaded ? read_word_q + 1'b1 : '0;
    if (in.ready) write_q[queue] <= write_q[queue] + 1'b1;
    if (loading) last_q <= from;
    if (loading && loaded) begin
      read_q[from] <= read_q[from] + 1'b1;
      out_valid_q  <= 1'b1;
    end else if (out.ready) out_valid_q <= 1'b0;

    if (rst) begin
      write_q      <= '0;
      read_q       <= '0;
      write_word_q <= '0;
      read_word_q  <= '0;
      out_valid_q  <= 1'b0;
    end
  end
endmodule
