// SPDX-License-Identifier: Apache-2.0

// The RoCEv2 engine: reliable connections between remote peers and device memory.
//
//   frame ─ roce_receive ┬ QP1 ───────── roce_cm ───────────────────────────────── tx[0]
//                        ├ requests ──── roce_response ── responses, ACKs ┐
//                        ├ responses ─── roce_requester ─ requests ───────┴ roce_tx ─ tx[1]
//                        └ CNPs, marks ─ roce_cc: rate of each QP, CNPs to send
//
// Clients share it through roce_clients: they post work requests (the receive side checks their local memory and holds WR_RECV, the
// others go to the requester), accept completions, register memory regions, open and close connections, and receive connection
// events. Queue pairs are set up by the connection manager or manually (`hand_cmd`), both through roce_qp_control, which applies
// every change to receive, response and requester in order. Frames in and out: one beat a cycle.
module roce_engine
  import packet_pkg::*;
  import frame_pkg::*;
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import roce_rx_pkg::*;
  import roce_requester_pkg::*;
  import roce_cc_pkg::*;
  import roce_counters_pkg::*;
  import roce_tx_pkg::*;
  import event_log_pkg::*;
#(
    parameter int unsigned     DATA_W   = 512,
    parameter int unsigned     ID_W     = 4,
    parameter int unsigned     QPS      = 256,
    parameter int unsigned     MRS      = 256,
    parameter int unsigned     SQ_DEPTH = 16,
    parameter int unsigned     RQ_DEPTH = 4,
    parameter int unsigned     RD_DEPTH = 8,
    parameter bit              CONGESTION_CONTROL = 1'b1,   // else roce_no_cc
    parameter bit              CONNECTS = 1'b1,      // a client connects; else `connect` is never valid
    parameter bit              READS = 1'b1,         // a client posts READs or atomics; else they are refused
    parameter bit              SELECTIVE_REPEAT = 1'b1,     // is agreed with peers that offer it (docs/reference/extensions.md)
    parameter bit              IPV6 = 1'b1,          // peers may have IPv6 addresses
    parameter int unsigned     CLIENTS  = 2,
    parameter logic [MAX_CLIENTS-1:0] TRUSTED = '0,   // those that may use LOCAL_DMA_LKEY
    parameter contexts_t [MAX_CLIENTS-1:0] CONTEXTS = '0,  // of a connection that a peer opens, at most, by client
    parameter logic [MAX_CLIENTS-1:0] LONG_SET_UP = '0,  // likewise: long set-ups are accepted
    parameter longint unsigned CLOCK_HZ = 250_000_000,
    parameter int unsigned     MEMORIES = 1,
    parameter memory_map_t     MAP      = '0
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [47:0] now,               // device cycles; may jump ahead
    input  local_addr_t local_addr,
    input  logic [63:0] guid,              // the device's
    input  logic [CLIENTS-1:0][15:0] port, // each client's, in the RDMA IP CM port space TCP; 0: it does not listen
    input  dscp_settings_t dscp,
    input  logic        extensions,        // selective repeat is offered and accepted, contexts are accepted
    input  cm_limits_t  limits,            // of connections that peers open
    output logic        asks,              // admission of those: see roce_cm
    output admission_ask_t ask,
    input  logic        judged,
    input  admission_verdict_t verdict,
    output logic        admits,
    output logic        leaves,
    output admission_entry_t admitted,
    input  admission_ended_t ended,
    input  logic        sweep,
    input  cc_config_t  congestion,
    input  own_set_t    leaving,           // addresses that go: see roce_cm
    input  logic        abandon,
    output logic        closed,            // there is no connection
    input  logic [31:0] seed,              // of keys and packet sequence numbers; stable from before the end of reset
    input  logic [47:0] keepalive_cycles,  // idle time after which a connection is probed; 0: never

    stream_if.sink      frame,             // frame_rx_t of CLASS_ROCE
    axis_if.sink        payload,
    stream_if.source    tx[2],             // frame_tx_t
    axis_if.source      tx_payload[2],
    stream_if.source    arp_query,         // ip_addr_t
    stream_if.sink      arp_answer,        // arp_answer_t

    stream_if.sink      wqe,               // rdma_wqe_t
    stream_if.source    cqe,               // rdma_cqe_t
    output logic        unsignaled,        // pulse: an unsignaled work request of this QP has completed with success
    output qp_index_t   unsignaled_index,
    stream_if.sink      mr_cmd,            // mr_cmd_t
    stream_if.source    mr_rsp,            // mr_rsp_t
    stream_if.sink      connect,           // connect_t
    stream_if.source    conn,              // conn_event_t
    stream_if.sink      conn_answer,       // conn_answer_t
    stream_if.sink      close,             // close_t

    stream_if.sink      hand_cmd,          // qp_cmd_t: queue pairs set up manually
    stream_if.source    hand_done,         // logic
    stream_if.source    qp_event,          // qp_event_t: also reported to the connection manager
    input  qpn_t        view_qpn,
    output qp_view_t    view,              // a cycle later
    output logic        made,              // pulse: a QP was set up with these attributes
    output logic        gone,              // pulse: a QP is in RESET
    output qp_cmd_t     changed,
    stream_if.sink      rate_view,         // qp_index_t
    stream_if.source    rate_viewed,       // cc_view_t
    stream_if.sink      counters_view,     // qp_index_t
    stream_if.source    counters_viewed,   // qp_counters_t

    axi_if.master       mem[1+MEMORIES],   // atomics; of each memory: reads and writes

    output roce_rx_events_t rx_events,
    output roce_tx_events_t tx_events,
    output cm_events_t      cm_events,
    output log_event_t      to_log,              // of the connection manager
    output logic            idle
);
  localparam mtu_code_t MAX_MTU = 3'd5;            // 4096 bytes
  localparam logic [4:0] MIN_RNR_TIMER = 5'd12;    // 0.64 ms

  stream_if #(.T(rdma_wqe_t)) send ();
  stream_if #(.T(local_access_t)) send_access ();
  stream_if #(.T(rdma_cqe_t)) completion[2] ();
  stream_if #(.T(qp_cmd_t)) cmd[2] ();             // of the connection manager, manual
  stream_if #(.T(logic)) cmd_done[2] ();
  stream_if #(.T(qp_cmd_t)) qp_cmd ();
  stream_if #(.T(logic)) qp_done ();
  stream_if #(.T(qp_cmd_t)) receive_cmd ();
  stream_if #(.T(logic)) receive_answer ();
  stream_if #(.T(qp_cmd_t)) response_cmd ();
  stream_if #(.T(logic)) response_answer ();
  stream_if #(.T(qp_event_t)) side_event[2] ();    // receive, response
  stream_if #(.T(qp_event_t)) receive_event ();
  stream_if #(.T(qp_event_t)) requester_event ();
  stream_if #(.T(qp_event_t)) happened ();
  stream_if #(.T(qp_event_t)) told[2] ();          // to the connection manager, to `qp_event`

  roce_rx_events_t receive_events, response_events;
  roce_tx_events_t requester_events, frame_events;
  cc_events_t      cc_events;
  logic receive_idle, response_idle, requester_idle, control_idle, frames_idle, cc_idle, cm_idle, hand_idle;
  logic write_idle, read_idle, place_idle;

  // ---- addresses: in a device without IPv6, all but 32 bits of each are constant from here on ----

  local_addr_t own;
  stream_if #(.T(connect_t)) calls ();
  stream_if #(.T(qp_cmd_t)) by_hand_cmd ();
  always_comb begin
    own = local_addr;
    if (!IPV6) begin
      own.link_local = '0;
      own.global_    = '0;
    end
    calls.data    = connect.data;
    calls.data.ip = peer_address(IPV6, connect.data.ip);
    by_hand_cmd.data             = hand_cmd.data;
    by_hand_cmd.data.attr.dst_ip = peer_address(IPV6, hand_cmd.data.attr.dst_ip);
    if (!IPV6) by_hand_cmd.data.attr.own = OWN_IPV4;
    if (!SELECTIVE_REPEAT) by_hand_cmd.data.attr.selective_repeat = 1'b0;
  end
  assign calls.valid       = connect.valid;
  assign connect.ready     = calls.ready;
  assign by_hand_cmd.valid = hand_cmd.valid;
  assign hand_cmd.ready    = by_hand_cmd.ready;

  // ---- receive ----

  stream_if #(.T(frame_rx_t)) cm_frame ();
  axis_if #(.DATA_W(DATA_W)) cm_payload ();
  stream_if #(.T(respond_t)) respond ();
  stream_if #(.T(rc_response_t)) response ();
  axis_if #(.DATA_W(DATA_W)) response_payload ();
  stream_if #(.T(dma_cmd_t)) write_cmd[2] ();          // of requests, of responses
  axis_if #(.DATA_W(DATA_W)) write_data[2] ();
  stream_if #(.T(dma_done_t)) write_done[2*MEMORIES] (); // of the first, by memory; of the second
  targets_t [1:0] write_room;
  logic [1:0] reserve;
  write_size_t [1:0] reserve_size;
  stream_if #(.T(qp_failed_t)) failed ();
  logic [3:0][31:0] key;                           // of the response unit, of the requester
  logic [3:0] key_live;
  logic       fencing, requests_over;
  qp_index_t  watch;
  logic       posting;                             // a receive of QP `watch` is being posted
  logic       fence;
  fence_t     fence_number, fences_through;
  qp_index_t  rd_done_slot;
  logic [7:0] rd_done;
  logic       active, ecn_marked, cnp;
  qpn_t       active_qpn;
  qp_bytes_t  active_bytes;

  roce_receive #(
      .DATA_W  (DATA_W),
      .QPS     (QPS),
      .RQ_DEPTH(RQ_DEPTH),
      .MRS     (MRS),
      .TRUSTED (TRUSTED),
      .LANES   (MEMORIES),
      .LONG_REGIONS(|LONG_SET_UP),
      .SELECTIVE_REPEAT(SELECTIVE_REPEAT),
      .IPV6    (IPV6),
      .MAP     (MAP)
  ) receive (
      .clk,
      .rst,
      .now,
      .seed({~seed, seed}),
      .frame,
      .payload,
      .cm(cm_frame),
      .cm_payload,
      .response,
      .response_payload,
      .respond,
      .rd_done_slot,
      .rd_done,
      .write(write_cmd[0]),
      .data(write_data[0]),
      .done(write_done[0:MEMORIES-1]),
      .write_room(write_room[0]),
      .reserve(reserve[0]),
      .reserve_size(reserve_size[0]),
      .wqe,
      .send,
      .send_access,
      .watch,
      .engaged(posting),
      .completion(completion[0]),
      .qp_cmd(receive_cmd),
      .qp_answer(receive_answer),
      .qp_event(side_event[0]),
      .failed,
      .mr_cmd,
      .mr_rsp,
      .key,
      .key_live,
      .fence,
      .fence_number,
      .fences_through,
      .active,
      .ecn_marked,
      .cnp,
      .active_qpn,
      .active_bytes,
      .events(receive_events),
      .idle(receive_idle)
  );

  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(ID_W)) writer[MEMORIES] ();

  localparam int unsigned WRITERS = 1 + 32'(READS);
  if (!READS) begin : g_no_reads
    assign write_cmd[1].ready    = 1'b0;
    assign write_data[1].tready  = 1'b0;
    assign write_room[1]         = '1;
    for (genvar i = MEMORIES; i < 2 * MEMORIES; i++) begin : g_lane
      assign write_done[i].valid = 1'b0;
      assign write_done[i].data  = '0;
    end
    logic unused_ok;
    assign unused_ok = &{1'b0, reserve[1], reserve_size[1]};
  end

  dma_write_lanes #(
      .DATA_W(DATA_W),
      .ID_W  (ID_W),
      .USERS (WRITERS),
      .LANES (MEMORIES)
  ) write_dma (
      .clk,
      .rst,
      .cmd(write_cmd[0:WRITERS-1]),
      .data(write_data[0:WRITERS-1]),
      .done(write_done[0:WRITERS*MEMORIES-1]),
      .reserve(reserve[WRITERS-1:0]),
      .reserve_size(reserve_size[WRITERS-1:0]),
      .room(write_room[WRITERS-1:0]),
      .mem(writer),
      .idle(write_idle)
  );

  // ---- responses to requests ----

  stream_if #(.T(tx_packet_t)) packet[2] ();       // responses, requests
  stream_if #(.T(tx_fault_t)) fault[2] ();
  stream_if #(.T(ack_tx_t)) ack[2] ();             // acknowledgements, CNPs
  stream_if #(.T(ack_tx_t)) acks ();
  logic       left;
  logic [1:0] passed;
  qpn_t       left_qpn;
  logic       data_idle, responses_idle, lane_freed;
  targets_t [1:0] lane_room, lane_waits;
  targets_t [1:0] was_read;
  qp_index_t  lane_index;

  roce_response #(
      .DATA_W  (DATA_W),
      .ID_W    (ID_W),
      .QPS     (QPS),
      .RD_DEPTH(RD_DEPTH),
      .LANES   (MEMORIES)
  ) answers (
      .clk,
      .rst,
      .cmd(response_cmd),
      .answer(response_answer),
      .respond,
      .rd_done_slot,
      .rd_done,
      .packet(packet[0]),
      .room(lane_room[0]),
      .waits_index(lane_index),
      .waits(lane_waits[0]),
      .freed(lane_freed),
      .ack(ack[0]),
      .fault(fault[0]),
      .left,
      .left_qpn,
      .tx_idle(data_idle && responses_idle),
      .passed(was_read[0]),
      .key(key[1:0]),
      .key_live(key_live[1:0]),
      .fence,
      .fence_number,
      .fences_through,
      .fencing,
      .others_over(requests_over),
      .mem(mem[0]),
      .qp_event(side_event[1]),
      .failed,
      .events(response_events),
      .idle(response_idle)
  );

  // ---- requests ----

  stream_if #(.T(sq_event_t)) change ();
  stream_if #(.T(dma_cmd_t)) place_cmd ();
  stream_if #(.T(dma_done_t)) place_done ();
  stream_if #(.T(qp_index_t)) parked ();
  stream_if #(.T(qp_index_t)) resume ();
  logic ready, commanded, init, path_write, policy_write, peer_write, hold, sending, requesting, flush_requests, flush_acks, flushed, sent;
  sq_init_t    start;
  qp_index_t   attr_index, peer_index, view_index, sent_index, retried_index;
  sq_path_t    path;
  sq_policy_t  policy;
  sq_peer_t    peer;
  psn_t        view_next, view_oldest;
  logic [12:0] sent_bytes;
  logic [QPS-1:0] blocked;

  roce_requester #(
      .DATA_W  (DATA_W),
      .QPS     (QPS),
      .SQ_DEPTH(SQ_DEPTH),
      .RD_DEPTH(RD_DEPTH),
      .CLOCK_HZ(CLOCK_HZ),
      .SELECTIVE_REPEAT(SELECTIVE_REPEAT),
      .READS   (READS),
      .LANES   (MEMORIES)
  ) requester (
      .clk,
      .rst,
      .now,
      .keepalive_cycles,
      .enable(ready),
      .change,
      .commanded,
      .init,
      .start,
      .attr_index,
      .path_write,
      .path,
      .policy_write,
      .policy,
      .peer_write,
      .peer_index,
      .peer,
      .watch,
      .hold,
      .sending,
      .engaged(requesting),
      .view_index,
      .view_next,
      .view_oldest,
      .wqe(send),
      .wqe_access(send_access),
      .cqe(completion[1]),
      .unsignaled,
      .unsignaled_index,
      .qp_event(requester_event),
      .packet(packet[1]),
      .fault(fault[1]),
      .passed(was_read[1]),
      .key(key[3:2]),
      .key_live(key_live[3:2]),
      .fencing,
      .fence_over(requests_over),
      .response,
      .response_payload,
      .write(place_cmd),
      .write_data(write_data[1]),
      .write_done(place_done),
      .active,
      .active_qpn,
      .blocked,
      .parked,
      .resume,
      .sent,
      .sent_index,
      .sent_bytes,
      .events(requester_events),
      .events_index(retried_index),
      .idle(requester_idle)
  );

  roce_qp_control #(
      .QPS     (QPS),
      .RD_DEPTH(RD_DEPTH)
  ) control (
      .clk,
      .rst,
      .command(qp_cmd),
      .answer(qp_done),
      .ready,
      .receive_cmd,
      .receive_answer,
      .response_cmd,
      .response_answer,
      .change,
      .commanded,
      .init,
      .start,
      .attr_index,
      .path_write,
      .path,
      .policy_write,
      .policy,
      .peer_write,
      .peer_index,
      .peer,
      .watch,
      .hold,
      .sending,
      .engaged(requesting || posting),
      .flush_requests,
      .flush_acks,
      .flushed,
      .receive_event,
      .requester_event,
      .qp_event(happened),
      .view_qpn,
      .view,
      .view_index,
      .view_next,
      .view_oldest,
      .idle(control_idle)
  );

  stream_arbiter #(
      .T(qp_event_t),
      .N(2)
  ) event_arbiter (
      .clk,
      .rst,
      .in(side_event),
      .last('1),
      .out(receive_event)
  );

  stream_fork #(
      .T(qp_event_t),
      .N(2)
  ) event_fork (
      .clk,
      .rst,
      .in(happened),
      .out(told)
  );
  assign qp_event.valid = told[1].valid;
  assign qp_event.data  = told[1].data;
  assign told[1].ready  = qp_event.ready;

  // ---- frames ----

  stream_if #(.T(dma_cmd_t)) read_cmd ();
  axis_if #(.DATA_W(DATA_W)) read_data ();
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(ID_W)) reader[MEMORIES] ();
  qp_sent_t went;

  stream_arbiter #(
      .T(ack_tx_t),
      .N(2)
  ) ack_arbiter (
      .clk,
      .rst,
      .in(ack),
      .last('1),
      .out(acks)
  );

  stream_if #(.T(tx_packet_t)) framed[2] ();
  logic read_source, flush_frames, frames_flushed, lanes_flushed;

  roce_tx_lanes #(
      .DATA_W(DATA_W),
      .ID_W  (ID_W),
      .QPS   (QPS),
      .LANES (MEMORIES)
  ) lanes (
      .clk,
      .rst,
      .packet,
      .room(lane_room),
      .waits_index({qp_index_t'(0), lane_index}),
      .waits(lane_waits),
      .freed(lane_freed),
      .frames(framed),
      .read_cmd,
      .read_source,
      .read_data,
      .mem(reader),
      .passed,
      .was_read,
      .flush_requests,
      .flush_frames,
      .flushed(lanes_flushed),
      .responses_idle,
      .idle(read_idle)
  );
  assign flushed = lanes_flushed && frames_flushed;

  // A packet of 64-bit beats takes long enough for a shorter queue to cover the latency of memory.
  localparam int unsigned TX_QUEUE = DATA_W < 128 ? TX_AHEAD / 2 : TX_AHEAD;
  roce_tx #(
      .QPS  (QPS),
      .AHEAD(TX_QUEUE),
      .ACKS (TX_QUEUE)
  ) frames (
      .clk,
      .rst,
      .local_addr(own),
      .cnp_dscp(dscp.cnp),
      .ect(congestion.rp_enable),
      .packet(framed),
      .ack(acks),
      .flush_requests(flush_frames),
      .flush_acks,
      .flushed(frames_flushed),
      .peer_write,
      .peer_write_index(peer_index),
      .peer_write_data(peer),
      .read_cmd,
      .read_source,
      .read_data,
      .frame(tx[1]),
      .payload(tx_payload[1]),
      .fault,
      .left,
      .left_qpn,
      .passed,
      .went,
      .events(frame_events),
      .data_idle,
      .idle(frames_idle)
  );

  for (genvar i = 0; i < MEMORIES; i++) begin : g_memory
    axi_join reads_and_writes (.reader(reader[i]), .writer(writer[i]), .out(mem[1+i]));
  end

  // ---- payload of responses ----

  dma_write_in_order #(
      .LANES(MEMORIES)
  ) place (
      .clk,
      .rst,
      .cmd(place_cmd),
      .done(place_done),
      .lanes_cmd(write_cmd[1]),
      .lanes_done(write_done[MEMORIES:2*MEMORIES-1]),
      .room(write_room[1]),
      .reserve(reserve[1]),
      .reserve_size(reserve_size[1]),
      .idle(place_idle)
  );

  // ---- congestion ----

  stream_if #(.T(qp_index_t)) forget ();

  if (CONGESTION_CONTROL) begin : g_rates
    roce_cc #(
        .QPS     (QPS),
        .CLOCK_HZ(CLOCK_HZ)
    ) rates (
        .clk,
        .rst,
        .now,
        .cfg(congestion),
        .cnp,
        .cnp_qpn(active_qpn),
        .ecn_marked,
        .ecn_marked_qpn(active_qpn),
        .cnp_tx(ack[1]),
        .sent,
        .sent_index,
        .sent_bytes(14'(sent_bytes)),
        .blocked,
        .parked,
        .resume,
        .forget,
        .view(rate_view),
        .viewed(rate_viewed),
        .events(cc_events),
        .idle(cc_idle)
    );
  end else begin : g_rates
    roce_no_cc #(
        .QPS(QPS)
    ) rates (
        .clk,
        .rst,
        .cnp,
        .ecn_marked,
        .cnp_tx(ack[1]),
        .blocked,
        .parked,
        .resume,
        .forget,
        .view(rate_view),
        .viewed(rate_viewed),
        .events(cc_events),
        .idle(cc_idle)
    );
    logic unused_ok;
    assign unused_ok = &{1'b0, congestion, sent, sent_index, sent_bytes};
  end

  // A QP starts without a rate limit, also if its number was used before. Set-ups are many cycles apart.
  stream_if #(.T(qp_index_t)) begun ();
  assign begun.valid = init;
  assign begun.data  = start.index;
  stream_slice #(.T(qp_index_t)) begun_slice (.clk, .rst, .in(begun), .out(forget));

  // ---- connections, and queue pairs set up manually ----

  logic [QPS-1:0] connected, by_hand;   // which of the two uses the QP number
  assign closed = connected == '0;
  roce_cm #(
      .DATA_W  (DATA_W),
      .QPS     (QPS),
      .CLIENTS (CLIENTS),
      .RD_DEPTH(RD_DEPTH),
      .CLOCK_HZ(CLOCK_HZ),
      .PASSIVE_CONTEXTS(CONTEXTS),
      .PASSIVE_LONG_SET_UP(LONG_SET_UP),
      .SELECTIVE_REPEAT(SELECTIVE_REPEAT),
      .ACTIVE  (CONNECTS),
      .IPV6    (IPV6)
  ) cm (
      .clk,
      .rst,
      .local_addr(own),
      .guid,
      .port,
      .max_mtu(MAX_MTU),
      .min_rnr_timer(MIN_RNR_TIMER),
      .dscp,
      .extensions,
      .seed,
      .now,
      .limits,
      .asks,
      .ask,
      .judged,
      .verdict,
      .admits,
      .leaves,
      .admitted,
      .ended,
      .sweep,
      .leaving,
      .abandon,
      .rx(cm_frame),
      .rx_payload(cm_payload),
      .tx(tx[0]),
      .tx_payload(tx_payload[0]),
      .arp_query,
      .arp_answer,
      .qp_cmd(cmd[0]),
      .qp_done(cmd_done[0]),
      .qp_event(told[0]),
      .close,
      .by_hand,
      .mine(connected),
      .connect(calls),
      .conn,
      .conn_answer,
      .events(cm_events),
      .to_log,
      .idle(cm_idle)
  );

  roce_qp_direct #(
      .QPS(QPS)
  ) hand (
      .clk,
      .rst,
      .command(by_hand_cmd),
      .answer(hand_done),
      .taken(connected),
      .by_hand,
      .passed(cmd[1]),
      .done(cmd_done[1]),
      .idle(hand_idle)
  );

  stream_share #(
      .COMMAND(qp_cmd_t),
      .ANSWER (logic),
      .N      (2)
  ) commands (
      .clk,
      .rst,
      .command(cmd),
      .answer(cmd_done),
      .to_server(qp_cmd),
      .from_server(qp_done)
  );

  // One command is in progress at a time.
  always_ff @(posedge clk) begin
    if (qp_cmd.valid && qp_cmd.ready) changed <= qp_cmd.data;
    made <= !rst && qp_done.valid && qp_done.ready && qp_done.data && changed.op == QP_SETUP;
    gone <= !rst && qp_done.valid && qp_done.ready && qp_done.data && changed.op == QP_RESET;
  end

  // ---- completions ----

  stream_arbiter #(
      .T(rdma_cqe_t),
      .N(2)
  ) completion_arbiter (
      .clk,
      .rst,
      .in(completion),
      .last('1),
      .out(cqe)
  );

  // ---- counters of each QP ----

  qp_requested_t requested_q;
  qp_responded_t responded_q;
  qp_retried_t   retried;
  rc_response_t  response_came;
  assign response_came = response.data;
  assign retried = '{
          index: retried_index,
          local_ack_timeout_err: requester_events.local_ack_timeout_err,
          rnr_nak_retry_err: requester_events.rnr_nak_retry_err,
          packet_seq_err: requester_events.packet_seq_err
      };

  qp_requested_t requested;
  always_comb begin
    requested                = requested_q;
    requested.rp_cnp_handled = cc_events.rp_cnp_handled;   // a cycle after `cnp`
  end
  always_ff @(posedge clk) begin
    requested_q <= rst ? '0 : '{
        index: sq_index(active_qpn),
        pkts: receive_events.rcvd_pkts,
        bytes: active_bytes,
        duplicate_request: receive_events.duplicate_request,
        out_of_seq_request: receive_events.out_of_seq_request,
        rp_cnp_handled: 1'b0
    };
    responded_q <= '{
        index: sq_index(response_came.qpn),
        responses: !rst && response.valid && response.ready && qpn_exists(response_came.qpn, QPS),
        bytes: response_came.payload_length
    };
  end

  roce_qp_counters #(
      .QPS(QPS)
  ) qp_counters (
      .clk,
      .rst,
      .clear(path_write),          // before the QP accepts or sends packets
      .clear_index(attr_index),
      .sent(went),
      .requested,
      .responded(responded_q),
      .retried,
      .view(counters_view),
      .viewed(counters_viewed)
  );

  // ---- events ----

  always_comb begin
    rx_events = receive_events | response_events;
    tx_events = requester_events | frame_events;
    rx_events.np_cnp_sent    = cc_events.np_cnp_sent;
    tx_events.rp_cnp_handled = cc_events.rp_cnp_handled;
    tx_events.rp_cnp_ignored = cc_events.rp_cnp_ignored;
  end

  assign idle = receive_idle && response_idle && requester_idle && control_idle && frames_idle && cc_idle && cm_idle && hand_idle
      && write_idle && read_idle && place_idle && !cqe.valid && !wqe.valid && !qp_cmd.valid && !happened.valid && !hand_cmd.valid && !acks.valid
      && !mr_cmd.valid;
endmodule
