// SPDX-License-Identifier: Apache-2.0

// Takes the responder's requests for responses: queues READs and atomics of each QP, stores the operands of atomics in a second queue, and
// keeps the newest acknowledgement of each QP. A fault takes the QP out of service: its newest acknowledgement becomes a NAK, "remote
// access error" if a key was no longer valid, else "remote operational error", and the fault is reported on `qp_event` and `failed`. Faults
// come as memory answers, so an older request may fail after a newer one: the NAK becomes that of the oldest, which the peer waits for.
//
// One every 2 cycles, also on one QP; `respond` to `work` or `name` 2 cycles. A READ or atomic supersedes older acknowledgements. A
// duplicate that finds RD_DEPTH entries in the queue is dropped: the peer will retransmit it. Responses of a QP out of service are dropped.
// Stalls when `qp_event` or `failed` stalls, after taking one more.
module roce_response_intake
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;
  import roce_response_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned RD_DEPTH = 8
) (
    input logic clk,
    input logic rst,
    input logic hold,                // accept nothing

    stream_if.sink respond,          // respond_t
    stream_if.sink fault[2],         // rsp_fault_t

    output qp_index_t  index,        // the QP whose words are read
    input  rsp_tail_t  tail,
    input  rsp_count_t head,         // entries answered
    input  logic       live,         // in service
    roce_qp_read_if.reader newest_before,  // rsp_ack_t, its newest acknowledgement

    output logic       fail,         // take this QP out of service
    output qp_index_t  at,           // the following are of this QP:
    roce_qp_write_if.writer tail_next,  // rsp_tail_t, with an entry of the queue
    output rsp_count_t entry_count,
    output rsp_entry_t entry,
    output logic       operation_write,  // the operands of an atomic; this and the next two
    output rsp_atomic_t operation_place,
    output rsp_operation_t operation,
    roce_qp_write_if.writer newest,  // rsp_ack_t
    output logic       pend,         // with `newest`: it is pending, else nothing is

    stream_if.source work,           // qp_index_t: to be visited
    stream_if.source name,           // qp_index_t: has an acknowledgement
    stream_if.source atomic,         // qp_index_t: has an atomic to execute; must be taken at once
    stream_if.source qp_event,       // qp_event_t
    stream_if.source failed,         // qp_failed_t
    output logic     forgotten,      // a duplicate was dropped
    output logic     idle
);
  enum logic [1:0] {
    I_EMPTY,
    I_LOOK,
    I_DECIDE
  } state_q;

  stream_if #(.T(respond_t)) admitted ();
  stream_if #(.T(respond_t)) next ();
  respond_t  came, in_q;
  rsp_fault_t broken[2];
  logic      in_fault_q, in_exists_q;
  rsp_tail_t tail_q;
  logic      queues_q, forgets_q, executes_q, breaks_q, ends_q, acknowledges_q, renews_q, pend_q;   // what I_DECIDE does
  logic      event_valid_q, failed_valid_q;
  qp_failed_t failed_q;
  logic      done;

  // ---- accept; what was accepted before `hold` is still processed ----
  assign admitted.valid = respond.valid && !hold;
  assign admitted.data  = respond.data;
  assign respond.ready  = admitted.ready && !hold;
  stream_skid #(.T(respond_t)) skid (.clk, .rst, .in(admitted), .out(next));

  wire free = state_q == I_EMPTY || done;
  wire any_fault = (fault[0].valid || fault[1].valid) && !hold;
  wire take = free && (any_fault || next.valid);
  assign came           = next.data;
  assign broken[0]      = fault[0].data;
  assign broken[1]      = fault[1].data;
  assign fault[0].ready = free && !hold;
  assign fault[1].ready = free && !hold && !fault[0].valid;
  assign next.ready     = free && !any_fault;

  respond_t   taken;
  rsp_fault_t faulty;
  assign faulty = fault[0].valid ? broken[0] : broken[1];
  always_comb begin
    taken = came;
    if (any_fault) begin
      taken.qpn = faulty.qpn;
      taken.psn = faulty.psn;
      taken.aeth.syndrome = faulty.denied ? SYNDROME_NAK_REM_ACCESS : SYNDROME_NAK_REM_OP;
    end
  end

  // ---- read ----
  qp_index_t in_index_q;
  rsp_ack_t  latest;
  assign index               = in_index_q;
  assign newest_before.read  = state_q == I_LOOK;
  assign newest_before.index = in_index_q;
  assign latest              = newest_before.data;
  rsp_count_t inside_it;
  assign inside_it = tail.count - head;
  wire serves     = in_exists_q && live;
  wire room       = inside_it < (in_q.duplicate ? rsp_count_t'(RD_DEPTH) : rsp_count_t'(2 * RD_DEPTH));
  wire for_queue  = !in_fault_q && in_q.kind != RESPOND_ACK;
  wire for_atomic = in_q.kind == RESPOND_ATOMIC;

  always_ff @(posedge clk) begin
    if (take) begin
      in_q        <= taken;
      in_index_q  <= sq_index(taken.qpn);
      in_fault_q  <= any_fault;
      in_exists_q <= qpn_exists(taken.qpn, QPS);
    end
    if (state_q == I_LOOK) begin
      tail_q         <= tail;
      queues_q       <= serves && for_queue && room;
      forgets_q      <= serves && for_queue && !room;
      executes_q     <= serves && for_queue && room && for_atomic && !in_q.duplicate;
      breaks_q       <= in_exists_q && in_fault_q;
      ends_q         <= serves && in_fault_q;
      acknowledges_q <= serves && !in_fault_q && !for_queue;
      renews_q       <= serves && (!for_queue || (room && !in_q.duplicate));
      pend_q         <= !for_queue;
    end
    if (rst) state_q <= I_EMPTY;
    else begin
      unique case (state_q)
        I_EMPTY: if (take) state_q <= I_LOOK;
        I_LOOK: state_q <= I_DECIDE;
        default: if (done) state_q <= take ? I_LOOK : I_EMPTY;
      endcase
    end
  end

  // ---- decide ----
  wire decide = state_q == I_DECIDE && !(in_fault_q && (event_valid_q || failed_valid_q));
  wire older = breaks_q && psn_before(in_q.psn, latest.psn);
  wire visit = queues_q || breaks_q;    // a visit to a QP out of service discards its queue; the NAK can be sent after that

  assign work.valid   = decide && visit;
  assign work.data    = index;
  assign atomic.valid = decide && executes_q && work.ready;
  assign atomic.data  = index;
  assign name.valid   = decide && acknowledges_q;
  assign name.data    = index;
  assign done         = decide && (!visit || work.ready) && (!acknowledges_q || name.ready);

  assign at          = index;
  assign fail        = done && ends_q;
  assign entry_count = tail_q.count;
  assign tail_next.valid = done && queues_q;
  assign tail_next.index = index;
  assign tail_next.data  = '{
          count: tail_q.count + 1'b1,
          atomics: tail_q.atomics + rsp_atomic_t'(executes_q),
          full: tail_q.full || (executes_q && tail_q.atomics == rsp_atomic_t'(RD_DEPTH - 1))
      };

  rsp_place_t place;
  assign place = '{atomics: tail_q.atomics, full: tail_q.full};
  assign entry = '{
          atomic: for_atomic,
          duplicate: in_q.duplicate,
          psn: in_q.psn,
          msn: in_q.aeth.msn,
          path_mtu: in_q.path_mtu,
          addr: in_q.addr,
          target: for_atomic || in_q.length == '0 ? '0 : in_q.target,
          rkey: in_q.rkey,
          length: for_atomic ? 32'(place) : in_q.length
      };

  assign operation_write = done && executes_q;
  assign operation_place = tail_q.atomics;
  assign operation = '{
          psn: in_q.psn,
          addr: in_q.addr,
          rkey: in_q.rkey,
          compare_swap: in_q.compare_swap,
          swap_add: in_q.swap_add,
          compare: in_q.compare
      };

  assign pend = pend_q;
  assign newest.valid = done && (renews_q || older);
  assign newest.index = index;
  assign newest.data  = rsp_ack_t'{
          psn: in_q.psn,
          aeth: in_fault_q ? {in_q.aeth.syndrome, latest.aeth.msn} : in_q.aeth
      };
  assign forgotten    = done && forgets_q;
  assign idle         = state_q == I_EMPTY && !next.valid;

  // ---- report the fault ----
  assign qp_event.valid = event_valid_q;
  assign qp_event.data  = qp_event_t'{kind: EVENT_QP_FATAL, qpn: failed_q.qpn, status: WC_LOC_PROT_ERR};
  assign failed.valid   = failed_valid_q;
  assign failed.data    = failed_q;
  always_ff @(posedge clk) begin
    if (fail) failed_q <= '{qpn: in_q.qpn, denied: in_q.aeth.syndrome == SYNDROME_NAK_REM_ACCESS};
    if (rst) begin
      event_valid_q  <= 1'b0;
      failed_valid_q <= 1'b0;
    end else begin
      event_valid_q  <= fail || (event_valid_q && !qp_event.ready);
      failed_valid_q <= fail || (failed_valid_q && !failed.ready);
    end
  end

  // Only duplicates are dropped: the responder accepts at most RD_DEPTH other requests.
  always_ff @(posedge clk) if (!rst) assert (!forgotten || in_q.duplicate);
  always_ff @(posedge clk) if (!rst && atomic.valid) assert (atomic.ready);
endmodule
