// SPDX-License-Identifier: Apache-2.0

// Messages in device memory as streams for the set-up unit: a received message as a stream of 32-bit words, an answer from such a stream.
// One word a cycle in each direction: no shifters, at any DATA_W.
//
// Reading: one burst per message. The buffer holds all of it, so R never stalls. First word 3 cycles after the first beat (4 at DATA_W 64).
// Writing: each beat is a burst of its own, written as soon as it is full, so W never stalls within a burst. A word marked `first` begins
// an answer at `write_addr`, also if the previous one was not completed. `written` is valid when all of the answer is visible.
module rpc_messages
  import memory_pkg::*;
  import rpc_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input  logic     clk,
    input  logic     rst,
    axi_if.master    mem,         // all with ID 0
    stream_if.sink   read,        // message_read_t; aligned to MESSAGE_BYTES, accepted when all words of the previous message were sent
    stream_if.source word,        // word_t of the message; the last is padded with the bytes that follow in memory
    stream_if.sink   write,       // word_t of an answer
    input  addr_t    write_addr,  // address of the answer, aligned to a beat; constant during an answer
    stream_if.source written      // logic: memory reported an error for the answer
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned WORDS = DATA_W / 32;
  localparam int unsigned BEAT_W = $clog2(BYTES);
  localparam int unsigned LANE_W = $clog2(WORDS);
  typedef logic [LANE_W-1:0] lane_t;

  // Bytes on a bus begin at the low end, those of a word at the high end.
  function automatic logic [31:0] swap(logic [31:0] x);
    return {x[7:0], x[15:8], x[23:16], x[31:24]};
  endfunction

  // ---- reading ----
  typedef struct packed {
    logic              error;
    logic [DATA_W-1:0] data;
  } beat_t;

  stream_if #(.T(beat_t)) arriving ();
  stream_if #(.T(beat_t)) beat ();
  stream_if #(.T(word_t)) picked ();
  logic beats_empty;
  stream_fifo #(.T(beat_t), .DEPTH(MESSAGE_BYTES / BYTES)) beats (
      .clk, .rst, .in(arriving), .out(beat), .empty(beats_empty)
  );
  stream_slice #(.T(word_t)) word_slice (.clk, .rst, .in(picked), .out(word));

  logic        asking_q;             // AR is valid
  logic        reading_q;            // words remain
  addr_t       read_addr_q;
  logic [7:0]  read_len_q;
  logic [8:0]  words_left_q;         // of the message, minus one
  logic        read_first_q, read_error_q;
  lane_t       read_lane_q;

  assign read.ready  = !reading_q;
  assign mem.araddr  = read_addr_q;
  assign mem.arid    = '0;
  assign mem.arlen   = read_len_q;
  assign mem.arvalid = asking_q;

  assign arriving.valid = mem.rvalid;
  assign arriving.data  = '{error: mem.rresp != AXI_OKAY, data: mem.rdata};
  assign mem.rready     = arriving.ready;

  wire words_end = words_left_q == '0;
  assign picked.valid      = beat.valid;
  assign picked.data.data  = swap(beat.data.data[read_lane_q*32+:32]);
  assign picked.data.first = read_first_q;
  assign picked.data.last  = words_end;
  assign picked.data.error = words_end && (read_error_q || beat.data.error);
  assign beat.ready        = picked.ready && (words_end || read_lane_q == '1);

  always_ff @(posedge clk) begin
    if (read.valid && read.ready) begin
      read_addr_q  <= read.data.addr;
      read_len_q   <= 8'((read.data.length - 1'b1) >> BEAT_W);
      words_left_q <= 9'((read.data.length - 1'b1) >> 2);
      read_lane_q  <= '0;
      read_first_q <= 1'b1;
      read_error_q <= 1'b0;
    end else if (picked.valid && picked.ready) begin
      words_left_q <= words_left_q - 1'b1;
      read_lane_q  <= read_lane_q + 1'b1;
      read_first_q <= 1'b0;
      read_error_q <= read_error_q || beat.data.error;
    end
    if (rst) begin
      asking_q  <= 1'b0;
      reading_q <= 1'b0;
    end else if (read.valid && read.ready) begin
      asking_q  <= 1'b1;
      reading_q <= 1'b1;
    end else begin
      if (mem.arready) asking_q <= 1'b0;
      if (picked.valid && picked.ready && words_end) reading_q <= 1'b0;
    end
  end

  // ---- writing ----
  typedef enum logic [1:0] {
    GATHER,   // collect words into the beat
    HAND_OVER,// the beat is complete: AW and W, each until accepted
    SETTLE,   // the answer is complete: until memory has answered all writes
    REPORT
  } write_state_e;

  write_state_e      write_state_q;
  logic [DATA_W-1:0] write_beat_q;
  logic [WORDS-1:0]  write_words_q;  // words of the beat that are valid
  lane_t             write_lane_q;
  addr_t             beat_addr_q;
  logic              write_last_q, write_error_q;
  logic              aw_valid_q, w_valid_q;
  logic [7:0]        unacknowledged_q;

  wire lane_t lane = write.data.first ? '0 : write_lane_q;
  wire take = write.valid && write.ready;
  wire handed_over = (!aw_valid_q || mem.awready) && (!w_valid_q || mem.wready);

  assign write.ready = write_state_q == GATHER;
  assign mem.awaddr  = beat_addr_q;
  assign mem.awid    = '0;
  assign mem.awlen   = '0;
  assign mem.awvalid = aw_valid_q;
  assign mem.wdata   = write_beat_q;
  assign mem.wlast   = 1'b1;
  assign mem.wvalid  = w_valid_q;
  assign mem.bready  = 1'b1;
  for (genvar i = 0; i < WORDS; i++) begin : g_strobe
    assign mem.wstrb[i*4+:4] = {4{write_words_q[i]}};
  end
  assign written.valid = write_state_q == REPORT;
  assign written.data  = write_error_q;

  always_ff @(posedge clk) begin
    if (take) begin
      write_beat_q[lane*32+:32] <= swap(write.data.data);
      write_words_q             <= (lane == '0 ? '0 : write_words_q) | WORDS'(1) << lane;
      write_lane_q              <= lane + 1'b1;
      write_last_q              <= write.data.last;
      if (write.data.first) beat_addr_q <= write_addr;
    end
    if (mem.bvalid && mem.bresp != AXI_OKAY) write_error_q <= 1'b1;
    unique case (write_state_q)
      GATHER: if (take && (write.data.last || lane == '1)) write_state_q <= HAND_OVER;
      HAND_OVER:
      if (handed_over) begin
        beat_addr_q   <= beat_addr_q + addr_t'(BYTES);
        write_state_q <= write_last_q ? SETTLE : GATHER;
      end
      SETTLE: if (unacknowledged_q == '0) write_state_q <= REPORT;
      REPORT:
      if (written.ready) begin
        write_error_q <= 1'b0;
        write_state_q <= GATHER;
      end
      default: write_state_q <= GATHER;
    endcase
    if (rst) begin
      write_state_q    <= GATHER;
      write_error_q    <= 1'b0;
      write_lane_q     <= '0;
      aw_valid_q       <= 1'b0;
      w_valid_q        <= 1'b0;
      unacknowledged_q <= '0;
    end else begin
      if (take && (write.data.last || lane == '1)) begin
        aw_valid_q <= 1'b1;
        w_valid_q  <= 1'b1;
      end else begin
        if (mem.awready) aw_valid_q <= 1'b0;
        if (mem.wready) w_valid_q <= 1'b0;
      end
      unacknowledged_q <= unacknowledged_q + 8'(mem.awvalid && mem.awready) - 8'(mem.bvalid);
    end
  end

  wire unused = &{1'b0, write.data.error, beats_empty, mem.rid, mem.rlast, mem.bid};
endmodule
