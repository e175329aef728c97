// SPDX-License-Identifier: Apache-2.0

// A stream of beats, as axis_to_stream makes it, as a packet stream. Wires only.
module stream_to_axis (
    stream_if.sink in,     // logic [DATA_W + DATA_W/8 + 1:0]
    axis_if.source out
);
  assign {out.tuser, out.tlast, out.tkeep, out.tdata} = in.data;
  assign out.tvalid = in.valid;
  assign in.ready   = out.tready;
endmodule
