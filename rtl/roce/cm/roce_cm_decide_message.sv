// SPDX-License-Identifier: Apache-2.0

// Decides what a message does to a connection, both sides (IBTA 12.9.7, 12.9.8): a part of roce_cm_decide. Combinational.
module roce_cm_decide_message
  import packet_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import roce_cm_pkg::*;
#(
    parameter int unsigned   RD_DEPTH = 8,
    parameter logic [3:0]    MAX_RETRIES = 3,     // of a REP or DREQ; a REQ may allow fewer
    parameter pd_t [3:0]     PASSIVE_PD = {client_pd(2'd3), client_pd(2'd2), client_pd(2'd1), client_pd(2'd0)},
    parameter access_t [3:0] PASSIVE_ACCESS = '1,
    parameter contexts_t [3:0] PASSIVE_CONTEXTS = '0,
    parameter logic [3:0] PASSIVE_LONG_SET_UP = '0,
    parameter bit SELECTIVE_REPEAT = 1'b1
) (
    input  cm_msg_t    msg,
    input  logic       right_qpn,     // DREQ: it names this connection's QP
    input  logic       acceptable,    // REQ: msg.reason is REJ_NONE
    input  admission_verdict_t verdict, // REQ
    input  logic       matched,       // its ids and address match this connection
    input  logic       called,        // its remote id and address match this connection, which waits for a REP
    input  logic       duplicate,     // REQ: the same REQ has created this connection
    input  logic       stale,         // REQ, REP: the peer's QP has another connection with the device
    input  logic       per_peer,      // REQ: the peer has reached the limit of its connections
    input  logic       half_open,     // REQ: the limit of half-open connections is reached,
    input  logic       half_open_per_peer,  // that of this peer
    input  logic       free,          // REQ: this connection is free
    input  dscp_settings_t dscp,
    input  logic       extensions,    // selective repeat, contexts and long set-ups are accepted
    input  comm_id_t   new_comm_id,   // for a new connection
    input  psn_t       new_psn,
    input  cm_conn_t   was,
    output cm_conn_t   becomes,       // valid if plan.write
    output cm_plan_t   plan,
    output logic       makes_stale,   // REQ, REP: the peer's other connection is to be closed
    output cm_events_t counts
);
  wire retry = was.retries != 0;
  wire asked = was.state == CM_REQ_RCVD;   // the owner has not answered CONN_OPENED yet: CONN_CLOSED follows the answer
  wire owned = !asked && was.state != CM_DREQ_SENT;   // the owner has the connection and no CONN_CLOSED for it yet

  always_comb begin
    plan  = '0;
    plan.attr = CM_REP;
    plan.about = CM_MSG_OTHER;
    plan.timeout = was.timeout;
    plan.kind = CONN_CLOSED;
    becomes  = was;
    counts = '0;
    makes_stale = 1'b0;

    unique case (msg.attr)
      CM_REQ: begin
        counts.req_received = 1'b1;
        counts.duplicate_req = duplicate;
        plan.send  = 1'b1;
        plan.attr  = CM_REJ;
        plan.about = CM_MSG_REQ;
        if (duplicate) begin           // answered as before, if it was answered
          plan.load = was.state inside {CM_REP_SENT, CM_ESTABLISHED};
          plan.send = plan.load || (asked && was.mras != 0);
          plan.attr = asked ? CM_MRA : CM_REP;
        end else begin
          becomes = '0;
          becomes.state   = CM_REQ_RCVD;
          becomes.owed    = OWED_OPENED;
          becomes.mac = msg.mac;
          becomes.ip = msg.ip;
          becomes.own = msg.own;
          becomes.tid = msg.tid;
          becomes.ids = '{local_comm_id: new_comm_id, remote_comm_id: msg.ids.local_comm_id};
          becomes.remote_qpn = msg.qpn;
          becomes.starting_psn = new_psn;
          becomes.client = msg.client;
          becomes.by = verdict.by;
          becomes.pd = PASSIVE_PD[msg.client];
          becomes.access = PASSIVE_ACCESS[msg.client];
          becomes.path_mtu = msg.path_mtu;
          becomes.dscp = dscp.of_caller ? msg.dscp : dscp.roce;
          becomes.ack_timeout = msg.local_ack_timeout;
          becomes.retry_count = msg.retry_count;
          becomes.rnr_retry_count = msg.rnr_retry_count;
          becomes.responder_resources = cm_at_most(msg.initiator_depth, rd_limit_t'(RD_DEPTH));
          becomes.initiator_depth = cm_at_most(msg.responder_resources, rd_limit_t'(RD_DEPTH));
          becomes.selective_repeat = SELECTIVE_REPEAT && extensions && msg.selective_repeat;
          becomes.contexts = !extensions ? '0 : msg.contexts < PASSIVE_CONTEXTS[msg.client] ? msg.contexts : PASSIVE_CONTEXTS[msg.client];
          becomes.long_set_up = extensions && msg.long_set_up && msg.contexts != '0 && PASSIVE_LONG_SET_UP[msg.client];
          becomes.timeout = msg.timeout;
          becomes.retries = (msg.max_cm_retries < MAX_RETRIES) ? msg.max_cm_retries : MAX_RETRIES;
          plan.timeout = cm_half(msg.response_timeout);
          if (!acceptable) plan.reason = rej_reason_e'(msg.reason[7:0]);
          else if (verdict.why != ADM_NONE) begin   // before anything that it could change
            plan.reason = (verdict.why == ADM_CONNECTIONS) ? REJ_NO_RESOURCES : REJ_CONSUMER_DEFINED;
            becomes.why = verdict.why;
            counts.refused_no_token = verdict.why == ADM_NO_TOKEN;
            counts.refused_token = verdict.why inside {ADM_UNKNOWN, ADM_REVOKED, ADM_TIME_OVER};
            counts.refused_per_entry = verdict.why == ADM_CONNECTIONS;
          end
          else if (stale) begin
            plan.reason = REJ_STALE_CONN;
            makes_stale = 1'b1;
          end
          else if (per_peer || half_open || half_open_per_peer) begin
            plan.reason = REJ_NO_RESOURCES;
            counts.refused_per_peer = per_peer;
            counts.refused_half_open = half_open;
            counts.refused_half_open_per_peer = half_open_per_peer;
          end
          else if (!free) plan.reason = REJ_NO_QP;
          else begin
            plan.setup   = 1'b1;
            plan.send    = 1'b0;
            plan.save    = 1'b1;
            plan.tell    = 1'b1;
            plan.kind    = CONN_OPENED;
            plan.write   = 1'b1;
          end
        end
      end

      CM_REP: begin
        counts.rep_received = 1'b1;
        if (called) begin
          plan.send = 1'b1;
          plan.tell = 1'b1;
          plan.save = 1'b1;
          plan.write = 1'b1;
          becomes.mac = msg.mac;
          becomes.ids.remote_comm_id = msg.ids.local_comm_id;
          becomes.remote_qpn = msg.qpn;
          becomes.rnr_retry_count = msg.rnr_retry_count;
          becomes.responder_resources = cm_at_most(msg.initiator_depth, was.responder_resources);
          becomes.initiator_depth = cm_at_most(msg.responder_resources, was.initiator_depth);
          becomes.selective_repeat = was.selective_repeat && msg.selective_repeat;
          if (stale) begin         // the peer's QP has only one of the two connections (IBTA 12.9.8.3.1)
            makes_stale = 1'b1;
            plan.attr   = CM_REJ;
            plan.about  = CM_MSG_REP;
            plan.reason = REJ_STALE_CONN;
            plan.kind   = CONN_REFUSED;
            plan.why    = conn_reason_t'(REJ_STALE_CONN);
            becomes.state = CM_IDLE;
            becomes.owed  = OWED_REFUSED;
          end else begin
            plan.setup = 1'b1;
            plan.attr  = CM_RTU;
            plan.kind  = CONN_ESTABLISHED;
            becomes.state = CM_ESTABLISHED;
          end
        end else if (matched && was.active) begin   // retransmitted: the RTU was lost
          plan.attr = CM_RTU;
          plan.send = was.state == CM_ESTABLISHED;
          counts.drop_no_connection = !plan.send;
        end else begin                 // it answers no REQ of the device (IBTA 12.9.8.4)
          counts.drop_no_connection = 1'b1;
          plan.send   = 1'b1;
          plan.attr   = CM_REJ;
          plan.about  = CM_MSG_REP;
          plan.reason = REJ_INVALID_COMM_ID;
          becomes = '0;
          becomes.mac = msg.mac;
          becomes.ip  = msg.ip;
          becomes.own = msg.own;
          becomes.tid = msg.tid;
          becomes.ids = '{local_comm_id: msg.ids.remote_comm_id, remote_comm_id: msg.ids.local_comm_id};
        end
      end

      CM_RTU: begin
        counts.rtu_received = matched;
        counts.drop_no_connection = !matched || was.active || was.state == CM_DREQ_SENT;
        plan.write = matched && was.state == CM_REP_SENT;
        becomes.state = CM_ESTABLISHED;
      end

      CM_MRA: begin                // each MRA uses a retry, which bounds their number
        counts.mra_received = matched || called;
        plan.write = retry && (called && msg.about == CM_MSG_REQ
            || matched && was.state == CM_REP_SENT && msg.about == CM_MSG_REP);
        counts.drop_no_connection = !plan.write;
        plan.timeout = msg.timeout;
        becomes.retries = was.retries - 1'b1;
      end

      CM_REJ: begin
        counts.rej_received = matched || called;
        counts.drop_no_connection = !counts.rej_received;
        plan.write = counts.rej_received;
        plan.save  = called;
        plan.reset = matched && was.state != CM_DREQ_SENT;
        plan.tell  = called || matched && owned;
        plan.kind  = called ? CONN_REFUSED : CONN_CLOSED;
        // A CONN_REFUSED always has a reason, also if the peer gave none.
        plan.why   = msg.reason == '0 ? conn_reason_t'(REJ_CONSUMER_DEFINED) : msg.reason;
        becomes.state = CM_IDLE;
        if (called) becomes.owed = OWED_REFUSED;
        else if (owned) becomes.owed = OWED_CLOSED;
      end

      CM_DREQ: begin
        counts.dreq_received = 1'b1;
        plan.attr = CM_DREP;
        plan.send = 1'b1;
        if (!matched) begin      // closed before: the DREP was lost
          counts.drop_no_connection = 1'b1;
          becomes = '0;
          becomes.mac = msg.mac;
          becomes.ip = msg.ip;
          becomes.own = msg.own;
          becomes.ids = '{local_comm_id: msg.ids.remote_comm_id, remote_comm_id: msg.ids.local_comm_id};
        end else if (!right_qpn) begin
          counts.drop_malformed = 1'b1;
          plan.send = 1'b0;
        end else begin
          plan.write  = 1'b1;
          plan.reset  = was.state != CM_DREQ_SENT;
          plan.tell   = owned;
        end
        becomes.tid = msg.tid;
        if (matched) begin
          becomes.state = CM_IDLE;
          if (owned) becomes.owed = OWED_CLOSED;
        end
      end

      default: begin               // a DREP
        counts.drep_received = matched;
        counts.drop_no_connection = !matched || was.state != CM_DREQ_SENT;
        plan.write = matched && was.state == CM_DREQ_SENT;
        becomes.state = CM_IDLE;
      end
    endcase
  end
endmodule
