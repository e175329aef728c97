// SPDX-License-Identifier: Apache-2.0

// What is between the device and a slot (docs/reference/pcie-plane.md): TLPs each way, headers and payload, and what is beside the streams,
// by function.
interface slot_if
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512
);
  pcie_config_t [FUNCTIONS_MAX-1:0] settings;
  tlp_credits_t        credits;
  logic [FUNCTIONS_MAX-1:0] flr_request;
  logic [FUNCTIONS_MAX-1:0] flr_done;

  // to the device
  tlp_header_t         rx_header;
  logic                rx_header_valid;
  logic                rx_header_ready;
  logic [DATA_W-1:0]   rx_tdata;
  logic [DATA_W/8-1:0] rx_tkeep;
  logic                rx_tlast;
  logic                rx_tuser;   // the payload is damaged
  logic                rx_tvalid;
  logic                rx_tready;

  // of the device
  tlp_header_t         tx_header;
  logic                tx_header_valid;
  logic                tx_header_ready;
  logic [DATA_W-1:0]   tx_tdata;
  logic [DATA_W/8-1:0] tx_tkeep;
  logic                tx_tlast;
  logic                tx_tvalid;
  logic                tx_tready;

  modport device(
      input settings, credits, flr_request, output flr_done,
      input rx_header, rx_header_valid, output rx_header_ready, input rx_tdata, rx_tkeep, rx_tlast, rx_tuser, rx_tvalid, output rx_tready,
      output tx_header, tx_header_valid, input tx_header_ready, output tx_tdata, tx_tkeep, tx_tlast, tx_tvalid, input tx_tready
  );
  modport slot(
      output settings, credits, flr_request, input flr_done,
      output rx_header, rx_header_valid, input rx_header_ready, output rx_tdata, rx_tkeep, rx_tlast, rx_tuser, rx_tvalid, input rx_tready,
      input tx_header, tx_header_valid, output tx_header_ready, input tx_tdata, tx_tkeep, tx_tlast, tx_tvalid, output tx_tready
  );
endinterface
