// SPDX-License-Identifier: Apache-2.0

// The RoCEv2 engine: reliable connections between remote peers and device memory, made by the connection manager.
//
//   frame ─ roce_receive ┬ QP1 ── roce_cm ─────────── tx[0]
//                        └ acks ─ roce_requester ─── tx[1]
//
// Its users post work requests on `wqe` (WR_RECV goes to the receive side, the rest to the requester) and take completions from
// `cqe`; they learn of connections from `conn`, and make memory regions with `mr_cmd`. Both sides of a QP get every command of
// the connection manager; a command is answered when both have answered. Frames in and out take one beat a cycle.
module roce_engine
  import packet_pkg::*;
  import memory_pkg::*;
  import roce_pkg::*;
#(
    parameter int unsigned     DATA_W   = 512,
    parameter int unsigned     ID_W     = 4,
    parameter int unsigned     QPS      = 16,
    parameter int unsigned     MRS      = 256,
    parameter int unsigned     SQ_DEPTH = 32,
    parameter int unsigned     RQ_DEPTH = 4,
    parameter longint unsigned CLOCK_HZ = 250_000_000
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [47:0] now,               // device cycles; may jump ahead
    input  local_addr_t local_addr,
    input  logic [15:0] port,              // of the service, in the RDMA IP CM port space TCP
    input  logic [31:0] seed,              // of keys and packet sequence numbers; stable from before the end of reset
    input  logic [47:0] keepalive_cycles,  // idle time after which a connection is probed; 0: never

    stream_if.sink      frame,             // frame_rx_t of CLASS_ROCE
    axis_if.sink        payload,
    stream_if.source    tx[2],             // frame_tx_t
    axis_if.source      tx_payload[2],
    stream_if.source    arp_query,         // ipv4_addr_t
    stream_if.sink      arp_answer,        // arp_answer_t

    stream_if.sink      wqe,               // rdma_wqe_t
    stream_if.source    cqe,               // rdma_cqe_t
    stream_if.sink      mr_cmd,            // mr_cmd_t
    stream_if.source    mr_rsp,            // mr_rsp_t
    stream_if.source    conn,              // conn_event_t
    stream_if.sink      conn_answer,       // logic
    stream_if.sink      close,             // qpn_t

    axi_if.master       mem_write,
    axi_if.master       mem_read,

    output roce_rx_events_t rx_events,
    output roce_tx_events_t tx_events,
    output cm_events_t      cm_events,
    output logic            idle
);
  localparam mtu_code_t MAX_MTU = 3'd5;            // 4096 bytes
  localparam logic [4:0] MIN_RNR_TIMER = 5'd12;    // 0.64 ms

  stream_if #(.T(rdma_wqe_t)) work[2] ();          // receives, sends
  stream_if #(.T(rdma_cqe_t)) completion[2] ();
  stream_if #(.T(qp_cmd_t)) qp_cmd ();
  stream_if #(.T(logic)) qp_done ();
  stream_if #(.T(qp_cmd_t)) side_cmd[2] ();        // both sides: receive, transmit
  stream_if #(.T(logic)) side_done[2] ();
  stream_if #(.T(qp_event_t)) qp_event ();
  stream_if #(.T(qp_event_t)) side_event[2] ();
  roce_rx_events_t receive_events, requester_rx_events;
  logic receive_idle, cm_idle, requester_idle, write_idle, read_idle;

  // ---- receive ----

  stream_if #(.T(frame_rx_t)) cm_frame ();
  axis_if #(.DATA_W(DATA_W)) cm_payload ();
  stream_if #(.T(ack_tx_t)) ack_tx ();
  stream_if #(.T(ack_rx_t)) ack_rx ();
  stream_if #(.T(dma_cmd_t)) write_cmd ();
  axis_if #(.DATA_W(DATA_W)) write_data ();
  stream_if #(.T(dma_done_t)) write_done ();
  logic active;
  qpn_t active_qpn;

  roce_receive #(
      .DATA_W  (DATA_W),
      .QPS     (QPS),
      .RQ_DEPTH(RQ_DEPTH),
      .MRS     (MRS)
  ) receive (
      .clk,
      .rst,
      .seed({~seed, seed}),
      .frame,
      .payload,
      .cm(cm_frame),
      .cm_payload,
      .ack_tx,
      .ack_rx,
      .write(write_cmd),
      .data(write_data),
      .done(write_done),
      .post(work[0]),
      .completion(completion[0]),
      .qp_cmd(side_cmd[0]),
      .qp_answer(side_done[0]),
      .qp_event(side_event[0]),
      .mr_cmd,
      .mr_rsp,
      .active,
      .active_qpn,
      .events(receive_events),
      .idle(receive_idle)
  );

  axi_dma_write #(
      .DATA_W(DATA_W),
      .ID_W  (ID_W)
  ) write_dma (
      .clk,
      .rst,
      .cmd(write_cmd),
      .data(write_data),
      .mem(mem_write),
      .done(write_done),
      .idle(write_idle)
  );

  // ---- transmit ----

  stream_if #(.T(dma_cmd_t)) read_cmd ();
  axis_if #(.DATA_W(DATA_W)) read_data ();

  roce_requester #(
      .QPS     (QPS),
      .SQ_DEPTH(SQ_DEPTH),
      .CLOCK_HZ(CLOCK_HZ)
  ) requester (
      .clk,
      .rst,
      .now,
      .local_addr,
      .keepalive_cycles,
      .wqe(work[1]),
      .cqe(completion[1]),
      .ack_tx,
      .ack_rx,
      .active,
      .active_qpn,
      .cmd(side_cmd[1]),
      .answer(side_done[1]),
      .qp_event(side_event[1]),
      .read(read_cmd),
      .data(read_data),
      .tx(tx[1]),
      .tx_payload(tx_payload[1]),
      .rx_events(requester_rx_events),
      .events(tx_events),
      .idle(requester_idle)
  );

  axi_dma_read #(
      .DATA_W(DATA_W),
      .ID_W  (ID_W)
  ) read_dma (
      .clk,
      .rst,
      .cmd(read_cmd),
      .mem(mem_read),
      .data(read_data),
      .idle(read_idle)
  );

  // ---- connections ----

  roce_cm #(
      .DATA_W  (DATA_W),
      .QPS     (QPS),
      .CLOCK_HZ(CLOCK_HZ)
  ) manager (
      .clk,
      .rst,
      .local_addr,
      .port,
      .max_mtu(MAX_MTU),
      .min_rnr_timer(MIN_RNR_TIMER),
      .seed,
      .now,
      .rx(cm_frame),
      .rx_payload(cm_payload),
      .tx(tx[0]),
      .tx_payload(tx_payload[0]),
      .arp_query,
      .arp_answer,
      .qp_cmd,
      .qp_done,
      .qp_event,
      .close,
      .conn,
      .conn_answer,
      .events(cm_events),
      .idle(cm_idle)
  );

  stream_fork #(
      .T(qp_cmd_t),
      .N(2)
  ) command_fork (
      .clk,
      .rst,
      .in(qp_cmd),
      .out(side_cmd)
  );

  // Done when both sides are.
  assign qp_done.valid = side_done[0].valid && side_done[1].valid;
  assign qp_done.data = side_done[0].data && side_done[1].data;
  assign side_done[0].ready = qp_done.ready && side_done[1].valid;
  assign side_done[1].ready = qp_done.ready && side_done[0].valid;

  stream_arbiter #(
      .T(qp_event_t),
      .N(2)
  ) event_arbiter (
      .clk,
      .rst,
      .in(side_event),
      .last('1),
      .out(qp_event)
  );

  // ---- work requests and completions ----

  stream_demux #(
      .T(rdma_wqe_t),
      .N(2)
  ) work_demux (
      .in(wqe),
      .select(wqe.data.opcode != WR_RECV),
      .out(work)
  );

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

  assign rx_events = receive_events | requester_rx_events;
  assign idle = receive_idle && cm_idle && requester_idle && write_idle && read_idle && !cqe.valid
      && !wqe.valid && !qp_cmd.valid && !qp_event.valid;
endmodule
