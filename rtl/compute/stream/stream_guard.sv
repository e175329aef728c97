// SPDX-License-Identifier: Apache-2.0

// One direction of a streaming socket: gives frames to a kernel (`to`), takes them back (`from`), and cuts the kernel off if it does not keep
// the rules: a frame out for each frame in, in order, none of them late, too long or malformed (docs/reference/stream-sockets.md).
//
// A frame goes through the kernel if `through` is high with its first beat, else round it; order is kept, so a frame that goes round waits until
// the kernel has none. While `cut` is high all frames go round. What a kernel had when it was cut off is lost: of a frame that was leaving the
// end is a beat with tuser, as of one that the kernel drops. `out` may take back a beat that is not accepted: it ends in a store.
//
// One beat a cycle. Latency 0 to `to` and round the kernel, 2 from `from` to `out`.
module stream_guard
  import stream_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned MAX_FRAME = 9018,   // bytes, without FCS
    parameter type         INFO = logic        // goes round the kernel with each frame
) (
    input  logic          clk,
    input  logic          rst,
    input  logic          through,
    input  logic          cut,                 // from the cycle behind a `fault` on, until the kernel was reset
    input  logic [15:0]   limit,               // cycles until the oldest frame must have left, those in which `out` stops not counted; 0: none
    axis_if.sink          in,                  // whole frames
    input  INFO           in_info,             // with each beat
    axis_if.source        out,
    output INFO           out_info,            // with each beat
    output logic          out_through,         // likewise: the frame comes from the kernel
    axis_if.source        to,
    axis_if.sink          from,
    output cut_e          fault,               // the kernel does not keep the rules
    output guard_events_t events,
    output logic          idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LAST_BEAT = (MAX_FRAME - 1) / BYTES;      // of the longest frame,
  localparam int unsigned LAST_LANE = (MAX_FRAME - 1) % BYTES;
  localparam int unsigned LEAST_BEAT = (MIN_FRAME - 1) / BYTES;     // and of the shortest one
  localparam int unsigned LEAST_LANE = (MIN_FRAME - 1) % BYTES;
  typedef logic [$clog2(LAST_BEAT+2)-1:0] beat_index_t;

  typedef enum logic [1:0] {
    KERNEL,
    ROUND,
    DISCARD                                    // the rest of a frame whose begin is lost
  } way_e;

  // ---- in ----
  way_e       way_q, way;
  logic       in_frame_q, offered_q;           // offered_q: a first beat was offered to the kernel, so it stays
  logic [6:0] due_q;                           // frames that have begun to go to the kernel, and have not left
  logic       abort_q;                         // a frame on `out` is to be ended
  stream_if #(.T(INFO)) info_in ();
  stream_if #(.T(INFO)) info ();

  always_comb begin
    way = way_q;
    if (!in_frame_q) way = (through || offered_q) && !cut ? KERNEL : ROUND;
  end
  wire stops = cut || fault != CUT_NONE;
  wire room = in_frame_q || info_in.ready;
  wire rounds = in.tvalid && way == ROUND && (in_frame_q || (due_q == '0 && !abort_q));
  wire given = to.tvalid && to.tready;
  wire begins = given && !in_frame_q;

  assign to.tvalid = in.tvalid && way == KERNEL && room && !cut;
  assign to.tdata  = in.tdata;
  assign to.tkeep  = in.tkeep;
  assign to.tlast  = in.tlast;
  assign to.tuser  = 1'b0;
  always_comb
    unique case (way)
      KERNEL:  in.tready = to.tready && room && !cut;
      ROUND:   in.tready = rounds && out.tready;
      default: in.tready = 1'b1;
    endcase
  wire taken = in.tvalid && in.tready;

  assign info_in.valid = begins;
  assign info_in.data  = in_info;
  stream_fifo #(.T(INFO), .DEPTH(FRAMES_INSIDE)) infos (.clk, .rst(rst || cut), .in(info_in), .out(info), .empty());

  // ---- out: what a beat has to say about the rules is found out a cycle before ----
  axis_if #(.DATA_W(DATA_W)) came ();
  axis_if #(.DATA_W(DATA_W)) back ();
  axis_slice #(.DATA_W(DATA_W)) slice (.clk, .rst(rst || cut), .in(from), .out(came));
  axis_slice #(.DATA_W(DATA_W), .SKID(1'b0)) next_slice (.clk, .rst(rst || cut), .in(came), .out(back));
  logic hole, hole_q;                          // bytes are missing
  always_comb begin
    hole = !came.tkeep[0] || (!came.tlast && !came.tkeep[BYTES-1]);
    for (int unsigned i = 1; i < BYTES; i++) if (came.tkeep[i] && !came.tkeep[i-1]) hole = 1'b1;
  end
  always_ff @(posedge clk) if (came.tready) hole_q <= hole;

  logic        out_frame_q;                    // a frame of the kernel has begun on `out`
  beat_index_t beat_q;
  wire leaving = back.tvalid && due_q != '0 && !abort_q && !stops;
  wire left = leaving && out.tready && back.tlast;

  assign back.tready = due_q != '0 && !abort_q && !stops && out.tready;
  assign out.tvalid  = abort_q || leaving || rounds;
  assign out.tdata   = rounds ? in.tdata : back.tdata;
  assign out.tkeep   = abort_q ? BYTES'(1) : rounds ? in.tkeep : back.tkeep;
  assign out.tlast   = abort_q || (rounds ? in.tlast : back.tlast);
  assign out.tuser   = abort_q || (!rounds && back.tuser);
  assign out_info    = rounds ? in_info : info.data;
  assign out_through = !rounds;
  assign info.ready  = left;

  // ---- the rules ----
  logic too_long, too_short;
  assign too_long  = 32'(beat_q) > LAST_BEAT || (32'(beat_q) == LAST_BEAT && (!back.tlast || (LAST_LANE != BYTES - 1 && back.tkeep[(LAST_LANE+1)%BYTES])));
  assign too_short = back.tlast && (int'(beat_q) < int'(LEAST_BEAT) || (32'(beat_q) == LEAST_BEAT && !back.tkeep[LEAST_LANE]));

  // The oldest frame is late. What the kernel does not have, and what cannot leave, does not count.
  logic [15:0] late_q;
  logic        is_late_q;
  wire has_all = due_q > 7'd1 || (due_q == 7'd1 && !(in_frame_q && way_q == KERNEL));
  wire owes = has_all || (to.tvalid && !to.tready);
  wire blocked = back.tvalid && !out.tready;

  always_comb begin
    fault = CUT_NONE;
    if (!cut) begin
      if (is_late_q) fault = CUT_LATE;
      if (back.tvalid) begin
        if (due_q == '0) fault = CUT_EXTRA;
        else if (too_long) fault = CUT_LONG;
        else if (hole_q || too_short) fault = CUT_MALFORMED;
      end
    end
  end

  assign events.given   = begins;
  assign events.round   = rounds && out.tready && !in_frame_q;
  assign events.dropped = left && back.tuser;
  assign events.lost    = stops ? due_q + 7'(begins) : '0;
  assign idle           = !in.tvalid && !in_frame_q && due_q == '0 && !abort_q && !came.tvalid && !back.tvalid;

  always_ff @(posedge clk) begin
    offered_q <= !in_frame_q && to.tvalid && !to.tready && !stops;
    way_q     <= way;
    if (taken) in_frame_q <= !in.tlast;
    if (stops && way == KERNEL && (taken ? !in.tlast : in_frame_q)) way_q <= DISCARD;
    due_q <= stops ? '0 : due_q + 7'(begins) - 7'(left);

    if (left) out_frame_q <= 1'b0;
    else if (leaving && out.tready) out_frame_q <= 1'b1;
    if (left || stops) beat_q <= '0;
    else if (leaving && out.tready) beat_q <= beat_q + 1'b1;
    if (out.tready) abort_q <= 1'b0;
    if (stops && out_frame_q) begin
      abort_q     <= 1'b1;
      out_frame_q <= 1'b0;
    end

    if (left || stops || (due_q == '0 && !to.tvalid)) late_q <= '0;
    else if (owes && !blocked) late_q <= late_q + 1'b1;
    is_late_q <= limit != '0 && late_q >= limit && !left && !stops;

    if (rst) begin
      in_frame_q  <= 1'b0;
      offered_q   <= 1'b0;
      due_q       <= '0;
      out_frame_q <= 1'b0;
      beat_q      <= '0;
      abort_q     <= 1'b0;
      late_q      <= '0;
      is_late_q   <= 1'b0;
    end
  end

  always_ff @(posedge clk)
    if (!rst) begin
      assert (due_q <= 7'(FRAMES_INSIDE + 1));
      assert (!left || info.valid);
    end
endmodule
