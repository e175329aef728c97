// SPDX-License-Identifier: Apache-2.0

// Reports when the requests, or the acknowledgements, that were inside roce_tx at the pulse on `flush_requests` or `flush_acks` have left:
// they are selected, the payload of all frames selected by then has passed, and these frames have passed the header pipeline.
//
// `flushed` is low from the pulse on, for at least 6 cycles. A pulse is allowed only while `flushed`.
module roce_tx_flush
  import roce_tx_pkg::*;
(
    input  logic       clk,
    input  logic       rst,
    input  logic       flush_requests,
    input  logic       flush_acks,
    input  logic       ack_waits,        // an acknowledgement is offered,
    input  logic       ack_taken,        // enters the queue,
    input  logic       ack_chosen,       // leaves the queue
    input  tx_count_t  requests,         // requests in their queue
    input  logic       request_taken,    // a request enters the queue,
    input  logic       request_chosen,   // leaves the queue
    input  tx_chosen_t ahead,            // frames selected whose payload has not passed
    input  logic       payload_end,      // the payload of one of these has passed
    input  logic       step,             // the header pipeline advances
    input  logic       fault,            // a fault of a request is pending
    output logic       flushed
);
  localparam int unsigned STAGES = 3;       // of the header pipeline
  typedef logic [$clog2(TX_ACKS)+1:0] ack_count_t;

  enum logic [1:0] {
    F_LEFT,
    F_WAITS,                                // some of them are not selected
    F_PAYLOAD,                              // payload of selected frames has not passed
    F_FRAMES                                // selected frames are in the pipeline, or a fault is pending
  } flush_q;
  ack_count_t acks_q, before_q;             // acknowledgements in the queue; packets in the queue that the flush waits for
  logic       of_acks_q;
  tx_chosen_t passing_q;
  logic [1:0] steps_q;
  wire        gone = of_acks_q ? ack_chosen : request_chosen;
  assign flushed = flush_q == F_LEFT && !flush_requests && !flush_acks;

  always_ff @(posedge clk) begin
    if (rst) acks_q <= '0;
    else acks_q <= acks_q + ack_count_t'(ack_taken) - ack_count_t'(ack_chosen);

    if (flush_requests || flush_acks) begin
      of_acks_q <= flush_acks;
      // An acknowledgement offered while the queue is full is included: it is the next to enter.
      before_q  <= flush_acks ? acks_q + ack_count_t'(ack_waits) - ack_count_t'(ack_chosen)
          : ack_count_t'(requests) + ack_count_t'(request_taken) - ack_count_t'(request_chosen);
    end else if (gone) before_q <= before_q - 1'b1;
    if (flush_q == F_WAITS) passing_q <= ahead - tx_chosen_t'(payload_end);
    else if (payload_end) passing_q <= passing_q - 1'b1;
    if (flush_q != F_FRAMES) steps_q <= 2'(STAGES);
    else if (step && steps_q != '0) steps_q <= steps_q - 1'b1;

    if (rst) flush_q <= F_LEFT;
    else begin
      unique case (flush_q)
        F_WAITS:   if (before_q == '0) flush_q <= of_acks_q ? F_FRAMES : F_PAYLOAD;
        F_PAYLOAD: if (passing_q == '0) flush_q <= F_FRAMES;
        F_FRAMES:  if (steps_q == '0 && !fault) flush_q <= F_LEFT;
        default:   ;
      endcase
      if (flush_requests || flush_acks) flush_q <= F_WAITS;
    end
  end
endmodule
