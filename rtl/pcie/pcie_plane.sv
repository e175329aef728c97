// SPDX-License-Identifier: Apache-2.0

// The device in a slot, at the level of transaction-layer packets (docs/reference/pcie-plane.md): the host's requests to registers and
// memory of the device (pcie_completer), host memory as a memory of the device (pcie_requester), interrupts (pcie_msix), all of it in one
// order to the slot (pcie_transmit). What comes is separated by its kind, without latency; the memory behind the BARs must not wait for
// host memory.
//
// Function-level reset: while `flr_request`, requests are refused, nothing is sent but completions, reads of host memory end with errors.
// `flr_done` is high from when nothing is under way any more until `flr_request` falls.
module pcie_plane
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned AXIL_ADDR_W = 20,
    parameter int unsigned ID_W = 4,              // of `host`; `memory` has the same
    parameter bar_map_t BAR_MAP = '0,
    parameter int unsigned TAGS = 64,             // power of two, 32 to 256
    parameter int unsigned BUFFER_BEATS = 512,    // of reads of host memory
    parameter int unsigned TIMEOUT = 250_000,     // cycles
    parameter int unsigned VECTORS = 32,
    parameter int unsigned LARGEST = 512,         // bytes of a payload or read, if the settings allow more
    parameter int unsigned READS = 64             // non-posted requests of the host, see pcie_completer
) (
    input  logic         clk,
    input  logic         rst,
    // the slot
    input  pcie_config_t settings,
    input  tlp_credits_t credits,
    input  logic         flr_request,
    output logic         flr_done,
    stream_if.sink       rx_header,               // tlp_header_t
    axis_if.sink         rx_data,
    stream_if.source     tx_header,               // tlp_header_t
    axis_if.source       tx_data,
    // the device
    axil_if.master       registers,               // BAR 0
    axi_if.master        memory,                  // the other BARs
    axi_if.slave         host,                    // host memory
    axil_if.slave        msix_registers,          // 12 bits of address: in the space of `registers`
    stream_if.sink       interrupt,               // logic [$clog2(VECTORS)-1:0]
    output pcie_events_t events,
    output logic         idle
);
  stream_if #(.T(tlp_header_t)) received_header[2] ();
  axis_if #(.DATA_W(DATA_W)) received_data[2] ();
  stream_if #(.T(tlp_header_t)) completion_header ();
  axis_if #(.DATA_W(DATA_W)) completion_data ();
  stream_if #(.T(tlp_header_t)) write_header ();
  axis_if #(.DATA_W(DATA_W)) write_data ();
  stream_if #(.T(tlp_header_t)) read_header ();
  stream_if #(.T(tlp_header_t)) interrupt_header ();
  axis_if #(.DATA_W(DATA_W)) interrupt_data ();

  completer_events_t completer_events;
  requester_events_t requester_events;
  msix_events_t      msix_events;
  logic [5:0]        writes_inside;
  logic              write_gone, rx_idle, completer_idle, requester_quiet, requester_idle, msix_idle, transmit_idle;
  logic              reset_q, told_q;

  // ---- what comes: requests, completions ----
  tlp_header_t header;
  assign header = rx_header.data;
  tlp_steer #(.DATA_W(DATA_W), .N(2)) steer (
      .clk, .rst, .in_header(rx_header), .in_data(rx_data), .has_data(tlp_has_data(header.kind)),
      .select(tlp_is_completion(header.kind)), .out_header(received_header), .out_data(received_data), .empty(rx_idle)
  );

  pcie_completer #(
      .DATA_W(DATA_W), .AXIL_ADDR_W(AXIL_ADDR_W), .ID_W(ID_W), .BAR_MAP(BAR_MAP), .LARGEST(LARGEST), .READS(READS)
  ) completer (
      .clk, .rst, .settings, .refuse(reset_q), .rx_header(received_header[0]), .rx_data(received_data[0]), .tx_header(completion_header),
      .tx_data(completion_data), .registers, .memory, .events(completer_events), .idle(completer_idle)
  );
  pcie_requester #(
      .DATA_W(DATA_W), .ID_W(ID_W), .TAGS(TAGS), .BUFFER_BEATS(BUFFER_BEATS), .LARGEST(LARGEST), .TIMEOUT(TIMEOUT)
  ) requester (
      .clk, .rst, .settings, .reset(reset_q), .host, .write_header, .write_data, .read_header, .completion_header(received_header[1]),
      .completion_data(received_data[1]), .writes_inside, .write_gone, .events(requester_events), .quiet(requester_quiet),
      .idle(requester_idle)
  );
  pcie_msix #(.DATA_W(DATA_W), .VECTORS(VECTORS)) msix (
      .clk, .rst, .settings, .reset(reset_q), .bus(msix_registers), .request(interrupt), .header(interrupt_header), .payload(interrupt_data),
      .events(msix_events), .idle(msix_idle)
  );
  pcie_transmit #(.DATA_W(DATA_W), .LARGEST(LARGEST)) transmit (
      .clk, .rst, .credits, .write_header, .write_data, .writes_inside, .write_gone, .interrupt_header, .interrupt_data, .read_header,
      .completion_header, .completion_data, .tx_header, .tx_data, .idle(transmit_idle)
  );

  // ---- function-level reset ----
  wire quiet = rx_idle && completer_idle && requester_quiet && transmit_idle;
  assign flr_done = told_q;
  always_ff @(posedge clk) begin
    reset_q <= !rst && flr_request;
    told_q  <= !rst && flr_request && reset_q && (quiet || told_q);
  end

  assign events = '{completer: completer_events, requester: requester_events, msix: msix_events, resets: told_q && !flr_request};
  assign idle   = rx_idle && completer_idle && requester_idle && msix_idle && transmit_idle;
endmodule
