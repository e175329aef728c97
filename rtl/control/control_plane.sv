// SPDX-License-Identifier: Apache-2.0

// All registers of the device on one AXI4-Lite bus (cci.rdl): a page of 4 KiB for the device's own (nacelle.rdl), one for the management
// port (roce_management), one for admission (roce_admission), one for the event log, one for the trace of frames (frame_trace), one for
// the histograms of calls (call_histograms), one for the store of images (image_store) if there is one, one for the sensors of the board
// (board_sensors) if it has some, one for the copy engine (copy_engine) if there is one, one for the
// classifier (classify_plane) if there is one, one for the streaming socket (stream_plane) if there is one, one for each socket. Several
// masters share it. An access takes about 9 cycles, to a counter up to 10 more. An access that no register
// has is answered with DECERR, a socket that does not respond with SLVERR (see axil_demux).
module control_plane
  import packet_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import roce_cc_pkg::*;
  import compute_pkg::*;
  import memory_pkg::*;
  import cci_map_pkg::*;
  import services_pkg::*;
  import link_pkg::*;
  import card_pkg::*;
  import address_pkg::*;
  import cci_pkg::*;
  import event_log_pkg::*;
  import sensors_pkg::*;
#(
    parameter int unsigned     DATA_W = 512,
    parameter int unsigned     CLOCK_HZ = 250_000_000,
    parameter int unsigned     QPS = 16,
    parameter int unsigned     MRS = 1024,
    parameter int unsigned     SOCKETS = 2,
    parameter int unsigned     BUSES = 2,
    parameter int unsigned     LOG_SOURCES = 2,
    parameter bit              LOG = 1'b1,            // there is an event log; else event_no_log
    parameter bit              COUNTERS = 1'b1,       // events are counted; else event_no_counters
    parameter bit              STORE = 1'b0,          // there is a store of images
    parameter logic [7:0]      AFTER_LOG = TRACE_PAGE, // page of the block after the event log
    parameter logic [7:0]      AFTER_SENSORS = SOCKET_PAGE, // likewise
    parameter bit              IPV6 = 1'b1,           // the device can have IPv6 addresses
    parameter int unsigned     SENSORS = 0,           // of the board; 0: it has none
    parameter logic [MAX_SENSORS-1:0][127:0] SENSOR_NAMES = '0,
    parameter logic [MAX_SENSORS-1:0][7:0] SENSOR_KINDS = '0,
    parameter bit              PCIE = 1'b0,           // events of a slot are counted
    parameter bit              COPY = 1'b0,           // there is a copy engine
    parameter bit              CARD = 1'b0,           // there is a network card
    parameter bit              CLASSIFIER = 1'b0,     // there is a classifier
    parameter bit              STREAM = 1'b0,         // there is a streaming socket
    parameter longint unsigned DRAM_BYTES = 64'd1 << 30,
    parameter logic [31:0]     BUILD_REVISION = '0,
    parameter logic [63:0]     BUILD_DIGEST = '0,
    parameter longint unsigned MESSAGES = '0,         // device address of the first QP's messages
    parameter int unsigned     MESSAGES_BYTES = 4096  // of each QP
) (
    input  logic            clk,
    input  logic            rst,
    input  logic [47:0]     now,                  // device cycles; may jump ahead
    axil_if.slave           bus[BUSES],           // masters of the registers: 20 bits of address
    axil_if.master          socket[SOCKETS],      // 12 bits of address
    axil_if.master          management,           // 12 bits of address
    axil_if.master          admission,            // 12 bits of address
    axil_if.master          trace,                // 12 bits of address
    axil_if.master          images,               // 12 bits of address
    axil_if.master          histograms,           // 12 bits of address
    axil_if.master          copy,                 // 12 bits of address
    axil_if.master          classifier,           // 12 bits of address
    axil_if.master          stream,               // 12 bits of address
    stream_if.sink          sensor_reading,       // sensor_reading_t: of the board

    input  logic [63:0]     chip_id,              // constant, of this chip alone; 0: it has none, the MAC address stands for it
    output logic [63:0]     device_id,
    output logic            enable,
    output mac_t            mac,
    output address_settings_t address_settings,
    input  address_status_t address_status,
    input  local_addr_t     local_addr,           // in use
    output discovery_settings_t discovery,
    output link_settings_t  link,
    output logic            icmp_errors,          // are sent
    input  logic            link_up,              // the line works
    output card_settings_t  card,
    output logic [15:0]     rpc_port,
    output logic [15:0]     listen_port,          // of the management port
    output dscp_settings_t  dscp,
    output logic            extensions,
    output cm_limits_t      connection_limits,    // of what peers open
    output cc_config_t      congestion,
    output logic [31:0]     seed,
    output logic [47:0]     keepalive_cycles,     // 0: none
    output logic [47:0]     kernel_timeout_cycles,
    output logic [29:0]     memory_per_caller,    // KiB; 0: no limit
    output cci_settings_t   cci_settings,         // of accesses by way of the network

    input  packet_events_t  packet_events,
    input  roce_rx_events_t roce_rx_events,
    input  roce_tx_events_t roce_tx_events,
    input  cm_events_t      cm_events,
    input  rpc_events_t     rpc_events,
    input  memory_events_t  memory_events,
    input  service_events_t service_events,
    input  address_events_t address_events,
    input  pcie_pkg::pcie_events_t pcie_events,

    input  log_event_t [LOG_SOURCES-1:0] to_log,    // for the event log, of the planes

    output logic            dropped,              // pulse: an event that counts as a drop
    output logic            idle                  // no access under way, nothing to log
);
  localparam int unsigned PAGE_W = 12;
  localparam int unsigned SLAVES = SOCKETS + 6 + 32'(STORE) + 32'(SENSORS != 0) + 32'(COPY) + 32'(CLASSIFIER) + 32'(STREAM);
  localparam int unsigned MANAGEMENT = SOCKETS + 1;  // behind the sockets
  localparam int unsigned ADMISSION = SOCKETS + 2;
  localparam int unsigned EVENT_LOG = SOCKETS + 3;
  localparam int unsigned TRACE_SLAVE = SOCKETS + 4;
  localparam int unsigned HISTOGRAMS_SLAVE = SOCKETS + 5;
  localparam int unsigned STREAM_SLAVE = SLAVES - 1;         // these if there are some
  localparam int unsigned CLASSIFIER_SLAVE = STREAM_SLAVE - 32'(STREAM);
  localparam int unsigned COPY_SLAVE = CLASSIFIER_SLAVE - 32'(CLASSIFIER);
  localparam int unsigned SENSORS_SLAVE = COPY_SLAVE - 32'(COPY);
  localparam int unsigned IMAGES_SLAVE = SENSORS_SLAVE - 32'(SENSORS != 0);
  localparam logic [47:0] CYCLES_PER_MS = 48'(CLOCK_HZ / 1000);

  // Until they are set: a quarter of the connections for one peer, half of them half open.
  localparam logic [15:0] PER_PEER = 16'((QPS + 3) / 4);
  localparam logic [15:0] HALF_OPEN = 16'((QPS + 1) / 2);

  // Of 100 Gb/s: pause quanta a cycle, in 1/65536.
  localparam logic [17:0] PAUSE_QUANTA = 18'(64'd100_000_000_000 / 64'd512 * 64'd65536 / 64'(CLOCK_HZ));

  typedef logic [SLAVES-1:0][7:0] pages_t;
  function automatic pages_t pages();
    pages_t p;
    p[0] = DEVICE_PAGE;
    for (int unsigned i = 1; i <= SOCKETS; i++) p[i] = SOCKET_PAGE + 8'(i - 1);
    p[MANAGEMENT] = MANAGEMENT_PAGE;
    p[ADMISSION] = ADMISSION_PAGE;
    p[EVENT_LOG] = EVENT_LOG_PAGE;
    p[TRACE_SLAVE] = TRACE_PAGE;
    p[HISTOGRAMS_SLAVE] = HISTOGRAMS_PAGE;
    if (STORE) p[IMAGES_SLAVE] = IMAGES_PAGE;
    if (SENSORS != 0) p[SENSORS_SLAVE] = SENSORS_PAGE;
    if (COPY) p[COPY_SLAVE] = COPY_PAGE;
    if (CLASSIFIER) p[CLASSIFIER_SLAVE] = CLASSIFIER_PAGE;
    if (STREAM) p[STREAM_SLAVE] = STREAM_PAGE;
    return p;
  endfunction

  // ---- one access at a time ----
  axil_if #(.ADDR_W(20)) shared ();
  logic mux_idle;
  axil_mux #(.N(BUSES)) mux (.clk, .rst, .in(bus), .out(shared), .idle(mux_idle));

  // ---- whose address it is ----
  axil_if #(.ADDR_W(PAGE_W)) slave[SLAVES] ();
  logic demux_idle;
  axil_demux #(.N(SLAVES), .IN_ADDR_W(20), .PAGE_W(PAGE_W), .PAGES(pages())) demux (
      .clk, .rst, .in(shared), .out(slave), .idle(demux_idle)
  );

  for (genvar i = 0; i < SOCKETS; i++) begin : g_socket
    axil_wires joined (.in(slave[i+1]), .out(socket[i]));
  end
  axil_wires to_management (.in(slave[MANAGEMENT]), .out(management));
  axil_wires to_admission (.in(slave[ADMISSION]), .out(admission));
  axil_wires to_trace (.in(slave[TRACE_SLAVE]), .out(trace));
  axil_wires to_histograms (.in(slave[HISTOGRAMS_SLAVE]), .out(histograms));

  if (STORE) begin : g_images
    axil_wires to_images (.in(slave[IMAGES_SLAVE]), .out(images));
  end else begin : g_no_images
    axil_silent silent (.out(images));
  end

  if (COPY) begin : g_copy
    axil_wires to_copy (.in(slave[COPY_SLAVE]), .out(copy));
  end else begin : g_no_copy
    axil_silent silent (.out(copy));
  end

  if (CLASSIFIER) begin : g_classifier
    axil_wires to_classifier (.in(slave[CLASSIFIER_SLAVE]), .out(classifier));
  end else begin : g_no_classifier
    axil_silent silent (.out(classifier));
  end

  if (STREAM) begin : g_stream
    axil_wires to_stream (.in(slave[STREAM_SLAVE]), .out(stream));
  end else begin : g_no_stream
    axil_silent silent (.out(stream));
  end

  if (SENSORS != 0) begin : g_sensors
    board_sensors #(
        .SENSORS (SENSORS),
        .NAMES   (SENSOR_NAMES),
        .KINDS   (SENSOR_KINDS),
        .CLOCK_HZ(CLOCK_HZ),
        .NEXT    ({12'd0, AFTER_SENSORS, 12'd0})
    ) sensors (.clk, .rst, .now, .reading(sensor_reading), .bus(slave[SENSORS_SLAVE]));
  end else begin : g_no_sensors
    assign sensor_reading.ready = 1'b1;
    wire unused_sensors = &{1'b0, sensor_reading.valid, sensor_reading.data};
  end

  // ---- the device's own ----
  nacelle_regs_pkg::nacelle_regs__in_t facts;
  nacelle_regs_pkg::nacelle_regs__out_t settings;
  logic [1:0] bresp, rresp;
  logic counter_write_q;   // the write in progress is to a counter, which the registers take although it has no effect

  // The registers have one error only, an access that no register has, with response SLVERR.
  assign slave[0].bresp = (bresp == AXI_OKAY && !counter_write_q) ? AXI_OKAY : AXI_DECERR;
  assign slave[0].rresp = (rresp == AXI_OKAY) ? AXI_OKAY : AXI_DECERR;

  nacelle_regs registers (
      .clk,
      .rst,
      .s_axil_awready(slave[0].awready),
      .s_axil_awvalid(slave[0].awvalid),
      .s_axil_awaddr(slave[0].awaddr),
      .s_axil_awprot('0),
      .s_axil_wready(slave[0].wready),
      .s_axil_wvalid(slave[0].wvalid),
      .s_axil_wdata(slave[0].wdata),
      .s_axil_wstrb(slave[0].wstrb),
      .s_axil_bready(slave[0].bready),
      .s_axil_bvalid(slave[0].bvalid),
      .s_axil_bresp(bresp),
      .s_axil_arready(slave[0].arready),
      .s_axil_arvalid(slave[0].arvalid),
      .s_axil_araddr(slave[0].araddr),
      .s_axil_arprot('0),
      .s_axil_rready(slave[0].rready),
      .s_axil_rvalid(slave[0].rvalid),
      .s_axil_rdata(slave[0].rdata),
      .s_axil_rresp(rresp),
      .hwif_in(facts),
      .hwif_out(settings)
  );

  // ---- counters ----
  log_event_t counted;
  logic counter_read_done, counter_written_q;
  logic [31:0] count;
  wire counter_access = settings.COUNTERS.req;

  counters_pkg::events_t events;
  assign events = '{
      packet: packet_events,
      roce_rx: roce_rx_events,
      roce_tx: roce_tx_events,
      cm: cm_events,
      rpc: rpc_events,
      memory: memory_events,
      service: service_events,
      address: address_events,
      pcie: pcie_events
  };
  assign dropped = (events & counters_pkg::DROPS) != '0;

  if (COUNTERS) begin : g_counters
    event_counters #(.ABSENT(PCIE ? 0 : $bits(pcie_pkg::pcie_events_t))) counters (
        .clk,
        .rst,
        .events,
        .read(counter_access && !settings.COUNTERS.req_is_wr),
        .read_index(8'(settings.COUNTERS.addr >> 2)),
        .read_done(counter_read_done),
        .read_data(count),
        .to_log(counted)
    );
  end else begin : g_no_counters
    event_no_counters counters (
        .clk,
        .rst,
        .events,
        .read(counter_access && !settings.COUNTERS.req_is_wr),
        .read_done(counter_read_done),
        .read_data(count),
        .to_log(counted)
    );
    logic unused_ok;
    assign unused_ok = &{1'b0, settings.COUNTERS.addr};
  end
  wire counter_write = counter_access && settings.COUNTERS.req_is_wr;
  always_ff @(posedge clk) begin
    counter_written_q <= !rst && counter_write;
    counter_write_q   <= !rst && (counter_write || (counter_write_q && !(slave[0].bvalid && slave[0].bready)));
  end

  // ---- event log: what matters most first, what strangers cause most easily last ----
  logic log_idle;
  ipv4_addr_t reached_q;   // where peers reach the device; 0: nowhere
  wire ipv4_addr_t reached = local_addr.enable ? local_addr.ip : '0;
  always_ff @(posedge clk) reached_q <= rst ? '0 : reached;
  wire log_event_t switched = '{
      valid: reached_q != reached,
      item: '{kind: reached != '0 ? LOG_ENABLED : LOG_DISABLED, a: reached != '0 ? reached : reached_q, b: '0}
  };

  if (LOG) begin : g_log
    event_log #(
        .SOURCES (LOG_SOURCES + 2),
        .TICKS_HZ(CLOCK_HZ),
        .NEXT    ({12'd0, AFTER_LOG, 12'd0})
    ) events_logged (
        .clk,
        .rst,
        .now,
        .events({counted, to_log, switched}),
        .bus(slave[EVENT_LOG]),
        .idle(log_idle)
    );
  end else begin : g_no_log
    event_no_log #(.NEXT({12'd0, AFTER_LOG, 12'd0})) nothing_logged (.clk, .rst, .bus(slave[EVENT_LOG]), .idle(log_idle));
    logic unused_ok;
    assign unused_ok = &{1'b0, now, counted, to_log, switched};
  end

  // Reset values that depend on parameters.
  logic defaults_q;
  always_ff @(posedge clk) defaults_q <= rst;

  always_comb begin
    facts.MAX_CONNECTIONS_PER_PEER.value.next = PER_PEER;
    facts.MAX_CONNECTIONS_PER_PEER.value.we   = defaults_q;
    facts.MAX_HALF_OPEN.value.next            = HALF_OPEN;
    facts.MAX_HALF_OPEN.value.we              = defaults_q;
    facts.PAUSE_QUANTA.value.next             = PAUSE_QUANTA;
    facts.PAUSE_QUANTA.value.we               = defaults_q;
    facts.DATA_W.value.next        = DATA_W;
    facts.CLOCK_HZ.value.next      = CLOCK_HZ;
    facts.QPS.value.next           = QPS;
    facts.SOCKETS.value.next       = SOCKETS;
    facts.DRAM_BYTES_LO.value.next = DRAM_BYTES[31:0];
    facts.DRAM_BYTES_HI.value.next = DRAM_BYTES[63:32];
    facts.MESSAGES_LO.value.next   = MESSAGES[31:0];
    facts.MESSAGES_HI.value.next   = MESSAGES[63:32];
    facts.MESSAGES_BYTES.value.next  = MESSAGES_BYTES;
    facts.MRS.value.next           = MRS;
    facts.DEVICE_ID_LO.value.next  = device_id[31:0];
    facts.DEVICE_ID_HI.value.next  = device_id[63:32];
    facts.BUILD_REVISION.value.next  = BUILD_REVISION;
    facts.BUILD_DIGEST_LO.value.next = BUILD_DIGEST[31:0];
    facts.BUILD_DIGEST_HI.value.next = BUILD_DIGEST[63:32];
    facts.ADDRESS_IP.value.next      = local_addr.ip;
    facts.ADDRESS_PREFIX.value.next  = local_addr.prefix_length;
    facts.ADDRESS_GATEWAY.value.next = local_addr.gateway;
    facts.ADDRESS_STATE.origin.next  = address_status.origin;
    facts.ADDRESS_STATE.state.next   = address_status.state;
    facts.ADDRESS_STATE.dhcp.next    = address_status.dhcp;
    facts.LEASE_LEFT.value.next      = address_status.lease_left;
    facts.DHCP_SERVER.value.next     = address_status.server;
    facts.IPV6_STATE.origin.next     = address_status.ipv6.origin;
    facts.IPV6_STATE.state.next      = address_status.ipv6.state;
    facts.IPV6_STATE.has_local.next  = address_status.ipv6.has_local;
    facts.IPV6_STATE.deprecated.next = address_status.ipv6.deprecated;
    facts.IPV6_STATE.on_link.next    = local_addr.on_link;
    facts.IPV6_STATE.built.next      = IPV6;
    facts.NETWORK_CARD.link.next     = link_up;
    facts.NETWORK_CARD.built.next    = CARD;
    facts.IPV6_VALID_LEFT.value.next = address_status.ipv6.valid_left;
    facts.IPV6_PREFERRED_LEFT.value.next = address_status.ipv6.preferred_left;
    {facts.IPV6_GLOBAL_0.value.next, facts.IPV6_GLOBAL_1.value.next, facts.IPV6_GLOBAL_2.value.next,
     facts.IPV6_GLOBAL_3.value.next} = local_addr.global_;
    {facts.IPV6_ROUTER_HI.value.next, facts.IPV6_ROUTER_LO.value.next} = local_addr.router[63:0];
    facts.IPV6_ROUTER_LEFT.value.next = address_status.ipv6.router_left;
    facts.COUNTERS.rd_ack          = counter_read_done;
    facts.COUNTERS.rd_data         = count;
    facts.COUNTERS.wr_ack          = counter_written_q;
  end

  // ---- settings ----
  assign enable = settings.CTRL.enable.value;
  assign mac    = {settings.MAC_HI.value.value, settings.MAC_LO.value.value};
  assign address_settings = '{
      mode: address_mode_e'(settings.ADDRESS_MODE.value.value),
      renew: settings.DHCP_COMMAND.renew.value,
      give_up: settings.DHCP_COMMAND.give_up.value,
      fixed: '{
          ip: settings.IP.value.value,
          prefix_length: settings.PREFIX_LEN.value.value,
          gateway: settings.GATEWAY.value.value
      },
      ipv6: '{
          on: settings.IPV6_MODE.on.value,
          autonomous: settings.IPV6_MODE.autonomous.value,
          fixed: {settings.IPV6_FIXED_0.value.value, settings.IPV6_FIXED_1.value.value, settings.IPV6_FIXED_2.value.value,
                  settings.IPV6_FIXED_3.value.value}
      },
      seed: settings.RANDOM_SEED.value.value
  };
  // EUI-64 of the MAC address (RFC 4291 appendix A), as the GUID of other RoCE devices.
  assign device_id   = chip_id != '0 ? chip_id : {mac[47:24] ^ 24'h02_0000, 16'hfffe, mac[23:0]};
  assign discovery   = '{mdns: settings.DISCOVERY.mdns.value, lldp: settings.DISCOVERY.lldp.value, port: settings.RPC_PORT.value.value};
  assign icmp_errors = settings.ICMP_ERRORS.value.value;
  assign link = '{
      flow: '{
          pause: settings.FLOW_CONTROL.pause.value,
          pfc: settings.FLOW_CONTROL.pfc.value,
          quanta_per_cycle: settings.PAUSE_QUANTA.value.value,
          limit_ms: settings.PAUSE_LIMIT_MS.value.value
      },
      priorities: '{roce: settings.PRIORITY.roce.value, other: settings.PRIORITY.other.value},
      vlan: '{
          enable: settings.VLAN.enable.value,
          untagged: settings.VLAN.untagged.value,
          vid: settings.VLAN.vid.value
      }
  };
  // Its own address is the device's with one bit inverted, and locally administered.
  mac_t card_mac;
  always_comb begin
    card_mac = mac ^ CARD_MAC_BIT;
    card_mac[MAC_LOCAL_BIT] = 1'b1;
  end
  assign card = '{
      present: CARD,
      mac: settings.NETWORK_CARD.shared.value ? mac : card_mac,
      shared: settings.NETWORK_CARD.shared.value,
      promiscuous: settings.NETWORK_CARD.promiscuous.value,
      answers_arp: settings.NETWORK_CARD.host_arp.value,
      answers_echo: settings.NETWORK_CARD.host_echo.value,
      any_source: settings.NETWORK_CARD.any_source.value,
      hash: '0                                       // the driver's to say
  };
  assign rpc_port    = settings.RPC_PORT.value.value;
  assign listen_port = settings.LISTEN_PORT.value.value;
  assign dscp        = '{
      roce: settings.DSCP.roce.value, cnp: settings.DSCP.cnp.value, of_caller: settings.DSCP.of_caller.value
  };
  assign extensions  = settings.EXTENSIONS.value.value;
  assign seed        = settings.RANDOM_SEED.value.value;
  assign connection_limits = '{
      per_peer: settings.MAX_CONNECTIONS_PER_PEER.value.value,
      half_open: settings.MAX_HALF_OPEN.value.value,
      half_open_per_peer: settings.MAX_HALF_OPEN_PER_PEER.value.value
  };
  assign memory_per_caller = settings.MEMORY_PER_CALLER.value.value;
  assign congestion  = '{
      rp_enable: settings.RP_ENABLE.value.value,
      np_enable: settings.NP_ENABLE.value.value,
      clamp_tgt_rate: settings.CLAMP_TGT_RATE.value.value,
      clamp_tgt_rate_after_time_inc: settings.CLAMP_TGT_RATE_AFTER_TIME_INC.value.value,
      dce_tcp_g: settings.DCE_TCP_G.value.value,
      dce_tcp_rtt: settings.DCE_TCP_RTT.value.value,
      initial_alpha_value: settings.INITIAL_ALPHA_VALUE.value.value,
      rate_reduce_monitor_period: settings.RATE_REDUCE_MONITOR_PERIOD.value.value,
      rate_to_set_on_first_cnp: settings.RATE_TO_SET_ON_FIRST_CNP.value.value,
      rpg_ai_rate: settings.RPG_AI_RATE.value.value,
      rpg_hai_rate: settings.RPG_HAI_RATE.value.value,
      rpg_byte_reset: settings.RPG_BYTE_RESET.value.value,
      rpg_time_reset: settings.RPG_TIME_RESET.value.value,
      rpg_gd: settings.RPG_GD.value.value,
      rpg_min_dec_fac: settings.RPG_MIN_DEC_FAC.value.value,
      rpg_min_rate: settings.RPG_MIN_RATE.value.value,
      rpg_max_rate: settings.RPG_MAX_RATE.value.value,
      rpg_threshold: settings.RPG_THRESHOLD.value.value,
      min_time_between_cnps: settings.MIN_TIME_BETWEEN_CNPS.value.value
  };

  logic [47:0] session_cycles_q;
  assign cci_settings = '{
      port: settings.CCI_PORT.value.value,
      source: settings.CCI_SOURCE.value.value,
      source_prefix: settings.CCI_SOURCE_PREFIX.value.value,
      session_cycles: session_cycles_q,
      token: {settings.CCI_TOKEN_3.value.value, settings.CCI_TOKEN_2.value.value, settings.CCI_TOKEN_1.value.value, settings.CCI_TOKEN_0.value.value}
  };

  always_ff @(posedge clk) begin
    session_cycles_q      <= 48'(settings.CCI_SESSION.value.value) * 48'(CLOCK_HZ);
    keepalive_cycles      <= 48'(settings.KEEPALIVE_MS.value.value) * CYCLES_PER_MS;
    kernel_timeout_cycles <= 48'(settings.KERNEL_TIMEOUT_MS.value.value) * CYCLES_PER_MS;
  end

  assign idle = demux_idle && mux_idle && log_idle;
endmodule
