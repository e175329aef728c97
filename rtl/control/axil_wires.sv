// SPDX-License-Identifier: Apache-2.0

// A master joined to a slave. Wires only: for arrays of interfaces, whose elements cannot be connected one by one.
module axil_wires (
    axil_if.slave  in,
    axil_if.master out
);
  assign out.awaddr  = in.awaddr;
  assign out.awvalid = in.awvalid;
  assign in.awready  = out.awready;
  assign out.wdata   = in.wdata;
  assign out.wstrb   = in.wstrb;
  assign out.wvalid  = in.wvalid;
  assign in.wready   = out.wready;
  assign in.bresp    = out.bresp;
  assign in.bvalid   = out.bvalid;
  assign out.bready  = in.bready;
  assign out.araddr  = in.araddr;
  assign out.arvalid = in.arvalid;
  assign in.arready  = out.arready;
  assign in.rdata    = out.rdata;
  assign in.rresp    = out.rresp;
  assign in.rvalid   = out.rvalid;
  assign out.rready  = in.rready;
endmodule
