// SPDX-License-Identifier: Apache-2.0

// A master joined to a slave. Wires only: for arrays of interfaces, whose elements cannot be connected one by one.
module axi_wires (
    axi_if.slave  in,
    axi_if.master out
);
  assign out.awvalid = in.awvalid;
  assign out.awaddr  = in.awaddr;
  assign out.awid    = in.awid;
  assign out.awlen   = in.awlen;
  assign in.awready  = out.awready;
  assign out.wvalid  = in.wvalid;
  assign out.wdata   = in.wdata;
  assign out.wstrb   = in.wstrb;
  assign out.wlast   = in.wlast;
  assign in.wready   = out.wready;
  assign in.bvalid   = out.bvalid;
  assign in.bid      = out.bid;
  assign in.bresp    = out.bresp;
  assign out.bready  = in.bready;
  assign out.arvalid = in.arvalid;
  assign out.araddr  = in.araddr;
  assign out.arid    = in.arid;
  assign out.arlen   = in.arlen;
  assign in.arready  = out.arready;
  assign in.rvalid   = out.rvalid;
  assign in.rid      = out.rid;
  assign in.rdata    = out.rdata;
  assign in.rresp    = out.rresp;
  assign in.rlast    = out.rlast;
  assign out.rready  = in.rready;
endmodule
