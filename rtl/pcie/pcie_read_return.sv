// SPDX-License-Identifier: Apache-2.0

// Gives the data of reads back in the order in which they were asked for, also across IDs. A part begins when all its completions are
// there; one that failed is beats of zeros with SLVERR. Latency 2 cycles from the part's turn to R, one beat a cycle.
module pcie_read_return
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W = 4,
    parameter int unsigned TAGS = 64,
    parameter int unsigned BEATS = 512           // of the buffer, a power of two
) (
    input  logic                     clk,
    input  logic                     rst,
    // a part, in order
    input  logic                     asked,      // pulse, if there is `room`
    input  logic                     asked_off,  // it was not sent
    input  logic [$clog2(TAGS)-1:0]  asked_tag,
    input  logic [$clog2(BEATS)-1:0] asked_more, // beats of the buffer that it takes, behind the first
    input  logic                     asked_ends, // the burst
    input  logic [ID_W-1:0]          asked_id,
    output logic                     room,
    // its state, in pcie_tags
    output logic [$clog2(TAGS)-1:0]  oldest,
    input  logic                     oldest_done,
    input  logic                     oldest_error,
    output logic                     drained,    // pulse,
    output logic [$clog2(TAGS)-1:0]  drained_tag,//   of this one,
    output logic [$clog2(BEATS):0]   freed,      //   and beats of the buffer
    // the buffer
    input  logic                     write,
    input  logic [$clog2(BEATS)-1:0] write_at,
    input  logic [DATA_W-1:0]        write_data,
    axi_if.slave                     out,        // R; its other channels are unused
    output logic                     idle        // no part inside
);
  typedef logic [$clog2(BEATS):0] beats_t;
  typedef logic [$clog2(BEATS)-1:0] at_t;
  typedef struct packed {
    logic                    off;
    logic                    error;
    logic [$clog2(TAGS)-1:0] tag;
    at_t                     more;             // beats of the buffer behind the first
    logic                    ends;
    logic [ID_W-1:0]         id;
  } part_t;

  stream_if #(.T(part_t)) part_in ();
  stream_if #(.T(part_t)) waiting ();
  stream_if #(.T(part_t)) there ();
  stream_if #(.T(part_t)) part ();
  logic none, room_q;
  logic [$clog2(TAGS):0] count_q, count_d;       // of the queue
  assign part_in.valid = asked;
  assign part_in.data  = '{off: asked_off, error: asked_off, tag: asked_tag, more: asked_more, ends: asked_ends, id: asked_id};
  assign room          = room_q;
  stream_fifo #(.T(part_t), .DEPTH(TAGS), .BLOCK_RAM(1'b0), .BYPASS(1'b0)) parts (.clk, .rst, .in(part_in), .out(waiting), .empty(none));

  assign count_d = count_q + ($clog2(TAGS) + 1)'(asked) - ($clog2(TAGS) + 1)'(waiting.valid && waiting.ready);
  always_ff @(posedge clk) begin
    count_q <= rst ? '0 : count_d;
    room_q  <= !rst && count_d < ($clog2(TAGS) + 1)'(TAGS);
    if (!rst && asked) assert (room_q && part_in.ready);
  end

  wire done = waiting.data.off || oldest_done;
  assign oldest        = waiting.data.tag;
  assign there.valid   = waiting.valid && done;
  assign waiting.ready = there.ready && done;
  always_comb begin
    there.data       = waiting.data;
    there.data.error = waiting.data.off || oldest_error;
  end
  stream_slice #(.T(part_t), .SKID(1'b0)) turn (.clk, .rst, .in(there), .out(part));

  at_t    at_q;                                  // in the buffer
  at_t    beat_q;                                // of the part
  logic   valid_q;
  wire    pop  = part.valid && (!valid_q || out.rready);
  wire    last = beat_q == part.data.more;
  assign part.ready  = pop && last;
  assign drained     = pop && last && !part.data.off;
  assign drained_tag = part.data.tag;
  assign freed       = beats_t'(part.data.more) + 1'b1;

  (* ram_style = "block" *) logic [DATA_W-1:0] buffer[BEATS];
  logic [DATA_W-1:0] read_q;
  always_ff @(posedge clk) if (write) buffer[write_at] <= write_data;
  always_ff @(posedge clk) if (pop) read_q <= part.data.error ? '0 : buffer[at_q];

  assign out.rvalid = valid_q;
  assign out.rdata  = read_q;
  always_ff @(posedge clk) begin
    if (pop) begin
      out.rid   <= part.data.id;
      out.rlast <= last && part.data.ends;
      out.rresp <= part.data.error ? AXI_SLVERR : AXI_OKAY;
    end
    if (rst) begin
      at_q    <= '0;
      beat_q  <= '0;
      valid_q <= 1'b0;
    end else begin
      if (pop && !part.data.off) at_q <= at_q + 1'b1;
      if (pop) beat_q <= last ? '0 : beat_q + 1'b1;
      if (!valid_q || out.rready) valid_q <= pop;
    end
  end
  assign idle = none && !part.valid && !valid_q;

  // The other channels are not used here.
  assign out.arready = 1'b0;
  assign out.awready = 1'b0;
  assign out.wready  = 1'b0;
  assign out.bid     = '0;
  assign out.bresp   = '0;
  assign out.bvalid  = 1'b0;

  logic unused_ok;
  assign unused_ok = &{1'b0, out.araddr, out.arid, out.arlen, out.arvalid, out.awaddr, out.awid, out.awlen, out.awvalid, out.wdata,
                       out.wstrb, out.wlast, out.wvalid, out.bready};
endmodule
