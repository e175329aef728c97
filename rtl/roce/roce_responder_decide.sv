// SPDX-License-Identifier: Apache-2.0

// What to do about a packet: the checks of IBTA 9.6 and 9.7.4.1 in their order, and the QP's next state. Two steps:
//
//   check   cycle 0: packet against the QP's state, all comparisons side by side
//   decide  cycle 1: receive and access check have arrived; verdict and next state
//
// Stateless but for the register between the two. READ and atomics will be one more kind of accepted request here.
module roce_responder_decide
  import memory_pkg::*;
  import roce_pkg::*;
  import roce_rx_pkg::*;
(
    input  logic        clk,
    // cycle 0
    input  rx_op_e      check_op,
    input  logic        check_exists,      // the QP number is one of ours
    input  rc_packet_t  check_packet,
    input  qp_rx_t      check_state,
    input  rq_pointer_t check_tail,        // of the posted receives
    // cycle 1
    input  rx_op_e      op,
    input  logic        exists,
    input  rc_packet_t  packet,
    input  qp_attr_t    attr,              // for OP_SETUP
    input  rq_pointer_t tail,
    input  receive_t    receive,           // the next one posted
    input  logic        granted,           // the access check of the RETH
    output qp_rx_t      old_state,
    output qp_rx_t      new_state,
    output verdict_e    verdict
);
  localparam logic [31:0] MESSAGE_MAX = 32'h8000_0000;  // bytes (IBTA 9.7.7)

  // ---- check ----
  typedef struct packed {
    logic        peer;                     // comes from the QP's peer
    logic        expected;
    logic        duplicate;
    logic        current;                  // a request that is next in turn
    logic        sequence_;                // opcode fits what went before
    logic        length;                   // payload length fits path MTU and form, message length the standard's limit
    logic        takes_receive;
    logic        no_receive;
    logic [32:0] offset;                   // of the message after this packet
  } checks_t;

  checks_t checks_d, checks;
  logic [12:0] mtu;
  logic [31:0] offset_before;

  assign mtu           = mtu_bytes(check_state.path_mtu);
  assign offset_before = check_packet.first ? '0 : check_state.offset;

  always_comb begin
    checks_d.peer      = check_packet.src_ip == check_state.dst_ip;
    checks_d.expected  = check_packet.psn == check_state.epsn;
    checks_d.duplicate = psn_before(check_packet.psn, check_state.epsn);
    checks_d.current   = check_op == OP_PACKET && check_exists && check_state.state == RX_READY && checks_d.peer
                         && checks_d.expected && check_packet.kind inside {RC_SEND, RC_WRITE, RC_UNSUPPORTED};
    checks_d.sequence_ = check_state.message == (
        check_packet.first ? MESSAGE_NONE : check_packet.kind == RC_SEND ? MESSAGE_SEND : MESSAGE_WRITE);
    if (!check_packet.last) checks_d.length = check_packet.payload_length == 16'(mtu);
    else checks_d.length = check_packet.payload_length <= 16'(mtu) && (check_packet.first || check_packet.payload_length != '0);
    if (check_packet.kind == RC_WRITE && check_packet.first && check_packet.reth.dmalen > MESSAGE_MAX) checks_d.length = 1'b0;
    checks_d.takes_receive = check_packet.kind == RC_SEND ? check_packet.first
                             : check_packet.kind == RC_WRITE && check_packet.with_imm;
    checks_d.no_receive    = check_state.rq_head == check_tail;
    checks_d.offset        = 33'(offset_before) + 33'(check_packet.payload_length);
  end

  always_ff @(posedge clk) begin
    checks <= checks_d;
    old_state <= check_state;
  end

  // ---- decide ----
  wire is_send       = packet.kind == RC_SEND;
  wire no_receive    = checks.takes_receive && checks.no_receive;
  wire [31:0] length = !packet.first ? old_state.length : is_send ? receive.length : packet.reth.dmalen;
  wire beyond        = checks.offset > 33'(length);
  wire complete      = checks.offset == 33'(length);
  // A WRITE is exactly as long as its RETH says, and a LAST has at least one byte.
  wire wrong_length  = beyond || packet.last != complete;
  wire denied        = packet.kind == RC_WRITE && packet.first && packet.reth.dmalen != '0 && !granted;

  always_comb begin
    if (op != OP_PACKET) verdict = op == OP_FAULT && old_state.state == RX_READY ? VERDICT_FAULT : VERDICT_NONE;
    else if (!exists) verdict = VERDICT_NO_QP;
    else if (old_state.state != RX_READY) verdict = VERDICT_QP_STATE;
    else if (!checks.peer) verdict = VERDICT_WRONG_PEER;
    else if (packet.kind == RC_ACK) verdict = VERDICT_ACK;
    else if (packet.kind == RC_RESPONSE) verdict = VERDICT_GHOST;
    else if (checks.duplicate) verdict = VERDICT_DUPLICATE;
    else if (!checks.expected) verdict = old_state.nak_sent ? VERDICT_AHEAD_AGAIN : VERDICT_AHEAD;
    else if (!checks.sequence_ || packet.kind == RC_UNSUPPORTED) verdict = VERDICT_INVALID;
    else if (no_receive) verdict = VERDICT_NO_RECEIVE;
    else if (!checks.length) verdict = VERDICT_INVALID;
    else if (denied) verdict = VERDICT_ACCESS;
    else if (is_send) verdict = beyond ? VERDICT_TOO_LONG : VERDICT_ACCEPT;
    else verdict = wrong_length ? VERDICT_INVALID : VERDICT_ACCEPT;
  end

  // A request that is next in turn moves everything on, unless it must come again. If it is refused for good the QP is in
  // error, and what else its state says does not matter any more: so only `state` waits for the verdict.
  wire advance = checks.current && !no_receive;

  always_comb begin
    new_state = old_state;
    unique case (op)
      OP_PACKET: begin
        if (verdict inside {VERDICT_INVALID, VERDICT_ACCESS, VERDICT_TOO_LONG}) new_state.state = RX_ERROR;
        if (verdict inside {VERDICT_AHEAD, VERDICT_NO_RECEIVE}) new_state.nak_sent = 1'b1;
        if (advance) begin
          new_state.epsn     = old_state.epsn + 1'b1;
          new_state.nak_sent = 1'b0;
          new_state.offset   = checks.offset[31:0];
          new_state.message  = packet.last ? MESSAGE_NONE : is_send ? MESSAGE_SEND : MESSAGE_WRITE;
          if (packet.last) new_state.msn = old_state.msn + 1'b1;
          if (packet.first) begin
            new_state.base   = is_send ? receive.addr : addr_t'(packet.reth.va);
            new_state.length = length;
          end
          if (checks.takes_receive) begin
            new_state.wr_id   = receive.wr_id;
            new_state.rq_head = old_state.rq_head + 1'b1;
          end
        end
      end
      OP_SETUP: new_state = '{
          state: RX_READY,
          dst_ip: attr.dst_ip,
          path_mtu: attr.path_mtu,
          min_rnr_timer: attr.min_rnr_timer,
          epsn: attr.rq_psn,
          message: MESSAGE_NONE,
          rq_head: tail,
          default: '0
      };
      OP_RESET: new_state.state = RX_RESET;
      default: if (verdict == VERDICT_FAULT) new_state.state = RX_ERROR;
    endcase
  end
endmodule
