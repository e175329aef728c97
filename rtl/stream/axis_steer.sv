// SPDX-License-Identifier: Apache-2.0

// Passes each packet of `in` to the output that its entry of `route` names: one entry for each packet, in the same order.
// One beat a cycle. A route can be used 1 cycle after it is taken (2 cycles with DEPTH above 64, in block RAM); a packet waits for its
// route. DEPTH routes and two more wait for their packets; `route.ready` is a register. An output that stops also stops the packets
// behind its own.
module axis_steer #(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned N = 2,
    parameter int unsigned DEPTH = 8      // a power of two
) (
    input  logic     clk,
    input  logic     rst,
    axis_if.sink     in,
    stream_if.sink   route,               // logic [$clog2(N)-1:0], or an enum of that width: the output
    axis_if.source   out[N],
    output logic     empty                // no route waits for its packet
);
  typedef logic [$clog2(N)-1:0] route_t;

  axis_if #(.DATA_W(DATA_W)) gated ();
  stream_if #(.T(route_t)) named ();
  stream_if #(.T(route_t)) entry ();
  stream_if #(.T(route_t)) current ();

  logic none_routed;
  assign named.valid = route.valid;
  assign named.data  = route_t'(route.data);
  assign route.ready = named.ready;
  stream_skid #(.T(route_t)) skid (.clk, .rst, .in(named), .out(entry));
  stream_fifo #(.T(route_t), .DEPTH(DEPTH)) routes (.clk, .rst, .in(entry), .out(current), .empty(none_routed));
  assign empty = none_routed && !entry.valid;

  assign gated.tvalid  = in.tvalid && current.valid;
  assign gated.tdata   = in.tdata;
  assign gated.tkeep   = in.tkeep;
  assign gated.tlast   = in.tlast;
  assign gated.tuser   = in.tuser;
  assign in.tready     = gated.tready && current.valid;
  assign current.ready = gated.tvalid && gated.tready && gated.tlast;

  axis_demux #(.DATA_W(DATA_W), .N(N)) demux (.in(gated), .select(current.data), .out);
endmodule
