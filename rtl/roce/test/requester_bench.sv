// SPDX-License-Identifier: Apache-2.0

// roce_requester with the roce_qp_control that it belongs to, for their tests. A work request whose L_Key is all ones is denied, as late as
// roce_mr_local says so.
module requester_bench
  import packet_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import roce_requester_pkg::*;
  import memory_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned QPS = 16,
    parameter int unsigned SQ_DEPTH = 16,
    parameter int unsigned RD_DEPTH = 8,
    parameter int unsigned WINDOW = 8192,
    parameter int unsigned ACK_EVERY = 128,
    parameter longint unsigned CLOCK_HZ = 250_000_000
) (
    input logic        clk,
    input logic        rst,
    input logic [47:0] now,
    input logic [47:0] keepalive_cycles,
    stream_if.sink     cmd,
    stream_if.source   answer,
    stream_if.source   receive_cmd,
    stream_if.sink     receive_answer,
    stream_if.source   response_cmd,
    stream_if.sink     response_answer,
    stream_if.sink     receive_event,
    stream_if.source   qp_event,
    input qpn_t        view_qpn,
    output qp_view_t   view,
    output logic       peer_write,
    output qp_index_t  peer_index,
    output sq_peer_t   peer,
    output logic       flush_requests,
    output logic       flush_acks,
    input logic        flushed,
    stream_if.sink     wqe,
    stream_if.source   cqe,
    stream_if.source   packet,
    stream_if.sink     fault,
    input logic        passed,
    input logic [31:0] dead,             // this key is not valid any more
    input logic        fencing,
    output logic       fence_over,
    stream_if.sink     response,
    axis_if.sink       response_payload,
    stream_if.source   write,
    axis_if.source     write_data,
    stream_if.sink     write_done,
    input logic        active,
    input qpn_t        active_qpn,
    input logic [QPS-1:0] blocked,
    stream_if.source   parked,
    stream_if.sink     resume,
    output logic       sent,
    output qp_index_t  sent_index,
    output logic [12:0] sent_bytes,
    output roce_tx_events_t events,
    output logic       idle
);
  stream_if #(.T(local_access_t)) verdict ();
  stream_if #(.T(local_access_t)) wqe_access ();
  localparam int unsigned CHECK = 3;
  logic [CHECK:1] asked_q;
  local_access_t [CHECK:1] access_q;
  rdma_wqe_t posted;
  assign posted = wqe.data;
  wire keyed = posted.lkey != LOCAL_DMA_LKEY && (posted.length != 0
      || posted.opcode inside {WR_ATOMIC_CMP_AND_SWP, WR_ATOMIC_FETCH_AND_ADD});
  always_ff @(posedge clk) begin
    asked_q  <= rst ? '0 : {asked_q[CHECK-1:1], wqe.valid && wqe.ready};
    access_q <= {access_q[CHECK-1:1], local_access_t'{denied: posted.lkey == '1, keyed: keyed, target: '0}};
  end
  assign verdict.valid = asked_q[CHECK];
  assign verdict.data  = access_q[CHECK];
  stream_fifo #(.T(local_access_t), .DEPTH(8)) verdicts (.clk, .rst, .in(verdict), .out(wqe_access), .empty());

  logic [1:0][31:0] key;
  logic [1:0] key_live;
  always_ff @(posedge clk) for (int unsigned i = 0; i < 2; i++) key_live[i] <= key[i] != dead;

  stream_if #(.T(sq_event_t)) change ();
  stream_if #(.T(qp_event_t)) requester_event ();
  logic ready, commanded, init, path_write, policy_write, hold, sending, engaged, control_idle, requester_idle;
  sq_init_t start;
  qp_index_t attr_index, watch, view_index;
  sq_path_t path;
  sq_policy_t policy;
  psn_t view_next, view_oldest;

  roce_qp_control #(
      .QPS(QPS),
      .RD_DEPTH(RD_DEPTH)
  ) control (
      .clk, .rst, .command(cmd), .answer, .ready, .receive_cmd, .receive_answer, .response_cmd, .response_answer, .change,
      .commanded, .init, .start, .attr_index, .path_write, .path, .policy_write, .policy, .peer_write, .peer_index, .peer,
      .watch, .hold, .sending, .engaged, .flush_requests, .flush_acks, .flushed,
      .receive_event, .requester_event, .qp_event, .view_qpn, .view, .view_index, .view_next, .view_oldest, .idle(control_idle)
  );

  roce_requester #(
      .DATA_W(DATA_W),
      .QPS(QPS),
      .SQ_DEPTH(SQ_DEPTH),
      .RD_DEPTH(RD_DEPTH),
      .WINDOW(WINDOW),
      .ACK_EVERY(ACK_EVERY),
      .CLOCK_HZ(CLOCK_HZ)
  ) requester (
      .clk, .rst, .now, .keepalive_cycles, .enable(ready), .change, .commanded, .init, .start, .attr_index, .path_write, .path,
      .policy_write, .policy, .peer_write, .peer_index, .peer, .watch, .hold, .sending, .engaged, .view_index, .view_next,
      .view_oldest, .wqe, .wqe_access, .cqe, .qp_event(requester_event), .packet, .fault, .passed(targets_t'(passed)), .key, .key_live,
      .fencing, .fence_over, .response, .response_payload, .write, .write_data,
      .write_done, .active, .active_qpn, .blocked, .parked, .resume, .sent, .sent_index, .sent_bytes, .events, .idle(requester_idle),
      .unsignaled(), .unsignaled_index(), .events_index()
  );
  assign idle = control_idle && requester_idle;
endmodule
