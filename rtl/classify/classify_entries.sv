// SPDX-License-Identifier: Apache-2.0

// The entries of the table with wildcards as software writes and reads them, in block RAM, and what loads them into classify_ternary: for each
// chunk the terms of a unit's 32 positions, then the rows of these, one a cycle. A load takes 3,400 cycles (14 us at 250 MHz).
//
// Entries of a unit that are enabled are loaded again as they are: their words must not have been written meanwhile, which is for the user to see
// to. `loaded` says which entries can be enabled.
module classify_entries
  import classify_pkg::*;
(
    input  logic                clk,
    input  logic                rst,
    // software: one port, not while `busy`; `rdata` 1 cycle after `at`
    input  position_t           at,
    input  logic [$clog2(ENTRY_WORDS)-1:0] at_word,
    input  logic                write,
    input  word_t               wdata,
    output word_t               rdata,
    input  logic                load,                // pulse: that unit
    input  logic [$clog2(UNITS)-1:0] load_unit,
    output logic                busy,
    output logic [POSITIONS-1:0] loaded,             // the table has the words of this position
    // the table
    output logic                row_write,
    output logic [$clog2(UNITS)-1:0]  row_unit,
    output logic [$clog2(CHUNKS)-1:0] row_chunk,
    output logic [CHUNK_W-1:0]  row_at,
    output logic [UNIT-1:0]     row_bits,
    output logic [ACTION_WORDS-1:0] action_write,    // one of the words of the action
    output position_t           action_at,
    output word_t               action
);
  typedef enum logic [1:0] {
    L_IDLE,
    L_FETCH,        // a word of each position
    L_ROWS
  } state_e;

  (* ram_style = "block" *) word_t words[POSITIONS*ENTRY_WORDS];
  state_e     state_q;
  logic [5:0] count_q;
  logic [$clog2(ENTRY_WORDS)-1:0] word_q;
  logic       fetched_q, last_q;
  logic [$clog2(UNIT)-1:0] fetched_at_q;
  term_t [UNIT-1:0] terms_q;
  wire position_t fetch_at = {row_unit, count_q[$clog2(UNIT)-1:0]};

  wire fetching = state_q == L_FETCH;
  wire [$bits(position_t)+$clog2(ENTRY_WORDS)-1:0] address = fetching ? {fetch_at, word_q} : {at, at_word};
  always_ff @(posedge clk) if (write && !busy) words[{at, at_word}] <= wdata;
  always_ff @(posedge clk) rdata <= words[address];

  assign busy      = state_q != L_IDLE;
  assign row_write = state_q == L_ROWS;
  assign row_chunk = word_q[$clog2(CHUNKS)-1:0];
  assign row_at    = count_q;
  always_comb for (int unsigned i = 0; i < UNIT; i++) row_bits[i] = ((row_at ^ terms_q[i].value) & terms_q[i].mask) == '0;

  wire is_action = word_q >= ($bits(word_q))'(ACTION_WORD);
  wire is_last   = word_q == ($bits(word_q))'(ACTION_WORD + ACTION_WORDS - 1);
  always_comb
    for (int unsigned i = 0; i < ACTION_WORDS; i++) action_write[i] = fetched_q && word_q == ($bits(word_q))'(ACTION_WORD + i);
  assign action_at    = {row_unit, fetched_at_q};
  assign action       = rdata;

  always_ff @(posedge clk) begin
    fetched_q    <= fetching && count_q < 6'(UNIT) && !rst;
    fetched_at_q <= count_q[$clog2(UNIT)-1:0];
    last_q       <= fetching && count_q == 6'(UNIT - 1);
    if (fetched_q && !is_action) terms_q[fetched_at_q] <= rdata;
    unique case (state_q)
      L_IDLE: begin
        count_q <= '0;
        word_q  <= '0;
        if (load) begin
          row_unit <= load_unit;
          state_q  <= L_FETCH;
        end
      end
      L_FETCH: begin
        if (count_q < 6'(UNIT)) count_q <= count_q + 1'b1;
        if (last_q) begin                              // the last word is taken in this cycle
          count_q <= '0;
          if (is_action) word_q <= word_q + 1'b1;
          state_q <= is_last ? L_IDLE : is_action ? L_FETCH : L_ROWS;
        end
      end
      default: begin
        count_q <= count_q + 1'b1;
        if (count_q == 6'(CHUNK_ROWS - 1)) begin
          word_q  <= word_q + 1'b1;
          state_q <= L_FETCH;
        end
      end
    endcase
    if (write && !busy) loaded[at] <= 1'b0;
    if (fetching && last_q && is_last) loaded[row_unit*UNIT+:UNIT] <= '1;
    if (rst) begin
      state_q <= L_IDLE;
      loaded  <= '0;
    end
  end
endmodule
