// SPDX-License-Identifier: Apache-2.0

// Makes the DHCP client's messages (RFC 2131, table 5; options of RFC 2132): a record and 79 words, one a cycle. Every option begins at a
// word, or ends at one, with pads between them; an option that a message must not have is all pads. The order is fixed, so that a message
// is a list of words. Messages ask for answers by broadcast: the client may have no address.
module dhcp_send
  import packet_pkg::*;
  import services_pkg::*;
  import dhcp_pkg::*;
(
    input  logic     clk,
    input  logic     rst,
    input  mac_t     mac,
    stream_if.sink   request,         // dhcp_request_t; taken when its message has left
    stream_if.source response,        // service_tx_t
    stream_if.source response_words   // service_word_t
);
  typedef logic [6:0] at_t;
  localparam at_t LAST = 7'd78;

  dhcp_request_t asked;
  logic          words_q;             // the record has left
  at_t           at_q;
  assign asked = request.data;

  // DECLINE and RELEASE say nothing about the client but its identity (table 5).
  wire asks = asked.kind inside {DHCPDISCOVER, DHCPREQUEST};

  function automatic logic [7:0] digit(logic [3:0] value);
    return value < 4'd10 ? 8'h30 + 8'(value) : 8'h57 + 8'(value);
  endfunction

  logic [31:0] word;
  always_comb begin
    word = '0;
    unique case (at_q)
      7'd0:  word = {OP_REQUEST, HARDWARE, 8'd0};
      7'd1:  word = asked.xid;
      7'd2:  word = {8'd0, asked.secs, FLAG_BROADCAST};
      7'd3:  if (asked.owns) word = asked.ip;
      7'd7:  word = mac[47:16];
      7'd8:  word = {mac[15:0], 16'd0};
      7'd59: word = COOKIE;
      7'd60: word = {OPTION_MESSAGE_TYPE, 8'd1, asked.kind, OPTION_PAD};
      7'd61: word = {OPTION_CLIENT_ID, 8'd7, 8'd1, mac[47:40]};
      7'd62: word = mac[39:8];
      7'd63: word = {mac[7:0], 24'd0};
      7'd64: if (asked.requests) word = {16'd0, OPTION_REQUESTED_IP, 8'd4};
      7'd65: if (asked.requests) word = asked.ip;
      7'd66: if (asked.names_server) word = {16'd0, OPTION_SERVER_ID, 8'd4};
      7'd67: if (asked.names_server) word = asked.server;
      7'd68: if (asks) word = {OPTION_PARAMETERS, 8'd6, OPTION_SUBNET_MASK, OPTION_ROUTER};
      7'd69: if (asks) word = {OPTION_LEASE_TIME, OPTION_SERVER_ID, OPTION_T1, OPTION_T2};
      7'd70: if (asks) word = {OPTION_MAX_SIZE, 8'd2, 16'(MESSAGE_BYTES + IPV4_HDR_BYTES + UDP_HDR_BYTES)};
      7'd71: if (asks) word = {OPTION_VENDOR_CLASS, 8'd7, "na"};
      7'd72: if (asks) word = "cell";
      7'd73: if (asks) word = {"e", 24'd0};
      7'd74: if (asks) word = {OPTION_HOST_NAME, 8'd14, "na"};
      7'd75: if (asks) word = "cell";
      7'd76: if (asks) word = {"e-", digit(mac[23:20]), digit(mac[19:16])};
      7'd77: if (asks) word = {digit(mac[15:12]), digit(mac[11:8]), digit(mac[7:4]), digit(mac[3:0])};
      7'd78: word = {OPTION_END, 24'd0};
      default: ;
    endcase
  end

  assign response.valid = request.valid && !words_q;
  assign response.data  = '{
      mac: asked.server_mac | {48{!asked.unicast}},
      ip: asked.server | {32{!asked.unicast}},
      from_ip: asked.owns ? asked.ip : '0,
      port: PORT_SERVER,
      from_port: UDP_PORT_DHCP,
      length: message_length_t'((32'(LAST) + 1) * 4)
  };
  assign response_words.valid = words_q;
  assign response_words.data  = '{last: at_q == LAST, data: word};
  assign request.ready        = words_q && response_words.ready && at_q == LAST;

  always_ff @(posedge clk) begin
    if (rst) begin
      words_q <= 1'b0;
      at_q    <= '0;
    end else if (!words_q) begin
      words_q <= response.valid && response.ready;
    end else if (response_words.ready) begin
      words_q <= at_q != LAST;
      at_q    <= at_q == LAST ? '0 : at_q + 1'b1;
    end
  end
endmodule
