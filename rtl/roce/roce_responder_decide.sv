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
  typedef enum logic [1:0] {
    FROM_STATE,                            // a message in progress
    FROM_RECEIVE,
    FROM_RETH
  } length_from_e;

  typedef struct packed {
    logic         peer;                    // comes from the QP's peer
    logic         duplicate;
    logic         ahead;
    logic         current;                 // a request that is next in turn
    logic         invalid;                 // opcode unknown, or does not fit what went before
    logic         no_receive;              // needs one, but none is posted
    logic         bad_length;              // payload against path MTU and form, message against the standard's limit
    logic         checked;                 // begins a WRITE that the access check must allow
    length_from_e length_from;
    logic [32:0]  offset;                  // of the message after this packet
  } checks_t;

  checks_t checks_d, checks;
  logic [15:0] mtu;
  logic [31:0] offset_before;
  logic        check_is_send, check_is_write, takes_receive;

  assign mtu            = 16'(mtu_bytes(check_state.path_mtu));
  assign offset_before  = check_packet.first ? '0 : check_state.offset;
  assign check_is_send  = check_packet.kind == RC_SEND;
  assign check_is_write = check_packet.kind == RC_WRITE;
  assign takes_receive  = check_is_send ? check_packet.first : check_is_write && check_packet.with_imm;

  always_comb begin
    checks_d.peer      = check_packet.src_ip == check_state.dst_ip;
    checks_d.duplicate = psn_before(check_packet.psn, check_state.epsn);
    checks_d.ahead     = check_packet.psn != check_state.epsn;
    checks_d.current   = check_op == OP_PACKET && check_exists && check_state.state == RX_READY && checks_d.peer
                         && !checks_d.ahead && check_packet.kind inside {RC_SEND, RC_WRITE, RC_UNSUPPORTED};

    checks_d.invalid = check_packet.kind == RC_UNSUPPORTED || check_state.message != (
        check_packet.first ? MESSAGE_NONE : check_is_send ? MESSAGE_SEND : MESSAGE_WRITE);
    checks_d.no_receive = takes_receive && check_state.rq_head == check_tail;
    if (check_packet.last) begin
      checks_d.bad_length = check_packet.payload_length > mtu || (!check_packet.first && check_packet.payload_length == '0);
    end else begin
      checks_d.bad_length = check_packet.payload_length != mtu;
    end
    if (check_is_write && check_packet.first && check_packet.reth.dmalen > MESSAGE_MAX) checks_d.bad_length = 1'b1;

    checks_d.checked     = check_is_write && check_packet.first && check_packet.reth.dmalen != '0;
    checks_d.length_from = !check_packet.first ? FROM_STATE : check_is_send ? FROM_RECEIVE : FROM_RETH;
    checks_d.offset      = 33'(offset_before) + 33'(check_packet.payload_length);
  end

  always_ff @(posedge clk) begin
    checks    <= checks_d;
    old_state <= check_state;
  end

  // ---- decide ----
  wire  is_send = packet.kind == RC_SEND;
  wire  denied  = checks.checked && !granted;
  logic [31:0] length;
  logic        beyond, wrong_sum, refused;

  always_comb begin
    unique case (checks.length_from)
      FROM_RECEIVE: length = receive.length;
      FROM_RETH:    length = packet.reth.dmalen;
      default:      length = old_state.length;
    endcase
    beyond    = checks.offset > 33'(length);
    // A WRITE is exactly as long as its RETH says, and its LAST has at least one byte.
    wrong_sum = beyond || (!is_send && packet.last != (checks.offset == 33'(length)));
    // Fatal for the QP.
    refused   = checks.current && (checks.invalid || (!checks.no_receive && (checks.bad_length || denied || wrong_sum)));
  end

  always_comb begin
    if (op != OP_PACKET) verdict = op == OP_FAULT && old_state.state == RX_READY ? VERDICT_FAULT : VERDICT_NONE;
    else if (!exists) verdict = VERDICT_NO_QP;
    else if (old_state.state != RX_READY) verdict = VERDICT_QP_STATE;
    else if (!checks.peer) verdict = VERDICT_WRONG_PEER;
    else if (packet.kind == RC_ACK) verdict = VERDICT_ACK;
    else if (packet.kind == RC_RESPONSE) verdict = VERDICT_GHOST;
    else if (checks.duplicate) verdict = VERDICT_DUPLICATE;
    else if (checks.ahead) verdict = old_state.nak_sent ? VERDICT_AHEAD_AGAIN : VERDICT_AHEAD;
    else if (checks.invalid) verdict = VERDICT_INVALID;
    else if (checks.no_receive) verdict = VERDICT_NO_RECEIVE;
    else if (checks.bad_length) verdict = VERDICT_INVALID;
    else if (denied) verdict = VERDICT_ACCESS;
    else if (wrong_sum) verdict = is_send ? VERDICT_TOO_LONG : VERDICT_INVALID;
    else verdict = VERDICT_ACCEPT;
  end

  // A request that is next in turn moves everything on, unless it must come again. If it is refused for good the QP is in
  // error, and what else its state says does not matter any more: so only `state` waits for the slow checks.
  wire advance    = checks.current && !checks.no_receive;
  wire consumes   = is_send ? packet.first : packet.with_imm;
  wire asks_again = checks.current ? checks.no_receive : verdict == VERDICT_AHEAD;

  always_comb begin
    new_state = old_state;
    unique case (op)
      OP_PACKET: begin
        if (refused) new_state.state = RX_ERROR;
        if (asks_again) new_state.nak_sent = 1'b1;
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
          if (consumes) begin
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
