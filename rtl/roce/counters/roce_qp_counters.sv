// SPDX-License-Identifier: Apache-2.0

// Counters of each QP (docs/reference/management.md), cleared when it is set up.
//
// Each unit that reports events has its own bank of counters, so one event of each unit is counted in every cycle. A view
// is answered when each bank has had a cycle without an event: a bank that counts frames has one in any two frames, since
// a frame takes longer on the wire than a cycle (84 bytes, a beat is 64 at most).
// Latency: an event is counted after 3 cycles; a view takes 6, one at a time.
module roce_qp_counters
  import roce_pkg::*;
  import roce_counters_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input  logic          clk,
    input  logic          rst,
    input  logic          clear,
    input  qp_index_t     clear_index,
    input  qp_sent_t      sent,
    input  qp_requested_t requested,
    input  qp_responded_t responded,
    input  qp_retried_t   retried,
    stream_if.sink        view,        // qp_index_t
    stream_if.source      viewed       // qp_counters_t
);
  localparam int unsigned BANKS = 4;

  logic [BANKS-1:0] looking_q, looked;
  logic             viewing_q;
  qp_index_t        view_index_q;
  qp_counters_t     counters;

  function automatic qp_bytes_t only(logic when, qp_bytes_t bytes);
    return when ? bytes : '0;
  endfunction

  roce_qp_counter_bank #(.QPS(QPS), .COUNTERS(8)) sent_bank (
      .clk, .rst, .clear, .clear_index,
      .count(sent.pkts || sent.responses || sent.np_cnp_sent), .index(sent.index),
      .add({
          16'(sent.pkts), only(sent.pkts, sent.bytes), 16'(sent.responses), only(sent.responses, sent.bytes),
          16'(sent.packet_retransmit), 16'(sent.sent_nak), 16'(sent.send_rnr_err), 16'(sent.np_cnp_sent)
      }),
      .look(looking_q[0]), .look_index(view_index_q), .looked(looked[0]),
      .row({
          counters[QPC_SENT_PKTS], counters[QPC_SENT_BYTES], counters[QPC_SENT_RESPONSES], counters[QPC_SENT_RESPONSE_BYTES],
          counters[QPC_PACKET_RETRANSMIT], counters[QPC_SENT_NAK], counters[QPC_SEND_RNR_ERR], counters[QPC_NP_CNP_SENT]
      })
  );

  roce_qp_counter_bank #(.QPS(QPS), .COUNTERS(5)) requested_bank (
      .clk, .rst, .clear, .clear_index,
      .count(requested.pkts || requested.rp_cnp_handled), .index(requested.index),
      .add({
          16'(requested.pkts), only(requested.pkts, requested.bytes), 16'(requested.duplicate_request),
          16'(requested.out_of_seq_request), 16'(requested.rp_cnp_handled)
      }),
      .look(looking_q[1]), .look_index(view_index_q), .looked(looked[1]),
      .row({
          counters[QPC_RCVD_PKTS], counters[QPC_RCVD_BYTES], counters[QPC_DUPLICATE_REQUEST], counters[QPC_OUT_OF_SEQ_REQUEST],
          counters[QPC_RP_CNP_HANDLED]
      })
  );

  roce_qp_counter_bank #(.QPS(QPS), .COUNTERS(2)) responded_bank (
      .clk, .rst, .clear, .clear_index,
      .count(responded.responses), .index(responded.index), .add({16'(responded.responses), responded.bytes}),
      .look(looking_q[2]), .look_index(view_index_q), .looked(looked[2]),
      .row({counters[QPC_RCVD_RESPONSES], counters[QPC_RCVD_RESPONSE_BYTES]})
  );

  roce_qp_counter_bank #(.QPS(QPS), .COUNTERS(3), .ADD_W(1)) retried_bank (
      .clk, .rst, .clear, .clear_index,
      .count(retried.local_ack_timeout_err || retried.rnr_nak_retry_err || retried.packet_seq_err), .index(retried.index),
      .add({retried.local_ack_timeout_err, retried.rnr_nak_retry_err, retried.packet_seq_err}),
      .look(looking_q[3]), .look_index(view_index_q), .looked(looked[3]),
      .row({counters[QPC_LOCAL_ACK_TIMEOUT_ERR], counters[QPC_RNR_NAK_RETRY_ERR], counters[QPC_PACKET_SEQ_ERR]})
  );

  assign view.ready   = !viewing_q;
  assign viewed.valid = viewing_q && looking_q == '0;
  assign viewed.data  = counters;

  always_ff @(posedge clk) begin
    if (view.ready) view_index_q <= view.data;
    if (rst) begin
      viewing_q <= 1'b0;
      looking_q <= '0;
    end else if (!viewing_q) begin
      viewing_q <= view.valid;
      looking_q <= {BANKS{view.valid}};
    end else begin
      looking_q <= looking_q & ~looked;
      if (viewed.valid && viewed.ready) viewing_q <= 1'b0;
    end
  end
endmodule
