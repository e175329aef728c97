// SPDX-License-Identifier: Apache-2.0

// The rings of the copy engine: reads descriptors ahead, as many as there are and as it has room for, and turns outcomes into completions.
//
// It begins with `enable`, when nothing is left of what was before, and both rings at their first place. Without `enable` it reads no
// more descriptors and what it has read ends. When something is wrong it stops: `give_up` lasts until `enable` is low and all has ended; what is under way
// is given up, and no completion is written any more. Its user is told by `interrupt`, as completions are.
//
// Latency: `producer` to `fetch` 2 cycles, `outcome` to `report` 0, the completion to `interrupt` 1. A read of descriptors takes at least 3 cycles.
module copy_queue
  import memory_pkg::*;
  import copy_pkg::*;
#(
    parameter int unsigned DEPTH = 64,            // descriptors that it can hold; power of two, at least BATCH
    parameter int unsigned VECTORS = 32           // of interrupts; another one is none
) (
    input  logic           clk,
    input  logic           rst,
    input  logic           enable,
    input  copy_settings_t settings,              // they do not change while it runs
    input  index_t         producer,
    input  logic           reset,                 // of the function: the rings are nobody's any more
    input  logic           quiet,                 // no copy is under way
    output copy_state_t    state,
    output logic           start,                 // pulse: it begins
    output logic           give_up,
    output logic           stops,                 // pulse: it has stopped, as `state` says
    stream_if.source       fetch,                 // copy_read_t
    input  logic           fetch_failed,
    input  logic           taken,                 // a descriptor has left: its place is free
    stream_if.sink         outcome,               // copy_outcome_t
    stream_if.source       report,                // copy_report_t
    input  logic           reported,
    input  logic           report_failed,
    input  copy_outcome_t  of_report,
    stream_if.source       interrupt,             // logic [$clog2(VECTORS)-1:0]
    output logic           idle                   // it waits for nothing but its user
);
  localparam int unsigned ROOM_W = $clog2(DEPTH) + 1;
  localparam int unsigned BATCH_W = $clog2(BATCH);
  typedef logic [BATCH_W:0] batch_t;

  // An entry of a ring of 2^log entries of 2^bytes_log bytes: the ring is as aligned as it is long.
  function automatic addr_t entry_at(addr_t ring, logic [3:0] log, index_t index, int unsigned bytes_log);
    addr_t at;
    at = ring;
    for (int unsigned i = 0; i < RING_LOG_MAX; i++) if (i < 32'(log)) at[bytes_log+i] = index[i];
    for (int unsigned i = 0; i < bytes_log; i++) at[i] = 1'b0;
    return at;
  endfunction

  function automatic logic fits(logic [3:0] log);
    return 32'(log) >= RING_LOG_MIN;   // and 4 bits have no more than RING_LOG_MAX
  endfunction

  // ---- begin and end ----
  logic   running_q;
  stop_e  stopped_q;
  index_t fetched_q, consumed_q, written_q;
  logic   waits_q;                                 // an interrupt that is to be asked for
  logic   gave_up_q;

  wire may_fetch = running_q && enable && stopped_q == STOP_NONE;
  assign start = enable && !running_q && !reset;
  assign give_up = running_q && stopped_q != STOP_NONE;
  assign stops = give_up && !gave_up_q;
  assign state = '{stopped: stopped_q, running: running_q, consumer: consumed_q, reported: written_q};

  // ---- descriptors ----
  typedef enum logic [1:0] {
    F_LOOK,
    F_COUNT,
    F_ASK
  } fetch_state_e;
  fetch_state_e fetch_state_q;
  index_t ahead_q;                                 // descriptors that are there
  batch_t count_q;
  logic [ROOM_W-1:0] room_q;
  logic beyond;

  // Up to the next multiple of BATCH, so that no read crosses a multiple of its bytes.
  wire batch_t to_border = batch_t'(BATCH) - batch_t'(fetched_q[BATCH_W-1:0]);
  wire asked = fetch.valid && fetch.ready;
  always_comb begin
    beyond = 1'b0;
    for (int unsigned i = RING_LOG_MIN; i <= RING_LOG_MAX; i++) if (32'(settings.descriptors_log) == i) beyond |= ahead_q > index_t'(1 << i);
  end

  assign fetch.valid        = fetch_state_q == F_ASK && ROOM_W'(count_q) <= room_q;   // room does not shrink meanwhile
  assign fetch.data.address = entry_at(settings.descriptors, settings.descriptors_log, fetched_q, $clog2(DESCRIPTOR_BYTES));
  assign fetch.data.length  = piece_size_t'(count_q) << $clog2(DESCRIPTOR_BYTES);

  always_ff @(posedge clk) begin
    ahead_q <= producer - fetched_q;
    if (fetch_state_q == F_COUNT) count_q <= ahead_q < index_t'(to_border) ? batch_t'(ahead_q) : to_border;
    if (rst || start) begin
      fetch_state_q <= F_LOOK;
      fetched_q     <= '0;
      consumed_q    <= '0;
      room_q        <= ROOM_W'(DEPTH);
    end else begin
      unique case (fetch_state_q)
        F_LOOK:  if (may_fetch && producer != fetched_q) fetch_state_q <= F_COUNT;
        F_COUNT: fetch_state_q <= may_fetch && !beyond ? F_ASK : F_LOOK;
        default: if (asked || (give_up && !fetch.valid)) fetch_state_q <= F_LOOK;   // room for what was lost never comes back
      endcase
      if (taken) consumed_q <= consumed_q + 1'b1;
      if (asked) fetched_q <= fetched_q + index_t'(count_q);
      room_q <= room_q - (asked ? ROOM_W'(count_q) : '0) + ROOM_W'(taken);
    end
  end

  // ---- completions ----
  logic offered_q;                                 // one that is offered stays
  wire drops = give_up && !offered_q;
  assign report.valid = outcome.valid && !drops;
  assign report.data  = '{
      address: entry_at(settings.completions, settings.completions_log, written_q, $clog2(COMPLETION_BYTES)),
      generation: !written_q[settings.completions_log],
      outcome: outcome.data
  };
  assign outcome.ready = report.ready || drops;
  always_ff @(posedge clk) begin
    offered_q <= !rst && report.valid && !report.ready;
    if (rst || start) written_q <= '0;
    else if (report.valid && report.ready) written_q <= written_q + 1'b1;
  end

  assign interrupt.valid = waits_q;
  assign interrupt.data  = ($clog2(VECTORS))'(settings.vector);

  // ---- what stops it ----
  always_ff @(posedge clk) begin
    if (rst) begin
      running_q <= 1'b0;
      stopped_q <= STOP_NONE;
      waits_q   <= 1'b0;
      gave_up_q <= 1'b0;
    end else begin
      gave_up_q <= give_up;
      waits_q <= (waits_q && !interrupt.ready) || (((reported && of_report.interrupts) || stops) && 32'(settings.vector) < VECTORS);
      if (start) begin
        running_q <= 1'b1;
        stopped_q <= fits(settings.descriptors_log) && fits(settings.completions_log) ? STOP_NONE : STOP_SETTINGS;
      end else if (running_q) begin
        running_q <= enable || !idle || !quiet;
        if (stopped_q == STOP_NONE) begin
          if (reset) stopped_q <= STOP_RESET;
          else if (fetch_failed) stopped_q <= STOP_FETCH;
          else if (report_failed) stopped_q <= STOP_COMPLETION;
          else if (reported && of_report.status == COPY_DESCRIPTOR) stopped_q <= STOP_DESCRIPTOR;
          else if (fetch_state_q == F_COUNT && beyond) stopped_q <= STOP_PRODUCER;
        end
      end
    end
  end
  assign idle = fetch_state_q == F_LOOK && !waits_q && !outcome.valid && (!may_fetch || producer == fetched_q);
endmodule
