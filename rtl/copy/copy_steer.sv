// SPDX-License-Identifier: Apache-2.0

// Between what is read and what is written: passes each packet of `read` to `write` or `fetched`, or drops it, and puts completions between
// those that are written, as `move` says: one entry for each packet, in their order.
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
    axis_if.sink     read,
    axis_if.source   write,
    axis_if.source   fetched,
    output logic     empty      // no move waits for its packet
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned BEATS = BYTES < COMPLETION_BYTES ? COMPLETION_BYTES / BYTES : 1;   // of a completion

  stream_if #(.T(copy_move_t)) current ();
  stream_fifo #(.T(copy_move_t), .DEPTH(16)) moves (.clk, .rst, .in(move), .out(current), .empty);

  copy_move_t now;
  assign now = current.data;
  wire writes  = current.valid && now.kind == MOVE_WRITE;
  wire fetches = current.valid && now.kind == MOVE_FETCHED;
  wire drops   = current.valid && now.kind == MOVE_DROP;
  wire reports = current.valid && now.kind == MOVE_REPORT;

  copy_completion_t completion;
  assign completion = '{generation: now.generation, zeros: '0, status: now.status, none: '0, tag: now.tag};

  logic [DATA_W-1:0] part;
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
    assign part  = DATA_W'(completion);
    assign whole = 1'b1;
  end

  always_comb begin
    write.tdata = read.tdata;
    for (int unsigned i = 0; i < DATA_W && i < 8 * COMPLETION_BYTES; i++) if (reports) write.tdata[i] = part[i];
  end
  assign write.tkeep  = reports ? BYTES'({COMPLETION_BYTES{1'b1}}) : read.tkeep;
  assign write.tlast  = reports ? whole : read.tlast;
  assign write.tuser  = 1'b0;
  assign write.tvalid = reports || (writes && read.tvalid);

  assign fetched.tdata  = read.tdata;
  assign fetched.tkeep  = read.tkeep;
  assign fetched.tlast  = read.tlast;
  assign fetched.tuser  = 1'b0;
  assign fetched.tvalid = fetches && read.tvalid;

  assign read.tready   = (writes && write.tready) || (fetches && fetched.tready) || drops;
  assign current.ready = reports ? write.tready && whole : read.tvalid && read.tready && read.tlast;

  logic unused_ok;
  assign unused_ok = &{1'b0, read.tuser};
endmodule
