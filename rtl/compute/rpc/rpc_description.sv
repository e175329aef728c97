// SPDX-License-Identifier: Apache-2.0

// Publishes the description of the device (docs/reference/device-description.md): after reset it writes a record of the device's load and
// the text from a ROM to device memory at BASE, and registers both as a region that every connection may READ but not write. From then on
// it writes the record again when the load has changed, and the text when a socket holds another kernel, with the functions that there
// are now. The text keeps its length, and each piece its place (nacelle_tb.device has the template). Word 3 of the record counts these
// changes, twice each: it is odd from before the first until after the last byte of the text is changed.
//
// `published` rises after about 1 cycle for each byte, and stays high. From then on `description` is constant; its length is 0 if memory
// answered with an error or no key was free: then the device has no description, and no record is written any more.
// A changed load is written at the first `turn` that is INTERVAL cycles or more after the last write; a text in the three turns from
// then on, the second of about 2 cycles for each 4 bytes.
module rpc_description
  import memory_pkg::*;
  import roce_pkg::*;
  import compute_pkg::*;
  import rpc_pkg::*;
  import description_pkg::*;
#(
    parameter addr_t BASE = '0,
    parameter pd_t   PD = '0,           // protection domain of the connections
    parameter int unsigned HOLDERS = 1, // sockets
    parameter int unsigned INTERVAL = 256
) (
    input  logic         clk,
    input  logic         rst,
    input  load_t        load,          // at this moment
    input  held_t [HOLDERS-1:0] held,   // the image in each socket
    input  logic         paused,        // the image in some socket is not known yet
    input  logic         turn,          // `write` is not in use by others
    stream_if.source     write,         // word_t: the record and the text, or the record alone, to be written at BASE
    stream_if.sink       written,       // logic: memory reported an error
    stream_if.source     mr_cmd,        // mr_cmd_t
    stream_if.sink       mr_rsp,        // mr_rsp_t
    output description_t description,
    output logic         published,
    output logic         writing,       // `write` is in use by this unit
    output logic         idle           // memory has the load as it is
);
  localparam int unsigned LOAD_WORDS = LOAD_BYTES / 4;
  localparam int unsigned FIELD_WORDS = $bits(load_t) / 32;
  localparam int unsigned INDEX_W = $clog2(LOAD_WORDS + WORDS + 1);
  localparam int unsigned INTERVAL_W = $clog2(INTERVAL + 1);
  typedef logic [INDEX_W-1:0] index_t;

  typedef enum logic [2:0] {
    FETCH,      // a word from the ROM
    WRITE,
    WRITTEN,
    REGISTER,
    REGISTERED,
    PUBLISHED
  } state_e;

  (* rom_style = "block", ram_style = "block" *) logic [31:0] rom[WORDS];
  initial for (int unsigned i = 0; i < WORDS; i++) rom[i] = DESCRIPTION[i];

  state_e       state_q;
  index_t       index_q;
  logic  [31:0] word_q;
  load_t        load_q;                 // as it was written last
  logic         again_q;                // the region is registered
  logic         whole_q;                // the text, too, is being written
  held_t [HOLDERS-1:0] told_q;          // what the text says
  logic  [31:0] changes_q;
  logic [INTERVAL_W-1:0] wait_q;
  description_t description_q;

  wire in_record = index_q < index_t'(LOAD_WORDS);
  wire first_text = index_q == index_t'(LOAD_WORDS);
  wire last = index_q == (whole_q ? index_t'(LOAD_WORDS + WORDS - 1) : index_t'(LOAD_WORDS - 1));
  load_t record;
  always_comb begin
    record          = load;
    record.reserved = changes_q;
  end
  wire changed = record != load_q;
  wire stale = MARKED && held != told_q;
  wire rewrites = MARKED && changes_q[0] && load_q.reserved == changes_q;   // the record in memory is odd
  wire begins = state_q == PUBLISHED && description_q.length != '0 && (changed || rewrites) && wait_q == '0 && turn;

  logic [31:0] record_word;
  always_comb begin
    record_word = '0;
    for (int unsigned i = 0; i < FIELD_WORDS; i++) if (index_q == index_t'(i)) record_word |= load_q[(FIELD_WORDS-1-i)*32+:32];
  end

  // ---- the text: marks become what is true now ----
  logic [31:0] text_word;
  if (MARKED) begin : g_marks
    localparam logic [31:0] NOTHING = "    ";
    logic        hidden_q;              // the functions of a kernel that no socket holds
    logic        before_q;              // functions come before
    logic [7:0]  count;
    logic [15:0] digits;
    wire         mark = word_q[31];
    wire [2:0]   kind = word_q[30:28];
    always_comb begin
      count = '0;
      for (int unsigned i = 0; i < HOLDERS; i++) begin
        count += 8'(told_q[i].live && KERNEL_OF[i][told_q[i].kernel[$clog2(MAX_IMAGES)-1:0]] == word_q[7:0]);
      end
      digits    = count < 8'd10 ? {8'("0") + count, 8'(" ")} : {8'("1"), 8'("0") + count - 8'd10};
      text_word = word_q;
      if (mark && kind == BEGIN_) text_word = count != '0 && before_q ? ",   " : NOTHING;
      else if (mark && kind == COUNT && !hidden_q) text_word = {digits, 16'("  ")};
      else if (mark || hidden_q) text_word = NOTHING;
    end
    always_ff @(posedge clk) begin
      if (in_record) begin
        hidden_q <= 1'b0;
        before_q <= 1'b0;
      end else if (state_q == WRITE && write.ready && mark && kind != COUNT) begin
        hidden_q <= kind == BEGIN_ && count == '0;
        before_q <= before_q || kind == BEGIN_ && count != '0;
      end
    end
  end else begin : g_no_marks
    assign text_word = word_q;
  end

  assign write.valid   = state_q == WRITE;
  assign write.data    = '{data: in_record ? record_word : text_word, first: index_q == '0, last: last, error: 1'b0};
  assign written.ready = state_q == WRITTEN;

  assign mr_cmd.valid = state_q == REGISTER;
  assign mr_cmd.data  = '{
      op: MR_REGISTER,
      mr: '{
          pd: PD, qpn: '0, group: '0, addr: BASE, length: region_size_t'(LOAD_BYTES) + region_size_t'(BYTES),
          access: '{remote_read: 1'b1, default: '0}
      },
      default: '0
  };
  assign mr_rsp.ready = state_q == REGISTERED;

  assign description = description_q;
  assign published   = state_q == PUBLISHED || again_q;
  assign writing     = state_q != PUBLISHED;
  assign idle        = state_q == PUBLISHED && (!changed && !rewrites && !stale || description_q.length == '0);

  always_ff @(posedge clk) begin
    word_q <= rom[index_q-index_t'(LOAD_WORDS)];
    if (wait_q != '0) wait_q <= wait_q - 1'b1;
    if (MARKED && state_q == FETCH && first_text) told_q <= held;
    unique case (state_q)
      FETCH: if (again_q || !first_text || !paused) state_q <= WRITE;
      WRITE:
      if (write.ready) begin
        index_q <= index_q + 1'b1;
        state_q <= last ? WRITTEN : FETCH;
      end
      WRITTEN:
      if (written.valid) begin
        state_q <= written.data || again_q ? PUBLISHED : REGISTER;
        if (MARKED && whole_q && again_q && !stale) changes_q <= changes_q + 1'b1;
      end
      REGISTER: if (mr_cmd.ready) state_q <= REGISTERED;
      REGISTERED:
      if (mr_rsp.valid) begin
        if (mr_rsp.data.ok) description_q <= '{addr: 64'(BASE) + 64'(LOAD_BYTES), rkey: mr_rsp.data.rkey, length: 32'(BYTES)};
        state_q <= PUBLISHED;
      end
      default: begin
        again_q <= 1'b1;
        index_q <= '0;
        if (stale && !changes_q[0]) changes_q <= changes_q + 1'b1;
        else if (begins) begin
          load_q  <= record;
          whole_q <= rewrites;
          wait_q  <= INTERVAL_W'(INTERVAL);
          state_q <= FETCH;
        end
      end
    endcase
    if (rst) begin
      state_q       <= FETCH;
      index_q       <= '0;
      load_q        <= '0;
      whole_q       <= 1'b1;
      told_q        <= '0;
      changes_q     <= '0;
      again_q       <= 1'b0;
      wait_q        <= '0;
      description_q <= '0;
    end
  end

  wire unused = &{1'b0, mr_rsp.data.mr, held, paused, load.reserved};
endmodule
