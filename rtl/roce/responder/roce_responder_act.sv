// SPDX-License-Identifier: Apache-2.0

// Derives everything that follows from a verdict: the immediate action, the outcome that waits for memory, and the event pulses.
// Combinational; the inputs are registered outside.
module roce_responder_act
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import roce_rx_pkg::*;
(
    input  rx_op_e          op,
    input  rc_packet_t      packet,
    input  form_t           form,
    input  qp_rx_attr_t     attr,
    input  qp_rx_t          old_state,
    input  qp_rx_t          new_state,
    input  verdict_e        verdict,
    input  logic            consumes,
    input  logic            left,          // packets behind the next gap are remembered
    input  target_t         target,        // of the payload; of a READ or atomic
    input  target_t         lane,          // of the outcome
    input  logic            key_live,      // if a message begins: the key of its receive is valid
    input  qp_cmd_t         cmd,           // of OP_COMMAND
    output action_t         action,
    output outcome_t        outcome,       // valid if outcome_waits()
    output logic            fails,         // the QP enters the error state
    output logic            from_peer,     // the packet was sent by the peer of a live QP
    output roce_rx_events_t events         // except resp_cqe_flush_error, which is derived from the outcome
);
  wire is_send   = packet.kind == RC_SEND;
  wire is_read   = packet.kind == RC_READ;
  wire is_atomic = packet.kind == RC_ATOMIC;
  wire accepted  = verdict == VERDICT_ACCEPT;
  wire placed    = verdict == VERDICT_PLACED;
  wire again     = verdict == VERDICT_AGAIN;
  wire told      = verdict inside {VERDICT_FAULT, VERDICT_DENIED};   // another unit sends the NAK
  wire fatal     = verdict inside {VERDICT_INVALID, VERDICT_ACCESS, VERDICT_TOO_LONG, VERDICT_PROTECTION} || told;
  wire rnr       = verdict inside {VERDICT_NO_RECEIVE, VERDICT_MEMORY_BUSY};
  wire ahead     = verdict == VERDICT_AHEAD || placed;
  wire stopped   = verdict == VERDICT_DONE && cmd.op == QP_MODIFY && cmd.state == QPS_ERR && old_state.state != QPS_ERR;

  // With selective repeat a packet may close a gap; then everything up to the next gap is acknowledged, or a NAK names that gap.
  wire jumped = accepted && new_state.epsn != form.next;
  wire gap    = attr.selective_repeat && (ahead || (accepted && left));
  wire runs   = (accepted && (is_read || is_atomic)) || again;
  wire has_payload = op == OP_PACKET && packet.payload_length != '0;
  wire lapsed      = accepted && has_payload && is_send && packet.first && new_state.keyed && !key_live;
  wire writes      = (accepted || placed) && has_payload && !lapsed;

  // A receive whose message is aborted completes with the error; receives not yet consumed are flushed later.
  wire holds    = old_state.message == MESSAGE_SEND || consumes;
  wire received = accepted && packet.last && (is_send || (packet.kind == RC_WRITE && packet.with_imm));

  logic [7:0] syndrome;
  wc_status_e status;
  always_comb begin
    unique case (verdict)
      VERDICT_AHEAD, VERDICT_PLACED:     syndrome = SYNDROME_NAK_PSN_SEQ;
      VERDICT_NO_RECEIVE, VERDICT_MEMORY_BUSY: syndrome = SYNDROME_RNR_NAK | 8'(attr.min_rnr_timer);
      VERDICT_INVALID, VERDICT_TOO_LONG: syndrome = SYNDROME_NAK_INVALID_REQ;
      VERDICT_ACCESS:                    syndrome = SYNDROME_NAK_REM_ACCESS;
      VERDICT_PROTECTION:                syndrome = SYNDROME_NAK_REM_OP;
      default:                           syndrome = SYNDROME_ACK;
    endcase
    unique case (verdict)
      VERDICT_INVALID:               status = WC_LOC_QP_OP_ERR;
      VERDICT_TOO_LONG:              status = WC_LOC_LEN_ERR;
      VERDICT_ACCESS, VERDICT_PROTECTION, VERDICT_FAULT, VERDICT_DENIED: status = WC_LOC_PROT_ERR;
      VERDICT_FLUSH, VERDICT_DONE:   status = WC_WR_FLUSH_ERR;
      default:                       status = WC_SUCCESS;
    endcase
  end

  addr_t       base;
  logic [31:0] offset;
  assign base   = placed ? addr_t'(packet.reth.va) : new_state.base;
  assign offset = packet.first ? form.offset : old_state.offset;

  always_comb begin
    action.payload = has_payload;
    action.write   = writes;
    action.lane    = lane;
    action.addr    = base + addr_t'(offset);
    action.target  = target;
    action.key     = placed ? packet.reth.rkey : new_state.key;
    action.length  = packet.payload_length;
    action.event_  = fatal || (accepted && !old_state.established);
    action.fatal   = fatal;
    action.status  = status;
    action.qpn     = packet.qpn;
    action.waits   = 1'b0;                // set in roce_responder from `outcome`
  end

  report_t    report;
  execution_t execution;
  always_comb begin
    report = '{
        none: '0,
        status: status,
        of_write: packet.kind == RC_WRITE && consumes && op == OP_PACKET,
        with_imm: received && packet.with_imm,
        with_inv: received && packet.with_inv,
        solicited: received && packet.se,
        wr_id: new_state.wr_id,
        byte_len: received ? new_state.offset : '0,
        imm_data: packet.word
    };
    execution.atomic    = is_atomic;
    execution.duplicate = again;
    execution.path_mtu  = attr.path_mtu;
    execution.addr      = addr_t'(packet.reth.va);
    execution.target    = target;
    execution.rkey      = packet.reth.rkey;
    if (is_atomic) begin
      execution.of.operands = '{compare_swap: packet.compare_swap, swap_add: packet.swap_add, compare: packet.compare};
    end else begin
      execution.of.read = '{none: '0, length: packet.reth.dmalen};
    end
  end

  always_comb begin
    outcome.write    = writes;
    outcome.lapsed   = lapsed;
    outcome.last     = accepted && packet.last;
    outcome.behind   = accepted ? 7'(new_state.epsn - form.next) : '0;
    outcome.executes = runs;
    outcome.gap      = gap;
    outcome.acks     = gap || ahead || rnr || (fatal && !told) || verdict == VERDICT_DUPLICATE
                       || (accepted && (jumped || (packet.ackreq && !runs)));
    // A NAK carries the expected PSN, an ACK the one before it.
    if (accepted || verdict == VERDICT_DUPLICATE) outcome.ack_psn = gap ? new_state.epsn : new_state.epsn - 1'b1;
    else outcome.ack_psn = old_state.epsn;
    outcome.qpn       = packet.qpn;
    outcome.psn       = packet.psn;
    outcome.aeth      = {syndrome, msn_of(old_state) + 24'(outcome.last)};
    outcome.completes = received || verdict == VERDICT_FLUSH || ((fatal || stopped) && holds);
    outcome.answers   = op == OP_COMMAND;
    outcome.answer    = verdict == VERDICT_DONE;
    outcome.renews    = verdict == VERDICT_DONE && cmd.op != QP_MODIFY;
    outcome.fences    = op == OP_FENCE || (accepted && packet.with_inv);
    if (runs) outcome.body.execution = execution;
    else outcome.body.report = report;
  end

  assign fails     = fatal || stopped;
  assign from_peer = op == OP_PACKET && !(verdict inside {VERDICT_NO_QP, VERDICT_QP_STATE, VERDICT_WRONG_PEER});

  always_comb begin
    events = '0;
    events.rcvd_pkts            = from_peer && verdict != VERDICT_NOTICE;
    events.duplicate_request    = verdict inside {VERDICT_DUPLICATE, VERDICT_AGAIN, VERDICT_FORGOTTEN};
    events.out_of_seq_request   = ahead || verdict == VERDICT_AHEAD_AGAIN;
    events.out_of_buffer        = verdict == VERDICT_NO_RECEIVE;
    events.memory_busy          = verdict inside {VERDICT_MEMORY_BUSY, VERDICT_MEMORY_FULL};
    events.rx_write_requests    = (accepted && packet.kind == RC_WRITE && packet.last) || placed;
    events.rx_read_requests     = accepted && is_read;
    events.rx_atomic_requests   = accepted && is_atomic;
    events.rx_send_requests     = accepted && is_send && packet.last;
    events.resp_remote_access_errors = verdict inside {VERDICT_ACCESS, VERDICT_DENIED};
    events.resp_invalid_request = verdict == VERDICT_INVALID;
    events.resp_local_length_error = verdict == VERDICT_TOO_LONG;
    events.resp_local_protection_errors = verdict inside {VERDICT_PROTECTION, VERDICT_FAULT};
    events.out_of_order_placed  = placed;
    events.drop_duplicate_forgotten = verdict == VERDICT_FORGOTTEN;
    // Responses are counted by the requester.
    events.drop_no_qp           = verdict == VERDICT_NO_QP && packet.kind != RC_RESPONSE;
    events.drop_wrong_peer      = verdict == VERDICT_WRONG_PEER && packet.kind != RC_RESPONSE;
    events.drop_qp_state        = verdict == VERDICT_QP_STATE && packet.kind != RC_RESPONSE;
    events.np_ecn_marked_roce_packets = from_peer && packet.ce;
  end
endmodule
