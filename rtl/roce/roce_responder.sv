// SPDX-License-Identifier: Apache-2.0

// The responder: takes the RC packets of all QPs, checks each against the receive state of its QP, and acts: writes to memory,
// acknowledges, completes receives (IBTA 9.7). Acknowledgements from peers pass the same checks and go on to the requester.
//
// One pipeline owns the receive state. An operation enters at most every second cycle: a packet, a set-up or reset of a QP, or
// the news that memory refused a write.
//
//   0 enter   1 QP number   2 read state   3 check   4 decide   5 act   -> dispatch -> complete
//
// Latency from `packet` to `write`: 6 cycles. One packet every 2 cycles, also on one QP; payload one beat a cycle.
// The commands have their answers when everything that the QP had under way has left by `ack_tx`, memory and `completion`.
// For that `completion` must be taken at all times. When an output stops, up to ACTIONS decided packets wait, then `packet`
// stops; acknowledgements leave in the order in which the packets came, and each before the completion of its message.
module roce_responder
  import memory_pkg::*;
  import roce_pkg::*;
  import roce_rx_pkg::*;
#(
    parameter int unsigned DATA_W   = 512,
    parameter int unsigned QPS      = 16,
    parameter int unsigned RQ_DEPTH = 4,
    parameter int unsigned ACTIONS  = 16,     // power of two, 8 or more
    parameter int unsigned PENDING  = 64      // writes that memory has not confirmed; power of two
) (
    input  logic            clk,
    input  logic            rst,
    // packets of the RC service
    stream_if.sink          packet,           // rc_packet_t
    axis_if.sink            payload,          // of those with payload_length > 0
    // acknowledgements
    stream_if.source        ack_tx,           // ack_tx_t: to send
    stream_if.source        ack_rx,           // ack_rx_t: came for the requester
    // memory
    stream_if.source        write,            // dma_cmd_t, length > 0
    axis_if.source          data,
    stream_if.sink          done,             // dma_done_t
    // the access check (roce_mr): granted 3 cycles after query
    output mr_query_t       query,
    input  logic            granted,
    // receives
    stream_if.sink          post,             // rdma_wqe_t, WR_RECV
    stream_if.source        completion,       // rdma_cqe_t
    // queue pairs
    stream_if.sink          cmd,              // qp_cmd_t
    stream_if.source        answer,           // logic
    stream_if.source        qp_event,         // qp_event_t: the QP's receive side went to error
    output logic            active,           // pulse: a packet of the peer came
    output qpn_t            active_qpn,       // on this QP
    output roce_rx_events_t events,           // all but drop_bad_bth and the requester's drop_ghost_ack
    output logic            idle
);
  // ---- 0: what enters ----
  typedef struct packed {
    rx_op_e     op;
    rc_packet_t packet;                       // of the others only the QP number counts
  } rx_operation_t;

  localparam int unsigned FLIGHT_W = $clog2(ACTIONS) + 1;

  stream_if #(.T(qpn_t)) fault ();
  stream_if #(.T(action_t)) decided ();
  stream_if #(.T(action_t)) action ();

  logic                table_ready, spaced_q, commanded_q;
  logic [FLIGHT_W-1:0] flight_q;              // operations between here and the end of dispatch
  qp_cmd_t             cmd_now, cmd_q;
  assign cmd_now = cmd.data;

  wire may_enter   = table_ready && spaced_q && !flight_q[FLIGHT_W-1];
  wire take_fault  = may_enter && fault.valid;
  wire take_cmd    = may_enter && !fault.valid && cmd.valid && !commanded_q;
  wire take_packet = may_enter && !fault.valid && !(cmd.valid && !commanded_q) && packet.valid;
  wire enter       = take_fault || take_cmd || take_packet;

  assign fault.ready  = may_enter;
  assign cmd.ready    = take_cmd;
  assign packet.ready = take_packet;

  logic          valid_1, valid_2, valid_3, valid_4, valid_5;
  rx_operation_t stage_1, stage_2, stage_3, stage_4, stage_5;
  logic          exists_2, exists_3, exists_4, exists_5;
  qp_slot_t      slot_2, slot_3, slot_4;

  // ---- 1: QP number, access check begins ----
  qpn_t index_1;
  assign index_1 = qp_index(stage_1.packet.qpn);
  assign query = '{
      rkey: stage_1.packet.reth.rkey,
      qpn: stage_1.packet.qpn,
      va: stage_1.packet.reth.va,
      length: stage_1.packet.reth.dmalen,
      access: '{remote_write: 1'b1, default: 1'b0}
  };

  // ---- 2: read   3: check   4: decide ----
  qp_rx_t      state_3, old_4, new_4;
  rq_pointer_t tail_2, tail_3, tail_4;
  receive_t    receive_4;
  verdict_e    verdict_4;
  qp_rx_view_t view;
  qp_slot_t    view_slot;
  logic        queue_idle;

  stream_if #(.T(rdma_cqe_t)) reject ();

  roce_qp_rx #(.QPS(QPS)) qps (
      .clk, .rst,
      .ready(table_ready),
      .read_slot(slot_2), .state(state_3),
      .write(valid_4 && exists_4), .write_slot(slot_4), .write_state(new_4),
      .view_slot, .view
  );

  roce_qp_rx_queue #(.QPS(QPS), .RQ_DEPTH(RQ_DEPTH)) receives (
      .clk, .rst,
      .post, .reject, .idle(queue_idle),
      .view_slot, .view,
      .tail_slot(slot_2), .tail(tail_2),
      .read_slot(slot_3), .read_head(state_3.rq_head), .receive(receive_4)
  );

  roce_responder_decide decide (
      .clk,
      .check_op(stage_3.op), .check_exists(exists_3), .check_packet(stage_3.packet), .check_state(state_3),
      .check_tail(tail_3),
      .op(stage_4.op), .exists(exists_4), .packet(stage_4.packet), .attr(cmd_q.attr), .tail(tail_4),
      .receive(receive_4), .granted,
      .old_state(old_4), .new_state(new_4), .verdict(verdict_4)
  );

  always_ff @(posedge clk) begin
    if (enter) begin
      stage_1.op     <= take_fault ? OP_FAULT : !take_cmd ? OP_PACKET : cmd_now.op == QP_SETUP ? OP_SETUP : OP_RESET;
      stage_1.packet <= packet.data;
      if (take_fault) stage_1.packet.qpn <= fault.data;
      else if (take_cmd) stage_1.packet.qpn <= cmd_now.qpn;
    end
    if (valid_1) begin
      stage_2  <= stage_1;
      exists_2 <= index_1 < qpn_t'(QPS);
      slot_2   <= qp_slot_t'(index_1);
    end
    if (valid_2) {stage_3, exists_3, slot_3} <= {stage_2, exists_2, slot_2};
    if (valid_3) {stage_4, exists_4, slot_4} <= {stage_3, exists_3, slot_3};
    if (valid_4) {stage_5, exists_5} <= {stage_4, exists_4};
    tail_3 <= tail_2;
    tail_4 <= tail_3;
    if (take_cmd) cmd_q <= cmd_now;

    if (rst) begin
      {valid_1, valid_2, valid_3, valid_4, valid_5} <= '0;
      spaced_q    <= 1'b1;
      commanded_q <= 1'b0;
      flight_q    <= '0;
    end else begin
      {valid_1, valid_2, valid_3, valid_4, valid_5} <= {enter, valid_1, valid_2, valid_3, valid_4};
      spaced_q <= !enter;
      if (take_cmd) commanded_q <= 1'b1;
      else if (answer.valid && answer.ready) commanded_q <= 1'b0;
      flight_q <= flight_q + FLIGHT_W'(enter) - FLIGHT_W'(action.valid && action.ready);
    end
  end

  // ---- 5: act ----
  verdict_e    verdict_5;
  qp_rx_t      new_5;
  psn_t        epsn_5;                        // expected by the QP before
  logic [23:0] msn_5;
  logic [31:0] offset_5;
  always_ff @(posedge clk) if (valid_4) begin
    verdict_5 <= verdict_4;
    new_5     <= new_4;
    epsn_5    <= old_4.epsn;
    msn_5     <= old_4.msn;
    offset_5  <= stage_4.packet.first ? '0 : old_4.offset;
  end

  rc_packet_t packet_5;
  assign packet_5 = stage_5.packet;
  wire accepted  = verdict_5 == VERDICT_ACCEPT;
  wire is_send   = packet_5.kind == RC_SEND;
  wire fatal     = verdict_5 inside {VERDICT_INVALID, VERDICT_ACCESS, VERDICT_TOO_LONG, VERDICT_FAULT};
  wire rnr       = verdict_5 == VERDICT_NO_RECEIVE;
  wire nak       = fatal || verdict_5 == VERDICT_AHEAD;
  wire acks      = verdict_5 == VERDICT_DUPLICATE || (accepted && packet_5.ackreq);
  wire received  = accepted && packet_5.last && (is_send || packet_5.with_imm);

  logic [7:0] syndrome;
  wc_status_e status;
  always_comb begin
    unique case (verdict_5)
      VERDICT_AHEAD:                     syndrome = SYNDROME_NAK_PSN_SEQ;
      VERDICT_NO_RECEIVE:                syndrome = SYNDROME_RNR_NAK | 8'(new_5.min_rnr_timer);
      VERDICT_INVALID, VERDICT_TOO_LONG: syndrome = SYNDROME_NAK_INVALID_REQ;
      VERDICT_ACCESS:                    syndrome = SYNDROME_NAK_REM_ACCESS;
      VERDICT_FAULT:                     syndrome = SYNDROME_NAK_REM_OP;
      default:                           syndrome = SYNDROME_ACK;
    endcase
    unique case (verdict_5)
      VERDICT_INVALID:               status = WC_LOC_QP_OP_ERR;
      VERDICT_TOO_LONG:              status = WC_LOC_LEN_ERR;
      VERDICT_ACCESS, VERDICT_FAULT: status = WC_LOC_PROT_ERR;
      default:                       status = WC_SUCCESS;
    endcase
  end

  action_t act;
  always_comb begin
    act.ack_tx = acks || nak || rnr;
    act.ack_rx = verdict_5 == VERDICT_ACK;
    // A NAK names the PSN expected, a repeated ACK the newest before that.
    if (verdict_5 == VERDICT_DUPLICATE) act.psn = epsn_5 - 1'b1;
    else act.psn = act.ack_rx ? packet_5.psn : epsn_5;
    act.aeth      = act.ack_rx ? packet_5.word : {syndrome, accepted ? new_5.msn : msn_5};
    act.payload   = stage_5.op == OP_PACKET && packet_5.payload_length != '0;
    act.write     = accepted && act.payload;
    act.addr      = new_5.base + addr_t'(offset_5);
    act.length    = packet_5.payload_length;
    act.completes = received || verdict_5 == VERDICT_TOO_LONG;
    act.cqe = '{
        status: status,
        opcode: is_send ? WC_RECV : WC_RECV_RDMA_WITH_IMM,
        with_imm: packet_5.with_imm,
        solicited: packet_5.se,
        qpn: packet_5.qpn,
        wr_id: new_5.wr_id,
        byte_len: new_5.offset,
        imm_data: packet_5.word
    };
    act.fails   = fatal;
    act.answers = stage_5.op inside {OP_SETUP, OP_RESET};
    act.answer  = exists_5;
  end

  assign decided.valid = valid_5;
  assign decided.data  = act;

  logic actions_empty;
  stream_fifo #(.T(action_t), .DEPTH(ACTIONS)) actions (
      .clk, .rst, .in(decided), .out(action), .empty(actions_empty)
  );

  // ---- dispatch and completion ----
  stream_if #(.T(action_t)) pending ();
  logic dispatch_idle, complete_idle;

  roce_responder_dispatch #(.DATA_W(DATA_W)) dispatch (
      .clk, .rst,
      .action, .ack_tx, .ack_rx, .qp_event, .pending, .payload, .write, .data,
      .idle(dispatch_idle)
  );

  roce_responder_complete #(.QPS(QPS), .RQ_DEPTH(RQ_DEPTH), .PENDING(PENDING)) complete (
      .clk, .rst,
      .pending, .done, .reject, .completion, .answer, .fault,
      .idle(complete_idle)
  );

  // ---- what happened ----
  roce_rx_events_t events_d;
  wire from_peer = verdict_5 inside {VERDICT_ACK, VERDICT_GHOST, VERDICT_DUPLICATE, VERDICT_AHEAD, VERDICT_AHEAD_AGAIN,
                                     VERDICT_INVALID, VERDICT_NO_RECEIVE, VERDICT_ACCESS, VERDICT_TOO_LONG, VERDICT_ACCEPT};
  aeth_t      came;
  assign came = packet_5.word;

  always_comb begin
    events_d = '0;
    events_d.rx_packet           = from_peer;
    events_d.duplicate_request   = verdict_5 == VERDICT_DUPLICATE;
    events_d.out_of_sequence     = verdict_5 inside {VERDICT_AHEAD, VERDICT_AHEAD_AGAIN};
    events_d.rcv_write           = accepted && packet_5.kind == RC_WRITE && packet_5.last;
    events_d.rcv_send            = accepted && is_send && packet_5.last;
    events_d.rcv_ack             = verdict_5 == VERDICT_ACK && came.syndrome[6:5] == SYNDROME_ACK[6:5];
    events_d.rcv_rnr_nak         = verdict_5 == VERDICT_ACK && came.syndrome[6:5] == SYNDROME_RNR_NAK[6:5];
    events_d.rcv_nak             = verdict_5 == VERDICT_ACK && came.syndrome[6:5] == SYNDROME_NAK_PSN_SEQ[6:5];
    events_d.sent_ack            = acks;
    events_d.sent_nak            = nak;
    events_d.sent_rnr_nak        = rnr;
    events_d.rx_write_access_err = verdict_5 == VERDICT_ACCESS;
    events_d.rx_invalid_request  = verdict_5 inside {VERDICT_INVALID, VERDICT_TOO_LONG};
    events_d.drop_no_qp          = verdict_5 == VERDICT_NO_QP;
    events_d.drop_wrong_peer     = verdict_5 == VERDICT_WRONG_PEER;
    events_d.drop_qp_state       = verdict_5 == VERDICT_QP_STATE;
    events_d.drop_ghost_ack      = verdict_5 == VERDICT_GHOST;
  end

  always_ff @(posedge clk) begin
    events     <= valid_5 && !rst ? events_d : '0;
    active     <= valid_5 && !rst && from_peer;
    active_qpn <= packet_5.qpn;
  end

  assign idle = table_ready && !packet.valid && !cmd.valid && flight_q == '0 && !commanded_q && actions_empty
                && queue_idle && dispatch_idle && complete_idle && events == '0;

  // Every decision finds room.
  always_ff @(posedge clk) if (!rst && valid_5) assert (decided.ready);
endmodule
