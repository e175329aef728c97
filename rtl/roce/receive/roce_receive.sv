// SPDX-License-Identifier: Apache-2.0

// The receive side of the RoCEv2 plane: roce_rx, roce_responder, roce_mr, and roce_mr_local, through which all work requests pass. Latency
// from `frame` to `write` 10 cycles, to `response` 1, to `cm` 0; from `wqe` to `send` 0. A peer's request has priority over a work request
// in the access check.
module roce_receive
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import roce_rx_pkg::*;
  import time_pkg::*;
#(
    parameter int unsigned DATA_W   = 512,
    parameter int unsigned QPS      = 16,
    parameter int unsigned RQ_DEPTH = 4,      // receives posted per QP; power of two
    parameter int unsigned MRS      = 256,    // memory regions; power of two
    parameter logic [MAX_CLIENTS-1:0] TRUSTED = '0,  // clients that may use LOCAL_DMA_LKEY
    parameter int unsigned LANES    = 1,      // memories
    parameter bit          LONG_REGIONS = 1'b0,  // there are regions of 2^32 bytes and more
    parameter bit          SELECTIVE_REPEAT = 1'b1,
    parameter bit          IPV6     = 1'b1,   // there are IPv6 packets
    parameter memory_map_t MAP      = '0      // their addresses
) (
    input  logic            clk,
    input  logic            rst,
    input  time_t           now,              // cycles; may jump ahead
    input  logic [63:0]     seed,             // of the keys; read in reset
    // packet plane
    stream_if.sink          frame,            // frame_rx_t of CLASS_ROCE
    axis_if.sink            payload,
    // connection manager
    stream_if.source        cm,               // frame_rx_t
    axis_if.source          cm_payload,
    // requester: responses, not yet checked against a QP or peer
    stream_if.source        response,         // rc_response_t
    axis_if.source          response_payload, // of those with payload_length > 0
    // response unit: responses to the peers' requests
    stream_if.source        respond,          // respond_t
    output qp_index_t       rd_done_slot,     // READs and atomics of this QP answered so far,
    input  rd_count_t       rd_done,          // modulo 256, in the same cycle
    // memory
    stream_if.source        write,            // dma_cmd_t
    axis_if.source          data,
    stream_if.sink          done[LANES],      // dma_done_t, of each memory
    input  targets_t        write_room,       // see roce_responder
    output logic            reserve,
    output write_size_t     reserve_size,
    // work requests: receives are consumed here, the others are forwarded
    stream_if.sink          wqe,              // rdma_wqe_t
    stream_if.source        send,             // rdma_wqe_t
    stream_if.source        send_access,      // local_access_t, one for each on `send`
    input  qp_index_t       watch,
    output logic            engaged,          // a receive of this QP was taken from `wqe` but not posted yet
    stream_if.source        completion,       // rdma_cqe_t
    // queue pairs and regions
    stream_if.sink          qp_cmd,           // qp_cmd_t
    stream_if.source        qp_answer,        // logic
    stream_if.source        qp_event,         // qp_event_t
    stream_if.sink          failed,           // qp_failed_t: a READ or atomic request of this QP's peer cannot be answered
    stream_if.sink          mr_cmd,           // mr_cmd_t
    stream_if.source        mr_rsp,           // mr_rsp_t
    // response unit and requester: the validity of these keys, and their fences after an invalidation
    input  logic [3:0][31:0] key,
    output logic [3:0]      key_live,         // one cycle later
    output logic            fence,            // pulse: a fence is requested
    input  fence_t          fence_number,     // the fence requested now
    input  fence_t          fences_through,
    // events, by pulse
    output logic            active,           // a request, CNP or CE-marked response of the peer arrived
    output logic            ecn_marked,       // it had congestion experienced (CE)
    output logic            cnp,              // it was a CNP
    output qpn_t            active_qpn,       // its QP
    output logic [15:0]     active_bytes,     // its payload length
    output roce_rx_events_t events,           // rcvd_pkts, duplicate_request, out_of_seq_request: of active_qpn
    output logic            idle
);
  stream_if #(.T(rc_packet_t)) packet ();
  axis_if #(.DATA_W(DATA_W)) packet_payload ();

  mr_query_t       query[2];                  // of requests, of work requests
  logic [1:0]      asks;
  logic            granted, pause, invalidate, fenced;
  logic [31:0]     invalid_key;
  logic [1:0][31:0] message_key;
  logic [1:0]      message_live;
  roce_rx_events_t rx_events, responder_events;
  logic            rx_idle, responder_idle, mr_idle;

  stream_if #(.T(logic)) mr_fence ();
  stream_if #(.T(rx_post_t)) post ();
  qp_cmd_t         cmd_q;                     // one at a time
  logic            local_idle;

  roce_rx #(.DATA_W(DATA_W), .IPV6(IPV6)) rx (
      .clk, .rst, .now, .frame, .payload, .cm, .cm_payload, .response, .response_payload, .packet, .packet_payload,
      .events(rx_events), .idle(rx_idle)
  );

  roce_responder #(.DATA_W(DATA_W), .QPS(QPS), .RQ_DEPTH(RQ_DEPTH), .SELECTIVE_REPEAT(SELECTIVE_REPEAT), .LANES(LANES), .MAP(MAP)) responder (
      .clk, .rst,
      .packet, .payload(packet_payload),
      .respond, .rd_done_slot, .rd_done,
      .write, .data, .done, .write_room, .reserve, .reserve_size,
      .query(query[0]), .asks(asks[0]), .granted, .pause, .invalidate, .invalid_key, .key(message_key), .key_live(message_live),
      .mr_fence, .fence, .fenced, .fence_number, .fences_through,
      .post, .completion,
      .cmd(qp_cmd), .answer(qp_answer), .qp_event, .failed,
      .active, .ecn_marked, .cnp, .active_qpn, .active_bytes,
      .events(responder_events), .idle(responder_idle)
  );

  // The owner of a QP is recorded before the command that sets up the QP is answered.
  always_ff @(posedge clk) if (qp_cmd.valid && qp_cmd.ready) cmd_q <= qp_cmd.data;
  wire made = qp_answer.valid && qp_answer.data && cmd_q.op == QP_SETUP;

  roce_mr_local #(.QPS(QPS), .TRUSTED(TRUSTED), .LANES(LANES), .MAP(MAP)) locals_ (
      .clk, .rst,
      .made, .made_by(cmd_q),
      .wqe, .send, .send_access, .receive(post),
      .asks(asks[1]), .query(query[1]), .may_ask(!asks[0]), .granted,
      .watch, .engaged, .idle(local_idle)
  );

  roce_mr #(.MRS(MRS), .KEYS(6), .LONG_REGIONS(LONG_REGIONS), .TARGETS(LANES), .MAP(MAP)) mr (
      .clk, .rst, .seed, .cmd(mr_cmd), .rsp(mr_rsp), .query(asks[0] ? query[0] : query[1]), .granted, .pause, .invalidate, .invalid_key,
      .key({key, message_key}), .live({key_live, message_live}),
      .fence(mr_fence), .fenced, .fence_number, .fences_through, .idle(mr_idle)
  );

  assign events = rx_events | responder_events;
  assign idle   = rx_idle && responder_idle && mr_idle && local_idle;
endmodule
