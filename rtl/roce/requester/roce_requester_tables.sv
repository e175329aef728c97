// SPDX-License-Identifier: Apache-2.0

// The tables of the requester: one word per QP. Each word has one writer; each reader has its own memory for the fields it uses.
// The words are described in roce_requester_pkg. Nothing is reset: `init` of roce_qp_control initializes a QP's words.
//
//   written by                     read by
//   queue    tail                  queue, send, ack, retire, timer
//   send     sent                  send, ack, timer, view
//   ack      progress              queue, send, ack, timer, view
//   receive  confirmed             receive, retire; of it rd_done: queue, send
//            una, failure          retire
//   retire   retired               queue, send, retire
//   control  path, policy, peer    queue, send, ack, timer
//
// Reads take a cycle (roce_qp_read_if), except that of `confirm_index`, whose word is valid in the same cycle.
module roce_requester_tables
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter bit SELECTIVE_REPEAT = 1'b1    // else all that it needs is read as 0
) (
    input logic clk,

    roce_qp_write_if.table_ tail,        // sq_tail_t
    roce_qp_write_if.table_ sent,        // sq_sent_t
    roce_qp_write_if.table_ progress,    // sq_progress_t
    roce_qp_write_if.table_ confirmed,   // sq_confirmed_t
    roce_qp_write_if.table_ una,         // xpsn_t
    roce_qp_write_if.table_ failure,     // sq_failure_t
    roce_qp_write_if.table_ retired,     // sq_retired_t
    roce_qp_write_if.table_ path,        // sq_path_t
    roce_qp_write_if.table_ policy,      // sq_policy_t
    roce_qp_write_if.table_ peer,        // sq_peer_t

    roce_qp_read_if.table_ queue_policy, // queue_policy_t
    roce_qp_read_if.table_ queue,        // queue_words_t
    roce_qp_read_if.table_ send,         // send_words_t
    roce_qp_read_if.table_ ack,          // ack_words_t
    input  qp_index_t      confirm_index,
    output sq_confirmed_t  confirm,
    roce_qp_read_if.table_ retire,       // retire_words_t
    roce_qp_read_if.table_ timer,        // timer_words_t
    roce_qp_read_if.table_ view          // view_words_t
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  typedef logic [INDEX_W-1:0] index_t;

  sq_tail_t       tail_word;
  sq_sent_t       sent_word;
  sq_progress_t   progress_word;
  sq_confirmed_t  confirmed_word;
  xpsn_t          una_word;
  sq_failure_t    failure_word;
  sq_retired_t    retired_word;
  sq_path_t       path_word;
  sq_policy_t     policy_word;
  sq_peer_t       peer_word;
  assign tail_word      = tail.data;
  assign sent_word      = sent.data;
  assign progress_word  = progress.data;
  assign confirmed_word = confirmed.data;
  assign una_word       = una.data;
  assign failure_word   = failure.data;
  assign retired_word   = retired.data;
  assign path_word      = path.data;
  assign policy_word    = policy.data;
  assign peer_word      = peer.data;

  wire index_t tail_at      = index_t'(tail.index);
  wire index_t sent_at      = index_t'(sent.index);
  wire index_t progress_at  = index_t'(progress.index);
  wire index_t confirmed_at = index_t'(confirmed.index);
  wire index_t una_at       = index_t'(una.index);
  wire index_t failure_at   = index_t'(failure.index);
  wire index_t retired_at   = index_t'(retired.index);
  wire index_t path_at      = index_t'(path.index);
  wire index_t policy_at    = index_t'(policy.index);
  wire index_t peer_at      = index_t'(peer.index);

  // ---- queue: attributes for segmentation; words for acceptance ----
  wire index_t     queue_policy_at = index_t'(queue_policy.index);
  queue_policy_t   queue_policy_words;
  assign queue_policy.data = queue_policy_words;
  ram_1w1r #(.T(sq_path_t), .WORDS(QPS)) queue_path (
      .clk, .write(path.valid), .write_at(path_at), .write_data(path_word),
      .read(queue_policy.read), .read_at(queue_policy_at), .read_data(queue_policy_words.path)
  );
  ram_1w1r #(.T(rd_count_t), .WORDS(QPS)) queue_max_rd (
      .clk, .write(policy.valid), .write_at(policy_at), .write_data(policy_word.max_rd_atomic),
      .read(queue_policy.read), .read_at(queue_policy_at), .read_data(queue_policy_words.max_rd_atomic)
  );

  wire index_t queue_at = index_t'(queue.index);
  queue_words_t queue_words;
  assign queue.data = queue_words;
  ram_1w1r #(.T(sq_tail_t), .WORDS(QPS)) queue_tail (
      .clk, .write(tail.valid), .write_at(tail_at), .write_data(tail_word),
      .read(queue.read), .read_at(queue_at), .read_data(queue_words.tail)
  );
  ram_1w1r #(.T(queue_progress_t), .WORDS(QPS)) queue_progress (
      .clk, .write(progress.valid), .write_at(progress_at), .write_data('{state: progress_word.state, una: progress_word.una}),
      .read(queue.read), .read_at(queue_at), .read_data(queue_words.progress)
  );
  ram_1w1r #(.T(sq_count_t), .WORDS(QPS)) queue_retired (
      .clk, .write(retired.valid), .write_at(retired_at), .write_data(retired_word.count),
      .read(queue.read), .read_at(queue_at), .read_data(queue_words.retired)
  );
  ram_1w1r #(.T(rd_count_t), .WORDS(QPS)) queue_rd_done (
      .clk, .write(confirmed.valid), .write_at(confirmed_at), .write_data(confirmed_word.rd_done),
      .read(queue.read), .read_at(queue_at), .read_data(queue_words.rd_done)
  );

  // ---- send ----
  wire index_t send_at = index_t'(send.index);
  send_words_t send_words, send_read;
  always_comb begin
    send_words = send_read;
    if (!SELECTIVE_REPEAT) begin
      send_words.path.selective_repeat = 1'b0;
      send_words.progress.asked        = 1'b0;
      send_words.progress.later        = 1'b0;
      send_words.progress.single       = '0;
      send_words.sent.single           = '0;
      send_words.sent.hull             = 1'b0;
      send_words.sent.strict           = '0;
      send_words.sent.mark             = '0;
    end
  end
  assign send.data = send_words;
  ram_1w1r #(.T(send_tail_t), .WORDS(QPS)) send_tail (
      .clk, .write(tail.valid), .write_at(tail_at), .write_data('{count: tail_word.count, next: tail_word.next}),
      .read(send.read), .read_at(send_at), .read_data(send_read.tail)
  );
  ram_1w1r #(.T(sq_sent_t), .WORDS(QPS)) send_sent (
      .clk, .write(sent.valid), .write_at(sent_at), .write_data(sent_word),
      .read(send.read), .read_at(send_at), .read_data(send_read.sent)
  );
  ram_1w1r #(.T(send_progress_t), .WORDS(QPS)) send_progress (
      .clk, .write(progress.valid), .write_at(progress_at),
      .write_data('{
          state: progress_word.state,
          epoch: progress_word.epoch,
          asked: progress_word.asked,
          later: progress_word.later,
          single: progress_word.single,
          rnr_wait: progress_word.rnr_wait,
          una: progress_word.una
      }),
      .read(send.read), .read_at(send_at), .read_data(send_read.progress)
  );
  ram_1w1r #(.T(sq_count_t), .WORDS(QPS)) send_retired (
      .clk, .write(retired.valid), .write_at(retired_at), .write_data(retired_word.count),
      .read(send.read), .read_at(send_at), .read_data(send_read.retired)
  );
  ram_1w1r #(.T(rd_count_t), .WORDS(QPS)) send_rd_done (
      .clk, .write(confirmed.valid), .write_at(confirmed_at), .write_data(confirmed_word.rd_done),
      .read(send.read), .read_at(send_at), .read_data(send_read.rd_done)
  );
  ram_1w1r #(.T(sq_path_t), .WORDS(QPS)) send_path (
      .clk, .write(path.valid), .write_at(path_at), .write_data(path_word),
      .read(send.read), .read_at(send_at), .read_data(send_read.path)
  );
  ram_1w1r #(.T(rd_count_t), .WORDS(QPS)) send_max_rd (
      .clk, .write(policy.valid), .write_at(policy_at), .write_data(policy_word.max_rd_atomic),
      .read(send.read), .read_at(send_at), .read_data(send_read.max_rd_atomic)
  );

  // ---- ack ----
  wire index_t ack_at = index_t'(ack.index);
  ack_words_t ack_words, ack_read;
  always_comb begin
    ack_words = ack_read;
    if (!SELECTIVE_REPEAT) begin
      ack_words.path.selective_repeat = 1'b0;
      ack_words.progress.asked        = 1'b0;
      ack_words.progress.later        = 1'b0;
      ack_words.progress.single       = '0;
      ack_words.sent.single           = '0;
      ack_words.sent.mark             = '0;
    end
  end
  assign ack.data = ack_words;
  ram_1w1r #(.T(sq_progress_t), .WORDS(QPS)) ack_progress (
      .clk, .write(progress.valid), .write_at(progress_at), .write_data(progress_word),
      .read(ack.read), .read_at(ack_at), .read_data(ack_read.progress)
  );
  ram_1w1r #(.T(ack_sent_t), .WORDS(QPS)) ack_sent (
      .clk, .write(sent.valid), .write_at(sent_at),
      .write_data('{
          epoch: sent_word.epoch,
          single: sent_word.single,
          psn: sent_word.psn,
          limit: sent_word.limit,
          mark: sent_word.mark[23:0]
      }),
      .read(ack.read), .read_at(ack_at), .read_data(ack_read.sent)
  );
  ram_1w1r #(.T(sq_path_t), .WORDS(QPS)) ack_path (
      .clk, .write(path.valid), .write_at(path_at), .write_data(path_word),
      .read(ack.read), .read_at(ack_at), .read_data(ack_read.path)
  );
  ram_1w1r #(.T(ack_policy_t), .WORDS(QPS)) ack_policy (
      .clk, .write(policy.valid), .write_at(policy_at),
      .write_data('{retry_cnt: policy_word.retry_cnt, rnr_retry: policy_word.rnr_retry}),
      .read(ack.read), .read_at(ack_at), .read_data(ack_read.policy)
  );
  ram_1w1r #(.T(rd_count_t), .WORDS(QPS)) ack_rd_posted (
      .clk, .write(tail.valid), .write_at(tail_at), .write_data(tail_word.rd),
      .read(ack.read), .read_at(ack_at), .read_data(ack_read.rd_posted)
  );
  ram_1w1r #(.T(packet_pkg::ip_addr_t), .WORDS(QPS)) ack_peer (
      .clk, .write(peer.valid), .write_at(peer_at), .write_data(peer_word.ip),
      .read(ack.read), .read_at(ack_at), .read_data(ack_read.peer_ip)
  );

  // ---- receive: read, modify and write of its own word ----
  roce_qp_table #(.T(sq_confirmed_t), .QPS(QPS)) confirm_confirmed (
      .clk, .write(confirmed.valid), .write_index(confirmed.index), .write_data(confirmed_word),
      .read_index(confirm_index), .read_data(confirm)
  );

  // ---- retire ----
  wire index_t retire_at = index_t'(retire.index);
  retire_words_t retire_words;
  assign retire.data = retire_words;
  ram_1w1r #(.T(sq_count_t), .WORDS(QPS)) retire_posted (
      .clk, .write(tail.valid), .write_at(tail_at), .write_data(tail_word.count),
      .read(retire.read), .read_at(retire_at), .read_data(retire_words.posted)
  );
  ram_1w1r #(.T(sq_confirmed_t), .WORDS(QPS)) retire_confirmed (
      .clk, .write(confirmed.valid), .write_at(confirmed_at), .write_data(confirmed_word),
      .read(retire.read), .read_at(retire_at), .read_data(retire_words.confirmed)
  );
  ram_1w1r #(.T(xpsn_t), .WORDS(QPS)) retire_una (
      .clk, .write(una.valid), .write_at(una_at), .write_data(una_word),
      .read(retire.read), .read_at(retire_at), .read_data(retire_words.una)
  );
  ram_1w1r #(.T(sq_failure_t), .WORDS(QPS)) retire_failure (
      .clk, .write(failure.valid), .write_at(failure_at), .write_data(failure_word),
      .read(retire.read), .read_at(retire_at), .read_data(retire_words.failure)
  );
  ram_1w1r #(.T(sq_retired_t), .WORDS(QPS)) retire_retired (
      .clk, .write(retired.valid), .write_at(retired_at), .write_data(retired_word),
      .read(retire.read), .read_at(retire_at), .read_data(retire_words.retired)
  );

  // ---- timer ----
  wire index_t timer_at = index_t'(timer.index);
  timer_words_t timer_words;
  assign timer.data = timer_words;
  ram_1w1r #(.T(xpsn_t), .WORDS(QPS)) timer_posted (
      .clk, .write(tail.valid), .write_at(tail_at), .write_data(tail_word.next),
      .read(timer.read), .read_at(timer_at), .read_data(timer_words.posted)
  );
  ram_1w1r #(.T(timer_sent_t), .WORDS(QPS)) timer_sent (
      .clk, .write(sent.valid), .write_at(sent_at), .write_data('{open: sent_word.open, limit: sent_word.limit}),
      .read(timer.read), .read_at(timer_at), .read_data(timer_words.sent)
  );
  ram_1w1r #(.T(timer_progress_t), .WORDS(QPS)) timer_progress (
      .clk, .write(progress.valid), .write_at(progress_at),
      .write_data('{
          state: progress_word.state,
          epoch: progress_word.epoch,
          drained: progress_word.drained,
          rnr_wait: progress_word.rnr_wait,
          rnr_code: progress_word.rnr_code,
          retries: progress_word.retries,
          una: progress_word.una
      }),
      .read(timer.read), .read_at(timer_at), .read_data(timer_words.progress)
  );
  ram_1w1r #(.T(logic [4:0]), .WORDS(QPS)) timer_timeout (
      .clk, .write(policy.valid), .write_at(policy_at), .write_data(policy_word.timeout),
      .read(timer.read), .read_at(timer_at), .read_data(timer_words.timeout)
  );

  // ---- view ----
  wire index_t view_at = index_t'(view.index);
  view_words_t view_words;
  assign view.data = view_words;
  ram_1w1r #(.T(psn_t), .WORDS(QPS)) view_next (
      .clk, .write(sent.valid), .write_at(sent_at), .write_data(sent_word.limit[23:0]),
      .read(view.read), .read_at(view_at), .read_data(view_words.next)
  );
  ram_1w1r #(.T(psn_t), .WORDS(QPS)) view_oldest (
      .clk, .write(progress.valid), .write_at(progress_at), .write_data(progress_word.una[23:0]),
      .read(view.read), .read_at(view_at), .read_data(view_words.oldest)
  );
endmodule
