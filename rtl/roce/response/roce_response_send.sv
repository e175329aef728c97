// SPDX-License-Identifier: Apache-2.0

// Generates the responses to READs and atomics: visits the listed QPs round-robin, each for the oldest entry of its queue and at most 4 KiB
// of it; a QP with more entries or payload is listed again. A READ becomes a response ONLY, or FIRST, MIDDLE .. and LAST, with an AETH in
// all but MIDDLE; an unfinished one continues in a later visit. An atomic is answered after it was executed; until then its QP is not
// listed. A duplicate atomic is answered with the cached result of its PSN, or dropped if the cache has none. At each visit the key of a
// READ must be valid; else it is a fault, or, if it is a duplicate, it is dropped.
//
// One packet a cycle, 3 cycles from `list` to `packet`; a visit costs 1 cycle in addition to its packets, of an atomic 3, of a duplicate 2
// for each cache entry searched. The unit looks ahead by one visit; the two are never of the same QP. When `packet` stalls, everything
// stalls. A QP out of service has its queue discarded at its next visit. With several memories, a QP is parked if its packets would have to
// wait in front of roce_tx for another memory or for free entries.
module roce_response_send
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;
  import roce_response_pkg::*;
#(
    parameter int unsigned RD_DEPTH = 8,
    parameter int unsigned LANES = 1     // memories
) (
    input logic clk,
    input logic rst,
    input logic hold,                // begin no visit

    stream_if.sink list,             // qp_index_t

    output qp_index_t   index,       // the QP whose words are read
    input  rsp_count_t  tail,        // entries so far
    input  rsp_head_t   head,
    input  rsp_atomic_t executed,    // atomics executed
    output logic [31:0] key,         // of the oldest entry:
    input  logic        key_live,    // still valid, one cycle later
    input  logic        live,        // in service

    output logic        look,        // read the oldest entry (`head.count`) and the progress of `index`
    input  rsp_entry_t  entry,       // valid a cycle later, until the next read
    input  rsp_progress_t progress,

    output logic        fetch,       // read this entry of the cache
    output qp_index_t   fetch_index,
    output rsp_atomic_t fetch_place,
    input  rsp_result_t result,      // valid a cycle later, until the next read

    output qp_index_t   at,          // the next four are of this QP
    roce_qp_write_if.writer head_next,  // rsp_head_t
    output logic        progress_write,
    output rsp_progress_t progress_data,
    output logic        sent,        // a packet was handed over

    stream_if.source packet,         // tx_packet_t
    input  targets_t  room,          // each memory's queue accepts a quantum of packets
    output qp_index_t waits_index,
    input  targets_t  waits,         // memories for which packets of this QP wait (roce_tx_lanes)
    stream_if.source parked,         // qp_index_t: cannot send now; must be taken at once
    stream_if.source again,          // qp_index_t: list this QP again; must be taken at once
    stream_if.source dropped,        // qp_index_t: an entry left the queue unanswered
    stream_if.source fault,          // rsp_fault_t: memory reported an error for an atomic, or a key is no longer valid

    output logic replayed,           // a duplicate was answered from the cache
    output logic forgotten,          // a duplicate was dropped
    output logic visiting,           // a READ whose key was checked may have packets to send
    output targets_t reads,          // a packet was handed over whose payload is read from this memory
    output logic idle
);
  // ---- look ahead ----
  typedef struct packed {
    qp_index_t   index;
    rsp_count_t  tail;
    rsp_head_t   head;
    rsp_atomic_t executed;
    logic        live;
  } look_t;

  typedef struct packed {
    qp_index_t   index;
    rsp_count_t  tail;
    rsp_head_t   head;
    logic        more;       // entries behind this one
    logic        duplicate;
    psn_t        psn;
    logic [23:0] msn;
    mtu_code_t   mtu;
    addr_t       addr;
    target_t     target;
    logic [31:0] rkey;
    logic [31:0] left;       // bytes of the READ
    logic        first;      // the first packet of the READ is next
    logic        last;       // the last packet of the READ is next
    logic [4:0]  packets;    // left of the quantum
    logic        stops;      // the quantum ends with the next packet, within the READ
    logic        keyed;      // subject to the key check
    rsp_atomic_t place;      // in the cache
    rsp_atomic_t places;     // cache entries to search after this one
  } visit_t;

  typedef enum logic [2:0] {
    V_IDLE,
    V_READ,
    V_FETCH,     // result of an atomic
    V_CHECK,
    V_ATOMIC,
    V_DROP,      // discard this entry
    V_FLUSH,     // discard all entries, if any
    V_FAULT
  } state_e;

  state_e state_q;
  look_t  look_q;
  visit_t visit_q;
  logic   look_valid_q;
  logic   opens_q;           // the first cycle of a visit
  logic   denied_q;          // the key was not valid

  tx_packet_t given;
  assign given = packet.data;
  // For a QP that has just sent a packet, `waits` is not valid yet.
  wire unsettled = LANES > 1 && packet.valid && sq_index(given.qpn) == look_q.index;
  wire load = state_q == V_IDLE && look_valid_q && !unsettled;
  wire busy_with_it = (look_valid_q && look_q.index == index) || (state_q != V_IDLE && visit_q.index == index);
  assign index      = list.data;
  assign list.ready = (!look_valid_q || load) && !hold && !busy_with_it;
  assign look       = list.valid && list.ready;

  always_ff @(posedge clk) begin
    if (look) look_q <= '{
          index: index,
          tail: tail,
          head: head,
          executed: executed,
          live: live
      };
    if (rst) look_valid_q <= 1'b0;
    else if (look) look_valid_q <= 1'b1;
    else if (load) look_valid_q <= 1'b0;
  end

  // ---- begin a visit ----
  rsp_place_t place;
  assign place = rsp_place(entry);
  wire nothing = look_q.tail == look_q.head.count;
  wire not_yet = !entry.duplicate && look_q.executed == place.atomics;   // not executed yet
  wire none_cached = !place.full && place.atomics == 0;

  logic [31:0] begin_left;
  visit_t begin_visit;
  assign begin_left = look_q.head.resumes ? progress.left : entry.length;
  always_comb begin
    begin_visit.index     = look_q.index;
    begin_visit.tail      = look_q.tail;
    begin_visit.head      = look_q.head;
    begin_visit.more      = look_q.head.count + 1'b1 != look_q.tail;
    begin_visit.duplicate = entry.duplicate;
    begin_visit.psn       = look_q.head.resumes ? progress.psn : entry.psn;
    begin_visit.msn       = entry.msn;
    begin_visit.mtu       = entry.path_mtu;
    begin_visit.addr      = look_q.head.resumes ? progress.addr : entry.addr;
    begin_visit.target    = entry.target;
    begin_visit.rkey      = entry.rkey;
    begin_visit.left      = begin_left;
    begin_visit.first     = !look_q.head.resumes;
    begin_visit.last      = begin_left <= 32'(mtu_bytes(entry.path_mtu));
    begin_visit.packets   = 5'(6'd32 >> entry.path_mtu);
    begin_visit.stops     = begin_visit.packets == 5'd1 && !begin_visit.last;
    begin_visit.keyed     = entry.length != 0;
    begin_visit.place     = entry.duplicate ? place.atomics - 1'b1 : place.atomics;
    begin_visit.places    = place.full ? rsp_atomic_t'(RD_DEPTH - 1) : place.atomics - 1'b1;
  end

  // ---- can it send packets? ----
  logic away;                // its memory's queue is full, or packets of the QP wait for another memory
  if (LANES == 1) begin : g_one
    assign away = 1'b0;

    logic unused_ok;
    assign unused_ok = &{1'b0, room, waits};
  end else begin : g_several
    targets_t others;
    always_comb begin
      others               = waits;
      others[entry.target] = 1'b0;
    end
    assign away = others != '0 || !room[entry.target];
  end
  wire parks = load && look_q.live && !nothing && away;
  assign waits_index  = look_q.index;
  assign parked.valid = parks;
  assign parked.data  = look_q.index;

  // ---- visit ----
  stream_if #(.T(tx_packet_t)) out ();
  wire [12:0] mtu = mtu_bytes(visit_q.mtu);
  wire last_next = visit_q.left <= 2 * 32'(mtu);
  assign key    = entry.rkey;
  wire denied   = opens_q && visit_q.keyed && !key_live;                // of a READ
  wire responds = state_q == V_READ && !denied;
  wire answers  = state_q == V_ATOMIC;
  wire emit     = (responds || answers) && out.ready;
  wire stops    = state_q == V_READ && visit_q.stops;
  wire found    = !visit_q.duplicate || result.psn == visit_q.psn;
  wire discards = (state_q == V_DROP || state_q == V_FLUSH) && dropped.ready;
  wire ends     = discards || (emit && (stops || answers || visit_q.last));
  wire finished = ends && !stops;                                       // an entry

  always_ff @(posedge clk) begin
    if (load) visit_q <= begin_visit;
    else if (emit) begin
      visit_q.psn     <= visit_q.psn + 1'b1;
      visit_q.addr    <= visit_q.addr + ADDR_W'(mtu);
      visit_q.left    <= visit_q.left - 32'(mtu);
      visit_q.first   <= 1'b0;
      visit_q.last    <= last_next;
      visit_q.stops   <= visit_q.packets == 5'd2 && !last_next;
      visit_q.packets <= visit_q.packets - 1'b1;
    end else if (state_q == V_CHECK) begin
      visit_q.place  <= visit_q.place - 1'b1;
      visit_q.places <= visit_q.places - 1'b1;
    end

    opens_q <= load;
    if (state_q == V_READ) denied_q <= denied;
    else if (state_q == V_CHECK) denied_q <= result.denied;

    if (rst) state_q <= V_IDLE;
    else begin
      unique case (state_q)
        V_IDLE:
        if (load && !look_q.live) state_q <= V_FLUSH;
        else if (load && !nothing && !away) begin
          if (!entry.atomic) state_q <= V_READ;
          else if (entry.duplicate && none_cached) state_q <= V_DROP;
          else if (!not_yet) state_q <= V_FETCH;
        end
        V_READ: if (denied) state_q <= visit_q.duplicate ? V_DROP : V_FAULT;
        else if (ends) state_q <= V_IDLE;
        V_FETCH: state_q <= V_CHECK;
        V_CHECK: begin
          if (found) state_q <= result.error || result.denied ? V_FAULT : V_ATOMIC;
          else state_q <= visit_q.places == 0 ? V_DROP : V_FETCH;
        end
        V_FAULT: if (fault.ready) state_q <= V_IDLE;
        default: if (ends) state_q <= V_IDLE;
      endcase
    end
  end

  assign fetch       = state_q == V_FETCH;
  assign fetch_index = visit_q.index;
  assign fetch_place = visit_q.place;

  // ---- results of a visit ----
  assign at              = visit_q.index;
  assign head_next.valid = ends;
  assign head_next.index = visit_q.index;
  assign head_next.data  = '{
          count: state_q == V_FLUSH ? visit_q.tail : visit_q.head.count + rsp_count_t'(!stops),
          done: visit_q.head.done + 8'(!stops && !visit_q.duplicate),
          resumes: stops
      };
  assign progress_write = emit && stops;
  assign progress_data  = '{
          psn: visit_q.psn + 1'b1,
          addr: visit_q.addr + ADDR_W'(mtu),
          left: visit_q.left - 32'(mtu)
      };

  // One cycle later, because the end of a visit depends on the key check.
  logic      again_q;
  qp_index_t again_index_q;
  assign again.valid   = again_q;
  assign again.data    = again_index_q;
  always_ff @(posedge clk) begin
    again_q       <= !rst && ends && state_q != V_FLUSH && (stops || visit_q.more);
    again_index_q <= visit_q.index;
  end
  assign dropped.valid = state_q == V_DROP || state_q == V_FLUSH;
  assign dropped.data  = visit_q.index;
  assign fault.valid   = state_q == V_FAULT;
  assign fault.data    = rsp_fault_t'{qpn: qp_number(visit_q.index), psn: visit_q.psn, denied: denied_q};
  assign replayed      = emit && answers && visit_q.duplicate;
  assign forgotten     = finished && state_q == V_DROP;

  // ---- packets ----
  function automatic opcode_e opcode(logic first, logic last);
    unique case ({first, last})
      2'b10: return RC_RDMA_READ_RESPONSE_FIRST;
      2'b00: return RC_RDMA_READ_RESPONSE_MIDDLE;
      2'b01: return RC_RDMA_READ_RESPONSE_LAST;
      default: return RC_RDMA_READ_RESPONSE_ONLY;
    endcase
  endfunction

  localparam int unsigned TAIL_BYTES = EXT_BYTES - AETH_BYTES - $bits(atomicacketh_t) / 8;
  aeth_t aeth;
  assign aeth = '{syndrome: SYNDROME_ACK, msn: visit_q.msn};

  assign out.valid = responds || answers;
  assign out.data  = tx_packet_t'{
          qpn: qp_number(visit_q.index),
          opcode: answers ? RC_ATOMIC_ACKNOWLEDGE : opcode(visit_q.first, visit_q.last),
          psn: visit_q.psn,
          se: 1'b0,
          ackreq: 1'b0,
          ext: {aeth, result.original, {TAIL_BYTES * 8{1'b0}}},
          addr: visit_q.addr,
          target: visit_q.target,
          key: visit_q.rkey,
          length: answers ? '0 : visit_q.last ? visit_q.left[12:0] : mtu,
          empty: answers || visit_q.left == 0,
          again: visit_q.duplicate,
          internal_: 1'b0
      };
  assign sent     = emit;
  always_comb begin
    reads                 = '0;
    reads[visit_q.target] = emit && !answers && visit_q.left != 0;
  end
  assign visiting = state_q == V_READ;

  assign out.ready = !packet.valid || packet.ready;
  always_ff @(posedge clk) begin
    if (out.ready) packet.data <= out.data;
    if (rst) packet.valid <= 1'b0;
    else if (out.ready) packet.valid <= out.valid;
  end

  assign idle = !look_valid_q && state_q == V_IDLE && !again_q && !packet.valid;

  always_ff @(posedge clk) if (!rst) assert ((!again.valid || again.ready) && (!parked.valid || parked.ready));
endmodule
