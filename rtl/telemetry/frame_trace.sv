// SPDX-License-Identifier: Apache-2.0

// The trace of frames (docs/reference/trace.md): records what the MAC receives and sends into block RAM, a beat of every cycle
// in each direction. It only looks: nothing that it does or does not do can stall or drop a frame.
//
// A start clears both. Without a trigger it records from then on; with one it records, in a ring if it is set so, and once the
// trigger has come `after` more frames. A trigger is seen one cycle after the last beat of its frame, or after its drop.
module frame_trace
  import trace_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ROWS = 512,               // of DATA_W bits, for each direction: a power of two
    parameter int unsigned FRAMES = 256,             // for each direction: a power of two
    parameter logic [31:0] TICKS_HZ = 250_000_000,   // of `now`
    parameter logic [31:0] NEXT = '0                 // the register block after this one
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [47:0] now,                         // device cycles; may jump ahead
    axis_if.monitor     seen[2],                     // what is received, what is sent
    input  logic        drop,                        // pulse: something was dropped
    axil_if.slave       bus,                         // 12 bits of address
    output logic        idle                         // no access in progress
);
  localparam int unsigned RX = 0, TX = 1;
  localparam int unsigned SOURCE_AT = 26, DESTINATION_AT = 30;   // IPv4 addresses

  localparam bit POWERS_OF_TWO = 2 ** $clog2(ROWS) == ROWS && 2 ** $clog2(FRAMES) == FRAMES;
  if (ROWS < 16 || ROWS > 32768 || FRAMES < 16 || FRAMES > 32768 || !POWERS_OF_TWO) begin : g_check
    $fatal(1, "frame_trace: %0d rows and %0d frames; both must be powers of two from 16 to 32768", ROWS, FRAMES);
  end

  trace_state_e   state_q;
  trace_trigger_e trigger;
  trace_mode_t    mode;
  trace_match_t [1:0] match;
  logic        start, stop, triggered_q, drop_q;
  logic [1:0]  directions, recorded, matched;
  logic [15:0] after, left_q;
  logic [47:0] trigger_ticks_q;
  logic [1:0][31:0] frames;
  logic [1:0][15:0] rows, missed;
  logic [1:0]  row_write;
  logic [1:0][$clog2(ROWS)-1:0]   row_write_at;
  logic [1:0][DATA_W-1:0]         row_in;
  logic [1:0][$clog2(FRAMES)-1:0] entry_write_at;
  trace_entry_t [1:0]             entry_in;
  logic [$clog2(ROWS):0]          row_at;
  logic [DATA_W-1:0]              row;
  logic [$clog2(FRAMES):0]        entry_at;
  trace_entry_t                   entry;

  for (genvar i = 0; i < 2; i++) begin : g_direction
    frame_recorder #(
        .DATA_W (DATA_W),
        .ROWS   (ROWS),
        .FRAMES (FRAMES),
        .PEER_AT(i == RX ? SOURCE_AT : DESTINATION_AT)
    ) recorder (
        .clk,
        .rst,
        .now,
        .seen(seen[i]),
        .start,
        .records(state_q != TRACE_STOPPED && directions[i]),
        .mode,
        .match(match[i]),
        .row_write(row_write[i]),
        .row_at(row_write_at[i]),
        .recorded(recorded[i]),
        .entry(entry_in[i]),
        .matched(matched[i]),
        .frames(frames[i]),
        .rows(rows[i]),
        .missed(missed[i])
    );
    assign row_in[i]         = seen[i].tdata;
    assign entry_write_at[i] = frames[i][$clog2(FRAMES)-1:0];
  end

  trace_memory #(.WIDTH(DATA_W), .DEPTH(ROWS)) row_memory (
      .clk, .write(row_write), .write_at(row_write_at), .data(row_in), .read_at(row_at), .read(row)
  );
  trace_memory #(.WIDTH($bits(trace_entry_t)), .DEPTH(FRAMES)) entry_memory (
      .clk, .write(recorded), .write_at(entry_write_at), .data(entry_in), .read_at(entry_at), .read(entry)
  );

  // ---- trigger ----
  wire fires = state_q == TRACE_WAITS && (trigger == TRACE_ON_MATCH ? matched != '0 : drop_q);
  wire [1:0] ends = 2'(recorded[RX]) + 2'(recorded[TX]);
  wire counts = state_q == TRACE_RECORDS && after != '0;
  wire done = counts && left_q <= 16'(ends);

  always_ff @(posedge clk) begin
    drop_q <= drop;
    if (fires) begin
      state_q         <= TRACE_RECORDS;
      triggered_q     <= 1'b1;
      trigger_ticks_q <= now;
    end
    if (counts) left_q <= left_q - 16'(ends);
    if (done || stop) state_q <= TRACE_STOPPED;
    if (start) begin
      state_q     <= trigger == TRACE_NO_TRIGGER ? TRACE_RECORDS : TRACE_WAITS;
      triggered_q <= 1'b0;
      left_q      <= after;
    end
    if (rst) begin
      state_q         <= TRACE_STOPPED;
      triggered_q     <= 1'b0;
      trigger_ticks_q <= '0;
    end
  end

  frame_trace_registers #(
      .DATA_W  (DATA_W),
      .ROWS    (ROWS),
      .FRAMES  (FRAMES),
      .TICKS_HZ(TICKS_HZ),
      .NEXT    (NEXT)
  ) registers (
      .clk,
      .rst,
      .bus,
      .start,
      .stop,
      .trigger,
      .mode,
      .directions,
      .after,
      .match,
      .state(state_q),
      .triggered(triggered_q),
      .trigger_ticks(trigger_ticks_q),
      .recorded(frames),
      .used(rows),
      .missed,
      .row_at,
      .row,
      .entry_at,
      .entry,
      .idle
  );
endmodule
