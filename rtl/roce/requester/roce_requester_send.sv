// SPDX-License-Identifier: Apache-2.0

// Segments work requests into packets: serves the QPs that roce_requester_schedule selects, each from its send position, for a
// quantum of 4 KiB or 16 packets; a QP that has more to send is listed again. Retransmission uses the same path as transmission and
// may start in the middle of a message; a READ request then covers the rest of the READ.
//
// A work request that may not start yet ends the visit without listing the QP again: behind a fence or with max_rd_atomic READs
// and atomics outstanding (the completion of one lists the QP), in SQD (the command that leaves SQD does), with an invalid L_Key
// (the QP goes to the error state).
//
// With selective repeat (docs/reference/extensions.md) each packet of a WRITE is a WRITE ONLY, and a visit may be a *repair*: it
// retransmits the oldest packet and, of the packets sent after it, those that the peer accepts in order only; it skips the others,
// one a cycle. A WRITE to bytes that an outstanding WRITE or atomic may change ends the visit (roce_requester_overlap); the next
// acknowledgement lists the QP.
//
// One packet a cycle for queued work requests of one QP, one in 2 cycles when each is of another QP, 3 with selective repeat;
// 5 cycles from `list` to `packet`. Stalls when `packet` is not ready; nothing is lost.
//
// The L_Key of a work request is looked up in each visit. If it is no longer valid, the packet is reported on `fault` instead of
// sent, and the QP fails as if the payload could not be read.
module roce_requester_send
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter bit SELECTIVE_REPEAT = 1'b1,    // else no QP has it
    parameter bit READS = 1'b1,               // else no work request is a READ or atomic
    parameter int unsigned WINDOW = 8192,     // PSNs outstanding per QP (may be exceeded by a quantum, or by a READ)
    parameter int unsigned ACK_EVERY = 128    // packets of a message between AckReq bits; a power of two
) (
    input logic clk,
    input logic rst,
    input qp_index_t watch,
    input logic      hold,           // start no visit of QP `watch`; QPs after it on the list wait
    output logic     watched,        // a visit or packet of QP `watch` is in progress

    stream_if.sink        list,      // qp_index_t
    input logic [QPS-1:0] blocked,   // may not start a visit now
    stream_if.source      parked,    // qp_index_t
    roce_qp_read_if.reader words,    // send_words_t

    output logic      ring_read,
    output qp_index_t ring_index,
    output sq_count_t ring_count,
    input  sq_send_t  ring_data,     // a cycle later
    output logic [31:0] key,         // the L_Key there, to look up
    input  logic      key_live,      // the key is valid, a cycle later
    output logic      compare_read,
    output qp_index_t compare_index,
    output rd_count_t compare_count,
    input  logic [63:0] compare_data,  // a cycle later, until the next read

    input logic       init,          // initializes a QP's word; has priority for a cycle
    input sq_init_t   start,
    roce_qp_write_if.writer sent_next,  // sq_sent_t

    stream_if.source packet,         // tx_packet_t
    stream_if.source fault,          // tx_fault_t: the L_Key of this packet's payload is no longer valid
    output targets_t reads,          // a packet leaves whose payload is to be read from this memory
    output logic     visiting,       // a visit, which may have found its L_Keys valid, is in progress
    stream_if.source again,          // qp_index_t: list it again
    output logic     selective_retransmit,   // pulse: a repair has retransmitted a packet
    output logic     idle
);
  enum logic [3:0] {
    S_IDLE,
    S_SEEK,                 // find the position in the first work request:
    S_PLACE,                // in the middle of it
    S_SKIP,                 // behind it
    S_KEEPALIVE,            // send a keep-alive
    S_RANGE,                // selective repeat: compute the address range of the work request ...
    S_MEET,                 // ... and compare it with those outstanding
    S_SEND,
    S_AGAIN                 // list the QP again
  } state_q;

  // ---- the visit ----
  sq_visit_t ahead;          // the next, with its first work request on ring_data
  sq_visit_t visit_q;        // the one that sends
  logic      write_q;        // its send position is being written
  qp_index_t write_index_q;
  logic      begin_visit, load_next, prefetch, wants_more, first_read, schedule_watched, schedule_idle;
  qp_index_t first_index;
  sq_count_t first_count;

  stream_if #(.T(sq_visit_t)) next_visit ();
  roce_requester_schedule #(
      .QPS(QPS),
      .WINDOW(WINDOW)
  ) schedule (
      .clk,
      .rst,
      .watch,
      .hold,
      .watched(schedule_watched),
      .list,
      .blocked,
      .parked,
      .words,
      .sending(state_q != S_IDLE),
      .sending_index(visit_q.index),
      .writing(write_q),
      .writing_index(write_index_q),
      .ring_taken(wants_more),
      .ring_read(first_read),
      .ring_index(first_index),
      .ring_count(first_count),
      .visit(next_visit),
      .idle(schedule_idle)
  );
  assign ahead            = next_visit.data;
  assign next_visit.ready = state_q == S_IDLE;
  assign begin_visit      = next_visit.valid && next_visit.ready;

  // ---- the work request being segmented ----
  sq_send_t    request_q;
  logic        reads_q, writes_q, piece_q;   // its kind; piece: each packet is a WRITE ONLY
  logic        following_q;   // ring_data is the next work request
  xpsn_t       seek_q;        // distance in PSNs of the send position from its first
  logic [35:0] offset_q;      // the same in bytes
  logic        barred_q;      // it may not start: fence, too many READs, or an invalid L_Key
  logic [4:0]  tail_cost_q;   // of its last packet
  // The next packet:
  logic [22:0] behind_q;      // packets of the work request after it
  logic        first_q;
  logic        last_q;
  logic [12:0] length_q;      // 0 for a READ or atomic
  logic [4:0]  cost_q;        // of the quantum, in units of 256 bytes
  logic [23:0] step_q;        // number of its PSNs: a READ request takes those of its responses
  addr_t       addr_q;
  logic [63:0] va_q;          // at the peer
  logic [31:0] left_q;        // bytes of a READ still to request
  logic [4:0]  quantum_q;     // left of it

  // A READ costs as much as its responses: a long one ends the visit, and the window is checked again.
  function automatic logic [4:0] read_cost(logic [23:0] packets);
    return packets[23:4] != 0 ? 5'(SQ_QUANTUM) : packets[4:0];
  endfunction
  function automatic logic [4:0] length_cost(logic [12:0] length);
    return length == '0 ? 5'd1 : 5'(length[12:8]) + 5'(|length[7:0]);
  endfunction

  wire [12:0] mtu = mtu_bytes(visit_q.path.path_mtu);
  wire [4:0]  mtu_cost = length_cost(mtu);
  wire        keepalive = state_q == S_KEEPALIVE;
  wire        fresh = visit_q.fresh;                       // the next packet was never sent
  logic       meets;                                       // the next work request overlaps an outstanding one
  wire        stop  = first_q && (barred_q || (fresh && (visit_q.drain || (meets && piece_q))));
  wire        strict = !keepalive && !(piece_q && !(last_q && request_q.kind == SQ_WRITE_IMM));  // accepted in order only
  logic       begun_q;                                     // the visit has sent or skipped a packet
  wire        covered = visit_q.repair && visit_q.covered && strict && !begun_q;
  wire        mute  = visit_q.repair && (begun_q ? !strict : covered);

  // The L_Key of each work request is looked up as it is loaded. The result holds for the rest of the visit.
  logic       loaded_q, live_q;
  wire        live = loaded_q ? key_live : live_q;
  wire        lapsed = request_q.access.keyed && !live && length_q != '0 && !keepalive;
  assign      key = ring_data.lkey;
  always_ff @(posedge clk) begin
    loaded_q <= begin_visit || load_next;
    live_q   <= live;
  end

  stream_if #(.T(sq_cut_t)) cut ();
  wire        offers = !init && ((state_q == S_SEND && !stop) || keepalive);
  wire        emit = offers && cut.ready;
  wire        emit_last = emit && state_q == S_SEND && last_q;    // of a work request
  wire        finished = state_q == S_SEND && last_q && !visit_q.more;  // of the last work request queued
  wire        spent = quantum_q <= cost_q;
  wire        spans = visit_q.path.selective_repeat && !visit_q.repair;
  wire        skip = state_q == S_SKIP && visit_q.more;           // continue with the next work request

  wire  extend = emit && !keepalive && first_q && fresh && visit_q.path.selective_repeat
      && ((READS && is_atomic(request_q.kind)) || (writes_q && request_q.length != 0));

  assign load_next  = following_q && (emit_last || skip);
  assign prefetch   = (begin_visit && ahead.more) || (load_next && visit_q.left > 2);
  assign wants_more = begin_visit ? ahead.more : state_q != S_IDLE && state_q != S_AGAIN && visit_q.more;
  assign ring_read  = first_read || prefetch;
  assign ring_index = prefetch ? (begin_visit ? ahead.index : visit_q.index) : first_index;
  assign ring_count = prefetch ? (begin_visit ? ahead.count + 1'b1 : visit_q.count + 8'd2) : first_count;

  // The position from the tables may be behind the work request: the tables may have changed since they were read.
  wire inside_it = seek_q <= xpsn_t'(request_q.last);
  wire at_last   = seek_q[22:0] == request_q.last;

  // ---- distance to the first PSN never sent ----
  xpsn_t step, next_psn, gap_left;
  assign step     = xpsn_t'(step_q);
  assign next_psn = visit_q.psn + step;
  assign gap_left = visit_q.gap - step;
  wire past_limit = fresh || visit_q.gap < step;           // not all PSNs of the packet are below the limit
  wire then_fresh = fresh || visit_q.gap <= step;          // the packet after it was never sent
  // The last packet of a repair.
  wire repaired = covered || !visit_q.strict || visit_q.strict_gap == step || then_fresh || finished;

  // The next work request, on ring_data.
  sq_path_t  next_path;
  rd_count_t next_rd_done, next_max_rd, next_ahead;
  // It is loaded either by the begin of a visit, in S_IDLE, or within one.
  wire between_visits = state_q == S_IDLE;
  assign next_path    = between_visits ? ahead.path : visit_q.path;
  assign next_rd_done = between_visits ? ahead.rd_done : visit_q.rd_done;
  assign next_max_rd  = between_visits ? ahead.max_rd : visit_q.max_rd;
  assign next_ahead   = ring_data.rd - next_rd_done;       // incomplete READs and atomics before it; negative: none
  wire next_waits     = !next_ahead[5] && next_ahead != 0;
  wire next_reads     = READS && is_rd(ring_data.kind);
  wire next_read      = READS && ring_data.kind == SQ_READ;
  wire next_alone     = next_reads || ring_data.last == 0;  // it is one packet
  wire [12:0] next_mtu = mtu_bytes(next_path.path_mtu);

  always_ff @(posedge clk) begin
    if (begin_visit) begin
      visit_q   <= ahead;
      quantum_q <= ahead.quantum;
      begun_q   <= 1'b0;
    end else if (emit) begin
      visit_q.psn        <= next_psn;
      visit_q.gap        <= past_limit ? '0 : gap_left;
      visit_q.strict_gap <= visit_q.strict_gap - step;
      visit_q.fresh      <= then_fresh;
      if (past_limit) begin
        visit_q.limit <= next_psn;
        if (strict) visit_q.sent.strict <= next_psn;
        if (extend) visit_q.sent.hull <= 1'b1;
      end
      quantum_q <= quantum_q - (keepalive ? 5'd1 : cost_q);
      begun_q   <= 1'b1;
    end
    if (!begin_visit && (emit_last || skip)) begin
      visit_q.count <= visit_q.count + 1'b1;
      visit_q.left  <= visit_q.left - 1'b1;
      visit_q.more  <= visit_q.left > 2;
    end

    offset_q <= 36'(seek_q[23:0]) << (4'd7 + 4'(visit_q.path.path_mtu));
    if (begin_visit || load_next) begin
      request_q   <= ring_data;
      reads_q     <= next_reads;
      writes_q    <= is_write(ring_data.kind);
      piece_q     <= next_path.selective_repeat && is_write(ring_data.kind);
      seek_q      <= (between_visits ? ahead.psn : visit_q.psn) - ring_data.first;
      barred_q    <= ring_data.access.denied || (ring_data.fence && next_waits) || (next_reads && !next_ahead[5] && next_ahead >= next_max_rd);
      tail_cost_q <= length_cost(ring_data.tail);
      first_q     <= 1'b1;
      addr_q      <= ring_data.local_addr;
      va_q        <= ring_data.remote_addr;
      left_q      <= ring_data.length;
      behind_q    <= ring_data.last;
      last_q      <= next_alone;
      length_q    <= next_reads ? '0 : ring_data.last == 0 ? ring_data.tail : next_mtu;
      cost_q      <= next_read ? read_cost(ring_data.word[23:0])
          : next_reads ? 5'd1 : ring_data.last == 0 ? length_cost(ring_data.tail) : length_cost(next_mtu);
      step_q      <= next_read && !(begin_visit && ahead.none) ? ring_data.word[23:0] : 24'd1;
    end else if (state_q == S_SEEK && seek_q == '1) step_q <= 24'd1;
    else if (state_q == S_PLACE) begin
      first_q  <= 1'b0;
      addr_q   <= request_q.local_addr + ADDR_W'(offset_q);
      va_q     <= request_q.remote_addr + 64'(offset_q);
      left_q   <= request_q.length - offset_q[31:0];
      behind_q <= request_q.last - seek_q[22:0];
      if (READS && reads_q) begin
        step_q <= step_q - seek_q[23:0];
        cost_q <= read_cost(step_q - seek_q[23:0]);
      end else begin
        last_q   <= at_last;
        length_q <= at_last ? request_q.tail : mtu;
        cost_q   <= at_last ? tail_cost_q : mtu_cost;
      end
    end else if (emit && keepalive) step_q <= READS && request_q.kind == SQ_READ ? request_q.word[23:0] : 24'd1;
    else if (emit) begin
      first_q  <= 1'b0;
      addr_q   <= addr_q + ADDR_W'(mtu);
      va_q     <= va_q + 64'(mtu);
      behind_q <= behind_q - 1'b1;
      last_q   <= behind_q == 23'd1;
      length_q <= behind_q == 23'd1 ? request_q.tail : mtu;
      cost_q   <= behind_q == 23'd1 ? tail_cost_q : mtu_cost;
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
        // No work request is behind it: the tables have changed since they were read.
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
        if (ahead.none) state_q <= S_KEEPALIVE;
        else if (!ahead.opens || ring_data.gap) state_q <= S_SEEK;
        else state_q <= ahead.path.selective_repeat ? S_RANGE : S_SEND;
      end
    end
  end

  assign again.valid = state_q == S_AGAIN;
  assign again.data  = visit_q.index;

  // Each work request but the first of a visit is read from the ring while the one before it is sent.
  wire over = visit_q.repair ? repaired : finished || spent;
  always_ff @(posedge clk) if (!rst) assert (!((emit_last && !over) || skip) || following_q);

  // ---- overlap with outstanding WRITEs and atomics ----
  if (SELECTIVE_REPEAT) begin : g_overlap
    roce_requester_overlap #(
        .QPS(QPS)
    ) hull (
        .clk,
        .read(first_read),
        .read_index(first_index),
        .load(begin_visit),
        .range(state_q == S_RANGE),
        .va(request_q.remote_addr),
        .length(is_atomic(request_q.kind) ? 32'd8 : request_q.length),
        .some(visit_q.sent.hull),
        .meets,
        .extend,
        .index(visit_q.index)
    );
  end else begin : g_no_overlap
    assign meets = 1'b0;
  end

  // ---- packets ----
  assign cut.valid = offers && !mute;
  assign cut.data  = '{
          index: visit_q.index,
          psn: visit_q.psn[23:0],
          request: request_q,
          keepalive: keepalive,
          piece: piece_q,
          first: first_q,
          last: last_q,
          addr: addr_q,
          va: va_q,
          left: left_q,
          length: length_q,
          lapsed: lapsed,
          again: !fresh,
          asks: visit_q.path.selective_repeat ? visit_q.psn[$clog2(SELECTIVE_ACK_EVERY)-1:0] == '1
              : visit_q.psn[$clog2(ACK_EVERY)-1:0] == '1
      };
  always_comb begin
    reads                          = '0;
    reads[request_q.access.target] = cut.valid && cut.ready && !lapsed && length_q != '0 && !keepalive;
  end
  assign visiting      = state_q != S_IDLE;
  assign compare_read  = READS && emit && is_atomic(request_q.kind) && !keepalive;
  assign compare_index = visit_q.index;
  assign compare_count = request_q.rd;

  roce_requester_headers #(
      .READS(READS)
  ) headers (
      .clk,
      .rst,
      .cut,
      .compare_data,
      .packet,
      .fault
  );

  // ---- update of the send position ----
  sq_sent_t write_data_q;
  logic     write_repair_q;
  assign sent_next.valid = write_q || init;
  assign sent_next.index = init ? start.index : write_index_q;
  assign sent_next.data  = init ? sq_sent_t'{psn: xpsn_t'(start.psn), limit: xpsn_t'(start.psn), default: '0} : write_data_q;

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
            count: visit_q.count + sq_count_t'(!keepalive && last_q),
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

  tx_packet_t leaving;
  tx_fault_t  faulty;
  assign faulty  = fault.data;
  assign leaving = packet.data;
  assign watched = schedule_watched || (state_q != S_IDLE && visit_q.index == watch) || (write_q && write_index_q == watch)
      || (packet.valid && leaving.qpn == qp_number(watch)) || (fault.valid && faulty.qpn == qp_number(watch));
  assign idle = schedule_idle && state_q == S_IDLE && !write_q && !packet.valid && !fault.valid;
endmodule
