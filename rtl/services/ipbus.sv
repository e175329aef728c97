// SPDX-License-Identifier: Apache-2.0

// An IPbus 2.0 device over UDP: control, status and resend packets of several clients at once. Each (IPv4 address, port) has a context of its
// own, with the identifier of the packet that it has to send next and its last BUFFERS responses: a control packet with that identifier is
// executed, any other is dropped, so that each is executed exactly once, and a response that was lost is sent again on request. Packets
// with identifier 0 are executed as they come and need no context. Both byte orders are understood; the answer has that of its request.
//
// One packet at a time. 7 cycles from the record to the first transaction, 2 cycles from the last to the record of the response, whose words
// follow one a cycle. A status packet says nothing about other clients: its history is zero.
//
// What a client without authorisation can have sent to an address that it claims: for a control or status packet as many bytes as it sends,
// for each response that it has caused RESENDS times as many again.
module ipbus
  import packet_pkg::*;
  import services_pkg::*;
  import ipbus_pkg::*;
  import cci_pkg::*;
  import time_pkg::*;
#(
    parameter int unsigned CONTEXTS = 4,
    parameter int unsigned BUFFERS = 2,
    parameter int unsigned RESENDS = 3,                // of a response without authorisation
    parameter longint unsigned IN_USE_CYCLES = 500_000_000
) (
    input  logic            clk,
    input  logic            rst,
    input  time_t           now,
    input  ipv4_addr_t      own_ip,
    input  logic [15:0]     port,                      // of this service
    input  logic [47:0]     session_cycles,
    input  ipv4_addr_t      seen_ip,                   // a packet that arrives
    input  logic [15:0]     seen_port,
    output logic            seen_authorised,
    stream_if.sink          message,                   // service_rx_t
    stream_if.sink          words,                     // service_word_t
    stream_if.source        response,                  // service_tx_t
    stream_if.source        response_words,            // service_word_t
    stream_if.source        ask,                       // cci_ask_t
    stream_if.sink          told,                      // cci_told_t
    output ipv4_addr_t      client,                    // whose packet is processed, until the cycle after any event of it
    output service_events_t events,                    // those of IPbus, but for what cci_guard and ipbus_admission count
    output logic            idle
);
  localparam int unsigned RESPONSES = CONTEXTS * BUFFERS + 1;
  localparam int unsigned CONTEXT_W = CONTEXTS > 1 ? $clog2(CONTEXTS) : 1;
  localparam int unsigned BUFFER_W = BUFFERS > 1 ? $clog2(BUFFERS) : 1;
  localparam int unsigned AT_W = $clog2(RESPONSES * PLACE_WORDS);
  if (BUFFERS < 1 || BUFFERS > 4 || 2 ** $clog2(BUFFERS) != BUFFERS || CONTEXTS < 1 || CONTEXTS > 16) begin : g_bad
    $fatal(1, "ipbus: BUFFERS must be 1, 2 or 4, CONTEXTS 1 to 16");
  end
  typedef logic [CONTEXT_W-1:0] context_t;
  typedef logic [BUFFER_W-1:0] buffer_t;
  typedef logic [AT_W-1:0] at_t;

  typedef struct packed {
    logic           valid;
    logic [15:0]    id;
    message_words_t words;
    logic [1:0]     resends;                           // that are left without authorisation
  } kept_t;

  typedef struct packed {
    logic [15:0]         expected;
    buffer_t             turn;                         // takes the next response
    kept_t [BUFFERS-1:0] kept;
  } state_t;
  localparam state_t NEW = '{expected: 16'd1, default: '0};

  typedef enum logic [3:0] {
    S_IDLE,
    S_FIND,
    S_LOAD,
    S_HEADER,
    S_MATCH,     // what kind of packet it is,
    S_JUDGE,     // and what becomes of it
    S_SKIP,      // drop the rest of the packet
    S_START,
    S_RUN,
    S_STATUS,
    S_SEND,      // the record of the response
    S_WORDS
  } step_e;

  step_e          step_q;
  service_rx_t    from_q;
  packet_hdr_t    header_q;
  logic           swapped_q;                           // the words have the other byte order
  logic           last_q;                              // the header is all
  logic           found_q, keeps_q;
  context_t       at_q;
  state_t         state_q;
  buffer_t        buffer_q;
  message_words_t length_q, count_q;
  at_t            place_q;

  service_word_t word;
  packet_hdr_t   straight, turned;
  assign word     = words.data;
  assign straight = word.data;
  assign turned   = byte_swapped(word.data);

  // ---- contexts ----
  logic     found, authorised, can_take, can_enter, take, used, login, logout, expired;
  context_t at, victim, entrance, target;
  logic     authorised_q;                              // of this client, in this packet
  cci_told_t answer;
  assign answer = told.data;

  ipbus_contexts #(.CONTEXTS(CONTEXTS), .IN_USE_CYCLES(IN_USE_CYCLES)) contexts (
      .clk, .rst, .now, .session_cycles, .seen_ip, .seen_port, .seen_authorised, .ip(from_q.ip), .port(from_q.port), .found, .at,
      .authorised, .can_take, .victim, .can_enter, .entrance, .target, .take, .used, .login, .logout, .expired
  );

  state_t   loaded;
  logic     save;
  ram_1w1r #(.T(state_t), .WORDS(2 ** CONTEXT_W)) states (
      .clk, .write(save), .write_at(at_q), .write_data(state_q), .read(step_q == S_LOAD), .read_at(at), .read_data(loaded)
  );

  // ---- what kind of packet it is ----
  wire form_ok = header_q.version == VERSION && header_q.reserved == '0 && from_q.length[1:0] == '0 && header_q.byte_order == ORDER_MARK;
  wire control = form_ok && header_q.kind == PACKET_CONTROL;
  wire status = form_ok && header_q.kind == PACKET_STATUS && header_q.id == '0 && from_q.length == message_length_t'(4 * STATUS_WORDS);
  wire resend = form_ok && header_q.kind == PACKET_RESEND && header_q.id != '0 && last_q;
  wire numbered = header_q.id != '0;
  logic is_control, is_status, is_resend, reliable, in_turn;
  always_ff @(posedge clk)
    if (step_q == S_MATCH) begin
      is_control <= control;
      is_status  <= status;
      is_resend  <= resend;
      reliable   <= numbered;
      in_turn    <= !numbered || header_q.id == state_q.expected;
    end
  wire has_context = !reliable || found_q || can_take;

  // The response to send again.
  logic    kept_allowed;
  buffer_t kept_at;
  always_ff @(posedge clk)
    if (step_q == S_MATCH) begin
      kept_allowed <= 1'b0;
      kept_at      <= '0;
      for (int unsigned i = 0; i < BUFFERS; i++)
        if (found_q && state_q.kept[i].valid && state_q.kept[i].id == header_q.id) begin
          kept_allowed <= authorised_q || state_q.kept[i].resends != '0;
          kept_at      <= buffer_t'(i);
        end
    end
  wire runs = step_q == S_JUDGE && is_control && in_turn && has_context;
  wire resends = step_q == S_JUDGE && is_resend && kept_allowed;

  // ---- execution ----
  stream_if #(.T(logic [31:0])) run_words ();
  logic           run_write, run_done, bus_error, too_much;
  message_words_t run_at, run_length;
  logic [31:0]    run_data;
  assign run_words.valid = words.valid && step_q == S_RUN;
  assign run_words.data  = swapped_q ? turned : straight;

  stream_if #(.T(cci_told_t)) run_told ();
  wire no_place = answer.login && !found_q && !can_enter;
  assign run_told.valid = told.valid;
  assign told.ready     = run_told.ready;
  always_comb begin
    cci_told_t passed;
    passed = answer;
    if (no_place) passed.result = CCI_REFUSED;
    run_told.data = passed;
  end

  ipbus_transactor #(
      .SHAPE({8'(CONTEXTS), 8'(BUFFERS), 16'(MESSAGE_BYTES)})
  ) transactor (
      .clk, .rst, .start(step_q == S_START), .header(header_q), .words_behind(message_words_t'(from_q.length >> 2) - 1'b1), .authorised(authorised_q),
      .words(run_words), .ask, .told(run_told), .write(run_write), .write_at(run_at), .write_data(run_data), .done(run_done),
      .length(run_length), .bus_error, .too_much
  );

  wire logs_in = told.valid && told.ready && answer.login && !no_place;
  assign login  = logs_in;
  assign logout = told.valid && told.ready && answer.logout && found_q;
  assign take   = (runs && reliable && !found_q) || (logs_in && !found_q);
  assign used   = found_q && (runs || resends || (step_q == S_JUDGE && is_status));
  assign target = found_q ? at_q : step_q == S_JUDGE ? victim : entrance;

  // ---- the responses ----
  function automatic at_t place_of(context_t number, buffer_t turn);
    return at_t'((32'(number) * BUFFERS + 32'(turn)) * PLACE_WORDS);
  endfunction
  // Of a packet with identifier 0, and of the status.
  localparam at_t SCRATCH = at_t'(CONTEXTS * BUFFERS * PLACE_WORDS);

  logic [31:0] status_word;
  always_comb
    unique case (count_q)
      message_words_t'(0): status_word = header_q;
      message_words_t'(1): status_word = 32'(MESSAGE_BYTES);
      message_words_t'(2): status_word = 32'(BUFFERS);
      message_words_t'(3): status_word = packet_hdr(state_q.expected, PACKET_CONTROL);
      default: status_word = '0;
    endcase

  logic        status_write, fetch, out_valid_q, out_last_q;
  logic [31:0] logical, fetched;
  at_t         store_at;
  assign status_write = step_q == S_STATUS;
  assign logical  = status_write ? status_word : run_data;
  assign store_at = place_q + (status_write ? at_t'(count_q) : at_t'(run_at));
  assign fetch    = step_q == S_WORDS && count_q != length_q && (!out_valid_q || response_words.ready);
  ram_1w1r #(.T(logic [31:0]), .WORDS(2 ** AT_W)) responses (
      .clk, .write(run_write || status_write), .write_at(store_at), .write_data(swapped_q ? byte_swapped(logical) : logical),
      .read(fetch), .read_at(place_q + at_t'(count_q)), .read_data(fetched)
  );

  assign response.valid = step_q == S_SEND;
  assign response.data  = '{
      mac: from_q.mac, ip: from_q.ip, from_ip: own_ip, port: from_q.port, from_port: port, ttl: TTL_ROUTED, icmp: 1'b0, length: message_length_t'({length_q, 2'b00})
  };
  assign response_words.valid = out_valid_q;
  assign response_words.data  = '{last: out_last_q, data: fetched};

  // ---- one after another ----
  assign message.ready = step_q == S_IDLE;
  assign words.ready   = step_q == S_HEADER || step_q == S_SKIP || (step_q == S_RUN && run_words.ready);
  assign save          = step_q == S_SEND && found_q;

  always_ff @(posedge clk) begin
    unique case (step_q)
      S_IDLE: begin
        from_q <= message.data;
        if (message.valid) step_q <= S_FIND;
      end

      S_FIND: step_q <= S_LOAD;

      S_LOAD: begin
        found_q      <= found;
        at_q         <= at;
        authorised_q <= authorised;
        step_q       <= S_HEADER;
      end

      S_HEADER: begin
        state_q   <= found_q ? loaded : NEW;
        swapped_q <= straight.version != VERSION || straight.byte_order != ORDER_MARK;
        header_q  <= straight.version != VERSION || straight.byte_order != ORDER_MARK ? turned : straight;
        last_q    <= word.last;
        if (words.valid) step_q <= S_MATCH;
      end

      S_MATCH: step_q <= S_JUDGE;

      S_JUDGE: begin
        count_q  <= '0;
        buffer_q <= is_resend ? kept_at : state_q.turn;
        keeps_q  <= is_control && reliable;
        length_q <= is_resend ? state_q.kept[kept_at].words : message_words_t'(STATUS_WORDS);
        place_q  <= is_resend ? place_of(at_q, kept_at) : is_control && reliable ? place_of(found_q ? at_q : victim, state_q.turn) : SCRATCH;
        step_q   <= last_q ? S_IDLE : S_SKIP;
        if (runs) begin
          step_q <= S_START;
          if (reliable) begin
            state_q.expected <= next_id(state_q.expected);
            state_q.kept[state_q.turn].valid <= 1'b0;
            found_q <= 1'b1;
            if (!found_q) at_q <= victim;
          end
        end else if (resends) begin
          if (!authorised_q) state_q.kept[kept_at].resends <= state_q.kept[kept_at].resends - 1'b1;
          step_q <= S_SEND;
        end
      end

      S_START: step_q <= S_RUN;

      S_RUN: begin
        if (logs_in) begin
          found_q <= 1'b1;
          if (!found_q) at_q <= entrance;
        end
        if (logs_in || logout) authorised_q <= logs_in;
        length_q <= run_length;
        if (run_done) begin
          step_q <= S_SEND;
          if (keeps_q) begin
            state_q.kept[buffer_q] <= '{valid: 1'b1, id: header_q.id, words: run_length, resends: 2'(RESENDS)};
            state_q.turn <= buffer_t'((32'(buffer_q) + 1) % BUFFERS);
          end
        end
      end

      S_STATUS: begin
        count_q <= count_q + 1'b1;
        if (count_q == message_words_t'(STATUS_WORDS - 1)) step_q <= S_SEND;
      end

      S_SEND: begin
        count_q <= '0;
        if (response.ready) step_q <= S_WORDS;
      end

      S_WORDS: begin
        if (fetch) count_q <= count_q + 1'b1;
        if (out_valid_q && response_words.ready && out_last_q) step_q <= S_IDLE;
      end

      default: if (words.valid && word.last) step_q <= is_status ? S_STATUS : S_IDLE;
    endcase

    if (rst || step_q != S_WORDS) out_valid_q <= 1'b0;
    else if (!out_valid_q || response_words.ready) begin
      out_valid_q <= fetch;
      out_last_q  <= count_q == length_q - 1'b1;
    end
    if (rst) step_q <= S_IDLE;
  end

  // ---- events ----
  assign client = from_q.ip;
  always_ff @(posedge clk) begin
    events <= '0;
    if (!rst) begin
      if (step_q == S_JUDGE) begin
        events.drop_malformed <= !is_control && !is_status && !is_resend;
        events.drop_id        <= is_control && !in_turn;
        events.drop_context   <= is_control && in_turn && !has_context;
        events.resent         <= resends;
        events.resend_unknown <= is_resend && !resends;
      end
      events.bus_error       <= bus_error;
      events.refused         <= too_much;
      events.login           <= logs_in;
      events.login_refused   <= told.valid && told.ready && no_place;
      events.session_expired <= expired;
    end
  end

  assign idle = step_q == S_IDLE;
endmodule
