// SPDX-License-Identifier: Apache-2.0

// Whether frames fit (trace_match_t): compares the bytes of headers at their places in an Ethernet frame without VLAN tag and
// with an IPv4 header without options, which are the only ones that the device takes. A frame that is too short for a term does
// not fit.
//
// Looks at the beats of a stream as they pass. `fits` is valid one cycle after the last beat, and holds until the next beat.
module frame_match
  import packet_pkg::*;
  import trace_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned PEER_AT = 26    // byte of the IPv4 address that is the peer's
) (
    input  logic         clk,
    input  logic         beat,             // in this cycle
    input  logic         first,            // of its frame
    input  logic [DATA_W-1:0]   data,
    input  logic [DATA_W/8-1:0] keep,
    input  trace_match_t match,
    output logic         fits
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);
  localparam int unsigned ETHERTYPE_AT = 12;
  localparam int unsigned PROTOCOL_AT = 23;
  localparam int unsigned PORT_AT = 36;
  localparam int unsigned OPCODE_AT = 42;
  localparam int unsigned QPN_AT = 47;
  localparam int unsigned END = 50;

  // Each byte of the headers: what it must be, and whether it must.
  logic [END-1:0][7:0] expected;
  logic [END-1:0]      wanted;
  always_comb begin
    expected = '0;
    wanted   = '0;
    expected[ETHERTYPE_AT]   = match.ethertype[15:8];
    expected[ETHERTYPE_AT+1] = match.ethertype[7:0];
    expected[PROTOCOL_AT]    = IPPROTO_UDP;
    expected[PORT_AT]        = UDP_PORT_ROCE[15:8];
    expected[PORT_AT+1]      = UDP_PORT_ROCE[7:0];
    expected[OPCODE_AT]      = match.opcode;
    for (int unsigned i = 0; i < 4; i++) expected[PEER_AT+i] = match.peer[8*(3-i)+:8];
    for (int unsigned i = 0; i < 3; i++) expected[QPN_AT+i] = match.qpn[8*(2-i)+:8];
    wanted[ETHERTYPE_AT+:2] = {2{match.terms.ethertype}};
    wanted[PROTOCOL_AT]     = match.terms.roce;
    wanted[PORT_AT+:2]      = {2{match.terms.roce}};
    wanted[OPCODE_AT]       = match.terms.opcode;
    wanted[PEER_AT+:4]      = {4{match.terms.peer}};
    wanted[QPN_AT+:3]       = {3{match.terms.qpn}};
  end

  localparam int unsigned BEATS = (END + BYTES - 1) / BYTES;
  logic [BEATS:0] turn_q;       // one-hot, the beat that comes next; beyond the headers none of the others
  wire [BEATS:0] turn = first ? (BEATS + 1)'(1) : turn_q;
  always_ff @(posedge clk) if (beat) turn_q <= turn[BEATS] ? turn : turn << 1;

  // Of each beat: all that is wanted in it is there, or nothing is.
  logic [BEATS-1:0] there, needs, there_q;
  always_comb begin
    there = '1;
    needs = '0;
    for (int unsigned i = 0; i < END; i++) begin
      if (wanted[i] && !(keep[LANE_W'(i)] && data[8*(i%BYTES)+:8] == expected[i])) there[i/BYTES] = 1'b0;
      if (wanted[i]) needs[i/BYTES] = 1'b1;
    end
  end
  always_ff @(posedge clk) begin
    for (int unsigned i = 0; i < BEATS; i++) begin
      if (beat && turn[i]) there_q[i] <= there[i];
      else if (beat && first) there_q[i] <= !needs[i];
    end
  end

  assign fits = &there_q;
endmodule
