// SPDX-License-Identifier: Apache-2.0

// device_in_slot with a network card: what is in its slot as plain streams, and the card's own ports outside.
module device_in_slot_bench
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned TIMEOUT = 4096,
    parameter int unsigned VECTORS = 32,
    parameter int unsigned NETWORK_VECTORS = 9,
    parameter memory_range_t MEMORY = '0
) (
    input  logic          clk,
    input  logic          rst,
    input  pcie_configs_t settings,
    input  tlp_credits_t  credits,
    input  logic [FUNCTIONS_MAX-1:0] flr_request,
    output logic [FUNCTIONS_MAX-1:0] flr_done,
    stream_if.sink        rx_header,
    axis_if.sink          rx_data,
    stream_if.source      tx_header,
    axis_if.source        tx_data,
    axil_if.master        registers,
    axi_if.master         memory,
    axi_if.slave          host,
    stream_if.sink        interrupt,
    axil_if.master        net_registers,
    axi_if.slave          net_host,
    stream_if.sink        net_interrupt,
    output logic          net_reset,
    input  logic          net_reset_done,
    output pcie_events_t  events,
    output logic          idle
);
  slot_if #(.DATA_W(DATA_W)) slot ();
  assign slot.settings        = settings;
  assign slot.credits         = credits;
  assign slot.flr_request     = flr_request;
  assign flr_done             = slot.flr_done;
  assign slot.rx_header       = rx_header.data;
  assign slot.rx_header_valid = rx_header.valid;
  assign rx_header.ready      = slot.rx_header_ready;
  assign slot.rx_tdata        = rx_data.tdata;
  assign slot.rx_tkeep        = rx_data.tkeep;
  assign slot.rx_tlast        = rx_data.tlast;
  assign slot.rx_tuser        = rx_data.tuser;
  assign slot.rx_tvalid       = rx_data.tvalid;
  assign rx_data.tready       = slot.rx_tready;
  assign tx_header.data       = slot.tx_header;
  assign tx_header.valid      = slot.tx_header_valid;
  assign slot.tx_header_ready = tx_header.ready;
  assign tx_data.tdata        = slot.tx_tdata;
  assign tx_data.tkeep        = slot.tx_tkeep;
  assign tx_data.tlast        = slot.tx_tlast;
  assign tx_data.tuser        = 1'b0;
  assign tx_data.tvalid       = slot.tx_tvalid;
  assign slot.tx_tready       = tx_data.tready;

  device_in_slot #(
      .DATA_W(DATA_W), .MEMORY(MEMORY), .VECTORS(VECTORS), .TIMEOUT(TIMEOUT), .NETWORK(1'b1), .NETWORK_VECTORS(NETWORK_VECTORS),
      .NETWORK_ID_W(5)
  ) device (
      .clk, .rst, .open(1'b1), .slot, .registers, .memory, .host, .interrupt, .net_registers, .net_host, .net_interrupt, .net_reset,
      .net_reset_done, .events, .idle
  );
endmodule
