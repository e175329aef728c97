// SPDX-License-Identifier: Apache-2.0

// A Nacelle device: the planes, put together. Outside are an Ethernet MAC, DRAM controllers and a register bus.
//
//   MAC ── packet ── roce ── clients ┬ rpc ── sockets       (frames, work requests, jobs)
//                         │          ├ management port
//                         │          └ sockets whose kernels start RDMA
//                         └── with rpc and sockets ── fabric ── DRAM, one or several
//            ├── datagrams: UDP to and from the sockets
//            └── services: management by way of the network ──┐
//            └── network card, for the driver of the host, by a function of the slot: only if the device is built with one
//   slot ── pcie ── registers, memory, and host memory as one more: only if the device is built for a slot
//   bus ────────────────────────────────────────────────────── control: registers and counters; the registers of the sockets
//
// Only the control plane lives before the device is enabled: its addresses and its random seed are set first, then the enable bit
// ends the reset of the others. The enable bit acts once.
module nacelle_shell
  import packet_pkg::*;
  import frame_pkg::*;
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import compute_pkg::*;
  import rpc_pkg::*;
  import roce_requester_pkg::*;
  import roce_cc_pkg::*;
  import roce_counters_pkg::*;
  import device_pkg::*;
  import services_pkg::*;
  import link_pkg::*;
  import card_pkg::*;
  import classify_pkg::*;
  import address_pkg::*;
  import datagrams_pkg::*;
  import cci_pkg::*;
  import event_log_pkg::*;
  import shell_pkg::*;
  import cci_map_pkg::SOCKET_PAGE;
  import cci_map_pkg::IMAGES_PAGE;
  import images_pkg::*;
  import cci_map_pkg::HISTOGRAMS_PAGE;
  import cci_map_pkg::TRACE_PAGE;
  import cci_map_pkg::SENSORS_PAGE;
  import cci_map_pkg::COPY_PAGE;
  import cci_map_pkg::CLASSIFIER_PAGE;
  import cci_map_pkg::STREAM_PAGE;
  import pcie_pkg::pcie_events_t;
#(
    parameter int unsigned DATA_W = device_pkg::DATA_W,
    parameter int unsigned QPS = device_pkg::QPS,            // connections at once: a power of two, 8 to 1024
    parameter int unsigned MEMORIES = device_pkg::MEMORIES   // each with a port of its own
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [31:0] time_skip,  // cycles that pass on top of this one; 0 in hardware
    input  logic [63:0] chip_id,    // constant, of this chip alone, as its DNA; 0: the MAC address stands for it
    output logic        idle,       // nothing moves inside: only frames, the bus or timers can change anything
    output logic [SOCKETS-1:0] busy,   // sockets that have a call

    input  logic        link_up,    // the MAC has a link; only the driver of a network card is told
    axis_if.sink        rx,         // from the MAC
    axis_if.source      tx,         // to the MAC
    axil_if.slave       bus,
    stream_if.sink      sensor_reading,  // sensor_reading_t: of the board's sensors, one value after the other
    slot_if.device      slot,       // of a host, if PCIE
    axi_if.master       dram[MEMORIES]   // dram_data_w(DATA_W) bits of data, dram_id_w(MEMORIES) of ID
);
  if (!(DATA_W inside {64, 128, 256, 512})) begin : bad_width
    $fatal(1, "DATA_W is %0d; it must be 64, 128, 256 or 512", DATA_W);
  end

  localparam int unsigned TARGETS = targets(MEMORIES);

  if (MEMORIES < 1 || TARGETS > MAX_TARGETS || RPC_MEMORY >= MEMORIES) begin : bad_memories
    $fatal(1, "MEMORIES is %0d and RPC_MEMORY %0d; there are 1 to %0d memories, host memory among them", MEMORIES, RPC_MEMORY, MAX_TARGETS);
  end

  // ---- time and control ----

  localparam int unsigned NOW_W = $bits(ticks_t) + TICK_W;
  logic [NOW_W-1:0] now_q;
  always_ff @(posedge clk) begin
    if (rst) now_q <= '0;
    else now_q <= now_q + NOW_W'(time_skip) + 1'b1;
  end

  local_addr_t local_addr;
  logic [63:0] device_id;
  logic [15:0] rpc_port, listen_port;
  dscp_settings_t dscp;
  logic extensions;
  cm_limits_t connection_limits;
  cc_config_t congestion;
  logic [31:0] seed;
  logic [47:0] keepalive_cycles, kernel_timeout_cycles;
  logic [29:0] memory_per_caller;
  packet_events_t packet_events;
  roce_rx_events_t roce_rx_events;
  roce_tx_events_t roce_tx_events, engine_tx_events;
  cm_events_t cm_events;
  rpc_events_t rpc_events;
  memory_events_t memory_events;
  pcie_events_t pcie_events;
  logic control_idle, dropped;

  axil_if #(.ADDR_W(12)) socket_bus[SOCKETS] ();
  axil_if #(.ADDR_W(12)) management_bus ();
  axil_if #(.ADDR_W(12)) admission_bus ();
  axil_if #(.ADDR_W(12)) trace_bus ();
  axil_if #(.ADDR_W(12)) images_bus ();
  axil_if #(.ADDR_W(12)) histograms_bus ();
  axil_if #(.ADDR_W(12)) copy_bus ();
  axil_if #(.ADDR_W(12)) classifier_bus ();
  axil_if #(.ADDR_W(12)) stream_bus ();
  // Masters of the registers: the one from outside, the services, the kernels, who have a turn together, and the host by its BAR.
  localparam int unsigned SERVICES_BUS = 1;
  localparam int unsigned KERNELS_BUS = 2;
  localparam int unsigned HOST_BUS = KERNELS_BUS + 32'(REGISTERS != '0);
  localparam int unsigned BUSES = HOST_BUS + 32'(PCIE);
  axil_if #(.ADDR_W(20)) register_bus[BUSES] ();
  cci_settings_t cci_settings;
  service_events_t service_events;
  address_events_t address_events;
  logic            enable;
  mac_t            mac;
  address_settings_t address_settings;
  address_status_t address_status;
  discovery_settings_t discovery;
  link_settings_t  link;
  card_settings_t  card, card_used;             // as the operator, and as the card's driver has them
  logic            icmp_errors, unwanted_valid;
  unwanted_t       unwanted;
  withdrawal_t     withdrawal;
  logic            connections_closed, connections_abandoned;

  // Sources of the event log.
  localparam int unsigned LOG_ADMISSION = 0;     // two
  localparam int unsigned LOG_SESSIONS = 2;
  localparam int unsigned LOG_LOGINS = 3;
  localparam int unsigned LOG_SOCKET = 4;        // each
  localparam int unsigned LOG_CM = LOG_SOCKET + SOCKETS;
  localparam int unsigned LOG_QPS = LOG_CM + 1;
  localparam int unsigned LOG_ADDRESSES = LOG_QPS + 1;
  localparam int unsigned LOG_COPIES = LOG_ADDRESSES + 1;
  localparam int unsigned LOG_STREAM = LOG_COPIES + 1;
  localparam int unsigned LOG_SOURCES = LOG_STREAM + 1;
  log_event_t [LOG_SOURCES-1:0] to_log;

  // Blocks of registers that a device can do without: the page of what follows each in the chain.
  localparam logic [7:0] AFTER_CLASSIFIER = STREAM ? STREAM_PAGE : SOCKET_PAGE;
  localparam logic [7:0] AFTER_COPY = CLASSIFIER ? CLASSIFIER_PAGE : AFTER_CLASSIFIER;
  localparam logic [7:0] AFTER_SENSORS = COPY ? COPY_PAGE : AFTER_COPY;
  localparam logic [7:0] AFTER_IMAGES = SENSORS != 0 ? SENSORS_PAGE : AFTER_SENSORS;
  localparam logic [7:0] AFTER_HISTOGRAMS = IMAGE_SLOTS != 0 ? IMAGES_PAGE : AFTER_IMAGES;
  localparam logic [7:0] AFTER_TRACE = HISTOGRAMS ? HISTOGRAMS_PAGE : AFTER_HISTOGRAMS;
  localparam logic [7:0] AFTER_LOG = TRACE_ROWS != 0 ? TRACE_PAGE : AFTER_TRACE;

  axil_wires outside (.in(bus), .out(register_bus[0]));

  control_plane #(
      .DATA_W    (DATA_W),
      .CLOCK_HZ  (CLOCK_HZ),
      .QPS       (QPS),
      .MRS       (MRS),
      .SOCKETS   (SOCKETS),
      .BUSES     (BUSES),
      .LOG_SOURCES(LOG_SOURCES),
      .LOG       (EVENT_LOG),
      .COUNTERS  (COUNTERS),
      .STORE     (IMAGE_SLOTS != 0),
      .AFTER_LOG (AFTER_LOG),
      .AFTER_SENSORS(AFTER_SENSORS),
      .IPV6      (IPV6),
      .SENSORS   (SENSORS),
      .SENSOR_NAMES(SENSOR_NAMES),
      .SENSOR_KINDS(SENSOR_KINDS),
      .PCIE      (PCIE),
      .COPY      (COPY),
      .CARD      (NETWORK_CARD),
      .CLASSIFIER(CLASSIFIER),
      .STREAM    (STREAM),
      .DRAM_BYTES(DRAM_BYTES),
      .BUILD_REVISION(BUILD_REVISION),
      .BUILD_DIGEST(BUILD_DIGEST),
      .MESSAGES  (64'(CTRL_BASE)),
      .MESSAGES_BYTES(CONTEXTS * CTRL_BYTES)
  ) control (
      .clk,
      .rst,
      .now(48'(now_q)),
      .bus(register_bus),
      .socket(socket_bus),
      .management(management_bus),
      .admission(admission_bus),
      .trace(trace_bus),
      .images(images_bus),
      .histograms(histograms_bus),
      .copy(copy_bus),
      .classifier(classifier_bus),
      .stream(stream_bus),
      .sensor_reading,
      .chip_id,
      .enable,
      .mac,
      .address_settings,
      .address_status,
      .discovery,
      .link,
      .icmp_errors,
      .link_up,
      .card,
      .local_addr,
      .device_id,
      .rpc_port,
      .listen_port,
      .dscp,
      .extensions,
      .connection_limits,
      .congestion,
      .seed,
      .keepalive_cycles,
      .kernel_timeout_cycles,
      .memory_per_caller,
      .cci_settings,
      .packet_events,
      .roce_rx_events,
      .roce_tx_events,
      .cm_events,
      .rpc_events,
      .memory_events,
      .service_events,
      .address_events,
      .pcie_events,
      .to_log,
      .dropped,
      .idle(control_idle)
  );

  logic plane_rst_q;
  always_ff @(posedge clk) begin
    if (rst) plane_rst_q <= 1'b1;
    else if (enable) plane_rst_q <= 1'b0;
  end

  // ---- admission: set up before the device is enabled, so that nobody connects before ----

  logic asks, judged, admits, leaves, sweep, admission_idle;
  admission_ask_t ask;
  admission_verdict_t verdict;
  admission_entry_t admitted, quota_of;
  admission_ended_t ended;
  logic [29:0] quota;

  roce_admission #(
      .CLOCK_HZ(CLOCK_HZ),
      .IPV6    (IPV6)
  ) admission (
      .clk,
      .rst,
      .now(48'(now_q)),
      .bus(admission_bus),
      .asks,
      .ask,
      .judged,
      .verdict,
      .opens(admits),
      .leaves,
      .changed(admitted),
      .ended,
      .sweep,
      .quota_of,
      .quota,
      .to_log(to_log[LOG_ADMISSION+:2]),
      .idle(admission_idle)
  );

  // ---- trace of frames: it sees what the MAC sees, also before the device is enabled ----

  logic trace_idle;
  if (TRACE_ROWS != 0) begin : g_trace
    axis_if #(.DATA_W(DATA_W)) seen[2] ();
    assign seen[0].tdata  = rx.tdata;
    assign seen[0].tkeep  = rx.tkeep;
    assign seen[0].tlast  = rx.tlast;
    assign seen[0].tuser  = rx.tuser;
    assign seen[0].tvalid = rx.tvalid;
    assign seen[0].tready = rx.tready;
    assign seen[1].tdata  = tx.tdata;
    assign seen[1].tkeep  = tx.tkeep;
    assign seen[1].tlast  = tx.tlast;
    assign seen[1].tuser  = tx.tuser;
    assign seen[1].tvalid = tx.tvalid;
    assign seen[1].tready = tx.tready;

    frame_trace #(
        .DATA_W  (DATA_W),
        .ROWS    (TRACE_ROWS),
        .FRAMES  (TRACE_FRAMES),
        .TICKS_HZ(CLOCK_HZ),
        .NEXT    ({12'd0, AFTER_TRACE, 12'd0})
    ) trace (
        .clk,
        .rst,
        .now(48'(now_q)),
        .seen,
        .drop(dropped),
        .bus(trace_bus),
        .idle(trace_idle)
    );
  end else begin : g_no_trace
    axil_access nobody (
        .clk, .rst, .bus(trace_bus), .at(), .write(), .wdata(), .readable(1'b0), .writable(1'b0), .rdata('0), .idle(trace_idle)
    );
    logic unused_ok;
    assign unused_ok = &{1'b0, dropped};
  end

  // ---- classifier: which frames the device and its network card get ----

  classified_t classified;
  logic classified_next, classified_applied, classifier_idle;
  if (CLASSIFIER) begin : g_classifier
    axis_if #(.DATA_W(DATA_W)) line ();
    assign line.tdata  = rx.tdata;
    assign line.tkeep  = rx.tkeep;
    assign line.tlast  = rx.tlast;
    assign line.tuser  = rx.tuser;
    assign line.tvalid = rx.tvalid;
    assign line.tready = rx.tready;
    classify_plane #(
        .DATA_W(DATA_W),
        .PAIRS (NETWORK_CARD ? NETWORK_PAIRS : 0),
        .NEXT  ({12'd0, AFTER_CLASSIFIER, 12'd0})
    ) classifier (
        .clk,
        .rst,
        .line_rst(plane_rst_q),
        .line,
        .classified,
        .next(classified_next),
        .applied(classified_applied),
        .bus(classifier_bus),
        .idle(classifier_idle)
    );
  end else begin : g_no_classifier
    axil_access nobody (
        .clk, .rst, .bus(classifier_bus), .at(), .write(), .wdata(), .readable(1'b0), .writable(1'b0), .rdata('0), .idle(classifier_idle)
    );
    assign classified = '0;
    wire unused_classifier = &{1'b0, classified_next, classified_applied};
  end

  // ---- network ----

  stream_if #(.T(frame_rx_t)) frame ();
  axis_if #(.DATA_W(DATA_W)) payload ();
  localparam int unsigned ROCE_SENDERS = 2;      // those of the transport
  localparam int unsigned SERVICES_SENDER = ROCE_SENDERS;
  localparam int unsigned DATAGRAMS_SENDER = SERVICES_SENDER + 1;
  localparam bit          HAS_DATAGRAMS = DATAGRAMS != '0;
  localparam int unsigned SENDERS = DATAGRAMS_SENDER + 32'(HAS_DATAGRAMS);
  stream_if #(.T(frame_tx_t)) user_tx[SENDERS] ();
  axis_if #(.DATA_W(DATA_W)) user_tx_payload[SENDERS] ();
  stream_if #(.T(frame_rx_t)) service_frame ();
  axis_if #(.DATA_W(DATA_W)) service_payload ();
  service_ports_t service_ports;
  stream_if #(.T(frame_rx_t)) datagram_frame ();
  axis_if #(.DATA_W(DATA_W)) datagram_payload ();
  logic [SOCKETS-1:0][15:0] datagram_ports;
  stream_if #(.T(ip_addr_t)) roce_query ();
  stream_if #(.T(arp_answer_t)) roce_answer ();
  stream_if #(.T(ip_addr_t)) arp_query ();
  stream_if #(.T(arp_answer_t)) arp_answer ();
  stream_if #(.T(arp_claim_t)) arp_claim ();
  arp_watch_t arp_watch;
  logic arp_conflict, nd_conflict;
  nd_watch_t nd_watch;
  ipv4_addr_t register_client;
  axis_if #(.DATA_W(DATA_W)) card_rx ();
  axis_if #(.DATA_W(DATA_W)) card_tx ();
  card_verdict_t card_rx_verdict;
  logic packet_idle, services_idle, datagrams_idle, roce_idle, rpc_idle;

  packet_plane #(
      .DATA_W   (DATA_W),
      .MAX_FRAME(MAX_FRAME),
      .CLOCK_HZ (CLOCK_HZ),
      .USERS    (SENDERS),
      .ROCE_USERS(ROCE_SENDERS),
      .DATAGRAM_PORTS(SOCKETS),
      .CARD     (NETWORK_CARD),
      .CARD_FRAME(NETWORK_FRAME),
      .LINK_CONTROL(LINK_CONTROL),
      .IPV6     (IPV6)
  ) packet (
      .clk,
      .rst(plane_rst_q),
      .now(48'(now_q)),
      .local_addr,
      .link,
      .card(card_used),
      .rx,
      .tx,
      .frame,
      .payload,
      .service_ports,
      .service_frame,
      .service_payload,
      .datagram_ports,
      .datagram_frame,
      .datagram_payload,
      .user_tx,
      .user_tx_payload,
      .card_rx,
      .card_rx_verdict,
      .card_tx,
      .classified,
      .classified_next,
      .classified_applied,
      .arp_query,
      .arp_answer,
      .arp_claim,
      .arp_watch,
      .arp_conflict,
      .nd_watch,
      .nd_conflict,
      .unwanted_valid,
      .unwanted,
      .events(packet_events),
      .idle(packet_idle)
  );

  services_plane #(
      .DATA_W   (DATA_W),
      .CLOCK_HZ (CLOCK_HZ),
      .DISCOVERY(DISCOVERY),
      .IPV6     (IPV6)
  ) services (
      .clk,
      .rst(plane_rst_q),
      .now(48'(now_q)),
      .enable,
      .mac,
      .local_addr,
      .address_settings,
      .address_status,
      .discovery,
      .icmp_errors,
      .unwanted_valid,
      .unwanted,
      .settings(cci_settings),
      .ports(service_ports),
      .frame(service_frame),
      .payload(service_payload),
      .tx(user_tx[SERVICES_SENDER]),
      .tx_payload(user_tx_payload[SERVICES_SENDER]),
      .bus(register_bus[SERVICES_BUS]),
      .claim(arp_claim),
      .watch(arp_watch),
      .conflict(arp_conflict),
      .nd_watch,
      .nd_conflict,
      .withdrawal,
      .closed(connections_closed),
      .abandoned(connections_abandoned),
      .events(service_events),
      .address_events,
      .client(register_client),
      .idle(services_idle)
  );

  // ---- accesses of the kernels to the registers ----

  axil_if #(.ADDR_W(20)) kernel_bus[SOCKETS] ();
  logic kernel_buses_idle;

  if (REGISTERS != '0) begin : g_kernel_buses
    localparam int unsigned KERNELS = $countones(REGISTERS);
    axil_if #(.ADDR_W(20)) asking[KERNELS] ();
    for (genvar i = 0; i < SOCKETS; i++) begin : g_socket
      localparam logic [SOCKETS-1:0] BEFORE = SOCKETS'((1 << i) - 1);
      if (REGISTERS[i]) begin : g_asks
        axil_wires joined (.in(kernel_bus[i]), .out(asking[$countones(REGISTERS & BEFORE)]));
      end else begin : g_none
        kernel_no_registers nobody (.clk, .rst(plane_rst_q), .ctrl(kernel_bus[i]));
      end
    end
    axil_mux #(.N(KERNELS)) turns (.clk, .rst(plane_rst_q), .in(asking), .out(register_bus[KERNELS_BUS]), .idle(kernel_buses_idle));
  end else begin : g_no_kernel_buses
    for (genvar i = 0; i < SOCKETS; i++) begin : g_socket
      kernel_no_registers nobody (.clk, .rst(plane_rst_q), .ctrl(kernel_bus[i]));
    end
    assign kernel_buses_idle = 1'b1;
  end

  // ---- datagrams of the kernels ----

  axis_if #(.DATA_W(DATA_W)) to_kernel[SOCKETS] ();
  axis_if #(.DATA_W(DATA_W)) from_kernel[SOCKETS] ();
  datagram_settings_t [SOCKETS-1:0] datagram_settings;
  logic [SOCKETS-1:0] streams_off;
  logic [SOCKETS-1:0][$clog2(COUNTS)-1:0] datagram_counter_at;
  logic [SOCKETS-1:0][31:0] datagram_counter;

  if (HAS_DATAGRAMS) begin : g_datagrams
    stream_if #(.T(ip_addr_t)) queries[2] ();
    stream_if #(.T(arp_answer_t)) answers[2] ();
    assign queries[0].valid  = roce_query.valid;
    assign queries[0].data   = roce_query.data;
    assign roce_query.ready  = queries[0].ready;
    assign roce_answer.valid = answers[0].valid;
    assign roce_answer.data  = answers[0].data;
    assign answers[0].ready  = roce_answer.ready;

    stream_share #(
        .COMMAND(ip_addr_t),
        .ANSWER (arp_answer_t),
        .N      (2)
    ) resolution (
        .clk,
        .rst(plane_rst_q),
        .command(queries),
        .answer(answers),
        .to_server(arp_query),
        .from_server(arp_answer)
    );

    datagrams_plane #(
        .DATA_W  (DATA_W),
        .CLOCK_HZ(CLOCK_HZ),
        .SOCKETS (SOCKETS),
        .BUILT   (DATAGRAMS)
    ) datagrams (
        .clk,
        .rst(plane_rst_q),
        .elapsed(33'(time_skip) + 1'b1),
        .local_addr,
        .settings(datagram_settings),
        .off(streams_off),
        .ports(datagram_ports),
        .frame(datagram_frame),
        .payload(datagram_payload),
        .to_kernel,
        .from_kernel,
        .tx(user_tx[DATAGRAMS_SENDER]),
        .tx_payload(user_tx_payload[DATAGRAMS_SENDER]),
        .query(queries[1]),
        .answer(answers[1]),
        .counter_at(datagram_counter_at),
        .counter(datagram_counter),
        .idle(datagrams_idle)
    );
  end else begin : g_no_datagrams
    assign arp_query.valid   = roce_query.valid;
    assign arp_query.data    = roce_query.data;
    assign roce_query.ready  = arp_query.ready;
    assign roce_answer.valid = arp_answer.valid;
    assign roce_answer.data  = arp_answer.data;
    assign arp_answer.ready  = roce_answer.ready;
    assign datagram_ports          = '0;
    assign datagram_frame.ready    = 1'b1;
    assign datagram_payload.tready = 1'b1;
    assign datagram_counter        = '0;
    assign datagrams_idle          = 1'b1;
    for (genvar i = 0; i < SOCKETS; i++) begin : g_socket
      assign to_kernel[i].tvalid   = 1'b0;
      assign to_kernel[i].tdata    = '0;
      assign to_kernel[i].tkeep    = '0;
      assign to_kernel[i].tlast    = 1'b0;
      assign to_kernel[i].tuser    = 1'b0;
      assign from_kernel[i].tready = 1'b0;
    end
    logic unused_ok;
    assign unused_ok = &{1'b0, datagram_settings, streams_off, datagram_counter_at};
  end

  // ---- transport ----

  stream_if #(.T(rdma_wqe_t)) wqe ();
  stream_if #(.T(rdma_cqe_t)) cqe ();
  stream_if #(.T(mr_cmd_t)) mr_cmd ();
  stream_if #(.T(mr_rsp_t)) mr_rsp ();
  stream_if #(.T(connect_t)) connect ();
  stream_if #(.T(conn_event_t)) conn ();
  stream_if #(.T(conn_answer_t)) conn_answer ();
  stream_if #(.T(close_t)) close ();
  stream_if #(.T(close_t)) closes[2] ();       // of clients, of all that use an address
  stream_if #(.T(qp_cmd_t)) hand_cmd ();
  stream_if #(.T(logic)) hand_done ();
  localparam int unsigned HANDS = 3;           // software, what clients give up, what ends with the address
  stream_if #(.T(qp_cmd_t)) hands_cmd[HANDS] ();
  stream_if #(.T(logic)) hands_done[HANDS] ();
  stream_if #(.T(qp_event_t)) qp_event ();
  stream_if #(.T(qp_index_t)) rate_view ();
  stream_if #(.T(cc_view_t)) rate_viewed ();
  stream_if #(.T(qp_index_t)) counters_view ();
  stream_if #(.T(qp_counters_t)) counters_viewed ();
  logic made, gone, unsignaled, refused, clients_idle, management_idle, withdrawal_idle;
  qp_cmd_t changed;
  qp_index_t unsignaled_index;
  qpn_t view_qpn;
  qp_view_t view;
  client_t owner;
  pd_t owner_pd;
  localparam int unsigned MASTERS = masters(MEMORIES);
  localparam memory_map_t MAP = memory_map();
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(MASTER_ID_W)) master[MASTERS] ();

  // All that share the transport now may use LOCAL_DMA_LKEY: the RPC engine, whose requests are its own; the manager, who may register any
  // region; the kernels, which their sockets confine.
  localparam logic [MAX_CLIENTS-1:0] TRUSTED = MAX_CLIENTS'((1 << CLIENTS) - 1);

  // Contexts are a matter of the RPC engine.
  localparam contexts_t [MAX_CLIENTS-1:0] CLIENT_CONTEXTS = CONTEXTS > 1 ? ($bits(contexts_t) * MAX_CLIENTS)'(CONTEXTS) << RPC_CLIENT * $bits(contexts_t) : '0;

  // The RPC engine neither connects nor posts READs and atomics: only software and kernels do.
  localparam bit INITIATES = MANAGEMENT_PORT || CLIENTS > 2;

  roce_engine #(
      .DATA_W  (DATA_W),
      .ID_W    (MASTER_ID_W),
      .QPS     (QPS),
      .MRS     (MRS),
      .SQ_DEPTH(SQ_DEPTH),
      .RQ_DEPTH(RQ_DEPTH),
      .RD_DEPTH(RD_DEPTH),
      .CONGESTION_CONTROL(CONGESTION_CONTROL),
      .SELECTIVE_REPEAT(SELECTIVE_REPEAT),
      .READS   (INITIATES),
      .CONNECTS(INITIATES),
      .IPV6    (IPV6),
      .CLIENTS (CLIENTS),
      .TRUSTED (TRUSTED),
      .CONTEXTS(CLIENT_CONTEXTS),
      .LONG_SET_UP(MAX_CLIENTS'(LONG_SET_UP) << RPC_CLIENT),
      .CLOCK_HZ(CLOCK_HZ),
      .MEMORIES(TARGETS),
      .MAP     (MAP)
  ) roce (
      .clk,
      .rst(plane_rst_q),
      .now(48'(now_q)),
      .local_addr,
      .guid(device_id),
      .port((16*CLIENTS)'({MANAGEMENT_PORT ? listen_port : 16'd0, rpc_port})),
      .dscp,
      .extensions,
      .limits(connection_limits),
      .asks,
      .ask,
      .judged,
      .verdict,
      .admits,
      .leaves,
      .admitted,
      .ended,
      .sweep,
      .congestion,
      .leaving(withdrawal.leaving),
      .abandon(withdrawal.abandon),
      .closed(connections_closed),
      .seed,
      .keepalive_cycles,
      .frame,
      .payload,
      .tx(user_tx[0:1]),
      .tx_payload(user_tx_payload[0:1]),
      .arp_query(roce_query),
      .arp_answer(roce_answer),
      .wqe,
      .cqe,
      .unsignaled,
      .unsignaled_index,
      .mr_cmd,
      .mr_rsp,
      .connect,
      .conn,
      .conn_answer,
      .close,
      .hand_cmd,
      .hand_done,
      .qp_event,
      .view_qpn,
      .view,
      .made,
      .gone,
      .changed,
      .rate_view,
      .rate_viewed,
      .counters_view,
      .counters_viewed,
      .mem(master[ROCE_MASTER:MASTERS-1]),
      .rx_events(roce_rx_events),
      .tx_events(engine_tx_events),
      .cm_events,
      .to_log(to_log[LOG_CM]),
      .idle(roce_idle)
  );

  // ---- who shares the transport ----

  stream_if #(.T(rdma_wqe_t)) client_wqe[CLIENTS] ();
  stream_if #(.T(rdma_cqe_t)) client_cqe[CLIENTS] ();
  stream_if #(.T(connect_t)) client_connect[CLIENTS] ();
  stream_if #(.T(conn_event_t)) client_conn[CLIENTS] ();
  stream_if #(.T(conn_answer_t)) client_conn_answer[CLIENTS] ();
  stream_if #(.T(qpn_t)) client_close[CLIENTS] ();
  stream_if #(.T(mr_cmd_t)) client_mr_cmd[CLIENTS] ();
  stream_if #(.T(mr_rsp_t)) client_mr_rsp[CLIENTS] ();
  logic [CLIENTS-1:0] settled, abandon;

  roce_clients #(
      .N       (CLIENTS),
      .QPS     (QPS),
      .CQ_DEPTH(CQ_DEPTH),
      .ADMIN   (client_t'(MANAGEMENT_CLIENT))
  ) clients (
      .clk,
      .rst(plane_rst_q),
      .client_wqe,
      .client_cqe,
      .client_connect,
      .client_conn,
      .client_conn_answer,
      .client_close,
      .client_mr_cmd,
      .client_mr_rsp,
      .wqe,
      .cqe,
      .connect,
      .conn,
      .conn_answer,
      .close(closes[0]),
      .mr_cmd,
      .mr_rsp,
      .made,
      .gone,
      .changed_qpn(changed.qpn),
      .changed_client(changed.attr.client),
      .changed_pd(changed.attr.pd),
      .retired(unsignaled),
      .retired_index(unsignaled_index),
      .owner_qpn(view_qpn),
      .owner,
      .owner_pd,
      .abandon,
      .fail(hands_cmd[1]),
      .failed(hands_done[1]),
      .refused,
      .settled,
      .idle(clients_idle)
  );

  stream_share #(
      .COMMAND(qp_cmd_t),
      .ANSWER (logic),
      .N      (HANDS)
  ) hands (
      .clk,
      .rst(plane_rst_q),
      .command(hands_cmd),
      .answer(hands_done),
      .to_server(hand_cmd),
      .from_server(hand_done)
  );

  roce_close_all #(
      .QPS(QPS)
  ) address_withdrawal (
      .clk,
      .rst(plane_rst_q),
      .leaving(withdrawal.leaving),
      .abandon(withdrawal.abandon),
      .made,
      .changed,
      .abandoned(connections_abandoned),
      .closing(closes[1]),
      .command(hands_cmd[2]),
      .answer(hands_done[2]),
      .idle(withdrawal_idle)
  );

  stream_arbiter #(
      .T(close_t),
      .N(2)
  ) closings (
      .clk,
      .rst(plane_rst_q),
      .in(closes),
      .last('1),
      .out(close)
  );

  if (MANAGEMENT_PORT) begin : g_management
    roce_management #(
        .QPS(QPS)
    ) management (
        .clk,
        .rst(plane_rst_q),
        .bus(management_bus),
        .hand_cmd(hands_cmd[0]),
        .hand_done(hands_done[0]),
        .qp_event,
        .view_qpn,
        .view,
        .owner,
        .owner_pd,
        .rate_view,
        .rate_viewed,
        .counters_view,
        .counters_viewed,
        .wqe(client_wqe[MANAGEMENT_CLIENT]),
        .cqe(client_cqe[MANAGEMENT_CLIENT]),
        .mr_cmd(client_mr_cmd[MANAGEMENT_CLIENT]),
        .mr_rsp(client_mr_rsp[MANAGEMENT_CLIENT]),
        .connect(client_connect[MANAGEMENT_CLIENT]),
        .conn(client_conn[MANAGEMENT_CLIENT]),
        .conn_answer(client_conn_answer[MANAGEMENT_CLIENT]),
        .close(client_close[MANAGEMENT_CLIENT]),
        .idle(management_idle)
    );
  end else begin : g_management
    roce_no_management management (
        .clk,
        .rst(plane_rst_q),
        .bus(management_bus),
        .hand_cmd(hands_cmd[0]),
        .hand_done(hands_done[0]),
        .qp_event,
        .view_qpn,
        .rate_view,
        .rate_viewed,
        .counters_view,
        .counters_viewed,
        .wqe(client_wqe[MANAGEMENT_CLIENT]),
        .cqe(client_cqe[MANAGEMENT_CLIENT]),
        .mr_cmd(client_mr_cmd[MANAGEMENT_CLIENT]),
        .mr_rsp(client_mr_rsp[MANAGEMENT_CLIENT]),
        .connect(client_connect[MANAGEMENT_CLIENT]),
        .conn(client_conn[MANAGEMENT_CLIENT]),
        .conn_answer(client_conn_answer[MANAGEMENT_CLIENT]),
        .close(client_close[MANAGEMENT_CLIENT]),
        .idle(management_idle)
    );
    logic unused_ok;
    assign unused_ok = &{1'b0, view, owner, owner_pd, listen_port};
  end

  always_comb begin
    roce_tx_events             = engine_tx_events;
    roce_tx_events.wqe_refused = refused;
  end

  // A kernel posts work requests, on queue pairs that software made for it and on those of connections that it has opened. Its connections
  // are with the sockets below. It registers no regions.
  for (genvar i = 0; i < CLIENTS; i++) begin : plain_client
    if (i != RPC_CLIENT && i != MANAGEMENT_CLIENT) begin : kernel
      assign client_mr_cmd[i].valid = 1'b0;
      assign client_mr_cmd[i].data  = '0;
      assign client_mr_rsp[i].ready = 1'b1;
    end
  end
  assign client_connect[RPC_CLIENT].valid = 1'b0;
  assign client_connect[RPC_CLIENT].data  = '0;

  // ---- compute ----

  stream_if #(.T(job_t)) job[SOCKETS] ();
  stream_if #(.T(done_t)) done[SOCKETS] ();
  window_t [SOCKETS-1:0] window;
  logic [SOCKETS-1:0] cancel;
  function_set_t [SOCKETS-1:0] functions;
  held_t [SOCKETS-1:0] held;
  logic [SOCKETS-1:0] paused, calls_running;
  call_progress_t calls_progress;
  logic [SOCKETS-1:0] socket_idle;
  logic [TARGETS-1:0] others_write;

  localparam addr_t HEAP_BASE = CTRL_BASE + addr_t'(QPS * CONTEXTS * CTRL_BYTES);

  rpc_engine #(
      .DATA_W     (DATA_W),
      .QPS        (QPS),
      .CONTEXTS   (CONTEXTS),
      .LONG_SET_UP(LONG_SET_UP),
      .CYCLES_PER_MS(CLOCK_HZ / 1000),
      .SOCKETS    (SOCKETS),
      .MAX_REGIONS(MAX_REGIONS),
      .SQ_DEPTH   (SQ_DEPTH),
      .DESCRIPTION_BASE(DESCRIPTION_BASE),
      .CTRL_BASE  (CTRL_BASE),
      .HEAP_BASE  (HEAP_BASE),
      .HEAP_SIZE  (HOSTS_BASE - HEAP_BASE)
  ) rpc (
      .clk,
      .rst(plane_rst_q),
      .conn_event(client_conn[RPC_CLIENT]),
      .conn_answer(client_conn_answer[RPC_CLIENT]),
      .wqe(client_wqe[RPC_CLIENT]),
      .cqe(client_cqe[RPC_CLIENT]),
      .mr_cmd(client_mr_cmd[RPC_CLIENT]),
      .mr_rsp(client_mr_rsp[RPC_CLIENT]),
      .mem(master[RPC_MASTER]),
      .clear_mem(master[CLEAR_MASTER]),
      .others_write(others_write[RPC_MEMORY]),
      .now(ticks_t'(now_q >> TICK_W)),
      .memory_per_caller,
      .quota_of,
      .quota,
      .job,
      .functions,
      .held,
      .paused,
      .window,
      .cancel,
      .done,
      .close(client_close[RPC_CLIENT]),
      .events(rpc_events),
      .running(calls_running),
      .progress(calls_progress),
      .idle(rpc_idle)
  );
  assign busy = calls_running;

  // ---- images that come by the network ----

  logic [SOCKETS-1:0][MAX_SLOTS-1:0] uploaded, used;
  image_slot_t [SOCKETS-1:0] record_slot;
  record_word_t [SOCKETS-1:0] record_at;
  logic [SOCKETS-1:0][31:0] store_word;
  stream_if #(.T(store_word_t)) fetch[SOCKETS] ();
  stream_if #(.T(store_answer_t)) fetched[SOCKETS] ();
  logic store_idle;

  if (IMAGE_SLOTS != 0) begin : g_store
    image_store #(
        .SLOTS     (IMAGE_SLOTS),
        .SLOT_BYTES(IMAGE_SLOT_BYTES),
        .SOCKETS   (SOCKETS),
        .TAKES     (takes_images()),
        .BUILD     (BUILD_DIGEST),
        .BASE      (STORE_BASE),
        .NEXT      ({12'd0, AFTER_IMAGES, 12'd0}),
        .DATA_W    (DATA_W)
    ) store (
        .clk,
        .rst,
        .bus(images_bus),
        .used,
        .verified(uploaded),
        .record_slot,
        .record_at,
        .record_word(store_word),
        .fetch,
        .fetched,
        .mem(master[IMAGE_MASTER]),
        .idle(store_idle)
    );
  end else begin : g_no_store
    assign uploaded   = '0;
    assign store_word = '0;
    assign store_idle = 1'b1;
    assign {images_bus.awready, images_bus.wready, images_bus.bvalid, images_bus.arready, images_bus.rvalid} = '0;
    assign {images_bus.bresp, images_bus.rresp, images_bus.rdata} = '0;
    for (genvar i = 0; i < SOCKETS; i++) begin : g_socket
      assign fetch[i].ready   = 1'b0;
      assign fetched[i].valid = 1'b0;
      assign fetched[i].data  = '0;
      wire unused = &{1'b0, fetch[i].valid, fetch[i].data, fetched[i].ready};
    end
    wire unused = &{1'b0, used, record_slot, record_at, images_bus.awaddr, images_bus.awvalid, images_bus.wdata, images_bus.wstrb, images_bus.wvalid,
                    images_bus.bready, images_bus.araddr, images_bus.arvalid, images_bus.rready};
  end

  // ---- histograms of calls: they can be read, and are 0, also before the device is enabled ----

  logic histograms_idle;
  if (HISTOGRAMS) begin : g_histograms
    call_histograms #(
        .SOCKETS (SOCKETS),
        .QPS     (QPS),
        .CONTEXTS(CONTEXTS),
        .CLOCK_HZ(CLOCK_HZ),
        .NEXT    ({12'd0, AFTER_HISTOGRAMS, 12'd0})
    ) histograms (
        .clk,
        .rst,
        .now(48'(now_q)),
        .progress(calls_progress),
        .running(calls_running),
        .bus(histograms_bus),
        .idle(histograms_idle)
    );
  end else begin : g_no_histograms
    axil_access nobody (
        .clk, .rst, .bus(histograms_bus), .at(), .write(), .wdata(), .readable(1'b0), .writable(1'b0), .rdata('0), .idle(histograms_idle)
    );
    logic unused_ok;
    assign unused_ok = &{1'b0, calls_progress};
  end

  stream_if #(.T(rdma_wqe_t)) kernel_wqe[SOCKETS] ();
  stream_if #(.T(rdma_cqe_t)) kernel_cqe[SOCKETS] ();
  stream_if #(.T(connect_t)) kernel_connect[SOCKETS] ();
  stream_if #(.T(conn_event_t)) kernel_conn[SOCKETS] ();
  stream_if #(.T(conn_answer_t)) kernel_conn_answer[SOCKETS] ();
  stream_if #(.T(qpn_t)) kernel_close[SOCKETS] ();
  logic [SOCKETS-1:0] rdma_settled, gives_up;

  for (genvar i = 0; i < SOCKETS; i++) begin : sockets
    socket #(
        .DATA_W(DATA_W),
        .ID_W  (MASTER_ID_W),
        .IMAGES(IMAGES[i]),
        .SLOTS (IMAGES[i] > 1 ? IMAGE_SLOTS : 0),
        .KERNELS(KERNELS[i]),
        .RDMA  (RDMA_CLIENT[i] != NO_CLIENT),
        .CONNECTIONS(CONNECTIONS[i]),
        .DATAGRAMS(DATAGRAMS[i]),
        .REGISTERS(REGISTERS[i])
    ) socket (
        .clk,
        .rst(plane_rst_q),
        .page(SOCKET_PAGE + 8'(i)),
        .next_block(i == SOCKETS - 1 ? '0 : {SOCKET_PAGE + 8'(i + 1), 12'd0}),
        .kernel_timeout_cycles,
        .cancel(cancel[i]),
        .job(job[i]),
        .window(window[i]),
        .done(done[i]),
        .mem(master[SOCKET_MASTER+i]),
        .rx(to_kernel[i]),
        .tx(from_kernel[i]),
        .streams_off(streams_off[i]),
        .datagrams(datagram_settings[i]),
        .counter_at(datagram_counter_at[i]),
        .counter(datagram_counter[i]),
        .wqe(kernel_wqe[i]),
        .cqe(kernel_cqe[i]),
        .connect(kernel_connect[i]),
        .conn(kernel_conn[i]),
        .conn_answer(kernel_conn_answer[i]),
        .close(kernel_close[i]),
        .abandon(gives_up[i]),
        .rdma_settled(rdma_settled[i]),
        .ctrl(socket_bus[i]),
        .bus(kernel_bus[i]),
        .uploaded(uploaded[i]),
        .used(used[i]),
        .record_slot(record_slot[i]),
        .record_at(record_at[i]),
        .store_word(store_word[i]),
        .fetch(fetch[i]),
        .fetched(fetched[i]),
        .functions(functions[i]),
        .held(held[i]),
        .paused(paused[i]),
        .idle(socket_idle[i])
    );

    if (RDMA_CLIENT[i] != NO_CLIENT) begin : rdma
      assign client_wqe[RDMA_CLIENT[i]].valid = kernel_wqe[i].valid;
      assign client_wqe[RDMA_CLIENT[i]].data  = kernel_wqe[i].data;
      assign kernel_wqe[i].ready              = client_wqe[RDMA_CLIENT[i]].ready;
      assign kernel_cqe[i].valid              = client_cqe[RDMA_CLIENT[i]].valid;
      assign kernel_cqe[i].data               = client_cqe[RDMA_CLIENT[i]].data;
      assign client_cqe[RDMA_CLIENT[i]].ready = kernel_cqe[i].ready;
      assign rdma_settled[i]                  = settled[RDMA_CLIENT[i]];

      assign client_connect[RDMA_CLIENT[i]].valid     = kernel_connect[i].valid;
      assign client_connect[RDMA_CLIENT[i]].data      = kernel_connect[i].data;
      assign kernel_connect[i].ready                  = client_connect[RDMA_CLIENT[i]].ready;
      assign kernel_conn[i].valid                     = client_conn[RDMA_CLIENT[i]].valid;
      assign kernel_conn[i].data                      = client_conn[RDMA_CLIENT[i]].data;
      assign client_conn[RDMA_CLIENT[i]].ready        = kernel_conn[i].ready;
      assign client_conn_answer[RDMA_CLIENT[i]].valid = kernel_conn_answer[i].valid;
      assign client_conn_answer[RDMA_CLIENT[i]].data  = kernel_conn_answer[i].data;
      assign kernel_conn_answer[i].ready              = client_conn_answer[RDMA_CLIENT[i]].ready;
      assign client_close[RDMA_CLIENT[i]].valid       = kernel_close[i].valid;
      assign client_close[RDMA_CLIENT[i]].data        = kernel_close[i].data;
      assign kernel_close[i].ready                    = client_close[RDMA_CLIENT[i]].ready;
    end else begin : no_rdma
      assign kernel_wqe[i].ready = 1'b0;
      assign kernel_cqe[i].valid = 1'b0;
      assign kernel_cqe[i].data  = '0;
      assign rdma_settled[i]     = 1'b1;

      assign kernel_connect[i].ready     = 1'b0;
      assign kernel_conn[i].valid        = 1'b0;
      assign kernel_conn[i].data         = '0;
      assign kernel_conn_answer[i].ready = 1'b0;
      assign kernel_close[i].ready       = 1'b0;
    end
  end

  always_comb begin
    abandon = '0;
    for (int unsigned c = 0; c < CLIENTS; c++) begin
      for (int unsigned i = 0; i < SOCKETS; i++) if (RDMA_CLIENT[i] == c) abandon[c] = gives_up[i];
    end
  end

  // ---- what the event log is told, beside what admission and the connection manager say ----

  assign to_log[LOG_SESSIONS] = '{valid: service_events.session_expired, item: '{kind: LOG_SESSION_EXPIRED, a: '0, b: '0}};
  assign to_log[LOG_ADDRESSES] = '{valid: address_events.ipv6_conflict, item: '{kind: LOG_DUPLICATE, a: nd_watch.ip[127:96], b: nd_watch.ip[95:64]}};
  assign to_log[LOG_LOGINS] = '{
      valid: service_events.login || service_events.login_wrong || service_events.login_refused,
      item: '{
          kind: service_events.login ? LOG_LOGIN : service_events.login_wrong ? LOG_LOGIN_WRONG : LOG_LOGIN_REFUSED,
          a: register_client,
          b: '0
      }
  };

  for (genvar i = 0; i < SOCKETS; i++) begin : g_socket_log
    held_t held_was_q;
    always_ff @(posedge clk) held_was_q <= plane_rst_q ? '0 : held[i];
    done_t ended_job;
    assign ended_job = done[i].data;
    wire answered = done[i].valid && done[i].ready;
    wire timed_out = answered && ended_job.code == RESULT_KERNEL_TIMEOUT;
    wire memory_error = answered && ended_job.code == RESULT_MEMORY_ERROR;
    wire replaced = IMAGES[i] > 1 && held[i].live && held_was_q != held[i];   // by the first one, after reset, as well
    assign to_log[LOG_SOCKET+i] = '{
        valid: timed_out || memory_error || replaced,
        item: '{
            kind: timed_out ? LOG_KERNEL_TIMEOUT : memory_error ? LOG_KERNEL_MEMORY : LOG_KERNEL_REPLACED,
            a: 32'(i),
            b: replaced ? 32'(held[i].image) : '0
        }
    };
  end

  qp_event_t qp_happened;
  assign qp_happened = qp_event.data;
  assign to_log[LOG_QPS] = '{
      valid: qp_event.valid && qp_event.ready && qp_happened.kind == EVENT_QP_FATAL,
      item: '{kind: LOG_QP_FAILED, a: 32'(qp_happened.status), b: 32'(qp_happened.qpn)}
  };

  // ---- memory ----

  function automatic logic [MASTERS-1:0][TARGETS-1:0] reach();
    logic [MASTERS-1:0][TARGETS-1:0] r;
    for (int unsigned i = 0; i < MASTERS; i++) for (int unsigned k = 0; k < TARGETS; k++) r[i][k] = reaches(i, k);
    return r;
  endfunction

  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(fabric_id_w(MEMORIES))) fabric_port[TARGETS] (), port[MEMORIES] ();

  axi_crossbar #(
      .N         (MASTERS),
      .M         (TARGETS),
      .MAP       (MAP[TARGETS-1:0]),
      .REACH     (reach()),
      .DATA_W    (DATA_W),
      .ID_W      (MASTER_ID_W),
      .BACKGROUND(CLEAR_MASTER)
  ) fabric (
      .clk,
      .rst(plane_rst_q),
      .in(master),
      .out(fabric_port),
      .others_write
  );

  for (genvar k = 0; k < MEMORIES; k++) begin : g_port
    if (k == RPC_MEMORY && IMAGE_SLOTS != 0) begin : g_fence
      axi_fence #(
          .RANGE('{base: STORE_BASE, size: STORE_BYTES}), .OWNER(IMAGE_MASTER), .INDEX_W(axi_mux_index_w(MASTERS)), .ID_W(fabric_id_w(MEMORIES))
      ) fence (.in(fabric_port[k]), .out(port[k]));
    end else begin : g_wires
      axi_wires whole (.in(fabric_port[k]), .out(port[k]));
    end
  end

  memory_ports #(
      .MEMORIES(MEMORIES),
      .DATA_W  (DATA_W),
      .ID_W    (fabric_id_w(MEMORIES)),
      .ECC     (ECC)
  ) ports (
      .clk,
      .rst(plane_rst_q),
      .in(port),
      .out(dram),
      .events(memory_events)
  );

  // ---- the slot ----

  logic slot_idle, copy_idle, card_idle, stream_idle, copy_stops;
  copy_pkg::copy_state_t copy_state;
  if (PCIE) begin : g_slot
    localparam int unsigned NETWORK_ID_W = 5;
    stream_if #(.T(logic [$clog2(PCIE_VECTORS)-1:0])) interrupt ();
    axil_if #(.ADDR_W(12)) net_registers ();
    axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(NETWORK_ID_W)) net_host ();
    stream_if #(.T(logic [15:0])) net_interrupt ();
    logic net_reset, net_reset_done;
    device_in_slot #(
        .DATA_W   (DATA_W),
        .ID_W     (MASTER_ID_W),
        .HOST_ID_W(fabric_id_w(MEMORIES)),
        .MEMORY   ('{base: memory_range(0).base, size: addr_t'(DRAM_BYTES)}),
        .TAGS     (PCIE_TAGS),
        .VECTORS  (PCIE_VECTORS),
        .TIMEOUT  (PCIE_TIMEOUT),
        .NETWORK  (NETWORK_CARD),
        .NETWORK_VECTORS(NETWORK_VECTORS),
        .NETWORK_ID_W(NETWORK_ID_W)
    ) pcie (
        .clk,
        .rst,
        .open(!plane_rst_q),
        .slot,
        .registers(register_bus[HOST_BUS]),
        .memory(master[HOST_MASTER]),
        .host(fabric_port[HOST_MEMORY]),
        .interrupt,
        .net_registers,
        .net_host,
        .net_interrupt,
        .net_reset,
        .net_reset_done,
        .events(pcie_events),
        .idle(slot_idle)
    );

    // ---- function 1 ----
    if (NETWORK_CARD) begin : g_card
      axis_if #(.DATA_W(DATA_W)) host_rx ();
      axis_if #(.DATA_W(DATA_W)) host_tx ();
      card_verdict_t host_rx_verdict;
      if (STREAM) begin : g_stream
        logic kernel_rst;
        stream_pkg::identity_t identity;
        axil_if #(.ADDR_W(12)) kernel_ctrl ();
        axis_if #(.DATA_W(DATA_W)) kernel_rx_in (), kernel_rx_out (), kernel_tx_in (), kernel_tx_out ();
        stream_plane #(
            .DATA_W   (DATA_W),
            .MAX_FRAME(NETWORK_FRAME),
            .PAGE     (STREAM_PAGE),
            .NEXT     ({12'd0, SOCKET_PAGE, 12'd0})
        ) stream (
            .clk,
            .rst,
            .line_rst(plane_rst_q),
            .rx(card_rx),
            .rx_verdict(card_rx_verdict),
            .rx_out(host_rx),
            .rx_out_verdict(host_rx_verdict),
            .tx(host_tx),
            .tx_out(card_tx),
            .kernel_rst,
            .kernel_ctrl,
            .kernel_rx_in,
            .kernel_rx_out,
            .kernel_tx_in,
            .kernel_tx_out,
            .identity,
            .bus(stream_bus),
            .to_log(to_log[LOG_STREAM]),
            .idle(stream_idle)
        );
        stream_kernel #(
            .DATA_W(DATA_W)
        ) kernel (
            .clk,
            .rst(kernel_rst),
            .now(48'(now_q)),
            .identity,
            .ctrl(kernel_ctrl),
            .rx_in(kernel_rx_in),
            .rx_out(kernel_rx_out),
            .tx_in(kernel_tx_in),
            .tx_out(kernel_tx_out)
        );
      end else begin : g_no_stream
        axis_wires of_line (.in(card_rx), .out(host_rx));
        axis_wires of_host (.in(host_tx), .out(card_tx));
        assign host_rx_verdict = card_rx_verdict;
      end
      network_card #(
          .DATA_W   (DATA_W),
          .ID_W     (NETWORK_ID_W),
          .PAIRS    (NETWORK_PAIRS),
          .VECTORS  (NETWORK_VECTORS),
          .MTU      (NETWORK_MTU),
          .MAX_FRAME(NETWORK_FRAME),
          .IPV6     (IPV6)
      ) network (
          .clk,
          .rst,
          .open(!plane_rst_q),
          .settings(card),
          .device(mac),
          .used(card_used),
          .link_up,
          .bus(net_registers),
          .mem(net_host),
          .interrupt(net_interrupt),
          .reset(net_reset),
          .reset_done(net_reset_done),
          .rx(host_rx),
          .rx_verdict(host_rx_verdict),
          .tx(host_tx),
          .idle(card_idle)
      );
    end else begin : g_no_card
      axil_access nobody (
          .clk, .rst, .bus(net_registers), .at(), .write(), .wdata(), .readable(1'b0), .writable(1'b0), .rdata('0), .idle()
      );
      axi_silent silent (.out(net_host));
      assign net_interrupt.valid = 1'b0;
      assign net_interrupt.data  = '0;
      assign net_reset_done      = net_reset;
      wire unused_net = &{1'b0, net_interrupt.ready};
    end

    if (COPY) begin : g_copy
      copy_engine #(
          .DATA_W (DATA_W),
          .ID_W   (MASTER_ID_W),
          .VECTORS(PCIE_VECTORS),
          .MEMORY_BASE(HOSTS_BASE),
          .MEMORY_BYTES(HOSTS_BYTES),
          .NEXT   ({12'd0, AFTER_COPY, 12'd0})
      ) copy (
          .clk,
          .rst,
          .fabric_rst(plane_rst_q),
          .reset(slot.flr_request[0]),
          .bus(copy_bus),
          .mem(master[COPY_MASTER]),
          .interrupt,
          .stops(copy_stops),
          .state(copy_state),
          .idle(copy_idle)
      );
    end else begin : g_no_copy
      assign interrupt.valid = 1'b0;
      assign interrupt.data  = '0;
      wire unused_interrupt = &{1'b0, interrupt.ready};
    end
  end else begin : g_no_slot
    network_only pcie (.slot);
    assign pcie_events = '0;
    assign slot_idle   = 1'b1;
  end

  if (!NETWORK_CARD) begin : g_no_card
    assign card_rx.tready = 1'b1;
    assign card_tx.tvalid = 1'b0;
    assign card_tx.tdata  = '0;
    assign card_tx.tkeep  = '0;
    assign card_tx.tlast  = 1'b0;
    assign card_tx.tuser  = 1'b0;
    assign card_idle      = 1'b1;
    assign card_used      = card;
    wire unused_card = &{1'b0, card_rx.tvalid, card_rx.tdata, card_rx.tkeep, card_rx.tlast, card_rx.tuser, card_rx_verdict, card_tx.tready};
  end
  assign to_log[LOG_COPIES] = '{
      valid: copy_stops, item: '{kind: LOG_COPY_STOPPED, a: 32'(copy_state.stopped), b: 32'(copy_state.consumer)}
  };

  if (!STREAM) begin : g_no_stream
    assign to_log[LOG_STREAM] = '0;
    axil_access nobody (
        .clk, .rst, .bus(stream_bus), .at(), .write(), .wdata(), .readable(1'b0), .writable(1'b0), .rdata('0), .idle(stream_idle)
    );
  end

  if (!COPY) begin : g_no_copy
    assign copy_stops = 1'b0;
    assign copy_state = '0;
    axil_access nobody (
        .clk, .rst, .bus(copy_bus), .at(), .write(), .wdata(), .readable(1'b0), .writable(1'b0), .rdata('0), .idle(copy_idle)
    );
  end

  assign idle = slot_idle && copy_idle && card_idle && stream_idle && control_idle && kernel_buses_idle && admission_idle && trace_idle && classifier_idle && histograms_idle && packet_idle && services_idle && datagrams_idle && roce_idle && clients_idle && management_idle && withdrawal_idle && !close.valid && rpc_idle && store_idle && (&socket_idle);
endmodule
