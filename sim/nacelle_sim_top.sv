// SPDX-License-Identifier: Apache-2.0

// `nacelle_shell` with plain ports, for the C++ side of the simulated device. No logic of its own.
module nacelle_sim_top
  import shell_pkg::*;
  import memory_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned QPS = DEFAULT_QPS
) (
    input logic clk,
    input logic rst,

    input  logic [31:0] time_skip,  // cycles that pass on top of this one
    output logic        idle,

    input  logic [DATA_W-1:0]   rx_tdata,
    input  logic [DATA_W/8-1:0] rx_tkeep,
    input  logic                rx_tlast,
    input  logic                rx_tuser,
    input  logic                rx_tvalid,
    output logic                rx_tready,

    output logic [DATA_W-1:0]   tx_tdata,
    output logic [DATA_W/8-1:0] tx_tkeep,
    output logic                tx_tlast,
    output logic                tx_tuser,
    output logic                tx_tvalid,
    input  logic                tx_tready,

    input  logic [19:0] bus_awaddr,
    input  logic        bus_awvalid,
    output logic        bus_awready,
    input  logic [31:0] bus_wdata,
    input  logic        bus_wvalid,
    output logic        bus_wready,
    output logic [ 1:0] bus_bresp,
    output logic        bus_bvalid,
    input  logic        bus_bready,
    input  logic [19:0] bus_araddr,
    input  logic        bus_arvalid,
    output logic        bus_arready,
    output logic [31:0] bus_rdata,
    output logic [ 1:0] bus_rresp,
    output logic        bus_rvalid,
    input  logic        bus_rready,

    output logic [ADDR_W-1:0]    dram_awaddr,
    output logic [DRAM_ID_W-1:0] dram_awid,
    output logic [7:0]           dram_awlen,
    output logic                 dram_awvalid,
    input  logic                 dram_awready,
    output logic [DATA_W-1:0]    dram_wdata,
    output logic [DATA_W/8-1:0]  dram_wstrb,
    output logic                 dram_wlast,
    output logic                 dram_wvalid,
    input  logic                 dram_wready,
    input  logic [DRAM_ID_W-1:0] dram_bid,
    input  logic [1:0]           dram_bresp,
    input  logic                 dram_bvalid,
    output logic                 dram_bready,
    output logic [ADDR_W-1:0]    dram_araddr,
    output logic [DRAM_ID_W-1:0] dram_arid,
    output logic [7:0]           dram_arlen,
    output logic                 dram_arvalid,
    input  logic                 dram_arready,
    input  logic [DATA_W-1:0]    dram_rdata,
    input  logic [DRAM_ID_W-1:0] dram_rid,
    input  logic [1:0]           dram_rresp,
    input  logic                 dram_rlast,
    input  logic                 dram_rvalid,
    output logic                 dram_rready
);
  axis_if #(.DATA_W(DATA_W)) rx ();
  axis_if #(.DATA_W(DATA_W)) tx ();
  axil_if #(.ADDR_W(20)) bus ();
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(DRAM_ID_W)) dram ();

  assign rx.tdata = rx_tdata;
  assign rx.tkeep = rx_tkeep;
  assign rx.tlast = rx_tlast;
  assign rx.tuser = rx_tuser;
  assign rx.tvalid = rx_tvalid;
  assign rx_tready = rx.tready;

  assign tx_tdata = tx.tdata;
  assign tx_tkeep = tx.tkeep;
  assign tx_tlast = tx.tlast;
  assign tx_tuser = tx.tuser;
  assign tx_tvalid = tx.tvalid;
  assign tx.tready = tx_tready;

  assign bus.awaddr = bus_awaddr;
  assign bus.awvalid = bus_awvalid;
  assign bus_awready = bus.awready;
  assign bus.wdata = bus_wdata;
  assign bus.wstrb = '1;
  assign bus.wvalid = bus_wvalid;
  assign bus_wready = bus.wready;
  assign bus_bresp = bus.bresp;
  assign bus_bvalid = bus.bvalid;
  assign bus.bready = bus_bready;
  assign bus.araddr = bus_araddr;
  assign bus.arvalid = bus_arvalid;
  assign bus_arready = bus.arready;
  assign bus_rdata = bus.rdata;
  assign bus_rresp = bus.rresp;
  assign bus_rvalid = bus.rvalid;
  assign bus.rready = bus_rready;

  assign dram_awaddr = dram.awaddr;
  assign dram_awid = dram.awid;
  assign dram_awlen = dram.awlen;
  assign dram_awvalid = dram.awvalid;
  assign dram.awready = dram_awready;
  assign dram_wdata = dram.wdata;
  assign dram_wstrb = dram.wstrb;
  assign dram_wlast = dram.wlast;
  assign dram_wvalid = dram.wvalid;
  assign dram.wready = dram_wready;
  assign dram.bid = dram_bid;
  assign dram.bresp = dram_bresp;
  assign dram.bvalid = dram_bvalid;
  assign dram_bready = dram.bready;
  assign dram_araddr = dram.araddr;
  assign dram_arid = dram.arid;
  assign dram_arlen = dram.arlen;
  assign dram_arvalid = dram.arvalid;
  assign dram.arready = dram_arready;
  assign dram.rdata = dram_rdata;
  assign dram.rid = dram_rid;
  assign dram.rresp = dram_rresp;
  assign dram.rlast = dram_rlast;
  assign dram.rvalid = dram_rvalid;
  assign dram_rready = dram.rready;

  nacelle_shell #(
      .DATA_W(DATA_W),
      .QPS(QPS)
  ) shell (
      .clk,
      .rst,
      .time_skip,
      .idle,
      .rx,
      .tx,
      .bus,
      .dram
  );
endmodule
