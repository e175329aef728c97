// SPDX-License-Identifier: Apache-2.0

// copy_mover with the copy_cutter before it.
module copy_mover_bench
  import memory_pkg::*;
  import copy_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input  logic          clk,
    input  logic          rst,
    input  logic          start,
    input  logic          give_up,
    stream_if.sink        fetch,
    stream_if.sink        copy,
    axis_if.source        fetched,
    output logic          fetch_failed,
    stream_if.source      outcome,
    stream_if.sink        report,
    output logic          reported,
    output logic          report_failed,
    output copy_outcome_t of_report,
    axi_if.master         mem,
    output copy_events_t  events,
    output logic          idle
);
  stream_if #(.T(copy_piece_t)) piece ();
  addr_t source;
  logic  cutter_idle, mover_idle;
  copy_cutter #(.PIECE(piece_bytes(DATA_W))) cutter (.clk, .rst, .give_up, .copy, .piece, .source, .idle(cutter_idle));
  copy_mover #(.DATA_W(DATA_W)) mover (
      .clk, .rst, .start, .give_up, .fetch, .piece, .source, .fetched, .fetch_failed, .outcome, .report, .reported, .report_failed, .of_report,
      .mem, .events, .idle(mover_idle)
  );
  assign idle = cutter_idle && mover_idle;
endmodule
