// SPDX-License-Identifier: Apache-2.0

// Reads the answers of DHCP servers (RFC 2131; options of RFC 2132). A message is stored while it arrives, one word a cycle, and its fixed
// fields are looked at; then its options are walked, one byte each 2 cycles: those behind the cookie, and those in `file` and `sname` if the
// option for that says so (RFC 2132, 9.3), in this order. Unknown options are skipped, of one that comes twice the last counts. The next
// message is taken when the walk has ended: after 2 cycles for each byte at most, whatever the message contains.
//
// `answer` has the message if it is an OFFER, ACK or NAK for this client, well formed, with the options that these must have; else
// `malformed` is high for one cycle. A message is malformed if an option is longer than what is left, or one of those that are used
// has a length that it cannot have; if the mask has a hole; if the address offered is not one of a host; or if the lease is shorter than
// MIN_LEASE, which would keep the client renewing all the time. Without a mask the prefix is that of the address' class (RFC 791).
module dhcp_receive
  import packet_pkg::*;
  import services_pkg::*;
  import dhcp_pkg::*;
#(
    parameter seconds_t MIN_LEASE = 24'd16    // seconds
) (
    input  logic         clk,
    input  logic         rst,
    input  mac_t         mac,
    input  logic [31:0]  xid,
    stream_if.sink       message,                // service_rx_t
    stream_if.sink       words,                  // service_word_t, behind it
    stream_if.source     answer,                 // dhcp_answer_t; nothing is received until it is taken
    output logic         malformed,
    output logic         idle
);
  typedef enum logic [2:0] {
    S_IDLE,
    S_STORE,
    S_CODE,
    S_LENGTH,
    S_DATA,
    S_MASK,        // count the ones of the mask
    S_JUDGE
  } state_e;
  typedef enum logic [1:0] {
    IN_OPTIONS,
    IN_FILE,
    IN_SNAME
  } place_e;

  state_e          state_q;
  place_e          place_q;
  service_word_t   word;
  message_words_t  at_q;           // of the word that arrives
  message_length_t length_q, byte_q, end_q;
  logic            wrong_q;        // the word before was not what it must be
  logic            ok_q, shown_q;  // no fault so far; the byte at byte_q is there
  logic [1:0]      overload_q;
  logic [7:0]      code_q, left_q;
  logic [2:0]      index_q;        // of the byte in its option, up to 4
  logic [31:0]     value_q, mask_q;
  logic            has_mask_q;
  dhcp_answer_t    answer_q;
  assign word = words.data;

  // ---- the message ----
  logic [31:0] fetched;
  wire walking = state_q inside {S_CODE, S_LENGTH, S_DATA};
  ram_1w1r #(.T(logic [31:0]), .WORDS(512)) store (
      .clk, .write(state_q == S_STORE && words.valid), .write_at(at_q), .write_data(word.data),
      .read(walking && !shown_q), .read_at(message_words_t'(byte_q >> 2)), .read_data(fetched)
  );
  logic [3:0][7:0] bytes;
  assign bytes = fetched;
  wire [7:0]  octet = bytes[2'd3 - byte_q[1:0]];
  wire [31:0] value = {value_q[23:0], octet};      // with this byte the option's first four

  assign message.ready = state_q == S_IDLE;
  assign words.ready   = state_q == S_STORE;

  // What the word that arrives must be.
  logic right;
  always_comb
    unique case (at_q)
      9'd0:    right = word.data[31:8] == {OP_REPLY, HARDWARE};
      9'd1:    right = word.data == xid;
      9'd7:    right = word.data == mac[47:16];
      9'd8:    right = word.data[31:16] == mac[15:0];
      9'd59:   right = word.data == COOKIE;
      default: right = 1'b1;
    endcase

  // An option that is used has this length; routers: four bytes each.
  logic fits;
  always_comb
    unique case (code_q)
      OPTION_MESSAGE_TYPE, OPTION_OVERLOAD: fits = octet == 8'd1;
      OPTION_SUBNET_MASK, OPTION_LEASE_TIME, OPTION_SERVER_ID, OPTION_T1, OPTION_T2: fits = octet == 8'd4;
      OPTION_ROUTER: fits = octet != '0 && octet[1:0] == '0;
      default: fits = 1'b1;
    endcase

  // ---- the verdict ----
  wire nak = answer_q.kind == DHCPNAK;
  wire host = answer_q.yiaddr != '0 && answer_q.yiaddr[31:29] != 3'b111;
  wire granted = answer_q.kind inside {DHCPOFFER, DHCPACK} && host && answer_q.server != '0 && answer_q.lease >= MIN_LEASE
      && mask_q == '0;
  logic useful_q;
  wire judged = state_q == S_JUDGE && shown_q;
  wire good = ok_q && useful_q;
  assign answer.valid = judged && good;
  assign answer.data  = answer_q;
  assign malformed    = judged && !good;
  assign idle         = state_q == S_IDLE;

  function automatic logic [5:0] class_prefix(ipv4_addr_t ip);
    return !ip[31] ? 6'd8 : !ip[30] ? 6'd16 : 6'd24;
  endfunction

  // This part of the message is at its end: on to the next one.
  logic   more;
  place_e next_place;
  always_comb begin
    more = 1'b0;
    next_place = IN_FILE;
    if (place_q == IN_OPTIONS && overload_q[0]) more = 1'b1;
    else if (place_q != IN_SNAME && overload_q[1]) begin
      more = 1'b1;
      next_place = IN_SNAME;
    end
  end
  wire over = byte_q == end_q;

  always_ff @(posedge clk) begin
    shown_q   <= walking && !shown_q;
    useful_q  <= nak || granted;
    wrong_q   <= !rst && state_q == S_STORE && words.valid && !right;
    if (wrong_q) ok_q <= 1'b0;
    unique case (state_q)
      S_IDLE: begin
        at_q       <= '0;
        ok_q       <= 1'b1;
        overload_q <= '0;
        place_q    <= IN_OPTIONS;
        byte_q     <= AT_OPTIONS;
        has_mask_q <= 1'b0;
        answer_q   <= '0;
        mask_q     <= '0;
        length_q   <= message.data.length;
        answer_q.mac <= message.data.mac;
        if (message.valid) state_q <= S_STORE;
      end

      S_STORE: begin
        end_q <= length_q;
        if (words.valid) begin
          at_q <= at_q + 1'b1;
          if (at_q == message_words_t'(4)) answer_q.yiaddr <= word.data;
          if (word.last) begin
            state_q <= S_CODE;
            if (length_q <= AT_OPTIONS) begin
              ok_q    <= 1'b0;
              state_q <= S_JUDGE;
            end
          end
        end
      end

      S_CODE: begin
        if (over) begin
          place_q <= next_place;
          byte_q  <= next_place == IN_FILE ? AT_FILE : AT_SNAME;
          end_q   <= next_place == IN_FILE ? AT_COOKIE : AT_FILE;
          shown_q <= 1'b0;
          if (!more) state_q <= S_MASK;
        end else if (shown_q) begin
          byte_q <= byte_q + 1'b1;
          code_q <= octet;
          if (octet == OPTION_END) byte_q <= end_q;
          else if (octet != OPTION_PAD) state_q <= S_LENGTH;
        end
      end

      S_LENGTH: begin
        index_q <= '0;
        left_q  <= octet;
        if (over || (shown_q && !fits)) begin
          ok_q    <= 1'b0;
          state_q <= S_JUDGE;
          shown_q <= 1'b0;
        end else if (shown_q) begin
          byte_q <= byte_q + 1'b1;
          state_q <= octet == '0 ? S_CODE : S_DATA;
        end
      end

      S_DATA: begin
        if (over) begin
          ok_q    <= 1'b0;
          state_q <= S_JUDGE;
          shown_q <= 1'b0;
        end else if (shown_q) begin
          byte_q  <= byte_q + 1'b1;
          left_q  <= left_q - 1'b1;
          value_q <= value;
          if (!index_q[2]) index_q <= index_q + 1'b1;
          if (left_q == 8'd1) state_q <= S_CODE;
          if (index_q == 3'd0)
            unique case (code_q)
              OPTION_MESSAGE_TYPE: answer_q.kind <= dhcp_type_e'(octet);
              OPTION_OVERLOAD: if (place_q == IN_OPTIONS) overload_q <= octet[1:0];
              default: ;
            endcase
          if (index_q == 3'd3)
            unique case (code_q)
              OPTION_SUBNET_MASK: begin
                mask_q     <= value;
                has_mask_q <= 1'b1;
              end
              OPTION_ROUTER:     answer_q.router <= value;
              OPTION_LEASE_TIME: answer_q.lease  <= seconds(value);
              OPTION_SERVER_ID:  answer_q.server <= value;
              OPTION_T1:         answer_q.t1     <= seconds(value);
              OPTION_T2:         answer_q.t2     <= seconds(value);
              default: ;
            endcase
        end
      end

      S_MASK: begin
        shown_q <= 1'b0;
        if (!has_mask_q) answer_q.prefix_length <= class_prefix(answer_q.yiaddr);
        else if (mask_q[31]) answer_q.prefix_length <= answer_q.prefix_length + 1'b1;
        mask_q <= {mask_q[30:0], 1'b0};
        if (!mask_q[31]) begin
          mask_q  <= mask_q;           // 0, or it has a hole
          state_q <= S_JUDGE;
        end
      end

      default: begin                   // S_JUDGE: the verdict is there after a cycle
        shown_q <= !judged || (good && !answer.ready);
        if (judged && (!good || answer.ready)) state_q <= S_IDLE;
      end
    endcase
    if (rst) begin
      state_q <= S_IDLE;
      shown_q <= 1'b0;
    end
  end
endmodule
