// SPDX-License-Identifier: Apache-2.0

// Received messages to the service that takes them: the record, and then its words, go to the output that `service` names. One message at a
// time: a service that stops holds up the messages behind, so each takes its own in a bounded time. No latency; a cycle between two
// messages.
module service_steer
  import services_pkg::*;
(
    input logic      clk,
    input logic      rst,
    stream_if.sink   message,                // service_rx_t
    stream_if.sink   words,                  // service_word_t
    stream_if.source to[SERVICES],           // service_rx_t
    stream_if.source to_words[SERVICES]      // service_word_t
);
  service_rx_t   head;
  service_word_t word;
  service_e      to_q;
  logic          busy_q;                     // its words pass
  logic [SERVICES-1:0] ready, words_ready;
  assign head = message.data;
  assign word = words.data;

  for (genvar i = 0; i < SERVICES; i++) begin : g_to
    assign to[i].valid       = message.valid && !busy_q && head.service == service_e'(i);
    assign to[i].data        = head;
    assign ready[i]          = to[i].ready && head.service == service_e'(i);
    assign to_words[i].valid = words.valid && busy_q && to_q == service_e'(i);
    assign to_words[i].data  = word;
    assign words_ready[i]    = to_words[i].ready && to_q == service_e'(i);
  end
  assign message.ready = !busy_q && |ready;
  assign words.ready   = busy_q && |words_ready;

  always_ff @(posedge clk) begin
    if (rst) busy_q <= 1'b0;
    else if (!busy_q) busy_q <= message.valid && message.ready;
    else if (words.valid && words.ready) busy_q <= !word.last;
    if (!busy_q) to_q <= head.service;
  end
endmodule
