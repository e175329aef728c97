// SPDX-License-Identifier: Apache-2.0

// What an event means for a connection: the rules of the connection manager, passive side (IBTA 12.9.7, 12.9.8), and nothing
// else. Combinational: from the event and the connection as it was to the connection as it will be and what is to be done.
module roce_cm_decide
  import packet_pkg::*;
  import roce_pkg::*;
  import cm_pkg::*;
#(
    parameter logic [3:0] MAX_RETRIES = 3   // of a REP or DREQ; a REQ may ask for less
) (
    input  cm_op_e      op,
    input  cm_msg_t     msg,           // OP_MESSAGE
    input  qpn_t        qpn,           // of the connection
    input  logic        matched,       // the message's ids and address are this connection's
    input  logic        duplicate,     // REQ: this connection was made by the same REQ
    input  logic        stale,         // REQ: the peer's QP has another connection with us
    input  logic        free,          // REQ: this connection is free
    input  logic        expired,       // OP_WALK: its timer has run out
    input  conn_event_e answered,      // OP_ANSWER: to what
    input  logic        accepted,      // OP_ANSWER: by CONN_OPENED
    input  comm_id_t    new_comm_id,   // for a new connection
    input  psn_t        new_psn,
    input  cm_conn_t    was,
    output cm_conn_t    becomes,       // if plan.write
    output cm_plan_t    plan,
    output logic        makes_stale,   // REQ: the peer's other connection is to be closed
    output cm_events_t  counts
);
  wire retry = was.retries != 0;
  wire asked = was.state == CM_REQ_RCVD;   // the owner has yet to answer CONN_OPENED: CONN_CLOSED comes after that

  always_comb begin
    plan  = '0;
    plan.attr = CM_REP;
    plan.about = CM_MSG_OTHER;
    plan.timeout = was.timeout;
    becomes  = was;
    counts = '0;
    makes_stale = 1'b0;

    unique case (op)
      OP_WALK:
      if (expired)
        unique case (was.state)
          CM_REQ_RCVD: begin         // the owner has not answered
            plan.send   = 1'b1;
            plan.attr   = CM_REJ;
            plan.about  = CM_MSG_REQ;
            plan.reason = REJ_NO_RESOURCES;
            plan.reset  = 1'b1;
            plan.write  = 1'b1;
            becomes.state  = CM_IDLE;
          end
          CM_REP_SENT: begin         // no RTU
            counts.rep_timeout = 1'b1;
            plan.send   = 1'b1;
            plan.attr   = retry ? CM_REP : CM_REJ;
            plan.reason = REJ_TIMEOUT;
            plan.reset  = !retry;
            plan.closed = !retry;
            plan.write  = 1'b1;
            becomes.retries = was.retries - 1'b1;
            if (!retry) becomes.state = CM_IDLE;
          end
          default: begin             // CM_DREQ_SENT: no DREP
            plan.send   = retry;
            plan.attr   = CM_DREQ;
            plan.write  = 1'b1;
            becomes.retries = was.retries - 1'b1;
            if (!retry) becomes.state = CM_IDLE;
          end
        endcase

      OP_CLOSE:
      if (was.state inside {CM_REQ_RCVD, CM_REP_SENT, CM_ESTABLISHED}) begin
        plan.send   = 1'b1;
        plan.reset  = 1'b1;
        plan.closed = !asked;
        plan.write  = 1'b1;
        if (asked) begin
          plan.attr   = CM_REJ;
          plan.about  = CM_MSG_REQ;
          plan.reason = REJ_CONSUMER_DEFINED;
          becomes.state  = CM_IDLE;
        end else begin
          plan.attr   = CM_DREQ;
          becomes.state  = CM_DREQ_SENT;
          becomes.tid    = was.ids;
          becomes.retries = MAX_RETRIES;
        end
      end

      OP_ANSWER: begin
        plan.write = 1'b1;
        if (answered == CONN_CLOSED) becomes.held = 1'b0;
        else if (!accepted) begin
          becomes.state = CM_IDLE;
          becomes.held  = 1'b0;
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
        end else plan.closed = 1'b1;   // it ended meanwhile
      end

      OP_MESSAGE:
      unique case (msg.attr)
        CM_REQ: begin
          counts.req_received = 1'b1;
          counts.duplicate_req = duplicate;
          plan.send  = 1'b1;
          plan.attr  = CM_REJ;
          plan.about = CM_MSG_REQ;
          if (duplicate) begin           // answered as before, if it has been
            plan.send = was.state inside {CM_REP_SENT, CM_ESTABLISHED};
            plan.attr = CM_REP;
          end else begin
            becomes = '0;
            becomes.ip = msg.ip;
            becomes.tid = msg.tid;
            becomes.ids.remote_comm_id = msg.ids.local_comm_id;
            if (msg.refusal != REJ_NONE) plan.reason = msg.refusal;
            else if (stale) begin
              plan.reason = REJ_STALE_CONN;
              makes_stale = 1'b1;
            end
            else if (!free) plan.reason = REJ_NO_QP;
            else begin
              plan.setup   = 1'b1;
              plan.send    = 1'b0;
              plan.opened  = 1'b1;
              plan.write   = 1'b1;
              plan.timeout = msg.timeout;
              becomes.state   = CM_REQ_RCVD;
              becomes.held    = 1'b1;
              becomes.ids.local_comm_id = new_comm_id;
              becomes.remote_qpn = msg.qpn;
              becomes.starting_psn = new_psn;
              becomes.responder_resources = msg.initiator_depth;
              becomes.initiator_depth = msg.responder_resources;
              becomes.timeout = msg.timeout;
              becomes.retries = (msg.max_cm_retries < MAX_RETRIES) ? msg.max_cm_retries : MAX_RETRIES;
            end
          end
        end

        CM_RTU: begin
          counts.rtu_received = matched;
          counts.drop_no_connection = !matched || was.state == CM_DREQ_SENT;
          plan.write = matched && was.state == CM_REP_SENT;
          becomes.state = CM_ESTABLISHED;
        end

        CM_MRA: begin                // each costs a retry: it cannot go on for ever
          counts.mra_received = matched;
          counts.drop_no_connection = !matched || was.state != CM_REP_SENT;
          plan.write   = matched && was.state == CM_REP_SENT && retry;
          plan.timeout = msg.timeout;
          becomes.retries = was.retries - 1'b1;
        end

        CM_REJ: begin
          counts.rej_received = matched;
          counts.drop_no_connection = !matched;
          plan.write  = matched;
          plan.reset  = matched && was.state != CM_DREQ_SENT;
          plan.closed = plan.reset && !asked;
          becomes.state  = CM_IDLE;
        end

        CM_DREQ: begin
          counts.dreq_received = 1'b1;
          plan.attr = CM_DREP;
          plan.send = 1'b1;
          if (!matched) begin      // it was closed before: the peer missed the DREP
            counts.drop_no_connection = 1'b1;
            becomes = '0;
            becomes.ip = msg.ip;
            becomes.ids = '{local_comm_id: msg.ids.remote_comm_id, remote_comm_id: msg.ids.local_comm_id};
          end else if (msg.qpn != qpn) begin
            counts.drop_malformed = 1'b1;
            plan.send = 1'b0;
          end else begin
            plan.write  = 1'b1;
            plan.reset  = was.state != CM_DREQ_SENT;
            plan.closed = plan.reset && !asked;
            becomes.state  = CM_IDLE;
          end
          becomes.tid = msg.tid;
        end

        CM_DREP: begin
          counts.drop_no_connection = !matched || was.state != CM_DREQ_SENT;
          plan.write = matched && was.state == CM_DREQ_SENT;
          becomes.state = CM_IDLE;
        end

        default: begin               // a REP: we asked nobody (IBTA 12.9.8.4)
          counts.drop_no_connection = 1'b1;
          plan.send   = 1'b1;
          plan.attr   = CM_REJ;
          plan.about  = CM_MSG_REP;
          plan.reason = REJ_INVALID_COMM_ID;
          becomes = '0;
          becomes.ip  = msg.ip;
          becomes.tid = msg.tid;
          becomes.ids = '{local_comm_id: msg.ids.remote_comm_id, remote_comm_id: msg.ids.local_comm_id};
        end
      endcase
    endcase
  end
endmodule
