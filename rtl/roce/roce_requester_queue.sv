// SPDX-License-Identifier: Apache-2.0

// Send queues: takes work requests, gives each its PSNs, writes it to its QP's rings and lists the QP for sending.
// One work request every 2 cycles; 3 cycles from `wqe` to `work`. What is refused (no such QP or QP that does not send: WC_WR_FLUSH_ERR;
// no verb of a send queue, or a READ or atomic where max_rd_atomic is 0: WC_LOC_QP_OP_ERR; over 2 GiB: WC_LOC_LEN_ERR; ring full:
// WC_GENERAL_ERR) completes at once on `refused` and changes nothing.
// In the error state a work request is queued as ever and flushed in its turn: the QP is listed on `flush` then.
// A keep-alive takes one PSN and no place in the rings, and only if the QP has nothing outstanding; else it is forgotten.
// Stops only when `work`, `flush` or `refused` stop.
module roce_requester_queue
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned SQ_DEPTH = 16,
    parameter int unsigned RD_DEPTH = 8
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

    output qp_index_t    path_index,
    input  sq_path_t     path,
    input  rd_count_t    max_rd_atomic,  // of `path_index` too
    output qp_index_t    index,   // whose tables are looked at
    input  sq_tail_t     tail,
    input  queue_progress_t progress,
    input  sq_count_t    retired, // work requests completed
    input  rd_count_t    rd_done, // READs and atomics complete

    output logic      tail_write,
    output qp_index_t tail_write_index,
    output sq_tail_t  tail_write_data,
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
    stream_if.source flush,       // qp_index_t
    stream_if.source refused,     // rdma_cqe_t
    output logic     keepalive_sent,
    output logic     idle
);
  // ---- accept, and look up the path ----
  rdma_wqe_t  in_q;
  qp_index_t  in_index_q;
  logic       in_exists_q, in_keepalive_q;
  sq_path_t   in_path_q;
  rd_count_t  in_max_rd_q;
  logic       in_valid_q;
  logic       take;    // the first stage is free

  stream_if #(.T(qp_index_t)) probe ();
  stream_slice #(.T(qp_index_t)) probe_slice (.clk, .rst, .in(keepalive), .out(probe));

  assign probe.ready = enable && take;
  assign wqe.ready   = enable && take && !probe.valid;
  wire accept = (probe.valid && probe.ready) || (wqe.valid && wqe.ready);

  rdma_wqe_t request;
  assign request    = wqe.data;
  assign path_index = probe.valid ? probe.data : sq_index(request.qpn);

  // ---- what it is, and how many packets ----
  typedef struct packed {
    rdma_wqe_t   request;
    qp_index_t   index;
    logic        exists;
    logic        keepalive;
    logic        known;         // a verb that may be sent here
    logic        fits;
    logic        sound;         // all three
    sq_kind_e    kind;
    logic [23:0] packets;
    logic [22:0] last;          // packets - 1
    logic [12:0] tail;          // bytes in the last
  } counted_t;

  counted_t counted_q, counted;
  logic     counted_valid_q;
  logic     look;    // the deciding stage takes it, with the words of its QP
  logic     done;    // the deciding stage is through with its own

  wire counted_free = !counted_valid_q || look;
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

  logic [23:0] whole;         // packets that are full
  logic [12:0] rest;          // bytes in the one behind them
  sq_kind_e    in_kind;
  assign in_kind = kind_of(in_q.opcode);
  wire         alone = is_atomic(in_kind) || in_keepalive_q;
  wire         even  = !alone && rest == 0 && in_q.length != 0;   // nothing is behind them
  assign whole = alone ? '0 : 24'(in_q.length >> (4'd7 + 4'(in_path_q.path_mtu)));
  assign rest  = in_q.length[12:0] & (mtu_bytes(in_path_q.path_mtu) - 13'd1);

  always_comb begin
    counted.request   = in_q;
    counted.index     = in_index_q;
    counted.exists    = in_exists_q || in_keepalive_q;
    counted.keepalive = in_keepalive_q;
    counted.kind      = in_kind;
    counted.known     = in_q.opcode inside {WR_RDMA_WRITE, WR_RDMA_WRITE_WITH_IMM, WR_SEND, WR_SEND_WITH_IMM, WR_SEND_WITH_INV}
        || (is_rd(in_kind) && in_max_rd_q != 0);
    counted.fits      = in_q.length <= 32'h8000_0000 || is_atomic(in_kind);  // IBTA 9.7.7: a message has 2^31 bytes at most
    counted.sound     = counted.exists && counted.known && counted.fits;
    counted.packets   = whole + 24'(!even);
    counted.last      = 23'(whole) - 23'(even);
    counted.tail      = alone ? 13'd8 : even ? mtu_bytes(in_path_q.path_mtu) : rest;
  end

  always_ff @(posedge clk) begin
    if (take) begin
      in_q           <= request;
      in_index_q     <= path_index;
      in_exists_q    <= qpn_exists(request.qpn, QPS);
      in_keepalive_q <= probe.valid;
      in_path_q      <= path;
      in_max_rd_q    <= max_rd_atomic;
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

  // ---- look up; a QP whose word is just being written waits for it ----
  counted_t     post_q;
  sq_tail_t     tail_q;
  sq_state_e    state_q;
  logic         full_q, shut_q, quiet_q;
  logic         post_valid_q;

  // What waits here looks up the state again before it goes on: its QP may have failed meanwhile, and its last completion may
  // be out.
  logic recent_q;
  wire  again = post_valid_q && !recent_q;
  assign index = again ? post_q.index : counted_q.index;
  wire post_free = !post_valid_q || done;
  assign look = counted_valid_q && post_free && !(post_valid_q && post_q.index == counted_q.index) && !init;

  always_ff @(posedge clk) begin
    if (look) begin
      post_q    <= counted_q;
      tail_q    <= tail;
      full_q    <= sq_count_t'(tail.count - retired) == sq_count_t'(SQ_DEPTH);
      shut_q    <= is_rd(counted_q.kind) && rd_count_t'(tail.rd - rd_done) == rd_count_t'(RD_DEPTH);
      quiet_q   <= tail.next == progress.una && tail.count == retired;
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

  assign flush.valid   = flush_valid_q;
  assign flush.data    = work_q;
  assign refused.valid = refused_valid_q;
  assign refused.data  = refused_q;

  wire live  = post_q.exists && state_q != SQ_RESET;
  wire reads = is_rd(post_q.kind);
  // After an error nothing is answered any more: READs only wait to be flushed.
  wire room  = !full_q && !(shut_q && state_q != SQ_ERR);

  wire out_free = !work_valid_q && !flush_valid_q && !refused_valid_q;
  wire queue_it = post_q.keepalive ? quiet_q && state_q == SQ_RTS : post_q.sound && state_q != SQ_RESET && room;
  wire refuse   = !post_q.keepalive && !queue_it;
  wire counts   = !post_q.keepalive;

  assign done = post_valid_q && recent_q && out_free && !init;

  // Named in the cycle in which the tables are written; what is not taken then waits. A refused work request lists its
  // QP too, which costs one visit without work: whether it was refused (`queue_it`) would lengthen the path into the list.
  wire lists = done && state_q inside {SQ_RTS, SQ_SQD};
  assign work.valid    = work_valid_q || lists;
  assign work.data     = work_valid_q ? work_q : post_q.index;

  assign ring_index       = post_q.index;
  assign ring_count       = tail_q.count;
  assign ring_write       = done && queue_it && counts;
  assign tail_write       = init || (done && queue_it);
  assign tail_write_index = init ? start.index : post_q.index;
  always_comb begin
    if (init) tail_write_data = '{next: xpsn_t'(start.psn), default: '0};
    else begin
      tail_write_data.count = tail_q.count + sq_count_t'(counts);
      tail_write_data.rd    = tail_q.rd + rd_count_t'(counts && reads);
      tail_write_data.probe = post_q.keepalive;
      tail_write_data.next  = tail_q.next + xpsn_t'(post_q.packets);
    end
  end

  always_comb begin
    ring_send = '{
        kind: post_q.kind,
        solicited: post_q.request.solicited,
        fence: post_q.request.fence,
        gap: tail_q.probe,
        rd: tail_q.rd,
        first: tail_q.next,
        local_addr: post_q.request.local_addr,
        length: post_q.request.length,
        remote_addr: post_q.request.remote_addr,
        rkey: post_q.request.rkey,
        word: post_q.request.imm_data
    };
    if (post_q.kind == SQ_READ) ring_send.word = 32'(post_q.packets);
    if (is_atomic(post_q.kind)) {ring_send.length, ring_send.word} = post_q.request.swap_add;
  end
  assign ring_done = '{
          kind: post_q.kind,
          signaled: post_q.request.signaled,
          wr_id: post_q.request.wr_id,
          past: tail_write_data.next
      };
  assign rd_write = ring_write && reads;
  assign rd_count = tail_q.rd;
  assign ring_rd = '{
          atomic: is_atomic(post_q.kind),
          first: tail_q.next,
          addr: post_q.request.local_addr,
          last: post_q.last,
          tail: post_q.tail
      };
  assign ring_compare = post_q.request.compare;

  assign keepalive_sent = done && queue_it && post_q.keepalive;
  assign engaged        = (in_valid_q && in_index_q == watch) || (counted_valid_q && counted_q.index == watch)
      || (post_valid_q && post_q.index == watch)
      || ((work_valid_q || flush_valid_q || refused_valid_q) && work_q == watch);
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
      flush_valid_q   <= 1'b0;
      refused_valid_q <= 1'b0;
    end else begin
      work_valid_q <= work.valid && !work.ready;
      if (out_free || flush.ready) flush_valid_q <= done && queue_it && state_q == SQ_ERR;
      if (out_free || refused.ready) refused_valid_q <= done && refuse;
    end
  end
endmodule
