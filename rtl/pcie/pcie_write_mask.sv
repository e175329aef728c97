// SPDX-License-Identifier: Apache-2.0

// Takes bytes out of the strobes of a write to memory, by the byte enables of its first and last dword, which may have holes. One `mask`
// for each transfer of an axi_dma_write, given not later than its command; then its beats pass. No latency on the port.
module pcie_write_mask
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input logic    clk,
    input logic    rst,
    stream_if.sink mask,        // host_request_t
    axi_if.slave   in,          // write channels
    axi_if.master  out
);
  localparam int unsigned DWORDS = DATA_W / 32;
  localparam int unsigned LANE_W = $clog2(DWORDS);
  typedef logic [LANE_W-1:0] lane_t;
  typedef logic [10-LANE_W:0] beats_t;
  typedef struct packed {
    lane_t      first;
    lane_t      last;
    logic [3:0] first_be;
    logic [3:0] last_be;
    beats_t     beats;          // - 1
  } mask_t;

  stream_if #(.T(mask_t)) mask_in ();
  stream_if #(.T(mask_t)) now ();
  host_request_t request;
  logic [10:0]   end_lane;
  assign request  = mask.data;
  assign end_lane = 11'(request.addr[2+:LANE_W]) + request.dwords - 1'b1;
  assign mask_in.valid = mask.valid;
  assign mask_in.data  = '{first: request.addr[2+:LANE_W], last: end_lane[LANE_W-1:0], first_be: request.first_be,
                           last_be: request.last_be, beats: end_lane[10:LANE_W]};
  assign mask.ready    = mask_in.ready;
  stream_fifo #(.T(mask_t), .DEPTH(32)) masks (.clk, .rst, .in(mask_in), .out(now), .empty());

  beats_t beat_q;
  wire first = beat_q == '0;
  wire last  = beat_q == now.data.beats;
  wire taken = out.wvalid && out.wready;
  assign now.ready = taken && last;
  always_ff @(posedge clk) begin
    if (rst) beat_q <= '0;
    else if (taken) beat_q <= last ? '0 : beat_q + 1'b1;
  end

  for (genvar i = 0; i < DWORDS; i++) begin : g_dword
    assign out.wstrb[4*i+:4] = in.wstrb[4*i+:4] & (first && now.data.first == lane_t'(i) ? now.data.first_be : '1)
                             & (last && now.data.last == lane_t'(i) ? now.data.last_be : '1);
  end
  assign out.awaddr  = in.awaddr;
  assign out.awid    = in.awid;
  assign out.awlen   = in.awlen;
  assign out.awvalid = in.awvalid;
  assign in.awready  = out.awready;
  assign out.wdata   = in.wdata;
  assign out.wlast   = in.wlast;
  assign out.wvalid  = in.wvalid;
  assign in.wready   = out.wready;
  assign in.bid      = out.bid;
  assign in.bresp    = out.bresp;
  assign in.bvalid   = out.bvalid;
  assign out.bready  = in.bready;

  assign out.araddr  = '0;
  assign out.arid    = '0;
  assign out.arlen   = '0;
  assign out.arvalid = 1'b0;
  assign out.rready  = 1'b0;
  assign in.arready  = 1'b0;
  assign in.rdata    = '0;
  assign in.rid      = '0;
  assign in.rresp    = '0;
  assign in.rlast    = 1'b0;
  assign in.rvalid   = 1'b0;

  // A mask is there before the first beat.
  always_ff @(posedge clk) if (!rst && in.wvalid) assert (now.valid);

  logic unused_ok;
  assign unused_ok = &{1'b0, in.araddr, in.arid, in.arlen, in.arvalid, in.rready, out.arready, out.rdata, out.rid, out.rresp, out.rlast,
                       out.rvalid, request.place, request.bar, request.addr, request.requester_id, request.tag, request.tc, request.attr};
endmodule
