// SPDX-License-Identifier: Apache-2.0

// For a user of dma_write_lanes that needs the outcomes in the order of its packets, across memories: reserves space in the lane of each
// packet, and reorders the outcomes of the lanes into the order of the commands. With one lane: wires.
//
// Latency with several lanes: 0 for commands, 1 cycle for outcomes. A command, and those behind it, waits until its lane has space.
module dma_write_in_order
  import memory_pkg::*;
#(
    parameter int unsigned LANES = 1,
    parameter int unsigned PENDING = 64     // packets outstanding; power of two
) (
    input  logic             clk,
    input  logic             rst,
    stream_if.sink           cmd,           // dma_cmd_t
    stream_if.source         done,          // dma_done_t
    stream_if.source         lanes_cmd,     // to dma_write_lanes
    stream_if.sink           lanes_done[LANES],
    input  targets_t         room,
    output logic             reserve,
    output write_size_t      reserve_size,
    output logic             idle
);
  target_t target;
  assign target         = cmd.data.target;
  assign lanes_cmd.data = cmd.data;
  assign reserve        = lanes_cmd.valid && lanes_cmd.ready;
  assign reserve_size   = write_size(target, cmd.data.length[15:0]);

  if (LANES == 1) begin : g_one
    assign lanes_cmd.valid     = cmd.valid;
    assign cmd.ready           = lanes_cmd.ready;
    assign done.valid          = lanes_done[0].valid;
    assign done.data           = lanes_done[0].data;
    assign lanes_done[0].ready = done.ready;
    assign idle                = 1'b1;

    logic unused_ok;
    assign unused_ok = &{1'b0, clk, rst, room};
  end else begin : g_several
    stream_if #(.T(target_t)) order_in ();
    stream_if #(.T(target_t)) order ();
    dma_done_t [MAX_TARGETS-1:0] outcome;
    targets_t                    there;
    wire may = room[target] && order_in.ready;
    assign lanes_cmd.valid = cmd.valid && may;
    assign cmd.ready       = lanes_cmd.ready && may;
    assign order_in.valid  = reserve;
    assign order_in.data   = target;
    stream_fifo #(.T(target_t), .DEPTH(PENDING)) orders (.clk, .rst, .in(order_in), .out(order), .empty(idle));

    assign done.valid  = order.valid && there[order.data];
    assign done.data   = outcome[order.data];
    assign order.ready = done.valid && done.ready;
    for (genvar i = 0; i < MAX_TARGETS; i++) begin : g_lane
      if (i < LANES) begin : g_here
        assign there[i]            = lanes_done[i].valid;
        assign outcome[i]          = lanes_done[i].data;
        assign lanes_done[i].ready = order.valid && order.data == target_t'(i) && done.ready;
      end else begin : g_none
        assign there[i]   = 1'b0;
        assign outcome[i] = '0;
      end
    end
  end
endmodule
