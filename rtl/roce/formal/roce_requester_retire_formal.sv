// SPDX-License-Identifier: Apache-2.0

// Completions of one QP, whatever the peer, the poster and the owner do: each work request completes once, in order; with success
// only if it is acknowledged, otherwise only after the QP has failed; one at most is blamed, and the event comes first.
// A work request with a wrong key is never acknowledged, and is named on `fault` only when all before it are complete; the QP fails then.
// Work request n has the PSN n. The QP posts LAST work requests at most, and may fail at any time.
module roce_requester_retire_formal
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter bit REACH = 1'b0,
    parameter int unsigned LAST = 6
) (
    input logic       clk,
    input logic       rst,
    input logic       post,
    input logic       acknowledge,
    input logic       fails,
    input logic       refuses,     // with `fails`: it is memory that refused something
    input logic       drains,
    input logic       listed,
    input logic       cqe_ready,
    input logic       event_ready,
    input logic       fault_ready,
    input logic [3:0] noise        // what is in a slot of the ring that was never written
);
  typedef logic [3:0] short_t;
  stream_if #(.T(qp_index_t)) list ();
  stream_if #(.T(rdma_cqe_t)) cqe ();
  stream_if #(.T(qp_event_t)) qp_event ();
  stream_if #(.T(qp_index_t)) fault ();

  // ---- around it: tables and ring of one QP ----
  short_t      posted_q, una_q, failed_q;
  logic        err_q, refused_q, drains_q;
  sq_retired_t retired_q;
  sq_done_t    ring_q;
  logic        ring_read;
  logic [15:0] denied_q;       // these have a wrong key: whichever
  always_ff @(posedge clk) denied_q <= denied_q;
  sq_count_t   ring_count;
  roce_qp_read_if #(.T(retire_words_t)) words ();
  roce_qp_write_if #(.T(sq_retired_t)) retired_next ();

  wire in_ring = ring_count < sq_count_t'(posted_q);
  wire short_t slot = in_ring ? short_t'(ring_count) : noise;
  retire_words_t word, seen_q;
  assign word = '{
          posted: sq_count_t'(posted_q),
          confirmed: '{state: err_q ? SQ_ERR : SQ_RTS, drains: drains_q, refused: refused_q, default: '0},
          una: xpsn_t'(una_q),
          failure: '{status: WC_REM_OP_ERR, psn: xpsn_t'(failed_q)},
          retired: retired_q
      };
  assign words.data = seen_q;

  roce_requester_retire dut (
      .clk, .rst, .list, .words, .ring_read, .ring_index(), .ring_count, .ring_data(ring_q), .init(1'b0), .start('0), .watch('0),
      .engaged(), .retired_next, .cqe, .qp_event, .fault, .flushed(), .unsignaled(), .unsignaled_index(), .idle()
  );
  assign list.valid     = listed;
  assign list.data      = '0;
  assign cqe.ready      = cqe_ready;
  assign qp_event.ready = event_ready;
  assign fault.ready    = fault_ready;

  always_ff @(posedge clk) begin
    if (words.read) seen_q <= word;
    if (ring_read) ring_q <= '{kind: SQ_WRITE, signaled: 1'b1, denied: denied_q[slot], wr_id: 16'(slot), past: xpsn_t'(slot) + 1'b1};
    if (rst) begin
      posted_q  <= '0;
      una_q     <= '0;
      failed_q  <= '0;
      err_q     <= 1'b0;
      refused_q <= 1'b0;
      drains_q  <= 1'b0;
      retired_q <= '0;
    end else begin
      if (post && posted_q != short_t'(LAST)) posted_q <= posted_q + 1'b1;
      if (fault.valid && fault.ready && !err_q) begin
        err_q     <= 1'b1;
        refused_q <= 1'b0;
        failed_q  <= una_q;
      end else if (acknowledge && !err_q && una_q != posted_q && !denied_q[una_q]) una_q <= una_q + 1'b1;
      else if (fails && !err_q) begin
        err_q    <= 1'b1;
        // What memory refused is found at `una`, whatever PSN the failure names.
        refused_q <= refuses;
        failed_q  <= refuses ? short_t'(noise) : una_q;
      end
      if (drains && una_q == posted_q) drains_q <= !drains_q;
      if (retired_next.valid) retired_q <= retired_next.data;
    end
  end

  // ---- what must hold ----
  rdma_cqe_t done;
  qp_event_t told;
  assign done = cqe.data;
  assign told = qp_event.data;
  wire completes = cqe.valid && cqe.ready;

  logic   started_q = 1'b0;
  short_t next_q;              // work request to complete next
  logic   blamed_q, told_q;
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    if (!started_q) assume (rst);
    if (rst) begin
      next_q   <= '0;
      blamed_q <= 1'b0;
      told_q   <= 1'b0;
    end else if (started_q) begin
      if (completes) begin
        next_q   <= next_q + 1'b1;
        blamed_q <= blamed_q || done.status == WC_REM_OP_ERR;
        assert (done.wr_id == 16'(next_q));
        assert (next_q < posted_q);
        if (done.status == WC_SUCCESS) assert (next_q < una_q && !blamed_q);
        else assert (err_q && next_q >= una_q);
        if (done.status == WC_REM_OP_ERR) assert (!blamed_q);
      end
      if (fault.valid) assert (denied_q[short_t'(retired_q.count)] && short_t'(retired_q.count) == una_q && una_q < posted_q);
      if (qp_event.valid && qp_event.ready && told.kind == EVENT_QP_FATAL) begin
        told_q <= 1'b1;
        assert (err_q && !told_q);
      end
      if (REACH) assert (!(completes && next_q == short_t'(LAST - 1) && blamed_q));
    end
  end
endmodule
