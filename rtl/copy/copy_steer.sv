// SPDX-License-Identifier: Apache-2.0

// Between what is read and what is written: shifts each packet of `read`, which has the lanes of its source, to the lanes of its destination, and
// passes it to `write` or `fetched`, or drops it; puts completions between those that are written. `move` says so: one entry for each packet, in
// their order.
//
// A beat is made of two that follow each other: `held_q` and that which comes. If the source begins in a higher lane than the destination, the
// first beat that comes is only held. At the end the bytes of the last beat of the source may fill one more.
// One beat a cycle, no latency; a move can be used 1 cycle after it is taken.
module copy_steer
  import memory_pkg::*;
  import copy_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.sink   move,      // copy_move_t
    axis_if.sink     read,      // in the lanes of memory
    axis_if.source   write,     // likewise
    axis_if.source   fetched,   // from byte 0 on
    output logic     empty      // no move waits for its packet
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);
  localparam int unsigned BEATS = BYTES < COMPLETION_BYTES ? COMPLETION_BYTES / BYTES : 1;   // of a completion
  localparam int unsigned PART_W = BEATS > 1 ? DATA_W : 8 * COMPLETION_BYTES;

  stream_if #(.T(copy_move_t)) current ();
  stream_fifo #(.T(copy_move_t), .DEPTH(16)) moves (.clk, .rst, .in(move), .out(current), .empty);

  copy_move_t now;
  assign now = current.data;
  wire writes  = current.valid && now.kind == MOVE_WRITE;
  wire fetches = current.valid && now.kind == MOVE_FETCHED;
  wire drops   = current.valid && now.kind == MOVE_DROP;
  wire reports = current.valid && now.kind == MOVE_REPORT;

  // ---- a completion ----
  copy_completion_t completion;
  assign completion = '{generation: now.generation, zeros: '0, status: now.status, none: '0, tag: now.tag};

  logic [PART_W-1:0] part;
  logic              whole;
  if (BEATS > 1) begin : g_beats
    logic [$clog2(BEATS)-1:0] beat_q;
    always_ff @(posedge clk) begin
      if (rst) beat_q <= '0;
      else if (reports && write.tready) beat_q <= beat_q + 1'b1;
    end
    assign part  = completion[32'(beat_q)*DATA_W +: DATA_W];
    assign whole = &beat_q;
  end else begin : g_beat
    assign part  = completion;
    assign whole = 1'b1;
  end

  // ---- a packet; a completion is shifted to its lane as well ----
  logic [DATA_W-1:0] held_q, comes, shifted;
  logic [7:0]        count_q;       // beats that were given
  logic              primed_q, ended_q;
  wire primes = now.shift.prime && !primed_q;
  wire given  = (writes || fetches) && !primes && (read.tvalid || ended_q);
  wire passed = given && (writes ? write.tready : fetched.tready);
  wire last   = count_q == now.shift.beats;
  wire taken  = read.tvalid && read.tready;

  always_comb begin
    comes = read.tdata;
    if (reports) comes[PART_W-1:0] = part;
  end
  byte_funnel #(.DATA_W(DATA_W)) funnel (
      .low({comes[7:0], held_q[DATA_W-1:8]}), .high({8'd0, comes[DATA_W-1:8]}), .amount(LANE_W'(now.shift.amount)), .out(shifted)
  );

  assign read.tready   = drops || ((writes || fetches) && !ended_q && (primes || (writes ? write.tready : fetched.tready)));
  assign current.ready = reports ? write.tready && whole : drops ? taken && read.tlast : passed && last;

  always_ff @(posedge clk) begin
    if (taken) held_q <= read.tdata;
    if (rst || (current.valid && current.ready)) begin
      count_q  <= 8'd1;
      primed_q <= 1'b0;
      ended_q  <= 1'b0;
    end else begin
      if (passed) count_q <= count_q + 1'b1;
      if (taken) begin
        primed_q <= 1'b1;
        ended_q  <= read.tlast && !drops;
      end
    end
  end

  assign write.tdata  = shifted;
  assign write.tkeep  = '1;
  assign write.tlast  = reports ? whole : last;
  assign write.tuser  = 1'b0;
  assign write.tvalid = reports || (writes && given);

  assign fetched.tdata  = shifted;
  assign fetched.tlast  = last;
  assign fetched.tuser  = 1'b0;
  assign fetched.tvalid = fetches && given;
  for (genvar i = 0; i < BYTES; i++) begin : g_keep
    assign fetched.tkeep[i] = 32'(i) < DESCRIPTOR_BYTES || !(last && now.shift.half);
  end

  always_ff @(posedge clk) if (!rst && passed && last) assert (ended_q || read.tlast) else $error("the packet is longer than its move");

  logic unused_ok;
  assign unused_ok = &{1'b0, read.tkeep, read.tuser, now.shift.amount};
endmodule
