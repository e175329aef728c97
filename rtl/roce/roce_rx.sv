// SPDX-License-Identifier: Apache-2.0

// Takes the RoCE frames from the packet plane, checks what needs no knowledge of a QP, takes the headers apart once, and
// steers: QP1 (general services, UD) to the connection manager as it came, everything else (RC) to the responder.
//
// Checks (IBTA 9.6.1.1): TVer 0, P_Key the default partition's, UD opcodes for QP1 alone and RC opcodes for the others.
// A frame that fails is counted (drop_bad_bth), its payload is drained, and it has no other effect.
// Latency 1 cycle to `packet`, 0 to `cm`; one frame a cycle; payload one beat a cycle, from 1 cycle after its frame.
// Headers run up to PAYLOADS packets ahead of their payload. When an output stops, everything behind stops.
module roce_rx
  import packet_pkg::*;
  import roce_pkg::*;
  import roce_rx_pkg::*;
#(
    parameter int unsigned DATA_W   = 512,
    parameter int unsigned PAYLOADS = 16       // power of two
) (
    input  logic             clk,
    input  logic             rst,
    stream_if.sink           frame,            // frame_rx_t of CLASS_ROCE
    axis_if.sink             payload,          // of the frames with payload_length > 0, in order
    stream_if.source         cm,               // frame_rx_t
    axis_if.source           cm_payload,
    stream_if.source         packet,           // rc_packet_t
    axis_if.source           packet_payload,
    output roce_rx_events_t  events,           // drop_bad_bth
    output logic             idle              // nothing inside or at the door
);
  // The header window with the extension headers that a packet may have.
  typedef struct packed {
    roce_hdr_t  roce;
    reth_t      reth;
    immdt_t     immdt;
    logic [HDR_BYTES*8-$bits(roce_hdr_t)-$bits(reth_t)-$bits(immdt_t)-1:0] rest;
  } window_reth_t;
  typedef struct packed {
    roce_hdr_t   roce;
    logic [31:0] word;                         // ImmDt or AETH
    logic [HDR_BYTES*8-$bits(roce_hdr_t)-32-1:0] rest;
  } window_word_t;

  typedef enum logic [1:0] {
    TO_CM,
    TO_RC,
    TO_NOBODY
  } route_e;

  localparam logic [2:0] SERVICE_RC = 3'b000;  // opcode bits 7..5 (IBTA table 38)
  localparam logic [2:0] SERVICE_UD = 3'b011;

  frame_rx_t    head;
  window_reth_t with_reth;
  window_word_t with_word;
  bth_t         bth;
  rc_opcode_t   opcode;

  assign head      = frame.data;
  assign with_reth = head.hdr;
  assign with_word = head.hdr;
  assign bth       = with_word.roce.bth;
  assign opcode    = rc_opcode(bth.opcode);

  // ---- checks ----
  route_e route;
  always_comb begin
    if (bth.tver != '0 || bth.pkey[14:0] != PKEY_DEFAULT[14:0]) route = TO_NOBODY;
    else if (bth.destqp == QPN_GSI) route = bth.opcode[7:5] == SERVICE_UD ? TO_CM : TO_NOBODY;
    else route = bth.opcode[7:5] == SERVICE_RC ? TO_RC : TO_NOBODY;
  end

  // ---- headers ----
  stream_if #(.T(rc_packet_t)) decoded ();
  stream_if #(.T(route_e)) routed ();          // one for each packet with payload
  stream_if #(.T(route_e)) steer ();

  wire has_payload = head.payload_length != '0;
  wire may_pass    = !has_payload || routed.ready;
  logic taken_ready;

  always_comb begin
    unique case (route)
      TO_CM:   taken_ready = cm.ready;
      TO_RC:   taken_ready = decoded.ready;
      default: taken_ready = 1'b1;
    endcase
  end

  assign frame.ready   = taken_ready && may_pass;
  assign cm.valid      = frame.valid && may_pass && route == TO_CM;
  assign cm.data       = head;
  assign decoded.valid = frame.valid && may_pass && route == TO_RC;
  assign decoded.data  = '{
      kind: opcode.kind,
      first: opcode.first,
      last: opcode.last,
      with_imm: opcode.with_imm,
      ackreq: bth.ackreq,
      se: bth.se,
      qpn: bth.destqp,
      psn: bth.psn,
      src_ip: with_word.roce.ipv4.src,
      payload_length: head.payload_length,
      reth: with_reth.reth,
      word: bth.opcode == RC_RDMA_WRITE_ONLY_WITH_IMM ? with_reth.immdt : with_word.word
  };
  assign routed.valid = frame.valid && taken_ready && has_payload;
  assign routed.data  = route;

  stream_slice #(.T(rc_packet_t)) slice (.clk, .rst, .in(decoded), .out(packet));

  // ---- payload ----
  axis_if #(.DATA_W(DATA_W)) gated ();
  axis_if #(.DATA_W(DATA_W)) way[3] ();
  logic routes_empty;

  stream_fifo #(.T(route_e), .DEPTH(PAYLOADS)) routes (.clk, .rst, .in(routed), .out(steer), .empty(routes_empty));

  assign gated.tvalid   = payload.tvalid && steer.valid;
  assign gated.tdata    = payload.tdata;
  assign gated.tkeep    = payload.tkeep;
  assign gated.tlast    = payload.tlast;
  assign gated.tuser    = payload.tuser;
  assign payload.tready = steer.valid && gated.tready;
  assign steer.ready    = gated.tvalid && gated.tready && gated.tlast;

  axis_demux #(.DATA_W(DATA_W), .N(3)) demux (.in(gated), .select(steer.data), .out(way));

  assign cm_payload.tvalid = way[TO_CM].tvalid;
  assign cm_payload.tdata  = way[TO_CM].tdata;
  assign cm_payload.tkeep  = way[TO_CM].tkeep;
  assign cm_payload.tlast  = way[TO_CM].tlast;
  assign cm_payload.tuser  = way[TO_CM].tuser;
  assign way[TO_CM].tready = cm_payload.tready;

  assign packet_payload.tvalid = way[TO_RC].tvalid;
  assign packet_payload.tdata  = way[TO_RC].tdata;
  assign packet_payload.tkeep  = way[TO_RC].tkeep;
  assign packet_payload.tlast  = way[TO_RC].tlast;
  assign packet_payload.tuser  = way[TO_RC].tuser;
  assign way[TO_RC].tready     = packet_payload.tready;

  assign way[TO_NOBODY].tready = 1'b1;

  // ---- what happened ----
  logic bad_q;
  always_ff @(posedge clk) bad_q <= !rst && frame.valid && frame.ready && route == TO_NOBODY;
  always_comb begin
    events = '0;
    events.drop_bad_bth = bad_q;
  end

  assign idle = !frame.valid && !payload.tvalid && !packet.valid && routes_empty && !bad_q;
endmodule
