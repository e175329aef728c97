// SPDX-License-Identifier: Apache-2.0

// Decides on a packet: the checks of IBTA 9.6 and 9.7.4.1 in their order, and the QP's next state; also the effect of a command or an
// internal operation on a QP. Two steps:
//
//   check   cycle 0: packet against the QP's state, all comparisons in parallel
//   decide  cycle 1: with the receive, the access check and the window; verdict and next state
//
// Whether the key of the message in progress is still valid is known one cycle later: there is a verdict for each case. The next state is
// that for a valid key; if the key is not valid and `needs_key` is set, the QP enters the error state instead.
//
// The only registers are those between the two steps.
module roce_responder_decide
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_rx_pkg::*;
(
    input  logic        clk,
    // cycle 0
    input  rx_op_e      check_op,
    input  logic        check_exists,      // the QP exists
    input  rc_packet_t  check_packet,
    input  qp_rx_attr_t check_attr,
    input  form_t       check_form,
    input  qp_rx_t      check_state,
    input  rq_pointer_t check_tail,        // of the posted receives
    input  rd_count_t   check_rd_done,     // READs and atomics answered
    input  qp_cmd_t     cmd,               // of OP_COMMAND, in both cycles
    // cycle 1
    input  rx_op_e      op,
    input  logic        exists,
    input  rc_packet_t  packet,
    input  form_t       form,
    input  logic        selective_repeat,
    input  rq_pointer_t tail,
    input  rd_count_t   rd_done,
    input  receive_t    receive,           // the next one posted
    input  target_t     target,            // the memory of the address in the packet
    input  logic        granted,           // the access check
    input  logic        busy,              // the lane of the QP, or of the payload's memory, accepts no more packets
    input  logic        full,              // nor responses
    input  logic        present,           // the window: the packet was placed before
    input  psn_t        expected,          // the expected PSN after this packet is accepted
    output qp_rx_t      old_state,
    output qp_rx_t      new_state,
    output verdict_e [1:0] verdict,        // [1] if the key of the message in progress is valid, [0] if not
    output logic        needs_key,         // the QP enters the error state if the key is not valid
    output logic        obeyed,            // the command is executed
    output logic        consumes,          // the next receive
    output logic        remember,          // mark the packet in the window
    output logic        advance
);
  // ---- check ----
  typedef struct packed {
    logic         live;                    // the QP accepts packets
    logic         notice;                  // not a request
    logic         duplicate;
    logic         again;                   // a duplicate READ or atomic, which is executed again
    logic         in_past;                 // a duplicate whose responses all precede the expected PSN
    logic         early;                   // a request ahead of the expected PSN
    logic         in_window;               // close enough to the expected PSN for the window
    logic         current;                 // a request with the expected PSN
    logic         invalid;                 // opcode unknown, out of sequence, not enabled, or too many READs and atomics outstanding
    logic         no_receive;              // a receive is needed but none is posted
    logic         takes_receive;
    logic         into_receive;            // begins a message that is bounded by the receive's length
    logic [31:0]  length;                  // of the message, otherwise
    logic         wrong_sum;               // payload inconsistent with that length
    logic [32:0]  offset;                  // of the message after this packet
    logic         allowed;                 // a command: the state permits this transition
  } checks_t;

  checks_t     checks_d, checks;
  logic [31:0] offset_before;
  logic        check_is_send, check_is_write, check_takes_rd, too_many;
  logic        live, notice, taken;        // taken: a request from the peer of a live QP
  rd_count_t   outstanding;
  psn_t        distance, beyond_psn;

  assign check_is_send  = check_packet.kind == RC_SEND;
  assign check_is_write = check_packet.kind == RC_WRITE;
  assign check_takes_rd = check_packet.kind inside {RC_READ, RC_ATOMIC};
  assign live           = check_exists && receives_packets(check_state.state);
  assign notice         = check_packet.kind inside {RC_RESPONSE, RC_CNP};
  assign taken          = check_op == OP_PACKET && live && check_form.peer && !notice;
  assign offset_before  = check_packet.first ? check_form.offset : check_state.offset;
  assign outstanding    = check_state.rd_begun ? check_state.rd_taken - check_rd_done : '0;
  assign too_many       = check_takes_rd && outstanding >= check_attr.max_dest_rd_atomic;
  assign distance       = check_packet.psn - check_state.epsn;
  assign beyond_psn     = check_state.epsn - check_form.next;

  always_comb begin
    checks_d.live      = live;
    checks_d.notice    = notice;
    checks_d.duplicate = distance[23];
    checks_d.again     = check_takes_rd;
    checks_d.in_past   = !beyond_psn[23];
    checks_d.in_window = distance[22:7] == '0;
    checks_d.current   = taken && check_packet.psn == check_state.epsn;
    checks_d.early     = taken && check_packet.psn != check_state.epsn && !distance[23];

    checks_d.invalid = check_packet.kind == RC_UNSUPPORTED || check_form.disabled || too_many
                       || check_state.message != (check_packet.first ? MESSAGE_NONE : check_is_send ? MESSAGE_SEND : MESSAGE_WRITE);
    checks_d.takes_receive = check_is_send ? check_packet.first : check_is_write && check_packet.with_imm;
    checks_d.no_receive    = check_state.rq_head == check_tail;
    checks_d.into_receive  = check_is_send && check_packet.first;
    checks_d.length        = check_packet.first ? check_packet.reth.dmalen : check_state.length;
    checks_d.offset        = 33'(offset_before) + 33'(check_packet.payload_length);
    // A WRITE has exactly the length in its RETH, and its LAST has at least one byte.
    checks_d.wrong_sum     = (check_is_send || check_is_write) && checks_d.offset > 33'(checks_d.length);
    if (check_is_write && check_packet.last != (checks_d.offset == 33'(checks_d.length))) checks_d.wrong_sum = 1'b1;

    unique case (cmd.op)
      QP_SETUP: checks_d.allowed = check_state.state == QPS_RESET && cmd.state inside {QPS_INIT, QPS_RTR, QPS_RTS};
      QP_RESET: checks_d.allowed = 1'b1;
      default: begin
        unique case (cmd.state)
          QPS_RTR: checks_d.allowed = check_state.state == QPS_INIT;
          QPS_RTS: checks_d.allowed = check_state.state inside {QPS_RTR, QPS_SQD};
          QPS_SQD: checks_d.allowed = check_state.state == QPS_RTS;
          QPS_ERR: checks_d.allowed = check_state.state != QPS_RESET;
          default: checks_d.allowed = 1'b0;
        endcase
      end
    endcase
    if (!check_exists) checks_d.allowed = 1'b0;
  end

  always_ff @(posedge clk) begin
    checks    <= checks_d;
    old_state <= check_state;
  end

  // ---- decide ----
  wire is_send  = packet.kind == RC_SEND;
  wire takes_rd = packet.kind inside {RC_READ, RC_ATOMIC};
  wire current  = checks.current && !full;
  wire early    = checks.early && !full;
  wire starved  = busy || (checks.takes_receive && checks.no_receive);
  // For the first packet of a WRITE the access check covers the whole message; for the others only the validity of the key is checked.
  wire goes_on  = packet.kind == RC_WRITE && !packet.first;
  logic [31:0] length;
  logic        wrong_sum;

  always_comb begin
    length    = checks.into_receive ? receive.length : checks.length;
    wrong_sum = checks.into_receive ? checks.offset > 33'(receive.length) : checks.wrong_sum;
  end

  logic [1:0] refuses;
  assign needs_key = op == OP_PACKET && refuses[0] && !refuses[1];
  assign obeyed    = op == OP_COMMAND && checks.allowed;

  // Ahead of the expected PSN, but placeable: the only packet of its message. After an RNR NAK nothing is placed until the expected packet
  // arrives.
  wire placed = early && !busy && checks.in_window && form.placeable && !(form.checked && !granted) && !present && !old_state.nak_sent;

  for (genvar valid_key = 0; valid_key < 2; valid_key++) begin : g_key
    wire denied = goes_on ? valid_key == 0 : form.checked && !granted;
    // The receive's L_Key does not permit the write, or was invalidated since. Whether it is still valid when its message begins is known
    // too late for this check: roce_responder_act marks the payload as lapsed.
    wire unprotected = is_send && packet.payload_length != '0
                       && (packet.first ? receive.access.denied : old_state.keyed && valid_key == 0);
    // Fatal for the QP.
    assign refuses[valid_key] = current && (checks.invalid || (!starved && (form.bad_length || denied || wrong_sum || unprotected)));

    verdict_e outcome;
    assign verdict[valid_key] = outcome;
    always_comb begin
      outcome = VERDICT_NONE;
      unique case (op)
        OP_COMMAND: outcome = checks.allowed ? VERDICT_DONE : VERDICT_REFUSED;
        OP_FAULT:   if (checks.live) outcome = VERDICT_FAULT;
        OP_DENIED:  if (checks.live) outcome = VERDICT_DENIED;
        OP_FLUSH:   if (consumes) outcome = VERDICT_FLUSH;
        OP_FENCE:   ;
        default: begin
          if (!exists) outcome = VERDICT_NO_QP;
          else if (!checks.live) outcome = VERDICT_QP_STATE;
          else if (!form.peer) outcome = VERDICT_WRONG_PEER;
          else if (checks.notice) outcome = VERDICT_NOTICE;
          else if (full) outcome = VERDICT_MEMORY_FULL;
          else if (checks.duplicate) begin
            if (!checks.again) outcome = VERDICT_DUPLICATE;
            else if (form.bad_length || form.disabled || !checks.in_past || (denied && packet.kind == RC_READ)) begin
              outcome = VERDICT_FORGOTTEN;
            end else outcome = VERDICT_AGAIN;
          end else if (checks.early) begin
            if (old_state.nak_sent) outcome = VERDICT_AHEAD_AGAIN;
            else outcome = placed ? VERDICT_PLACED : VERDICT_AHEAD;
          end
          else if (checks.invalid) outcome = VERDICT_INVALID;
          else if (starved) outcome = busy ? VERDICT_MEMORY_BUSY : VERDICT_NO_RECEIVE;
          else if (form.bad_length) outcome = VERDICT_INVALID;
          else if (denied) outcome = VERDICT_ACCESS;
          else if (wrong_sum) outcome = is_send ? VERDICT_TOO_LONG : VERDICT_INVALID;
          else if (unprotected) outcome = VERDICT_PROTECTION;
          else outcome = VERDICT_ACCEPT;
        end
      endcase
    end
  end

  // A request with the expected PSN advances the state, unless it must be retransmitted. If it is refused with a fatal error the QP enters
  // the error state, in which only the receive queue is still used: so only `state` depends on the slow checks.
  assign advance  = current && !checks.invalid && !starved;
  assign remember = placed;
  assign consumes = op == OP_FLUSH ? old_state.state == QPS_ERR && exists && !checks.no_receive : advance && checks.takes_receive;

  // A NAK was sent that requests retransmission. With selective repeat, which answers each packet ahead of a gap, only an RNR NAK sets
  // this.
  wire asks_again = current ? starved && !checks.invalid : early && !selective_repeat;

  always_comb begin
    new_state = old_state;
    unique case (op)
      OP_PACKET: begin
        if (refuses[1]) new_state.state = QPS_ERR;
        if (asks_again) new_state.nak_sent = 1'b1;
        if (advance) begin
          new_state.epsn        = expected;
          new_state.nak_sent    = 1'b0;
          new_state.established = 1'b1;
          new_state.offset      = checks.offset[31:0];
          new_state.message     = packet.last ? MESSAGE_NONE : is_send ? MESSAGE_SEND : MESSAGE_WRITE;
          new_state.lead        = old_state.lead + (form.next - packet.psn) - psn_t'(packet.last);
          if (packet.first) begin
            new_state.base   = is_send ? receive.addr : addr_t'(packet.reth.va);
            new_state.target = is_send ? receive.access.target : target;
            new_state.key    = is_send ? receive.lkey : packet.reth.rkey;
            new_state.keyed  = is_send ? receive.access.keyed : 1'b1;
            new_state.length = length;
          end
          if (takes_rd) begin
            new_state.rd_begun = 1'b1;
            new_state.rd_taken = (old_state.rd_begun ? old_state.rd_taken : rd_done) + 1'b1;
          end
        end
      end
      OP_COMMAND: if (checks.allowed) begin
        unique case (cmd.op)
          QP_SETUP: new_state = '{
              state: cmd.state,
              epsn: cmd.attr.rq_psn,
              lead: cmd.attr.rq_psn,
              message: MESSAGE_NONE,
              rq_head: tail,
              default: '0
          };
          QP_RESET: new_state.state = QPS_RESET;
          default:  new_state.state = cmd.state;
        endcase
      end
      OP_FAULT, OP_DENIED: if (checks.live) new_state.state = QPS_ERR;
      default: ;
    endcase
    if (consumes) begin
      new_state.wr_id   = receive.wr_id;
      new_state.rq_head = old_state.rq_head + 1'b1;
    end
  end
endmodule
