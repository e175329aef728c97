// SPDX-License-Identifier: Apache-2.0

// What the event log keeps (docs/reference/event-log.md). Who can cause a kind of entry decides which ring it is in, its upper two bits, so
// that nobody can push out what others have caused.
package event_log_pkg;
  localparam int unsigned LOG_RINGS = 4;
  localparam int unsigned LOG_RING_ENTRIES = 32;

  typedef enum logic [1:0] {
    RING_DEVICE      = 2'd0,   // the operator, who is authorised, and time
    RING_FAULTS      = 2'd1,   // kernels, memory, and the host of the slot
    RING_CONNECTIONS = 2'd2,   // callers that were accepted
    RING_STRANGERS   = 2'd3    // anybody on the network
  } log_ring_e;

  typedef logic [5:0] log_number_t;
  typedef struct packed {
    log_ring_e   ring;
    log_number_t number;
  } log_kind_t;

  // Details `a` and `b` in brackets; a peer is {cause or entry, QPN}.
  localparam log_kind_t LOG_ENABLED          = {RING_DEVICE, 6'd0};       // [IPv4 address]
  localparam log_kind_t LOG_DISABLED         = {RING_DEVICE, 6'd1};
  localparam log_kind_t LOG_ENTRY_ADDED      = {RING_DEVICE, 6'd2};       // [entry of admission]
  localparam log_kind_t LOG_ENTRY_REVOKED    = {RING_DEVICE, 6'd3};       // [likewise]
  localparam log_kind_t LOG_ENTRY_TIME_OVER  = {RING_DEVICE, 6'd4};       // [likewise]
  localparam log_kind_t LOG_ENTRY_FREED      = {RING_DEVICE, 6'd5};       // [likewise]
  localparam log_kind_t LOG_LOGIN            = {RING_DEVICE, 6'd6};       // [IPv4 address]
  localparam log_kind_t LOG_SESSION_EXPIRED  = {RING_DEVICE, 6'd7};
  localparam log_kind_t LOG_KERNEL_REPLACED  = {RING_DEVICE, 6'd8};       // [socket, image]
  localparam log_kind_t LOG_KERNEL_TIMEOUT   = {RING_FAULTS, 6'd0};       // [socket]
  localparam log_kind_t LOG_KERNEL_MEMORY    = {RING_FAULTS, 6'd1};       // [socket]
  localparam log_kind_t LOG_MEMORY_ERROR     = {RING_FAULTS, 6'd2};       // [address of the counter, its value]
  localparam log_kind_t LOG_COPY_STOPPED   = {RING_FAULTS, 6'd3};       // [copy_pkg::stop_e, descriptors that had left the ring]
  localparam log_kind_t LOG_STREAM_CUT       = {RING_FAULTS, 6'd4};       // [stream_pkg::cut_e, 1: in the direction of transmit]
  localparam log_kind_t LOG_OPENED           = {RING_CONNECTIONS, 6'd0};  // [IPv4 address, log_peer_t: the entry that admitted it]
  localparam log_kind_t LOG_CLOSED           = {RING_CONNECTIONS, 6'd1};  // [IPv4 address, log_peer_t: a log_closed_e]
  localparam log_kind_t LOG_CONNECT_FAILED   = {RING_CONNECTIONS, 6'd2};  // [IPv4 address, reason of the peer's REJ]
  localparam log_kind_t LOG_QP_FAILED        = {RING_CONNECTIONS, 6'd3};  // [status of its work requests, QPN]
  localparam log_kind_t LOG_REFUSED          = {RING_STRANGERS, 6'd0};    // [IPv4 address, log_refusal_t]
  localparam log_kind_t LOG_LOGIN_WRONG      = {RING_STRANGERS, 6'd1};    // [IPv4 address]
  localparam log_kind_t LOG_LOGIN_REFUSED    = {RING_STRANGERS, 6'd2};    // [IPv4 address]
  localparam log_kind_t LOG_DROPPED          = {RING_STRANGERS, 6'd3};    // [address of the counter, its value]
  localparam log_kind_t LOG_DUPLICATE        = {RING_STRANGERS, 6'd4};    // [IPv6 prefix that was probed for, bits 127 to 96, 95 to 64]

  typedef enum logic [7:0] {
    CLOSED_BY_PEER      = 8'd0,
    CLOSED_TIMEOUT      = 8'd1,
    CLOSED_BY_DEVICE    = 8'd2,   // its owner, or its queue pair failed
    CLOSED_STALE        = 8'd3,   // the peer no longer has it
    CLOSED_REVOKED      = 8'd4,   // the entry that admitted it
    CLOSED_TIME_OVER    = 8'd5    // of that entry
  } log_closed_e;

  typedef struct packed {
    logic [7:0]  about;
    logic [23:0] qpn;
  } log_peer_t;

  localparam logic [7:0] LOG_NO_ENTRY = 8'hff;   // everybody was admitted, or the device has opened it

  typedef struct packed {
    logic [15:0] reason;   // of the REJ
    logic [15:0] why;      // admission_why_e
  } log_refusal_t;

  typedef struct packed {
    log_kind_t   kind;
    logic [31:0] a;
    logic [31:0] b;
  } log_item_t;

  // An event: `item` in the cycle of `valid`.
  typedef struct packed {
    logic      valid;
    log_item_t item;
  } log_event_t;

  // An entry, as its four words are read: the first is the highest.
  typedef struct packed {
    logic [31:0] time_lo;
    log_kind_t   kind;
    logic [7:0]  reserved;
    logic [15:0] time_hi;
    logic [31:0] a;
    logic [31:0] b;
  } log_entry_t;
endpackage
