// SPDX-License-Identifier: Apache-2.0

// pcie_requester and pcie_transmit, joined as in pcie_plane, with nothing else to send.
module pcie_requester_bench
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned TAGS = 64,
    parameter int unsigned TIMEOUT = 4096
) (
    input  logic              clk,
    input  logic              rst,
    input  pcie_configs_t     settings,
    input  tlp_credits_t      credits,
    input  logic [FUNCTIONS_MAX-1:0] reset,
    axi_if.slave              host,
    stream_if.sink            rx_header,
    axis_if.sink              rx_data,
    stream_if.source          tx_header,
    axis_if.source            tx_data,
    output requester_events_t events,
    output logic [FUNCTIONS_MAX-1:0] quiet,
    output logic              idle
);
  stream_if #(.T(tlp_header_t)) write_header ();
  stream_if #(.T(tlp_header_t)) read_header ();
  stream_if #(.T(tlp_header_t)) interrupt_header ();
  stream_if #(.T(tlp_header_t)) completion_header ();
  axis_if #(.DATA_W(DATA_W)) write_data ();
  axis_if #(.DATA_W(DATA_W)) interrupt_data ();
  axis_if #(.DATA_W(DATA_W)) completion_data ();
  logic [5:0] writes_inside;
  posted_count_t posted_inside;
  logic [1:0] posted_gone;
  logic       write_gone, transmit_idle;

  assign interrupt_header.valid  = 1'b0;
  assign interrupt_header.data   = '0;
  assign interrupt_data.tvalid   = 1'b0;
  assign interrupt_data.tdata    = '0;
  assign interrupt_data.tkeep    = '0;
  assign interrupt_data.tlast    = 1'b0;
  assign interrupt_data.tuser    = 1'b0;
  assign completion_header.valid = 1'b0;
  assign completion_header.data  = '0;
  assign completion_data.tvalid  = 1'b0;
  assign completion_data.tdata   = '0;
  assign completion_data.tkeep   = '0;
  assign completion_data.tlast   = 1'b0;
  assign completion_data.tuser   = 1'b0;

  pcie_requester #(.DATA_W(DATA_W), .TAGS(TAGS), .TIMEOUT(TIMEOUT)) requester (
      .clk, .rst, .settings, .reset, .host, .write_header, .write_data, .read_header, .completion_header(rx_header), .completion_data(rx_data),
      .writes_inside, .write_gone, .posted_inside, .posted_gone, .events, .quiet, .idle
  );
  pcie_transmit #(.DATA_W(DATA_W)) transmit (
      .clk, .rst, .credits, .write_header, .write_data, .writes_inside, .write_gone, .interrupt_header, .interrupt_data, .read_header,
      .completion_header, .completion_data, .tx_header, .tx_data, .posted_inside, .posted_gone, .leaving(), .left(), .idle(transmit_idle)
  );
endmodule
