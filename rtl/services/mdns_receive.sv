// SPDX-License-Identifier: Apache-2.0

// Reads mDNS queries (RFC 6762, 18; names of RFC 1035, 3.1, 4.1.4). A message is stored while it arrives, one word a cycle; then its
// questions and its known answers are walked, one byte each 2 cycles, and their names compared with those of the device, all at once and
// without regard to case. The next message is taken when the walk has ended.
//
// The walk ends, whatever the message contains: a pointer is followed only to a place before the part of the name that it ends, a name has
// 255 bytes at most with its pointers, and takes 6 bytes of the message if it has more than one: 130000 cycles at most.
//
// `query` has the message if it asks for a record of the device. If all that it asks for is the PTR of the service, and that is among the
// known answers with half of its time to live or more, it is not answered (7.1). A message is malformed if it ends within what its header
// announces, or in a name with a pointer forwards, with a length of more than 63, or that is too long. Authority and additional
// records are not read.
module mdns_receive
  import packet_pkg::*;
  import services_pkg::*;
  import mdns_pkg::*;
(
    input  logic     clk,
    input  logic     rst,
    input  mac_t     mac,
    stream_if.sink   message,      // service_rx_t
    stream_if.sink   words,        // service_word_t, behind it
    stream_if.source query,        // mdns_query_t; nothing is received until it is taken
    output logic     malformed,    // pulse
    output logic     idle
);
  typedef enum logic [3:0] {
    S_IDLE,
    S_STORE,
    S_ENTRY,       // a question or a record begins
    S_LENGTH,      // of a label, or a pointer
    S_LABEL,
    S_POINTER,     // its second byte
    S_NAME,        // the name is at its end
    S_FIELDS,      // what follows the name
    S_JUDGE
  } state_e;
  localparam logic [31:0] HALF_TTL = TTL_OTHER / 2;
  localparam logic [3:0] QUESTION_FIELDS = 4'd4;     // type, class
  localparam logic [3:0] RECORD_FIELDS = 4'd10;      // and time to live, length of the data
  typedef logic [11:0] at_t;
  localparam at_t AT_QUESTIONS = 12'd12;

  state_e          state_q;
  service_word_t   word;
  service_rx_t     from_q;
  message_words_t  word_at_q;          // of the word that arrives
  at_t             at_q;
  logic            ok_q, shown_q;      // no fault so far; the byte at at_q is there
  logic [15:0]     questions_q, answers_q;
  logic            known_q;            // in the known answers
  assign word = words.data;

  // ---- the message ----
  logic [31:0] fetched;
  wire walking = state_q inside {S_LENGTH, S_LABEL, S_POINTER, S_FIELDS};
  ram_1w1r #(.T(logic [31:0]), .WORDS(512)) store (
      .clk, .write(state_q == S_STORE && words.valid), .write_at(word_at_q), .write_data(word.data),
      .read(walking && !shown_q), .read_at(message_words_t'(at_q >> 2)), .read_data(fetched)
  );
  logic [3:0][7:0] bytes;
  assign bytes = fetched;
  wire [7:0] octet = bytes[~at_q[1:0]];
  wire over = at_q >= at_t'(from_q.length);

  assign message.ready = state_q == S_IDLE;
  assign words.ready   = state_q == S_STORE;

  // ---- names: position by position; behind its end a name is decided ----
  localparam logic [8*64-1:0] HOST_NAME = (8 * 64)'({HOST_LABEL, LOCAL_NAME}) << 8 * (64 - 28);
  localparam logic [8*64-1:0] INSTANCE_NAME = (8 * 64)'({HOST_LABEL, SERVICE_LABEL, UDP_LABEL, LOCAL_NAME}) << 8 * (64 - 42);
  localparam logic [8*64-1:0] SERVICE_NAME = (8 * 64)'({SERVICE_LABEL, UDP_LABEL, LOCAL_NAME}) << 8 * (64 - 21);
  localparam logic [8*64-1:0] TYPES_NAME = (8 * 64)'({TYPES_START, UDP_LABEL, LOCAL_NAME}) << 8 * (64 - 30);
  typedef logic [5:0] place_t;
  typedef logic [63:0][7:0] name_t;
  function automatic logic [7:0] name_byte(logic [8*64-1:0] name, place_t place);
    name_t letters;
    letters = name;
    return letters[~place];
  endfunction

  place_t     place_q;                 // in the name; stays at the end
  name_set_t  same_q, same;
  logic       digit_q;                 // here is a digit of the MAC address
  logic [7:0] digit_byte_q, host_byte_q, instance_byte_q, service_byte_q, types_byte_q;
  wire [7:0]  folded = octet >= "A" && octet <= "Z" ? octet | 8'h20 : octet;   // lengths are below "A"
  always_ff @(posedge clk) begin
    digit_q         <= place_q >= place_t'(DIGITS_AT) && place_q < place_t'(DIGITS_AT + DIGITS);
    digit_byte_q    <= hex_digit(mac, digit_at_t'(place_q - place_t'(DIGITS_AT)));
    host_byte_q     <= name_byte(HOST_NAME, place_q);
    instance_byte_q <= name_byte(INSTANCE_NAME, place_q);
    service_byte_q  <= name_byte(SERVICE_NAME, place_q);
    types_byte_q    <= name_byte(TYPES_NAME, place_q);
  end
  assign same = '{
      host: folded == (digit_q ? digit_byte_q : host_byte_q),
      instance_name: folded == (digit_q ? digit_byte_q : instance_byte_q),
      service: folded == service_byte_q,
      types: folded == types_byte_q
  };

  // ---- the walk through a name ----
  at_t        start_q;                 // of the part of the name that is read: pointers lead before it
  at_t        back_q;                  // where the name ends in the message, once a pointer was followed
  logic       jumped_q, in_data_q;     // a pointer was followed; the name is the data of a known answer
  logic [7:0] visited_q;               // bytes of the name
  logic [5:0] label_q;                 // bytes left of the label
  logic [5:0] high_q;                  // of the pointer
  at_t        target;
  assign target = at_t'({high_q, octet});
  wire bad_pointer = high_q[5:4] != '0 || target < AT_QUESTIONS || target >= start_q;

  // ---- what follows it ----
  logic [3:0]  field_q;                // bytes read of the fields
  logic [23:0] value_q;
  at_t         next_q;                 // where the data of a record ends
  wire [31:0]  value = {value_q, octet};
  wire [15:0]  kind = value[31:16];
  wire         in_class = value[14:0] inside {CLASS_IN, CLASS_ANY};
  wire         in_question = questions_q != '0;
  name_set_t   name_q;                 // what the name is
  logic        ptr_q, fresh_q;         // a record: the PTR of the service, with half of its time to live
  wire any = kind == TYPE_ANY;
  wire asks_service = in_class && name_q.service && (any || kind == TYPE_PTR);
  wire asks_other = in_class
      && ((name_q.types && (any || kind == TYPE_PTR)) || (name_q.instance_name && (any || kind == TYPE_SRV || kind == TYPE_TXT))
          || (name_q.host && (any || kind == TYPE_A)));

  // ---- the verdict ----
  logic asked_service_q, asked_other_q, unicast_q;
  wire judged = state_q == S_JUDGE;
  wire answers = ok_q && (asked_other_q || (asked_service_q && !known_q));
  assign query.valid = judged && answers;
  assign query.data  = '{unicast: unicast_q, mac: from_q.mac, ip: from_q.ip};
  assign malformed   = judged && !ok_q;
  assign idle        = state_q == S_IDLE;

  always_ff @(posedge clk) begin
    shown_q <= walking && !shown_q;
    unique case (state_q)
      S_IDLE: begin
        from_q          <= message.data;
        word_at_q       <= '0;
        at_q            <= AT_QUESTIONS;
        ok_q            <= 1'b1;
        asked_service_q <= 1'b0;
        asked_other_q   <= 1'b0;
        unicast_q       <= 1'b1;
        known_q         <= 1'b0;
        questions_q     <= '0;
        answers_q       <= '0;
        if (message.valid) state_q <= S_STORE;
      end

      S_STORE: if (words.valid) begin
        word_at_q <= word_at_q + 1'b1;
        if (word_at_q == message_words_t'(1)) {questions_q, answers_q} <= word.data;
        if (word.last) begin
          state_q <= S_ENTRY;
          if (at_t'(from_q.length) < AT_QUESTIONS) begin
            ok_q    <= 1'b0;
            state_q <= S_JUDGE;
          end
        end
      end

      S_ENTRY: begin
        start_q   <= at_q;
        jumped_q  <= 1'b0;
        in_data_q <= 1'b0;
        visited_q <= '0;
        place_q   <= '0;
        same_q    <= '1;
        field_q   <= '0;
        state_q   <= in_question || answers_q != '0 ? S_LENGTH : S_JUDGE;
      end

      S_LENGTH: if (shown_q) begin
        label_q <= octet[5:0];
        high_q  <= octet[5:0];
        unique case (octet[7:6])
          2'b00:   state_q <= octet == '0 ? S_NAME : S_LABEL;
          2'b11:   state_q <= S_POINTER;
          default: begin
            ok_q    <= 1'b0;
            state_q <= S_JUDGE;
          end
        endcase
      end

      S_LABEL: if (shown_q) begin
        label_q <= label_q - 1'b1;
        if (label_q == 6'd1) state_q <= S_LENGTH;
      end

      S_POINTER: if (shown_q) begin
        jumped_q <= 1'b1;
        if (!jumped_q) back_q <= at_q + 1'b1;
        start_q <= target;
        state_q <= S_LENGTH;
        if (bad_pointer) begin
          ok_q    <= 1'b0;
          state_q <= S_JUDGE;
        end
      end

      S_NAME: begin
        name_q  <= same_q;
        if (jumped_q) at_q <= back_q;
        state_q <= S_FIELDS;
        if (in_data_q) begin
          if (same_q.instance_name) known_q <= 1'b1;
          ok_q    <= (jumped_q ? back_q : at_q) == next_q;
          state_q <= (jumped_q ? back_q : at_q) == next_q ? S_ENTRY : S_JUDGE;
        end
      end

      S_FIELDS: if (shown_q) begin
        value_q <= value[23:0];
        field_q <= field_q + 1'b1;
        if (field_q == 4'd3) begin
          ptr_q <= asks_service && kind == TYPE_PTR;
          if (in_question) begin
            if (asks_service) asked_service_q <= 1'b1;
            if (asks_other) asked_other_q <= 1'b1;
            if (asks_service || asks_other) unicast_q <= unicast_q && value[15];
          end
        end
        if (field_q == 4'd7) fresh_q <= value >= HALF_TTL;
        if (in_question && field_q == QUESTION_FIELDS - 1'b1) begin
          questions_q <= questions_q - 1'b1;
          state_q     <= S_ENTRY;
        end
        if (field_q == RECORD_FIELDS - 1'b1) begin
          answers_q <= answers_q - 1'b1;
          next_q    <= at_q + 1'b1 + at_t'(value[10:0]);
          start_q   <= at_q + 1'b1;
          jumped_q  <= 1'b0;
          in_data_q <= 1'b1;
          visited_q <= '0;
          place_q   <= '0;
          same_q    <= '1;
          state_q   <= ptr_q && fresh_q ? S_LENGTH : S_ENTRY;
          if (value[15:11] != '0) begin
            ok_q    <= 1'b0;
            state_q <= S_JUDGE;
          end
        end
      end

      default: if (!answers || query.ready) state_q <= S_IDLE;      // S_JUDGE
    endcase

    // A byte was read.
    if (walking && shown_q) begin
      at_q <= state_q == S_POINTER ? target : at_q + 1'b1;
      if (state_q == S_FIELDS && field_q == RECORD_FIELDS - 1'b1 && !(ptr_q && fresh_q)) at_q <= at_q + 1'b1 + at_t'(value[10:0]);
      if (state_q != S_FIELDS) visited_q <= visited_q + 1'b1;
      if ((state_q == S_LENGTH && octet[7:6] == '0) || state_q == S_LABEL) begin
        same_q <= same_q & same;
        if (place_q != '1) place_q <= place_q + 1'b1;
      end
      if (over || (state_q != S_FIELDS && visited_q == '1)) begin
        ok_q    <= 1'b0;
        state_q <= S_JUDGE;
      end
    end
    // The data of a record may end with the message, not behind it.
    if (state_q == S_ENTRY && at_q > at_t'(from_q.length)) begin
      ok_q    <= 1'b0;
      state_q <= S_JUDGE;
    end
    if (rst) begin
      state_q <= S_IDLE;
      shown_q <= 1'b0;
    end
  end
endmodule
