// SPDX-License-Identifier: Apache-2.0

// Generates the headers of request packets (IBTA 9.2): opcode, RETH, AtomicETH, ImmDt and IETH from the opcode of the work request
// and the position of the packet in it. With selective repeat (`piece`, docs/reference/extensions.md) each packet of a WRITE has a
// RETH. One packet a cycle; 1 cycle from `cut` to `packet`. Stalls `cut` when `packet` or `fault` are not ready.
module roce_requester_headers
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter bit READS = 1'b1         // else no work request is a READ or atomic
) (
    input logic clk,
    input logic rst,

    stream_if.sink      cut,           // sq_cut_t
    input logic [63:0]  compare_data,  // of an atomic: from the ring, valid a cycle after `cut` until the next
    stream_if.source    packet,        // tx_packet_t
    stream_if.source    fault          // tx_fault_t: in place of a packet whose L_Key is no longer valid
);
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

  // ---- header fields ----
  typedef struct packed {
    tx_packet_t  packet;      // all but `ext`
    sq_kind_e    kind;
    reth_t       reth;
    logic [31:0] word;
    logic [63:0] swap_add;
    logic        bare;        // a WRITE without RETH: MIDDLE or LAST
  } made_t;

  sq_cut_t came;
  made_t   made, made_q;
  assign came = cut.data;
  sq_kind_e kind;
  assign kind = came.request.kind;
  wire is_read = READS && kind == SQ_READ;
  wire reads  = READS && is_rd(kind);
  wire inner  = came.piece && !came.last;                                   // not the last packet of a message
  wire whole  = !came.piece || (came.last && kind == SQ_WRITE_IMM);  // its RETH is that of the message

  always_comb begin
    made.kind             = kind;
    made.word             = came.request.word;
    made.swap_add         = {came.request.length, came.request.word};
    made.bare             = !came.first && !came.piece && is_write(kind);
    made.reth.rkey        = came.request.rkey;
    made.reth.va          = whole && !is_read ? came.request.remote_addr : came.va;
    made.reth.dmalen      = is_read ? came.left : whole ? came.request.length : 32'(came.length);
    made.packet.qpn       = qp_number(came.index);
    made.packet.psn       = came.psn;
    made.packet.again     = came.again;
    made.packet.ext       = '0;
    made.packet.addr      = came.addr;
    made.packet.target    = came.request.access.target;
    made.packet.key       = came.request.lkey;
    made.packet.length    = came.length;
    made.packet.empty     = came.length == '0;
    made.packet.se        = came.request.solicited && came.last;
    made.packet.ackreq    = !reads && (came.last || came.asks);
    made.packet.opcode    = inner ? RC_RDMA_WRITE_ONLY : opcode(kind, came.first || came.piece, came.last || came.piece);
    made.packet.internal_ = inner;
    if (came.keepalive) begin
      // A WRITE of 0 bytes accesses no memory, needs no R_Key (IBTA 9.7.4.1.1) and is acknowledged.
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

  assign cut.ready = (!packet.valid || packet.ready) && (!fault.valid || fault.ready);
  always_ff @(posedge clk) begin
    if (cut.ready) begin
      made_q     <= made;
      fault.data <= '{qpn: qp_number(came.index), psn: came.psn};
    end
    if (rst) begin
      packet.valid <= 1'b0;
      fault.valid  <= 1'b0;
    end else begin
      if (cut.ready || packet.ready) packet.valid <= cut.valid && cut.ready && !came.lapsed;
      if (cut.ready || fault.ready) fault.valid <= cut.valid && cut.ready && came.lapsed;
    end
  end

  // ---- header layout ----
  tx_packet_t complete;
  always_comb begin
    complete = made_q.packet;
    unique case (READS ? made_q.kind : without_rd(made_q.kind))
      SQ_CMP_SWAP, SQ_FETCH_ADD:
        complete.ext = atomiceth_t'{va: made_q.reth.va, rkey: made_q.reth.rkey, swap_add: made_q.swap_add, compare: compare_data};
      SQ_WRITE, SQ_WRITE_IMM, SQ_READ:
        if (made_q.bare) complete.ext[EXT_BYTES*8-1-:32] = made_q.word;
        else complete.ext[EXT_BYTES*8-1-:$bits(reth_t)+32] = {made_q.reth, made_q.word};
      default: complete.ext[EXT_BYTES*8-1-:32] = made_q.word;
    endcase
    if (!READS) complete.ext[EXT_BYTES*8-$bits(reth_t)-32-1:0] = '0;   // only an atomic has so many bytes
  end
  assign packet.data = complete;
endmodule
