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
  import pcie_pkg::*;
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

    input  logic                link_up,
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

    // A slot: what it says of each function, sizes as encoded in Device Control; headers in words as sim/tlp_port.h has them.
    input  logic [15:0]          slot_id[FUNCTIONS_MAX],
    input  logic [ 2:0]          slot_mps[FUNCTIONS_MAX],
    input  logic [ 2:0]          slot_mrrs[FUNCTIONS_MAX],
    input  logic                 slot_rcb_128[FUNCTIONS_MAX],
    input  logic                 slot_extended_tags[FUNCTIONS_MAX],
    input  logic                 slot_memory_space[FUNCTIONS_MAX],
    input  logic                 slot_bus_master[FUNCTIONS_MAX],
    input  logic                 slot_msix_enable[FUNCTIONS_MAX],
    input  logic                 slot_msix_mask[FUNCTIONS_MAX],
    input  logic                 slot_flr_request[FUNCTIONS_MAX],
    output logic                 slot_flr_done[FUNCTIONS_MAX],
    input  logic [ 2:0]          slot_credits_endless,   // non-posted headers, posted data, posted headers
    input  logic [11:0]          slot_posted_headers,
    input  logic [15:0]          slot_posted_data,
    input  logic [11:0]          slot_non_posted_headers,
    input  logic [63:0]          slot_rx_header[3],
    input  logic                 slot_rx_header_valid,
    output logic                 slot_rx_header_ready,
    input  logic [DATA_W-1:0]    slot_rx_tdata,
    input  logic [DATA_W/8-1:0]  slot_rx_tkeep,
    input  logic                 slot_rx_tlast,
    input  logic                 slot_rx_tvalid,
    output logic                 slot_rx_tready,
    output logic [63:0]          slot_tx_header[3],
    output logic                 slot_tx_header_valid,
    input  logic                 slot_tx_header_ready,
    output logic [DATA_W-1:0]    slot_tx_tdata,
    output logic [DATA_W/8-1:0]  slot_tx_tkeep,
    output logic                 slot_tx_tlast,
    output logic                 slot_tx_tvalid,
    input  logic                 slot_tx_tready,

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

  slot_if #(.DATA_W(DATA_W)) slot ();
  wire [2:0][63:0] from_host = {slot_rx_header[2], slot_rx_header[1], slot_rx_header[0]};
  wire [2:0][63:0] to_host = words_of(slot.tx_header);
  for (genvar i = 0; i < FUNCTIONS_MAX; i++) begin : g_function
    assign slot.settings[i] = '{
        id: slot_id[i],
        mps: slot_mps[i],
        mrrs: slot_mrrs[i],
        rcb_128: slot_rcb_128[i],
        extended_tags: slot_extended_tags[i],
        memory_space: slot_memory_space[i],
        bus_master: slot_bus_master[i],
        msix_enable: slot_msix_enable[i],
        msix_mask: slot_msix_mask[i]
    };
    assign slot.flr_request[i] = slot_flr_request[i];
    assign slot_flr_done[i]    = slot.flr_done[i];
  end
  assign slot.credits = '{
      posted: '{
          headers_endless: slot_credits_endless[0], data_endless: slot_credits_endless[1], headers: slot_posted_headers, data: slot_posted_data
      },
      non_posted: '{headers_endless: slot_credits_endless[2], data_endless: 1'b1, headers: slot_non_posted_headers, data: '0},
      completion: '{headers_endless: 1'b1, data_endless: 1'b1, headers: '0, data: '0}
  };
  assign slot.rx_header       = header_of(from_host);
  assign slot.rx_header_valid = slot_rx_header_valid;
  assign slot_rx_header_ready = slot.rx_header_ready;
  assign slot.rx_tdata        = slot_rx_tdata;
  assign slot.rx_tkeep        = slot_rx_tkeep;
  assign slot.rx_tlast        = slot_rx_tlast;
  assign slot.rx_tuser        = 1'b0;
  assign slot.rx_tvalid       = slot_rx_tvalid;
  assign slot_rx_tready       = slot.rx_tready;
  assign slot_tx_header_valid = slot.tx_header_valid;
  assign slot.tx_header_ready = slot_tx_header_ready;
  assign slot_tx_tdata        = slot.tx_tdata;
  assign slot_tx_tkeep        = slot.tx_tkeep;
  assign slot_tx_tlast        = slot.tx_tlast;
  assign slot_tx_tvalid       = slot.tx_tvalid;
  assign slot.tx_tready       = slot_tx_tready;
  for (genvar i = 0; i < 3; i++) begin : g_word
    assign slot_tx_header[i] = to_host[i];
  end

  function automatic tlp_header_t header_of(logic [2:0][63:0] words);
    tlp_header_t header;
    logic [13:0] unused_1;
    logic [ 8:0] unused_2;
    header.addr = words[0];
    {unused_1, header.status, header.lower_addr, header.poisoned, header.attr, header.tc, header.length, header.first_be, header.last_be,
     header.func, header.bar, header.kind} = words[1];
    {unused_2, header.byte_count, header.tag, header.completer_id, header.requester_id} = words[2];
    return header;
  endfunction

  function automatic logic [2:0][63:0] words_of(tlp_header_t header);
    return {
      9'd0, header.byte_count, header.tag, header.completer_id, header.requester_id,
      14'd0, header.status, header.lower_addr, header.poisoned, header.attr, header.tc, header.length, header.first_be, header.last_be,
      header.func, header.bar, header.kind,
      header.addr
    };
  endfunction

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
      .link_up,
      .idle,
      .busy,
      .rx,
      .tx,
      .bus,
      .sensor_reading,
      .slot,
      .dram
  );
endmodule
