// SPDX-License-Identifier: Apache-2.0

// Keeps a range of memory for one master of the fabric, behind the mux that numbers them in the high bits of the ID: what others ask for there
// goes to an address that no memory has, and memory answers it as any such (DECERR). A burst does not cross 4 KiB (AMBA IHI 0022, A3.4.1), so
// its first address tells. Wires and a comparison: no cycle.
module axi_fence
  import memory_pkg::*;
#(
    parameter memory_range_t RANGE   = '0,   // whole pages of 4 KiB
    parameter int unsigned   OWNER   = 0,    // number of the master
    parameter int unsigned   INDEX_W = 1,    // bits of the number
    parameter int unsigned   ID_W    = 5     // with the number
) (
    axi_if.slave  in,
    axi_if.master out
);
  // The addresses of no memory.
  localparam addr_t NOWHERE = addr_t'(1) << (ADDR_W - 1);

  function automatic addr_t fenced(addr_t addr, logic [ID_W-1:0] id);
    return in_range(RANGE, addr) && id[ID_W-1-:INDEX_W] != INDEX_W'(OWNER) ? addr | NOWHERE : addr;
  endfunction

  assign out.awaddr  = fenced(in.awaddr, in.awid);
  assign out.awid    = in.awid;
  assign out.awlen   = in.awlen;
  assign out.awvalid = in.awvalid;
  assign in.awready  = out.awready;
  assign out.wdata   = in.wdata;
  assign out.wstrb   = in.wstrb;
  assign out.wlast   = in.wlast;
  assign out.wvalid  = in.wvalid;
  assign in.wready   = out.wready;
  assign in.bid      = out.bid;
  assign in.bresp    = out.bresp;
  assign in.bvalid   = out.bvalid;
  assign out.bready  = in.bready;
  assign out.araddr  = fenced(in.araddr, in.arid);
  assign out.arid    = in.arid;
  assign out.arlen   = in.arlen;
  assign out.arvalid = in.arvalid;
  assign in.arready  = out.arready;
  assign in.rdata    = out.rdata;
  assign in.rid      = out.rid;
  assign in.rresp    = out.rresp;
  assign in.rlast    = out.rlast;
  assign in.rvalid   = out.rvalid;
  assign out.rready  = in.rready;
endmodule
