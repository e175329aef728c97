// SPDX-License-Identifier: Apache-2.0

// Transmit side of the RoCEv2 engine: reliable connection requester, and the frames of the responder's acknowledgements.
//
//   wqe -> queue -> [list] -> send -> roce_tx -> tx, tx_payload      ack_tx -> roce_tx
//                      ^                 |
//   ack_rx -> ack -----+----> [list] -> retire -> cqe, qp_event      timer -> ack, queue (keep-alive)
//
// Six tables of one word a QP, each written by one unit: tail (queue), sent (send), progress (ack), retired (retire), policy and
// peers (control). See docs/reference/roce-transmit.md.
//
// Latency: 10 cycles from `wqe` to `read`, 4 from `ack_tx` to `tx`. An acknowledgement that was taken before a work request
// leaves before that request's packets. `idle`: nothing queued and nothing in flight; armed timers and packets that wait for
// the peer's acknowledgement do not count.
module roce_requester
  import packet_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;
  import memory_pkg::*;
#(
    parameter int unsigned QPS = 16,                   // power of two, 8 to 1024
    parameter int unsigned SQ_DEPTH = 32,              // send work requests a QP; power of two, 4 to 128
    parameter int unsigned WINDOW = 8192,              // PSNs outstanding a QP, and up to 16 more
    parameter int unsigned ACK_EVERY = 16,             // packets of a message between AckReq bits; power of two
    parameter longint unsigned CLOCK_HZ = 250_000_000,     // rate of `now`
    parameter int unsigned BACKOFF_MAX = 4,            // ACK timeout grows by 2^BACKOFF_MAX at most
    parameter logic [7:0] TRAFFIC_CLASS = 8'h00        // DSCP and ECN of what is sent
) (
    input logic        clk,
    input logic        rst,
    input local_addr_t local_addr,
    input logic [47:0] now,                // cycles; may jump ahead
    input logic [47:0] keepalive_cycles,   // idle time after which a live QP asks its peer; 0: never

    stream_if.sink   cmd,                  // qp_cmd_t
    stream_if.source answer,               // logic

    stream_if.sink   wqe,                  // rdma_wqe_t
    stream_if.source cqe,                  // rdma_cqe_t
    stream_if.source qp_event,             // qp_event_t

    stream_if.sink   ack_rx,               // ack_rx_t: acknowledgements received
    stream_if.sink   ack_tx,               // ack_tx_t: acknowledgements to send
    input logic      active,               // a packet of this QP was received
    input qpn_t      active_qpn,

    stream_if.source read,                 // dma_cmd_t
    axis_if.sink     data,                 // tuser at the end: memory answered with an error
    stream_if.source tx,                   // frame_tx_t
    axis_if.source   tx_payload,

    output roce_rx_events_t rx_events,     // drop_ghost_ack: acknowledgements of what was not outstanding
    output roce_tx_events_t events,
    output logic            idle
);
  if (QPS < 8 || QPS > MAX_QPS || QPS != 2 ** $clog2(QPS)) begin : g_bad_qps
    $fatal(1, "roce_requester: QPS must be a power of two from 8 to 1024");
  end
  if (SQ_DEPTH < 4 || SQ_DEPTH > 128 || SQ_DEPTH != 2 ** $clog2(SQ_DEPTH)) begin : g_bad_depth
    $fatal(1, "roce_requester: SQ_DEPTH must be a power of two from 4 to 128");
  end
  if (WINDOW < 32 || WINDOW > 2 ** 22) begin : g_bad_window
    $fatal(1, "roce_requester: WINDOW must be 32 to 2^22");
  end
  if (ACK_EVERY < 2 || 2 * ACK_EVERY > WINDOW || ACK_EVERY != 2 ** $clog2(ACK_EVERY)) begin : g_bad_ack_every
    $fatal(1, "roce_requester: ACK_EVERY must be a power of two from 2 to half of WINDOW");
  end

  // ---- tables ----
  logic tail_write, sent_write, progress_write, retired_write, policy_write, peer_write;
  qp_index_t tail_at, sent_at, progress_at, retired_at, policy_at, peer_at;
  sq_tail_t tail_next;
  sq_sent_t sent_next;
  sq_progress_t progress_next;
  sq_retired_t retired_next;
  sq_policy_t policy_next;
  sq_peer_t peer_next;

  qp_index_t queue_index, queue_policy_index, send_index, ack_index, retire_index, timer_index;

  sq_tail_t tail[4];
  roce_qp_tx_table #(
      .T(sq_tail_t),
      .QPS(QPS),
      .READERS(4)
  ) tail_table (
      .clk,
      .write(tail_write),
      .write_index(tail_at),
      .write_data(tail_next),
      .read_index('{queue_index, send_index, retire_index, timer_index}),
      .read_data(tail)
  );

  sq_sent_t sent[3];
  roce_qp_tx_table #(
      .T(sq_sent_t),
      .QPS(QPS),
      .READERS(3)
  ) sent_table (
      .clk,
      .write(sent_write),
      .write_index(sent_at),
      .write_data(sent_next),
      .read_index('{send_index, ack_index, timer_index}),
      .read_data(sent)
  );

  sq_progress_t progress[5];
  roce_qp_tx_table #(
      .T(sq_progress_t),
      .QPS(QPS),
      .READERS(5)
  ) progress_table (
      .clk,
      .write(progress_write),
      .write_index(progress_at),
      .write_data(progress_next),
      .read_index('{queue_index, send_index, ack_index, retire_index, timer_index}),
      .read_data(progress)
  );

  sq_retired_t retired[3];
  roce_qp_tx_table #(
      .T(sq_retired_t),
      .QPS(QPS),
      .READERS(3)
  ) retired_table (
      .clk,
      .write(retired_write),
      .write_index(retired_at),
      .write_data(retired_next),
      .read_index('{queue_index, send_index, retire_index}),
      .read_data(retired)
  );

  sq_policy_t policy[4];
  roce_qp_tx_table #(
      .T(sq_policy_t),
      .QPS(QPS),
      .READERS(4)
  ) policy_table (
      .clk,
      .write(policy_write),
      .write_index(policy_at),
      .write_data(policy_next),
      .read_index('{queue_policy_index, send_index, ack_index, timer_index}),
      .read_data(policy)
  );

  // ---- rings ----
  logic ring_write, send_read, done_read;
  sq_count_t ring_count;
  qp_index_t ring_index, send_read_index, done_read_index;
  sq_count_t send_read_count, done_read_count;
  sq_send_t send_ring_in, send_ring_out;
  sq_done_t done_ring_in, done_ring_out;

  roce_qp_tx_ring #(
      .T(sq_send_t),
      .QPS(QPS),
      .SQ_DEPTH(SQ_DEPTH)
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
      .SQ_DEPTH(SQ_DEPTH)
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

  // ---- set-up ----
  logic ready, init, hold_data, hold_acks, data_idle, acks_idle;
  logic queue_engaged, retire_engaged, cqe_engaged;
  sq_init_t start;
  qp_index_t watch;
  logic control_idle, queue_idle, send_idle, ack_idle, retire_idle, tx_data_idle, tx_idle, settled;
  stream_if #(.T(sq_event_t)) change ();

  roce_requester_control #(
      .QPS(QPS)
  ) control (
      .clk,
      .rst,
      .command(cmd),
      .answer,
      .ready,
      .change,
      .init,
      .start,
      .policy_write,
      .policy_write_index(policy_at),
      .policy_write_data(policy_next),
      .peer_write,
      .peer_write_index(peer_at),
      .peer_write_data(peer_next),
      .hold_data,
      .data_idle,
      .hold_acks,
      .acks_idle,
      .watch,
      .engaged(queue_engaged || retire_engaged || cqe_engaged),
      .idle(control_idle)
  );

  // ---- work requests ----
  stream_if #(.T(qp_index_t)) keepalive ();
  stream_if #(.T(qp_index_t)) work[3] ();    // again, after an acknowledgement or timer, new
  stream_if #(.T(qp_index_t)) retire[2] ();  // acknowledged or failed, posted in the error state
  stream_if #(.T(rdma_cqe_t)) completed[2] ();
  logic keepalive_sent;

  roce_requester_queue #(
      .QPS(QPS),
      .SQ_DEPTH(SQ_DEPTH)
  ) queue (
      .clk,
      .rst,
      .enable(ready),
      .wqe,
      .keepalive,
      .init,
      .start,
      .watch,
      .engaged(queue_engaged),
      .policy_index(queue_policy_index),
      .policy(policy[0]),
      .index(queue_index),
      .tail(tail[0]),
      .progress(progress[0]),
      .retired(retired[0]),
      .tail_write,
      .tail_write_index(tail_at),
      .tail_write_data(tail_next),
      .ring_write,
      .ring_index,
      .ring_count,
      .ring_send(send_ring_in),
      .ring_done(done_ring_in),
      .work(work[2]),
      .flush(retire[1]),
      .refused(completed[1]),
      .keepalive_sent,
      .idle(queue_idle)
  );

  // ---- sending ----
  stream_if #(.T(qp_index_t)) next_work ();
  stream_if #(.T(sq_packet_t)) packet ();
  logic work_empty;

  roce_qp_tx_list #(
      .QPS(QPS),
      .N(3)
  ) work_list (
      .clk,
      .rst,
      .in(work),
      .out(next_work),
      .empty(work_empty)
  );

  roce_requester_send #(
      .WINDOW(WINDOW),
      .ACK_EVERY(ACK_EVERY)
  ) send (
      .clk,
      .rst,
      .hold(hold_data),
      .list(next_work),
      .index(send_index),
      .tail(tail[1]),
      .sent(sent[0]),
      .progress(progress[1]),
      .retired(retired[1]),
      .policy(policy[1]),
      .ring_read(send_read),
      .ring_index(send_read_index),
      .ring_count(send_read_count),
      .ring_data(send_ring_out),
      .init,
      .start,
      .sent_write,
      .sent_write_index(sent_at),
      .sent_write_data(sent_next),
      .packet,
      .again(work[0]),
      .idle(send_idle)
  );

  stream_if #(.T(sq_event_t)) fault ();
  roce_tx_events_t tx_events, ack_events;
  logic ghost;

  roce_tx #(
      .QPS(QPS),
      .TRAFFIC_CLASS(TRAFFIC_CLASS)
  ) frames (
      .clk,
      .rst,
      .local_addr,
      .packet,
      .ack(ack_tx),
      .hold_acks,
      .peer_write,
      .peer_write_index(peer_at),
      .peer_write_data(peer_next),
      .read_cmd(read),
      .read_data(data),
      .frame(tx),
      .payload(tx_payload),
      .fault,
      .events(tx_events),
      .data_idle(tx_data_idle),
      .acks_idle,
      .idle(tx_idle)
  );
  assign data_idle = send_idle && tx_data_idle;

  // ---- acknowledgements and time ----
  stream_if #(.T(sq_event_t)) expired ();

  roce_requester_ack #(
      .QPS(QPS),
      .WINDOW(WINDOW)
  ) intake (
      .clk,
      .rst,
      .enable(ready),
      .command(change),
      .fault,
      .timer(expired),
      .ack(ack_rx),
      .index(ack_index),
      .progress(progress[2]),
      .sent(sent[1]),
      .policy(policy[2]),
      .progress_write,
      .progress_write_index(progress_at),
      .progress_write_data(progress_next),
      .work(work[1]),
      .retire(retire[0]),
      .events(ack_events),
      .ghost,
      .idle(ack_idle)
  );

  logic busy_q;
  wire busy = !(control_idle && queue_idle && send_idle && ack_idle && work_empty && tx_idle);

  roce_timer #(
      .QPS(QPS),
      .CLOCK_HZ(CLOCK_HZ),
      .BACKOFF_MAX(BACKOFF_MAX)
  ) timer (
      .clk,
      .rst,
      .enable(ready),
      .now,
      .keepalive_cycles,
      .activity(active && qpn_exists(active_qpn, QPS)),
      .activity_index(sq_index(active_qpn)),
      .busy(busy_q),
      .index(timer_index),
      .tail(tail[3]),
      .sent(sent[2]),
      .progress(progress[4]),
      .policy(policy[3]),
      .expired,
      .keepalive,
      .settled
  );

  // ---- completions ----
  stream_if #(.T(qp_index_t)) next_retire ();
  logic retire_empty;

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
      .index(retire_index),
      .tail(tail[2]),
      .progress(progress[3]),
      .retired(retired[2]),
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

  always_comb begin
    rx_events                = '0;
    rx_events.drop_ghost_ack = ghost;
    events                   = tx_events | ack_events;
    events.keepalive_sent    = keepalive_sent;
  end

  always_ff @(posedge clk) busy_q <= busy;
  assign idle = !busy && !busy_q && retire_empty && retire_idle && !cqe.valid && settled;
endmodule
