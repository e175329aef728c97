// SPDX-License-Identifier: Apache-2.0

// Packets of descriptors as copies, one for each DESCRIPTOR_BYTES; a packet consists of whole ones. A descriptor with a flag that is none is bad.
//
// One copy a cycle from beats of 256 bits and more, one for the beats of a descriptor from narrower ones. Latency from the (last) beat of a
// descriptor: 1 cycle. Stalls while `copy` stalls.
module copy_unpack
  import memory_pkg::*;
  import copy_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input  logic     clk,
    input  logic     rst,
    axis_if.sink     in,
    stream_if.source copy,    // copy_t
    output logic     idle
);
  localparam int unsigned WIDE = DATA_W > 256 ? DATA_W : 256;      // what is held
  localparam int unsigned HELD = WIDE / 256;                       // descriptors of it
  localparam int unsigned BEATS = 256 / DATA_W;                    // of a descriptor, if more than one

  logic [WIDE-1:0] held_q;
  copy_descriptor_t first;
  assign first = copy_descriptor_t'(held_q[255:0]);

  if (DATA_W >= 256) begin : g_wide
    logic [HELD-1:0] left_q;     // descriptors that are held, from the one that is shown
    wire ends = (left_q >> 1) == '0;
    assign copy.valid = left_q[0];
    assign in.tready  = !copy.valid || (copy.ready && ends);
    always_ff @(posedge clk) begin
      if (in.tready) held_q <= in.tdata;
      else if (copy.ready) held_q <= held_q >> 256;
      if (rst) left_q <= '0;
      else if (in.tready) begin
        for (int unsigned i = 0; i < HELD; i++) left_q[i] <= in.tvalid && in.tkeep[32*i];
      end else if (copy.ready) left_q <= left_q >> 1;
    end
  end else begin : g_narrow
    logic [$clog2(BEATS)-1:0] beat_q;
    logic whole_q;
    assign copy.valid = whole_q;
    assign in.tready  = !whole_q || copy.ready;
    always_ff @(posedge clk) begin
      if (in.tready && in.tvalid) held_q <= {in.tdata, held_q[WIDE-1:DATA_W]};
      if (rst) begin
        beat_q  <= '0;
        whole_q <= 1'b0;
      end else if (in.tready) begin
        whole_q <= in.tvalid && &beat_q;
        if (in.tvalid) beat_q <= beat_q + 1'b1;
      end
    end
  end

  always_comb begin
    copy.data.bad         = first.no_flags != '0 || first.reserved != '0;
    copy.data.report      = first.report;
    copy.data.interrupts   = first.interrupts;
    copy.data.tag         = first.tag;
    copy.data.length      = first.length;
    copy.data.destination = addr_t'(first.destination);
    copy.data.source      = addr_t'(first.source);
  end
  assign idle = !copy.valid;

  logic unused_ok;
  assign unused_ok = &{1'b0, in.tkeep, in.tlast, in.tuser, first};
endmodule
