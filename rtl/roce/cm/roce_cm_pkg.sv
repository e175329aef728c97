// SPDX-License-Identifier: Apache-2.0

// Types of the connection manager: communication management datagrams (IBTA 12.6, names as there and in the Linux kernel's
// cm_msgs), the header of the RDMA IP CM service (IBTA annex A11), and what passes between the units of roce_cm.
package roce_cm_pkg;
  import packet_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;

  // ---- datagrams ----
  localparam int unsigned MAD_BYTES = 256;

  typedef logic [31:0] comm_id_t;
  typedef logic [63:0] tid_t;

  // Common MAD header (IBTA 13.4.3).
  typedef struct packed {
    logic [7:0]  base_version;
    logic [7:0]  mgmt_class;
    logic [7:0]  class_version;
    logic [7:0]  method;
    logic [15:0] status;
    logic [15:0] class_specific;
    tid_t        tid;
    logic [15:0] attr_id;
    logic [15:0] reserved;
    logic [31:0] attr_mod;
  } mad_hdr_t;
  localparam int unsigned MAD_HDR_BYTES = $bits(mad_hdr_t) / 8;         // 24
  localparam int unsigned MAD_DATA_BYTES = MAD_BYTES - MAD_HDR_BYTES;   // 232

  localparam logic [7:0] MAD_BASE_VERSION = 8'd1;
  localparam logic [7:0] MAD_CLASS_CM = 8'h07;
  localparam logic [7:0] CM_CLASS_VERSION = 8'd2;
  localparam logic [7:0] MAD_METHOD_SEND = 8'h03;

  // Attributes of the class (IBTA 16.7.2): the lower 3 bits of an attribute id of 0x0010 to 0x0016.
  typedef enum logic [2:0] {
    CM_REQ  = 3'd0,
    CM_MRA  = 3'd1,
    CM_REJ  = 3'd2,
    CM_REP  = 3'd3,
    CM_RTU  = 3'd4,
    CM_DREQ = 3'd5,
    CM_DREP = 3'd6
  } cm_attr_e;
  localparam logic [12:0] CM_ATTR_PREFIX = 13'h0002;

  // The message to which a REJ or MRA refers (IBTA 12.6.6, 12.6.7).
  typedef enum logic [1:0] {
    CM_MSG_REQ   = 2'd0,
    CM_MSG_REP   = 2'd1,
    CM_MSG_OTHER = 2'd2
  } cm_msg_e;

  // Reasons of a REJ (IBTA 12.6.7.2; names of Linux enum ib_cm_rej_reason). 16 bits on the wire.
  typedef enum logic [7:0] {
    REJ_NONE                        = 8'd0,
    REJ_NO_QP                       = 8'd1,
    REJ_NO_EEC                      = 8'd2,
    REJ_NO_RESOURCES                = 8'd3,
    REJ_TIMEOUT                     = 8'd4,
    REJ_UNSUPPORTED                 = 8'd5,
    REJ_INVALID_COMM_ID             = 8'd6,
    REJ_INVALID_COMM_INSTANCE       = 8'd7,
    REJ_INVALID_SERVICE_ID          = 8'd8,
    REJ_INVALID_TRANSPORT_TYPE      = 8'd9,
    REJ_STALE_CONN                  = 8'd10,
    REJ_RDC_NOT_EXIST               = 8'd11,
    REJ_INVALID_GID                 = 8'd12,
    REJ_INVALID_LID                 = 8'd13,
    REJ_INVALID_SL                  = 8'd14,
    REJ_INVALID_TRAFFIC_CLASS       = 8'd15,
    REJ_INVALID_HOP_LIMIT           = 8'd16,
    REJ_INVALID_PACKET_RATE         = 8'd17,
    REJ_INVALID_ALT_GID             = 8'd18,
    REJ_INVALID_ALT_LID             = 8'd19,
    REJ_INVALID_ALT_SL              = 8'd20,
    REJ_INVALID_ALT_TRAFFIC_CLASS   = 8'd21,
    REJ_INVALID_ALT_HOP_LIMIT       = 8'd22,
    REJ_INVALID_ALT_PACKET_RATE     = 8'd23,
    REJ_PORT_CM_REDIRECT            = 8'd24,
    REJ_PORT_REDIRECT               = 8'd25,
    REJ_INVALID_MTU                 = 8'd26,
    REJ_INSUFFICIENT_RESP_RESOURCES = 8'd27,
    REJ_CONSUMER_DEFINED            = 8'd28,
    REJ_INVALID_RNR_RETRY           = 8'd29,
    REJ_DUPLICATE_LOCAL_COMM_ID     = 8'd30,
    REJ_INVALID_CLASS_VERSION       = 8'd31,
    REJ_INVALID_FLOW_LABEL          = 8'd32,
    REJ_INVALID_ALT_FLOW_LABEL      = 8'd33
  } rej_reason_e;

  // Transport service types (IBTA 12.6.5).
  localparam logic [1:0] TRANSPORT_RC = 2'd0;

  // Service ID of the RDMA IP CM service: 0x00000000, port space, port (IBTA A11.2.2; Linux rdma_ps).
  typedef struct packed {
    logic [31:0] prefix;
    logic [15:0] port_space;
    logic [15:0] port;
  } ip_service_id_t;
  localparam logic [15:0] RDMA_PS_TCP = 16'h0106;

  // First part of the private data of a REQ of that service (IBTA A11.3; Linux struct cma_hdr).
  typedef struct packed {
    logic [7:0]   cma_version;
    logic [3:0]   ip_version;
    logic [3:0]   reserved;
    logic [15:0]  port;       // the caller's
    logic [127:0] src_addr;   // an IPv4 address in the last 4 bytes, behind zeros
    logic [127:0] dst_addr;
  } cma_hdr_t;

  function automatic logic [3:0] cma_version_of(own_address_e own);
    return own == OWN_IPV4 ? 4'd4 : 4'd6;
  endfunction

  // An address in this header.
  function automatic logic [127:0] cma_address(own_address_e own, ip_addr_t ip);
    return own == OWN_IPV4 ? 128'(ipv4_of(ip)) : ip;
  endfunction

  // Last 8 bytes of the private data of a REQ or REP between endpoints with extensions of the standard
  // (docs/reference/extensions.md).
  typedef struct packed {
    logic [31:0] magic;
    logic [7:0]  version;
    logic [1:0]  reserved0;
    logic        token;              // REQ: the last 16 bytes before this record are a token (docs/reference/admission.md)
    logic [1:0]  unknown;
    logic        long_set_up;        // docs/reference/calls.md, as is:
    logic        contexts;
    logic        selective_repeat;
    logic [7:0]  context_count;      // REQ: asked for; REP: agreed
    logic [7:0]  reserved1;
  } extensions_t;
  localparam logic [31:0] EXTENSIONS_MAGIC = 32'h4e41_434c;   // "NACL"
  localparam logic [7:0]  EXTENSIONS_VERSION = 8'd1;

  // First 8 bytes of the private data of a REJ or DREQ by which admission says why.
  typedef struct packed {
    logic [31:0] magic;              // as of extensions_t
    logic [7:0]  version;
    logic [7:0]  why;                // admission_why_e
    logic [15:0] reserved;
  } admission_note_t;

  function automatic admission_note_t admission_note(admission_why_e why);
    return '{magic: EXTENSIONS_MAGIC, version: EXTENSIONS_VERSION, why: 8'(why), reserved: '0};
  endfunction

  // REQ (IBTA 12.6.5).
  typedef struct packed {
    comm_id_t       local_comm_id;
    logic [31:0]    reserved0;
    ip_service_id_t service_id;
    logic [63:0]    local_ca_guid;
    logic [31:0]    reserved1;
    logic [31:0]    local_qkey;
    qpn_t           local_qpn;
    logic [7:0]     responder_resources;
    logic [23:0]    local_eecn;
    logic [7:0]     initiator_depth;
    logic [23:0]    remote_eecn;
    logic [4:0]     remote_cm_response_timeout;
    logic [1:0]     transport_service_type;
    logic           end_to_end_flow_control;
    psn_t           starting_psn;
    logic [4:0]     local_cm_response_timeout;
    logic [2:0]     retry_count;
    logic [15:0]    partition_key;
    logic [3:0]     path_packet_payload_mtu;
    logic           rdc_exists;
    logic [2:0]     rnr_retry_count;
    logic [3:0]     max_cm_retries;
    logic           srq;
    logic [2:0]     extended_transport_type;
    logic [15:0]    primary_local_port_lid;
    logic [15:0]    primary_remote_port_lid;
    logic [127:0]   primary_local_port_gid;
    logic [127:0]   primary_remote_port_gid;
    logic [19:0]    primary_flow_label;
    logic [5:0]     reserved2;
    logic [5:0]     primary_packet_rate;
    logic [7:0]     primary_traffic_class;
    logic [7:0]     primary_hop_limit;
    logic [3:0]     primary_sl;
    logic           primary_subnet_local;
    logic [2:0]     reserved3;
    logic [4:0]     primary_local_ack_timeout;
    logic [2:0]     reserved4;
    logic [351:0]   alternate_path;
    cma_hdr_t       cma;
    private_t       private_data;      // the application's part
    extensions_t    extensions;
  } cm_req_t;

  // The first fields of every other message. The names are the sender's view: its own id first.
  typedef struct packed {
    comm_id_t local_comm_id;
    comm_id_t remote_comm_id;
  } cm_ids_t;

  // The other messages, as far as they are used; the rest is private data, or zero.
  typedef struct packed {          // IBTA 12.6.6
    cm_ids_t    ids;
    cm_msg_e    message_mraed;
    logic [5:0] reserved0;
    logic [4:0] service_timeout;
    logic [2:0] reserved1;
  } cm_mra_t;

  typedef struct packed {          // IBTA 12.6.7
    cm_ids_t      ids;
    cm_msg_e      message_rejected;
    logic [5:0]   reserved0;
    logic [6:0]   reject_info_length;
    logic         reserved1;
    conn_reason_t reason;            // rej_reason_e, or vendor specific
    logic [63:0]  info;              // REJ_INVALID_MTU: the largest path MTU, first byte; REJ_TIMEOUT of a REQ: the sender's GUID
    logic [511:0] more_info;
    private_t     private_data;      // its beginning
  } cm_rej_t;

  typedef struct packed {          // IBTA 12.6.8
    cm_ids_t     ids;
    logic [31:0] local_qkey;
    qpn_t        local_qpn;
    logic [7:0]  reserved0;
    logic [23:0] local_eecn;
    logic [7:0]  reserved1;
    psn_t        starting_psn;
    logic [7:0]  reserved2;
    logic [7:0]  responder_resources;
    logic [7:0]  initiator_depth;
    logic [4:0]  target_ack_delay;
    logic [1:0]  failover_accepted;
    logic        end_to_end_flow_control;
    logic [2:0]  rnr_retry_count;
    logic        srq;
    logic [3:0]  reserved3;
    logic [63:0] local_ca_guid;
    private_t    private_data;       // the application's part
    logic [1119:0] reserved4;
    extensions_t extensions;
  } cm_rep_t;

  typedef struct packed {          // IBTA 12.6.10
    cm_ids_t         ids;
    qpn_t            remote_qpn;   // the receiver's
    logic [7:0]      reserved0;
    admission_note_t note;         // private data: zero unless admission has ended the connection
  } cm_dreq_t;

  // A whole datagram as received: its data is cast to one of the structs above, which take its upper bits.
  typedef struct packed {
    mad_hdr_t                    hdr;
    logic [MAD_DATA_BYTES*8-1:0] data;
  } cm_mad_t;

  // ---- between the units of roce_cm ----

  // Times in the datagrams are 4.096 us * 2^exponent (IBTA 12.7.4). Longer ones are limited to this: 17 s.
  typedef logic [4:0] cm_timeout_t;
  localparam cm_timeout_t CM_TIMEOUT_MAX = 5'd22;

  // The MAC address of a called peer is queried again after the first of these times, then after twice that, and so on up to the last: 0.27
  // s in all, with three requests on the network (see arp).
  localparam cm_timeout_t RESOLVE_FIRST = 5'd2;
  localparam cm_timeout_t RESOLVE_LAST = 5'd15;

  function automatic cm_timeout_t cm_timeout(logic [4:0] exponent);
    return (exponent > CM_TIMEOUT_MAX) ? CM_TIMEOUT_MAX : exponent;
  endfunction

  // Half of the time.
  function automatic cm_timeout_t cm_half(cm_timeout_t timeout);
    return (timeout == 0) ? '0 : timeout - 1'b1;
  endfunction

  // Number of READs and atomics outstanding, including the maximum of 16. The units count them modulo a power of two.
  typedef logic [4:0] rd_limit_t;

  // Limits a count to what the device supports.
  function automatic rd_limit_t cm_at_most(logic [7:0] count, rd_limit_t limit);
    return (count > 8'(limit)) ? limit : rd_limit_t'(count);
  endfunction

  // The largest number of contexts that a connection can have, and that is at most `count`.
  function automatic contexts_t cm_contexts(logic [7:0] count);
    if (count >= 8'd4) return contexts_t'(4);
    if (count >= 8'd2) return contexts_t'(2);
    return contexts_t'(count);
  endfunction

  // A well-formed message, reduced to the fields in use. Fields that its kind does not have are undefined.
  typedef struct packed {
    cm_attr_e     attr;
    mac_t         mac;               // source MAC address
    ip_addr_t     ip;
    own_address_e own;               // the device's address that it was sent to
    tid_t         tid;
    cm_ids_t      ids;               // as sent: local is the peer's. A REQ has no remote_comm_id
    qpn_t         qpn;               // REQ, REP: the peer's; DREQ: the device's
    cm_timeout_t  timeout;           // REQ: for the peer's answer to the REP; MRA: the peer's service timeout
    cm_msg_e      about;             // MRA: the message that it acknowledges
    conn_reason_t reason;            // REJ; REQ: why the device rejects it in any state, REJ_NONE if it does not
    // REQ, and those of these fields that a REP has
    psn_t         starting_psn;
    logic [2:0]   rnr_retry_count;
    logic [7:0]   responder_resources;
    logic [7:0]   initiator_depth;
    logic         selective_repeat;  // offered, or accepted
    contexts_t    contexts;          // REQ: asked for, rounded down to a number that a connection can have
    logic         long_set_up;       // REQ: asked for
    private_t     private_data;      // and of a REJ
    // REQ alone
    logic         has_token;         // the last 16 bytes of its private data are a token
    client_t      client;            // that listens on the port
    cm_timeout_t  response_timeout;  // for the device's answer
    mtu_code_t    path_mtu;
    logic [4:0]   local_ack_timeout;
    logic [2:0]   retry_count;
    logic [3:0]   max_cm_retries;
    logic [5:0]   dscp;
  } cm_msg_t;

  // State of a connection (IBTA 12.9.7; names of Linux enum ib_cm_state).
  typedef enum logic [2:0] {
    CM_IDLE,
    CM_RESOLVING,      // active side: the peer's MAC address is not known yet
    CM_REQ_SENT,       // active side
    CM_REQ_RCVD,       // passive side: the owner has not answered CONN_OPENED
    CM_REP_SENT,       // passive side
    CM_ESTABLISHED,
    CM_DREQ_SENT
  } cm_state_e;

  // A timer runs in these states, so that the connection leaves them.
  function automatic logic cm_timed(cm_state_e state);
    return state inside {CM_RESOLVING, CM_REQ_SENT, CM_REQ_RCVD, CM_REP_SENT, CM_DREQ_SENT};
  endfunction

  // A caller has this connection, or is to have it.
  function automatic logic cm_callers(cm_state_e state);
    return state inside {CM_REQ_RCVD, CM_REP_SENT, CM_ESTABLISHED};
  endfunction

  // The source address has not been confirmed by a second message.
  function automatic logic cm_half_open(cm_state_e state);
    return state inside {CM_REQ_RCVD, CM_REP_SENT};
  endfunction

  // The peer has, or had, this connection too.
  function automatic logic cm_has_peer(cm_state_e state);
    return state inside {CM_REQ_RCVD, CM_REP_SENT, CM_ESTABLISHED, CM_DREQ_SENT};
  endfunction

  // What keeps a connection occupied although it is idle.
  typedef enum logic [1:0] {
    OWED_NOTHING,
    OWED_OPENED,       // the owner's answer to CONN_OPENED
    OWED_CLOSED,       // the owner's answer to CONN_CLOSED
    OWED_REFUSED       // CONN_REFUSED has not been delivered yet
  } cm_owed_e;

  // The record of a connection: what a retransmitted message, the queue pair, the owner and the disconnection need. Its private data are
  // stored separately.
  typedef struct packed {
    cm_state_e   state;
    cm_owed_e    owed;
    logic        active;            // the device has sent the REQ
    logic [1:0]  mras;              // sent for the REQ
    mac_t        mac;               // the peer's, or its router's
    ip_addr_t    ip;
    own_address_e own;              // the device's address: what the peer has called, or that of the called peer's scope
    logic [15:0] port;              // active: the peer's
    cm_ids_t     ids;               // local is the device's
    tid_t        tid;
    qpn_t        remote_qpn;
    psn_t        starting_psn;      // the device's: the first PSN of the peer's requests
    client_t     client;
    logic [15:0] tag;               // active: the owner's
    pd_t         pd;
    access_t     access;
    mtu_code_t   path_mtu;
    logic [5:0]  dscp;              // of its packets, those of connection management included
    logic [4:0]  ack_timeout;
    logic [2:0]  retry_count;
    logic [2:0]  rnr_retry_count;   // the QP's; in CM_REQ_SENT the value for the peer
    rd_limit_t   responder_resources;  // READs and atomics of the peer that may be outstanding
    rd_limit_t   initiator_depth;      // READs and atomics of the device
    logic        selective_repeat;  // agreed; in CM_REQ_SENT offered
    contexts_t   contexts;          // agreed
    logic        long_set_up;       // agreed
    admitted_t   by;                // the entry by which its caller was admitted
    admission_why_e why;            // why admission has ended or refused it
    cm_timeout_t timeout;           // for the answer to the device's REQ, REP or DREQ; until the next ARP query
    logic [3:0]  retries;           // left
    logic [47:0] deadline;          // in device cycles, in the states of cm_timed
  } cm_conn_t;

  // The connection's index is in use.
  function automatic logic cm_occupied(cm_conn_t conn);
    return conn.state != CM_IDLE || conn.owed != OWED_NOTHING;
  endfunction

  // Events of a connection.
  typedef enum logic [3:0] {
    OP_MESSAGE,
    OP_CONNECT,      // from a client
    OP_CLOSE,        // the QP failed, or its owner closes it
    OP_STALE,        // the peer no longer has it
    OP_USED,         // the QP has received a packet: the peer has the REP
    OP_ANSWER,       // from the owner
    OP_TELL,         // deliver an event to the owner
    OP_WALK,         // its timer is checked
    OP_END           // found when its timer was to be checked: the entry that admitted it has ended
  } cm_op_e;

  // The actions that follow, in this order; with `setup` the QP command precedes the message.
  typedef struct packed {
    logic         load;      // read its private data
    logic         setup;     // QP_SETUP
    logic         send;
    cm_attr_e     attr;
    cm_msg_e      about;     // REJ, MRA
    rej_reason_e  reason;    // REJ
    logic         reset;     // QP_RESET
    logic         save;      // write the event's private data
    logic         tell;      // queue an event for the owner
    conn_event_e  kind;
    conn_reason_t why;
    logic         write;     // write the connection
    cm_timeout_t  timeout;   // of the resulting state
  } cm_plan_t;

  // A message to send.
  typedef struct packed {
    cm_attr_e    attr;
    cm_msg_e     about;
    rej_reason_e reason;
    qpn_t        qpn;        // the device's
    cm_conn_t    conn;
    private_t    private_data;
  } cm_send_t;
endpackage
