// SPDX-License-Identifier: Apache-2.0

// A Nacelle device: the planes, put together. Outside are an Ethernet MAC, a DRAM controller and a register bus.
//
//   MAC ── packet ── roce ┬ rpc ── sockets       (frames, work requests, jobs)
//                         └──┴──────┴── fabric ── DRAM
//   bus ── control: registers and counters; the registers of the sockets
//
// Only the control plane lives before the device is enabled: its addresses and its random seed are set first, then the enable bit
// ends the reset of the others. The enable bit acts once.
module nacelle_shell
  import packet_pkg::*;
  import memory_pkg::*;
  import roce_pkg::*;
  import compute_pkg::*;
  import rpc_pkg::*;
  import roce_requester_pkg::*;
  import roce_cc_pkg::*;
  import shell_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [31:0] time_skip,  // cycles that pass on top of this one; 0 in hardware
    output logic        idle,       // nothing moves inside: only frames, the bus or timers can change anything

    axis_if.sink        rx,         // from the MAC
    axis_if.source      tx,         // to the MAC
    axil_if.slave       bus,
    axi_if.master       dram
);
  if (!(DATA_W inside {64, 128, 256, 512})) begin : bad_width
    $fatal(1, "DATA_W is %0d; it must be 64, 128, 256 or 512", DATA_W);
  end

  // ---- time and control ----

  logic [47:0] now_q;
  always_ff @(posedge clk) begin
    if (rst) now_q <= '0;
    else now_q <= now_q + 48'(time_skip) + 48'd1;
  end

  local_addr_t local_addr;
  logic [15:0] rpc_port;
  logic [31:0] seed;
  logic [47:0] keepalive_cycles, kernel_timeout_cycles;
  packet_events_t packet_events;
  roce_rx_events_t roce_rx_events;
  roce_tx_events_t roce_tx_events;
  cm_events_t cm_events;
  rpc_events_t rpc_events;
  logic control_idle;

  axil_if #(.ADDR_W(12)) socket_bus[SOCKETS] ();

  control_plane #(
      .VERSION   (VERSION),
      .DATA_W    (DATA_W),
      .CLOCK_HZ  (CLOCK_HZ),
      .QPS       (QPS),
      .SOCKETS   (SOCKETS),
      .DRAM_BYTES(DRAM_BYTES)
  ) control (
      .clk,
      .rst,
      .bus,
      .socket(socket_bus),
      .local_addr,
      .rpc_port,
      .seed,
      .keepalive_cycles,
      .kernel_timeout_cycles,
      .packet_events,
      .roce_rx_events,
      .roce_tx_events,
      .cm_events,
      .rpc_events,
      .idle(control_idle)
  );

  logic plane_rst_q;
  always_ff @(posedge clk) begin
    if (rst) plane_rst_q <= 1'b1;
    else if (local_addr.enable) plane_rst_q <= 1'b0;
  end

  // ---- network ----

  stream_if #(.T(frame_rx_t)) frame ();
  axis_if #(.DATA_W(DATA_W)) payload ();
  stream_if #(.T(frame_tx_t)) roce_tx[2] ();
  axis_if #(.DATA_W(DATA_W)) roce_tx_payload[2] ();
  stream_if #(.T(ipv4_addr_t)) arp_query ();
  stream_if #(.T(arp_answer_t)) arp_answer ();
  logic packet_idle, roce_idle, rpc_idle;

  packet_plane #(
      .DATA_W   (DATA_W),
      .MAX_FRAME(MAX_FRAME),
      .CLOCK_HZ (CLOCK_HZ),
      .USERS    (2)
  ) packet (
      .clk,
      .rst(plane_rst_q),
      .now(now_q),
      .local_addr,
      .rx,
      .tx,
      .frame,
      .payload,
      .user_tx(roce_tx),
      .user_tx_payload(roce_tx_payload),
      .arp_query,
      .arp_answer,
      .events(packet_events),
      .idle(packet_idle)
  );

  // ---- transport ----

  stream_if #(.T(rdma_wqe_t)) wqe ();
  stream_if #(.T(rdma_cqe_t)) cqe ();
  stream_if #(.T(mr_cmd_t)) mr_cmd ();
  stream_if #(.T(mr_rsp_t)) mr_rsp ();
  stream_if #(.T(conn_event_t)) conn ();
  stream_if #(.T(conn_answer_t)) conn_answer ();
  stream_if #(.T(connect_t)) connect ();
  stream_if #(.T(qp_cmd_t)) hand_cmd ();
  stream_if #(.T(logic)) hand_done ();
  stream_if #(.T(qp_event_t)) qp_event ();
  stream_if #(.T(qp_index_t)) rate_view ();
  stream_if #(.T(cc_view_t)) rate_viewed ();
  stream_if #(.T(qpn_t)) close ();
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(MASTER_ID_W)) master[MASTERS] ();

  roce_engine #(
      .DATA_W  (DATA_W),
      .ID_W    (MASTER_ID_W),
      .QPS     (QPS),
      .MRS     (MRS),
      .SQ_DEPTH(SQ_DEPTH),
      .RQ_DEPTH(RQ_DEPTH),
      .RD_DEPTH(RD_DEPTH),
      .CLIENTS (1),
      .CLOCK_HZ(CLOCK_HZ)
  ) roce (
      .clk,
      .rst(plane_rst_q),
      .now(now_q),
      .local_addr,
      .port(rpc_port),
      .extensions(1'b1),
      .congestion('{np_enable: 1'b1, min_time_between_cnps: 16'd50, default: '0}),
      .seed,
      .keepalive_cycles,
      .frame,
      .payload,
      .tx(roce_tx),
      .tx_payload(roce_tx_payload),
      .arp_query,
      .arp_answer,
      .wqe,
      .cqe,
      .mr_cmd,
      .mr_rsp,
      .connect,
      .conn,
      .conn_answer,
      .close,
      .hand_cmd,
      .hand_done,
      .qp_event,
      .view_qpn('0),
      .view(),
      .rate_view,
      .rate_viewed,
      .mem(master[0:2]),
      .rx_events(roce_rx_events),
      .tx_events(roce_tx_events),
      .cm_events,
      .idle(roce_idle)
  );

  assign connect.valid = 1'b0;
  assign hand_cmd.valid = 1'b0;
  assign hand_done.ready = 1'b1;
  assign qp_event.ready = 1'b1;
  assign rate_view.valid = 1'b0;
  assign rate_viewed.ready = 1'b1;
  stream_if #(.T(rdma_wqe_t)) kernel_wqe[SOCKETS] ();
  stream_if #(.T(rdma_cqe_t)) kernel_cqe[SOCKETS] ();
  for (genvar i = 0; i < SOCKETS; i++) begin : tied
    assign kernel_wqe[i].ready = 1'b0;
    assign kernel_cqe[i].valid = 1'b0;
  end

  // ---- compute ----

  stream_if #(.T(job_t)) job[SOCKETS] ();
  stream_if #(.T(done_t)) done[SOCKETS] ();
  window_t [SOCKETS-1:0] window;
  logic [SOCKETS-1:0] cancel;
  function_range_t [SOCKETS-1:0] functions;
  logic [SOCKETS-1:0] socket_idle;

  rpc_engine #(
      .DATA_W     (DATA_W),
      .QPS        (QPS),
      .SOCKETS    (SOCKETS),
      .MAX_REGIONS(MAX_REGIONS),
      .SQ_DEPTH   (SQ_DEPTH),
      .CTRL_BASE  (CTRL_BASE),
      .HEAP_BASE  (HEAP_BASE),
      .HEAP_SIZE  (HEAP_SIZE)
  ) rpc (
      .clk,
      .rst(plane_rst_q),
      .conn_event(conn),
      .conn_answer,
      .wqe,
      .cqe,
      .mr_cmd,
      .mr_rsp,
      .mem(master[3]),
      .job,
      .functions,
      .window,
      .cancel,
      .done,
      .close,
      .events(rpc_events),
      .idle(rpc_idle)
  );

  for (genvar i = 0; i < SOCKETS; i++) begin : sockets
    socket #(
        .DATA_W(DATA_W),
        .ID_W  (MASTER_ID_W),
        .KERNEL(KERNELS[i])
    ) socket (
        .clk,
        .rst(plane_rst_q),
        .kernel_timeout_cycles,
        .cancel(cancel[i]),
        .job(job[i]),
        .window(window[i]),
        .done(done[i]),
        .mem(master[4+i]),
        .wqe(kernel_wqe[i]),
        .cqe(kernel_cqe[i]),
        .ctrl(socket_bus[i]),
        .functions(functions[i]),
        .idle(socket_idle[i])
    );
  end

  // ---- memory ----

  axi_mux #(
      .N     (MASTERS),
      .DATA_W(DATA_W),
      .ID_W  (MASTER_ID_W)
  ) fabric (
      .clk,
      .rst(plane_rst_q),
      .in(master),
      .out(dram)
  );

  assign idle = control_idle && packet_idle && roce_idle && rpc_idle && (&socket_idle);
endmodule
