// SPDX-License-Identifier: Apache-2.0

// The trace of frames (docs/reference/trace.md): which frames it takes, and what it keeps of each.
package trace_pkg;
  import packet_pkg::*;

  // What a frame must have to match; a term that is off is no condition.
  typedef struct packed {
    logic ethertype;
    logic roce;        // UDP to port 4791
    logic opcode;      // of the BTH
    logic peer;        // IPv4 address: source of what is received, destination of what is sent
    logic qpn;         // destination queue pair of the BTH
  } trace_terms_t;

  typedef struct packed {
    trace_terms_t terms;
    logic [15:0]  ethertype;
    logic [7:0]   opcode;
    ipv4_addr_t   peer;
    logic [23:0]  qpn;
  } trace_match_t;

  typedef enum logic [1:0] {
    TRACE_NO_TRIGGER = 2'd0,   // it records from its start on
    TRACE_ON_MATCH   = 2'd1,   // a frame that matches
    TRACE_ON_DROP    = 2'd2    // an event that counts as a drop
  } trace_trigger_e;

  typedef enum logic [1:0] {
    TRACE_STOPPED   = 2'd0,
    TRACE_WAITS     = 2'd1,    // for the trigger; it records meanwhile
    TRACE_RECORDS   = 2'd2
  } trace_state_e;

  // How it records.
  typedef struct packed {
    logic         ring;        // new frames take the place of the oldest; else they are missed when there is no room
    logic         matching;    // only frames that match
    logic [11:0]  snap_rows;   // of a frame that are kept
  } trace_mode_t;

  // What is kept of a frame beside its bytes: four words, the lowest first.
  typedef struct packed {
    logic         bad;         // the MAC said so
    logic [15:0]  length;      // bytes on the wire, without FCS; 0xffff: at least
    logic [15:0]  row;         // of its first byte, modulo 2^16
    logic [47:0]  ticks;       // of its first beat
  } trace_entry_t;
endpackage
