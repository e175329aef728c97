// SPDX-License-Identifier: Apache-2.0

// The copy engine: copies between host memory and the memories of the device, as descriptors in a ring say, and reports by completions in
// another one (docs/reference/copy.md).
//
//   registers ── copy_queue ── reads of descriptors ──┐
//                   │                                 ├ copy_mover ── memory
//     descriptors ──┼── copy_unpack ── copy_cutter ───┘      │
//                   └── completions, interrupts ─────────────┘
//
// Latency, beside that of memory: doorbell to the read of its descriptor 7 cycles, its data to the read of what it copies 10, data to its write 4, the
// write's response to that of the completion 5. Throughput: one beat a cycle.
module copy_engine
  import memory_pkg::*;
  import copy_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W = 4,
    parameter int unsigned VECTORS = 32,
    parameter int unsigned DEPTH = 64,     // descriptors that were read and wait; power of two, at least 32
    parameter addr_t MEMORY_BASE = '0,     // the memory of the device that is the host's, as the registers say
    parameter addr_t MEMORY_BYTES = '0,
    parameter logic [31:0] NEXT = '0       // the register block after this one
) (
    input  logic     clk,
    input  logic     rst,
    input  logic     fabric_rst,           // memory is not there yet; the registers are
    input  logic     reset,                // of the function
    axil_if.slave    bus,                  // 12 bits of address
    axi_if.master    mem,
    stream_if.source interrupt,            // logic [$clog2(VECTORS)-1:0]
    output logic     stops,                // pulse: the queue has stopped, for the reason in `state`
    output copy_state_t state,
    output logic     idle
);
  logic enable, start, give_up, fetch_failed, reported, report_failed;
  logic registers_idle, queue_idle, mover_idle, cutter_idle, unpack_idle, none_waits;
  copy_settings_t settings;
  index_t         producer;
  copy_events_t   events;
  copy_outcome_t  of_report;
  addr_t          source;

  stream_if #(.T(copy_read_t)) fetch ();
  stream_if #(.T(copy_t)) unpacked ();
  stream_if #(.T(copy_t)) copy ();
  stream_if #(.T(copy_piece_t)) piece ();
  stream_if #(.T(copy_outcome_t)) outcome ();
  stream_if #(.T(copy_report_t)) report ();
  axis_if #(.DATA_W(DATA_W)) fetched ();

  copy_registers #(.MEMORY_BASE(MEMORY_BASE), .MEMORY_BYTES(MEMORY_BYTES), .NEXT(NEXT)) registers (
      .clk, .rst, .bus, .enable, .settings, .producer, .state, .events, .idle(registers_idle)
  );

  copy_queue #(.DEPTH(DEPTH), .VECTORS(VECTORS)) queue (
      .clk, .rst(fabric_rst), .enable, .settings, .producer, .reset,
      .quiet(mover_idle && cutter_idle && unpack_idle && none_waits), .state, .start, .give_up, .stops, .fetch, .fetch_failed, .taken(copy.valid && copy.ready),
      .outcome, .report, .reported, .report_failed, .of_report, .interrupt, .idle(queue_idle)
  );

  copy_unpack #(.DATA_W(DATA_W)) unpack (.clk, .rst(fabric_rst), .in(fetched), .copy(unpacked), .idle(unpack_idle));
  stream_fifo #(.T(copy_t), .DEPTH(DEPTH), .BLOCK_RAM(1'b0)) copies (.clk, .rst(fabric_rst), .in(unpacked), .out(copy), .empty(none_waits));
  copy_cutter #(.PIECE(piece_bytes(DATA_W))) cutter (.clk, .rst(fabric_rst), .give_up, .copy, .piece, .source, .idle(cutter_idle));

  copy_mover #(.DATA_W(DATA_W), .ID_W(ID_W)) mover (
      .clk, .rst(fabric_rst), .start, .give_up, .fetch, .piece, .source, .fetched, .fetch_failed, .outcome, .report, .reported, .report_failed,
      .of_report, .mem, .events, .idle(mover_idle)
  );

  assign idle = registers_idle && queue_idle && mover_idle && cutter_idle && unpack_idle && none_waits;
endmodule
