// SPDX-License-Identifier: Apache-2.0

// Requester of the RoCEv2 engine's reliable connections: accepts work requests, sends request packets, processes the responses of
// the peers, writes READ and atomic results to memory and generates completions.
//
//   wqe -> queue -> [list] -> send -> packet (to roce_tx)             timer -> ack, queue (keep-alive)
//                     ^
//   response -> ack --+--> response -> write, data ... done -> [list] -> retire -> cqe, qp_event
//
// Tables of one word per QP, each written by one unit: tail (queue), sent (send), progress (ack), confirmed (response), retired
// (retire); path, policy and peer (roce_qp_control, which also starts and stops QPs here). See docs/reference/roce-transmit.md.
//
// Latency: 11 cycles from `wqe` to `packet`. `idle`: no unit has work in progress; armed timers and outstanding requests do not
// count.
module roce_requester
  import packet_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import roce_requester_pkg::*;
  import memory_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned QPS = 16,                   // power of two, 8 to 1024
    parameter int unsigned SQ_DEPTH = 16,              // send work requests per QP; power of two, 4 to 128
    parameter int unsigned RD_DEPTH = 8,               // READs and atomics among them; power of two, 4 to 16
    parameter int unsigned WINDOW = 8192,              // PSNs outstanding per QP; exceeded by up to 16, or by one READ
    parameter int unsigned ACK_EVERY = 128,           // packets of a message between AckReq bits; power of two
    parameter longint unsigned CLOCK_HZ = 250_000_000,     // rate of `now`
    parameter bit          SELECTIVE_REPEAT = 1'b1,    // else no QP has it
    parameter bit          READS = 1'b1,               // else work requests that are READs or atomics are refused
    parameter int unsigned LANES = 1,                  // memories
    parameter int unsigned BACKOFF_MAX = 4             // ACK timeout grows by 2^BACKOFF_MAX at most
) (
    input logic        clk,
    input logic        rst,
    input logic [47:0] now,                // cycles; may jump ahead
    input logic [47:0] keepalive_cycles,   // idle time after which a QP sends a keep-alive; 0: never

    // From roce_qp_control.
    input logic       enable,              // the tables are initialized
    stream_if.sink    change,              // sq_event_t
    output logic      commanded,           // pulse: the oldest command has completed
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
    input logic       hold,                // start no visit of QP `watch`
    output logic      sending,             // QP `watch` may still output a packet on `packet` ...
    output logic      engaged,             // ... or has another operation in progress
    input qp_index_t  view_index,
    output psn_t      view_next,           // a cycle later
    output psn_t      view_oldest,

    stream_if.sink   wqe,                  // rdma_wqe_t
    stream_if.sink   wqe_access,           // local_access_t, one per work request, at any time after it
    stream_if.source cqe,                  // rdma_cqe_t
    output logic      unsignaled,          // pulse: an unsignaled work request of this QP has completed with success
    output qp_index_t unsignaled_index,
    stream_if.source qp_event,             // qp_event_t

    stream_if.source packet,               // tx_packet_t
    stream_if.sink   fault,                // tx_fault_t
    input targets_t  passed,               // pulse: the payload of a packet was read from this memory

    // L_Keys
    output logic [1:0][31:0] key,          // to look up: [0] of packets sent, [1] of responses received
    input  logic [1:0] key_live,           // the key is valid, a cycle later
    input  logic     fencing,              // roce_response_fence: a fence is in progress
    output logic     fence_over,           // the accesses in progress here when it began are complete

    stream_if.sink   response,             // rc_response_t
    axis_if.sink     response_payload,     // of the responses that have payload, in order
    stream_if.source write,                // dma_cmd_t: READ responses and the results of atomics
    axis_if.source   write_data,
    stream_if.sink   write_done,           // dma_done_t
    input logic      active,               // a packet of this QP was received
    input qpn_t      active_qpn,

    // Pacing (roce_cc).
    input logic [QPS-1:0] blocked,         // may not start a visit now
    stream_if.source      parked,          // qp_index_t: was blocked, and is removed from the list
    stream_if.sink        resume,          // qp_index_t: list it again
    output logic          sent,            // pulse: a request packet of this QP was handed to roce_tx ...
    output qp_index_t     sent_index,
    output logic [12:0]   sent_bytes,      // ... its length on the wire, preamble and inter-frame gap included

    output roce_tx_events_t events,        // except those that roce_tx counts
    output qp_index_t       events_index,  // QP of the timeout or response
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
  roce_qp_write_if #(.T(sq_tail_t)) tail ();
  roce_qp_write_if #(.T(sq_sent_t)) sent_word ();
  roce_qp_write_if #(.T(sq_progress_t)) progress ();
  roce_qp_write_if #(.T(sq_confirmed_t)) confirmed ();
  roce_qp_write_if #(.T(xpsn_t)) una ();
  roce_qp_write_if #(.T(sq_failure_t)) failure ();
  roce_qp_write_if #(.T(sq_retired_t)) retired ();
  roce_qp_write_if #(.T(sq_path_t)) path_word ();
  roce_qp_write_if #(.T(sq_policy_t)) policy_word ();
  roce_qp_write_if #(.T(sq_peer_t)) peer_word ();
  roce_qp_read_if #(.T(queue_policy_t)) queue_policy ();
  roce_qp_read_if #(.T(queue_words_t)) queue_words ();
  roce_qp_read_if #(.T(send_words_t)) send_words ();
  roce_qp_read_if #(.T(ack_words_t)) ack_words ();
  roce_qp_read_if #(.T(retire_words_t)) retire_words ();
  roce_qp_read_if #(.T(timer_words_t)) timer_words ();
  roce_qp_read_if #(.T(view_words_t)) view_words ();
  qp_index_t     confirm_index;
  sq_confirmed_t confirm_word;

  assign path_word.valid   = path_write;
  assign path_word.index   = attr_index;
  assign path_word.data    = path;
  assign policy_word.valid = policy_write;
  assign policy_word.index = attr_index;
  assign policy_word.data  = policy;
  assign peer_word.valid   = peer_write;
  assign peer_word.index   = peer_index;
  assign peer_word.data    = peer;

  view_words_t seen;
  assign view_words.read  = 1'b1;
  assign view_words.index = view_index;
  assign seen             = view_words.data;
  assign view_next        = seen.next;
  assign view_oldest      = seen.oldest;

  roce_requester_tables #(
      .QPS(QPS),
      .SELECTIVE_REPEAT(SELECTIVE_REPEAT)
  ) tables (
      .clk,
      .tail,
      .sent(sent_word),
      .progress,
      .confirmed,
      .una,
      .failure,
      .retired,
      .path(path_word),
      .policy(policy_word),
      .peer(peer_word),
      .queue_policy,
      .queue(queue_words),
      .send(send_words),
      .ack(ack_words),
      .confirm_index,
      .confirm(confirm_word),
      .retire(retire_words),
      .timer(timer_words),
      .view(view_words)
  );

  // ---- rings: per QP, SQ_DEPTH work requests, or RD_DEPTH READs and atomics ----
  typedef logic [$clog2(QPS)-1:0] index_t;
  typedef logic [$clog2(SQ_DEPTH)-1:0] sq_slot_t;
  typedef logic [$clog2(RD_DEPTH)-1:0] rd_slot_t;
  logic ring_write, rd_write, send_read, done_read, rd_read, compare_read;
  sq_count_t ring_count;
  rd_count_t ring_rd_count, rd_read_count, compare_count;
  qp_index_t ring_index, send_read_index, done_read_index, rd_read_index, compare_index;
  sq_count_t send_read_count, done_read_count;
  sq_send_t send_ring_in, send_ring_out;
  sq_done_t done_ring_in, done_ring_out;
  sq_rd_t rd_ring_in, rd_ring_out;
  logic [63:0] compare_in, compare_out;

  ram_1w1r #(
      .T(sq_send_t),
      .WORDS(QPS * SQ_DEPTH)
  ) send_ring (
      .clk,
      .write(ring_write),
      .write_at({index_t'(ring_index), sq_slot_t'(ring_count)}),
      .write_data(send_ring_in),
      .read(send_read),
      .read_at({index_t'(send_read_index), sq_slot_t'(send_read_count)}),
      .read_data(send_ring_out)
  );
  ram_1w1r #(
      .T(sq_done_t),
      .WORDS(QPS * SQ_DEPTH)
  ) done_ring (
      .clk,
      .write(ring_write),
      .write_at({index_t'(ring_index), sq_slot_t'(ring_count)}),
      .write_data(done_ring_in),
      .read(done_read),
      .read_at({index_t'(done_read_index), sq_slot_t'(done_read_count)}),
      .read_data(done_ring_out)
  );
  if (READS) begin : g_reads
    ram_1w1r #(
        .T(sq_rd_t),
        .WORDS(QPS * RD_DEPTH)
    ) rd_ring (
        .clk,
        .write(rd_write),
        .write_at({index_t'(ring_index), rd_slot_t'(ring_rd_count)}),
        .write_data(rd_ring_in),
        .read(rd_read),
        .read_at({index_t'(rd_read_index), rd_slot_t'(rd_read_count)}),
        .read_data(rd_ring_out)
    );
    ram_1w1r #(
        .T(logic [63:0]),
        .WORDS(QPS * RD_DEPTH)
    ) compare_ring (
        .clk,
        .write(rd_write),
        .write_at({index_t'(ring_index), rd_slot_t'(ring_rd_count)}),
        .write_data(compare_in),
        .read(compare_read),
        .read_at({index_t'(compare_index), rd_slot_t'(compare_count)}),
        .read_data(compare_out)
    );
  end else begin : g_no_reads
    assign rd_ring_out = '0;
    assign compare_out = '0;
    logic unused_ok;
    assign unused_ok = &{1'b0, rd_write, rd_ring_in, rd_read, rd_read_index, rd_read_count, ring_rd_count,
                         compare_in, compare_read, compare_index, compare_count};
  end

  // ---- work requests ----
  stream_if #(.T(qp_index_t)) keepalive ();
  stream_if #(.T(qp_index_t)) work[5] ();    // quantum used up; response or timer; READ completed; unblocked; new
  stream_if #(.T(qp_index_t)) retire[2] ();  // confirmed or failed; posted in the error state or with an invalid L_Key
  stream_if #(.T(rdma_cqe_t)) completed[2] ();
  logic keepalive_sent, queue_engaged, retire_engaged, cqe_engaged;
  logic queue_idle, send_idle, ack_idle, response_idle, retire_idle, settled;

  roce_requester_queue #(
      .QPS(QPS),
      .SQ_DEPTH(SQ_DEPTH),
      .RD_DEPTH(RD_DEPTH),
      .READS(READS)
  ) queue (
      .clk,
      .rst,
      .enable,
      .wqe,
      .access(wqe_access),
      .keepalive,
      .init,
      .start,
      .watch,
      .engaged(queue_engaged),
      .policy(queue_policy),
      .words(queue_words),
      .tail_next(tail),
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
      .look(retire[1]),
      .refused(completed[1]),
      .keepalive_sent,
      .idle(queue_idle)
  );

  assign work[3].valid = resume.valid;
  assign work[3].data  = resume.data;
  assign resume.ready  = work[3].ready;

  // ---- sending ----
  stream_if #(.T(qp_index_t)) next_work ();
  stream_if #(.T(tx_fault_t)) unreadable[2] ();    // L_Key no longer valid; read error of the payload
  stream_if #(.T(tx_fault_t)) unreadables ();
  logic     work_empty, selective_retransmit, visiting, intake_moves;
  targets_t reads;

  roce_qp_list #(
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
      .SELECTIVE_REPEAT(SELECTIVE_REPEAT),
      .READS(READS),
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
      .words(send_words),
      .ring_read(send_read),
      .ring_index(send_read_index),
      .ring_count(send_read_count),
      .ring_data(send_ring_out),
      .key(key[0]),
      .key_live(key_live[0]),
      .compare_read,
      .compare_index,
      .compare_count,
      .compare_data(compare_out),
      .init,
      .start,
      .sent_next(sent_word),
      .packet,
      .fault(unreadable[0]),
      .reads,
      .visiting,
      .again(work[0]),
      .selective_retransmit,
      .idle(send_idle)
  );

  // Bytes of a packet on the wire other than extension headers and payload: preamble, headers, ICRC, FCS and inter-frame gap.
  localparam int unsigned OVERHEAD = 8 + ROCE_HDR_BYTES + ICRC_BYTES + 4 + 12;
  tx_packet_t given;
  assign given = packet.data;
  always_ff @(posedge clk) begin
    sent       <= packet.valid && packet.ready && !rst;
    sent_index <= sq_index(given.qpn);
    sent_bytes <= 13'(OVERHEAD) + 13'(ext_headers(given.opcode).bytes) + {given.length[12:2] + 11'(|given.length[1:0]), 2'b00};
  end

  // ---- responses and timers ----
  stream_if #(.T(sq_event_t)) expired ();
  stream_if #(.T(sq_verdict_t)) verdict ();
  stream_if #(.T(qp_index_t)) local_fault[2] ();   // write error of a result; invalid L_Key of the oldest work request
  stream_if #(.T(qp_index_t)) local_faults ();
  roce_tx_events_t ack_events;

  roce_requester_ack #(
      .QPS(QPS),
      .READS(READS),
      .WINDOW(WINDOW)
  ) intake (
      .clk,
      .rst,
      .enable,
      .command(change),
      .local_fault(local_faults),
      .fault(unreadables),
      .timer(expired),
      .response,
      .words(ack_words),
      .rd_read,
      .rd_index(rd_read_index),
      .rd_count(rd_read_count),
      .rd_data(rd_ring_out),
      .key(key[1]),
      .key_live(key_live[1]),
      .moves(intake_moves),
      .progress_next(progress),
      .work(work[1]),
      .verdict,
      .events(ack_events),
      .events_index,
      .idle(ack_idle)
  );

  localparam int unsigned PENDING = 64;
  logic [$clog2(PENDING):0] confirming;
  logic                     confirmed_one;
  roce_requester_receive #(
      .DATA_W(DATA_W),
      .QPS(QPS),
      .READS(READS),
      .PENDING(PENDING)
  ) results (
      .clk,
      .rst,
      .verdict,
      .payload(response_payload),
      .write,
      .data(write_data),
      .done(write_done),
      .index(confirm_index),
      .confirmed(confirm_word),
      .confirmed_next(confirmed),
      .una,
      .failure,
      .retire(retire[0]),
      .work(work[2]),
      .fault(local_fault[0]),
      .commanded,
      .confirming,
      .confirmed_one,
      .idle(response_idle)
  );

  assign unreadable[1].valid = fault.valid;
  assign unreadable[1].data  = fault.data;
  assign fault.ready         = unreadable[1].ready;
  stream_arbiter #(
      .T(tx_fault_t),
      .N(2)
  ) unread (
      .clk,
      .rst,
      .in(unreadable),
      .last('1),
      .out(unreadables)
  );

  roce_requester_fence #(
      .LANES(LANES),
      .PENDING(PENDING)
  ) fence (
      .clk,
      .rst,
      .fencing,
      .visiting,
      .reads,
      .passed,
      .step(intake_moves),
      .confirming,
      .confirmed(confirmed_one),
      .over(fence_over)
  );

  stream_arbiter #(
      .T(qp_index_t),
      .N(2)
  ) faults (
      .clk,
      .rst,
      .in(local_fault),
      .last('1),
      .out(local_faults)
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
      .words(timer_words),
      .expired,
      .keepalive,
      .settled
  );

  // ---- completions ----
  stream_if #(.T(qp_index_t)) next_retire ();
  logic retire_empty, flushed;

  roce_qp_list #(
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
      .words(retire_words),
      .ring_read(done_read),
      .ring_index(done_read_index),
      .ring_count(done_read_count),
      .ring_data(done_ring_out),
      .init,
      .start,
      .watch,
      .engaged(retire_engaged),
      .retired_next(retired),
      .cqe(completed[0]),
      .qp_event,
      .fault(local_fault[1]),
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
