// SPDX-License-Identifier: Apache-2.0

// Reads packets from memory: for each transfer on `cmd`, from any byte address, one packet on `data`, byte 0 first (none for
// length 0). tuser with the last beat: memory answered some beat of it with an error.
//
// Throughput: one beat a cycle, also across transfers of one beat each (an unaligned transfer needs as many cycles as it
// touches beats of memory). Latency: 2 cycles from `cmd` to AR, 3 from R to `data` (from the second beat if unaligned).
// BUFFER_BEATS beats are under way at most: at one beat a cycle it must cover the latency of memory. Room is reserved before
// a burst is asked for, so R never stops, however slow `data` is: others on the same memory do not feel it.
module axi_dma_read
  import memory_pkg::*;
#(
    parameter int unsigned DATA_W       = 512,
    parameter int unsigned ID_W         = 4,
    parameter int unsigned BURST_BYTES  = 4096,
    parameter int unsigned BUFFER_BEATS = 512     // power of two, at least one burst
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.sink   cmd,    // dma_cmd_t
    axi_if.master    mem,    // read channels; its write channels stay silent. All with ID 0
    axis_if.source   data,
    output logic     idle    // no transfer inside
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);
  localparam int unsigned SLOT_W = $clog2(BUFFER_BEATS);

  typedef logic [LANE_W-1:0] lane_t;
  typedef logic [SLOT_W:0]   beats_t;

  if ((BUFFER_BEATS & (BUFFER_BEATS - 1)) != 0 || BUFFER_BEATS * BYTES < BURST_BYTES) begin : g_bad_buffer
    $fatal(1, "BUFFER_BEATS must be a power of two and hold a burst");
  end

  // ---- bursts out, when there is room for what comes back ----
  stream_if #(.T(dma_burst_t)) burst ();
  logic walker_idle;
  dma_burst_walker #(.DATA_W(DATA_W), .BURST_BYTES(BURST_BYTES)) walker (.clk, .rst, .cmd, .burst, .idle(walker_idle));

  // What the packet builder needs to know of a burst.
  typedef struct packed {
    logic  first;
    logic  last;
    lane_t shift;
    lane_t tail;
  } note_t;

  beats_t free_q, beats;
  logic   room, asked, pop;

  assign beats       = beats_t'(burst.data.len) + 1'b1;
  assign room        = beats <= free_q;   // stays true until taken: only an issue takes room
  assign mem.arvalid = burst.valid && !burst.data.none && room;
  assign mem.araddr  = burst.data.addr;
  assign mem.arlen   = burst.data.len;
  assign mem.arid    = ID_W'(0);
  assign burst.ready = burst.data.none || (room && mem.arready);
  assign asked       = mem.arvalid && mem.arready;

  always_ff @(posedge clk) begin
    if (rst) free_q <= beats_t'(BUFFER_BEATS);
    else free_q <= free_q - (asked ? beats : '0) + beats_t'(pop);
  end

  stream_if #(.T(note_t)) note_in ();
  stream_if #(.T(note_t)) note ();
  assign note_in.valid = asked;
  assign note_in.data  = '{
      first: burst.data.first, last: burst.data.last, shift: lane_t'(burst.data.shift), tail: lane_t'(burst.data.tail)
  };
  // Never full: each burst has room for a beat or more.
  stream_fifo #(.T(note_t), .DEPTH(BUFFER_BEATS)) notes (.clk, .rst, .in(note_in), .out(note), .empty());

  // ---- beats back ----
  typedef struct packed {
    logic              last;   // of its burst
    logic              error;
    logic [DATA_W-1:0] data;
  } beat_t;

  stream_if #(.T(beat_t)) beat_in ();
  stream_if #(.T(beat_t)) beat ();
  assign beat_in.valid = mem.rvalid;
  assign beat_in.data  = '{last: mem.rlast, error: mem.rresp[1], data: mem.rdata};
  assign mem.rready    = 1'b1;
  stream_fifo #(.T(beat_t), .DEPTH(BUFFER_BEATS)) beats_back (.clk, .rst, .in(beat_in), .out(beat), .empty());

  // ---- packets ----
  // `held_q` has the beat before, rotated: a packet's beat is its upper lanes followed by the lower ones of the next beat.
  // The last bytes of a transfer may stay in it: they leave alone, while the next transfer's first beat may take its place.
  logic              opens_q;                       // next beat is the first of its burst
  logic              first, last, whole, prime, flush, flush_q, held_error_q, error, out_free, emit;
  lane_t             amount, flush_tail_q;
  logic [DATA_W-1:0] rotated, held_q, merged;
  logic [BYTES-1:0]  from_held, keep;

  assign first  = note.data.first && opens_q;
  assign last   = note.data.last && beat.data.last;
  assign amount = -note.data.shift;
  assign whole  = note.data.shift == '0 || (first && last);        // this beat alone makes one of the packet
  assign prime  = first && !whole;                                 // this beat makes none yet
  assign flush  = last && !whole && note.data.tail < amount;       // after this beat some bytes are still held
  assign error  = beat.data.error || (!first && held_error_q);

  assign out_free   = !data.tvalid || data.tready;
  assign pop        = beat.valid && note.valid && (prime ? !flush_q || out_free : !flush_q && out_free);
  assign emit       = out_free && (flush_q || (pop && !prime));
  assign beat.ready = pop;
  assign note.ready = pop && beat.data.last;

  byte_rotate #(.DATA_W(DATA_W)) rotate (.in(beat.data.data), .amount(amount), .out(rotated));

  assign from_held = flush_q ? '1 : whole ? '0 : ~({BYTES{1'b1}} << amount);
  assign keep      = {BYTES{1'b1}} >> (lane_t'(BYTES - 1) - (flush_q ? flush_tail_q : note.data.tail));
  for (genvar i = 0; i < BYTES; i++) begin : g_merge
    assign merged[i*8+:8] = from_held[i] ? held_q[i*8+:8] : rotated[i*8+:8];
  end

  always_ff @(posedge clk) begin
    if (pop) held_error_q <= error;
    if (pop && !whole) held_q <= rotated;
    if (pop && last) flush_tail_q <= note.data.tail;
    if (emit) begin
      data.tdata <= merged;
      data.tlast <= flush_q || (last && !flush);
      data.tkeep <= flush_q || (last && !flush) ? keep : '1;
      data.tuser <= flush_q ? held_error_q : last && !flush && error;
    end
    if (rst) begin
      opens_q     <= 1'b1;
      flush_q     <= 1'b0;
      data.tvalid <= 1'b0;
    end else begin
      if (pop) opens_q <= beat.data.last;
      if (flush_q ? out_free : pop) flush_q <= !flush_q && flush;
      if (out_free) data.tvalid <= emit;
    end
  end

  assign idle = walker_idle && free_q == beats_t'(BUFFER_BEATS) && !flush_q && !data.tvalid;

  assign mem.awvalid = 1'b0;
  assign mem.awaddr  = '0;
  assign mem.awid    = ID_W'(0);
  assign mem.awlen   = '0;
  assign mem.wvalid  = 1'b0;
  assign mem.wdata   = '0;
  assign mem.wstrb   = '0;
  assign mem.wlast   = 1'b0;
  assign mem.bready  = 1'b0;

  // Room was reserved.
  always_ff @(posedge clk) begin
    if (!rst && beat_in.valid) assert (beat_in.ready) else $error("a beat came that nobody asked for");
    if (!rst && note_in.valid) assert (note_in.ready) else $error("more bursts than beats");
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, mem.rid, mem.rresp[0], mem.awready, mem.wready, mem.bid, mem.bresp, mem.bvalid};
endmodule
