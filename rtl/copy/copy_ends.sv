// SPDX-License-Identifier: Apache-2.0

// What becomes of the write commands, in their order: of pieces the outcome of their list, which is the first error since the last report, or that a descriptor is bad; of
// completions whether they are written. An entry of `begun` for each command, in its cycle or before.
//
// Latency 1 cycle from `done` to `outcome` or the pulses. REPORTS outcomes wait: no more may be under way (`free`), so `done` never stops.
module copy_ends
  import memory_pkg::*;
  import copy_pkg::*;
#(
    parameter int unsigned REPORTS = 32       // a power of two
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         start,               // no list has begun
    stream_if.sink       begun,               // copy_begun_t
    stream_if.sink       done,                // dma_done_t
    stream_if.source     outcome,             // copy_outcome_t
    output logic         free,                // one more piece that reports may begin
    output logic         reported,            // pulse: a completion is visible,
    output logic         report_failed,       // or: it is not
    output copy_outcome_t of_report,          // with these: what it says
    output logic         copied,              // pulse: a copy has ended,
    output logic         failed,              // with an error
    output logic         idle
);
  localparam int unsigned COUNT_W = $clog2(REPORTS) + 1;

  stream_if #(.T(copy_begun_t)) under_way ();
  logic none_begun, none_ended;
  stream_fifo #(.T(copy_begun_t), .DEPTH(64)) order (.clk, .rst, .in(begun), .out(under_way), .empty(none_begun));

  copy_begun_t now;
  assign now = under_way.data;
  wire ended = done.valid && under_way.valid;
  assign done.ready      = under_way.valid;
  assign under_way.ready = done.valid;

  // Of the piece alone, of the copy up to it, of the list up to it.
  copy_status_e list_q, list;
  logic         bad_q;
  dma_done_t    result;
  assign result = done.data;
  wire copy_status_e piece = now.outcome.status != COPY_OK ? now.outcome.status : result.error ? COPY_DESTINATION : COPY_OK;
  wire bad = bad_q || piece != COPY_OK;
  assign list = list_q == COPY_OK || piece == COPY_DESCRIPTOR ? piece : list_q;   // what stops the queue is said in any case

  stream_if #(.T(copy_outcome_t)) told ();
  assign told.valid = ended && !now.completion && now.last && now.report;
  assign told.data  = '{tag: now.outcome.tag, status: list, interrupts: now.outcome.interrupts};
  stream_fifo #(.T(copy_outcome_t), .DEPTH(REPORTS)) outcomes (.clk, .rst, .in(told), .out(outcome), .empty(none_ended));

  logic [COUNT_W-1:0] owed_q;     // begun, and not taken
  wire owe  = begun.valid && begun.ready && !begun.data.completion && begun.data.last && begun.data.report;
  wire paid = outcome.valid && outcome.ready;
  assign free = !owed_q[COUNT_W-1];

  always_ff @(posedge clk) begin
    reported      <= !rst && ended && now.completion && !result.error;
    report_failed <= !rst && ended && now.completion && result.error;
    copied        <= !rst && ended && !now.completion && now.last;
    failed        <= bad;
    of_report     <= now.outcome;
    if (rst || start) begin
      list_q <= COPY_OK;
      bad_q  <= 1'b0;
    end else if (ended && !now.completion) begin
      list_q <= now.last && now.report ? COPY_OK : list;
      bad_q  <= !now.last && bad;
    end
    if (rst) owed_q <= '0;
    else owed_q <= owed_q + COUNT_W'(owe) - COUNT_W'(paid);
  end
  assign idle = none_begun && none_ended && !reported && !report_failed && !copied;

  always_ff @(posedge clk) begin
    if (!rst && done.valid) assert (under_way.valid) else $error("a write ended that has not begun");
    if (!rst && told.valid) assert (told.ready) else $error("more outcomes than places");
  end
endmodule
