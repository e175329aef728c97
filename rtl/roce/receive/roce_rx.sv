// SPDX-License-Identifier: Apache-2.0

// Takes the RoCE frames from the packet plane, makes the checks that need no QP state, and demultiplexes them: frames for QP1 (general
// services, UD) unchanged to the connection manager, responses (ACKNOWLEDGE, READ responses, ATOMIC ACKNOWLEDGE) to the requester, all
// other RC packets and CNPs to the responder. A response with congestion experienced (CE) also goes to the responder, without its payload:
// the responder checks the peer and reports the mark.
//
// Checks (IBTA 9.6.1.1): TVer 0, P_Key of the default partition, UD opcodes for QP1 only, RC opcodes and CNP for the other QPs; and that no
// IPv6 packet has an IPv4-mapped source, by which it would pass for one of an IPv4 peer. A frame that fails is counted (drop_bad_bth), its
// payload is discarded, and it has no other effect. Datagrams for QP1 may stall the frames behind
// them for a small share of the time (hold_budget); beyond that they are dropped and counted (drop_cm_rate). Latency 1 cycle to `packet`,
// `response` and `cm`; one frame a cycle; payload one beat a cycle, from 1 cycle after its frame. Headers run up to PAYLOADS packets ahead
// of their payload. When an output stalls, everything behind it stalls.
module roce_rx
  import packet_pkg::*;
  import frame_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import roce_rx_pkg::*;
  import time_pkg::*;
#(
    parameter int unsigned DATA_W   = 512,
    parameter bit          IPV6     = 1'b1,    // there are IPv6 packets
    parameter int unsigned PAYLOADS = 16       // power of two
) (
    input  logic             clk,
    input  logic             rst,
    input  time_t            now,
    stream_if.sink           frame,            // frame_rx_t of CLASS_ROCE
    axis_if.sink             payload,          // of the frames with payload_length > 0, in order
    stream_if.source         cm,               // frame_rx_t
    axis_if.source           cm_payload,
    stream_if.source         response,         // rc_response_t
    axis_if.source           response_payload, // of those with payload_length > 0
    stream_if.source         packet,           // rc_packet_t
    axis_if.source           packet_payload,
    output roce_rx_events_t  events,           // drop_bad_bth, drop_cm_rate
    output logic             idle              // nothing inside or at the inputs
);
  typedef enum logic [1:0] {
    TO_CM,
    TO_RESPONDER,
    TO_REQUESTER,
    TO_DROP
  } route_e;

  localparam logic [1:0] ECN_CE = 2'b11;       // congestion experienced (RFC 3168, 5)

  localparam logic [2:0] SERVICE_RC = 3'b000;  // opcode bits 7..5 (IBTA table 38)
  localparam logic [2:0] SERVICE_UD = 3'b011;

  frame_rx_t  head;
  l4_roce_t   roce;
  bth_t       bth;
  rc_opcode_t opcode;

  // ---- checks, before the frame enters the register ----
  typedef struct packed {
    route_e     route;
    logic       too_many;                      // a datagram above the permitted rate: dropped
    rc_opcode_t opcode;
    logic       has_payload;
    logic       marked;                        // congestion experienced (CE)
    logic       shown;                         // goes to the responder
    frame_rx_t  head;
  } judged_t;

  frame_rx_t offered;
  bth_t      offered_bth;
  judged_t   judged, in_hand;
  route_e    route;

  logic held_q, held_leaves, cm_allowed;

  assign offered     = frame.data;
  assign offered_bth = offered.headers.l4.roce.bth;
  assign frame.ready = !held_q || held_leaves;
  wire disguised     = IPV6 && offered.headers.l3.v6 && is_mapped(offered.headers.l3.src);
  assign route       = in_hand.route;

  always_ff @(posedge clk) begin
    if (frame.ready) in_hand <= judged;
    if (rst) held_q <= 1'b0;
    else if (frame.ready) held_q <= frame.valid;
  end

  always_comb begin
    judged.head        = offered;
    judged.opcode      = rc_opcode(offered_bth.opcode);
    judged.has_payload = offered.payload_length != '0;
    judged.too_many    = 1'b0;
    if (offered_bth.tver != '0 || offered_bth.pkey[14:0] != PKEY_DEFAULT[14:0] || disguised) judged.route = TO_DROP;
    else if (offered_bth.destqp == QPN_GSI) begin
      judged.route = offered_bth.opcode[7:5] == SERVICE_UD && cm_allowed ? TO_CM : TO_DROP;
      judged.too_many = offered_bth.opcode[7:5] == SERVICE_UD && !cm_allowed;
    end
    else if (judged.opcode.kind == RC_RESPONSE) judged.route = TO_REQUESTER;
    else if (offered_bth.opcode[7:5] == SERVICE_RC || judged.opcode.kind == RC_CNP) judged.route = TO_RESPONDER;
    else judged.route = TO_DROP;
    judged.marked = offered.headers.l3.ecn == ECN_CE;
    judged.shown  = judged.route == TO_RESPONDER || (judged.route == TO_REQUESTER && judged.marked);
  end

  assign head   = in_hand.head;
  assign roce   = head.headers.l4.roce;
  assign bth    = roce.bth;
  assign opcode = in_hand.opcode;

  // ---- headers: to one or two outputs ----
  typedef enum int unsigned {
    PART_CM,
    PART_RESPONDER,
    PART_REQUESTER,
    PARTS
  } part_e;

  stream_if #(.T(logic)) whole ();
  stream_if #(.T(logic)) part[PARTS] ();
  stream_if #(.T(route_e)) routed ();          // one for each packet with payload

  wire has_payload = in_hand.has_payload;
  wire may_pass    = !has_payload || routed.ready;
  wire marked      = in_hand.marked;
  wire shown       = in_hand.shown;

  assign whole.valid = held_q && may_pass;
  assign whole.data  = 1'b0;
  assign held_leaves = whole.ready && may_pass;
  stream_fork #(.T(logic), .N(PARTS)) fork_ (.clk, .rst, .in(whole), .out(part));

  assign cm.valid = part[PART_CM].valid && route == TO_CM;
  assign cm.data  = head;
  assign part[PART_CM].ready = cm.ready || route != TO_CM;

  assign response.valid = part[PART_REQUESTER].valid && route == TO_REQUESTER;
  assign part[PART_REQUESTER].ready = response.ready || route != TO_REQUESTER;
  assign response.data = '{
      qpn: bth.destqp,
      src_ip: peer_address(IPV6, head.headers.l3.src),
      opcode: bth.opcode,
      psn: bth.psn,
      aeth: roce.ext.response.aeth,
      original: roce.ext.response.atomicacketh,
      payload_length: head.payload_length
  };

  assign packet.valid = part[PART_RESPONDER].valid && shown;
  assign part[PART_RESPONDER].ready = packet.ready || !shown;
  assign packet.data = '{
      kind: opcode.kind,
      first: opcode.first,
      last: opcode.last,
      with_imm: opcode.with_imm,
      with_inv: opcode.with_inv,
      compare_swap: bth.opcode == RC_COMPARE_SWAP,
      ackreq: bth.ackreq,
      se: bth.se,
      ce: marked,
      qpn: bth.destqp,
      psn: bth.psn,
      src_ip: peer_address(IPV6, head.headers.l3.src),
      payload_length: route == TO_REQUESTER ? '0 : head.payload_length,
      reth: roce.ext.request.reth,
      word: roce.word,
      swap_add: roce.ext.atomiceth.swap_add,
      compare: roce.ext.atomiceth.compare
  };
  assign routed.valid = held_q && whole.ready && has_payload;
  assign routed.data  = route;

  // ---- payload ----
  axis_if #(.DATA_W(DATA_W)) way[4] ();
  logic routes_empty;

  axis_steer #(.DATA_W(DATA_W), .N(4), .DEPTH(PAYLOADS)) payloads (
      .clk, .rst, .in(payload), .route(routed), .out(way), .empty(routes_empty)
  );

  axis_wires to_cm (.in(way[TO_CM]), .out(cm_payload));

  axis_wires to_responder (.in(way[TO_RESPONDER]), .out(packet_payload));

  axis_wires to_requester (.in(way[TO_REQUESTER]), .out(response_payload));

  assign way[TO_DROP].tready = 1'b1;

  wire cm_waits = (cm.valid && !cm.ready) || (cm_payload.tvalid && !cm_payload.tready);
  hold_budget cm_budget (.clk, .rst, .now, .holds(cm_waits), .allowed(cm_allowed));

  // ---- events ----
  logic bad_q, too_many_q;
  always_ff @(posedge clk) begin
    bad_q      <= !rst && held_q && held_leaves && route == TO_DROP && !in_hand.too_many;
    too_many_q <= !rst && held_q && held_leaves && in_hand.too_many;
  end
  always_comb begin
    events = '0;
    events.drop_bad_bth = bad_q;
    events.drop_cm_rate = too_many_q;
  end

  assign idle = !frame.valid && !payload.tvalid && !held_q && routes_empty && !bad_q && !too_many_q;
endmodule
