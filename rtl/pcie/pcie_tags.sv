// SPDX-License-Identifier: Apache-2.0

// The tags of reads. One is taken, in turn, when a read is sent; it is *busy* until the read is done and its data was given on (`drained`).
// A read that is given up, for lack of a completion or because one did not fit, leaves its tag in *quarantine*: a completion that still
// comes must not meet another read. Quarantine ends with the read's last completion, or 4 TIMEOUT after it was sent. A read without its
// last completion TIMEOUT to 1.25 TIMEOUT cycles after it was sent, or while `end_all` of its function, is given to `expired`, as long as
// that is so.
//
// Tags are taken in turn and drained in that order, so the next one is the first to be free; one in quarantine is passed over, one a cycle.
module pcie_tags
  import pcie_pkg::*;
#(
    parameter int unsigned TAGS = 64,             // a power of two, 32 to 256
    parameter int unsigned FUNCTIONS = 1,         // 1 or 2
    parameter int unsigned TIMEOUT = 250_000      // cycles, 128 or more
) (
    input  logic            clk,
    input  logic            rst,
    input  logic            extended,             // more than 32 tags may be used
    stream_if.source        next,                 // logic [$clog2(TAGS)-1:0]: taken when a read is sent,
    input  function_t       next_func,            //   of this function
    input  logic [FUNCTIONS_MAX-1:0] end_all,     // by function
    // what a completion's tag is; combinational
    input  logic [$clog2(TAGS)-1:0] look,
    output function_t       look_func,            // whose it is
    output logic            look_waits,           // a read waits for it
    output logic            look_late,            // in quarantine
    // what completions do
    input  logic            finish,               // pulse: the read with this tag is done,
    input  logic            finish_error,         //   with an error,
    input  logic            finish_given_up,      //   and its completions may still come
    input  logic            late_end,             // pulse: those of a tag in quarantine have come
    input  logic [$clog2(TAGS)-1:0] finish_tag,   // of both
    stream_if.source        expired,              // logic [$clog2(TAGS)-1:0]
    output logic            expired_waits,        // a read waits for that one; combinational
    // reads in order
    input  logic [$clog2(TAGS)-1:0] oldest,
    output logic            oldest_done,
    output logic            oldest_error,
    input  logic            drained,              // pulse: the data of this tag is given on
    input  logic [$clog2(TAGS)-1:0] drained_tag,
    output logic [FUNCTIONS_MAX-1:0] none_busy    // by function
);
  localparam int unsigned TAG_W = $clog2(TAGS);
  localparam int unsigned EPOCH = TIMEOUT / 4;
  localparam int unsigned EPOCH_W = $clog2(EPOCH);
  typedef logic [TAG_W-1:0] tag_t;
  typedef logic [4:0] age_t;                      // in quarters of TIMEOUT

  if (TAGS < 32 || TAGS > 256 || 2 ** TAG_W != TAGS || TIMEOUT < 128) begin : g_bad
    $fatal(1, "TAGS must be a power of two from 32 to 256, TIMEOUT 128 or more");
  end

  logic [TAGS-1:0] busy_q, done_q, error_q, quarantine_q;
  function_t [TAGS-1:0] func_q, func;             // whose each is
  assign func = FUNCTIONS > 1 ? func_q : '0;

  // ---- the next tag ----
  tag_t turn_q, next_q;
  logic next_valid_q;
  wire  take = next.valid && next.ready;
  wire  find = !next_valid_q || take;             // looks at one in turn
  wire  free = !busy_q[turn_q] && !quarantine_q[turn_q] && !(take && next_q == turn_q);
  wire  skip = !busy_q[turn_q] && quarantine_q[turn_q];
  wire  last_turn = turn_q == (extended ? tag_t'(TAGS - 1) : tag_t'(31)) || (!extended && 32'(turn_q) > 32'd31);
  assign next.valid = next_valid_q && (extended || 32'(next_q) < 32'd32);
  assign next.data  = next_q;
  wire  discard = next_valid_q && !next.valid;    // extended tags were switched off

  always_ff @(posedge clk) begin
    if (find && (free || skip)) turn_q <= last_turn ? '0 : turn_q + 1'b1;
    if (find) next_q <= turn_q;
    if (rst) begin
      turn_q       <= '0;
      next_valid_q <= 1'b0;
    end else if (find) next_valid_q <= free;
    else if (discard) next_valid_q <= 1'b0;
  end

  // ---- time ----
  logic [EPOCH_W:0] cycle_q;
  age_t now_q;
  (* ram_style = "distributed" *) age_t sent_at[TAGS];
  // Each is looked at in turn: `scanned` has when it was sent, `judged` its age and its state, as of a cycle ago.
  tag_t scan_q, scanned_q, judged_q, pending_q;
  age_t scanned_at_q, age_q;
  logic scanned_valid_q, judged_valid_q, waits_q, ends_q, rests_q, pending_valid_q;   // ends: of a function whose reads end
  wire  over  = judged_valid_q && waits_q && (ends_q || age_q >= 5'd5);
  wire  ended = judged_valid_q && rests_q && age_q >= 5'd16;

  // Given out as long as it is so, and one cycle more: the read may be finished, and even its tag be taken again, meanwhile.
  logic still_q;
  wire  load = !pending_valid_q || !still_q;
  assign expired.valid = pending_valid_q && still_q;
  assign expired.data  = pending_q;
  assign expired_waits = busy_q[pending_q] && !done_q[pending_q];

  always_ff @(posedge clk) begin
    if (take) sent_at[next_q] <= now_q;
    scanned_at_q <= sent_at[scan_q];
    scanned_q    <= scan_q;
    judged_q     <= scanned_q;
    age_q        <= now_q - scanned_at_q;
    waits_q      <= busy_q[scanned_q] && !done_q[scanned_q];
    ends_q       <= end_all[func[scanned_q]];
    rests_q      <= quarantine_q[scanned_q] && !busy_q[scanned_q];
    if (load) pending_q <= judged_q;
    still_q <= load || expired_waits;
    if (rst) begin
      cycle_q         <= '0;
      now_q           <= '0;
      scan_q          <= '0;
      scanned_valid_q <= 1'b0;
      judged_valid_q  <= 1'b0;
      pending_valid_q <= 1'b0;
    end else begin
      cycle_q <= cycle_q == (EPOCH_W + 1)'(EPOCH - 1) ? '0 : cycle_q + 1'b1;
      if (cycle_q == '0) now_q <= now_q + 1'b1;
      scan_q          <= scan_q + 1'b1;
      scanned_valid_q <= !(take && next_q == scan_q);
      judged_valid_q  <= scanned_valid_q;
      if (load) pending_valid_q <= over;
      else if (expired.ready) pending_valid_q <= 1'b0;
    end
  end

  // ---- the state of each ----
  assign look_func    = func[look];
  assign look_waits   = busy_q[look] && !done_q[look];
  assign look_late    = quarantine_q[look];
  assign oldest_done  = done_q[oldest];
  assign oldest_error = error_q[oldest];
  for (genvar i = 0; i < FUNCTIONS_MAX; i++) begin : g_busy
    logic [TAGS-1:0] of;
    for (genvar k = 0; k < TAGS; k++) begin : g_tag
      assign of[k] = busy_q[k] && func[k] == function_t'(i);
    end
    always_ff @(posedge clk) none_busy[i] <= !rst && of == '0 && !(take && next_func == function_t'(i));
  end
  always_ff @(posedge clk) begin
    if (take) begin
      busy_q[next_q]  <= 1'b1;
      func_q[next_q]  <= next_func;
      done_q[next_q]  <= 1'b0;
      error_q[next_q] <= 1'b0;
    end
    if (finish) begin
      done_q[finish_tag]       <= 1'b1;
      error_q[finish_tag]      <= finish_error;
      quarantine_q[finish_tag] <= finish_given_up;
    end
    if (late_end) quarantine_q[finish_tag] <= 1'b0;
    if (ended) quarantine_q[judged_q] <= 1'b0;
    if (drained) busy_q[drained_tag] <= 1'b0;
    if (rst) begin
      busy_q       <= '0;
      quarantine_q <= '0;
    end
  end
endmodule
