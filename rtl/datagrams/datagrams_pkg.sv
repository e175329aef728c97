// SPDX-License-Identifier: Apache-2.0

// UDP for kernels: the header that is before each datagram on the ports `rx` and `tx` of a kernel, what software sets for a socket, and what
// passes between the units of rtl/datagrams.
package datagrams_pkg;
  import packet_pkg::*;

  // A payload has at most so many bytes, each way: a page.
  localparam int unsigned DATAGRAM_BYTES = 4096;
  typedef logic [12:0] datagram_length_t;

  // What a packet is; other kinds may share the ports later.
  localparam logic [7:0] KIND_DATAGRAM = 8'd1;

  // The header, in network order. It has 64 bytes, so that the payload begins with a beat at every width, and what a kernel needs in order
  // to deal with a packet is in its first 8 bytes, the first beat at every width. Reserved bytes are 0; in a packet that is sent they are
  // ignored.
  typedef struct packed {
    logic [7:0]   kind;
    logic [7:0]   reserved_0;
    logic [15:0]  length;       // bytes of the payload
    logic [15:0]  peer_port;
    logic [15:0]  own_port;     // ignored in a packet that is sent, as `own` is
    logic [15:0]  number;       // of a received datagram, modulo 2^16; to send: of the one that is answered, if only senders are answered
    logic [47:0]  reserved_1;
    ip_addr_t     peer;         // an IPv4 address is mapped (RFC 4291, 2.5.5.2)
    ip_addr_t     own;
    logic [127:0] reserved_2;
  } datagram_t;
  localparam int unsigned HEADER_BYTES = $bits(datagram_t) / 8;  // 64

  // The header as it is on a stream: byte 0 lowest. Not by a streaming operator, which Verilator carries out bit by bit.
  typedef logic [HEADER_BYTES-1:0][7:0] header_bytes_t;
  function automatic header_bytes_t bytes_of(datagram_t header);
    header_bytes_t network = header_bytes_t'(header);
    header_bytes_t bytes_;
    for (int unsigned i = 0; i < HEADER_BYTES; i++) bytes_[i] = network[HEADER_BYTES-1-i];
    return bytes_;
  endfunction
  function automatic datagram_t header_of(header_bytes_t bytes_);
    return datagram_t'(bytes_of(datagram_t'(bytes_)));
  endfunction

  // To whom a kernel may send.
  typedef enum logic [1:0] {
    TO_NOBODY,
    TO_SENDERS,     // an answer to each of the last ANSWERS datagrams that it has got, at most three times as long
    TO_NETWORK      // any host whose address is that of `network` in the bits of `mask`
  } destinations_e;

  typedef struct packed {
    logic          enable;
    destinations_e to;
    logic [15:0]   port;
    ipv4_addr_t    network;
    ipv4_addr_t    mask;
    logic [23:0]   pace;        // time that each byte sent takes, in 1/256 cycle; 0: no limit
  } datagram_settings_t;
  localparam logic [23:0] PACE_RESET = 24'd6400;   // as socket.rdl says

  // ---- received ----
  localparam int unsigned WAITING = 16;   // datagrams of a socket that wait for its kernel
  localparam int unsigned ANSWERS = 32;   // the last ones, which can be answered
  typedef logic [15:0] datagram_number_t;

  typedef struct packed {
    ipv4_addr_t       ip;
    logic [15:0]      port;
    mac_t             mac;      // an answer goes there: nothing is resolved
    datagram_length_t length;
  } sender_t;

  // ---- to send ----
  typedef struct packed {
    ipv4_addr_t       ip;
    logic [15:0]      port;
    logic [15:0]      own_port;
    logic             known;    // `mac` is
    mac_t             mac;
    datagram_length_t length;
  } datagram_tx_t;

  // Events of a socket, one pulse each. The places of the counters (datagram_counters).
  typedef struct packed {
    logic received;             // into the store of the socket
    logic drop_room;            // no room there, or the kernel is decoupled
    logic drop_length;          // longer than DATAGRAM_BYTES
    logic discarded;            // the kernel was decoupled before it had taken it
    logic sent;
    logic malformed;            // sent by the kernel: no datagram, or not as long as it says
    logic refused;              // sent by the kernel to whom it may not send
    logic unresolved;           // no MAC address was found for it
  } datagram_events_t;
  localparam int unsigned COUNTS = $bits(datagram_events_t);
endpackage
