// SPDX-License-Identifier: Apache-2.0

// The services' messages to send, one after another: a record, and then its words, of the service whose turn it is, round robin. A cycle from
// an offer to its record, a cycle between two messages. When the output stops, so do the services.
module service_merge
  import services_pkg::*;
#(
    parameter int unsigned N = SERVICES
) (
    input logic      clk,
    input logic      rst,
    stream_if.sink   from[N],                // service_tx_t
    stream_if.sink   from_words[N],          // service_word_t
    stream_if.source message,                // service_tx_t
    stream_if.source words                   // service_word_t
);
  typedef logic [N-1:0] set_t;
  set_t valid, turn, owner_q;                // owner_q: whose message passes
  set_t record_valid, words_valid;
  logic told_q;                              // its record has passed
  service_tx_t   record[N];
  service_word_t word[N];
  wire busy = owner_q != '0;

  for (genvar i = 0; i < N; i++) begin : g_from
    assign valid[i]            = from[i].valid;
    assign record[i]           = from[i].data;
    assign from[i].ready       = owner_q[i] && !told_q && message.ready;
    assign record_valid[i]     = from[i].valid && owner_q[i] && !told_q;
    assign words_valid[i]      = from_words[i].valid && owner_q[i] && told_q;
    assign word[i]             = from_words[i].data;
    assign from_words[i].ready = owner_q[i] && told_q && words.ready;
  end
  round_robin #(.N(N)) turns (.clk, .rst, .request(valid), .take(!busy), .grant(turn));

  service_tx_t   chosen;
  service_word_t passing;
  always_comb begin
    chosen  = '0;
    passing = '0;
    for (int unsigned i = 0; i < N; i++) begin
      if (owner_q[i]) chosen |= record[i];
      if (owner_q[i]) passing |= word[i];
    end
  end
  assign message.valid = |record_valid;
  assign message.data  = chosen;
  assign words.valid   = |words_valid;
  assign words.data    = passing;

  always_ff @(posedge clk) begin
    if (!busy) begin
      owner_q <= turn;
      told_q  <= 1'b0;
    end else if (!told_q) told_q <= message.valid && message.ready;
    else if (words.valid && words.ready && passing.last) owner_q <= '0;
    if (rst) owner_q <= '0;
  end
endmodule
