// SPDX-License-Identifier: Apache-2.0

// Reads the headers of a frame that is to be cut into TCP segments: Ethernet with up to two VLAN tags (IEEE 802.3, 802.1Q), IPv4 with
// options (RFC 791) or IPv6 (RFC 8200), TCP with options (RFC 9293). `number` is the word of 4 bytes that is read next, while `reads`;
// the words come in order, each in a cycle with `word_valid`.
//
// `refused`: there is no TCP header at its place, and the rest is not read. Else `headers` are there 2 cycles after the last word, with
// `done`, the sums in them 2 cycles later. Nothing that the driver says about the frame is used, and no length in it but those of the headers themselves. `start` begins
// the next frame.
module virtio_net_tcp_headers
  import virtio_pkg::*;
(
    input  logic         clk,
    input  logic         start,
    output logic         reads,
    output logic [5:0]   number,
    input  logic         word_valid,
    input  logic [31:0]  word,                // its first byte is the highest
    output logic         refused,
    output logic         done,
    output tcp_headers_t headers
);
  localparam logic [5:0] FIRST_WORD = 6'd3;   // it has the EtherType
  localparam logic [15:0] TPID = 16'h8100, TPID_SERVICE = 16'h88a8, IPV4 = 16'h0800, IPV6 = 16'h86dd;
  localparam logic [7:0] TCP = 8'd6;
  localparam logic [3:0] IPV6_WORDS = 4'd10;
  localparam logic [2:0] LAST_WORD = 3'd4;    // of TCP: that with its checksum

  typedef enum logic [1:0] {
    IN_ETHERNET,
    IN_IPV4,
    IN_IPV6,
    IN_TCP
  } place_e;

  // Headers begin 2 bytes behind a multiple of 4: a word has the last half-word of one 32-bit line of a header, and the first of the next.
  place_e      place_q;
  logic [5:0]  number_q, end_q;               // of the next word, of the last one
  logic        end_known_q, valid_q, last_q;
  logic [15:0] high_q, low_q;                 // the word
  logic [1:0]  tags_q;
  logic [3:0]  line_q;                        // of the word's second half; of TCP too
  logic [3:0]  ip_words_q;
  logic        refused_q;
  logic [20:0] ip_q, pseudo_q;                // sums that have their carries above
  logic [16:0] ip_once_q, pseudo_once_q;
  logic [15:0] ip_twice_q, pseudo_twice_q;
  logic [3:0]  data_offset_q;

  assign number = number_q;
  assign reads  = !end_known_q || number_q <= end_q;

  wire vlan_tag = high_q == TPID || high_q == TPID_SERVICE;
  wire ipv4 = high_q == IPV4 && low_q[15:12] == 4'd4 && low_q[11:8] >= 4'd5;
  wire ipv6 = high_q == IPV6 && low_q[15:12] == 4'd6;
  wire ip_ends = line_q == ip_words_q;

  // What the sums take of the word.
  logic high_ip, high_pseudo, low_ip, low_pseudo, low_old;
  always_comb begin
    high_ip     = 1'b0;
    high_pseudo = 1'b0;
    low_ip      = 1'b0;
    low_pseudo  = 1'b0;
    low_old     = 1'b0;
    unique case (place_q)
      IN_ETHERNET: low_ip = ipv4;
      IN_IPV4: begin
        high_ip     = line_q == 4'd2 || line_q >= 4'd4;      // not total length, checksum
        high_pseudo = line_q == 4'd4 || line_q == 4'd5;      // addresses
        low_ip      = line_q >= 4'd2 && !ip_ends;            // not identification, TCP
        low_pseudo  = line_q == 4'd3 || line_q == 4'd4;
      end
      IN_IPV6: begin
        high_pseudo = line_q >= 4'd3;
        low_pseudo  = line_q >= 4'd2 && !ip_ends;
      end
      default: low_old = line_q == 4'(LAST_WORD);
    endcase
  end

  always_ff @(posedge clk) begin
    valid_q <= word_valid;
    high_q  <= word[31:16];
    low_q   <= word[15:0];
    last_q  <= end_known_q && number_q == end_q;
    if (word_valid) number_q <= number_q + 1'b1;
    if (valid_q) begin
      ip_q     <= ip_q + (high_ip ? 21'(high_q) : '0) + (low_ip ? 21'(low_q) : '0);
      pseudo_q <= pseudo_q + (high_pseudo ? 21'(high_q) : '0) + (low_pseudo ? 21'(low_q) : low_old ? 21'({5'd0, ~low_q}) : '0);
      line_q   <= line_q + 1'b1;
      unique case (place_q)
        IN_ETHERNET: begin
          line_q <= 4'd1;
          if (ipv4 || ipv6) begin
            headers.v6 <= ipv6;
            ip_words_q <= ipv6 ? IPV6_WORDS : low_q[11:8];
            end_known_q <= 1'b1;
            end_q      <= FIRST_WORD + 6'(tags_q) + 6'(ipv6 ? IPV6_WORDS : low_q[11:8]) + 6'(LAST_WORD);
            place_q    <= ipv6 ? IN_IPV6 : IN_IPV4;
          end else if (vlan_tag && tags_q != 2'd2) tags_q <= tags_q + 1'b1;
          else refused_q <= 1'b1;
        end
        IN_IPV4: begin
          if (line_q == 4'd1) headers.id <= low_q;
          // Not a fragment, and TCP.
          if (line_q == 4'd2 && (high_q[13:0] != '0 || low_q[7:0] != TCP)) refused_q <= 1'b1;
          if (ip_ends) begin
            place_q <= IN_TCP;
            line_q  <= 4'd1;
          end
        end
        IN_IPV6: begin
          if (line_q == 4'd2 && high_q[15:8] != TCP) refused_q <= 1'b1;
          if (ip_ends) begin
            place_q <= IN_TCP;
            line_q  <= 4'd1;
          end
        end
        default: begin
          if (line_q == 4'd1) headers.seq[31:16] <= low_q;
          if (line_q == 4'd2) headers.seq[15:0] <= high_q;
          if (line_q == 4'd3) begin
            headers.flags <= low_q;
            data_offset_q <= low_q[15:12];
            if (low_q[15:12] < 4'd5) refused_q <= 1'b1;
          end
        end
      endcase
    end
    // The carries are added twice.
    ip_once_q        <= 17'(ip_q[15:0]) + 17'(ip_q[20:16]);
    ip_twice_q       <= ip_once_q[15:0] + 16'(ip_once_q[16]);
    pseudo_once_q    <= 17'(pseudo_q[15:0]) + 17'(pseudo_q[20:16]);
    pseudo_twice_q   <= pseudo_once_q[15:0] + 16'(pseudo_once_q[16]);
    headers.l2_bytes <= 6'd14 + {2'd0, tags_q, 2'd0};
    headers.tcp_at   <= 7'(headers.l2_bytes) + {1'b0, ip_words_q, 2'd0};
    headers.bytes    <= 8'(headers.tcp_at) + {2'b0, data_offset_q, 2'd0};
    if (valid_q && last_q) done <= 1'b1;
    if (start) begin
      place_q     <= IN_ETHERNET;
      number_q    <= FIRST_WORD;
      end_known_q <= 1'b0;
      valid_q     <= 1'b0;
      tags_q      <= '0;
      refused_q   <= 1'b0;
      ip_q        <= '0;
      pseudo_q    <= 21'(TCP);
      done        <= 1'b0;
    end
  end

  assign refused            = refused_q;
  assign headers.ip_sum     = ip_twice_q;
  assign headers.pseudo_sum = pseudo_twice_q;
endmodule
