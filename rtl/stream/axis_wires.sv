// SPDX-License-Identifier: Apache-2.0

// A stream joined to another. Wires only: for arrays of interfaces, whose elements cannot be connected one by one.
module axis_wires (
    axis_if.sink   in,
    axis_if.source out
);
  assign out.tvalid = in.tvalid;
  assign out.tdata  = in.tdata;
  assign out.tkeep  = in.tkeep;
  assign out.tlast  = in.tlast;
  assign out.tuser  = in.tuser;
  assign in.tready  = out.tready;
endmodule
