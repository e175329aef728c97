// SPDX-License-Identifier: Apache-2.0

// In place of mdns_responder in a device without discovery: no query is admitted, nothing is sent. A message that comes all the same is
// taken and forgotten. Combinational.
module mdns_no_responder
  import services_pkg::*;
  import mdns_pkg::*;
(
    output logic         admitted,       // the ports of mdns_responder
    stream_if.sink       message,
    stream_if.sink       words,
    stream_if.source     response,
    stream_if.source     response_words,
    output mdns_events_t events,
    output logic         idle
);
  assign admitted             = 1'b0;
  assign message.ready        = 1'b1;
  assign words.ready          = 1'b1;
  assign response.valid       = 1'b0;
  assign response.data        = '0;
  assign response_words.valid = 1'b0;
  assign response_words.data  = '0;
  assign events               = '0;
  assign idle                 = !message.valid && !words.valid;

  logic unused_ok;
  assign unused_ok = &{1'b0, message.data, words.data, response.ready, response_words.ready};
endmodule
