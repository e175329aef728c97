// SPDX-License-Identifier: Apache-2.0

// Send queues: accepts work requests, assigns their PSNs, writes each to the rings of its QP and lists the QP for sending.
// One work request every 2 cycles; 4 cycles from `wqe` to `work`. A rejected work request completes at once on `refused` and
// changes nothing: no such QP, or QP in a state that does not send: WC_WR_FLUSH_ERR; opcode not valid for a send queue, or a READ
// or atomic where max_rd_atomic is 0: WC_LOC_QP_OP_ERR; over 2 GiB: WC_LOC_LEN_ERR; ring full: WC_GENERAL_ERR.
// In the error state a work request is queued and flushed in order. One with an invalid L_Key is queued and moves the QP to the
// error state when it is the oldest. In both cases the QP is listed on `look`.
// A keep-alive takes one PSN and no ring entry; it is discarded unless the QP is in RTS and has no request outstanding.
// Stalls only when `work`, `look` or `refused` are not ready, or when `access` is not valid.
module roce_requester_queue
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned SQ_DEPTH = 16,
    parameter int unsigned RD_DEPTH = 8,
    parameter bit READS = 1'b1    // else READs and atomics are refused
) (
    input logic clk,
    input logic rst,
    input logic enable,           // accepts nothing while low

    stream_if.sink   wqe,         // rdma_wqe_t
    stream_if.sink   access,      // local_access_t, one per work request; no stall if within 4 cycles
    stream_if.sink   keepalive,   // qp_index_t

    input logic      init,        // initializes a QP's word; has priority for a cycle
    input sq_init_t  start,
    input qp_index_t watch,
    output logic     engaged,     // this unit holds an operation of QP `watch`

    roce_qp_read_if.reader  policy,     // queue_policy_t
    roce_qp_read_if.reader  words,      // queue_words_t
    roce_qp_write_if.writer tail_next,  // sq_tail_t

    output logic      ring_write,
    output qp_index_t ring_index,
    output sq_count_t ring_count,
    output sq_send_t  ring_send,
    output sq_done_t  ring_done,
    output logic      rd_write,   // with ring_write, if it is a READ or atomic
    output rd_count_t rd_count,
    output sq_rd_t    ring_rd,
    output logic [63:0] ring_compare,

    stream_if.source work,        // qp_index_t
    stream_if.source look,        // qp_index_t
    stream_if.source refused,     // rdma_cqe_t
    output logic     keepalive_sent,
    output logic     idle
);
  // ---- accept, and look up the path ----
  rdma_wqe_t  in_q;
  qp_index_t  in_index_q;
  logic       in_exists_q, in_keepalive_q;
  logic       in_valid_q;
  queue_policy_t in_policy;
  logic       take;    // the first stage is free

  stream_if #(.T(qp_index_t)) probe ();
  stream_slice #(.T(qp_index_t)) probe_slice (.clk, .rst, .in(keepalive), .out(probe));

  assign probe.ready = enable && take;
  assign wqe.ready   = enable && take && !probe.valid;
  wire accept = (probe.valid && probe.ready) || (wqe.valid && wqe.ready);

  rdma_wqe_t request;
  assign request      = wqe.data;
  assign policy.read  = take;
  assign policy.index = probe.valid ? probe.data : sq_index(request.qpn);
  assign in_policy    = policy.data;

  // ---- decode, and count the packets ----
  typedef struct packed {
    rdma_wqe_t   request;
    qp_index_t   index;
    logic        exists;
    logic        keepalive;
    logic        known;         // an opcode of the send queue
    logic        fits;
    logic        sound;         // all three
    sq_kind_e    kind;
    logic [23:0] packets;
    logic [22:0] last;          // packets - 1
    logic [12:0] tail;          // bytes in the last
  } counted_t;

  counted_t counted_q, counted;
  logic     counted_valid_q;
  logic     enter;   // moves to the decision stage, which reads the words of its QP
  logic     done;    // the decision stage has finished with its work request

  wire counted_free = !counted_valid_q || enter;
  assign take = !in_valid_q || counted_free;

  function automatic sq_kind_e kind_of(wr_opcode_e opcode);
    unique case (opcode)
      WR_RDMA_WRITE:           return SQ_WRITE;
      WR_RDMA_WRITE_WITH_IMM:  return SQ_WRITE_IMM;
      WR_SEND_WITH_IMM:        return SQ_SEND_IMM;
      WR_SEND_WITH_INV:        return SQ_SEND_INV;
      WR_RDMA_READ:            return SQ_READ;
      WR_ATOMIC_CMP_AND_SWP:   return SQ_CMP_SWAP;
      WR_ATOMIC_FETCH_AND_ADD: return SQ_FETCH_ADD;
      default:                 return SQ_SEND;
    endcase
  endfunction

  logic [23:0] whole;         // full packets
  logic [12:0] rest;          // bytes in the packet after them
  sq_kind_e    in_kind;
  assign in_kind = READS ? kind_of(in_q.opcode) : without_rd(kind_of(in_q.opcode));
  wire         alone = is_atomic(in_kind) || in_keepalive_q;
  wire         even  = !alone && rest == 0 && in_q.length != 0;   // no packet after them
  assign whole = alone ? '0 : 24'(in_q.length >> (4'd7 + 4'(in_policy.path.path_mtu)));
  assign rest  = in_q.length[12:0] & (mtu_bytes(in_policy.path.path_mtu) - 13'd1);

  always_comb begin
    counted.request   = in_q;
    counted.index     = in_index_q;
    counted.exists    = in_exists_q || in_keepalive_q;
    counted.keepalive = in_keepalive_q;
    counted.kind      = in_kind;
    counted.known     = in_q.opcode inside {WR_RDMA_WRITE, WR_RDMA_WRITE_WITH_IMM, WR_SEND, WR_SEND_WITH_IMM, WR_SEND_WITH_INV}
        || (READS && is_rd(in_kind) && in_policy.max_rd_atomic != 0);
    counted.fits      = in_q.length <= 32'h8000_0000 || is_atomic(in_kind);  // IBTA 9.7.7: a message has 2^31 bytes at most
    counted.sound     = counted.exists && counted.known && counted.fits;
    counted.packets   = whole + 24'(!even);
    counted.last      = 23'(whole) - 23'(even);
    counted.tail      = alone ? 13'd8 : even ? mtu_bytes(in_policy.path.path_mtu) : rest;
  end

  always_ff @(posedge clk) begin
    if (take) begin
      in_q           <= request;
      in_index_q     <= policy.index;
      in_exists_q    <= qpn_exists(request.qpn, QPS);
      in_keepalive_q <= probe.valid;
    end
    if (counted_free) counted_q <= counted;
    if (rst) begin
      in_valid_q      <= 1'b0;
      counted_valid_q <= 1'b0;
    end else begin
      if (take) in_valid_q <= accept;
      if (counted_free) counted_valid_q <= in_valid_q;
    end
  end

  // ---- read the QP's words ----
  counted_t     post_q;
  logic         post_valid_q, judged_q;
  logic         full_q, shut_q, quiet_q, queue_it;
  queue_words_t word;
  sq_tail_t     tail, behind;     // before this work request, and after it
  assign word = words.data;
  assign tail = word.tail;

  wire post_free = !post_valid_q || done;
  assign enter = counted_valid_q && post_free && !init;

  // Read again in every cycle in which a work request waits here: its QP may fail or retire work requests meanwhile.
  assign words.read  = 1'b1;
  assign words.index = enter ? counted_q.index : post_q.index;

  // If the tail of the QP is written in the cycle of the read, the new value is used.
  logic      moved_q;
  sq_count_t moved_count_q, posted;
  rd_count_t moved_rd_q, posted_rd;
  assign posted    = moved_q ? moved_count_q : tail.count;
  assign posted_rd = moved_q ? moved_rd_q : tail.rd;

  always_ff @(posedge clk) begin
    if (enter) post_q <= counted_q;
    moved_q       <= enter && done && queue_it && post_q.index == counted_q.index;
    moved_count_q <= behind.count;
    moved_rd_q    <= behind.rd;
    full_q   <= sq_count_t'(posted - word.retired) == sq_count_t'(SQ_DEPTH);
    shut_q   <= READS && is_rd(post_q.kind) && rd_count_t'(posted_rd - word.rd_done) == rd_count_t'(RD_DEPTH);
    quiet_q  <= tail.next == word.progress.una && tail.count == word.retired && !moved_q;
    judged_q <= post_valid_q && !done;
    if (rst) post_valid_q <= 1'b0;
    else if (post_free) post_valid_q <= enter;
  end

  // ---- decide and write ----
  logic      work_valid_q, look_valid_q, refused_valid_q;
  qp_index_t work_q;
  rdma_cqe_t refused_q;

  assign look.valid    = look_valid_q;
  assign look.data     = work_q;
  assign refused.valid = refused_valid_q;
  assign refused.data  = refused_q;

  sq_state_e state;
  assign state = word.progress.state;
  wire live  = post_q.exists && state != SQ_RESET;
  wire reads = READS && is_rd(post_q.kind);
  // In the error state READs are not limited by RD_DEPTH: they are flushed without a response.
  wire room  = !full_q && !(shut_q && state != SQ_ERR);

  wire out_free = !work_valid_q && !look_valid_q && !refused_valid_q;
  assign queue_it = post_q.keepalive ? quiet_q && state == SQ_RTS : post_q.sound && state != SQ_RESET && room;
  wire refuse   = !post_q.keepalive && !queue_it;
  wire counts   = !post_q.keepalive;

  // A keep-alive has no L_Key.
  assign done         = judged_q && out_free && !init && (post_q.keepalive || access.valid);
  assign access.ready = judged_q && out_free && !init && !post_q.keepalive;
  local_access_t allowed;
  assign allowed      = access.data;
  wire   wrong_key    = counts && allowed.denied;

  // Listed in the cycle in which the tables are written, and held until accepted.
  wire lists = done && queue_it && state inside {SQ_RTS, SQ_SQD};
  assign work.valid    = work_valid_q || lists;
  assign work.data     = work_valid_q ? work_q : post_q.index;

  assign ring_index       = post_q.index;
  assign ring_count       = tail.count;
  assign ring_write       = done && queue_it && counts;
  always_comb begin
    behind.count = tail.count + sq_count_t'(counts);
    behind.rd    = tail.rd + rd_count_t'(counts && reads);
    behind.probe = post_q.keepalive;
    behind.next  = tail.next + xpsn_t'(post_q.packets);
  end
  assign tail_next.valid = init || (done && queue_it);
  assign tail_next.index = init ? start.index : post_q.index;
  assign tail_next.data  = init ? sq_tail_t'{next: xpsn_t'(start.psn), default: '0} : behind;

  always_comb begin
    ring_send = '{
        kind: post_q.kind,
        solicited: post_q.request.solicited,
        fence: post_q.request.fence,
        gap: tail.probe,
        rd: tail.rd,
        first: tail.next,
        local_addr: post_q.request.local_addr,
        lkey: post_q.request.lkey,
        access: allowed,
        length: post_q.request.length,
        remote_addr: post_q.request.remote_addr,
        rkey: post_q.request.rkey,
        word: post_q.request.imm_data,
        last: post_q.last,
        tail: post_q.tail
    };
    if (READS && post_q.kind == SQ_READ) ring_send.word = 32'(post_q.packets);
    if (READS && is_atomic(post_q.kind)) {ring_send.length, ring_send.word} = post_q.request.swap_add;
  end
  assign ring_done = '{
          kind: post_q.kind,
          signaled: post_q.request.signaled,
          denied: wrong_key,
          wr_id: post_q.request.wr_id,
          past: behind.next
      };
  assign rd_write = ring_write && reads;
  assign rd_count = tail.rd;
  assign ring_rd = '{
          atomic: is_atomic(post_q.kind),
          first: tail.next,
          addr: post_q.request.local_addr,
          lkey: post_q.request.lkey,
          access: allowed,
          last: post_q.last,
          tail: post_q.tail
      };
  assign ring_compare = post_q.request.compare;

  assign keepalive_sent = done && queue_it && post_q.keepalive;
  assign engaged        = (in_valid_q && in_index_q == watch) || (counted_valid_q && counted_q.index == watch)
      || (post_valid_q && post_q.index == watch)
      || ((work_valid_q || look_valid_q || refused_valid_q) && work_q == watch);
  assign idle           = !probe.valid && !in_valid_q && !counted_valid_q && !post_valid_q && out_free;

  always_ff @(posedge clk) begin
    if (out_free) begin
      work_q    <= post_q.index;
      refused_q <= '{
          status: !live ? WC_WR_FLUSH_ERR : !post_q.known ? WC_LOC_QP_OP_ERR : !post_q.fits ? WC_LOC_LEN_ERR : WC_GENERAL_ERR,
          opcode: completion_of(post_q.kind),
          with_imm: post_q.kind inside {SQ_SEND_IMM, SQ_WRITE_IMM},
          qpn: post_q.request.qpn,
          wr_id: post_q.request.wr_id,
          default: '0
      };
    end
    if (rst) begin
      work_valid_q    <= 1'b0;
      look_valid_q    <= 1'b0;
      refused_valid_q <= 1'b0;
    end else begin
      work_valid_q <= work.valid && !work.ready;
      if (out_free || look.ready) look_valid_q <= done && queue_it && (state == SQ_ERR || wrong_key);
      if (out_free || refused.ready) refused_valid_q <= done && refuse;
    end
  end
endmodule
