// SPDX-License-Identifier: Apache-2.0

// Processes the events of a QP's send queue: responses, timeouts, faults and commands. Writes the state of the send queue.
// One event a cycle, one every 7 cycles for the same QP; visible in the table 8 cycles later. A pending ACK is merged with the next
// one of the same QP if that acknowledges more. Priority of the events: `command`, `local_fault`, `fault`, `timer`, `response`.
// Stalls only when `work` or `verdict` are not ready.
//
// A response is valid if its QP is in RTS or SQD, its source is the QP's peer, and its PSN is outstanding (una <= PSN < limit);
// otherwise it only increments a counter, and its payload is dropped.
//   ACK              acknowledges everything up to its PSN (IBTA 9.7.5.2)
//   NAK, RNR NAK     acknowledges everything before its PSN
//   READ response, atomic acknowledge
//                    acknowledge everything before the request that they answer, and must come in order
// The data of a READ response or atomic acknowledge is written if the L_Key of the work request is still valid; else the QP fails.
// No response acknowledges a READ or atomic that was not answered. An ACK, NAK or response beyond it is an implied NAK: a response
// was lost, and the requester retransmits from the first missing PSN (IBTA 9.7.5.1.2), once until there is progress or a timeout.
//
// Retry limits (IBTA 9.9.2.1): a timeout, or a NAK without progress, uses a retry; an RNR NAK uses an RNR retry. Progress restores
// both counts.
module roce_requester_ack
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import roce_requester_pkg::*;
  import roce_requester_ack_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter bit READS = 1'b1,    // else no READ or atomic is outstanding, and rd_data is constant
    parameter int unsigned WINDOW = 8192
) (
    input logic clk,
    input logic rst,
    input logic enable,            // accepts responses

    stream_if.sink command,        // sq_event_t
    stream_if.sink local_fault,    // qp_index_t: write error of response data, or invalid L_Key
    stream_if.sink fault,          // tx_fault_t
    stream_if.sink timer,          // sq_event_t
    stream_if.sink response,       // rc_response_t

    roce_qp_read_if.reader words,  // ack_words_t

    output logic         rd_read,  // reads the oldest READ or atomic not answered
    output qp_index_t    rd_index,
    output rd_count_t    rd_count,
    input  sq_rd_t       rd_data,  // a cycle later, until the next read
    output logic [31:0]  key,      // the L_Key of it, to look up
    input  logic         key_live, // the key is valid, a cycle later
    output logic         moves,    // pulse: all events advance by a stage

    roce_qp_write_if.writer progress_next,  // sq_progress_t

    stream_if.source work,         // qp_index_t
    stream_if.source verdict,      // sq_verdict_t

    output roce_tx_events_t events,
    output qp_index_t events_index,
    output logic            idle
);
  // Received responses in the requester's own encoding.
  stream_if #(.T(ack_event_t)) heard_in ();
  stream_if #(.T(ack_event_t)) heard ();
  rc_response_t came;
  assign came           = response.data;
  assign heard_in.valid = response.valid && enable;
  assign response.ready = heard_in.ready && enable;
  assign heard_in.data  = '{
          kind: SQ_EV_RESPONSE,
          index: sq_index(came.qpn),
          exists: qpn_exists(came.qpn, QPS),
          psn: came.psn,
          is: response_of(came.opcode),
          syndrome: came.aeth.syndrome,
          cause: came.aeth.msn,
          length: came.payload_length > 16'd4096 ? '1 : came.payload_length[12:0],
          has_payload: came.payload_length != 0,
          original: came.original,
          src_ip: came.src_ip
      };
  stream_slice #(.T(ack_event_t)) heard_slice (.clk, .rst, .in(heard_in), .out(heard));

  stream_if #(.T(sq_event_t)) asked ();
  stream_if #(.T(sq_event_t)) due ();
  stream_slice #(.T(sq_event_t)) command_slice (.clk, .rst, .in(command), .out(asked));
  stream_slice #(.T(sq_event_t)) timer_slice (.clk, .rst, .in(timer), .out(due));

  stream_if #(.T(sq_event_t)) broken_in ();
  stream_if #(.T(sq_event_t)) broken ();
  tx_fault_t faulty;
  assign faulty          = fault.data;
  assign broken_in.valid = fault.valid;
  assign broken_in.data  = '{kind: SQ_EV_FAULT, index: sq_index(faulty.qpn), psn: faulty.psn};
  assign fault.ready     = broken_in.ready;
  stream_slice #(.T(sq_event_t)) fault_slice (.clk, .rst, .in(broken_in), .out(broken));

  // ---- arbitrate ----
  ack_event_t event_q;
  logic      event_valid_q;
  logic      step;         // the pipeline advances
  logic      take;         // the pipeline accepts an event
  logic      clash;        // an event of the same QP is in the pipeline
  logic      merge;        // an ACK that waits for that takes in the next

  sq_event_t  told, timed, unread;
  ack_event_t answer, chosen;
  qp_index_t  refused;
  assign told    = asked.data;
  assign refused = local_fault.data;
  assign unread  = broken.data;
  assign timed   = due.data;
  assign answer  = heard.data;

  // The event with the highest priority, one-hot.
  wire [4:0] waiting = {heard.valid, due.valid, broken.valid, local_fault.valid, asked.valid};
  wire [4:0] grant = waiting & (~waiting + 1'b1);
  assign asked.ready       = take && grant[0];
  assign local_fault.ready = take && grant[1];
  assign broken.ready      = take && grant[2];
  assign due.ready         = take && grant[3];
  assign heard.ready       = merge || (take && grant[4]);

  qp_index_t chosen_index;
  assign chosen_index = (grant[0] ? told.index : '0) | (grant[1] ? refused : '0) | (grant[2] ? unread.index : '0)
      | (grant[3] ? timed.index : '0) | (grant[4] ? answer.index : '0);
  always_comb begin
    chosen = answer;
    if (!grant[4]) begin
      chosen.kind        = grant[0] ? told.kind : grant[1] ? SQ_EV_LOCAL_FAULT : grant[2] ? SQ_EV_FAULT : timed.kind;
      chosen.exists      = 1'b0;
      chosen.psn         = grant[0] ? told.psn : grant[2] ? unread.psn : timed.psn;
      chosen.has_payload = 1'b0;
    end
    chosen.index = chosen_index;
  end

  // Both of the same peer, and the later one a little ahead: a stray one far off must not hide a good one. Compared while neither
  // changes, so an event takes in one ACK every second cycle.
  logic follows_q;
  wire psn_t further = answer.psn - event_q.psn;
  assign merge = follows_q && clash;
  always_ff @(posedge clk) begin
    follows_q <= !rst && !take && !heard.ready && event_valid_q && heard.valid && plain_ack(event_q) && plain_ack(answer)
        && event_q.exists && answer.exists && event_q.index == answer.index && event_q.src_ip == answer.src_ip
        && further[23:8] == '0;
  end

  // ---- 1: look up; an event waits while one of the same QP is in the pipeline ----
  localparam int unsigned STAGES = 6;
  logic [STAGES:1] valid_q;
  qp_index_t       index_q[STAGES:1];
  // Compared before the event is accepted, so that `clash` comes from registers.
  logic [STAGES:1] same_q, same;
  always_comb begin
    for (int unsigned i = 1; i <= STAGES; i++) begin
      if (take) same[i] = chosen_index == (i == 1 ? event_q.index : index_q[i-1]);
      else if (step) same[i] = i == 1 ? 1'b0 : same_q[i-1];
      else same[i] = same_q[i];
    end
  end
  assign clash = |(valid_q & same_q);
  wire go = event_valid_q && !clash;
  assign take = step && (go || !event_valid_q);

  always_ff @(posedge clk) begin
    if (take || merge) event_q <= merge ? answer : chosen;
    same_q <= same;
    if (rst) begin
      event_valid_q <= 1'b0;
      valid_q       <= '0;
    end else begin
      if (take) begin
        event_valid_q <= |waiting;
      end
      if (step) valid_q <= {valid_q[STAGES-1:1], go};
    end
    if (step) begin
      index_q[1] <= event_q.index;
      for (int unsigned i = 2; i <= STAGES; i++) index_q[i] <= index_q[i-1];
    end
  end

  ack_event_t e1_q;
  ack_words_t word;
  assign words.read  = step;
  assign words.index = event_q.index;
  assign word        = words.data;
  always_ff @(posedge clk) if (step) e1_q <= event_q;

  // ---- 2: position in the window; read the oldest READ or atomic not answered ----
  assign rd_read  = step && valid_q[1];
  assign rd_index = e1_q.index;
  assign rd_count = word.progress.rd;

  ack_placed_t p2_q, p3_q, p4_q;
  always_ff @(posedge clk) begin
    if (step) begin
      p2_q <= '{
          e: e1_q,
          was: word.progress,
          path: word.path,
          heard: e1_q.exists && word.peer_ip == e1_q.src_ip,
          ahead: e1_q.psn - word.progress.una[23:0],
          span: word.sent.limit - word.progress.una,
          spread: word.sent.psn - word.progress.una,
          beyond_mark: e1_q.cause - word.sent.mark,
          sent_epoch: word.sent.epoch,
          sent_single: word.sent.single,
          last_retry: word.progress.retries == word.policy.retry_cnt,
          last_rnr_retry: word.progress.rnr_retries == word.policy.rnr_retry && word.policy.rnr_retry != 3'd7,
          no_rnr_retry: word.policy.rnr_retry == 3'd0,
          reads: READS && word.rd_posted != word.progress.rd
      };
    end
  end

  // ---- 3: position of the READ ----
  sq_rd_t rd3_q;
  xpsn_t  read_gap_q, read_done_q;  // its first PSN - una, and una - its first PSN
  logic   outstanding_q, window_shut_q;
  always_ff @(posedge clk) begin
    if (step) begin
      p3_q          <= p2_q;
      rd3_q         <= rd_data;
      read_gap_q    <= rd_data.first - p2_q.was.una;
      read_done_q   <= p2_q.was.una - rd_data.first;
      outstanding_q <= p2_q.span[30:24] != 0 || p2_q.ahead < p2_q.span[23:0];
      window_shut_q <= p2_q.path.selective_repeat || p2_q.spread >= xpsn_t'(WINDOW - 16);
    end
  end

  // The L_Key of rd3_q is looked up in every cycle, also while the pipeline stalls.
  assign key   = step ? rd_data.lkey : rd3_q.lkey;
  assign moves = step;

  // ---- 4: the response expected next ----
  ack_expected_t expected_q;
  always_ff @(posedge clk) begin
    if (step) begin
      p4_q       <= p3_q;
      expected_q <= '{
          rd: rd3_q,
          beyond: !p3_q.reads || (!read_gap_q[30] && read_gap_q[29:24] != 0),
          expected: !READS || read_gap_q[30] ? '0 : read_gap_q[23:0],
          position: READS && read_gap_q[30] ? read_done_q[22:0] : '0,
          opens: READS && !read_gap_q[30],
          outstanding: outstanding_q,
          window_shut: window_shut_q,
          live: key_live
      };
    end
  end

  // ---- 5: compare the event with the expected response ----
  ack_matched_t matched, matched_q;
  roce_requester_ack_match match_ (
      .placed(p4_q),
      .expected(expected_q),
      .matched
  );
  always_ff @(posedge clk) if (step) matched_q <= matched;

  // ---- 6: decide ----
  ack_ruling_t     ruling;
  roce_tx_events_t decided;
  roce_requester_ack_decide decide (
      .matched(matched_q),
      .ruling,
      .events(decided)
  );

  // ---- 7: write the table, list the QP, output the verdict ----
  ack_event_t      e;
  sq_progress_t    was;
  ack_matched_t    m_q;
  ack_ruling_t     r_q;
  logic            commands_q, has_verdict_q;
  roce_tx_events_t events_q;
  assign e   = m_q.e;
  assign was = m_q.was;
  always_ff @(posedge clk) begin
    if (step) begin
      m_q      <= matched_q;
      r_q      <= ruling;
      events_q <= decided;
      commands_q    <= is_command(matched_q.e.kind);
      has_verdict_q <= is_command(matched_q.e.kind) || matched_q.e.has_payload;
    end
    events       <= valid_q[STAGES] && step ? events_q : '0;
    events_index <= e.index;
  end

  function automatic logic [2:0] retries_after(retries_e what, logic [2:0] so_far);
    unique case (what)
      RETRIES_CLEAR: return 3'd0;
      RETRIES_ONE:   return 3'd1;
      RETRIES_COUNT: return so_far == '1 ? '1 : so_far + 1'b1;
      default:       return so_far;
    endcase
  endfunction

  sq_progress_t written;
  always_comb begin
    written             = was;
    written.state       = r_q.fail ? SQ_ERR : r_q.state;
    written.epoch       = r_q.go_back ? !m_q.sent_epoch : was.epoch;
    written.asked       = r_q.resend || (was.asked && !r_q.asked_clear && !r_q.go_back);
    written.later       = r_q.resend ? m_q.beyond_mark : was.later;
    written.single      = was.single + 2'(r_q.resend);
    written.implied     = r_q.implied_set || (was.implied && !r_q.implied_clear);
    written.drained     = r_q.drained_set || (was.drained && !r_q.drained_clear);
    written.rnr_wait    = r_q.rnr_set || (was.rnr_wait && !r_q.rnr_clear);
    written.rnr_code    = r_q.rnr_set ? e.syndrome[4:0] : was.rnr_code;
    written.retries     = retries_after(r_q.retries, was.retries);
    written.rnr_retries = retries_after(r_q.rnr_retries, was.rnr_retries);
    written.rd          = was.rd + rd_count_t'(r_q.answered);
    written.una         = was.una + xpsn_t'(r_q.advance);
    if (r_q.begins) written = '{state: r_q.state, una: xpsn_t'(e.psn), default: '0};
  end

  sq_verdict_t told_of;
  assign told_of = '{
          index: e.index,
          payload: READS && r_q.original ? PAYLOAD_ORIGINAL : READS && r_q.place ? PAYLOAD_PLACE : e.has_payload ? PAYLOAD_DROP : PAYLOAD_NONE,
          addr: m_q.addr + m_q.offset,
          target: m_q.target,
          key: m_q.key,
          length: m_q.length,
          original: e.original,
          confirms: r_q.change || commands_q,
          command: commands_q,
          fresh: e.kind == SQ_EV_START,
          answered: r_q.answered,
          drained: r_q.drained_set,
          state: written.state,
          una: written.una,
          status: r_q.fail_status,
          failed: was.una + xpsn_t'(r_q.fail_at)
      };
  wire wants_verdict = r_q.change || has_verdict_q;
  stream_if #(.T(qp_index_t)) listed ();
  stream_slice #(.T(qp_index_t)) work_slice (.clk, .rst, .in(listed), .out(work));

  assign step = !valid_q[STAGES] || ((verdict.ready || !wants_verdict) && (listed.ready || !r_q.send_more));

  assign verdict.valid = valid_q[STAGES] && wants_verdict && (listed.ready || !r_q.send_more);
  assign verdict.data  = told_of;
  assign listed.valid  = valid_q[STAGES] && r_q.send_more && (verdict.ready || !wants_verdict);
  assign listed.data   = e.index;

  assign progress_next.valid = valid_q[STAGES] && step && r_q.change;
  assign progress_next.index = e.index;
  assign progress_next.data  = written;
  assign idle                = !event_valid_q && valid_q == '0 && waiting == '0 && !work.valid;
endmodule
