// SPDX-License-Identifier: Apache-2.0

// The receive queue of each QP: a ring of RQ_DEPTH in RAM. This module posts; the responder consumes by advancing the QP's rq_head (each of
// the two pointers has one writer).
//
// One receive every 2 cycles, visible to packets 3 cycles later. A receive that cannot be posted is returned on `reject` and completes with
// WC_GENERAL_ERR: the ring is full, the QP does not exist or is in RESET, or the work request is not a WR_RECV. A receive whose L_Key does
// not permit it is posted like any other; the QP enters the error state when a message with data arrives for it. A receive for a QP in the
// error state is posted behind those already there, and `kick` requests that it be flushed. While `reject` or `kick` is stalled, posting
// stalls.
module roce_qp_rx_queue
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_rx_pkg::*;
#(
    parameter int unsigned QPS      = 16,
    parameter int unsigned RQ_DEPTH = 4    // power of two, 2..128
) (
    input  logic        clk,
    input  logic        rst,
    stream_if.sink      post,              // rx_post_t
    stream_if.source    reject,            // rx_reject_t
    stream_if.source    kick,              // qpn_t
    output logic        idle,

    output qp_index_t   view_slot,         // the QP's state and head, in the same cycle
    input  qp_rx_view_t view,

    input  qp_index_t   tail_slot,         // the QP's tail, in the same cycle
    output rq_pointer_t tail,
    input  qp_index_t   read_slot,         // the receive at `read_head`, one cycle later
    input  rq_pointer_t read_head,
    output receive_t    receive
);
  localparam int unsigned SLOT_W  = $clog2(QPS);
  localparam int unsigned PLACE_W = $clog2(RQ_DEPTH);
  typedef logic [SLOT_W-1:0]         slot_t;
  typedef logic [PLACE_W-1:0]        place_t;
  typedef logic [SLOT_W+PLACE_W-1:0] ring_addr_t;

  if (RQ_DEPTH < 2 || RQ_DEPTH > 128 || 2 ** PLACE_W != RQ_DEPTH) begin : g_bad
    $fatal(1, "roce_qp_rx_queue: RQ_DEPTH must be a power of two between 2 and 128");
  end

  (* ram_style = "distributed" *) logic [$bits(rq_pointer_t)-1:0] tails[QPS];

  // ---- consume ----
  assign tail = tails[slot_t'(tail_slot)];

  // ---- post: read the QP's state, then decide ----
  rdma_wqe_t   wqe_q;
  logic        looks_q, judges_q, exists_q;
  local_access_t access_q;
  qp_index_t   slot_q;
  qp_rx_view_t view_q;
  rq_pointer_t posted_q;                   // the QP's tail
  wc_status_e  status;

  rx_post_t    came;
  rdma_wqe_t   offered;
  qpn_t        offered_index;
  assign came          = post.data;
  assign offered       = came.wqe;
  assign offered_index = qp_index(offered.qpn);
  assign view_slot     = slot_q;

  always_comb begin
    if (!exists_q || wqe_q.opcode != WR_RECV || view_q.state == QPS_RESET) status = WC_GENERAL_ERR;
    else if (posted_q - view_q.rq_head == rq_pointer_t'(RQ_DEPTH)) status = WC_GENERAL_ERR;
    else status = WC_SUCCESS;
  end

  stream_if #(.T(rx_reject_t)) refused ();
  stream_if #(.T(qpn_t)) late ();
  stream_slice #(.T(rx_reject_t)) slice (.clk, .rst, .in(refused), .out(reject));
  stream_slice #(.T(qpn_t)) kick_slice (.clk, .rst, .in(late), .out(kick));

  // The QP's state is read only when both outputs can take the result, so that it is not stale when it is used.
  wire room   = refused.ready && late.ready;
  wire accept = judges_q && status == WC_SUCCESS;

  assign refused.valid = judges_q && status != WC_SUCCESS;
  assign refused.data  = '{qpn: wqe_q.qpn, wr_id: wqe_q.wr_id};
  assign late.valid    = accept && view_q.state == QPS_ERR;
  assign late.data     = wqe_q.qpn;
  assign post.ready    = !looks_q;
  assign idle          = !post.valid && !looks_q && !judges_q && !reject.valid && !kick.valid;

  ram_1w1r #(.T(receive_t), .WORDS(2 ** (SLOT_W + PLACE_W))) rings (
      .clk,
      .write(accept),
      .write_at(ring_addr_t'({slot_t'(slot_q), place_t'(posted_q)})),
      .write_data('{addr: wqe_q.local_addr, length: wqe_q.length, wr_id: wqe_q.wr_id, lkey: wqe_q.lkey, access: access_q}),
      .read(1'b1),
      .read_at(ring_addr_t'({slot_t'(read_slot), place_t'(read_head)})),
      .read_data(receive)
  );
  always_ff @(posedge clk) if (accept) tails[slot_t'(slot_q)] <= posted_q + 1'b1;

  always_ff @(posedge clk) begin
    view_q   <= view;
    posted_q <= tails[slot_t'(slot_q)];
    if (post.ready && post.valid) begin
      access_q <= came.access;
      wqe_q    <= offered;
      slot_q   <= qp_index_t'(offered_index);
      exists_q <= offered_index < qpn_t'(QPS);
    end
    if (rst) {looks_q, judges_q} <= '0;
    else begin
      looks_q  <= post.ready ? post.valid : !room;
      judges_q <= looks_q && room;
    end
  end
endmodule
