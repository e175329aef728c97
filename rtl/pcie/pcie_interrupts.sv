// SPDX-License-Identifier: Apache-2.0

// MSI-X of all functions (pcie_msix each), and their messages as one stream. A message that is offered stays at the output until it is taken
// or taken back; between two there is a cycle without one, so that who counts what is ahead of it (tlp_behind) counts anew. Latency: that of
// pcie_msix, with two functions up to 2 cycles more. The functions take turns.
module pcie_interrupts
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned FUNCTIONS = 1,                             // 1 or 2
    parameter logic [FUNCTIONS_MAX-1:0][31:0] VECTORS = {32'd2, 32'd32}   // of each
) (
    input  logic          clk,
    input  logic          rst,
    input  pcie_configs_t settings,
    input  logic [FUNCTIONS_MAX-1:0] reset,   // a function-level reset is under way
    axil_if.slave         bus[FUNCTIONS],     // 12 bits of address
    stream_if.sink        request[FUNCTIONS], // vector_t: those that there are not do nothing
    stream_if.source      header,             // tlp_header_t
    axis_if.source        payload,
    output msix_events_t [FUNCTIONS_MAX-1:0] events,
    output logic          idle                // no message on its way
);
  stream_if #(.T(tlp_header_t)) headers[FUNCTIONS] ();
  axis_if #(.DATA_W(DATA_W)) payloads[FUNCTIONS] ();
  logic [FUNCTIONS-1:0] idles;
  assign idle = &idles;

  for (genvar i = 0; i < FUNCTIONS; i++) begin : g_function
    localparam int unsigned COUNT = VECTORS[i];
    stream_if #(.T(logic [$clog2(COUNT)-1:0])) asked ();
    msix_vector_t number;
    assign number           = request[i].data;
    assign asked.valid      = request[i].valid && 32'(number) < COUNT;
    assign asked.data       = number[$clog2(COUNT)-1:0];
    assign request[i].ready = 1'b1;                                   // pcie_msix never stops
    pcie_msix #(.DATA_W(DATA_W), .VECTORS(COUNT)) msix (
        .clk, .rst, .settings(settings[i]), .reset(reset[i]), .bus(bus[i]), .request(asked), .header(headers[i]), .payload(payloads[i]),
        .events(events[i]), .idle(idles[i])
    );
    wire unused_ready = asked.ready;
  end

  if (FUNCTIONS == 1) begin : g_one
    assign header.valid      = headers[0].valid;
    assign header.data       = headers[0].data;
    assign headers[0].ready  = header.ready;
    axis_wires wires (.in(payloads[0]), .out(payload));
    assign events[FUNCTIONS_MAX-1:1] = '0;
  end else begin : g_two
    // Whose message is at the output; it goes over when nothing of that function is there.
    function_t turn_q;
    wire [1:0] offers = {headers[1].valid, headers[0].valid};
    wire [1:0] sends  = {payloads[1].tvalid, payloads[0].tvalid};
    assign header.valid = offers[turn_q];
    assign header.data  = turn_q ? headers[1].data : headers[0].data;
    assign payload.tvalid = sends[turn_q];
    assign payload.tdata  = turn_q ? payloads[1].tdata : payloads[0].tdata;
    assign payload.tkeep  = payloads[0].tkeep;    // one dword, as of each
    assign payload.tlast  = 1'b1;
    assign payload.tuser  = 1'b0;
    for (genvar i = 0; i < 2; i++) begin : g_turn
      assign headers[i].ready   = header.ready && turn_q == function_t'(i);
      assign payloads[i].tready = payload.tready && turn_q == function_t'(i);
    end
    always_ff @(posedge clk)
      if (rst) turn_q <= '0;
      else if (!offers[turn_q] && !sends[turn_q] && offers[!turn_q]) turn_q <= !turn_q;
    wire unused_payload = &{1'b0, payloads[1].tkeep, payloads[0].tlast, payloads[1].tlast, payloads[0].tuser, payloads[1].tuser};
  end
endmodule
