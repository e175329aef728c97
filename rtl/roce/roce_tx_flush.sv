// SPDX-License-Identifier: Apache-2.0

// Reports when the requests, or the acknowledgements, that were inside roce_tx at the pulse on `flush_requests` or `flush_acks`
// have left: they are chosen, the payload of all frames chosen by then has passed, and these frames have passed the pipeline behind
// the choice.
//
// `flushed` is low from the pulse on, and high again 6 cycles after it at the earliest. A pulse comes only while `flushed`.
module roce_tx_flush
  import roce_tx_pkg::*;
(
    input  logic       clk,
    input  logic       rst,
    input  logic       flush_requests,
    input  logic       flush_acks,
    input  logic       ack_waits,        // an acknowledgement is offered,
    input  logic       ack_taken,        // goes into the queue,
    input  logic       ack_chosen,       // leaves it
    input  tx_count_t  requests,         // in their queue
    input  logic       request_taken,    // one goes into it,
    input  logic       request_chosen,   // leaves it
    input  tx_chosen_t ahead,            // frames chosen whose payload has not passed
    input  logic       payload_end,      // one of these has passed
    input  logic       step,             // the pipeline of the headers moves
    input  logic       fault,            // a fault of a request has not been taken
    output logic       flushed
);
  localparam int unsigned STAGES = 3;       // of frames, behind their choice
  typedef logic [$clog2(TX_ACKS)+1:0] ack_count_t;

  enum logic [1:0] {
    F_LEFT,
    F_WAITS,                                // some of them are not chosen
    F_PAYLOAD,                              // some payload of what is chosen has not passed
    F_FRAMES                                // some frames of what is chosen are in the pipeline, or a fault was not taken
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
      // One that is offered while the queue is full counts too: it is the next to enter.
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
