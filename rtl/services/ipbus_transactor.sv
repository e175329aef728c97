// SPDX-License-Identifier: Apache-2.0

// Executes the transactions of one IPbus control packet, one after the other, and writes the response. Each word of a block is one access to
// a register. The first transaction that fails ends the packet: its header says how many words of it were done, and why; what is behind it
// is not executed. A transaction that does not fit, because the packet ends before it or its response would be longer than a message, is
// refused as a whole (bad header).
//
// Without authorisation a transaction reads one word at most: so a response never has more bytes than its request.
//
// From `start` to `done` 3 cycles, about 8 for each transaction, 4 or 5 for each word beside those of its access.
module ipbus_transactor
  import services_pkg::*;
  import ipbus_pkg::*;
  import cci_pkg::*;
#(
    parameter logic [31:0] SHAPE = '0          // a word of the configuration space
) (
    input  logic             clk,
    input  logic             rst,
    input  logic             start,            // pulse, with the header and the number of words behind it
    input  packet_hdr_t      header,
    input  message_words_t   words_behind,
    input  logic             authorised,       // at any time
    stream_if.sink           words,            // logic [31:0], in the order of this device
    stream_if.source         ask,              // cci_ask_t
    stream_if.sink           told,             // cci_told_t
    output logic             write,            // of the response
    output message_words_t   write_at,
    output logic [31:0]      write_data,
    output logic             done,             // pulse
    output message_words_t   length,           // of the response in words, with `done` and after it
    output logic             bus_error,        // pulse: an access that was not refused has failed
    output logic             too_much          // pulse: more than one word was to be read without authorisation
);
  typedef enum logic [3:0] {
    S_IDLE,
    S_HEAD,      // the header of a transaction
    S_ADDRESS,
    S_SIZE,      // is it whole, does its response fit?
    S_PLAN,
    S_DATA,      // a word of a write, an operand
    S_ASK,
    S_TOLD,
    S_CONFIG,
    S_CLOSE,     // write the header of the response
    S_SKIP       // what is behind an error
  } state_e;

  state_e           state_q;
  transaction_hdr_t trans_q;
  message_words_t   left_q;             // words of the packet not taken yet
  message_words_t   cursor_q, head_q;   // in the response
  logic [29:0]      address_q;          // of a word
  logic             outside_q;          // behind the end of the bus
  logic [31:0]      data_q, and_q;
  logic [7:0]       index_q;
  logic             modify_q;           // the write of an RMW
  logic             operand_q;          // the first of two was taken
  info_e            info_q;
  logic             fits_q, above_q;

  transaction_hdr_t offered;
  logic [31:0]      offered_word;
  cci_told_t        answer;
  assign offered_word = words.data;
  assign offered      = offered_word;
  assign answer       = told.data;

  wire is_write = trans_q.kind == TYPE_WRITE || trans_q.kind == TYPE_WRITE_SAME;
  wire is_read = trans_q.kind == TYPE_READ || trans_q.kind == TYPE_READ_SAME;
  wire is_rmw = trans_q.kind == TYPE_RMW_BITS || trans_q.kind == TYPE_RMW_SUM;
  wire is_config = trans_q.kind == TYPE_READ_CONFIG || trans_q.kind == TYPE_WRITE_CONFIG;
  wire ascends = trans_q.kind == TYPE_READ || trans_q.kind == TYPE_WRITE;
  wire writes = is_write || modify_q;                      // the access under way
  wire error_on_write = writes || trans_q.kind == TYPE_WRITE_CONFIG;
  wire beyond = outside_q || address_q[29:18] != '0;
  wire last = index_q == trans_q.words - 1'b1;
  wire take = words.valid && words.ready;
  wire form_ok = offered.version == VERSION && offered.info == REQUEST && !offered.kind[3];

  // ---- is it whole, does its response fit ----
  message_words_t needs, gives;
  always_comb begin
    needs = (is_write || trans_q.kind == TYPE_WRITE_CONFIG) ? message_words_t'(trans_q.words)
          : trans_q.kind == TYPE_RMW_BITS ? message_words_t'(2) : trans_q.kind == TYPE_RMW_SUM ? message_words_t'(1) : '0;
    gives = (is_read || is_rmw || trans_q.kind == TYPE_READ_CONFIG) ? message_words_t'(trans_q.words) : '0;
  end
  message_words_t needs_q, gives_q;
  logic           count_ok_q, final_q;
  always_ff @(posedge clk) begin
    needs_q    <= needs;
    gives_q    <= gives;
    count_ok_q <= !is_rmw || trans_q.words == 8'd1;
    final_q    <= last;          // stable while an access is under way
  end
  wire fits = needs_q <= left_q && 10'(cursor_q) + 10'(gives_q) <= 10'(MESSAGE_WORDS) && count_ok_q;
  wire above = !authorised && gives_q > message_words_t'(1);

  // ---- configuration space ----
  logic [31:0] config_word;
  always_comb
    unique case (address_q[1:0])
      2'd0: config_word = CONFIG_TYPE;
      2'd1: config_word = CONFIG_VERSION;
      2'd2: config_word = SHAPE;
      default: config_word = 32'(authorised);
    endcase
  wire config_there = !outside_q && address_q[29:2] == '0 && trans_q.kind == TYPE_READ_CONFIG;

  // ---- the response ----
  always_comb begin
    write      = 1'b0;
    write_at   = cursor_q;
    write_data = header;
    unique case (state_q)
      S_IDLE: begin
        write    = start;
        write_at = '0;
      end
      S_TOLD: begin
        write      = told.valid && answer.result == CCI_DONE && !writes;
        write_data = answer.data;
      end
      S_CONFIG: begin
        write      = config_there;
        write_data = config_word;
      end
      S_CLOSE: begin
        write      = 1'b1;
        write_at   = head_q;
        write_data = {VERSION, trans_q.id, index_q, trans_q.kind, info_q};
      end
      default: ;
    endcase
  end

  assign words.ready = state_q inside {S_HEAD, S_ADDRESS, S_DATA, S_SKIP};
  assign told.ready  = state_q == S_TOLD;
  assign ask.valid   = state_q == S_ASK && !beyond;
  assign ask.data    = '{
      write: writes,
      address: {address_q[17:0], 2'b00},
      data: data_q,
      index: index_q,
      count: trans_q.words,
      authorised: authorised
  };
  assign length = cursor_q;

  always_ff @(posedge clk) begin
    done      <= 1'b0;
    bus_error <= 1'b0;
    too_much  <= 1'b0;
    if (take) left_q <= left_q - 1'b1;

    unique case (state_q)
      S_IDLE: begin
        left_q   <= words_behind;
        cursor_q <= message_words_t'(1);
        if (start) begin
          state_q <= words_behind == '0 ? S_IDLE : S_HEAD;
          done    <= words_behind == '0;
        end
      end

      S_HEAD: begin
        trans_q   <= offered;
        head_q    <= cursor_q;
        index_q   <= '0;
        modify_q  <= 1'b0;
        operand_q <= 1'b0;
        info_q    <= INFO_SUCCESS;
        if (take) begin
          if (cursor_q == message_words_t'(MESSAGE_WORDS)) begin   // no room even for an error
            state_q <= left_q == message_words_t'(1) ? S_IDLE : S_SKIP;
            done    <= left_q == message_words_t'(1);
          end else begin
            cursor_q <= cursor_q + 1'b1;
            info_q   <= INFO_BAD_HEADER;
            state_q  <= form_ok && left_q != message_words_t'(1) ? S_ADDRESS : S_CLOSE;
          end
        end
      end

      S_ADDRESS: begin
        address_q <= offered_word[29:0];
        outside_q <= offered_word[31:18] != '0;
        if (take) state_q <= S_SIZE;
      end

      S_SIZE: begin
        fits_q  <= fits;
        above_q <= above;
        state_q <= S_PLAN;
      end

      S_PLAN: begin
        info_q <= !fits_q ? INFO_BAD_HEADER : above_q ? INFO_READ_ERROR : INFO_SUCCESS;
        too_much <= fits_q && above_q;
        if (!fits_q || above_q || trans_q.words == '0) state_q <= S_CLOSE;
        else if (is_config) state_q <= S_CONFIG;
        else state_q <= is_read ? S_ASK : S_DATA;
      end

      S_DATA: begin
        if (take) begin
          data_q    <= offered_word;
          and_q     <= data_q;
          operand_q <= 1'b1;
          if (!(trans_q.kind == TYPE_RMW_BITS && !operand_q)) state_q <= S_ASK;
        end
      end

      S_ASK:
        if (beyond) begin
          info_q    <= error_on_write ? INFO_WRITE_ERROR : INFO_READ_ERROR;
          bus_error <= 1'b1;
          state_q   <= S_CLOSE;
        end else if (ask.ready) state_q <= S_TOLD;

      S_TOLD:
        if (told.valid) begin
          if (answer.result != CCI_DONE) begin
            bus_error <= answer.result != CCI_REFUSED;
            info_q <= answer.result == CCI_SILENT ? (writes ? INFO_WRITE_TIMEOUT : INFO_READ_TIMEOUT)
                                                  : (writes ? INFO_WRITE_ERROR : INFO_READ_ERROR);
            if (is_rmw) cursor_q <= head_q + 1'b1;
            state_q <= S_CLOSE;
          end else begin
            if (!writes) cursor_q <= cursor_q + 1'b1;
            if (is_rmw && !modify_q) begin
              modify_q <= 1'b1;
              data_q   <= trans_q.kind == TYPE_RMW_BITS ? (answer.data & and_q) | data_q : answer.data + data_q;
              state_q  <= S_ASK;
            end else begin
              index_q <= index_q + 1'b1;
              if (ascends) address_q <= address_q + 1'b1;
              state_q <= final_q ? S_CLOSE : is_write ? S_DATA : S_ASK;
            end
          end
        end

      S_CONFIG: begin
        if (!config_there) begin
          info_q  <= error_on_write ? INFO_WRITE_ERROR : INFO_READ_ERROR;
          state_q <= S_CLOSE;
        end else begin
          cursor_q  <= cursor_q + 1'b1;
          index_q   <= index_q + 1'b1;
          address_q <= address_q + 1'b1;
          if (last) state_q <= S_CLOSE;
        end
      end

      S_CLOSE: begin
        state_q <= left_q == '0 ? S_IDLE : info_q == INFO_SUCCESS ? S_HEAD : S_SKIP;
        done    <= left_q == '0;
      end

      default:
        if (take && left_q == message_words_t'(1)) begin
          state_q <= S_IDLE;
          done    <= 1'b1;
        end
    endcase
    if (rst) begin
      state_q <= S_IDLE;
      done    <= 1'b0;
    end
  end
endmodule
