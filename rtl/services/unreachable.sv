// SPDX-License-Identifier: Apache-2.0

// ICMP destination unreachable (RFC 792, RFC 1122 3.2.2.1): says to the sender of a packet that the packet plane has dropped that nobody is
// at its port, or that the device does not have its protocol. The message quotes the IPv4 header and the 8 bytes behind it; a packet that
// has less than 8 is dropped silently, as is one from a loopback address or the broadcast address of the device's network (RFC 1122,
// 3.2.1.3). It goes to the Ethernet address that the packet came from: nothing is resolved.
//
// A token bucket bounds what strangers can make the device send: BURST messages at once, and REFILL more for each tick. One message at a
// time, which takes about 15 cycles and what service_send needs; a packet that comes meanwhile, or finds no token, is counted as `limited`.
module unreachable
  import packet_pkg::*;
  import services_pkg::*;
#(
    parameter int unsigned BURST = 16,
    parameter int unsigned REFILL = 4
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        tick,            // 1/16 s has passed
    input  logic        enable,
    input  local_addr_t local_addr,
    input  logic        unwanted_valid,  // pulse
    input  unwanted_t   unwanted,
    stream_if.source    message,         // service_tx_t
    stream_if.source    words,           // service_word_t
    output logic        sent,            // pulses
    output logic        limited,
    output logic        idle
);
  localparam int unsigned QUOTED_WORDS = (IPV4_HDR_BYTES + 8) / 4;
  localparam int unsigned TOKENS_W = $clog2(BURST + REFILL + 1);
  localparam logic [7:0] LOOPBACK_NET = 8'd127;
  typedef logic [TOKENS_W-1:0] tokens_t;

  typedef enum logic [1:0] {
    S_IDLE,
    S_SUM,      // of the words behind the quoted IPv4 header, whose own sum is zero (RFC 1071)
    S_MESSAGE,
    S_WORDS
  } state_e;

  state_e      state_q;
  unwanted_t   packet_q;
  logic [7:0]  code_q;
  logic [2:0]  at_q;                     // word of the quotation
  logic [16:0] sum_q;
  logic        second_q;                 // the lower half of a word is added
  tokens_t     tokens_q;

  // ---- may it be answered: decided a cycle later ----
  ipv4_addr_t broadcast_q;               // of the device's network
  logic       has_broadcast_q, asked_q, whole_q, to_one_q;
  always_ff @(posedge clk) begin
    broadcast_q     <= local_addr.ip | (ipv4_addr_t'('1) >> local_addr.prefix_length);
    has_broadcast_q <= local_addr.prefix_length != '0 && local_addr.prefix_length < 6'd31;
    asked_q  <= !rst && enable && unwanted_valid;
    whole_q  <= unwanted.ipv4.total_length >= 16'(IPV4_HDR_BYTES + 8);
    to_one_q <= unwanted.ipv4.src[31:24] != LOOPBACK_NET && !(has_broadcast_q && unwanted.ipv4.src == broadcast_q);
  end
  wire answers = asked_q && whole_q && to_one_q;
  wire takes = answers && state_q == S_IDLE && tokens_q != '0;

  // ---- the quotation ----
  wire [7:0] code = packet_q.ipv4.protocol == IPPROTO_UDP ? ICMP_PORT_UNREACHABLE : ICMP_PROTOCOL_UNREACHABLE;
  logic [QUOTED_WORDS-1:0][31:0] quoted;
  logic [31:0] word;
  assign quoted = {packet_q.ipv4, packet_q.first};
  assign word   = quoted[3'(QUOTED_WORDS-1)-at_q];
  wire   last = at_q == 3'(QUOTED_WORDS - 1);

  assign message.valid = state_q == S_MESSAGE;
  assign message.data  = service_tx_t'{
      mac: packet_q.mac,
      ip: packet_q.ipv4.src,
      from_ip: packet_q.ipv4.dst,
      port: ~sum_q[15:0],
      from_port: {ICMP_UNREACHABLE, code_q},
      ttl: TTL_ROUTED,
      icmp: 1'b1,
      length: message_length_t'(QUOTED_WORDS * 4)
  };
  assign words.valid = state_q == S_WORDS;
  assign words.data  = service_word_t'{last: last, data: word};
  assign idle = state_q == S_IDLE && !unwanted_valid && !asked_q;

  always_ff @(posedge clk) begin
    sent    <= !rst && takes;
    limited <= !rst && answers && !takes;
    if (rst) tokens_q <= tokens_t'(BURST);
    else if (tick) tokens_q <= tokens_q > tokens_t'(BURST - REFILL) ? tokens_t'(BURST) : tokens_q + tokens_t'(REFILL);
    else if (takes) tokens_q <= tokens_q - 1'b1;

    unique case (state_q)
      S_IDLE: begin
        if (!takes) packet_q <= unwanted;
        code_q   <= code;
        at_q     <= 3'(QUOTED_WORDS - 2);
        second_q <= 1'b0;
        sum_q    <= 17'({ICMP_UNREACHABLE, code});
        if (takes) state_q <= S_SUM;
      end
      S_SUM: begin
        // at_q wraps to 7, where a cycle adds the last carry.
        sum_q    <= 17'(sum_q[15:0]) + (at_q == '1 ? '0 : 17'(second_q ? word[15:0] : word[31:16])) + 17'(sum_q[16]);
        second_q <= !second_q;
        if (second_q) at_q <= at_q + 1'b1;
        if (at_q == '1) begin
          at_q    <= '0;
          state_q <= S_MESSAGE;
        end
      end
      S_MESSAGE: if (message.ready) state_q <= S_WORDS;
      default:
        if (words.ready) begin
          at_q <= at_q + 1'b1;
          if (last) state_q <= S_IDLE;
        end
    endcase
    if (rst) state_q <= S_IDLE;
  end
endmodule
