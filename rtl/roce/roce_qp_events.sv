// SPDX-License-Identifier: Apache-2.0

// Merges the events of the receive side and of the requester into one stream. The first fatal event of a QP is forwarded, and the
// QP is output on `failed`; later ones, and those of a QP whose error state was commanded, are discarded.
//
// While `hold` is high no event passes, and the mark of QP `mark_index` is written: 1 if its fatal events are discarded.
// One event a cycle, latency 2 cycles. Stalls when `qp_event` is not ready. Receive events enter through a slice, so the receive
// side is not stalled by `hold`.
module roce_qp_events
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input  logic      clk,
    input  logic      rst,
    input  logic      hold,
    input  qp_index_t mark_index,
    input  logic      mark,
    stream_if.sink    receive_event,     // qp_event_t
    stream_if.sink    requester_event,   // qp_event_t
    stream_if.source  qp_event,          // qp_event_t
    stream_if.source  failed,            // qp_index_t
    output logic      idle               // no event pending, except on `failed`
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  typedef logic [INDEX_W-1:0] index_t;
  typedef struct packed {
    index_t    at;
    qp_event_t event_;
  } side_event_t;

  stream_if #(.T(qp_event_t)) received ();
  stream_if #(.T(side_event_t)) side[2] ();
  stream_if #(.T(side_event_t)) merged ();
  stream_if #(.T(qp_event_t)) kept ();
  stream_if #(.T(qp_index_t)) failing[1] ();
  logic        kept_empty;
  side_event_t told;
  qp_event_t   came_receive, came_requester;

  stream_slice #(.T(qp_event_t)) receive_slice (.clk, .rst, .in(receive_event), .out(received));

  assign side[0].valid         = received.valid;
  assign came_receive          = received.data;
  assign side[0].data          = '{at: index_t'(sq_index(came_receive.qpn)), event_: came_receive};
  assign received.ready        = side[0].ready;
  assign side[1].valid         = requester_event.valid;
  assign came_requester        = requester_event.data;
  assign side[1].data          = '{at: index_t'(sq_index(came_requester.qpn)), event_: came_requester};
  assign requester_event.ready = side[1].ready;

  stream_arbiter #(.T(side_event_t), .N(2)) sides (.clk, .rst, .in(side), .last('1), .out(merged));

  // A fatal event of this QP was forwarded, or its error state was commanded.
  (* ram_style = "distributed" *) logic fatals[QPS];

  assign told = merged.data;
  wire fatal  = told.event_.kind == EVENT_QP_FATAL;
  wire news   = !(fatal && fatals[told.at]);
  assign kept.valid   = merged.valid && news && !hold;
  assign kept.data    = told.event_;
  assign merged.ready = kept.ready && !hold;
  always_ff @(posedge clk) begin
    if (hold) fatals[index_t'(mark_index)] <= mark;
    else if (failing[0].valid) fatals[told.at] <= 1'b1;
  end
  assign failing[0].valid = kept.valid && kept.ready && fatal;
  assign failing[0].data  = qp_index_t'(told.at);

  stream_fifo #(.T(qp_event_t), .DEPTH(4)) events (.clk, .rst, .in(kept), .out(qp_event), .empty(kept_empty));
  roce_qp_list #(.QPS(QPS), .N(1)) fails (.clk, .rst, .in(failing), .out(failed), .empty());

  assign idle = kept_empty && !merged.valid && !received.valid && !receive_event.valid && !requester_event.valid;

  always_ff @(posedge clk) if (!rst) assert (!failing[0].valid || failing[0].ready);
endmodule
