// SPDX-License-Identifier: Apache-2.0

// Requester of the RoCEv2 engine's reliable connections: work requests in, request packets out, what the peer answers in, results in
// memory and completions out.
//
//   wqe -> queue -> [list] -> send -> packet (to roce_tx)             timer -> ack, queue (keep-alive)
//                     ^
//   response -> ack --+--> response -> write, data ... done -> [list] -> retire -> cqe, qp_event
//
// Tables of one word a QP, each written by one unit: tail (queue), sent (send), progress (ack), confirmed (response), retired (retire);
// path, policy and peer (roce_qp_control, which also starts and stops QPs here). See docs/reference/roce-transmit.md.
//
// Latency: 9 cycles from `wqe` to `packet`. `idle`: nothing queued and nothing in flight; armed timers and packets that wait for
// the peer's answer do not count.
module roce_requester
  import packet_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;
  import memory_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned QPS = 16,                   // power of two, 8 to 1024
    parameter int unsigned SQ_DEPTH = 16,              // send work requests a QP; power of two, 4 to 128
    parameter int unsigned RD_DEPTH = 8,               // READs and atomics among them; power of two, 4 to 16
    parameter int unsigned WINDOW = 8192,              // PSNs outstanding a QP, and up to 16 more, or a READ
    parameter int unsigned ACK_EVERY = 128,           // packets of a message between AckReq bits; power of two
    parameter longint unsigned CLOCK_HZ = 250_000_000,     // rate of `now`
    parameter int unsigned BACKOFF_MAX = 4             // ACK timeout grows by 2^BACKOFF_MAX at most
) (
    input logic        clk,
    input logic        rst,
    input logic [47:0] now,                // cycles; may jump ahead
    input logic [47:0] keepalive_cycles,   // idle time after which a live QP asks its peer; 0: never

    // From roce_qp_control.
    input logic       enable,              // the tables are in order
    stream_if.sink    change,              // sq_event_t
    output logic      commanded,           // pulse: the oldest of them is done
    input logic       init,
    input sq_init_t   start,
    input qp_index_t  attr_index,
    input logic       path_write,
    input sq_path_t   path,
    input logic       policy_write,
    input sq_policy_t policy,
    input logic       peer_write,
    input qp_index_t  peer_index,
    input sq_peer_t   peer,
    input qp_index_t  watch,
    input logic       hold,                // begin to send nothing of QP `watch`
    output logic      sending,             // a packet of QP `watch` may still come on `packet` ...
    output logic      engaged,             // ... something else of it is under way
    input qp_index_t  view_index,
    output psn_t      view_next,           // a cycle later
    output psn_t      view_oldest,

    stream_if.sink   wqe,                  // rdma_wqe_t
    stream_if.source cqe,                  // rdma_cqe_t
    output logic      unsignaled,          // pulse: a work request of this QP has succeeded and has no completion
    output qp_index_t unsignaled_index,
    stream_if.source qp_event,             // qp_event_t

    stream_if.source packet,               // tx_packet_t
    stream_if.sink   fault,                // tx_fault_t

    stream_if.sink   response,             // rc_response_t
    axis_if.sink     response_payload,     // of those that have one, in order
    stream_if.source write,                // dma_cmd_t: READ responses and the results of atomics
    axis_if.source   write_data,
    stream_if.sink   write_done,           // dma_done_t
    input logic      active,               // a packet of this QP was received
    input qpn_t      active_qpn,

    // Pacing (roce_cc).
    input logic [QPS-1:0] blocked,         // may not begin to send now
    stream_if.source      parked,          // qp_index_t: found blocked, and dropped from the list
    stream_if.sink        resume,          // qp_index_t: list it again
    output logic          sent,            // pulse: a data packet of this QP was given away ...
    output qp_index_t     sent_index,
    output logic [12:0]   sent_bytes,      // ... which is so long on the wire, preamble and gap included

    output roce_tx_events_t events,        // but for what roce_tx counts
    output qp_index_t       events_index,  // of the QP that timed out or was answered
    output logic            idle
);
  if (QPS < 8 || QPS > MAX_QPS || QPS != 2 ** $clog2(QPS)) begin : g_bad_qps
    $fatal(1, "roce_requester: QPS must be a power of two from 8 to 1024");
  end
  if (SQ_DEPTH < 4 || SQ_DEPTH > 128 || SQ_DEPTH != 2 ** $clog2(SQ_DEPTH)) begin : g_bad_depth
    $fatal(1, "roce_requester: SQ_DEPTH must be a power of two from 4 to 128");
  end
  if (RD_DEPTH < 4 || RD_DEPTH > 16 || RD_DEPTH != 2 ** $clog2(RD_DEPTH)) begin : g_bad_rd_depth
    $fatal(1, "roce_requester: RD_DEPTH must be a power of two from 4 to 16");
  end
  if (WINDOW < 32 || WINDOW > 2 ** 22) begin : g_bad_window
    $fatal(1, "roce_requester: WINDOW must be 32 to 2^22");
  end
  if (ACK_EVERY < 2 || 2 * ACK_EVERY > WINDOW || ACK_EVERY != 2 ** $clog2(ACK_EVERY)) begin : g_bad_ack_every
    $fatal(1, "roce_requester: ACK_EVERY must be a power of two from 2 to half of WINDOW");
  end

  // ---- tables ----
  logic tail_write, sent_write, progress_write, retired_write, confirmed_write;
  qp_index_t tail_at, sent_at, progress_at, retired_at;
  sq_tail_t tail_next;
  sq_sent_t sent_next;
  sq_progress_t progress_next;
  sq_retired_t retired_next;
  sq_confirmed_t confirmed_next;
  rd_count_t rd_done_next;

  qp_index_t queue_index, queue_path_index, send_index, ack_index, confirm_index, retire_index, timer_index;
  logic send_look, ack_look, retire_look, timer_look;

  // Readers that need a word in the cycle in which they name its QP.
  sq_tail_t tail[1];
  roce_qp_tx_table #(
      .T(sq_tail_t),
      .QPS(QPS),
      .READERS(1)
  ) tail_table (
      .clk,
      .write(tail_write),
      .write_index(tail_at),
      .write_data(tail_next),
      .read_index('{queue_index}),
      .read_data(tail)
  );

  queue_progress_t progress[1];
  roce_qp_tx_table #(
      .T(queue_progress_t),
      .QPS(QPS),
      .READERS(1)
  ) progress_table (
      .clk,
      .write(progress_write),
      .write_index(progress_at),
      .write_data('{state: progress_next.state, una: progress_next.una}),
      .read_index('{queue_index}),
      .read_data(progress)
  );

  sq_confirmed_t confirmed[1];
  roce_qp_tx_table #(
      .T(sq_confirmed_t),
      .QPS(QPS),
      .READERS(1)
  ) confirmed_table (
      .clk,
      .write(confirmed_write),
      .write_index(confirm_index),
      .write_data(confirmed_next),
      .read_index('{confirm_index}),
      .read_data(confirmed)
  );

  rd_count_t rd_done[2];
  roce_qp_tx_table #(
      .T(rd_count_t),
      .QPS(QPS),
      .READERS(2)
  ) rd_done_table (
      .clk,
      .write(confirmed_write),
      .write_index(confirm_index),
      .write_data(rd_done_next),
      .read_index('{queue_index, confirm_index}),
      .read_data(rd_done)
  );

  sq_count_t retired[1];
  roce_qp_tx_table #(
      .T(sq_count_t),
      .QPS(QPS),
      .READERS(1)
  ) retired_table (
      .clk,
      .write(retired_write),
      .write_index(retired_at),
      .write_data(retired_next.count),
      .read_index('{queue_index}),
      .read_data(retired)
  );

  sq_path_t queue_path[1];
  roce_qp_tx_table #(
      .T(sq_path_t),
      .QPS(QPS),
      .READERS(1)
  ) path_table (
      .clk,
      .write(path_write),
      .write_index(attr_index),
      .write_data(path),
      .read_index('{queue_path_index}),
      .read_data(queue_path)
  );

  rd_count_t queue_max_rd[1];
  roce_qp_tx_table #(
      .T(rd_count_t),
      .QPS(QPS),
      .READERS(1)
  ) policy_table (
      .clk,
      .write(policy_write),
      .write_index(attr_index),
      .write_data(policy.max_rd_atomic),
      .read_index('{queue_path_index}),
      .read_data(queue_max_rd)
  );

  // The others have it a cycle later: of each table the part that they want.
  send_tail_t     send_tail;
  sq_sent_t       send_sent;
  send_progress_t send_progress;
  sq_count_t      send_retired;
  rd_count_t      send_rd_done, send_max_rd;
  sq_path_t       send_path;
  roce_qp_tx_copy #(
      .T(send_tail_t),
      .QPS(QPS)
  ) send_tail_copy (
      .clk,
      .write(tail_write),
      .write_index(tail_at),
      .write_data('{count: tail_next.count, next: tail_next.next}),
      .read(send_look),
      .read_index(send_index),
      .read_data(send_tail)
  );
  roce_qp_tx_copy #(
      .T(sq_sent_t),
      .QPS(QPS)
  ) send_sent_copy (
      .clk,
      .write(sent_write),
      .write_index(sent_at),
      .write_data(sent_next),
      .read(send_look),
      .read_index(send_index),
      .read_data(send_sent)
  );
  roce_qp_tx_copy #(
      .T(send_progress_t),
      .QPS(QPS)
  ) send_progress_copy (
      .clk,
      .write(progress_write),
      .write_index(progress_at),
      .write_data('{
          state: progress_next.state,
          epoch: progress_next.epoch,
          asked: progress_next.asked,
          later: progress_next.later,
          single: progress_next.single,
          rnr_wait: progress_next.rnr_wait,
          una: progress_next.una
      }),
      .read(send_look),
      .read_index(send_index),
      .read_data(send_progress)
  );
  roce_qp_tx_copy #(
      .T(sq_count_t),
      .QPS(QPS)
  ) send_retired_copy (
      .clk,
      .write(retired_write),
      .write_index(retired_at),
      .write_data(retired_next.count),
      .read(send_look),
      .read_index(send_index),
      .read_data(send_retired)
  );
  roce_qp_tx_copy #(
      .T(rd_count_t),
      .QPS(QPS)
  ) send_rd_done_copy (
      .clk,
      .write(confirmed_write),
      .write_index(confirm_index),
      .write_data(rd_done_next),
      .read(send_look),
      .read_index(send_index),
      .read_data(send_rd_done)
  );
  roce_qp_tx_copy #(
      .T(sq_path_t),
      .QPS(QPS)
  ) send_path_copy (
      .clk,
      .write(path_write),
      .write_index(attr_index),
      .write_data(path),
      .read(send_look),
      .read_index(send_index),
      .read_data(send_path)
  );
  roce_qp_tx_copy #(
      .T(rd_count_t),
      .QPS(QPS)
  ) send_max_rd_copy (
      .clk,
      .write(policy_write),
      .write_index(attr_index),
      .write_data(policy.max_rd_atomic),
      .read(send_look),
      .read_index(send_index),
      .read_data(send_max_rd)
  );

  sq_progress_t ack_progress;
  ack_sent_t    ack_sent;
  sq_path_t     ack_path;
  ack_policy_t  ack_policy;
  rd_count_t    ack_rd_posted;
  ipv4_addr_t   ack_peer_ip;
  roce_qp_tx_copy #(
      .T(sq_progress_t),
      .QPS(QPS)
  ) ack_progress_copy (
      .clk,
      .write(progress_write),
      .write_index(progress_at),
      .write_data(progress_next),
      .read(ack_look),
      .read_index(ack_index),
      .read_data(ack_progress)
  );
  roce_qp_tx_copy #(
      .T(ack_sent_t),
      .QPS(QPS)
  ) ack_sent_copy (
      .clk,
      .write(sent_write),
      .write_index(sent_at),
      .write_data('{
          epoch: sent_next.epoch,
          single: sent_next.single,
          psn: sent_next.psn,
          limit: sent_next.limit,
          mark: sent_next.mark[23: 0]
      }),
      .read(ack_look),
      .read_index(ack_index),
      .read_data(ack_sent)
  );
  roce_qp_tx_copy #(
      .T(sq_path_t),
      .QPS(QPS)
  ) ack_path_copy (
      .clk,
      .write(path_write),
      .write_index(attr_index),
      .write_data(path),
      .read(ack_look),
      .read_index(ack_index),
      .read_data(ack_path)
  );
  roce_qp_tx_copy #(
      .T(ack_policy_t),
      .QPS(QPS)
  ) ack_policy_copy (
      .clk,
      .write(policy_write),
      .write_index(attr_index),
      .write_data('{
          retry_cnt: policy.retry_cnt,
          rnr_retry: policy.rnr_retry
      }),
      .read(ack_look),
      .read_index(ack_index),
      .read_data(ack_policy)
  );
  roce_qp_tx_copy #(
      .T(rd_count_t),
      .QPS(QPS)
  ) ack_rd_posted_copy (
      .clk,
      .write(tail_write),
      .write_index(tail_at),
      .write_data(tail_next.rd),
      .read(ack_look),
      .read_index(ack_index),
      .read_data(ack_rd_posted)
  );
  roce_qp_tx_copy #(
      .T(ipv4_addr_t),
      .QPS(QPS)
  ) ack_peer_copy (
      .clk,
      .write(peer_write),
      .write_index(peer_index),
      .write_data(peer.ip),
      .read(ack_look),
      .read_index(ack_index),
      .read_data(ack_peer_ip)
  );

  sq_count_t     retire_posted;
  sq_confirmed_t retire_confirmed;
  sq_retired_t   retire_retired;
  roce_qp_tx_copy #(
      .T(sq_count_t),
      .QPS(QPS)
  ) retire_posted_copy (
      .clk,
      .write(tail_write),
      .write_index(tail_at),
      .write_data(tail_next.count),
      .read(retire_look),
      .read_index(retire_index),
      .read_data(retire_posted)
  );
  roce_qp_tx_copy #(
      .T(sq_confirmed_t),
      .QPS(QPS)
  ) retire_confirmed_copy (
      .clk,
      .write(confirmed_write),
      .write_index(confirm_index),
      .write_data(confirmed_next),
      .read(retire_look),
      .read_index(retire_index),
      .read_data(retire_confirmed)
  );
  roce_qp_tx_copy #(
      .T(sq_retired_t),
      .QPS(QPS)
  ) retire_retired_copy (
      .clk,
      .write(retired_write),
      .write_index(retired_at),
      .write_data(retired_next),
      .read(retire_look),
      .read_index(retire_index),
      .read_data(retire_retired)
  );

  xpsn_t           timer_next;
  timer_sent_t     timer_sent;
  timer_progress_t timer_progress;
  logic [4:0]      timer_timeout;
  roce_qp_tx_copy #(
      .T(xpsn_t),
      .QPS(QPS)
  ) timer_next_copy (
      .clk,
      .write(tail_write),
      .write_index(tail_at),
      .write_data(tail_next.next),
      .read(timer_look),
      .read_index(timer_index),
      .read_data(timer_next)
  );
  roce_qp_tx_copy #(
      .T(timer_sent_t),
      .QPS(QPS)
  ) timer_sent_copy (
      .clk,
      .write(sent_write),
      .write_index(sent_at),
      .write_data('{
          open: sent_next.open,
          limit: sent_next.limit
      }),
      .read(timer_look),
      .read_index(timer_index),
      .read_data(timer_sent)
  );
  roce_qp_tx_copy #(
      .T(timer_progress_t),
      .QPS(QPS)
  ) timer_progress_copy (
      .clk,
      .write(progress_write),
      .write_index(progress_at),
      .write_data('{
          state: progress_next.state,
          epoch: progress_next.epoch,
          drained: progress_next.drained,
          rnr_wait: progress_next.rnr_wait,
          rnr_code: progress_next.rnr_code,
          retries: progress_next.retries,
          una: progress_next.una
      }),
      .read(timer_look),
      .read_index(timer_index),
      .read_data(timer_progress)
  );
  roce_qp_tx_copy #(
      .T(logic [4:0]),
      .QPS(QPS)
  ) timer_timeout_copy (
      .clk,
      .write(policy_write),
      .write_index(attr_index),
      .write_data(policy.timeout),
      .read(timer_look),
      .read_index(timer_index),
      .read_data(timer_timeout)
  );

  roce_qp_tx_copy #(
      .T(psn_t),
      .QPS(QPS)
  ) view_next_copy (
      .clk,
      .write(sent_write),
      .write_index(sent_at),
      .write_data(sent_next.limit[23:0]),
      .read(1'b1),
      .read_index(view_index),
      .read_data(view_next)
  );
  roce_qp_tx_copy #(
      .T(psn_t),
      .QPS(QPS)
  ) view_oldest_copy (
      .clk,
      .write(progress_write),
      .write_index(progress_at),
      .write_data(progress_next.una[23:0]),
      .read(1'b1),
      .read_index(view_index),
      .read_data(view_oldest)
  );

  // ---- rings ----
  logic ring_write, rd_write, send_read, done_read, rd_read, compare_read;
  sq_count_t ring_count;
  rd_count_t ring_rd_count, rd_read_count, compare_count;
  qp_index_t ring_index, send_read_index, done_read_index, rd_read_index, compare_index;
  sq_count_t send_read_count, done_read_count;
  sq_send_t send_ring_in, send_ring_out;
  sq_done_t done_ring_in, done_ring_out;
  sq_rd_t rd_ring_in, rd_ring_out;
  logic [63:0] compare_in, compare_out;

  roce_qp_tx_ring #(
      .T(sq_send_t),
      .QPS(QPS),
      .DEPTH(SQ_DEPTH)
  ) send_ring (
      .clk,
      .write(ring_write),
      .write_index(ring_index),
      .write_count(ring_count),
      .write_data(send_ring_in),
      .read(send_read),
      .read_index(send_read_index),
      .read_count(send_read_count),
      .read_data(send_ring_out)
  );
  roce_qp_tx_ring #(
      .T(sq_done_t),
      .QPS(QPS),
      .DEPTH(SQ_DEPTH)
  ) done_ring (
      .clk,
      .write(ring_write),
      .write_index(ring_index),
      .write_count(ring_count),
      .write_data(done_ring_in),
      .read(done_read),
      .read_index(done_read_index),
      .read_count(done_read_count),
      .read_data(done_ring_out)
  );
  roce_qp_tx_ring #(
      .T(sq_rd_t),
      .QPS(QPS),
      .DEPTH(RD_DEPTH)
  ) rd_ring (
      .clk,
      .write(rd_write),
      .write_index(ring_index),
      .write_count(sq_count_t'(ring_rd_count)),
      .write_data(rd_ring_in),
      .read(rd_read),
      .read_index(rd_read_index),
      .read_count(sq_count_t'(rd_read_count)),
      .read_data(rd_ring_out)
  );
  roce_qp_tx_ring #(
      .T(logic [63:0]),
      .QPS(QPS),
      .DEPTH(RD_DEPTH)
  ) compare_ring (
      .clk,
      .write(rd_write),
      .write_index(ring_index),
      .write_count(sq_count_t'(ring_rd_count)),
      .write_data(compare_in),
      .read(compare_read),
      .read_index(compare_index),
      .read_count(sq_count_t'(compare_count)),
      .read_data(compare_out)
  );

  // ---- work requests ----
  stream_if #(.T(qp_index_t)) keepalive ();
  stream_if #(.T(qp_index_t)) work[5] ();    // again; after a response or timer; a READ completed; unblocked; new
  stream_if #(.T(qp_index_t)) retire[2] ();  // confirmed or failed, posted in the error state
  stream_if #(.T(rdma_cqe_t)) completed[2] ();
  logic keepalive_sent, queue_engaged, retire_engaged, cqe_engaged;
  logic queue_idle, send_idle, ack_idle, response_idle, retire_idle, settled;

  roce_requester_queue #(
      .QPS(QPS),
      .SQ_DEPTH(SQ_DEPTH),
      .RD_DEPTH(RD_DEPTH)
  ) queue (
      .clk,
      .rst,
      .enable,
      .wqe,
      .keepalive,
      .init,
      .start,
      .watch,
      .engaged(queue_engaged),
      .path_index(queue_path_index),
      .path(queue_path[0]),
      .max_rd_atomic(queue_max_rd[0]),
      .index(queue_index),
      .tail(tail[0]),
      .progress(progress[0]),
      .retired(retired[0]),
      .rd_done(rd_done[0]),
      .tail_write,
      .tail_write_index(tail_at),
      .tail_write_data(tail_next),
      .ring_write,
      .ring_index,
      .ring_count,
      .ring_send(send_ring_in),
      .ring_done(done_ring_in),
      .rd_write,
      .rd_count(ring_rd_count),
      .ring_rd(rd_ring_in),
      .ring_compare(compare_in),
      .work(work[4]),
      .flush(retire[1]),
      .refused(completed[1]),
      .keepalive_sent,
      .idle(queue_idle)
  );

  assign work[3].valid = resume.valid;
  assign work[3].data  = resume.data;
  assign resume.ready  = work[3].ready;

  // ---- sending ----
  stream_if #(.T(qp_index_t)) next_work ();
  logic work_empty, selective_retransmit;

  roce_qp_tx_list #(
      .QPS(QPS),
      .N(5)
  ) work_list (
      .clk,
      .rst,
      .in(work),
      .out(next_work),
      .empty(work_empty)
  );

  roce_requester_send #(
      .QPS(QPS),
      .WINDOW(WINDOW),
      .ACK_EVERY(ACK_EVERY)
  ) send (
      .clk,
      .rst,
      .watch,
      .hold,
      .watched(sending),
      .list(next_work),
      .blocked,
      .parked,
      .look(send_look),
      .index(send_index),
      .tail(send_tail),
      .sent(send_sent),
      .progress(send_progress),
      .retired(send_retired),
      .rd_done(send_rd_done),
      .path(send_path),
      .max_rd_atomic(send_max_rd),
      .ring_read(send_read),
      .ring_index(send_read_index),
      .ring_count(send_read_count),
      .ring_data(send_ring_out),
      .compare_read,
      .compare_index,
      .compare_count,
      .compare_data(compare_out),
      .init,
      .start,
      .sent_write,
      .sent_write_index(sent_at),
      .sent_write_data(sent_next),
      .packet,
      .again(work[0]),
      .selective_retransmit,
      .idle(send_idle)
  );

  // What a packet has on the wire beside extension headers and payload: preamble, headers, ICRC, FCS and the gap between frames.
  localparam int unsigned OVERHEAD = 8 + ROCE_HDR_BYTES + ICRC_BYTES + 4 + 12;
  tx_packet_t given;
  assign given = packet.data;
  always_ff @(posedge clk) begin
    sent       <= packet.valid && packet.ready && !rst;
    sent_index <= sq_index(given.qpn);
    sent_bytes <= 13'(OVERHEAD) + 13'(ext_headers(given.opcode).bytes) + {given.length[12:2] + 11'(|given.length[1:0]), 2'b00};
  end

  // ---- responses and time ----
  stream_if #(.T(sq_event_t)) expired ();
  stream_if #(.T(sq_verdict_t)) verdict ();
  stream_if #(.T(qp_index_t)) write_fault ();
  roce_tx_events_t ack_events;

  roce_requester_ack #(
      .QPS(QPS),
      .WINDOW(WINDOW)
  ) intake (
      .clk,
      .rst,
      .enable,
      .command(change),
      .write_fault,
      .fault,
      .timer(expired),
      .response,
      .look(ack_look),
      .index(ack_index),
      .progress(ack_progress),
      .sent(ack_sent),
      .path(ack_path),
      .policy(ack_policy),
      .rd_posted(ack_rd_posted),
      .peer_ip(ack_peer_ip),
      .rd_read,
      .rd_index(rd_read_index),
      .rd_count(rd_read_count),
      .rd_data(rd_ring_out),
      .progress_write,
      .progress_write_index(progress_at),
      .progress_write_data(progress_next),
      .work(work[1]),
      .verdict,
      .events(ack_events),
      .events_index,
      .idle(ack_idle)
  );

  roce_requester_response #(
      .DATA_W(DATA_W),
      .QPS(QPS)
  ) results (
      .clk,
      .rst,
      .verdict,
      .payload(response_payload),
      .write,
      .data(write_data),
      .done(write_done),
      .index(confirm_index),
      .confirmed(confirmed[0]),
      .rd(rd_done[1]),
      .confirmed_write,
      .confirmed_write_data(confirmed_next),
      .rd_write_data(rd_done_next),
      .retire(retire[0]),
      .work(work[2]),
      .fault(write_fault),
      .commanded,
      .idle(response_idle)
  );

  logic busy_q;
  wire busy = !(enable && queue_idle && send_idle && ack_idle && response_idle && work_empty) || change.valid;

  roce_timer #(
      .QPS(QPS),
      .CLOCK_HZ(CLOCK_HZ),
      .BACKOFF_MAX(BACKOFF_MAX)
  ) timer (
      .clk,
      .rst,
      .enable,
      .now,
      .keepalive_cycles,
      .activity(active && qpn_exists(active_qpn, QPS)),
      .activity_index(sq_index(active_qpn)),
      .busy(busy_q),
      .look(timer_look),
      .index(timer_index),
      .posted(timer_next),
      .sent(timer_sent),
      .progress(timer_progress),
      .timeout(timer_timeout),
      .expired,
      .keepalive,
      .settled
  );

  // ---- completions ----
  stream_if #(.T(qp_index_t)) next_retire ();
  logic retire_empty, flushed;

  roce_qp_tx_list #(
      .QPS(QPS),
      .N(2)
  ) retire_list (
      .clk,
      .rst,
      .in(retire),
      .out(next_retire),
      .empty(retire_empty)
  );

  roce_requester_retire retirer (
      .clk,
      .rst,
      .list(next_retire),
      .look(retire_look),
      .index(retire_index),
      .posted(retire_posted),
      .confirmed(retire_confirmed),
      .retired(retire_retired),
      .ring_read(done_read),
      .ring_index(done_read_index),
      .ring_count(done_read_count),
      .ring_data(done_ring_out),
      .init,
      .start,
      .watch,
      .engaged(retire_engaged),
      .retired_write,
      .retired_write_index(retired_at),
      .retired_write_data(retired_next),
      .cqe(completed[0]),
      .qp_event,
      .flushed,
      .unsignaled,
      .unsignaled_index,
      .idle(retire_idle)
  );

  stream_arbiter #(
      .T(rdma_cqe_t),
      .N(2)
  ) completions (
      .clk,
      .rst,
      .in  (completed),
      .last('1),
      .out (cqe)
  );
  rdma_cqe_t cqe_data;
  assign cqe_data    = cqe.data;
  assign cqe_engaged = cqe.valid && cqe_data.qpn == qp_number(watch);
  assign engaged     = queue_engaged || retire_engaged || cqe_engaged;

  always_comb begin
    events                      = ack_events;
    events.keepalive_sent       = keepalive_sent;
    events.selective_retransmit = selective_retransmit;
    events.req_cqe_flush_error  = flushed;
  end

  always_ff @(posedge clk) busy_q <= busy;
  assign idle = !busy && !busy_q && retire_empty && retire_idle && !cqe.valid && !response.valid && settled;
endmodule
