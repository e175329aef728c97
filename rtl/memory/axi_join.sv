// SPDX-License-Identifier: Apache-2.0

// One port from the read channels of one master and the write channels of another. Wires only.
module axi_join (
    axi_if.slave  reader,   // its write channels must be unused
    axi_if.slave  writer,   // its read channels must be unused
    axi_if.master out
);
  assign out.arvalid    = reader.arvalid;
  assign out.araddr     = reader.araddr;
  assign out.arid       = reader.arid;
  assign out.arlen      = reader.arlen;
  assign reader.arready = out.arready;
  assign reader.rvalid  = out.rvalid;
  assign reader.rdata   = out.rdata;
  assign reader.rid     = out.rid;
  assign reader.rresp   = out.rresp;
  assign reader.rlast   = out.rlast;
  assign out.rready     = reader.rready;

  assign out.awvalid    = writer.awvalid;
  assign out.awaddr     = writer.awaddr;
  assign out.awid       = writer.awid;
  assign out.awlen      = writer.awlen;
  assign writer.awready = out.awready;
  assign out.wvalid     = writer.wvalid;
  assign out.wdata      = writer.wdata;
  assign out.wstrb      = writer.wstrb;
  assign out.wlast      = writer.wlast;
  assign writer.wready  = out.wready;
  assign writer.bvalid  = out.bvalid;
  assign writer.bid     = out.bid;
  assign writer.bresp   = out.bresp;
  assign out.bready     = writer.bready;

  assign reader.awready = 1'b0;
  assign reader.wready  = 1'b0;
  assign reader.bvalid  = 1'b0;
  assign reader.bid     = '0;
  assign reader.bresp   = '0;
  assign writer.arready = 1'b0;
  assign writer.rvalid  = 1'b0;
  assign writer.rdata   = '0;
  assign writer.rid     = '0;
  assign writer.rresp   = '0;
  assign writer.rlast   = 1'b0;
endmodule
