// SPDX-License-Identifier: Apache-2.0

// Buffers of A and B for the array. Packets come in the order in which they were requested (`note` says what each is) and are
// taken one beat a cycle, always: room was reserved. A: two chunks of ROWS x CHUNK_K. B: a ring of BUFFER rows of PANEL columns.
// A step reads a column of A and COLS values of a row of B; they are there 2 cycles later.
module matmul_buffers
  import matmul_pkg::*;
#(
    parameter int unsigned DATA_W  = 512,
    parameter int unsigned ROWS    = 8,
    parameter int unsigned COLS    = 8,
    parameter int unsigned CHUNK_K = 256,
    parameter int unsigned BUFFER  = 512
) (
    input  logic                       clk,
    input  logic                       rst,
    input  logic                       clear,      // pulse: clears everything; no read may be outstanding
    stream_if.sink                     note,       // fetch_t, one for each packet
    axis_if.sink                       data,
    output logic [511:0]               args,       // the last packet for TO_ARGS, first byte lowest
    output logic                       args_loaded,// pulse
    output logic                       a_loaded,   // pulse: a chunk of A is complete
    output logic                       b_loaded,   // pulse: a row of B is complete
    output logic                       error,      // pulse: a packet came with an error
    input  logic                       read,
    input  slot_t                      read_slot,
    input  logic                       read_half,  // of the A buffer
    input  logic [$clog2(CHUNK_K)-1:0] read_k,     // in the chunk
    input  logic [$clog2(BUFFER)-1:0]  read_row,   // of the B ring
    output logic [ROWS-1:0][31:0]      west,
    output logic [COLS-1:0][31:0]      north
);
  localparam int unsigned WORDS = DATA_W / 32;
  localparam int unsigned WORD_W = $clog2(WORDS);
  localparam int unsigned K_W = $clog2(CHUNK_K);
  localparam int unsigned ROW_W = $clog2(BUFFER);
  localparam int unsigned A_DEPTH = 2 * CHUNK_K / WORDS;
  localparam int unsigned A_W = $clog2(A_DEPTH);

  // ---- in ----
  localparam int unsigned BEAT_W = 8;
  fetch_t            to;
  logic [BEAT_W-1:0] beat_q;       // of the packet
  logic              half_q, taken, ended;
  logic [ROW_W-1:0]  row_q;

  assign to          = note.data;
  assign data.tready = note.valid;
  assign taken       = data.tvalid && data.tready;
  assign ended       = taken && data.tlast;
  assign note.ready  = data.tvalid && data.tlast;

  always_ff @(posedge clk) begin
    args_loaded <= !rst && ended && to.place == TO_ARGS;
    a_loaded    <= !rst && ended && to.place == TO_A && to.last;
    b_loaded    <= !rst && ended && to.place == TO_B;
    error       <= !rst && ended && data.tuser;
    if (taken && to.place == TO_ARGS) args <= 512'({data.tdata, args} >> DATA_W);
    if (rst || clear) begin
      beat_q <= '0;
      half_q <= 1'b0;
      row_q  <= '0;
    end else if (taken) begin
      beat_q <= data.tlast ? '0 : beat_q + 1'b1;
      if (ended && to.place == TO_A && to.last) half_q <= !half_q;
      if (ended && to.place == TO_B) row_q <= row_q + 1'b1;
    end
  end

  // ---- A: a RAM for each row; a column of it is one word of each, for all slots of a step ----
  slot_t             slot_q;
  logic              read_q;
  logic [WORD_W-1:0] word_q;
  for (genvar r = 0; r < ROWS; r++) begin : g_a
    logic [WORDS-1:0][31:0] words;
    matmul_ram #(.WIDTH(DATA_W), .DEPTH(A_DEPTH)) ram (
        .clk, .write(taken && to.place == TO_A && to.row == 4'(r)), .write_index({half_q, (A_W - 1)'(beat_q)}),
        .write_data(data.tdata), .read(read && read_slot == '0), .read_index({read_half, read_k[K_W-1:WORD_W]}),
        .read_data(words)
    );
    always_ff @(posedge clk) if (read_q && slot_q == '0) west[r] <= words[word_q];
  end

  // ---- B: COLS values of a row are a part of a beat, or several beats in RAMs side by side ----
  localparam int unsigned CHUNK_W = 32 * COLS;
  localparam int unsigned BANKS = CHUNK_W > DATA_W ? CHUNK_W / DATA_W : 1;
  localparam int unsigned PARTS = DATA_W > CHUNK_W ? DATA_W / CHUNK_W : 1;
  localparam int unsigned BANK_W = $clog2(BANKS);
  localparam int unsigned PART_W = $clog2(PARTS);
  localparam int unsigned LINES = SLOTS / PARTS;      // of the RAMs, for one row
  localparam int unsigned LINE_W = $clog2(LINES);

  logic [BANKS*DATA_W-1:0]         line;
  logic [PARTS-1:0][CHUNK_W-1:0]   parts;
  for (genvar i = 0; i < BANKS; i++) begin : g_b
    matmul_ram #(.WIDTH(DATA_W), .DEPTH(BUFFER * LINES)) ram (
        .clk, .write(taken && to.place == TO_B && (beat_q & BEAT_W'(BANKS - 1)) == BEAT_W'(i)),
        .write_index({row_q, LINE_W'(beat_q >> BANK_W)}), .write_data(data.tdata), .read,
        .read_index({read_row, LINE_W'(read_slot >> PART_W)}), .read_data(line[i*DATA_W+:DATA_W])
    );
  end
  assign parts = line;
  always_ff @(posedge clk) begin
    if (rst) read_q <= 1'b0;
    else read_q <= read;
    if (read) begin
      slot_q <= read_slot;
      word_q <= read_k[WORD_W-1:0];
    end
    if (read_q) north <= parts[slot_q & slot_t'(PARTS - 1)];
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, data.tkeep, to.cmd};
endmodule
