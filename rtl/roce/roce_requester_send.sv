// SPDX-License-Identifier: Apache-2.0

// Cuts work requests into packets: serves the listed QPs in turn, each from where it stands, for a quantum of 4 KiB or 16
// packets; a QP that has more is listed again. A QP stands where the tables say: behind what it sent last or, after a rewind
// (progress.epoch has toggled) or if the peer has overtaken it, at the oldest PSN not acknowledged. So retransmission is the
// same path as transmission, and starts in the middle of a message where it must: a READ is then asked for from there.
//
// A work request that may not begin yet ends the visit without listing the QP again: behind a fence or with max_rd_atomic READs
// and atomics outstanding (whoever completes one lists it), in SQD (whoever ends that does).
// A QP that `blocked` names is dropped from the list and named on `parked`; whoever unblocks it lists it.
//
// With selective repeat (docs/reference/extensions.md) each packet of a WRITE stands alone, and a visit may be a *repair*: it sends
// the oldest packet again and, of what was sent behind it, what the peer takes in order only; it passes the others by, one a cycle.
// A WRITE that changes bytes which an outstanding WRITE or atomic may change ends the visit (roce_requester_hull); the next
// acknowledgement lists the QP.
//
// One packet a cycle for work requests of one QP that are queued already, one in 2 cycles when each is of another QP, 3 when it
// repeats selectively; 5 cycles from `list` to `packet`. When `packet` stops everything stops; nothing is lost.
//
// Looks ahead by one visit: while one QP sends, the tables and the ring are read for the next. A QP is never in both places.
module roce_requester_send
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned WINDOW = 8192,     // PSNs outstanding a QP (may be passed by one quantum, or by a READ)
    parameter int unsigned ACK_EVERY = 128    // packets of a message between AckReq bits; a power of two
) (
    input logic clk,
    input logic rst,
    input qp_index_t watch,
    input logic      hold,           // begin no visit of that QP; others wait behind it
    output logic     watched,        // a visit or packet of that QP is under way

    stream_if.sink        list,      // qp_index_t
    input logic [QPS-1:0] blocked,   // may not begin a visit now
    stream_if.source      parked,    // qp_index_t

    output logic           look,     // read the words of this QP; they are there a cycle later, until the next look
    output qp_index_t      index,
    input  send_tail_t     tail,
    input  sq_sent_t       sent,
    input  send_progress_t progress,
    input  sq_count_t      retired,  // work requests completed
    input  rd_count_t      rd_done,  // READs and atomics complete
    input  sq_path_t       path,     // of the QP's life
    input  rd_count_t      max_rd_atomic,

    output logic      ring_read,
    output qp_index_t ring_index,
    output sq_count_t ring_count,
    input  sq_send_t  ring_data,     // a cycle later
    output logic      compare_read,
    output qp_index_t compare_index,
    output rd_count_t compare_count,
    input  logic [63:0] compare_data,  // a cycle later, until the next read

    input logic       init,          // starts a QP's word; takes precedence for a cycle
    input sq_init_t   start,
    output logic      sent_write,
    output qp_index_t sent_write_index,
    output sq_sent_t  sent_write_data,

    stream_if.source packet,         // tx_packet_t
    stream_if.source again,          // qp_index_t: to be listed again
    output logic     selective_retransmit,   // pulse: a packet was sent again by a repair
    output logic     idle
);
  localparam int unsigned INDEX_W = $clog2(QPS);

  // ---- look up the tables ----
  typedef struct packed {
    qp_index_t      index;
    send_tail_t     tail;
    sq_sent_t       sent;
    send_progress_t progress;
    sq_count_t      retired;
    rd_count_t      rd_done;
    rd_count_t      max_rd;
    sq_path_t       path;
  } look_t;

  // A visit: the QP and where it stands.
  typedef struct packed {
    qp_index_t  index;
    sq_path_t   path;
    logic       drain;     // SQD: begin nothing
    logic       repair;    // what the peer misses is sent again
    logic       strict;    // ... which is more than the oldest packet ...
    xpsn_t      strict_gap;  // ... and ends at this distance from psn
    logic       covered;   // ... and is on its way, if the oldest packet is one that the peer takes in order only
    logic       epoch;
    logic [1:0] single;
    rd_count_t  rd_done;
    rd_count_t  max_rd;
    logic [4:0] quantum;
    sq_count_t  count;     // work request to send from
    sq_count_t  left;      // work requests queued from there on
    logic       more;      // that is 2 or more
    xpsn_t      psn;
    xpsn_t      gap;       // distance from psn to the first PSN never sent ...
    logic       fresh;     // ... is 0
    logic       opens;     // psn is the first of a work request, or that of a keep-alive before it
    xpsn_t      limit;
    // What the table keeps if this visit is a repair, or sends nothing new.
    sq_sent_t   sent;
  } visit_t;

  look_t  looked;
  logic   look_valid_q, blocked_q;
  qp_index_t look_index_q;
  logic   weighed_valid_q;
  visit_t ahead_q;          // visit whose first work request is on ring_data (none is read if left == 0)
  logic   ahead_valid_q;
  visit_t visit_q;          // visit that sends
  enum logic [3:0] {
    S_IDLE,
    S_SEEK,                 // find the place in the first work request:
    S_PLACE,                // in the middle of it
    S_SKIP,                 // behind it
    S_KEEPALIVE,            // send a packet that belongs to none
    S_RANGE,                // selective repeat: what does the work request change ...
    S_MEET,                 // ... and may something that is outstanding change that?
    S_SEND,
    S_AGAIN                 // list the QP again
  } state_q;
  logic      write_q;       // the table is being written
  qp_index_t write_index_q;

  look_t weighed_q;
  logic  look_taken, weighed_taken;
  assign index = list.data;
  wire busy_with_it = (look_valid_q && look_index_q == index)
      || (weighed_valid_q && weighed_q.index == index)
      || (ahead_valid_q && ahead_q.index == index)
      || (state_q != S_IDLE && visit_q.index == index)
      || (write_q && write_index_q == index);
  assign list.ready = !look_valid_q && !(hold && index == watch) && !busy_with_it;

  assign look = list.valid && list.ready;
  assign looked = '{
          index: look_index_q,
          tail: tail,
          sent: sent,
          progress: progress,
          retired: retired,
          rd_done: rd_done,
          max_rd: max_rd_atomic,
          path: path
      };

  always_ff @(posedge clk) begin
    if (look) begin
      look_index_q <= index;
      blocked_q    <= blocked[index[INDEX_W-1:0]];
    end
    if (rst) look_valid_q <= 1'b0;
    else if (look) look_valid_q <= 1'b1;
    else if (look_taken) look_valid_q <= 1'b0;
  end

  // ---- weigh: where does it stand, and may it send? ----
  typedef struct packed {
    logic  rewind;         // at `una` instead of where it was
    logic  repair;
    logic  strict;         // the PSN is ahead of `una` ...
    xpsn_t strict_gap;     // ... by this
    logic  mark;           // ... this one too
    logic  sends;          // it may send at all
    logic  may_go_on;      // there is something to send from where it was, and the window is open ...
    logic  may_go_back;    // ... something from `una` on
    logic  may_resend;     // ... something at `una`
    logic [4:0] quantum;
    xpsn_t gap_on;         // distance of the place to the first PSN never sent, where it was ...
    xpsn_t gap_back;       // ... and at `una`
  } weighed_t;

  weighed_t weight, weight_q;
  xpsn_t    outstanding, room, strict_ahead, mark_ahead;
  wire      pass_by = blocked_q && looked.progress.state inside {SQ_RTS, SQ_SQD};

  assign parked.valid = look_valid_q && pass_by;
  assign parked.data  = look_index_q;
  assign look_taken   = look_valid_q && (pass_by ? parked.ready : (!weighed_valid_q || weighed_taken));

  always_comb begin
    outstanding        = looked.sent.psn - looked.progress.una;
    room               = xpsn_t'(SELECTIVE_WINDOW) - outstanding;
    weight.rewind      = looked.progress.epoch != looked.sent.epoch || outstanding[30];
    strict_ahead       = looked.sent.strict - looked.progress.una;
    mark_ahead         = looked.sent.mark - looked.progress.una;
    weight.strict      = !strict_ahead[30] && looked.sent.strict != looked.progress.una;
    weight.strict_gap  = strict_ahead;
    weight.mark        = !mark_ahead[30] && looked.sent.mark != looked.progress.una;
    weight.repair      = looked.progress.asked && looked.progress.single != looked.sent.single;
    weight.may_go_on   = looked.sent.psn != looked.tail.next
        && (looked.path.selective_repeat ? outstanding < xpsn_t'(SELECTIVE_WINDOW) : outstanding < xpsn_t'(WINDOW))
        && !(looked.progress.state == SQ_SQD && looked.sent.psn == looked.sent.limit && !looked.sent.open);
    weight.sends       = looked.progress.state inside {SQ_RTS, SQ_SQD} && !looked.progress.rnr_wait;
    weight.may_go_back = looked.progress.una != looked.tail.next;
    weight.may_resend  = looked.progress.una != looked.sent.limit;
    weight.quantum     = looked.path.selective_repeat && room[30:4] == '0 ? {1'b0, room[3:0]} : 5'd16;
    weight.gap_on      = looked.sent.limit - looked.sent.psn;
    weight.gap_back    = looked.sent.limit - looked.progress.una;
  end

  always_ff @(posedge clk) begin
    if (!weighed_valid_q || weighed_taken) begin
      weighed_q <= looked;
      weight_q  <= weight;
    end
    if (rst) weighed_valid_q <= 1'b0;
    else if (!weighed_valid_q || weighed_taken) weighed_valid_q <= look_valid_q && !pass_by;
  end

  visit_t found;
  wire    back  = weight_q.rewind || weight_q.repair;
  always_comb begin
    found.index   = weighed_q.index;
    found.path    = weighed_q.path;
    found.drain   = weighed_q.progress.state == SQ_SQD;
    found.repair  = weight_q.repair && !weight_q.rewind;
    found.strict  = weight_q.strict;
    found.strict_gap = weight_q.strict_gap;
    found.covered = weight_q.mark && !weighed_q.progress.later;
    found.epoch   = weighed_q.progress.epoch;
    found.single  = weighed_q.progress.single;
    found.rd_done = weighed_q.rd_done;
    found.max_rd  = weighed_q.max_rd;
    found.quantum = back ? 5'd16 : weight_q.quantum;
    found.count   = back ? weighed_q.retired : weighed_q.sent.count;
    found.left    = weighed_q.tail.count - found.count;
    found.more    = found.left > 1;
    found.psn     = back ? weighed_q.progress.una : weighed_q.sent.psn;
    found.gap     = back ? weight_q.gap_back : weight_q.gap_on;
    found.fresh   = found.gap == 0;
    found.opens   = !back && found.fresh && !weighed_q.sent.open;
    found.limit   = weighed_q.sent.limit;
    found.sent    = weighed_q.sent;
    if (weight_q.gap_back == 0) found.sent.hull = 1'b0;
    if (!weight_q.strict) found.sent.strict = weighed_q.progress.una;
    if (!weight_q.mark || weight_q.rewind) found.sent.mark = weighed_q.progress.una;
  end
  wire may_send = weight_q.sends
      && (weight_q.rewind ? weight_q.may_go_back : weight_q.repair ? weight_q.may_resend : weight_q.may_go_on);

  // ---- the sending visit ----
  // The ring's output holds the first work request of the visit ahead, or the next one of the visit that sends.
  logic following_q;          // ring_data is the next work request of visit_q
  logic begin_visit, load_next, prefetch, ahead_free;

  assign ahead_free = !ahead_valid_q || begin_visit;
  // The ring's output is in use as long as the visit may want more work requests.
  wire wants_more = begin_visit ? ahead_q.more : state_q != S_IDLE && state_q != S_AGAIN && visit_q.more;
  assign weighed_taken = weighed_valid_q && (!may_send || (ahead_free && !wants_more));
  wire advance = weighed_taken && may_send;

  assign ring_read  = advance || prefetch;
  assign ring_index = prefetch ? (begin_visit ? ahead_q.index : visit_q.index) : found.index;
  assign ring_count = prefetch ? (begin_visit ? ahead_q.count + 1'b1 : visit_q.count + 8'd2) : found.count;

  always_ff @(posedge clk) begin
    if (advance) ahead_q <= found;
    if (rst) ahead_valid_q <= 1'b0;
    else if (advance) ahead_valid_q <= 1'b1;
    else if (begin_visit) ahead_valid_q <= 1'b0;
  end

  // ---- cutting ----
  sq_send_t    request_q;
  logic        reads_q, writes_q, piece_q;   // its kind; piece: each packet stands alone
  xpsn_t       seek_q;        // distance in PSNs from the work request's first
  logic [31:0] left_q;        // bytes left of it
  memory_pkg::addr_t addr_q;  // of the next one
  logic [63:0] va_q;          // at the peer
  logic        first_q;       // the next packet is its first
  logic        last_q;        // the next packet is its last
  logic        barred_q;      // it may not begin: fence, or too many READs
  logic [23:0] step_q;        // PSNs of the next packet: a READ request takes those of its responses
  logic [4:0]  quantum_q;     // left of it, in units of 256 bytes

  wire [12:0] mtu = mtu_bytes(visit_q.path.path_mtu);
  wire [12:0] length = reads_q ? '0 : last_q ? left_q[12:0] : mtu;
  // A READ costs what its answer will: so a long one ends the visit, and the window is looked at again.
  wire [4:0]  cost = request_q.kind == SQ_READ ? (step_q[23:4] != 0 ? 5'd16 : step_q[4:0])
      : length == 0 ? 5'd1 : 5'(length[12:8]) + 5'(|length[7:0]);
  wire        spent = quantum_q <= cost;
  wire        fresh = visit_q.fresh;                       // the next packet was never sent
  logic       meets;                                       // the next work request writes where one before it does
  wire        early = visit_q.drain || (meets && piece_q);
  wire        stop  = state_q == S_SEND && first_q && (barred_q || (fresh && early));
  wire        keepalive = state_q == S_KEEPALIVE;
  wire        strict = !keepalive && !(piece_q && !(last_q && request_q.kind == SQ_WRITE_IMM));  // the peer takes it in order only
  logic       begun_q;                                     // the visit has sent something, or passed it by
  wire        covered = visit_q.repair && visit_q.covered && strict && !begun_q;
  wire        mute  = visit_q.repair && (begun_q ? !strict : covered);

  logic       made_free;
  wire        emit = made_free && !init && ((state_q == S_SEND && !stop) || state_q == S_KEEPALIVE);
  wire        emit_last = emit && state_q == S_SEND && last_q;      // of a work request
  wire        finished = emit_last && !visit_q.more;              // of all that were queued
  wire        spans = visit_q.path.selective_repeat && !visit_q.repair;
  wire        skip = state_q == S_SKIP && visit_q.more;           // on to the work request behind

  wire  extend = emit && !keepalive && first_q && fresh && visit_q.path.selective_repeat
      && (is_atomic(request_q.kind) || (writes_q && request_q.length != 0));

  assign begin_visit = ahead_valid_q && state_q == S_IDLE;
  assign load_next   = following_q && (emit_last || skip);
  assign prefetch    = (begin_visit && ahead_q.more) || (load_next && visit_q.left > 2);

  logic [35:0] offset_q;      // distance of the visit's PSN from the work request's first, in bytes
  logic        near_q;        // it fits offset_q
  wire  [31:0] rest = request_q.length - offset_q[31:0];
  wire         inside_it = near_q && offset_q < 36'(request_q.length) && !is_atomic(request_q.kind);

  xpsn_t step, next_psn;
  assign step     = keepalive ? xpsn_t'(1) : xpsn_t'(step_q);
  assign next_psn = visit_q.psn + step;
  wire xpsn_t gap_left = visit_q.gap - step;
  wire        past_limit = fresh || gap_left[30];          // the packet's PSNs are not all below the limit
  // The last packet of a repair.
  wire        repaired = covered || !visit_q.strict || visit_q.strict_gap == step || past_limit || gap_left == 0 || finished;

  // What the next work request is like, on ring_data.
  mtu_code_t next_mtu;
  rd_count_t next_rd_done, next_max_rd, next_ahead;
  assign next_mtu     = begin_visit ? ahead_q.path.path_mtu : visit_q.path.path_mtu;
  assign next_rd_done = begin_visit ? ahead_q.rd_done : visit_q.rd_done;
  assign next_max_rd  = begin_visit ? ahead_q.max_rd : visit_q.max_rd;
  assign next_ahead   = ring_data.rd - next_rd_done;       // READs and atomics before it that are not complete; negative: none
  wire next_waits     = !next_ahead[5] && next_ahead != 0;
  wire next_reads     = is_rd(ring_data.kind);

  always_ff @(posedge clk) begin
    if (begin_visit) begin
      visit_q   <= ahead_q;
      quantum_q <= ahead_q.quantum;
      begun_q   <= 1'b0;
    end else if (emit) begin
      visit_q.psn <= next_psn;
      visit_q.gap   <= past_limit ? '0 : gap_left;
      visit_q.strict_gap <= visit_q.strict_gap - step;
      visit_q.fresh <= past_limit || gap_left == 0;
      if (past_limit) begin
        visit_q.limit <= next_psn;
        if (strict) visit_q.sent.strict <= next_psn;
        if (extend) visit_q.sent.hull <= 1'b1;
      end
      quantum_q <= quantum_q - cost;
      begun_q   <= 1'b1;
    end
    if (!begin_visit && (emit_last || skip)) begin
      visit_q.count <= visit_q.count + 1'b1;
      visit_q.left  <= visit_q.left - 1'b1;
      visit_q.more  <= visit_q.left > 2;
    end

    offset_q <= 36'(seek_q[23:0]) << (4'd7 + 4'(visit_q.path.path_mtu));
    near_q   <= seek_q[30:24] == 0;
    if (begin_visit || load_next) begin
      request_q <= ring_data;
      reads_q   <= next_reads;
      writes_q  <= is_write(ring_data.kind);
      piece_q   <= (begin_visit ? ahead_q.path.selective_repeat : visit_q.path.selective_repeat) && is_write(ring_data.kind);
      seek_q    <= (begin_visit ? ahead_q.psn : visit_q.psn) - ring_data.first;
      addr_q    <= ring_data.local_addr;
      va_q      <= ring_data.remote_addr;
      left_q    <= ring_data.length;
      last_q    <= next_reads || ring_data.length <= 32'(mtu_bytes(next_mtu));
      first_q   <= 1'b1;
      barred_q  <= (ring_data.fence && next_waits) || (next_reads && !next_ahead[5] && next_ahead >= next_max_rd);
      step_q    <= ring_data.kind == SQ_READ ? ring_data.word[23:0] : 24'd1;
    end else if (state_q == S_PLACE) begin
      addr_q  <= request_q.local_addr + memory_pkg::ADDR_W'(offset_q);
      va_q    <= request_q.remote_addr + 64'(offset_q);
      left_q  <= rest;
      last_q  <= reads_q || rest <= 32'(mtu);
      first_q <= 1'b0;
      if (reads_q) step_q <= step_q - seek_q[23:0];
    end else if (emit && state_q == S_SEND) begin
      addr_q  <= addr_q + memory_pkg::ADDR_W'(mtu);
      va_q    <= va_q + 64'(mtu);
      left_q  <= left_q - 32'(mtu);
      last_q  <= left_q <= 2 * 32'(mtu);
      first_q <= 1'b0;
    end

    if (rst) begin
      state_q     <= S_IDLE;
      following_q <= 1'b0;
    end else begin
      if (prefetch) following_q <= 1'b1;
      else if (load_next || state_q inside {S_AGAIN, S_IDLE}) following_q <= 1'b0;

      unique case (state_q)
        S_SEEK: begin
          if (seek_q == 0) state_q <= spans ? S_RANGE : S_SEND;
          else if (seek_q == '1) state_q <= S_KEEPALIVE;
          else state_q <= S_PLACE;
        end
        S_PLACE: state_q <= inside_it ? S_SEND : S_SKIP;
        // Nothing is behind it: the tables moved on since they were read.
        S_SKIP: state_q <= skip ? S_SEEK : S_AGAIN;
        S_KEEPALIVE: if (emit) begin
          if (visit_q.repair && (repaired || visit_q.left == 0)) state_q <= S_AGAIN;
          else if (visit_q.left == 0) state_q <= S_IDLE;
          else state_q <= spans ? S_RANGE : S_SEND;
        end
        S_RANGE: state_q <= S_MEET;
        S_MEET:  state_q <= S_SEND;
        S_SEND:
        if (stop) state_q <= S_IDLE;
        else if (emit) begin
          if (visit_q.repair) state_q <= repaired ? S_AGAIN : S_SEND;
          else if (finished) state_q <= S_IDLE;
          else if (spent) state_q <= S_AGAIN;
          else if (last_q && ring_data.gap) state_q <= S_AGAIN;
          else if (last_q && spans) state_q <= S_RANGE;
        end
        S_AGAIN: if (again.ready) state_q <= S_IDLE;
        default: state_q <= S_IDLE;
      endcase
      if (begin_visit) begin
        if (ahead_q.left == 0) state_q <= S_KEEPALIVE;
        else if (!ahead_q.opens || ring_data.gap) state_q <= S_SEEK;
        else state_q <= ahead_q.path.selective_repeat ? S_RANGE : S_SEND;
      end
    end
  end

  assign again.valid = state_q == S_AGAIN;
  assign again.data  = visit_q.index;

  // Each work request but the first of a visit is read while the one before it is sent, so it is always there in time.
  wire over = visit_q.repair ? repaired : finished || spent;
  always_ff @(posedge clk) if (!rst) assert (!((emit_last && !over) || skip) || following_q);

  // ---- what is being changed at the peer ----
  roce_requester_hull #(
      .QPS(QPS)
  ) hull (
      .clk,
      .read(advance),
      .read_index(found.index),
      .load(begin_visit),
      .range(state_q == S_RANGE),
      .va(request_q.remote_addr),
      .length(is_atomic(request_q.kind) ? 32'd8 : request_q.length),
      .some(visit_q.sent.hull),
      .meets,
      .extend,
      .index(visit_q.index)
  );

  // ---- headers' content, in two steps: which, then where ----
  function automatic opcode_e opcode(sq_kind_e kind, logic first, logic last_);
    unique case (kind)
      SQ_READ:      return RC_RDMA_READ_REQUEST;
      SQ_CMP_SWAP:  return RC_COMPARE_SWAP;
      SQ_FETCH_ADD: return RC_FETCH_ADD;
      SQ_WRITE, SQ_WRITE_IMM:
      unique case ({first, last_})
        2'b10:   return RC_RDMA_WRITE_FIRST;
        2'b00:   return RC_RDMA_WRITE_MIDDLE;
        2'b01:   return kind == SQ_WRITE_IMM ? RC_RDMA_WRITE_LAST_WITH_IMM : RC_RDMA_WRITE_LAST;
        default: return kind == SQ_WRITE_IMM ? RC_RDMA_WRITE_ONLY_WITH_IMM : RC_RDMA_WRITE_ONLY;
      endcase
      default:
      unique case ({first, last_})
        2'b10:   return RC_SEND_FIRST;
        2'b00:   return RC_SEND_MIDDLE;
        2'b01:   return kind == SQ_SEND_IMM ? RC_SEND_LAST_WITH_IMM
            : kind == SQ_SEND_INV ? RC_SEND_LAST_WITH_INVALIDATE : RC_SEND_LAST;
        default: return kind == SQ_SEND_IMM ? RC_SEND_ONLY_WITH_IMM
            : kind == SQ_SEND_INV ? RC_SEND_ONLY_WITH_INVALIDATE : RC_SEND_ONLY;
      endcase
    endcase
  endfunction

  typedef struct packed {
    tx_packet_t  packet;      // all but `ext`
    sq_kind_e    kind;
    reth_t       reth;
    logic [31:0] word;
    logic [63:0] swap_add;
    logic        bare;        // a WRITE without RETH: MIDDLE or LAST
  } made_t;

  made_t made, made_q;
  logic  made_valid_q;
  wire   whole = !piece_q || (last_q && request_q.kind == SQ_WRITE_IMM);         // its RETH is that of the message

  wire   asks  = visit_q.path.selective_repeat ? visit_q.psn[$clog2(SELECTIVE_ACK_EVERY)-1:0] == '1
      : visit_q.psn[$clog2(ACK_EVERY)-1:0] == '1;

  always_comb begin
    made.kind            = request_q.kind;
    made.word            = request_q.word;
    made.swap_add        = {request_q.length, request_q.word};
    made.bare            = !first_q && !piece_q && writes_q;
    made.reth.rkey       = request_q.rkey;
    made.reth.va         = whole && request_q.kind != SQ_READ ? request_q.remote_addr : va_q;
    made.reth.dmalen     = request_q.kind == SQ_READ ? left_q : whole ? request_q.length : 32'(length);
    made.packet.qpn      = qp_number(visit_q.index);
    made.packet.psn      = visit_q.psn[23:0];
    made.packet.again    = !fresh;
    made.packet.ext      = '0;
    made.packet.addr     = addr_q;
    made.packet.length   = length;
    made.packet.empty    = reads_q || left_q == 0;
    made.packet.se       = request_q.solicited && last_q;
    made.packet.ackreq   = !reads_q && (last_q || asks);
    made.packet.opcode   = opcode(request_q.kind, first_q || piece_q, last_q || piece_q);
    if (piece_q && !last_q) made.packet.opcode = RC_RDMA_WRITE_ONLY;
    made.packet.internal_ = piece_q && !last_q;     // no message ends with it
    if (keepalive) begin
      // A WRITE of nothing touches no memory, needs no key (IBTA 9.7.4.1.1) and is acknowledged.
      made.kind             = SQ_WRITE;
      made.bare             = 1'b0;
      made.reth             = '0;
      made.packet.opcode    = RC_RDMA_WRITE_ONLY;
      made.packet.se        = 1'b0;
      made.packet.ackreq    = 1'b1;
      made.packet.addr      = '0;
      made.packet.length    = '0;
      made.packet.empty     = 1'b1;
      made.packet.internal_ = 1'b1;
    end
  end

  assign made_free     = !made_valid_q || packet.ready;
  assign compare_read  = emit && is_atomic(request_q.kind) && !keepalive;
  assign compare_index = visit_q.index;
  assign compare_count = request_q.rd;

  always_ff @(posedge clk) begin
    if (made_free) made_q <= made;
    if (rst) made_valid_q <= 1'b0;
    else if (made_free) made_valid_q <= emit && !mute;
  end

  tx_packet_t complete;
  always_comb begin
    complete = made_q.packet;
    unique case (made_q.kind)
      SQ_CMP_SWAP, SQ_FETCH_ADD:
        complete.ext = atomiceth_t'{va: made_q.reth.va, rkey: made_q.reth.rkey, swap_add: made_q.swap_add, compare: compare_data};
      SQ_WRITE, SQ_WRITE_IMM, SQ_READ:
        if (made_q.bare) complete.ext[EXT_BYTES*8-1-:32] = made_q.word;
        else complete.ext[EXT_BYTES*8-1-:$bits(reth_t)+32] = {made_q.reth, made_q.word};
      default: complete.ext[EXT_BYTES*8-1-:32] = made_q.word;
    endcase
  end

  assign packet.valid = made_valid_q;
  assign packet.data  = complete;

  // ---- what was sent ----
  sq_sent_t write_data_q;
  assign sent_write       = write_q || init;
  assign sent_write_index = init ? start.index : write_index_q;
  assign sent_write_data  = init ? '{psn: xpsn_t'(start.psn), limit: xpsn_t'(start.psn), default: '0} : write_data_q;

  logic write_repair_q;
  assign selective_retransmit = write_q && !init && write_repair_q;
  always_ff @(posedge clk) begin
    if (!init) begin
      write_index_q <= visit_q.index;
      write_repair_q <= visit_q.repair && !mute;
      if (visit_q.repair) begin
        write_data_q        <= visit_q.sent;
        write_data_q.single <= visit_q.single;
        if (!covered) write_data_q.mark <= visit_q.limit;
      end else begin
        write_data_q <= '{
            epoch: visit_q.epoch,
            single: visit_q.single,
            open: past_limit ? !(keepalive || last_q) : visit_q.sent.open,
            count: visit_q.count + sq_count_t'(emit_last),
            psn: next_psn,
            limit: past_limit ? next_psn : visit_q.limit,
            hull: visit_q.sent.hull || extend,
            strict: past_limit && strict ? next_psn : visit_q.sent.strict,
            mark: visit_q.sent.mark
        };
      end
    end
    if (rst) write_q <= 1'b0;
    else if (!init) write_q <= emit;
  end

  assign watched = (look_valid_q && look_index_q == watch) || (weighed_valid_q && weighed_q.index == watch)
      || (ahead_valid_q && ahead_q.index == watch) || (state_q != S_IDLE && visit_q.index == watch)
      || (write_q && write_index_q == watch) || (made_valid_q && made_q.packet.qpn == qp_number(watch));
  assign idle = !look_valid_q && !weighed_valid_q && !ahead_valid_q && state_q == S_IDLE && !write_q && !made_valid_q;
endmodule
