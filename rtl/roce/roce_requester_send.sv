// SPDX-License-Identifier: Apache-2.0

// Cuts work requests into packets: serves the listed QPs in turn, each from where it stands, for a quantum of 4 KiB or 16
// packets; a QP that has more is listed again. A QP stands where the tables say: behind what it sent last or, after a rewind
// (progress.epoch has toggled) or if the peer has overtaken it, at the oldest PSN not acknowledged. So retransmission is the
// same path as transmission, and starts in the middle of a message where it must.
//
// One packet a cycle for work requests of one QP that are queued already, one in 3 cycles when each is of another QP;
// 5 cycles from `list` to `packet`. When `packet` stops everything stops; nothing is lost.
//
// Looks ahead by one visit: while one QP sends, the tables and the ring are read for the next. A QP is never in both places.
module roce_requester_send
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter int unsigned WINDOW = 8192,     // PSNs outstanding a QP (may be passed by one quantum)
    parameter int unsigned ACK_EVERY = 16     // packets of a message between AckReq bits; a power of two
) (
    input logic clk,
    input logic rst,
    input logic hold,                // begin no visit

    stream_if.sink list,             // qp_index_t

    output qp_index_t    index,      // whose tables are looked at
    input  sq_tail_t     tail,
    input  sq_sent_t     sent,
    input  sq_progress_t progress,
    input  sq_retired_t  retired,
    input  sq_policy_t   policy,

    output logic      ring_read,
    output qp_index_t ring_index,
    output sq_count_t ring_count,
    input  sq_send_t  ring_data,     // a cycle later

    input logic       init,          // starts a QP's word; takes precedence for a cycle
    input sq_init_t   start,
    output logic      sent_write,
    output qp_index_t sent_write_index,
    output sq_sent_t  sent_write_data,

    stream_if.source packet,         // sq_packet_t
    stream_if.source again,          // qp_index_t: to be listed again
    output logic     idle
);
  // A visit: the QP and where it stands.
  typedef struct packed {
    qp_index_t index;
    mtu_code_t mtu;
    logic      epoch;
    sq_count_t count;    // work request to send from
    sq_count_t left;     // work requests queued from there on
    xpsn_t     psn;
    xpsn_t     limit;
  } visit_t;

  // ---- look up the tables ----
  typedef struct packed {
    qp_index_t    index;
    sq_tail_t     tail;
    sq_sent_t     sent;
    sq_progress_t progress;
    sq_count_t    retired;
    mtu_code_t    mtu;
    // Where it stands: at `una` instead of what was sent last?
    logic         rewind;
    logic         may_go_on;    // there is something to send from where it was, and the window is open ...
    logic         may_go_back;  // ... something from `una` on
  } look_t;

  look_t  look_q;
  logic   look_valid_q;
  visit_t ahead_q;          // visit whose first work request is on ring_data (none is read if left == 0)
  logic   ahead_valid_q;
  visit_t visit_q;          // visit that sends
  enum logic [2:0] {
    S_IDLE,
    S_SEEK,                 // find the place in the first work request:
    S_PLACE,                // in the middle of it
    S_KEEPALIVE,            // send a packet that belongs to none
    S_SEND,
    S_AGAIN                 // list the QP again
  } state_q;

  wire look_taken;
  assign index = list.data;
  wire busy_with_it = (look_valid_q && look_q.index == index)
      || (ahead_valid_q && ahead_q.index == index)
      || (state_q != S_IDLE && visit_q.index == index);
  assign list.ready = (!look_valid_q || look_taken) && !hold && !busy_with_it;

  wire [31:0] outstanding = sent.psn - progress.una;
  look_t      look;
  always_comb begin
    look.index       = index;
    look.tail        = tail;
    look.sent        = sent;
    look.progress    = progress;
    look.retired     = retired.count;
    look.mtu         = policy.path_mtu;
    look.rewind      = progress.epoch != sent.epoch || xpsn_before(sent.psn, progress.una);
    look.may_go_on   = sent.psn != tail.next && outstanding < WINDOW;
    look.may_go_back = progress.una != tail.next;
  end

  always_ff @(posedge clk) begin
    if (list.valid && list.ready) look_q <= look;
    if (rst) look_valid_q <= 1'b0;
    else if (list.valid && list.ready) look_valid_q <= 1'b1;
    else if (look_taken) look_valid_q <= 1'b0;
  end

  // ---- where does it stand, and may it send? ----
  visit_t found;
  always_comb begin
    found.index = look_q.index;
    found.mtu   = look_q.mtu;
    found.epoch = look_q.progress.epoch;
    found.count = look_q.rewind ? look_q.retired : look_q.sent.count;
    found.left  = look_q.tail.count - found.count;
    found.psn   = look_q.rewind ? look_q.progress.una : look_q.sent.psn;
    found.limit = look_q.sent.limit;
  end
  wire may_send = look_q.progress.state == SQ_RTS && !look_q.progress.rnr_wait
      && (look_q.rewind ? look_q.may_go_back : look_q.may_go_on);

  // ---- the sending visit ----
  // The ring's output holds the first work request of the visit ahead, or the next one of the visit that sends.
  logic following_q;          // ring_data is the next work request of visit_q
  logic begin_visit, load_next, prefetch, ahead_free;

  assign ahead_free = !ahead_valid_q || begin_visit;
  // The ring's output is in use as long as the visit may want more work requests.
  wire wants_more = begin_visit ? ahead_q.left > 1 : state_q != S_IDLE && state_q != S_AGAIN && visit_q.left > 1;
  assign look_taken = look_valid_q && (!may_send || (ahead_free && !wants_more));
  wire advance = look_taken && may_send;

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
  logic [31:0] seek_q;        // distance in PSNs from the work request's first
  logic [31:0] left_q;        // bytes left of it
  memory_pkg::addr_t addr_q;  // of the next one
  logic        first_q;       // the next packet is its first
  logic [4:0]  quantum_q;     // left of it, in units of 256 bytes

  wire [12:0] mtu = mtu_bytes(visit_q.mtu);
  logic       last_q;         // it is the last of its work request
  wire [12:0] length = last_q ? left_q[12:0] : mtu;
  wire [4:0]  cost = length == 0 ? 5'd1 : 5'(length[12:8]) + 5'(|length[7:0]);
  wire        spent = quantum_q <= cost;

  stream_if #(.T(sq_packet_t)) out ();
  wire        emit = out.ready && !init && (state_q == S_SEND || state_q == S_KEEPALIVE);
  wire        emit_last = emit && state_q == S_SEND && last_q;      // of a work request
  wire        finished = emit_last && visit_q.left == 1;          // of all that were queued

  assign begin_visit = ahead_valid_q && state_q == S_IDLE;
  assign load_next   = following_q && emit_last;
  assign prefetch    = (begin_visit && ahead_q.left > 1) || (load_next && visit_q.left > 2);

  logic [35:0] offset_q;      // distance of the visit's PSN from the work request's first, in bytes
  logic        near_q;        // it fits offset_q
  wire  [31:0] rest = request_q.length - offset_q[31:0];
  wire         inside_it = near_q && offset_q < 36'(request_q.length);

  xpsn_t next_psn;
  assign next_psn = visit_q.psn + 1'b1;

  always_ff @(posedge clk) begin
    if (begin_visit) begin
      visit_q   <= ahead_q;
      quantum_q <= 5'd16;
    end else if (emit) begin
      visit_q.psn <= next_psn;
      if (!xpsn_before(visit_q.psn, visit_q.limit)) visit_q.limit <= next_psn;
      if (emit_last) begin
        visit_q.count <= visit_q.count + 1'b1;
        visit_q.left  <= visit_q.left - 1'b1;
      end
      quantum_q <= quantum_q - cost;
    end

    offset_q <= 36'(seek_q[23:0]) << (4'd7 + 4'(visit_q.mtu));
    near_q   <= seek_q[31:24] == 0;
    if (begin_visit || load_next) begin
      request_q <= ring_data;
      seek_q    <= ahead_q.psn - ring_data.first;
      addr_q    <= ring_data.local_addr;
      left_q    <= ring_data.length;
      last_q    <= ring_data.length <= 32'(mtu_bytes(begin_visit ? ahead_q.mtu : visit_q.mtu));
      first_q   <= 1'b1;
    end else if (state_q == S_PLACE) begin
      addr_q  <= request_q.local_addr + memory_pkg::ADDR_W'(offset_q);
      left_q  <= rest;
      last_q  <= rest <= 32'(mtu);
      first_q <= 1'b0;
    end else if (emit && state_q == S_SEND) begin
      addr_q  <= addr_q + memory_pkg::ADDR_W'(mtu);
      left_q  <= left_q - 32'(mtu);
      last_q  <= left_q <= 2 * 32'(mtu);
      first_q <= 1'b0;
    end

    if (rst) begin
      state_q     <= S_IDLE;
      following_q <= 1'b0;
    end else begin
      if (prefetch) following_q <= 1'b1;
      else if (load_next || state_q == S_AGAIN) following_q <= 1'b0;

      unique case (state_q)
        S_SEEK: begin
          if (seek_q == 0) state_q <= S_SEND;
          else if (seek_q == '1) state_q <= S_KEEPALIVE;
          else state_q <= S_PLACE;
        end
        S_PLACE: state_q <= inside_it ? S_SEND : S_AGAIN;  // AGAIN: the tables moved on since they were read
        S_KEEPALIVE: if (emit) state_q <= visit_q.left == 0 ? S_IDLE : S_SEND;
        S_SEND:
        if (emit) begin
          if (finished) state_q <= S_IDLE;
          else if (spent) state_q <= S_AGAIN;
          else if (last_q && ring_data.first != next_psn) state_q <= S_AGAIN;
        end
        S_AGAIN: if (again.ready) state_q <= S_IDLE;
        default: state_q <= S_IDLE;
      endcase
      if (begin_visit) state_q <= ahead_q.left == 0 ? S_KEEPALIVE : S_SEEK;
    end
  end

  assign again.valid = state_q == S_AGAIN;
  assign again.data  = visit_q.index;

  // ---- headers' content ----
  function automatic opcode_e opcode(logic write, logic with_imm, logic first, logic last_);
    unique case ({write, first, last_})
      3'b010: return RC_SEND_FIRST;
      3'b000: return RC_SEND_MIDDLE;
      3'b001: return with_imm ? RC_SEND_LAST_WITH_IMM : RC_SEND_LAST;
      3'b011: return with_imm ? RC_SEND_ONLY_WITH_IMM : RC_SEND_ONLY;
      3'b110: return RC_RDMA_WRITE_FIRST;
      3'b100: return RC_RDMA_WRITE_MIDDLE;
      3'b101: return with_imm ? RC_RDMA_WRITE_LAST_WITH_IMM : RC_RDMA_WRITE_LAST;
      default: return with_imm ? RC_RDMA_WRITE_ONLY_WITH_IMM : RC_RDMA_WRITE_ONLY;
    endcase
  endfunction

  sq_packet_t made;
  always_comb begin
    made.index = visit_q.index;
    made.psn   = visit_q.psn[23:0];
    made.again = xpsn_before(visit_q.psn, visit_q.limit);
    if (state_q == S_KEEPALIVE) begin
      // A WRITE of nothing touches no memory, needs no key (IBTA 9.7.4.1.1) and is acknowledged.
      made.opcode    = RC_RDMA_WRITE_ONLY;
      made.se        = 1'b0;
      made.ackreq    = 1'b1;
      made.reth      = '0;
      made.imm       = '0;
      made.addr      = '0;
      made.length    = '0;
      made.empty     = 1'b1;
      made.keepalive = 1'b1;
    end else begin
      made.opcode    = opcode(request_q.write, request_q.with_imm, first_q, last_q);
      made.se        = request_q.solicited && last_q;
      made.ackreq    = last_q || (visit_q.psn[$clog2(ACK_EVERY)-1:0] == '1);
      made.reth      = '{va: request_q.remote_addr, rkey: request_q.rkey, dmalen: request_q.length};
      made.imm       = request_q.imm_data;
      made.addr      = addr_q;
      made.length    = length;
      made.empty     = left_q == 0;
      made.keepalive = 1'b0;
    end
  end

  assign out.valid = emit;
  assign out.data  = made;
  stream_slice #(
      .T(sq_packet_t)
  ) slice (
      .clk,
      .rst,
      .in (out),
      .out(packet)
  );

  // Each work request but the first of a visit is read while the one before it is sent, so it is always there in time.
  always_ff @(posedge clk) if (!rst) assert (!(emit_last && !finished && !spent) || following_q);

  // ---- what was sent ----
  assign sent_write       = emit || init;
  assign sent_write_index = init ? start.index : visit_q.index;
  always_comb begin
    if (!init) begin
      sent_write_data.epoch = visit_q.epoch;
      sent_write_data.count = visit_q.count + sq_count_t'(emit_last);
      sent_write_data.psn   = next_psn;
      sent_write_data.limit = made.again ? visit_q.limit : next_psn;
    end else begin
      sent_write_data = '{epoch: 1'b0, count: '0, psn: xpsn_t'(start.psn), limit: xpsn_t'(start.psn)};
    end
  end

  assign idle = !look_valid_q && !ahead_valid_q && state_q == S_IDLE && !packet.valid;
endmodule
