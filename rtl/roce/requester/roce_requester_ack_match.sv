// SPDX-License-Identifier: Apache-2.0

// Compares an event with the oldest READ or atomic that is not answered: what the event acknowledges, whether it is the response
// expected next (IBTA 9.7.5), and whether its opcode and length are correct. Combinational.
module roce_requester_ack_match
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_requester_pkg::*;
  import roce_requester_ack_pkg::*;
(
    input  ack_placed_t   placed,
    input  ack_expected_t expected,
    output ack_matched_t  matched
);
  ack_event_t e;
  sq_rd_t     rd;
  assign e  = placed.e;
  assign rd = expected.rd;

  wire is_ack     = e.is == IS_ACK;
  wire ack        = e.syndrome[7:5] == SYNDROME_ACK[7:5];
  wire plain      = plain_ack(e);
  wire in_order   = !expected.beyond && placed.ahead == expected.expected;
  wire beyond     = !expected.beyond && placed.ahead > expected.expected;   // beyond the expected response
  // An ACK acknowledges its own PSN too, a NAK does not; a response to a READ or atomic acknowledges what is before its request.
  wire capped     = beyond || (plain && in_order);
  wire to_read    = !is_ack || capped;

  // The length is compared with that of a last packet and of any other in parallel with the position.
  wire is_last    = expected.position == rd.last;
  wire fits_last  = e.length == rd.tail;
  wire fits_inner = e.length == mtu_bytes(placed.path.path_mtu);
  logic shape;
  always_comb begin
    unique case (e.is)
      IS_READ_FIRST:  shape = !rd.atomic && !is_last && fits_inner;
      IS_READ_MIDDLE: shape = !rd.atomic && !is_last && fits_inner && !expected.opens;
      IS_READ_LAST:   shape = !rd.atomic && is_last && fits_last && !expected.opens;
      IS_READ_ONLY:   shape = !rd.atomic && is_last && fits_last;
      default:        shape = rd.atomic && !e.has_payload;
    endcase
  end

  always_comb begin
    matched.e              = e;
    matched.was            = placed.was;
    matched.live           = placed.was.state inside {SQ_RTS, SQ_SQD};
    matched.heard          = placed.heard;
    matched.window_shut    = expected.window_shut;
    matched.ahead_some     = placed.ahead != 0;
    matched.ahead          = placed.ahead;
    matched.in_order       = in_order;
    matched.skips          = beyond;
    matched.outstanding    = expected.outstanding;
    matched.counts         = matched.heard && matched.live && expected.outstanding;
    matched.is_ack         = is_ack;
    matched.fatal          = is_ack && e.syndrome inside {
        SYNDROME_NAK_INVALID_REQ, SYNDROME_NAK_REM_ACCESS, SYNDROME_NAK_REM_OP};
    matched.sequence_error = is_ack && e.syndrome == SYNDROME_NAK_PSN_SEQ && !beyond;
    matched.not_ready      = is_ack && e.syndrome[7:5] == SYNDROME_RNR_NAK[7:5] && !beyond;
    matched.ghost          = is_ack ? !(matched.fatal || matched.not_ready || matched.sequence_error || capped || ack)
        : !(in_order || beyond);
    matched.capped         = capped;
    matched.reached        = to_read ? expected.expected : placed.ahead + psn_t'(plain);
    matched.moves          = to_read ? expected.expected != 0 : plain || placed.ahead != 0;
    matched.fits           = shape && (e.is == IS_READ_MIDDLE || ack);
    matched.last           = is_last;
    matched.selective      = placed.path.selective_repeat;
    matched.beyond_mark    = !placed.beyond_mark[23];
    matched.pending        = placed.sent_epoch != placed.was.epoch;
    matched.sent_epoch     = placed.sent_epoch;
    matched.single_pending = placed.was.asked && placed.sent_single != placed.was.single;
    matched.last_retry     = placed.last_retry;
    matched.last_rnr_retry = placed.last_rnr_retry;
    matched.no_rnr_retry   = placed.no_rnr_retry;
    matched.lapsed         = rd.access.keyed && !expected.live;
    matched.addr           = rd.addr;
    matched.target         = rd.access.target;
    matched.key            = rd.lkey;
    matched.offset         = addr_t'(expected.position) << (4'd7 + 4'(placed.path.path_mtu));
    matched.length         = rd.atomic ? 13'd8 : e.length;
  end
endmodule
