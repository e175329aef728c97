// SPDX-License-Identifier: Apache-2.0

// Passes each TLP to the output that `select` names for the header that is offered. Header: no latency; payload: 1 cycle after its header
// at the earliest. One header and one beat a cycle. DEPTH headers run ahead of their payload. An output that stops also stops the TLPs
// behind its own.
module tlp_steer
  import pcie_pkg::*;
#(
    parameter type T = tlp_header_t,
    parameter int unsigned DATA_W = 512,
    parameter int unsigned N = 2,
    parameter int unsigned DEPTH = 8        // a power of two
) (
    input  logic                 clk,
    input  logic                 rst,
    stream_if.sink               in_header,   // T: a header, or what was made of it
    axis_if.sink                 in_data,
    input  logic                 has_data,    // for in_header.data
    input  logic [$clog2(N)-1:0] select,      // likewise
    stream_if.source             out_header[N],
    axis_if.source               out_data[N],
    output logic                 empty        // no header waits for its payload
);
  stream_if #(.T(logic [$clog2(N)-1:0])) route ();
  logic [N-1:0] ready;
  wire may = route.ready || !has_data;

  for (genvar i = 0; i < N; i++) begin : g_out
    assign out_header[i].valid = in_header.valid && may && 32'(select) == i;
    assign out_header[i].data  = T'(in_header.data);
    assign ready[i]            = out_header[i].ready;
  end
  assign in_header.ready = may && ready[select];
  assign route.valid     = in_header.valid && has_data && ready[select];
  assign route.data      = select;

  axis_steer #(.DATA_W(DATA_W), .N(N), .DEPTH(DEPTH)) steer (.clk, .rst, .in(in_data), .route, .out(out_data), .empty);
endmodule
