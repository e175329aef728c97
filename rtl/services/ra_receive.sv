// SPDX-License-Identifier: Apache-2.0

// Reads router advertisements (RFC 4861, 4.2): who the router is, and one prefix of which the device can make an address (RFC 4862, 5.5.3).
// That is the `current` one if the message has it, else the first with the autonomous flag, 64 bits, and a lifetime of MIN_LIFETIME or more;
// not one of link-local, multicast or mapped addresses. Other options are skipped.
//
// `heard` is high for one cycle after a message that is well formed to its end (6.1.2), else `malformed`; nothing has an effect before. One
// word a cycle; the next message is taken 2 cycles after the last word.
module ra_receive
  import packet_pkg::*;
  import services_pkg::*;
  import address_pkg::*;
#(
    parameter logic [31:0] MIN_LIFETIME = 32'd60    // seconds
) (
    input  logic           clk,
    input  logic           rst,
    stream_if.sink         message,                 // service_rx_t
    stream_if.sink         words,                   // service_word_t, behind it
    input  logic           has_current,
    input  logic [63:0]    current,
    output logic           heard,
    output advertisement_t advertisement,
    output logic           malformed,
    output logic           idle
);
  typedef enum logic [1:0] {
    S_IDLE,
    S_HEAD,        // reachable time, retransmission timer
    S_OPTIONS,
    S_JUDGE
  } state_e;

  // Of a prefix option (4.6.2).
  typedef struct packed {
    logic [7:0] option;
    logic [7:0] length;
    logic [7:0] prefix_length;
    logic       on_link;
    logic       autonomous;
    logic [5:0] reserved;
  } option_head_t;
  localparam logic [7:0] PREFIX_OPTION_LENGTH = 8'd4;

  state_e         state_q;
  service_rx_t    from;
  service_word_t  word;
  option_head_t   head;
  logic           second_q;        // of S_HEAD
  logic [8:0]     left_q;          // words of this option that follow; 0: a new one begins
  logic [2:0]     at_q;            // of the word in its option
  logic           ok_q, reads_q;   // the option is a prefix that can be used
  advertisement_t found_q;
  prefix_t        read_q;
  assign from = message.data;
  assign word = words.data;
  assign head = word.data;

  assign message.ready = state_q == S_IDLE;
  assign words.ready   = state_q inside {S_HEAD, S_OPTIONS};
  assign heard         = state_q == S_JUDGE && ok_q;
  assign malformed     = state_q == S_JUDGE && !ok_q;
  assign advertisement = found_q;
  assign idle          = state_q == S_IDLE;

  wire begins = left_q == '0;
  wire ends = begins ? 1'b0 : left_q == 9'd1;
  wire [63:0] prefix = {read_q.prefix[63:32], word.data};
  wire is_current = has_current && prefix == current;
  wire usable = read_q.prefix[63:54] != LINK_LOCAL_PREFIX[63:54] && read_q.prefix[63:56] != 8'hff && prefix != '0
                && read_q.preferred <= read_q.valid && (is_current || read_q.valid >= MIN_LIFETIME);

  always_ff @(posedge clk) begin
    unique case (state_q)
      S_IDLE: begin
        second_q <= 1'b0;
        left_q   <= '0;
        ok_q     <= from.length[2:0] == '0;
        found_q  <= '{router: router_of(from), lifetime: from.port, default: '0};
        if (message.valid) state_q <= S_HEAD;
      end

      S_HEAD: if (words.valid) begin
        second_q <= 1'b1;
        if (word.last) state_q <= S_JUDGE;
        else if (second_q) state_q <= S_OPTIONS;
      end

      S_OPTIONS: if (words.valid) begin
        if (begins) begin
          left_q  <= {head.length, 1'b0} - 9'd1;
          at_q    <= 3'd1;
          reads_q <= head.option == ND_OPTION_PREFIX && head.length == PREFIX_OPTION_LENGTH && head.prefix_length == 8'd64
                     && head.autonomous;
          read_q.on_link <= head.on_link;
          if (head.length == '0) begin
            ok_q   <= 1'b0;
            left_q <= '1;                            // the rest is not read
          end
        end else begin
          left_q <= left_q - 1'b1;
          at_q   <= at_q + 1'b1;
          if (reads_q)
            unique case (at_q)
              3'd1: read_q.valid <= word.data;
              3'd2: read_q.preferred <= word.data;
              3'd4: read_q.prefix[63:32] <= word.data;
              3'd5: if (usable && (is_current || !found_q.has_prefix)) begin
                found_q.has_prefix <= 1'b1;
                found_q.current    <= is_current;
                found_q.prefix     <= '{prefix: prefix, on_link: read_q.on_link, valid: read_q.valid, preferred: read_q.preferred};
              end
              default: ;
            endcase
        end
        if (word.last) begin
          state_q <= S_JUDGE;
          if (!ends) ok_q <= 1'b0;
        end
      end

      default: state_q <= S_IDLE;
    endcase
    if (rst) state_q <= S_IDLE;
  end
endmodule
