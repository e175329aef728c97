// SPDX-License-Identifier: Apache-2.0

// Makes the messages of the mDNS responder: all of its records (mdns_pkg::ANSWER), with the MAC address in the names, the port, the IPv4
// address and the times to live filled in. All answers are this message: whoever asks for one record of a service asks for the others
// next (RFC 6763, 12). A record and then 32-bit words; a byte a cycle, so a word each 4 cycles.
module mdns_send
  import packet_pkg::*;
  import services_pkg::*;
  import mdns_pkg::*;
(
    input logic        clk,
    input logic        rst,
    input mac_t        mac,
    input logic [15:0] port,           // of the service
    stream_if.sink     request,        // mdns_message_t; taken when its message has left
    stream_if.source   response,       // service_tx_t
    stream_if.source   response_words  // service_word_t
);
  typedef logic [$clog2(ANSWER_BYTES+4)-1:0] at_t;

  // The message, and what its bytes are, by place.
  typedef struct packed {
    byte_e      kind;
    logic [7:0] value;
  } item_t;
  typedef item_t [ANSWER_BYTES-1:0] items_t;
  function automatic items_t items();
    items_t found;
    for (int unsigned at = 0; at < ANSWER_BYTES; at++) found[at] = '{kind: byte_kind(at), value: ANSWER[8*(ANSWER_BYTES-1-at)+:8]};
    return found;
  endfunction
  localparam items_t ITEMS = items();

  mdns_message_t asked;
  assign asked = request.data;

  logic        words_q;                // the record has left
  at_t         at_q;                   // of the byte that is looked up
  item_t       item_q;
  logic        item_valid_q, item_last_q;
  logic [3:0]  index_q;                // of item_q among those of its kind side by side
  logic [3:0][7:0] word_q;
  logic [1:0]  lane_q;
  logic        word_valid_q, word_last_q;

  logic [3:0][7:0] ip;
  logic [1:0][7:0] service_port;
  assign ip           = asked.own_ip;
  assign service_port = port;
  logic [7:0] octet;
  always_comb
    unique case (item_q.kind)
      BYTE_TTL:   octet = item_q.value & {8{!asked.goodbye}};
      BYTE_DIGIT: octet = hex_digit(mac, index_q);
      BYTE_PORT:  octet = service_port[~index_q[0]];
      BYTE_IP:    octet = ip[~index_q[1:0]];
      default:    octet = item_q.value;
    endcase

  wire stalled = word_valid_q && !response_words.ready;
  assign response.valid = request.valid && !words_q;
  assign response.data  = '{
      mac: asked.unicast ? asked.mac : MDNS_MAC,
      ip: asked.unicast ? asked.ip : MDNS_IP,
      from_ip: asked.own_ip,
      port: MDNS_PORT,
      from_port: MDNS_PORT,
      ttl: TTL_LINK,
      icmp: 1'b0,
      length: message_length_t'(ANSWER_BYTES)
  };
  assign response_words.valid = word_valid_q;
  assign response_words.data  = '{last: word_last_q, data: word_q};
  assign request.ready = word_valid_q && word_last_q && response_words.ready;

  always_ff @(posedge clk) begin
    if (!words_q) begin
      words_q      <= response.valid && response.ready;
      at_q         <= '0;
      lane_q       <= '0;
      item_valid_q <= 1'b0;
      word_valid_q <= 1'b0;
    end else if (!stalled) begin
      item_q       <= at_q < at_t'(ANSWER_BYTES) ? ITEMS[at_q] : '0;
      item_valid_q <= 1'b1;
      item_last_q  <= at_q == at_t'(ANSWER_BYTES - 1);
      index_q      <= item_valid_q && item_q.kind != BYTE_FIXED ? index_q + 1'b1 : '0;
      at_q         <= at_q + 1'b1;
      word_valid_q <= 1'b0;
      if (item_valid_q) begin
        word_q[~lane_q] <= octet;
        lane_q          <= lane_q + 1'b1;
        word_valid_q    <= lane_q == '1 || item_last_q;
        word_last_q     <= item_last_q;
      end
      if (request.ready) begin
        words_q      <= 1'b0;
        word_valid_q <= 1'b0;
      end
    end
    if (rst) begin
      words_q      <= 1'b0;
      word_valid_q <= 1'b0;
    end
  end
endmodule
