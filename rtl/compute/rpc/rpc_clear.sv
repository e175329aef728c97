// SPDX-License-Identifier: Apache-2.0

// Clears extents before they are granted, in turns: FIRST_TURN pages first, then TURN pages. First and further turns alternate, so that a
// small extent waits for at most two further turns if no other one arrives, and a large one makes progress.
//
// Latency from `extent` to `cleared` of a small extent alone: its beats, the latency of memory, and 9 cycles (13 with block RAM). If the
// connection closes, clearing ends after the current turn. There is an entry for an extent of every context: `extent` is always
// accepted.
module rpc_clear
  import memory_pkg::*;
  import rpc_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned QPS = 16,
    parameter int unsigned CONTEXTS = 1,
    parameter page_t FIRST_TURN = 4,
    parameter page_t TURN = 1
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.sink   extent,        // extent_t; at most one of each context
    stream_if.source cleared,       // cleared_t
    output slot_t    asked,         // this connection
    input  logic     gone,          // is closed. Same cycle
    axi_if.master    mem,
    input  logic     others_write,  // see axi_clear
    output logic     idle
);
  localparam int unsigned EXTENTS = QPS * CONTEXTS;
  typedef logic [$clog2(QPS)-1:0] index_t;

  // A turn: the part of an extent that is not cleared yet.
  typedef struct packed {
    logic    first;
    extent_t left;
  } turn_t;

  // A turn in progress.
  typedef struct packed {
    context_t of;
    form_t    form;
    logic     first;
    logic     last;                               // no further turn follows
    logic     complete;                           // and the whole extent is cleared
  } note_t;

  stream_if #(.T(turn_t)) come (), again (), line[2] (), turn ();
  stream_if #(.T(note_t)) note_in (), note ();
  stream_if #(.T(dma_cmd_t)) cmd ();
  stream_if #(.T(dma_done_t)) done ();
  stream_if #(.T(cleared_t)) cleared_in ();
  logic none_come, none_again, none_noted, none_cleared, writer_idle;

  // ---- selection of the next turn ----
  assign come.valid   = extent.valid;
  assign come.data    = '{first: 1'b1, left: extent.data};
  assign extent.ready = come.ready;
  stream_fifo #(.T(turn_t), .DEPTH(EXTENTS)) arrivals (.clk, .rst, .in(come), .out(line[0]), .empty(none_come));
  stream_fifo #(.T(turn_t), .DEPTH(EXTENTS)) others (.clk, .rst, .in(again), .out(line[1]), .empty(none_again));
  stream_arbiter #(.T(turn_t), .N(2)) turns (.clk, .rst, .in(line), .last('1), .out(turn));

  // ---- a turn ----
  wire page_t most = turn.data.first ? FIRST_TURN : TURN;
  wire rest_fits = turn.data.left.pages <= most;
  wire page_t pages = rest_fits ? turn.data.left.pages : most;
  wire taken = turn.valid && turn.ready;

  assign asked         = turn.data.left.of.slot;
  assign turn.ready    = cmd.ready && note_in.ready;
  assign cmd.valid     = turn.valid && note_in.ready;
  assign cmd.data      = '{addr: page_addr(turn.data.left.base), length: 32'(page_addr(pages)), default: '0};
  assign note_in.valid = turn.valid && cmd.ready;
  assign note_in.data  = '{
      of: turn.data.left.of, form: turn.data.left.form, first: turn.data.first, last: rest_fits || gone, complete: rest_fits
  };
  assign again.valid   = taken && !rest_fits && !gone;
  assign again.data    = '{
      first: 1'b0,
      left: '{
          of: turn.data.left.of, form: turn.data.left.form,
          base: turn.data.left.base + most, pages: turn.data.left.pages - most
      }
  };

  axi_clear #(.DATA_W(DATA_W)) writer (.clk, .rst, .cmd, .others_write, .mem, .done, .idle(writer_idle));

  // ---- end of a turn ----
  logic [CONTEXTS-1:0] failed;   // memory reported an error for a part of this extent of the connection
  stream_fifo #(.T(note_t), .DEPTH(8)) notes (.clk, .rst, .in(note_in), .out(note), .empty(none_noted));

  logic failure;
  always_comb begin
    failure = done.data.error;
    for (int unsigned i = 0; i < CONTEXTS; i++) failure |= !note.data.first && note.data.of.number == number_t'(i) && failed[i];
  end
  for (genvar i = 0; i < CONTEXTS; i++) begin : g_failed
    (* ram_style = "distributed" *) logic failures[QPS];
    wire index_t at = index_t'(note.data.of.slot);
    assign failed[i] = failures[at];
    always_ff @(posedge clk) if (done.valid && note.data.of.number == number_t'(i)) failures[at] <= failure;
  end
  assign done.ready       = 1'b1;
  assign note.ready       = done.valid;
  assign cleared_in.valid = done.valid && note.data.last;
  assign cleared_in.data  = '{of: note.data.of, form: note.data.form, ok: note.data.complete && !failure};
  stream_fifo #(.T(cleared_t), .DEPTH(EXTENTS)) ends (.clk, .rst, .in(cleared_in), .out(cleared), .empty(none_cleared));

  assign idle = none_come && none_again && !turn.valid && none_noted && none_cleared && writer_idle;

  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (!extent.valid || extent.ready && extent.data.pages != '0);
      assert (!again.valid || again.ready);
      assert (!done.valid || note.valid);
      assert (!cleared_in.valid || cleared_in.ready);
    end
  end
endmodule
