// SPDX-License-Identifier: Apache-2.0

// The device in a slot, at the level of transaction-layer packets (docs/reference/pcie-plane.md): the host's requests to registers and
// memory of the device (pcie_completer), host memory as a memory of the device (pcie_requester), interrupts (pcie_msix), all of it in one
// order to the slot (pcie_transmit). What comes is separated by its kind, without latency; the memory behind the BARs must not wait for
// host memory.
//
// A device has one function or two (FUNCTIONS). Each has its own settings, BARs, vectors and IO virtual addresses, and is reset without
// the other: with two, the highest bit of an address at `host` says whose it is (function_of), and BAR 0 of the second has its place among
// the addresses of `registers`.
//
// Function-level reset: while `flr_request`, requests to the function are refused, nothing of it is sent but completions, its reads of host
// memory end with errors. `flr_done` is high from when nothing of it is under way any more until `flr_request` falls.
module pcie_plane
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned AXIL_ADDR_W = 20,
    parameter int unsigned ID_W = 4,              // of `host`; `memory` has the same
    parameter int unsigned FUNCTIONS = 1,         // 1 or 2
    parameter bar_maps_t BAR_MAP = '0,            // by function
    parameter int unsigned TAGS = 64,             // power of two, 32 to 256
    parameter int unsigned BUFFER_BEATS = 512,    // of reads of host memory
    parameter int unsigned TIMEOUT = 250_000,     // cycles
    parameter logic [FUNCTIONS_MAX-1:0][31:0] VECTORS = {32'd2, 32'd32},   // by function
    parameter int unsigned LARGEST = 512,         // bytes of a payload or read, if the settings allow more
    parameter int unsigned READS = 64             // non-posted requests of the host, see pcie_completer
) (
    input  logic         clk,
    input  logic         rst,
    // the slot
    input  pcie_configs_t settings,
    input  tlp_credits_t credits,
    input  logic [FUNCTIONS_MAX-1:0] flr_request,
    output logic [FUNCTIONS_MAX-1:0] flr_done,
    stream_if.sink       rx_header,               // tlp_header_t
    axis_if.sink         rx_data,
    stream_if.source     tx_header,               // tlp_header_t
    axis_if.source       tx_data,
    // the device
    axil_if.master       registers,               // BAR 0 of each function
    axi_if.master        memory,                  // the other BARs
    axi_if.slave         host,                    // host memory
    axil_if.slave        msix_registers[FUNCTIONS],   // 12 bits of address: in the space of `registers`
    stream_if.sink       interrupt[FUNCTIONS],    // msix_vector_t; one that there is not is dropped
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
  msix_events_t [FUNCTIONS_MAX-1:0] msix_events;
  logic [5:0]        writes_inside;
  posted_count_t     posted_inside;
  logic [1:0]        posted_gone;
  logic [3:0]        leaving;
  logic              write_gone, left, rx_idle, completer_idle, requester_idle, msix_idle, transmit_idle;
  logic [FUNCTIONS_MAX-1:0] reset, completer_quiet, requester_quiet, ended;

  if (FUNCTIONS < 1 || FUNCTIONS > FUNCTIONS_MAX) begin : g_bad
    $fatal(1, "FUNCTIONS must be 1 or 2");
  end

  // A function that there is not sends and answers nothing, whatever the slot says of it.
  pcie_configs_t is;
  for (genvar i = 0; i < FUNCTIONS_MAX; i++) begin : g_settings
    assign is[i] = i < FUNCTIONS ? settings[i] : '0;
  end

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
      .clk, .rst, .settings(is), .refuse(reset), .rx_header(received_header[0]), .rx_data(received_data[0]), .tx_header(completion_header),
      .tx_data(completion_data), .registers, .memory, .events(completer_events), .quiet(completer_quiet), .idle(completer_idle)
  );
  pcie_requester #(
      .DATA_W(DATA_W), .ID_W(ID_W), .FUNCTIONS(FUNCTIONS), .TAGS(TAGS), .BUFFER_BEATS(BUFFER_BEATS), .LARGEST(LARGEST), .TIMEOUT(TIMEOUT)
  ) requester (
      .clk, .rst, .settings(is), .reset, .host, .write_header, .write_data, .read_header, .completion_header(received_header[1]),
      .completion_data(received_data[1]), .writes_inside, .write_gone, .posted_inside, .posted_gone, .events(requester_events), .quiet(requester_quiet),
      .idle(requester_idle)
  );
  pcie_interrupts #(.DATA_W(DATA_W), .FUNCTIONS(FUNCTIONS), .VECTORS(VECTORS)) interrupts (
      .clk, .rst, .settings(is), .reset, .bus(msix_registers), .request(interrupt), .header(interrupt_header), .payload(interrupt_data),
      .events(msix_events), .idle(msix_idle)
  );
  pcie_transmit #(.DATA_W(DATA_W), .LARGEST(LARGEST)) transmit (
      .clk, .rst, .credits, .write_header, .write_data, .writes_inside, .write_gone, .interrupt_header, .interrupt_data, .read_header,
      .completion_header, .completion_data, .tx_header, .tx_data, .posted_inside, .posted_gone, .leaving, .left, .idle(transmit_idle)
  );

  // ---- function-level reset ----
  for (genvar i = 0; i < FUNCTIONS_MAX; i++) begin : g_reset
    if (i < FUNCTIONS) begin : g_there
      pcie_function_reset function_reset (
          .clk, .rst, .request(flr_request[i]), .reset(reset[i]), .quiet(completer_quiet[i] && requester_quiet[i]), .header_waits(tx_header.valid),
          .header_taken(tx_header.valid && tx_header.ready), .leaving, .left, .done(flr_done[i]), .ended(ended[i])
      );
    end else begin : g_none
      assign reset[i]    = 1'b0;
      assign flr_done[i] = 1'b0;
      assign ended[i]    = 1'b0;
    end
  end

  assign events = '{
      completer: completer_events, requester: requester_events, msix: msix_events[0], resets: ended[0], network_msix: msix_events[NETWORK_CARD],
      network_resets: ended[NETWORK_CARD]
  };
  assign idle   = rx_idle && completer_idle && requester_idle && msix_idle && transmit_idle;
endmodule
