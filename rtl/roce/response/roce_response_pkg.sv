// SPDX-License-Identifier: Apache-2.0

// Types that the parts of roce_response share: queue entries, table words, and what passes between the parts.
package roce_response_pkg;
  import memory_pkg::*;
  import roce_wire_pkg::*;

  // Largest RD_DEPTH: READs and atomics outstanding per peer. A QP's queue has twice that many entries, for as many duplicates.
  localparam int unsigned RD_DEPTH_MAX = 16;
  typedef logic [$clog2(4*RD_DEPTH_MAX)-1:0] rsp_count_t;   // counts entries of a queue; its low bits are the place in the ring
  typedef logic [$clog2(2*RD_DEPTH_MAX)-1:0] rsp_atomic_t;  // counts atomics of a QP; its low bits are the place in the cache

  // ---- tables, one word a QP, one writer each ----

  // roce_response_intake: entries accepted.
  typedef struct packed {
    rsp_count_t  count;     // entries so far
    rsp_atomic_t atomics;   // of those, atomics that are not duplicates
    logic       full;      // there were RD_DEPTH of those or more: all of the cache is in use
  } rsp_tail_t;

  // roce_response_send: entries answered.
  typedef struct packed {
    rsp_count_t  count;     // entries answered
    logic [7:0] done;      // of those, requests that are not duplicates, modulo 256
    logic       resumes;   // the oldest entry continues at rsp_progress_t
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
    logic [31:0] length;   // of a READ; of an atomic: its index in the cache, see rsp_place()
  } rsp_entry_t;

  // The operands of an atomic.
  typedef struct packed {
    psn_t        psn;
    addr_t       addr;
    logic [31:0] rkey;
    logic        compare_swap;   // else fetch and add
    logic [63:0] swap_add;
    logic [63:0] compare;
  } rsp_operation_t;

  typedef struct packed {
    rsp_atomic_t atomics;   // its own count; for a duplicate that of the next atomic: the ones before it are in the cache
    logic       full;
  } rsp_place_t;

  function automatic rsp_place_t rsp_place(rsp_entry_t entry);
    return rsp_place_t'(entry.length[$bits(rsp_place_t)-1:0]);
  endfunction

  // The rest of a READ that was interrupted.
  typedef struct packed {
    psn_t        psn;
    addr_t       addr;
    logic [31:0] left;     // bytes
  } rsp_progress_t;

  // The result of an atomic.
  typedef struct packed {
    psn_t        psn;
    logic        error;    // memory reported an error, or
    logic        denied;   // its key was no longer valid
    logic [63:0] original;
  } rsp_result_t;

  // The progress of roce_response_atomics on a QP: atomics executed; it stops after one that failed.
  typedef struct packed {
    logic        stopped;
    rsp_atomic_t count;
  } rsp_executed_t;

  // ---- between the parts ----

  // One atomic for roce_atomic; with `denied` it is passed through and not executed.
  typedef struct packed {
    logic           denied;
    rsp_operation_t operation;
  } atomic_op_t;

  // A request that cannot be answered.
  typedef struct packed {
    qpn_t        qpn;
    psn_t        psn;
    logic        denied;   // its key is no longer valid; else memory reported an error
  } rsp_fault_t;

  // The newest acknowledgement of a QP.
  typedef struct packed {
    psn_t  psn;
    aeth_t aeth;
  } rsp_ack_t;
endpackage
