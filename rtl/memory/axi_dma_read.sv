// SPDX-License-Identifier: Apache-2.0

// Reads packets from memory: for each transfer on `cmd`, from any byte address, one packet on `data`, byte 0 first (none for length 0).
// tuser with the last beat: memory answered at least one beat of the packet with an error.
//
// Throughput: one beat a cycle, also across transfers of one beat each (an unaligned transfer needs as many cycles as it touches beats of
// memory). Latency: 2 cycles from `cmd` to AR, 4 from R to `data`, 3 from the second beat if unaligned. At most BUFFER_BEATS beats are
// outstanding: at one beat a cycle this must cover the latency of memory. Buffer space is reserved before a burst is issued, so R never
// stalls, however slow `data` is, and no other master of the memory is delayed.
//
// With IN_PLACE nothing is shifted: a beat of `data` for each beat of memory that the transfer touches, each byte in its lane, tkeep all ones. What
// the first beat has below the address and the last one behind the end is undefined. tuser comes with the beat that memory answered with an
// error, and with those behind it, so that what is before it can be used.
module axi_dma_read
  import memory_pkg::*;
#(
    parameter int unsigned DATA_W       = 512,
    parameter int unsigned ID_W         = 4,
    parameter int unsigned BURST_BYTES  = 4096,
    parameter int unsigned BUFFER_BEATS = 512,    // power of two, at least one burst
    parameter int unsigned ALIGN        = 1,      // 1 or 4: what addresses are a multiple of
    parameter bit          IN_PLACE     = 1'b0,
    parameter bit          STORE        = 1'b1    // 0: who takes `data` never stops it, and beats are not stored: 2 cycles less
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.sink   cmd,    // dma_cmd_t
    axi_if.master    mem,    // read channels; the write channels are unused. All with ID 0
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

  // ---- bursts, issued when the buffer has space for their data ----
  stream_if #(.T(dma_burst_t)) burst ();
  logic walker_idle;
  dma_burst_walker #(.DATA_W(DATA_W), .BURST_BYTES(BURST_BYTES)) walker (.clk, .rst, .cmd, .burst, .idle(walker_idle));

  // The fields of a burst that the packet builder needs.
  typedef struct packed {
    logic  first;
    logic  last;
    logic  wraps;
    lane_t shift;
    lane_t tail;
  } note_t;

  beats_t free_q, beats;
  logic   room, asked, pop;

  assign beats       = beats_t'(burst.data.len) + 1'b1;
  assign room        = beats <= free_q;   // stable until accepted: only an issue reduces the free space
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
      first: burst.data.first,
      last: burst.data.last,
      wraps: burst.data.wraps && !IN_PLACE,
      shift: IN_PLACE ? '0 : lane_t'(burst.data.shift),
      tail: IN_PLACE ? '1 : lane_t'(burst.data.tail)
  };
  // Never full: each burst has reserved at least one beat.
  stream_fifo #(.T(note_t), .DEPTH(BUFFER_BEATS), .BLOCK_RAM(STORE && BUFFER_BEATS > 64)) notes (
      .clk, .rst, .in(note_in), .out(note), .empty()
  );

  // ---- read data ----
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
  if (STORE) begin : g_store
    stream_fifo #(.T(beat_t), .DEPTH(BUFFER_BEATS)) beats_back (.clk, .rst, .in(beat_in), .out(beat), .empty());
  end else begin : g_no_store
    assign beat.valid    = beat_in.valid;
    assign beat.data     = beat_in.data;
    assign beat_in.ready = beat.ready;
  end

  // ---- packets ----
  // A beat of memory is held until the packet's beat that begins in it is complete: with the lower lanes of the next beat, or by itself if
  // it is aligned or the last. The last beat of a transfer that wraps only completes the one before: it is not held.
  logic              opens_q;                       // the next beat is the first of its burst
  logic              held_q;
  logic              alone_q;                       // the held beat completes a packet beat by itself
  logic              end_q;                         // which is the last of its transfer
  logic              error_q;                       // of the held beat or of an earlier one of its transfer
  lane_t             shift_q, tail_q;
  logic [DATA_W-1:0] held_data_q, merged;
  logic              here, last, spent, error, emit, ends;

  assign here  = beat.valid && note.valid;
  assign last  = note.data.last && beat.data.last;
  assign spent = last && note.data.wraps;
  assign error = beat.data.error || (error_q && !(note.data.first && opens_q));

  assign emit       = held_q && (alone_q || here) && (!data.tvalid || data.tready);
  assign ends       = alone_q ? end_q : spent;
  assign pop        = here && (!held_q || emit);
  assign beat.ready = pop;
  assign note.ready = pop && beat.data.last;

  if (IN_PLACE) begin : g_in_place
    assign merged = held_data_q;
    logic unused_ok;
    assign unused_ok = &{1'b0, shift_q};
  end else begin : g_parts
    byte_funnel #(.DATA_W(DATA_W), .ALIGN(ALIGN)) funnel (.low(held_data_q), .high(beat.data.data), .amount(shift_q), .out(merged));
  end

  always_ff @(posedge clk) begin
    if (pop) begin
      held_data_q <= beat.data.data;
      alone_q     <= last || note.data.shift == '0;
      end_q       <= last;
      error_q     <= error;
      shift_q     <= note.data.shift;
      tail_q      <= note.data.tail;
    end
    if (emit) begin
      data.tdata <= merged;
      data.tlast <= ends;
      data.tkeep <= ends ? {BYTES{1'b1}} >> ~tail_q : '1;
      data.tuser <= (ends || IN_PLACE) && (error_q || (!alone_q && beat.data.error));
    end
    if (rst) begin
      opens_q     <= 1'b1;
      held_q      <= 1'b0;
      data.tvalid <= 1'b0;
    end else begin
      if (pop) opens_q <= beat.data.last;
      if (pop || emit) held_q <= pop && !spent;
      if (!data.tvalid || data.tready) data.tvalid <= emit;
    end
  end

  assign idle = walker_idle && free_q == beats_t'(BUFFER_BEATS) && !held_q && !data.tvalid;

  assign mem.awvalid = 1'b0;
  assign mem.awaddr  = '0;
  assign mem.awid    = ID_W'(0);
  assign mem.awlen   = '0;
  assign mem.wvalid  = 1'b0;
  assign mem.wdata   = '0;
  assign mem.wstrb   = '0;
  assign mem.wlast   = 1'b0;
  assign mem.bready  = 1'b0;

  // Buffer space was reserved.
  always_ff @(posedge clk) begin
    if (!rst && beat_in.valid) assert (beat_in.ready) else $error("read data without reserved buffer space");
    if (!rst && note_in.valid) assert (note_in.ready) else $error("more bursts than reserved beats");
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, mem.rid, mem.rresp[0], mem.awready, mem.wready, mem.bid, mem.bresp, mem.bvalid};
endmodule
