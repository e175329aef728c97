// SPDX-License-Identifier: Apache-2.0

// What happens to a QP's transmit side: responses, timeouts, faults, commands. Owns the state of it.
// One event a cycle, of one QP one every 7 cycles; seen in the table 8 cycles later. An ACK that waits for its QP takes in the next one if
// that acknowledges more. Events come in this order of urgency: `command`, `write_fault`, `fault`, `timer`, `response`.
// Stops only when `work` or `verdict` stop.
//
// A response counts if its QP sends, its source is the QP's peer, and its PSN is outstanding (una <= PSN < limit); else it changes nothing
// but a counter, and its payload is dropped.
//   ACK              frees everything up to its PSN (IBTA 9.7.5.2)
//   NAK, RNR NAK     frees everything before its PSN
//   READ response, atomic acknowledge
//                    free everything before the request that they answer, and must come in order
// None of them frees a READ or atomic that was not answered: what goes beyond, or skips one, says that a response was lost, and that is
// asked for again from the first missing PSN (IBTA 9.7.5.1.2: implied NAK). Once, until there is progress or a timeout.
//
// Retry limits (IBTA 9.9.2.1): a timeout, or a NAK without progress, costs a retry; so does an RNR NAK of its own kind.
// Progress restores both.
module roce_requester_ack
  import roce_pkg::*;
  import roce_requester_pkg::*;
  import memory_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned WINDOW = 8192
) (
    input logic clk,
    input logic rst,
    input logic enable,            // takes responses

    stream_if.sink command,        // sq_event_t
    stream_if.sink write_fault,    // qp_index_t: memory refused what responses brought
    stream_if.sink fault,          // tx_fault_t
    stream_if.sink timer,          // sq_event_t
    stream_if.sink response,       // rc_response_t

    output logic         look,     // read the words of this QP; they are there a cycle later, until the next look
    output qp_index_t    index,
    input  sq_progress_t progress,
    input  ack_sent_t    sent,
    input  sq_path_t     path,
    input  ack_policy_t  policy,
    input  rd_count_t    rd_posted,
    input  packet_pkg::ipv4_addr_t peer_ip,

    output logic         rd_read,  // the oldest READ or atomic not answered
    output qp_index_t    rd_index,
    output rd_count_t    rd_count,
    input  sq_rd_t       rd_data,  // a cycle later, until the next read

    output logic         progress_write,
    output qp_index_t    progress_write_index,
    output sq_progress_t progress_write_data,

    stream_if.source work,         // qp_index_t
    stream_if.source verdict,      // sq_verdict_t

    output roce_tx_events_t events,
    output qp_index_t events_index,
    output logic            idle
);
  typedef enum logic [2:0] {
    IS_ACK,
    IS_READ_FIRST,
    IS_READ_MIDDLE,
    IS_READ_LAST,
    IS_READ_ONLY,
    IS_ATOMIC
  } response_e;

  function automatic response_e response_of(logic [7:0] opcode);
    unique case (opcode)
      RC_RDMA_READ_RESPONSE_FIRST:  return IS_READ_FIRST;
      RC_RDMA_READ_RESPONSE_MIDDLE: return IS_READ_MIDDLE;
      RC_RDMA_READ_RESPONSE_LAST:   return IS_READ_LAST;
      RC_RDMA_READ_RESPONSE_ONLY:   return IS_READ_ONLY;
      RC_ATOMIC_ACKNOWLEDGE:        return IS_ATOMIC;
      default:                      return IS_ACK;
    endcase
  endfunction

  typedef struct packed {
    sq_event_e              kind;
    qp_index_t              index;
    logic                   exists;
    psn_t                   psn;
    response_e              is;
    logic [7:0]             syndrome;
    psn_t                   cause;          // of a NAK with selective repeat, in place of the MSN
    logic [12:0]            length;
    logic                   has_payload;
    atomicacketh_t          original;
    packet_pkg::ipv4_addr_t src_ip;
  } event_t;

  // What was heard, in our terms.
  stream_if #(.T(event_t)) heard_in ();
  stream_if #(.T(event_t)) heard ();
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
  stream_slice #(.T(event_t)) heard_slice (.clk, .rst, .in(heard_in), .out(heard));

  stream_if #(.T(sq_event_t)) asked ();
  stream_if #(.T(sq_event_t)) due ();
  stream_slice #(.T(sq_event_t)) command_slice (.clk, .rst, .in(command), .out(asked));
  stream_slice #(.T(sq_event_t)) timer_slice (.clk, .rst, .in(timer), .out(due));

  // ---- choose ----
  event_t    event_q;
  logic      event_valid_q;
  logic      step;         // the pipeline moves
  logic      take;         // and has room for an event
  logic      clash;        // its QP is in the pipeline
  logic      merge;        // an ACK that waits for that takes in the next

  sq_event_t told, timed;
  tx_fault_t broken;
  event_t    answer, chosen;
  assign told   = asked.data;
  assign timed  = due.data;
  assign broken = fault.data;
  assign answer = heard.data;
  assign asked.ready       = take;
  assign write_fault.ready = take && !asked.valid;
  assign fault.ready       = take && !asked.valid && !write_fault.valid;
  assign due.ready         = take && !asked.valid && !write_fault.valid && !fault.valid;
  assign heard.ready       = merge || (take && !asked.valid && !write_fault.valid && !fault.valid && !due.valid);

  always_comb begin
    chosen = answer;
    if (asked.valid) chosen = '{kind: told.kind, index: told.index, psn: told.psn, is: IS_ACK, default: '0};
    else if (write_fault.valid) chosen = '{kind: SQ_EV_WRITE_FAULT, index: write_fault.data, is: IS_ACK, default: '0};
    else if (fault.valid) chosen = '{kind: SQ_EV_FAULT, index: sq_index(broken.qpn), psn: broken.psn, is: IS_ACK, default: '0};
    else if (due.valid) chosen = '{kind: timed.kind, index: timed.index, psn: timed.psn, is: IS_ACK, default: '0};
  end

  function automatic logic plain_ack(event_t e);
    return e.kind == SQ_EV_RESPONSE && e.is == IS_ACK && !e.has_payload && e.syndrome[7:5] == SYNDROME_ACK[7:5];
  endfunction

  // Both of the same peer, and the later one a little ahead: a stray one far off must not hide a good one.
  wire psn_t further = answer.psn - event_q.psn;
  assign merge = event_valid_q && clash && heard.valid && plain_ack(event_q) && plain_ack(answer)
      && event_q.exists && answer.exists && event_q.index == answer.index && event_q.src_ip == answer.src_ip
      && further[23:8] == '0;

  // ---- 1: look up; a QP whose word is about to change waits for it ----
  localparam int unsigned STAGES = 6;
  logic [STAGES:1] valid_q;
  qp_index_t       index_q[STAGES:1];
  // Compared before it is taken, so that whether it must wait is known at once.
  logic [STAGES:1] same_q, same;
  always_comb begin
    for (int unsigned i = 1; i <= STAGES; i++) begin
      if (take) same[i] = chosen.index == (i == 1 ? event_q.index : index_q[i-1]);
      else if (step) same[i] = i == 1 ? 1'b0 : same_q[i-1];
      else same[i] = same_q[i];
    end
  end
  assign clash = |(valid_q & same_q);
  assign index = event_q.index;
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
        event_valid_q <= asked.valid || write_fault.valid || fault.valid || due.valid || heard.valid;
      end
      if (step) valid_q <= {valid_q[STAGES-1:1], go};
    end
    if (step) begin
      index_q[1] <= event_q.index;
      for (int unsigned i = 2; i <= STAGES; i++) index_q[i] <= index_q[i-1];
    end
  end

  event_t e1_q;
  assign look = step;
  always_ff @(posedge clk) if (step) e1_q <= event_q;

  // ---- 2: where it is in the window; the oldest READ or atomic is read ----
  assign rd_read  = step && valid_q[1];
  assign rd_index = e1_q.index;
  assign rd_count = progress.rd;

  typedef struct packed {
    event_t       e;
    sq_progress_t was;
    sq_path_t     path;
    logic         heard;           // a response from the peer of a QP
    psn_t         ahead;           // PSN - una
    xpsn_t        span;            // limit - una
    xpsn_t        spread;          // next to send - una
    psn_t         beyond_mark;     // a selective NAK's cause - mark
    logic         sent_epoch;
    logic [1:0]   sent_single;
    logic         last_retry;
    logic         last_rnr_retry;  // without progress ...
    logic         no_rnr_retry;    // ... and with it
    logic         reads;           // a READ or atomic is not answered
  } placed_t;

  placed_t p2_q, p3_q, p4_q;
  always_ff @(posedge clk) begin
    if (step) begin
      p2_q <= '{
          e: e1_q,
          was: progress,
          path: path,
          heard: e1_q.exists && peer_ip == e1_q.src_ip,
          ahead: e1_q.psn - progress.una[23:0],
          span: sent.limit - progress.una,
          spread: sent.psn - progress.una,
          beyond_mark: e1_q.cause - sent.mark,
          sent_epoch: sent.epoch,
          sent_single: sent.single,
          last_retry: progress.retries == policy.retry_cnt,
          last_rnr_retry: progress.rnr_retries == policy.rnr_retry && policy.rnr_retry != 3'd7,
          no_rnr_retry: policy.rnr_retry == 3'd0,
          reads: rd_posted != progress.rd
      };
    end
  end

  // ---- 3: where the READ is ----
  sq_rd_t rd3_q;
  xpsn_t  read_gap_q, read_done_q;  // first of it - una, and una - first of it
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

  // ---- 4: what is expected of it ----
  sq_rd_t      rd4_q;
  logic        far_q;             // beyond anything that a response can be about
  psn_t        expected_q;        // distance of the response expected next from una
  logic [22:0] position_q;        // of it in its READ
  logic        opens_q;           // it is the first of that
  logic        outstanding4_q, window_shut4_q;
  always_ff @(posedge clk) begin
    if (step) begin
      p4_q           <= p3_q;
      rd4_q          <= rd3_q;
      far_q          <= !p3_q.reads || (!read_gap_q[30] && read_gap_q[29:24] != 0);
      expected_q     <= read_gap_q[30] ? '0 : read_gap_q[23:0];
      position_q     <= read_gap_q[30] ? read_done_q[22:0] : '0;
      opens_q        <= !read_gap_q[30];
      outstanding4_q <= outstanding_q;
      window_shut4_q <= window_shut_q;
    end
  end

  // ---- 5: how it and the READ meet ----
  typedef struct packed {
    event_t       e;
    sq_progress_t was;
    logic         live;            // the QP sends, or waits in SQD
    logic         heard;
    logic         counts;          // heard, live, and about a PSN that is outstanding
    logic         is_ack;
    logic         acknowledges;    // an ACK ...
    logic         fatal;           // ... or one of the NAKs; the last two if they free nothing that was not answered
    logic         sequence_error;
    logic         not_ready;
    logic         window_shut;
    logic         ahead_some;      // it is not about `una` itself
    psn_t         ahead;
    psn_t         reached;         // what it acknowledges, from una on
    logic         reached_some;
    logic         capped;          // it acknowledges a READ or atomic that was not answered
    logic         in_order;        // a READ response or atomic acknowledge: the one expected ...
    logic         skips;           // ... or one behind that
    logic         fits;            // its opcode and length are those expected
    logic         last;            // of the READ
    logic         selective;
    logic         beyond_mark;     // a selective NAK: the packet sent again alone is lost too
    logic         pending;         // a rewind that has not begun
    logic         sent_epoch;
    logic         single_pending;
    logic         last_retry;
    logic         last_rnr_retry;
    logic         no_rnr_retry;
    addr_t        addr;
    addr_t        offset;
    logic [12:0]  length;
  } met_t;

  met_t        met, met_q;
  logic        is_last, shape;
  logic [12:0] expected_length;
  always_comb begin
    is_last         = position_q == rd4_q.last;
    expected_length = is_last ? rd4_q.tail : mtu_bytes(p4_q.path.path_mtu);
    unique case (p4_q.e.is)
      IS_READ_FIRST:  shape = !rd4_q.atomic && !is_last;
      IS_READ_MIDDLE: shape = !rd4_q.atomic && !is_last && !opens_q;
      IS_READ_LAST:   shape = !rd4_q.atomic && is_last && !opens_q;
      IS_READ_ONLY:   shape = !rd4_q.atomic && is_last;
      default:        shape = rd4_q.atomic;
    endcase
    if (p4_q.e.is != IS_READ_MIDDLE && p4_q.e.syndrome[7:5] != SYNDROME_ACK[7:5]) shape = 1'b0;

    met.e              = p4_q.e;
    met.was            = p4_q.was;
    met.live           = p4_q.was.state inside {SQ_RTS, SQ_SQD};
    met.heard          = p4_q.heard;
    met.window_shut    = window_shut4_q;
    met.ahead_some     = p4_q.ahead != 0;
    met.ahead          = p4_q.ahead;
    met.in_order       = !far_q && p4_q.ahead == expected_q;
    met.skips          = !far_q && p4_q.ahead > expected_q;
    met.counts         = met.heard && met.live && outstanding4_q;
    met.is_ack         = p4_q.e.is == IS_ACK;
    met.acknowledges   = met.is_ack && p4_q.e.syndrome[7:5] == SYNDROME_ACK[7:5];
    met.fatal          = met.is_ack && p4_q.e.syndrome inside {
        SYNDROME_NAK_INVALID_REQ, SYNDROME_NAK_REM_ACCESS, SYNDROME_NAK_REM_OP};
    met.sequence_error = met.is_ack && p4_q.e.syndrome == SYNDROME_NAK_PSN_SEQ && !met.skips;
    met.not_ready      = met.is_ack && p4_q.e.syndrome[7:5] == SYNDROME_RNR_NAK[7:5] && !met.skips;
    // An ACK includes its own PSN, a NAK does not; what answers a READ or atomic acknowledges what is before that.
    met.capped         = plain_ack(p4_q.e) ? !far_q && p4_q.ahead >= expected_q : met.skips;
    met.reached        = p4_q.e.is != IS_ACK || met.capped ? expected_q : p4_q.ahead + psn_t'(plain_ack(p4_q.e));
    met.reached_some   = p4_q.e.is != IS_ACK || met.capped ? expected_q != 0 : plain_ack(p4_q.e) || p4_q.ahead != 0;
    met.fits           = shape && (rd4_q.atomic ? !p4_q.e.has_payload : p4_q.e.length == expected_length);
    met.last           = is_last;
    met.selective      = p4_q.path.selective_repeat;
    met.beyond_mark    = !p4_q.beyond_mark[23];
    met.pending        = p4_q.sent_epoch != p4_q.was.epoch;
    met.sent_epoch     = p4_q.sent_epoch;
    met.single_pending = p4_q.was.asked && p4_q.sent_single != p4_q.was.single;
    met.last_retry     = p4_q.last_retry;
    met.last_rnr_retry = p4_q.last_rnr_retry;
    met.no_rnr_retry   = p4_q.no_rnr_retry;
    met.addr           = rd4_q.addr;
    met.offset         = addr_t'(position_q) << (4'd7 + 4'(p4_q.path.path_mtu));
    met.length         = rd4_q.atomic ? 13'd8 : p4_q.e.length;
  end
  always_ff @(posedge clk) if (step) met_q <= met;

  // ---- 6: decide ----
  sq_progress_t    next;
  sq_verdict_t     said;
  roce_tx_events_t seen;
  logic            change, send_more, go_back, resend, fail;
  wc_status_e      fail_status;
  psn_t            advance, fail_at;  // from una

  wire moves   = met_q.reached_some;                             // something is newly acknowledged

  always_comb begin
    next        = met_q.was;
    said        = '0;
    seen        = '0;
    change      = 1'b0;
    send_more   = 1'b0;
    go_back     = 1'b0;
    resend      = 1'b0;
    fail        = 1'b0;
    fail_status = WC_RETRY_EXC_ERR;
    fail_at     = '0;
    advance     = '0;

    said.index    = met_q.e.index;
    said.payload  = met_q.e.has_payload ? PAYLOAD_DROP : PAYLOAD_NONE;
    said.addr     = met_q.addr + met_q.offset;
    said.length   = met_q.length;
    said.original = met_q.e.original;
    said.command  = met_q.e.kind inside {SQ_EV_START, SQ_EV_PAUSE, SQ_EV_RESUME, SQ_EV_ERROR, SQ_EV_STOP};

    unique case (met_q.e.kind)
      SQ_EV_START: begin
        change     = 1'b1;
        said.fresh = 1'b1;
        next       = '{state: SQ_RTS, una: xpsn_t'(met_q.e.psn), default: '0};
      end
      SQ_EV_STOP: begin
        change = 1'b1;
        next   = '{state: SQ_RESET, default: '0};
      end
      SQ_EV_PAUSE:
      if (met_q.was.state == SQ_RTS) begin
        change       = 1'b1;
        next.state   = SQ_SQD;
        next.drained = 1'b0;
      end
      SQ_EV_RESUME:
      if (met_q.was.state == SQ_SQD) begin
        change     = 1'b1;
        next.state = SQ_RTS;
        send_more  = 1'b1;
      end
      SQ_EV_ERROR:
      if (met_q.live) begin
        fail        = 1'b1;
        fail_status = WC_WR_FLUSH_ERR;
      end
      SQ_EV_TIMEOUT:
      if (met_q.live && !met_q.ahead_some && !met_q.was.rnr_wait) begin
        seen.local_ack_timeout_err = 1'b1;
        fail                       = met_q.last_retry;
        seen.retry_exceeded_err    = met_q.last_retry;
        next.retries               = met_q.was.retries + 1'b1;
        next.implied               = 1'b0;
        go_back                    = 1'b1;
      end
      SQ_EV_RNR_DONE:
      if (met_q.live && met_q.was.rnr_wait) begin
        next.rnr_wait = 1'b0;
        go_back       = 1'b1;
      end
      SQ_EV_DRAINED:
      if (met_q.was.state == SQ_SQD && !met_q.was.drained && !met_q.ahead_some) begin
        change       = 1'b1;
        next.drained = 1'b1;
        said.drained = 1'b1;
      end
      SQ_EV_FAULT:
      if (met_q.live) begin
        fail        = 1'b1;
        fail_status = WC_LOC_PROT_ERR;
        fail_at     = met_q.ahead;
      end
      SQ_EV_WRITE_FAULT:
      if (met_q.live) begin
        fail        = 1'b1;
        fail_status = WC_LOC_PROT_ERR;
      end
      default: begin  // SQ_EV_RESPONSE
        seen.drop_response_no_qp = !(met_q.heard && met_q.live);
        if (met_q.counts) begin
          advance = met_q.reached;
          if (moves) begin
            next.retries     = '0;
            next.rnr_retries = '0;
            next.implied     = 1'b0;
            next.asked       = 1'b0;
          end
          change    = moves;
          send_more = moves && met_q.window_shut;

          if (!met_q.is_ack && !met_q.in_order && !met_q.skips) begin
            // Answers what is answered, or was never asked.
            advance                  = '0;
            next                     = met_q.was;
            change                   = 1'b0;
            send_more                = 1'b0;
            seen.drop_ghost_response = 1'b1;
          end else if (!met_q.is_ack && met_q.in_order) begin
            if (!met_q.fits) begin
              fail                  = 1'b1;
              fail_status           = WC_BAD_RESP_ERR;
              fail_at               = met_q.reached;
              seen.bad_response_err = 1'b1;
            end else begin
              advance                    = met_q.reached + 1'b1;
              next.retries               = '0;
              next.rnr_retries           = '0;
              next.implied               = 1'b0;
              next.asked                 = 1'b0;
              next.rd                    = met_q.was.rd + rd_count_t'(met_q.last);
              change                     = 1'b1;
              send_more                  = met_q.window_shut;
              said.answered              = met_q.last;
              if (met_q.e.is == IS_ATOMIC) said.payload = PAYLOAD_ORIGINAL;
              else if (met_q.e.has_payload) said.payload = PAYLOAD_PLACE;
              seen.rcvd_atomic_responses = met_q.e.is == IS_ATOMIC;
              seen.rcvd_read_responses   = met_q.e.is != IS_ATOMIC;
            end
          end else if (met_q.fatal) begin
            fail    = 1'b1;
            fail_at = met_q.ahead;
            unique case (met_q.e.syndrome)
              SYNDROME_NAK_INVALID_REQ: begin
                fail_status                     = WC_REM_INV_REQ_ERR;
                seen.req_remote_invalid_request = 1'b1;
              end
              SYNDROME_NAK_REM_ACCESS: begin
                fail_status                   = WC_REM_ACCESS_ERR;
                seen.req_remote_access_errors = 1'b1;
              end
              default: begin
                fail_status                        = WC_REM_OP_ERR;
                seen.req_remote_operational_errors = 1'b1;
              end
            endcase
          end else if (met_q.not_ready) begin
            change        = 1'b1;
            next.rnr_code = met_q.e.syndrome[4:0];
            next.rnr_wait = 1'b1;
            if (!met_q.was.rnr_wait || moves) begin
              seen.rnr_nak_retry_err = 1'b1;
              if (moves ? met_q.no_rnr_retry : met_q.last_rnr_retry) begin
                fail                        = 1'b1;
                fail_at                     = met_q.ahead;
                fail_status                 = WC_RNR_RETRY_EXC_ERR;
                seen.retry_rnr_exceeded_err = 1'b1;
              end else if (moves) next.rnr_retries = 3'd1;
              else if (met_q.was.rnr_retries != 3'd7) next.rnr_retries = met_q.was.rnr_retries + 1'b1;
            end
          end else if (met_q.sequence_error) begin
            // The time of an RNR NAK is kept, whatever follows it; a rewind that has not begun covers this one.
            if (met_q.was.rnr_wait || met_q.pending) ;
            else if (!met_q.selective) begin
              seen.packet_seq_err     = 1'b1;
              fail                    = met_q.last_retry && !moves;
              seen.retry_exceeded_err = fail;
              go_back                 = 1'b1;
              if (!moves) next.retries = met_q.was.retries + 1'b1;
            end else if (moves || !met_q.was.asked || (!met_q.single_pending && met_q.beyond_mark)) begin
              seen.packet_seq_err     = 1'b1;
              fail                    = met_q.last_retry && !moves && met_q.was.asked;
              seen.retry_exceeded_err = fail;
              resend                  = 1'b1;
              if (!moves && met_q.was.asked) next.retries = met_q.was.retries + 1'b1;
            end
          end else if (met_q.capped) begin
            if (!met_q.was.rnr_wait && !met_q.pending && (moves || !met_q.was.implied)) begin
              seen.implied_nak_seq_err = 1'b1;
              fail                     = met_q.last_retry && !moves;
              seen.retry_exceeded_err  = fail;
              go_back                  = 1'b1;
              next.implied             = 1'b1;
              if (!moves) next.retries = met_q.was.retries + 1'b1;
            end
          end else if (!met_q.acknowledges) begin
            // A reserved syndrome: nobody may send it.
            advance                  = '0;
            next                     = met_q.was;
            change                   = 1'b0;
            send_more                = 1'b0;
            seen.drop_ghost_response = 1'b1;
          end
          seen.rcvd_acks = met_q.is_ack && !seen.drop_ghost_response;
        end else seen.drop_ghost_response = met_q.heard && met_q.live;
      end
    endcase

    if (fail) begin
      change        = 1'b1;
      send_more     = 1'b0;
      next.state    = SQ_ERR;
      seen.qp_error = 1'b1;
    end else if (go_back) begin
      change     = 1'b1;
      send_more  = 1'b1;
      next.epoch = !met_q.sent_epoch;
      next.asked = 1'b0;
    end else if (resend) begin
      change      = 1'b1;
      send_more   = 1'b1;
      next.asked  = 1'b1;
      next.later  = met_q.beyond_mark;
      next.single = met_q.was.single + 1'b1;
    end
  end

  // ---- 7: add up, write, and tell ----
  typedef struct packed {
    sq_progress_t    next;
    sq_verdict_t     said;
    logic            change;
    logic            send_more;
    logic            begins;         // una is that of the command
    psn_t            advance;
    psn_t            fail_at;
    xpsn_t           una;
    wc_status_e      status;
  } result_t;

  result_t         r_q;
  roce_tx_events_t seen_q;
  always_ff @(posedge clk) begin
    if (step) begin
      r_q <= '{
          next: next,
          said: said,
          change: change,
          send_more: send_more,
          begins: met_q.e.kind inside {SQ_EV_START, SQ_EV_STOP},
          advance: advance,
          fail_at: fail_at,
          una: met_q.was.una,
          status: fail_status
      };
      seen_q <= seen;
    end
    events <= valid_q[STAGES] && step ? seen_q : '0;
    events_index <= r_q.said.index;
  end

  sq_progress_t written;
  sq_verdict_t  out;
  always_comb begin
    written = r_q.next;
    if (!r_q.begins) written.una = r_q.una + xpsn_t'(r_q.advance);
    out          = r_q.said;
    out.confirms = r_q.change || r_q.said.command;
    out.state    = written.state;
    out.una      = written.una;
    out.status   = r_q.status;
    out.failed   = r_q.una + xpsn_t'(r_q.fail_at);
  end

  wire wants_verdict = out.confirms || out.payload != PAYLOAD_NONE;
  stream_if #(.T(qp_index_t)) listed ();
  stream_slice #(.T(qp_index_t)) work_slice (.clk, .rst, .in(listed), .out(work));

  assign step = !valid_q[STAGES] || ((verdict.ready || !wants_verdict) && (listed.ready || !r_q.send_more));

  assign verdict.valid = valid_q[STAGES] && wants_verdict && (listed.ready || !r_q.send_more);
  assign verdict.data  = out;
  assign listed.valid  = valid_q[STAGES] && r_q.send_more && (verdict.ready || !wants_verdict);
  assign listed.data   = out.index;

  assign progress_write       = valid_q[STAGES] && step && r_q.change;
  assign progress_write_index = out.index;
  assign progress_write_data  = written;
  assign idle                 = !event_valid_q && valid_q == '0 && !heard.valid && !asked.valid && !due.valid && !work.valid;
endmodule
