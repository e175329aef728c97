// SPDX-License-Identifier: Apache-2.0

// A packet stream as a stream of beats, for the cells that take streams: a beat is {tuser, tlast, tkeep, tdata}, stream_to_axis takes it
// apart. Wires only.
module axis_to_stream (
    axis_if.sink     in,
    stream_if.source out   // logic [DATA_W + DATA_W/8 + 1:0]
);
  assign out.valid = in.tvalid;
  assign out.data  = {in.tuser, in.tlast, in.tkeep, in.tdata};
  assign in.tready = out.ready;
endmodule
