// SPDX-License-Identifier: Apache-2.0

// pcie_plane with pages of registers: MSI-X at 0x4000 of BAR 0, and one outside at 0x1000.
module pcie_plane_bench
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned TIMEOUT = 4096,
    parameter int unsigned VECTORS = 32,
    parameter bar_maps_t BAR_MAP = '0
) (
    input  logic         clk,
    input  logic         rst,
    input  pcie_configs_t settings,
    input  tlp_credits_t credits,
    input  logic [FUNCTIONS_MAX-1:0] flr_request,
    output logic [FUNCTIONS_MAX-1:0] flr_done,
    stream_if.sink       rx_header,
    axis_if.sink         rx_data,
    stream_if.source     tx_header,
    axis_if.source       tx_data,
    axil_if.master       registers,     // the page at 0x1000
    axi_if.master        memory,
    axi_if.slave         host,
    stream_if.sink       interrupt,
    output pcie_events_t events,
    output logic         idle
);
  axil_if #(.ADDR_W(16)) bus ();
  axil_if #(.ADDR_W(12)) page[2] ();
  axil_if #(.ADDR_W(12)) msix[1] ();
  stream_if #(.T(msix_vector_t)) asked[1] ();

  pcie_plane #(.DATA_W(DATA_W), .AXIL_ADDR_W(16), .TIMEOUT(TIMEOUT), .VECTORS({32'd2, VECTORS}), .BAR_MAP(BAR_MAP)) plane (
      .clk, .rst, .settings, .credits, .flr_request, .flr_done, .rx_header, .rx_data, .tx_header, .tx_data, .registers(bus), .memory, .host,
      .msix_registers(msix), .interrupt(asked), .events, .idle
  );
  axil_demux #(.N(2), .IN_ADDR_W(16), .PAGES({4'h4, 4'h1})) pages (.clk, .rst, .in(bus), .out(page), .idle());
  axil_wires outside (.in(page[0]), .out(registers));
  axil_wires table_ (.in(page[1]), .out(msix[0]));
  assign asked[0].valid  = interrupt.valid;
  assign asked[0].data   = interrupt.data;
  assign interrupt.ready = asked[0].ready;
endmodule
