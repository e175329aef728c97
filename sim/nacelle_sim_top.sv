// SPDX-License-Identifier: Apache-2.0

// `nacelle_shell` with plain ports, for the C++ side of the simulated device. No logic of its own. What its sensors give is always known, and
// simulated.
module nacelle_sim_top
  import shell_pkg::*;
  import device_pkg::DATA_W;
  import device_pkg::MEMORIES;
  import device_pkg::SOCKETS;
  import memory_pkg::*;
  import sensors_pkg::*;
#(
    localparam int unsigned ID_W = dram_id_w(MEMORIES),
    localparam int unsigned DRAM_W = dram_data_w(DATA_W)
) (
    input logic clk,
    input logic rst,

    input  logic [31:0] time_skip,  // cycles that pass on top of this one
    output logic        idle,
    output logic [SOCKETS-1:0] busy,

    input  logic               sensor_valid,
    output logic               sensor_ready,
    input  sensor_t            sensor_number,
    input  logic signed [31:0] sensor_value,

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

    output logic [ADDR_W-1:0]    dram_awaddr[MEMORIES],
    output logic [ID_W-1:0] dram_awid[MEMORIES],
    output logic [7:0]           dram_awlen[MEMORIES],
    output logic                 dram_awvalid[MEMORIES],
    input  logic                 dram_awready[MEMORIES],
    output logic [DRAM_W-1:0]    dram_wdata[MEMORIES],
    output logic [DRAM_W/8-1:0]  dram_wstrb[MEMORIES],
    output logic                 dram_wlast[MEMORIES],
    output logic                 dram_wvalid[MEMORIES],
    input  logic                 dram_wready[MEMORIES],
    input  logic [ID_W-1:0] dram_bid[MEMORIES],
    input  logic [1:0]           dram_bresp[MEMORIES],
    input  logic                 dram_bvalid[MEMORIES],
    output logic                 dram_bready[MEMORIES],
    output logic [ADDR_W-1:0]    dram_araddr[MEMORIES],
    output logic [ID_W-1:0] dram_arid[MEMORIES],
    output logic [7:0]           dram_arlen[MEMORIES],
    output logic                 dram_arvalid[MEMORIES],
    input  logic                 dram_arready[MEMORIES],
    input  logic [DRAM_W-1:0]    dram_rdata[MEMORIES],
    input  logic [ID_W-1:0] dram_rid[MEMORIES],
    input  logic [1:0]           dram_rresp[MEMORIES],
    input  logic                 dram_rlast[MEMORIES],
    input  logic                 dram_rvalid[MEMORIES],
    output logic                 dram_rready[MEMORIES]
);
  axis_if #(.DATA_W(DATA_W)) rx ();
  axis_if #(.DATA_W(DATA_W)) tx ();
  axil_if #(.ADDR_W(20)) bus ();
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DRAM_W), .ID_W(ID_W)) dram[MEMORIES] ();

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

  stream_if #(.T(sensor_reading_t)) sensor_reading ();
  assign sensor_reading.valid = sensor_valid;
  assign sensor_reading.data = '{sensor: sensor_number, known: 1'b1, simulated: 1'b1, value: sensor_value};
  assign sensor_ready = sensor_reading.ready;

  for (genvar i = 0; i < MEMORIES; i++) begin : g_memory
    assign dram_awaddr[i] = dram[i].awaddr;
    assign dram_awid[i] = dram[i].awid;
    assign dram_awlen[i] = dram[i].awlen;
    assign dram_awvalid[i] = dram[i].awvalid;
    assign dram[i].awready = dram_awready[i];
    assign dram_wdata[i] = dram[i].wdata;
    assign dram_wstrb[i] = dram[i].wstrb;
    assign dram_wlast[i] = dram[i].wlast;
    assign dram_wvalid[i] = dram[i].wvalid;
    assign dram[i].wready = dram_wready[i];
    assign dram[i].bid = dram_bid[i];
    assign dram[i].bresp = dram_bresp[i];
    assign dram[i].bvalid = dram_bvalid[i];
    assign dram_bready[i] = dram[i].bready;
    assign dram_araddr[i] = dram[i].araddr;
    assign dram_arid[i] = dram[i].arid;
    assign dram_arlen[i] = dram[i].arlen;
    assign dram_arvalid[i] = dram[i].arvalid;
    assign dram[i].arready = dram_arready[i];
    assign dram[i].rdata = dram_rdata[i];
    assign dram[i].rid = dram_rid[i];
    assign dram[i].rresp = dram_rresp[i];
    assign dram[i].rlast = dram_rlast[i];
    assign dram[i].rvalid = dram_rvalid[i];
    assign dram_rready[i] = dram[i].rready;
  end

  nacelle_shell shell (
      .clk,
      .rst,
      .time_skip,
      .chip_id('0),
      .idle,
      .busy,
      .rx,
      .tx,
      .bus,
      .sensor_reading,
      .dram
  );
endmodule
