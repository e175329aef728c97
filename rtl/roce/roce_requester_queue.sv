// SPDX-License-Identifier: Apache-2.0

// Send queues: takes work requests, gives each its PSNs, writes it to its QP's ring and lists the QP for sending.
// One work request every 2 cycles; 4 cycles from `wqe` to `work`. What is refused (no such QP or QP not set up: WC_WR_FLUSH_ERR; verb
// not sent here: WC_LOC_QP_OP_ERR; over 2 GiB: WC_LOC_LEN_ERR; ring full: WC_GENERAL_ERR) completes at once on `refused` and changes nothing.
// In the error state a work request is queued as ever and flushed in its turn: the QP is listed on `flush` then.
// A keep-alive takes one PSN and no place in the ring, and only if the QP has nothing outstanding; else it is forgotten.
// Stops only when `work`, `flush` or `refused` stop.
module roce_requester_queue
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned SQ_DEPTH = 32
) (
    input logic clk,
    input logic rst,
    input logic enable,           // takes nothing while low

    stream_if.sink   wqe,         // rdma_wqe_t
    stream_if.sink   keepalive,   // qp_index_t

    input logic      init,        // starts a QP's word; takes precedence for a cycle
    input sq_init_t  start,
    input qp_index_t watch,
    output logic     engaged,     // something of the QP `watch` is under way here

    output qp_index_t    policy_index,
    input  sq_policy_t   policy,
    output qp_index_t    index,   // whose tables are looked at
    input  sq_tail_t     tail,
    input  sq_progress_t progress,
    input  sq_retired_t  retired,

    output logic      tail_write,
    output qp_index_t tail_write_index,
    output sq_tail_t  tail_write_data,
    output logic      ring_write,
    output qp_index_t ring_index,
    output sq_count_t ring_count,
    output sq_send_t  ring_send,
    output sq_done_t  ring_done,

    stream_if.source work,        // qp_index_t
    stream_if.source flush,       // qp_index_t
    stream_if.source refused,     // rdma_cqe_t
    output logic     keepalive_sent,
    output logic     idle
);
  // ---- accept, and look up the path MTU ----
  rdma_wqe_t  in_q;
  qp_index_t  in_index_q;
  logic       in_exists_q, in_keepalive_q;
  sq_policy_t in_policy_q;
  logic       in_valid_q;
  logic       take;    // the look-up stage is free

  assign keepalive.ready = enable && take;
  assign wqe.ready       = enable && take && !keepalive.valid;
  wire accept = (keepalive.valid && keepalive.ready) || (wqe.valid && wqe.ready);

  rdma_wqe_t request;
  assign request      = wqe.data;
  assign policy_index = keepalive.valid ? keepalive.data : sq_index(request.qpn);

  // ---- count the packets ----
  rdma_wqe_t   count_q;
  qp_index_t   count_index_q;
  logic        count_exists_q, count_keepalive_q;
  logic [23:0] packets_q;
  logic        count_valid_q;
  logic        look;    // the deciding stage takes it, with the words of its QP
  logic        done;    // the deciding stage is through with its own

  function automatic logic [23:0] packets(logic [31:0] length, mtu_code_t mtu);
    logic [32:0] padded;
    if (length == 0) return 24'd1;
    padded = 33'(length) + 33'(mtu_bytes(mtu)) - 33'd1;
    return 24'(padded >> (4'd7 + 4'(mtu)));
  endfunction

  wire count_free = !count_valid_q || look;
  assign take = !in_valid_q || count_free;

  always_ff @(posedge clk) begin
    if (take) begin
      in_q           <= request;
      in_index_q     <= policy_index;
      in_exists_q    <= qpn_exists(request.qpn, QPS);
      in_keepalive_q <= keepalive.valid;
      in_policy_q    <= policy;
    end
    if (count_free) begin
      count_q           <= in_q;
      count_index_q     <= in_index_q;
      count_exists_q    <= in_exists_q || in_keepalive_q;
      count_keepalive_q <= in_keepalive_q;
      packets_q         <= in_keepalive_q ? 24'd1 : packets(in_q.length, in_policy_q.path_mtu);
    end
    if (rst) begin
      in_valid_q    <= 1'b0;
      count_valid_q <= 1'b0;
    end else begin
      if (take) in_valid_q <= accept;
      if (count_free) count_valid_q <= in_valid_q;
    end
  end

  // ---- look up; a QP whose word is just being written waits for it ----
  rdma_wqe_t    post_q;
  qp_index_t    post_index_q;
  logic         post_exists_q, post_keepalive_q;
  logic [23:0]  post_packets_q;
  sq_tail_t     tail_q;
  sq_state_e    state_q;
  logic         full_q, quiet_q;
  logic         post_valid_q;

  // What waits here looks up the state again before it goes on: its QP may have failed meanwhile, and its last completion may
  // be out.
  logic recent_q;
  wire  again = post_valid_q && !recent_q;
  assign index = again ? post_index_q : count_index_q;
  wire post_free = !post_valid_q || done;
  assign look = count_valid_q && post_free && !(post_valid_q && post_index_q == count_index_q) && !init;

  always_ff @(posedge clk) begin
    if (look) begin
      post_q           <= count_q;
      post_index_q     <= count_index_q;
      post_exists_q    <= count_exists_q;
      post_keepalive_q <= count_keepalive_q;
      post_packets_q   <= packets_q;
      tail_q           <= tail;
      full_q           <= sq_count_t'(tail.count - retired.count) == sq_count_t'(SQ_DEPTH);
      quiet_q          <= tail.next == progress.una && tail.count == retired.count;
    end
    if (look || again) state_q <= progress.state;
    recent_q <= look || again;
    if (rst) post_valid_q <= 1'b0;
    else if (post_free) post_valid_q <= look;
  end

  // ---- decide and write ----
  logic      work_valid_q, flush_valid_q, refused_valid_q;
  qp_index_t work_q;
  rdma_cqe_t refused_q;

  assign work.valid    = work_valid_q;
  assign work.data     = work_q;
  assign flush.valid   = flush_valid_q;
  assign flush.data    = work_q;
  assign refused.valid = refused_valid_q;
  assign refused.data  = refused_q;

  wire is_write = post_q.opcode inside {WR_RDMA_WRITE, WR_RDMA_WRITE_WITH_IMM};
  wire is_send  = post_q.opcode inside {WR_SEND, WR_SEND_WITH_IMM};
  wire with_imm = post_q.opcode inside {WR_RDMA_WRITE_WITH_IMM, WR_SEND_WITH_IMM};

  wire live  = post_exists_q && state_q != SQ_RESET;
  wire known = is_write || is_send;
  wire fits  = post_q.length <= 32'h8000_0000;  // IBTA 9.7.7: a message has 2^31 bytes at most

  wire out_free = !work_valid_q && !flush_valid_q && !refused_valid_q;
  wire queue_it = post_keepalive_q ? quiet_q && state_q == SQ_RTS : live && known && fits && !full_q;
  wire refuse   = !post_keepalive_q && !queue_it;

  assign done       = post_valid_q && recent_q && out_free && !init;

  assign ring_index       = post_index_q;
  assign ring_count       = tail_q.count;
  assign ring_write       = done && queue_it && !post_keepalive_q;
  assign tail_write       = init || (done && queue_it);
  assign tail_write_index = init ? start.index : post_index_q;
  always_comb begin
    if (init) tail_write_data = '{count: '0, next: xpsn_t'(start.psn)};
    else begin
      tail_write_data.count = tail_q.count + sq_count_t'(!post_keepalive_q);
      tail_write_data.next  = tail_q.next + 32'(post_packets_q);
    end
  end

  assign ring_send = '{
          write: is_write,
          with_imm: with_imm,
          solicited: post_q.solicited,
          first: tail_q.next,
          local_addr: post_q.local_addr,
          length: post_q.length,
          remote_addr: post_q.remote_addr,
          rkey: post_q.rkey,
          imm_data: post_q.imm_data
      };
  assign ring_done = '{
          write: is_write,
          with_imm: with_imm,
          signaled: post_q.signaled,
          wr_id: post_q.wr_id,
          past: tail_write_data.next
      };

  assign keepalive_sent = done && queue_it && post_keepalive_q;
  assign engaged        = (in_valid_q && in_index_q == watch) || (count_valid_q && count_index_q == watch)
      || (post_valid_q && post_index_q == watch)
      || ((work_valid_q || flush_valid_q || refused_valid_q) && work_q == watch);
  assign idle           = !in_valid_q && !count_valid_q && !post_valid_q && !work_valid_q && !flush_valid_q && !refused_valid_q;

  always_ff @(posedge clk) begin
    if (out_free) begin
      work_q    <= post_index_q;
      refused_q <= '{
          status: !live ? WC_WR_FLUSH_ERR : !known ? WC_LOC_QP_OP_ERR : !fits ? WC_LOC_LEN_ERR : WC_GENERAL_ERR,
          opcode: is_write ? WC_RDMA_WRITE : WC_SEND,
          with_imm: with_imm,
          qpn: post_q.qpn,
          wr_id: post_q.wr_id,
          default: '0
      };
    end
    if (rst) begin
      work_valid_q    <= 1'b0;
      flush_valid_q   <= 1'b0;
      refused_valid_q <= 1'b0;
    end else begin
      if (out_free || work.ready) work_valid_q <= done && queue_it && state_q == SQ_RTS;
      if (out_free || flush.ready) flush_valid_q <= done && queue_it && state_q == SQ_ERR;
      if (out_free || refused.ready) refused_valid_q <= done && refuse;
    end
  end
endmodule
