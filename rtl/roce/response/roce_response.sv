// SPDX-License-Identifier: Apache-2.0

// Generates the responses to the peers' requests: segments READ responses, executes atomics and caches their results, and coalesces
// acknowledgements.
//
//   respond -> intake -> [work list] -> send -> packet            tables, one word a QP:  tail (intake), head (send),
//                |  \--> [atomics list] -> atomics -> cache, work list                    executed (atomics), newest (intake)
//                \-----> [acknowledgement list] -> ack
//
// Responses of a QP stay in order: an acknowledgement leaves after all READ and atomic responses before it were selected for transmission.
// QPs are served round-robin, 4 KiB or one atomic per visit. A key must be valid whenever memory is accessed under it, and a `fence`
// reports when the accesses begun under an invalidated key are complete. See docs/reference/roce-response.md.
//
// Latency: `respond` to `packet` 7 cycles, to `ack` 4 if no response of the QP is pending. Throughput: one `respond` every 2 cycles, one
// packet a cycle of one READ. When `packet` stalls, READs and atomics wait in their queues and acknowledgements behind them, while
// acknowledgements of other QPs leave; when `ack` stalls, acknowledgements are coalesced. `respond` stalls only when `qp_event` or `failed`
// stalls: the queues hold every request that the responder may accept.
module roce_response
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import roce_requester_pkg::*;
  import roce_response_pkg::*;
#(
    parameter int unsigned DATA_W   = 512,
    parameter int unsigned ID_W     = 4,
    parameter int unsigned QPS      = 16,     // power of two, 8 to 1024
    parameter int unsigned RD_DEPTH = 8,      // READs and atomics outstanding per peer; power of two, 4 to 16
    parameter int unsigned LANES    = 1       // memories
) (
    input logic      clk,
    input logic      rst,

    stream_if.sink   cmd,                     // qp_cmd_t
    stream_if.source answer,                  // logic

    stream_if.sink   respond,                 // respond_t
    input qp_index_t rd_done_slot,
    output logic [7:0] rd_done,               // READs and atomics of this QP answered since its QP_SETUP, modulo 256; same cycle

    stream_if.source packet,                  // tx_packet_t
    input  targets_t  room,                   // see roce_tx_lanes
    output qp_index_t waits_index,
    input  targets_t  waits,
    input  logic      freed,
    stream_if.source ack,                     // ack_tx_t
    stream_if.sink   fault,                   // tx_fault_t: memory reported an error for payload
    input logic      left,                    // roce_tx has selected a response ...
    input qpn_t      left_qpn,                // ... of this QP
    input logic      tx_idle,                 // roce_tx has no response inside
    input targets_t  passed,                  // payload was read from this memory

    output logic [1:0][31:0] key,             // of a READ, of an atomic:
    input  logic [1:0] key_live,              // still valid, one cycle later
    input  logic     fence,                   // pulse: a key was invalidated
    output fence_t   fence_number,
    output fence_t   fences_through,
    output logic     fencing,                 // a fence is in progress:
    input  logic     others_over,             // the requester's accesses that it covers are complete

    axi_if.master    mem,                     // for atomics
    stream_if.source qp_event,                // qp_event_t
    stream_if.source failed,                  // qp_failed_t: the QP accepts no more requests
    output roce_rx_events_t events,
    output logic     idle
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  localparam int unsigned ENTRY_W = $clog2(2 * RD_DEPTH);
  localparam int unsigned PLACE_W = $clog2(RD_DEPTH);

  if (QPS < 8 || QPS > MAX_QPS || QPS != 2 ** $clog2(QPS)) begin : g_bad_qps
    $fatal(1, "roce_response: QPS must be a power of two from 8 to 1024");
  end
  if (RD_DEPTH < 4 || RD_DEPTH > RD_DEPTH_MAX || RD_DEPTH != 2 ** PLACE_W) begin : g_bad_depth
    $fatal(1, "roce_response: RD_DEPTH must be a power of two from 4 to 16");
  end

  logic [2:0] live;                           // intake, send, atomics
  logic init, fail, hold_intake, hold_send, intake_idle, send_idle, ack_idle, control_idle, engaged;
  qp_index_t watch;

  // ---- tables ----
  roce_qp_write_if #(.T(rsp_tail_t)) tail ();
  roce_qp_write_if #(.T(rsp_head_t)) head ();
  roce_qp_write_if #(.T(rsp_executed_t)) executed ();
  roce_qp_write_if #(.T(rsp_ack_t)) newest ();
  roce_qp_read_if #(.T(rsp_ack_t)) newest_for_intake ();
  roce_qp_read_if #(.T(rsp_ack_t)) newest_for_ack ();
  qp_index_t     intake_index, send_index, ack_index, atomic_index;
  rsp_tail_t     intake_tail;
  rsp_head_t     send_head;
  rsp_count_t    intake_head, send_tail, ack_tail, ack_head;
  rsp_atomic_t   send_executed, atomic_tail;
  rsp_executed_t atomic_executed;

  roce_response_tables #(
      .QPS(QPS)
  ) tables (
      .clk,
      .init,
      .watch,
      .tail,
      .head,
      .executed,
      .newest,
      .intake_index,
      .intake_tail,
      .intake_head,
      .send_index,
      .send_tail,
      .send_head,
      .send_executed,
      .ack_index,
      .ack_tail,
      .ack_head,
      .atomic_index,
      .atomic_tail,
      .atomic_executed,
      .done_index(rd_done_slot),
      .done(rd_done),
      .newest_for_intake,
      .newest_for_ack
  );

  // ---- rings ----
  logic look, fetch, progress_write, operation_write, operation_look;
  qp_index_t intake_at, send_at, atomic_at;
  rsp_count_t entry_count;
  rsp_entry_t entry_data, entry;
  rsp_progress_t progress_data, progress;
  rsp_operation_t operation_data, operation;
  rsp_result_t result;
  qp_index_t fetch_index;
  rsp_atomic_t fetch_place, operation_place, atomic_place;

  ram_1w1r #(
      .T(rsp_entry_t),
      .WORDS(QPS * 2 * RD_DEPTH)
  ) queue (
      .clk,
      .write(tail.valid),
      .write_at({intake_at[INDEX_W-1:0], entry_count[ENTRY_W-1:0]}),
      .write_data(entry_data),
      .read(look),
      .read_at({send_index[INDEX_W-1:0], send_head.count[ENTRY_W-1:0]}),
      .read_data(entry)
  );
  ram_1w1r #(
      .T(rsp_progress_t),
      .WORDS(QPS)
  ) unfinished (
      .clk,
      .write(progress_write),
      .write_at(send_at[INDEX_W-1:0]),
      .write_data(progress_data),
      .read(look),
      .read_at(send_index[INDEX_W-1:0]),
      .read_data(progress)
  );
  ram_1w1r #(
      .T(rsp_result_t),
      .WORDS(QPS * RD_DEPTH)
  ) cache (
      .clk,
      .write(executed.valid),
      .write_at({atomic_at[INDEX_W-1:0], atomic_place[PLACE_W-1:0]}),
      .write_data(finished.data),
      .read(fetch),
      .read_at({fetch_index[INDEX_W-1:0], fetch_place[PLACE_W-1:0]}),
      .read_data(result)
  );

  ram_1w1r #(
      .T(rsp_operation_t),
      .WORDS(QPS * RD_DEPTH)
  ) operations (
      .clk,
      .write(operation_write),
      .write_at({intake_at[INDEX_W-1:0], operation_place[PLACE_W-1:0]}),
      .write_data(operation_data),
      .read(operation_look),
      .read_at({atomic_index[INDEX_W-1:0], atomic_executed.count[PLACE_W-1:0]}),
      .read_data(operation)
  );

  // ---- inputs ----
  stream_if #(.T(rsp_fault_t)) faults[2] ();  // payload; keys and atomics
  localparam int unsigned WORK = LANES > 1 ? 4 : 3;
  stream_if #(.T(qp_index_t)) work[WORK] ();  // again, atomic executed, new, no longer parked
  stream_if #(.T(qp_index_t)) name[2] ();     // new, last
  stream_if #(.T(qp_index_t)) dropped ();
  stream_if #(.T(qp_index_t)) atomic_work[2] ();  // new, again
  tx_fault_t unread;
  logic pend, no_room;

  assign unread          = fault.data;
  assign faults[0].valid = fault.valid;
  assign faults[0].data  = '{qpn: unread.qpn, psn: unread.psn, denied: 1'b0};
  assign fault.ready     = faults[0].ready;

  roce_response_intake #(
      .QPS(QPS),
      .RD_DEPTH(RD_DEPTH)
  ) intake (
      .clk,
      .rst,
      .hold(hold_intake),
      .respond,
      .fault(faults),
      .index(intake_index),
      .tail(intake_tail),
      .head(intake_head),
      .live(live[0]),
      .newest_before(newest_for_intake),
      .fail,
      .at(intake_at),
      .tail_next(tail),
      .entry_count,
      .entry(entry_data),
      .operation_write,
      .operation_place,
      .operation(operation_data),
      .newest,
      .pend,
      .work(work[2]),
      .name(name[0]),
      .atomic(atomic_work[0]),
      .qp_event,
      .failed,
      .forgotten(no_room),
      .idle(intake_idle)
  );

  // ---- atomics ----
  stream_if #(.T(qp_index_t)) next_atomic ();
  stream_if #(.T(rsp_result_t)) finished ();
  rsp_executed_t executed_word;
  logic atomics_empty, atomics_idle, executing;

  roce_qp_list #(
      .QPS(QPS),
      .N(2),
      .BLOCK_RAM(1'b0)
  ) atomics_list (
      .clk,
      .rst,
      .in(atomic_work),
      .out(next_atomic),
      .empty(atomics_empty)
  );

  roce_response_atomics #(
      .DATA_W(DATA_W),
      .ID_W(ID_W)
  ) executor (
      .clk,
      .rst,
      .list(next_atomic),
      .index(atomic_index),
      .tail(atomic_tail),
      .executed(atomic_executed),
      .live(live[2]),
      .look(operation_look),
      .operation,
      .key(key[1]),
      .key_live(key_live[1]),
      .finished,
      .at(atomic_at),
      .place(atomic_place),
      .done(executed_word),
      .again(atomic_work[1]),
      .mem,
      .executing,
      .idle(atomics_idle)
  );

  assign finished.ready = work[1].ready && !init;
  assign work[1].valid  = finished.valid && !init;
  assign work[1].data   = atomic_at;
  assign executed.valid = work[1].valid && work[1].ready;
  assign executed.index = atomic_at;
  assign executed.data  = executed_word;

  // ---- send ----
  stream_if #(.T(qp_index_t)) next_work ();
  logic work_empty, sent, replayed, not_cached, visiting, fences_idle, none_parked;
  targets_t reads;

  roce_qp_list #(
      .QPS(QPS),
      .N(WORK),
      .BLOCK_RAM(1'b0)
  ) work_list (
      .clk,
      .rst,
      .in(work),
      .out(next_work),
      .empty(work_empty)
  );

  // ---- QPs that wait for a memory: retried when entries may have become free, and at least every RETRY cycles ----
  stream_if #(.T(qp_index_t)) parked[1] ();
  if (LANES > 1) begin : g_parked
    localparam int unsigned RETRY = 256;       // cycles
    stream_if #(.T(qp_index_t)) waiting ();
    logic [$clog2(RETRY):0] retry_q;
    wire tries = retry_q[$bits(retry_q)-1];
    roce_qp_list #(.QPS(QPS), .N(1)) parked_list (.clk, .rst, .in(parked), .out(waiting), .empty(none_parked));
    assign work[3].valid = waiting.valid && tries;
    assign work[3].data  = waiting.data;
    assign waiting.ready = work[3].ready && tries;
    always_ff @(posedge clk) begin
      if (rst || (waiting.valid && waiting.ready)) retry_q <= '0;
      else if (freed) retry_q <= $bits(retry_q)'(RETRY);
      else if (!tries) retry_q <= retry_q + 1'b1;
    end
  end else begin : g_never_parked
    assign parked[0].ready = 1'b1;
    assign none_parked     = 1'b1;

    logic unused_ok;
    assign unused_ok = &{1'b0, freed, parked[0].valid, parked[0].data};
  end

  roce_response_send #(
      .RD_DEPTH(RD_DEPTH),
      .LANES(LANES)
  ) send (
      .clk,
      .rst,
      .hold(hold_send),
      .list(next_work),
      .index(send_index),
      .tail(send_tail),
      .head(send_head),
      .executed(send_executed),
      .key(key[0]),
      .key_live(key_live[0]),
      .live(live[1]),
      .look,
      .entry,
      .progress,
      .fetch,
      .fetch_index,
      .fetch_place,
      .result,
      .at(send_at),
      .head_next(head),
      .progress_write,
      .progress_data,
      .sent,
      .packet,
      .room,
      .waits_index,
      .waits,
      .parked(parked[0]),
      .again(work[0]),
      .dropped,
      .fault(faults[1]),
      .replayed,
      .forgotten(not_cached),
      .visiting,
      .reads,
      .idle(send_idle)
  );

  roce_response_fence #(
      .LANES(LANES)
  ) fences (
      .clk,
      .rst,
      .ask(fence),
      .number(fence_number),
      .through(fences_through),
      .fencing,
      .others_over,
      .visiting,
      .reads,
      .passed,
      .executing,
      .idle(fences_idle)
  );

  // ---- acknowledgements ----
  roce_rx_events_t ack_events;
  roce_response_ack #(
      .QPS(QPS)
  ) acknowledge (
      .clk,
      .rst,
      .renew(newest.valid),
      .pend,
      .at(intake_at),
      .name,
      .dropped,
      .sent,
      .sent_index(send_at),
      .left,
      .left_index(sq_index(left_qpn)),
      .index(ack_index),
      .tail(ack_tail),
      .head(ack_head),
      .newest(newest_for_ack),
      .ack,
      .watch,
      .engaged,
      .events(ack_events),
      .idle(ack_idle)
  );

  roce_response_control #(
      .QPS(QPS)
  ) control (
      .clk,
      .rst,
      .cmd,
      .answer,
      .at({atomic_index, send_index, intake_index}),
      .live,
      .fail,
      .fail_index(intake_at),
      .init,
      .watch,
      .hold_intake,
      .intake_idle,
      .hold_send,
      .send_idle,
      .tx_idle,
      .executing,
      .executing_index(atomic_at),
      .name(name[1]),
      .engaged,
      .idle(control_idle)
  );

  logic both_q;  // two duplicates were dropped in one cycle: the second is counted a cycle later, in which neither pulse can occur
  always_ff @(posedge clk) begin
    both_q                          <= no_room && not_cached && !rst;
    events                          <= ack_events;
    events.atomic_replayed          <= replayed;
    events.drop_duplicate_forgotten <= no_room || not_cached || both_q;
  end

  assign idle = control_idle && intake_idle && send_idle && ack_idle && work_empty && none_parked && atomics_empty && atomics_idle && fences_idle
      && !qp_event.valid && !failed.valid;
endmodule
