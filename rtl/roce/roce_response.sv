// SPDX-License-Identifier: Apache-2.0

// Answers the requests of the peers: READ responses cut into packets, atomics carried out and remembered, acknowledgements coalesced.
//
//   respond -> intake -> [work list] -> send -> packet            tables, one word a QP:  tail (intake), head (send),
//                |  \--> [atomics list] -> atomics -> cache, work list                    executed (atomics), newest (intake)
//                \-----> [acknowledgement list] -> ack
//
// The order of each QP is kept: an acknowledgement leaves when all READs and atomics before it were chosen for the wire. QPs take
// turns of 4 KiB, and of one atomic. Whenever memory is to be touched the key must be valid, and a `fence` tells when what was begun under
// a key that has gone is over. See docs/reference/roce-response.md.
//
// Latency: `respond` to `packet` 7 cycles, to `ack` 4 if nothing of the QP is before it. Throughput: one `respond` every 2 cycles, one
// packet a cycle of one READ. When `packet` stops READs and atomics wait in their queues and acknowledgements behind them, those
// of other QPs leave; when `ack` stops they coalesce. `respond` stops when `qp_event` or `failed` stop: there is room for all that
// the responder may take.
module roce_response
  import roce_pkg::*;
  import roce_requester_pkg::*;
  import roce_response_pkg::*;
#(
    parameter int unsigned DATA_W   = 512,
    parameter int unsigned ID_W     = 4,
    parameter int unsigned QPS      = 16,     // power of two, 8 to 1024
    parameter int unsigned RD_DEPTH = 8       // READs and atomics of a peer at once; power of two, 4 to 16
) (
    input logic      clk,
    input logic      rst,

    stream_if.sink   cmd,                     // qp_cmd_t
    stream_if.source answer,                  // logic

    stream_if.sink   respond,                 // respond_t
    input qp_index_t rd_done_slot,
    output logic [7:0] rd_done,               // READs and atomics of this QP answered since its QP_SETUP, modulo 256; same cycle

    stream_if.source packet,                  // tx_packet_t
    stream_if.source ack,                     // ack_tx_t
    stream_if.sink   fault,                   // tx_fault_t: payload that memory refused
    input logic      left,                    // roce_tx has chosen a response ...
    input qpn_t      left_qpn,                // ... of this QP
    input logic      tx_idle,                 // roce_tx has no response inside
    input logic      passed,                  // the payload of one was read

    output logic [1:0][31:0] key,             // of a READ, of an atomic:
    input  logic [1:0] key_live,              // it is valid, a cycle later
    input  logic     fence,                   // pulse: a key has become invalid
    output fence_t   fence_number,
    output fence_t   fences_through,

    axi_if.master    mem,                     // for atomics
    stream_if.source qp_event,                // qp_event_t
    stream_if.source failed,                  // qp_failed_t: this QP may take no more requests
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
  logic tail_write, head_write, newest_write;
  qp_index_t intake_at, send_at, atomic_at, intake_index, send_index, ack_index, atomic_index;
  rsp_tail_t tail_data;
  rsp_head_t head_data;
  rsp_ack_t newest_data;

  rsp_tail_t tail[3];
  roce_qp_tx_table #(
      .T(rsp_tail_t),
      .QPS(QPS),
      .READERS(3)
  ) tail_table (
      .clk,
      .write(init || tail_write),
      .write_index(init ? watch : intake_at),
      .write_data(init ? '0 : tail_data),
      .read_index('{intake_index, send_index, ack_index}),
      .read_data(tail)
  );

  rsp_head_t head[4];
  roce_qp_tx_table #(
      .T(rsp_head_t),
      .QPS(QPS),
      .READERS(4)
  ) head_table (
      .clk,
      .write(init || head_write),
      .write_index(init ? watch : send_at),
      .write_data(init ? '0 : head_data),
      .read_index('{intake_index, send_index, ack_index, rd_done_slot}),
      .read_data(head)
  );
  assign rd_done = head[3].done;

  logic executed_write;
  rsp_executed_t executed_data, executed[2];
  roce_qp_tx_table #(
      .T(rsp_executed_t),
      .QPS(QPS),
      .READERS(2)
  ) executed_table (
      .clk,
      .write(init || executed_write),
      .write_index(init ? watch : atomic_at),
      .write_data(init ? '0 : executed_data),
      .read_index('{send_index, atomic_index}),
      .read_data(executed)
  );
  rsp_atomic_t atomics[1];                    // of the tail
  roce_qp_tx_table #(
      .T(rsp_atomic_t),
      .QPS(QPS)
  ) atomics_table (
      .clk,
      .write(init || tail_write),
      .write_index(init ? watch : intake_at),
      .write_data(init ? '0 : tail_data.atomics),
      .read_index('{atomic_index}),
      .read_data(atomics)
  );

  logic intake_look, ack_look;
  logic [23:0] newest_msn;
  rsp_ack_t newest;
  roce_qp_ram #(
      .T(rsp_ack_t),
      .WORDS(QPS)
  ) newest_table (
      .clk,
      .write(newest_write),
      .write_at(intake_at[INDEX_W-1:0]),
      .write_data(newest_data),
      .read(ack_look),
      .read_at(ack_index[INDEX_W-1:0]),
      .read_data(newest)
  );
  roce_qp_ram #(
      .T(logic [23:0]),
      .WORDS(QPS)
  ) newest_msns (
      .clk,
      .write(newest_write),
      .write_at(intake_at[INDEX_W-1:0]),
      .write_data(newest_data.aeth.msn),
      .read(intake_look),
      .read_at(intake_index[INDEX_W-1:0]),
      .read_data(newest_msn)
  );

  // ---- rings ----
  logic look, fetch, progress_write, operation_write, operation_look;
  rsp_count_t entry_count;
  rsp_entry_t entry_data, entry;
  rsp_progress_t progress_data, progress;
  rsp_operation_t operation_data, operation;
  rsp_result_t result;
  qp_index_t fetch_index;
  rsp_atomic_t fetch_place, operation_place, atomic_place;

  roce_qp_ram #(
      .T(rsp_entry_t),
      .WORDS(QPS * 2 * RD_DEPTH)
  ) queue (
      .clk,
      .write(tail_write),
      .write_at({intake_at[INDEX_W-1:0], entry_count[ENTRY_W-1:0]}),
      .write_data(entry_data),
      .read(look),
      .read_at({send_index[INDEX_W-1:0], head[1].count[ENTRY_W-1:0]}),
      .read_data(entry)
  );
  roce_qp_ram #(
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
  roce_qp_ram #(
      .T(rsp_result_t),
      .WORDS(QPS * RD_DEPTH)
  ) cache (
      .clk,
      .write(executed_write),
      .write_at({atomic_at[INDEX_W-1:0], atomic_place[PLACE_W-1:0]}),
      .write_data(finished.data),
      .read(fetch),
      .read_at({fetch_index[INDEX_W-1:0], fetch_place[PLACE_W-1:0]}),
      .read_data(result)
  );

  roce_qp_ram #(
      .T(rsp_operation_t),
      .WORDS(QPS * RD_DEPTH)
  ) operations (
      .clk,
      .write(operation_write),
      .write_at({intake_at[INDEX_W-1:0], operation_place[PLACE_W-1:0]}),
      .write_data(operation_data),
      .read(operation_look),
      .read_at({atomic_index[INDEX_W-1:0], executed[1].count[PLACE_W-1:0]}),
      .read_data(operation)
  );

  // ---- what comes ----
  stream_if #(.T(rsp_fault_t)) faults[2] ();  // payload; keys and atomics
  stream_if #(.T(qp_index_t)) work[3] ();     // again, carried out, new
  stream_if #(.T(qp_index_t)) new_work ();
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
      .tail(tail[0]),
      .head(head[0]),
      .live(live[0]),
      .look(intake_look),
      .msn(newest_msn),
      .fail,
      .tail_write,
      .at(intake_at),
      .tail_data,
      .entry_count,
      .entry(entry_data),
      .operation_write,
      .operation_place,
      .operation(operation_data),
      .newest_write,
      .newest_data,
      .pend,
      .work(new_work),
      .name(name[0]),
      .atomic(atomic_work[0]),
      .qp_event,
      .failed,
      .forgotten(no_room),
      .idle(intake_idle)
  );

  // Who takes in does not wait for the others that name QPs.
  stream_slice #(.T(qp_index_t)) new_slice (.clk, .rst, .in(new_work), .out(work[2]));

  // ---- atomics ----
  stream_if #(.T(qp_index_t)) next_atomic ();
  stream_if #(.T(rsp_result_t)) finished ();
  logic atomics_empty, atomics_idle, executing;

  roce_qp_tx_list #(
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
      .tail(atomics[0]),
      .executed(executed[1]),
      .live(live[2]),
      .look(operation_look),
      .operation,
      .key(key[1]),
      .key_live(key_live[1]),
      .finished,
      .at(atomic_at),
      .place(atomic_place),
      .done(executed_data),
      .again(atomic_work[1]),
      .mem,
      .executing,
      .idle(atomics_idle)
  );

  assign finished.ready = work[1].ready && !init;
  assign work[1].valid  = finished.valid && !init;
  assign work[1].data   = atomic_at;
  assign executed_write = work[1].valid && work[1].ready;

  // ---- what is answered ----
  stream_if #(.T(qp_index_t)) next_work ();
  logic work_empty, sent, replayed, not_cached, visiting, reads, fences_idle;

  roce_qp_tx_list #(
      .QPS(QPS),
      .N(3),
      .BLOCK_RAM(1'b0)
  ) work_list (
      .clk,
      .rst,
      .in(work),
      .out(next_work),
      .empty(work_empty)
  );

  roce_response_send #(
      .RD_DEPTH(RD_DEPTH)
  ) send (
      .clk,
      .rst,
      .hold(hold_send),
      .list(next_work),
      .index(send_index),
      .tail(tail[1]),
      .head(head[1]),
      .executed(executed[0].count),
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
      .head_write,
      .at(send_at),
      .head_data,
      .progress_write,
      .progress_data,
      .sent,
      .packet,
      .again(work[0]),
      .dropped,
      .fault(faults[1]),
      .replayed,
      .forgotten(not_cached),
      .visiting,
      .reads,
      .idle(send_idle)
  );

  roce_response_fence fences (
      .clk,
      .rst,
      .ask(fence),
      .number(fence_number),
      .through(fences_through),
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
      .renew(newest_write),
      .pend,
      .at(intake_at),
      .name,
      .dropped,
      .sent,
      .sent_index(send_at),
      .left,
      .left_index(sq_index(left_qpn)),
      .index(ack_index),
      .tail(tail[2]),
      .head(head[2]),
      .look(ack_look),
      .newest,
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

  logic both_q;  // two duplicates were forgotten at once: neither happens in two cycles one after the other
  always_ff @(posedge clk) begin
    both_q                          <= no_room && not_cached && !rst;
    events                          <= ack_events;
    events.atomic_replayed          <= replayed;
    events.drop_duplicate_forgotten <= no_room || not_cached || both_q;
  end

  assign idle = control_idle && intake_idle && send_idle && ack_idle && work_empty && atomics_empty && atomics_idle && fences_idle
      && !work[2].valid && !qp_event.valid && !failed.valid;
endmodule
