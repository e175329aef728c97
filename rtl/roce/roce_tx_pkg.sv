// SPDX-License-Identifier: Apache-2.0

// Types and sizes of roce_tx and its units.
package roce_tx_pkg;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;

  localparam int unsigned TX_AHEAD = 32;        // packets queued per source; packets whose payload read is outstanding
  localparam int unsigned TX_AHEAD_UNITS = 64;  // payload of a source inside, in units of 256 bytes: covers the latency of memory
  localparam int unsigned TX_PACKET_UNITS = 16; // the largest packet
  localparam int unsigned TX_ACKS = 32;         // acknowledgements queued
  localparam int unsigned TX_CHOSEN = 8;        // frames selected before their payload has passed: an acknowledgement waits behind them

  typedef logic [$clog2(TX_AHEAD):0]  tx_count_t;
  typedef logic [$clog2(TX_CHOSEN):0] tx_chosen_t;
  typedef logic [4:0] tx_units_t;               // of a packet: at most TX_PACKET_UNITS

  function automatic tx_units_t tx_units(logic empty, logic [12:0] length);
    return empty ? '0 : tx_units_t'(length[12:8]) + tx_units_t'(|length[7:0]);
  endfunction

  // A packet in the queue of its source.
  typedef struct packed {
    qp_index_t   index;
    logic [7:0]  opcode;
    psn_t        psn;
    logic        se;
    logic        ackreq;
    ext_bytes_t  ext;
    logic [12:0] length;
    logic        empty;
    logic        again;
    logic        internal_;
  } tx_queued_t;

  // A frame whose payload has not passed.
  typedef struct packed {
    logic      source;
    tx_units_t units;
    qp_index_t index;
    psn_t      psn;
  } tx_owner_t;

  typedef enum logic [1:0] {
    FROM_RESPONSES = 2'd0,
    FROM_REQUESTS  = 2'd1,
    FROM_ACKS      = 2'd2
  } tx_from_e;
  localparam int unsigned TX_FROM = 3;

  // The contents of a frame's headers, except the addresses.
  typedef struct packed {
    tx_from_e    from;
    qp_index_t   index;
    logic [7:0]  opcode;
    logic        becn;
    psn_t        psn;
    logic        se;
    logic        ackreq;
    ext_bytes_t  ext;
    logic [12:0] length;
    logic        again;
  } tx_job_t;
endpackage
