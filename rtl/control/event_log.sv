// SPDX-License-Identifier: Apache-2.0

// The event log (docs/reference/event-log.md): takes down what its sources tell, with the time, in rings of one block RAM. A new entry takes
// the place of the oldest of its ring only.
//
// A source is held until it is taken, one a cycle, source 0 first; from there a queue leads to the rings, which take an entry in 4 cycles.
// Kinds that the network causes leave half of the queue to the others. A source that tells again before it was taken loses that event, which
// `lost` counts. The time of an entry is that at which it is written: a few cycles late, in a burst up to 70.
module event_log
  import event_log_pkg::*;
#(
    parameter int unsigned SOURCES = 4,
    parameter int unsigned DEPTH = 16,                // of the queue: a power of two
    parameter logic [31:0] TICKS_HZ = 250_000_000,    // of `now`
    parameter logic [31:0] NEXT = {12'd0, cci_map_pkg::SOCKET_PAGE, 12'd0}   // the register block after this one
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [47:0] now,                          // device cycles; may jump ahead
    input  log_event_t [SOURCES-1:0] events,
    axil_if.slave       bus,                          // 12 bits of address
    output logic        idle                          // nothing to take down, no access in progress
);
  localparam int unsigned LEVEL_W = $clog2(DEPTH) + 1;
  localparam int unsigned SLOT_W = $clog2(LOG_RING_ENTRIES);
  typedef logic [$clog2(SOURCES)-1:0] source_t;

  if (SOURCES < 2) begin : g_check
    $fatal(1, "event_log: %0d sources; there must be 2 or more", SOURCES);
  end

  // ---- what the sources tell, until it is taken ----
  log_item_t [SOURCES-1:0] item_q;
  logic [SOURCES-1:0] held_q, takes, loses_q;
  logic [LEVEL_W-1:0] level_q;   // entries queued, the one being written included
  logic               any;
  source_t            source;
  wire room     = level_q < LEVEL_W'(DEPTH);
  wire half_room = level_q < LEVEL_W'(DEPTH / 2);

  always_comb begin
    any    = 1'b0;
    source = '0;
    for (int unsigned i = SOURCES; i > 0; i--) begin
      if (held_q[i-1] && (item_q[i-1].kind.ring inside {RING_DEVICE, RING_FAULTS} ? room : half_room)) begin
        any    = 1'b1;
        source = source_t'(i - 1);
      end
    end
    takes = SOURCES'(any) << source;
  end

  logic [31:0] lost_q;
  always_ff @(posedge clk) begin
    for (int unsigned i = 0; i < SOURCES; i++) begin
      if (events[i].valid && (!held_q[i] || takes[i])) item_q[i] <= events[i].item;
      held_q[i]  <= events[i].valid || held_q[i] && !takes[i];
      loses_q[i] <= events[i].valid && held_q[i] && !takes[i];
    end
    lost_q <= lost_q + 32'($countones(loses_q));
    if (rst) begin
      held_q  <= '0;
      loses_q <= '0;
      lost_q  <= '0;
    end
  end

  // ---- the queue ----
  stream_if #(.T(log_item_t)) taken ();
  stream_if #(.T(log_item_t)) queued ();
  logic queue_empty;
  assign taken.valid = any;
  assign taken.data  = item_q[source];
  stream_fifo #(.T(log_item_t), .DEPTH(DEPTH)) queue (.clk, .rst, .in(taken), .out(queued), .empty(queue_empty));

  wire written = queued.valid && queued.ready;
  always_ff @(posedge clk) begin
    if (rst) level_q <= '0;
    else level_q <= level_q + LEVEL_W'(any) - LEVEL_W'(written);
  end

  // ---- the rings: a word a cycle ----
  (* ram_style = "block" *) logic [31:0] words[LOG_RINGS * LOG_RING_ENTRIES * 4];
  logic [LOG_RINGS-1:0][31:0] head_q;
  logic [1:0]  step_q;
  logic [8:0]  word_at;
  logic [31:0] word_q;
  logic [15:0] time_hi_q;   // of the first word's cycle: it may change before it is written
  log_item_t   told;
  assign told = queued.data;
  wire log_entry_t entry = '{
      time_lo: now[31:0], kind: told.kind, reserved: '0, time_hi: time_hi_q, a: told.a, b: told.b
  };
  wire log_ring_e ring = told.kind.ring;
  wire [3:0][31:0] entry_words = entry;
  wire [SLOT_W-1:0] slot = head_q[ring][SLOT_W-1:0];
  assign queued.ready = step_q == 2'd3;

  always_ff @(posedge clk) if (queued.valid) words[{ring, slot, step_q}] <= entry_words[2'd3 - step_q];
  always_ff @(posedge clk) word_q <= words[word_at];
  always_ff @(posedge clk) if (step_q == '0) time_hi_q <= now[47:32];
  always_ff @(posedge clk) begin
    if (queued.valid) step_q <= step_q + 1'b1;
    if (written) head_q[ring] <= head_q[ring] + 1'b1;
    if (rst) begin
      step_q <= '0;
      head_q <= '0;
    end
  end

  // ---- registers ----
  logic registers_idle;
  event_log_registers #(.TICKS_HZ(TICKS_HZ), .NEXT(NEXT)) registers (
      .clk, .rst, .bus, .now, .lost(lost_q), .head(head_q), .word_at, .word(word_q), .idle(registers_idle)
  );

  assign idle = registers_idle && queue_empty && held_q == '0 && loses_q == '0;

  // The bounds on the level keep the queue from being full.
  always_ff @(posedge clk) if (!rst) assert (!any || taken.ready);
endmodule
