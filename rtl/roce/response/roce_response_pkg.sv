// SPDX-License-Identifier: Apache-2.0

// Types that the parts of roce_response share: what a QP's queue and tables hold, and what passes between the parts.
package roce_response_pkg;
  import memory_pkg::*;
  import roce_wire_pkg::*;

  // Largest RD_DEPTH: READs and atomics of a peer at once. A QP's queue has twice the room, for as many duplicates.
  localparam int unsigned RD_DEPTH_MAX = 16;
  typedef logic [$clog2(4*RD_DEPTH_MAX)-1:0] rsp_count_t;   // counts entries of a queue; its low bits are the place in the ring
  typedef logic [$clog2(2*RD_DEPTH_MAX)-1:0] rsp_atomic_t;  // counts atomics of a QP; its low bits are the place in the cache

  // ---- tables, one word a QP, one writer each ----

  // roce_response_intake: what came.
  typedef struct packed {
    rsp_count_t  count;     // entries so far
    rsp_atomic_t atomics;   // of them atomics that are not duplicates
    logic       full;      // there were RD_DEPTH of those or more: all of the cache is in use
  } rsp_tail_t;

  // roce_response_send: what was answered.
  typedef struct packed {
    rsp_count_t  count;     // entries answered
    logic [7:0] done;      // of them requests that are not duplicates, modulo 256
    logic       resumes;   // the oldest entry goes on where rsp_progress_t says
  } rsp_head_t;

  // ---- rings ----
  typedef struct packed {
    logic        atomic;
    logic        duplicate;
    psn_t        psn;
    logic [23:0] msn;
    mtu_code_t   path_mtu;
    addr_t       addr;
    target_t     target;   // of a READ of one byte or more; else 0
    logic [31:0] rkey;     // of a READ of one byte or more
    logic [31:0] length;   // of a READ; an atomic has instead its place in the cache, see rsp_place()
  } rsp_entry_t;

  // What an atomic is to do.
  typedef struct packed {
    psn_t        psn;
    addr_t       addr;
    logic [31:0] rkey;
    logic        compare_swap;   // else fetch and add
    logic [63:0] swap_add;
    logic [63:0] compare;
  } rsp_operation_t;

  typedef struct packed {
    rsp_atomic_t atomics;   // its own count; a duplicate's: that of the next atomic, those before are in the cache
    logic       full;
  } rsp_place_t;

  function automatic rsp_place_t rsp_place(rsp_entry_t entry);
    return rsp_place_t'(entry.length[$bits(rsp_place_t)-1:0]);
  endfunction

  // Rest of a READ that stopped on the way.
  typedef struct packed {
    psn_t        psn;
    addr_t       addr;
    logic [31:0] left;     // bytes
  } rsp_progress_t;

  // What an atomic found.
  typedef struct packed {
    psn_t        psn;
    logic        error;    // memory refused it, or
    logic        denied;   // its key was not valid any more
    logic [63:0] original;
  } rsp_result_t;

  // What roce_response_atomics has done of a QP: this many atomics, and it does no more after one that failed.
  typedef struct packed {
    logic        stopped;
    rsp_atomic_t count;
  } rsp_executed_t;

  // ---- between the parts ----

  // One atomic for roce_atomic, or none: `denied` is only passed on.
  typedef struct packed {
    logic           denied;
    rsp_operation_t operation;
  } atomic_op_t;

  // What cannot be answered.
  typedef struct packed {
    qpn_t        qpn;
    psn_t        psn;
    logic        denied;   // its key is not valid any more; else memory refused
  } rsp_fault_t;

  // The newest acknowledgement of a QP.
  typedef struct packed {
    psn_t  psn;
    aeth_t aeth;
  } rsp_ack_t;
endpackage
