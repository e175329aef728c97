// SPDX-License-Identifier: Apache-2.0

// The rules of the connection manager, both sides (IBTA 12.9.7, 12.9.8): decides what an event does to a connection. Messages are decided
// in roce_cm_decide_message. Combinational: from the event and the connection's state before it to the state after it and the actions.
module roce_cm_decide
  import packet_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import roce_cm_pkg::*;
#(
    parameter int unsigned  RD_DEPTH = 8,
    parameter logic [3:0]   MAX_RETRIES = 3,      // of a REP or DREQ; a REQ may allow fewer
    parameter logic [3:0]   REQ_RETRIES = 15,
    parameter cm_timeout_t  CM_TIMEOUT = 20,      // for the answers to a REQ
    parameter cm_timeout_t  MRA_TIMEOUT = 22,     // service timeout of the device's MRA; half of it is used
    parameter logic [1:0]   MRAS = 3,             // at most, for one REQ
    parameter pd_t [3:0]    PASSIVE_PD = {client_pd(2'd3), client_pd(2'd2), client_pd(2'd1), client_pd(2'd0)},
    parameter access_t [3:0] PASSIVE_ACCESS = '1,
    parameter contexts_t [3:0] PASSIVE_CONTEXTS = '0,
    parameter logic [3:0] PASSIVE_LONG_SET_UP = '0,
    parameter bit SELECTIVE_REPEAT = 1'b1,
    parameter bit ACTIVE = 1'b1                   // else OP_CONNECT does not occur
) (
    input  cm_op_e       op,
    input  cm_msg_t      msg,           // OP_MESSAGE
    input  connect_t     connect,       // OP_CONNECT
    input  logic         right_qpn,     // DREQ: it names this connection's QP
    input  logic         acceptable,    // REQ: msg.reason is REJ_NONE
    input  admission_verdict_t verdict, // REQ
    input  admission_why_e ended,       // OP_END
    input  logic         matched,       // the message's ids and address match this connection
    input  logic         called,        // the message's remote id and address match this connection, which waits for a REP
    input  logic         duplicate,     // REQ: the same REQ has created this connection
    input  logic         stale,         // REQ, REP: the peer's QP has another connection with the device
    input  logic         per_peer,      // REQ: the peer has reached the limit of its connections
    input  logic         half_open,     // REQ: the limit of half-open connections is reached,
    input  logic         half_open_per_peer,  // that of this peer
    input  logic         free,          // REQ, OP_CONNECT: this connection is free
    input  logic         expired,       // OP_WALK: its timer has expired
    input  logic         resolved,      // OP_CONNECT, OP_WALK in CM_RESOLVING: the peer's address is known
    input  mac_t         mac,           // valid if `resolved`
    input  own_set_t     leaving,       // addresses of the device that go: of those of OP_CLOSE that are `lost`,
    input  logic         lost,          // the connections that use one are closed, for that reason,
    input  logic         abandon,       // and there is no time to wait for the peer
    input  logic         accepted,      // OP_ANSWER: the answer to CONN_OPENED
    input  conn_event_e  told,          // OP_TELL
    input  mtu_code_t    max_mtu,
    input  dscp_settings_t dscp,
    input  logic         extensions,    // selective repeat is offered and accepted, contexts are accepted
    input  comm_id_t     new_comm_id,   // for a new connection
    input  psn_t         new_psn,
    input  cm_conn_t     was,
    output cm_conn_t     becomes,       // valid if plan.write
    output cm_plan_t     plan,
    output logic         makes_stale,   // REQ, REP: the peer's other connection is to be closed
    output cm_events_t   counts
);
  wire retry = was.retries != 0;
  wire asked = was.state == CM_REQ_RCVD;   // the owner has not answered CONN_OPENED yet: CONN_CLOSED follows the answer
  wire address_goes = leaving[was.own];
  wire spared = lost && !address_goes;

  cm_conn_t   message_becomes;
  cm_plan_t   message_plan;
  cm_events_t message_counts;
  logic       message_makes_stale;
  roce_cm_decide_message #(
      .RD_DEPTH(RD_DEPTH), .MAX_RETRIES(MAX_RETRIES), .PASSIVE_PD(PASSIVE_PD), .PASSIVE_ACCESS(PASSIVE_ACCESS),
      .PASSIVE_CONTEXTS(PASSIVE_CONTEXTS),
      .PASSIVE_LONG_SET_UP(PASSIVE_LONG_SET_UP),
      .SELECTIVE_REPEAT(SELECTIVE_REPEAT)
  ) message (
      .msg, .right_qpn, .acceptable, .verdict, .matched, .called, .duplicate, .stale, .per_peer, .half_open, .half_open_per_peer, .free,
      .dscp, .extensions, .new_comm_id, .new_psn, .was,
      .becomes(message_becomes), .plan(message_plan), .makes_stale(message_makes_stale), .counts(message_counts)
  );

  always_comb begin
    plan  = '0;
    plan.attr = CM_REP;
    plan.about = CM_MSG_OTHER;
    plan.timeout = was.timeout;
    plan.kind = CONN_CLOSED;
    becomes  = was;
    counts = '0;
    makes_stale = 1'b0;

    unique case (op)
      OP_CONNECT: if (ACTIVE) begin
        plan.attr = CM_REQ;
        plan.kind = CONN_REFUSED;
        plan.why  = conn_reason_t'(REJ_NO_QP);
        plan.tell = !free;
        plan.send = free && resolved;
        plan.save = free;
        plan.write = free;
        plan.timeout = resolved ? CM_TIMEOUT : RESOLVE_FIRST;
        becomes = '0;
        becomes.state = resolved ? CM_REQ_SENT : CM_RESOLVING;
        becomes.active = 1'b1;
        becomes.mac = mac;
        becomes.ip = connect.ip;
        becomes.own = own_towards(connect.ip);
        becomes.port = connect.port;
        becomes.ids.local_comm_id = new_comm_id;
        becomes.tid = {8'h0, new_psn, new_comm_id};
        becomes.starting_psn = new_psn;
        becomes.client = connect.client;
        becomes.tag = connect.tag;
        becomes.pd = connect.pd;
        becomes.access = connect.access;
        becomes.path_mtu = (connect.path_mtu == 0 || connect.path_mtu > max_mtu) ? max_mtu : connect.path_mtu;
        becomes.dscp = dscp.roce;
        becomes.ack_timeout = connect.timeout;
        becomes.retry_count = connect.retry_cnt;
        becomes.rnr_retry_count = connect.rnr_retry;
        becomes.responder_resources = cm_at_most(connect.responder_resources, rd_limit_t'(RD_DEPTH));
        becomes.initiator_depth = cm_at_most(connect.initiator_depth, rd_limit_t'(RD_DEPTH));
        becomes.selective_repeat = SELECTIVE_REPEAT && extensions;
        becomes.timeout = plan.timeout;
        becomes.retries = REQ_RETRIES;
      end

      OP_WALK:
      if (expired) begin
        plan.write = 1'b1;
        becomes.retries = was.retries - 1'b1;
        unique case (was.state)
          CM_RESOLVING: begin
            becomes.retries = was.retries;
            plan.attr = CM_REQ;
            plan.kind = CONN_REFUSED;
            plan.why  = CONN_UNREACHABLE;
            if (resolved) begin
              plan.load = 1'b1;
              plan.send = 1'b1;
              plan.timeout = CM_TIMEOUT;
              becomes.state = CM_REQ_SENT;
              becomes.mac = mac;
            end else if (was.timeout == RESOLVE_LAST) begin
              counts.drop_unresolved = 1'b1;
              plan.save = 1'b1;
              plan.tell = 1'b1;
              becomes.state = CM_IDLE;
              becomes.owed  = OWED_REFUSED;
            end else plan.timeout = was.timeout + 1'b1;
            becomes.timeout = plan.timeout;
          end
          CM_REQ_SENT: begin         // no REP
            counts.req_timeout = 1'b1;
            plan.load = retry;
            plan.send = 1'b1;
            plan.attr = retry ? CM_REQ : CM_REJ;
            plan.reason = REJ_TIMEOUT;
            plan.save = !retry;
            plan.tell = !retry;
            plan.kind = CONN_REFUSED;
            plan.why  = CONN_UNREACHABLE;
            if (!retry) begin
              becomes.state = CM_IDLE;
              becomes.owed  = OWED_REFUSED;
            end
          end
          CM_REQ_RCVD: begin         // the owner has not answered
            becomes.retries = was.retries;
            plan.send  = 1'b1;
            plan.about = CM_MSG_REQ;
            if (was.mras != MRAS) begin
              plan.attr = CM_MRA;
              plan.timeout = cm_half(MRA_TIMEOUT);
              becomes.mras = was.mras + 1'b1;
            end else begin
              plan.attr   = CM_REJ;
              plan.reason = REJ_NO_RESOURCES;
              plan.reset  = 1'b1;
              becomes.state = CM_IDLE;
            end
          end
          CM_REP_SENT: begin         // no RTU
            counts.rep_timeout = 1'b1;
            plan.load   = retry;
            plan.send   = 1'b1;
            plan.attr   = retry ? CM_REP : CM_REJ;
            plan.reason = REJ_TIMEOUT;
            plan.reset  = !retry;
            plan.tell   = !retry;
            plan.why    = conn_reason_t'(REJ_TIMEOUT);
            if (!retry) begin
              becomes.state = CM_IDLE;
              becomes.owed  = OWED_CLOSED;
            end
          end
          default: begin             // CM_DREQ_SENT: no DREP
            counts.dreq_timeout = 1'b1;
            plan.send = retry;
            plan.attr = CM_DREQ;
            if (!retry) becomes.state = CM_IDLE;
          end
        endcase
      end

      OP_CLOSE, OP_STALE, OP_END:
      if (spared) plan.write = 1'b0;
      else if (was.state inside {CM_RESOLVING, CM_REQ_SENT}) begin   // aborted as Linux does it (cm_destroy_id)
        plan.send   = was.state == CM_REQ_SENT;
        plan.attr   = CM_REJ;
        plan.reason = REJ_TIMEOUT;
        plan.save   = 1'b1;
        plan.tell   = 1'b1;
        plan.kind   = CONN_REFUSED;
        plan.why    = address_goes ? CONN_ADDRESS_LOST : conn_reason_t'(REJ_CONSUMER_DEFINED);
        plan.write  = 1'b1;
        becomes.state = CM_IDLE;
        becomes.owed  = OWED_REFUSED;
      end else if (cm_callers(was.state)) begin
        becomes.why = (op == OP_END) ? ended : ADM_NONE;
        counts.admission_ended = op == OP_END;
        plan.send   = 1'b1;
        plan.reset  = 1'b1;
        plan.tell   = !asked;
        plan.why    = (op == OP_STALE) ? conn_reason_t'(REJ_STALE_CONN) : address_goes ? CONN_ADDRESS_LOST : '0;
        plan.write  = 1'b1;
        if (asked) begin
          plan.attr   = CM_REJ;
          plan.about  = CM_MSG_REQ;
          plan.reason = REJ_CONSUMER_DEFINED;
          becomes.state = CM_IDLE;
        end else begin
          plan.attr   = CM_DREQ;
          becomes.state = abandon ? CM_IDLE : CM_DREQ_SENT;
          becomes.owed  = OWED_CLOSED;
          becomes.tid   = was.ids;
          becomes.retries = MAX_RETRIES;
        end
      end else if (was.state == CM_DREQ_SENT && abandon) begin
        plan.write  = 1'b1;
        becomes.state = CM_IDLE;
      end

      OP_USED: begin                 // equivalent to an RTU (IBTA 12.9.7.2, 11.6.3.1)
        plan.write = was.state == CM_REP_SENT;
        becomes.state = CM_ESTABLISHED;
      end

      OP_ANSWER:
      unique case (was.owed)
        OWED_CLOSED: begin
          plan.write = 1'b1;
          becomes.owed = OWED_NOTHING;
        end
        OWED_OPENED: begin
          plan.write = 1'b1;
          becomes.owed = OWED_NOTHING;
          if (!accepted) begin
            becomes.state = CM_IDLE;
            counts.connection_closed = 1'b1;
            plan.send   = asked;
            plan.attr   = CM_REJ;
            plan.about  = CM_MSG_REQ;
            plan.reason = REJ_CONSUMER_DEFINED;
            plan.reset  = asked;
          end else if (asked) begin
            becomes.state = CM_REP_SENT;
            plan.send = 1'b1;
            plan.attr = CM_REP;
            plan.save = 1'b1;
          end else begin             // the connection was closed meanwhile
            plan.tell = 1'b1;
            becomes.owed = OWED_CLOSED;
          end
        end
        default: plan.write = 1'b0;  // no answer is due
      endcase

      OP_TELL: begin
        plan.load  = told != CONN_CLOSED;
        plan.write = told == CONN_REFUSED;
        becomes.owed = OWED_NOTHING;
      end

      default: begin                 // OP_MESSAGE
        becomes = message_becomes;
        plan    = message_plan;
        counts  = message_counts;
        makes_stale = message_makes_stale;
      end
    endcase
  end
endmodule
