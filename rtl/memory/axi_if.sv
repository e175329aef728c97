// SPDX-License-Identifier: Apache-2.0

// AXI4 (AMBA IHI 0022) as Nacelle uses it: INCR bursts of full-width beats, no locks, caches, regions or QoS.
// A burst may begin at any byte (unaligned start, A3.4.1); it never crosses 4 KiB. Responses of one ID are in order.
interface axi_if #(
    parameter int unsigned ADDR_W = 64,
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W   = 4
);
  logic [ADDR_W-1:0]   awaddr;
  logic [ID_W-1:0]     awid;
  logic [7:0]          awlen;     // beats - 1
  logic                awvalid;
  logic                awready;

  logic [DATA_W-1:0]   wdata;
  logic [DATA_W/8-1:0] wstrb;
  logic                wlast;
  logic                wvalid;
  logic                wready;

  logic [ID_W-1:0]     bid;
  logic [1:0]          bresp;     // memory_pkg::axi_resp_e
  logic                bvalid;
  logic                bready;

  logic [ADDR_W-1:0]   araddr;
  logic [ID_W-1:0]     arid;
  logic [7:0]          arlen;     // beats - 1
  logic                arvalid;
  logic                arready;

  logic [DATA_W-1:0]   rdata;
  logic [ID_W-1:0]     rid;
  logic [1:0]          rresp;
  logic                rlast;
  logic                rvalid;
  logic                rready;

  modport master(
      output awaddr, awid, awlen, awvalid, input awready,
      output wdata, wstrb, wlast, wvalid, input wready,
      input bid, bresp, bvalid, output bready,
      output araddr, arid, arlen, arvalid, input arready,
      input rdata, rid, rresp, rlast, rvalid, output rready
  );
  modport slave(
      input awaddr, awid, awlen, awvalid, output awready,
      input wdata, wstrb, wlast, wvalid, output wready,
      output bid, bresp, bvalid, input bready,
      input araddr, arid, arlen, arvalid, output arready,
      output rdata, rid, rresp, rlast, rvalid, input rready
  );
endinterface
