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

  // The part of a word that is not constant.
  typedef struct packed {
    logic xid;
    logic secs;
    logic ip;
    logic server;
    logic mac_high;
    logic mac_low;
    logic kind;
    logic name_high;                  // of the host name: the last three bytes of the MAC address in hexadecimal
    logic name_low;
  } pick_t;

  dhcp_request_t asked;
  logic          words_q, shown_q, last_q;   // the record has left; a word is there, the last one
  at_t           at_q;                       // of the next word
  pick_t         pick, pick_q;
  logic [31:0]   fixed, fixed_q;
  assign asked = request.data;

  // DECLINE and RELEASE say nothing about the client but its identity (table 5).
  wire asks = asked.kind inside {DHCPDISCOVER, DHCPREQUEST};

  always_comb begin
    pick  = '0;
    fixed = '0;
    unique case (at_q)
      7'd0:  fixed = {OP_REQUEST, HARDWARE, 8'd0};
      7'd1:  pick.xid = 1'b1;
      7'd2:  begin fixed = 32'(FLAG_BROADCAST); pick.secs = 1'b1; end
      7'd3:  pick.ip = asked.owns;
      7'd7:  pick.mac_high = 1'b1;
      7'd8:  pick.mac_low = 1'b1;
      7'd59: fixed = COOKIE;
      7'd60: begin fixed = {OPTION_MESSAGE_TYPE, 8'd1, 16'd0}; pick.kind = 1'b1; end
      7'd61: fixed = {OPTION_PAD, OPTION_CLIENT_ID, 8'd7, 8'd1};
      7'd62: pick.mac_high = 1'b1;
      7'd63: pick.mac_low = 1'b1;
      7'd64: fixed = {16'd0, OPTION_REQUESTED_IP, 8'd4} & {32{asked.requests}};
      7'd65: pick.ip = asked.requests;
      7'd66: fixed = {16'd0, OPTION_SERVER_ID, 8'd4} & {32{asked.names_server}};
      7'd67: pick.server = asked.names_server;
      7'd68: fixed = {OPTION_PARAMETERS, 8'd6, OPTION_SUBNET_MASK, OPTION_ROUTER} & {32{asks}};
      7'd69: fixed = {OPTION_LEASE_TIME, OPTION_SERVER_ID, OPTION_T1, OPTION_T2} & {32{asks}};
      7'd70: fixed = {OPTION_MAX_SIZE, 8'd2, 16'(MESSAGE_BYTES + IPV4_HDR_BYTES + UDP_HDR_BYTES)} & {32{asks}};
      7'd71: fixed = {OPTION_VENDOR_CLASS, 8'd7, "na"} & {32{asks}};
      7'd72: fixed = "cell" & {32{asks}};
      7'd73: fixed = {"e", 24'd0} & {32{asks}};
      7'd74: fixed = {OPTION_HOST_NAME, 8'd14, "na"} & {32{asks}};
      7'd75: fixed = "cell" & {32{asks}};
      7'd76: begin fixed = {"e-", 16'd0} & {32{asks}}; pick.name_high = asks; end
      7'd77: pick.name_low = asks;
      7'd78: fixed = {OPTION_END, 24'd0};
      default: ;
    endcase
  end

  function automatic logic [7:0] digit(logic [3:0] value);
    return value < 4'd10 ? 8'h30 + 8'(value) : 8'h57 + 8'(value);
  endfunction
  wire [47:0] name = {digit(mac[23:20]), digit(mac[19:16]), digit(mac[15:12]), digit(mac[11:8]), digit(mac[7:4]), digit(mac[3:0])};

  // Each is there alone, so they are joined by OR.
  wire [31:0] word = fixed_q
      | (pick_q.xid ? asked.xid : '0)
      | (pick_q.secs ? {8'd0, asked.secs, 16'd0} : '0)
      | (pick_q.ip ? asked.ip : '0)
      | (pick_q.server ? asked.server : '0)
      | (pick_q.mac_high ? mac[47:16] : '0)
      | (pick_q.mac_low ? {mac[15:0], 16'd0} : '0)
      | (pick_q.kind ? {16'd0, asked.kind, 8'd0} : '0)
      | (pick_q.name_high ? {16'd0, name[47:32]} : '0)
      | (pick_q.name_low ? name[31:0] : '0);

  assign response.valid = request.valid && !words_q;
  assign response.data  = '{
      mac: asked.server_mac | {48{!asked.unicast}},
      ip: asked.server | {32{!asked.unicast}},
      from_ip: asked.owns ? asked.ip : '0,
      port: PORT_SERVER,
      from_port: UDP_PORT_DHCP,
      ttl: TTL_ROUTED,
      icmp: 1'b0,
      length: message_length_t'((32'(LAST) + 1) * 4)
  };
  assign response_words.valid = shown_q;
  assign response_words.data  = '{last: last_q, data: word};
  wire passes = shown_q && response_words.ready;
  assign request.ready = passes && last_q;

  always_ff @(posedge clk) begin
    if (!words_q) begin
      words_q <= response.valid && response.ready;
      at_q    <= '0;
    end else if (!shown_q || (passes && !last_q)) begin
      at_q    <= at_q + 1'b1;
      shown_q <= 1'b1;
      last_q  <= at_q == LAST;
      fixed_q <= fixed;
      pick_q  <= pick;
    end else if (passes) begin
      shown_q <= 1'b0;
      words_q <= 1'b0;
    end
    if (rst) begin
      words_q <= 1'b0;
      shown_q <= 1'b0;
    end
  end
endmodule
