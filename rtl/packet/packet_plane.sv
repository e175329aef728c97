// SPDX-License-Identifier: Apache-2.0

// The packet plane: receive and transmit side, address resolution and echo. Each class of received frames has a route (`route_of`). RoCE
// frames are sent on `frame` and `payload`, UDP to a port of a service on `service_frame` and `service_payload`, to a port of a kernel on
// `datagram_frame` and `datagram_payload`; ARP and echo requests are answered here; classes whose protocol the device does not implement
// are dropped and counted, each by a counter of its own.
//
// With CARD a network card of the device's host is behind the plane: it gets what no unit of the device takes, and what is for several
// stations, as it came from the line, and its frames share the line with those of the device (docs/reference/network-card.md).
//
// At its two ends are the units of the link: pause_control, which stops senders as the neighbour asks, and vlan_remove and vlan_insert (in
// packet_tx), so that nothing in between knows of a VLAN.
//
// One beat a cycle each way. `frame` and `payload` follow one cycle after those of packet_rx. When `frame` or `payload` stalls, all later
// frames wait in the receive stores, also those of other classes; when `tx` stalls, echo requests wait there as well. ARP frames and those of
// neighbour discovery never stall other frames: they have a queue of their own, and are dropped when it is full. The services and the ports of
// kernels take or drop as well. Echo requests may stall other frames for a small share of the time (hold_budget); beyond that they are dropped.
module packet_plane
  import packet_pkg::*;
  import frame_pkg::*;
  import link_pkg::*;
  import card_pkg::*;
  import classify_pkg::*;
  import services_pkg::*;
  import time_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned MAX_FRAME = 4224,         // bytes without FCS
    parameter int unsigned CLOCK_HZ = 250_000_000,   // for the times of ARP
    parameter int unsigned USERS = 1,                // protocols that send,
    parameter int unsigned ROCE_USERS = 1,           // the first of them: RoCE
    parameter int unsigned DATAGRAM_PORTS = 1,
    parameter bit          CARD = 1'b0,              // there is a network card,
    parameter int unsigned CARD_FRAME = 9018,        // whose frames have at most so many bytes, without FCS
    parameter bit          LINK_CONTROL = 1'b1,      // else the device is in no VLAN, and nothing stops it
    parameter bit          IPV6 = 1'b1               // else IPv6 packets are dropped
) (
    input  logic           clk,
    input  logic           rst,
    input  time_t          now,
    input  local_addr_t    local_addr,
    input  link_settings_t link,
    input  card_settings_t card,
    axis_if.sink           rx,                       // from the MAC
    axis_if.source         tx,                       // to the MAC
    stream_if.source       frame,                    // frame_rx_t of CLASS_ROCE
    axis_if.source         payload,
    input  service_ports_t service_ports,
    stream_if.source       service_frame,            // frame_rx_t of CLASS_UDP to one of these ports, from one host; CLASS_RA
    axis_if.source         service_payload,
    input  logic [DATAGRAM_PORTS-1:0][15:0] datagram_ports,   // 0: none
    stream_if.source       datagram_frame,           // frame_rx_t of CLASS_UDP in IPv4 to one of these and to no service, from one host
    axis_if.source         datagram_payload,
    stream_if.sink         user_tx[USERS],           // frame_tx_t
    axis_if.sink           user_tx_payload[USERS],
    axis_if.source         card_rx,                  // frames as they came, wanted or not; tready is not looked at
    output card_verdict_t  card_rx_verdict,          // with the last beat
    axis_if.sink           card_tx,
    input  classified_t    classified,               // of the oldest frame that came and has not had its `classified_next`; 0 without rules
    output logic           classified_next,          // pulse, for each frame in order
    output logic           classified_applied,       // with it: the frame was good, so that its entry has decided
    stream_if.sink         arp_query,                // ip_addr_t: whose MAC address; IPv4 in mapped form
    stream_if.source       arp_answer,               // arp_answer_t, immediate
    stream_if.sink         arp_claim,                // arp_claim_t
    input  arp_watch_t     arp_watch,
    output logic           arp_conflict,             // pulse: another host has the address of arp_watch
    input  nd_watch_t      nd_watch,
    output logic           nd_conflict,              // likewise
    output logic           unwanted_valid,           // pulse: a packet was dropped, and its sender may be told
    output unwanted_t      unwanted,
    output packet_events_t events,
    output logic           idle
);
  // Routes of received frames and their payloads.
  typedef enum logic [2:0] {
    TO_ROCE,
    TO_ECHO,
    TO_NEIGHBOURS,
    TO_SERVICES,
    TO_DATAGRAMS,
    TO_DROP
  } route_e;
  localparam int unsigned ROUTES = 6;

  // The route of each class; that of CLASS_UDP is its listener's. packet_parser has the same table for the network card.
  function automatic route_e route_of(frame_class_e cls);
    unique case (cls)
      CLASS_ROCE: return TO_ROCE;
      CLASS_ICMP: return TO_ECHO;
      CLASS_ARP, CLASS_ND: return TO_NEIGHBOURS;
      CLASS_RA:   return TO_SERVICES;
      default:    return TO_DROP;
    endcase
  endfunction

  // ---- receive ----
  stream_if #(.T(frame_rx_t)) rx_frame ();
  axis_if #(.DATA_W(DATA_W)) rx_payload ();
  packet_events_t rx_events, tx_events, route_events, card_events;
  logic arp_overflow, nd_malformed;
  logic rx_idle, tx_idle, arp_idle, echo_idle, route_idle;

  // ---- the link: what the switch asks for, and the device's VLAN ----
  axis_if #(.DATA_W(DATA_W)) untagged ();
  logic  stop_roce, stop_other, rx_pause, rx_pfc, pause_ignored, pause_idle;
  logic  foreign, untagged_idle;
  vlan_t tag;

  vlan_settings_t vlan;
  assign vlan = LINK_CONTROL ? link.vlan : '0;

  // ---- the network card: what it is told; the device answers for addresses that are its own alone ----
  card_settings_t settings_q;
  always_ff @(posedge clk) begin
    settings_q <= card;
    settings_q.answers_arp  <= card.answers_arp && card.shared;
    settings_q.answers_echo <= card.answers_echo && card.shared;
    if (!CARD) settings_q <= '0;
  end
  logic card_verdict_valid, card_rx_idle, card_tx_idle;
  card_verdict_t card_verdict;

  if (LINK_CONTROL) begin : g_pauses
    pause_control #(.DATA_W(DATA_W), .CLOCK_HZ(CLOCK_HZ)) pauses (
        .clk, .rst, .settings(link.flow), .priorities(link.priorities),
        .in_valid(rx.tvalid), .in_last(rx.tlast), .in_bad(rx.tuser), .in_keep(rx.tkeep), .in_data(rx.tdata),
        .stop_roce, .stop_other, .rx_pause, .rx_pfc, .ignored(pause_ignored), .idle(pause_idle)
    );
  end else begin : g_no_pauses
    assign {stop_roce, stop_other, rx_pause, rx_pfc, pause_ignored} = '0;
    assign pause_idle = 1'b1;
    logic unused_ok;
    assign unused_ok = &{1'b0, link};
  end

  vlan_remove #(.DATA_W(DATA_W)) untag (
      .clk, .rst, .settings(vlan), .in(rx), .out(untagged), .foreign, .tag, .idle(untagged_idle)
  );

  packet_rx #(
      .DATA_W(DATA_W), .MAX_FRAME(MAX_FRAME), .LONGEST(CARD ? CARD_FRAME : MAX_FRAME), .DATAGRAM_PORTS(DATAGRAM_PORTS), .IPV6(IPV6)
  ) receive (
      .clk, .rst, .local_addr, .service_ports, .datagram_ports, .card(settings_q), .rx(untagged), .foreign, .tag,
      .frame(rx_frame), .payload(rx_payload), .card_verdict_valid, .card_verdict, .decision(classified.decision),
      .decided(classified_applied), .events(rx_events), .idle(rx_idle)
  );

  assign classified_next = card_verdict_valid;

  if (CARD) begin : g_card_receive
    axis_if #(.DATA_W(DATA_W)) line ();
    assign line.tvalid = rx.tvalid;
    assign line.tdata  = rx.tdata;
    assign line.tkeep  = rx.tkeep;
    assign line.tlast  = rx.tlast;
    assign line.tuser  = rx.tuser;
    assign line.tready = 1'b1;
    card_receive #(.DATA_W(DATA_W)) to_card (
        .clk, .rst, .line, .verdict_valid(card_verdict_valid), .verdict(card_verdict), .out(card_rx), .out_verdict(card_rx_verdict),
        .idle(card_rx_idle)
    );
  end else begin : g_no_card_receive
    assign card_rx.tvalid  = 1'b0;
    assign card_rx.tdata   = '0;
    assign card_rx.tkeep   = '0;
    assign card_rx.tlast   = 1'b0;
    assign card_rx.tuser   = 1'b0;
    assign card_rx_verdict = '0;
    assign card_rx_idle    = 1'b1;
    logic unused_ok;
    assign unused_ok = &{1'b0, card, card_rx.tready, card_verdict};
  end

  // ---- route each frame by its class, and its payload after it ----
  frame_rx_t head;
  route_e    route;
  logic      echo_allowed;
  assign head = rx_frame.data;

  // An echo request without a unicast source, or above the permitted rate, is dropped.
  wire answers_echo = head.headers.one_host && echo_allowed;
  always_comb begin
    route = route_of(head.cls);
    if (head.cls == CLASS_ICMP && !answers_echo) route = TO_DROP;
    if (head.cls == CLASS_UDP)
      unique case (head.listener)
        LISTENS_SERVICE: route = TO_SERVICES;
        LISTENS_KERNEL:  route = TO_DATAGRAMS;
        default:         route = TO_DROP;
      endcase
  end

  typedef struct packed {
    route_e    route;
    frame_rx_t frame;
  } routed_t;

  stream_if #(.T(routed_t)) routed_in ();
  stream_if #(.T(routed_t)) routed ();
  stream_if #(.T(route_e)) payload_route ();
  stream_if #(.T(routed_t)) taker[ROUTES] ();
  axis_if #(.DATA_W(DATA_W)) payload_taker[ROUTES] ();
  logic routes_empty;

  wire has_payload = head.payload_length != '0;
  wire room = routed_in.ready && payload_route.ready;

  assign rx_frame.ready  = room;
  assign routed_in.valid = rx_frame.valid && payload_route.ready;
  assign routed_in.data  = '{route: route, frame: head};
  assign payload_route.valid   = rx_frame.valid && routed_in.ready && has_payload;
  assign payload_route.data    = route;

  stream_slice #(.T(routed_t), .SKID(1'b0)) routed_slice (.clk, .rst, .in(routed_in), .out(routed));

  routed_t routed_head;
  assign routed_head = routed.data;

  stream_demux #(.T(routed_t), .N(ROUTES)) demux (.in(routed), .select(routed_head.route), .out(taker));

  axis_if #(.DATA_W(DATA_W)) aligned ();
  axis_slice #(.DATA_W(DATA_W), .SKID(1'b0)) payload_slice (.clk, .rst, .in(rx_payload), .out(aligned));

  axis_steer #(.DATA_W(DATA_W), .N(ROUTES), .DEPTH(8)) payloads (
      .clk, .rst, .in(aligned), .route(payload_route), .out(payload_taker), .empty(routes_empty)
  );

  assign route_idle = routes_empty && !routed.valid;

  // RoCE: to the transport.
  routed_t roce_frame;
  assign roce_frame = taker[TO_ROCE].data;
  assign frame.valid = taker[TO_ROCE].valid;
  assign frame.data  = roce_frame.frame;
  assign taker[TO_ROCE].ready = frame.ready;

  axis_wires roce_payload (.in(payload_taker[TO_ROCE]), .out(payload));

  // Services.
  routed_t service_routed;
  assign service_routed = taker[TO_SERVICES].data;
  assign service_frame.valid = taker[TO_SERVICES].valid;
  assign service_frame.data  = service_routed.frame;
  assign taker[TO_SERVICES].ready = service_frame.ready;

  axis_wires to_services (.in(payload_taker[TO_SERVICES]), .out(service_payload));

  // Kernels.
  routed_t datagram_routed;
  assign datagram_routed = taker[TO_DATAGRAMS].data;
  assign datagram_frame.valid = taker[TO_DATAGRAMS].valid;
  assign datagram_frame.data  = datagram_routed.frame;
  assign taker[TO_DATAGRAMS].ready = datagram_frame.ready;

  axis_wires to_datagrams (.in(payload_taker[TO_DATAGRAMS]), .out(datagram_payload));

  // Dropped: a class without a route, or a frame that its route does not accept.
  routed_t dropped;
  assign dropped = taker[TO_DROP].data;
  assign taker[TO_DROP].ready = 1'b1;
  assign payload_taker[TO_DROP].tready = 1'b1;
  assign payload_taker[TO_NEIGHBOURS].tready = 1'b1;  // has none

  always_comb begin
    route_events = '0;
    route_events.drop_arp_overflow = arp_overflow;
    route_events.drop_nd = nd_malformed;
    if (taker[TO_DROP].valid)
      unique case (dropped.frame.cls)
        CLASS_ICMP: begin
          route_events.drop_icmp = !dropped.frame.headers.one_host;
          route_events.drop_icmp_rate = dropped.frame.headers.one_host;
        end
        CLASS_UDP:   route_events.drop_udp_port = 1'b1;
        CLASS_TCP:   route_events.drop_tcp = 1'b1;
        CLASS_IP:    route_events.drop_ip_protocol = 1'b1;
        CLASS_IPV6:  route_events.drop_ipv6 = 1'b1;
        CLASS_VLAN:  route_events.drop_vlan = 1'b1;
        CLASS_GROUP: route_events.drop_group = 1'b1;
        CLASS_OTHER: route_events.drop_ethertype = 1'b1;
        default:     ;
      endcase
  end
  always_ff @(posedge clk) if (!rst && taker[TO_DROP].valid) assert (route_events != '0);  // every drop is counted

  // ICMP errors are never about packets of several hosts or to several (RFC 1122, 3.2.2.1); fragments and ICMP do not come here.
  l3_t dropped_ip;
  assign dropped_ip = dropped.frame.headers.l3;
  assign unwanted_valid = taker[TO_DROP].valid && dropped.frame.cls inside {CLASS_UDP, CLASS_TCP, CLASS_IP}
                          && dropped.frame.headers.one_host && !dropped.frame.headers.l2.group && !dropped_ip.v6;
  assign unwanted = '{
      mac: dropped.frame.headers.l2.src,
      ipv4: '{
          version: 4'd4,
          ihl: 4'd5,
          dscp: dropped_ip.dscp,
          ecn: dropped_ip.ecn,
          total_length: dropped_ip.total_length,
          identification: dropped_ip.fragment.identification,
          flag_reserved: dropped_ip.fragment.reserved,
          flag_df: dropped_ip.fragment.df,
          flag_mf: dropped_ip.fragment.mf,
          fragment_offset: dropped_ip.fragment.offset,
          ttl: dropped_ip.hop_limit,
          protocol: dropped_ip.protocol,
          header_checksum: dropped_ip.header_checksum,
          src: ipv4_of(dropped_ip.src),
          dst: ipv4_of(dropped_ip.dst)
      },
      first: dropped.frame.headers.l4.roce.udp   // whatever it is: the 8 bytes behind the IPv4 header
  };

  // ---- answer ----
  localparam int unsigned SENDERS = USERS + 2;
  localparam int unsigned ARP = USERS;
  localparam int unsigned ECHO = USERS + 1;

  stream_if #(.T(frame_tx_t)) send[SENDERS] ();
  axis_if #(.DATA_W(DATA_W)) send_payload[SENDERS] ();
  stream_if #(.T(frame_rx_t)) arp_rx ();
  stream_if #(.T(frame_rx_t)) echo_rx ();

  routed_t arp_frame, echo_frame;
  assign arp_frame = taker[TO_NEIGHBOURS].data;
  assign arp_rx.valid = taker[TO_NEIGHBOURS].valid;
  assign arp_rx.data = arp_frame.frame;
  assign taker[TO_NEIGHBOURS].ready = arp_rx.ready;
  assign echo_frame = taker[TO_ECHO].data;
  assign echo_rx.valid = taker[TO_ECHO].valid;
  assign echo_rx.data = echo_frame.frame;
  assign taker[TO_ECHO].ready = echo_rx.ready;

  neighbours #(
      .REQUEST_CYCLES(longint'(CLOCK_HZ) / 20),
      .EXPIRY_CYCLES(longint'(CLOCK_HZ) * 300),
      .QUEUE(DATA_W < 128 ? 16 : 32),
      .IPV6(IPV6)
  ) resolver (
      .clk, .rst, .now, .local_addr, .answers(!settings_q.answers_arp), .rx(arp_rx), .tx(send[ARP]), .query(arp_query), .answer(arp_answer),
      .claim(arp_claim), .watch(arp_watch), .nd_watch, .conflict(arp_conflict), .nd_conflict,
      .drop_overflow(arp_overflow), .drop_malformed(nd_malformed), .idle(arp_idle)
  );

  assign send_payload[ARP].tvalid = 1'b0;
  assign send_payload[ARP].tdata  = '0;
  assign send_payload[ARP].tkeep  = '0;
  assign send_payload[ARP].tlast  = 1'b0;
  assign send_payload[ARP].tuser  = 1'b0;

  icmp_echo #(.IPV6(IPV6)) echo (
      .clk, .rst, .local_addr, .rx(echo_rx), .rx_payload(payload_taker[TO_ECHO]), .tx(send[ECHO]),
      .tx_payload(send_payload[ECHO]), .idle(echo_idle)
  );

  // ---- echo rate: an echo request that waits for `tx` stalls all frames behind it ----
  logic echo_waits_q;
  always_ff @(posedge clk) echo_waits_q <= (echo_rx.valid && !echo_rx.ready) || (payload_taker[TO_ECHO].tvalid && !payload_taker[TO_ECHO].tready);
  hold_budget echo_budget (.clk, .rst, .now, .holds(echo_waits_q), .allowed(echo_allowed));

  // ---- transmit ----
  for (genvar i = 0; i < USERS; i++) begin : g_user
    assign send[i].valid    = user_tx[i].valid;
    assign send[i].data     = user_tx[i].data;
    assign user_tx[i].ready = send[i].ready;
    axis_wires of_user (.in(user_tx_payload[i]), .out(send_payload[i]));
  end

  axis_if #(.DATA_W(DATA_W)) sent ();
  localparam logic [SENDERS-1:0] ROCE = SENDERS'((1 << ROCE_USERS) - 1);

  packet_tx #(.DATA_W(DATA_W), .N(SENDERS), .IPV6(IPV6)) transmit (
      .clk, .rst, .vlan, .priorities(link.priorities),
      .stop(({SENDERS{stop_roce}} & ROCE) | ({SENDERS{stop_other}} & ~ROCE)),
      .frame(send), .payload(send_payload), .tx(sent), .events(tx_events), .idle(tx_idle)
  );

  // The network card's frames have their tags, if any, and need no ICRC: they join what is complete.
  axis_if #(.DATA_W(DATA_W)) line_tx ();
  logic card_sent, card_refused;
  if (CARD) begin : g_card_transmit
    axis_if #(.DATA_W(DATA_W)) open ();
    axis_if #(.DATA_W(DATA_W)) permitted ();
    axis_if #(.DATA_W(DATA_W)) both[2] ();
    logic guard_idle;
    card_guard #(.DATA_W(DATA_W)) guard (
        .clk, .rst, .settings(settings_q), .device(local_addr.mac), .in(card_tx), .out(permitted), .dropped(card_refused), .idle(guard_idle)
    );
    axis_gate card_gate (.clk, .rst, .stop(stop_other), .in(permitted), .out(open));
    axis_pad #(.DATA_W(DATA_W)) pad (.clk, .rst, .in(open), .out(both[1]));
    axis_wires of_device (.in(sent), .out(both[0]));
    axis_share #(.DATA_W(DATA_W)) share (.clk, .rst, .in(both), .out(line_tx));
    assign card_sent    = both[1].tvalid && both[1].tready && both[1].tlast;
    assign card_tx_idle = !card_tx.tvalid && guard_idle && !both[1].tvalid;
  end else begin : g_no_card_transmit
    axis_wires of_device (.in(sent), .out(line_tx));
    assign card_tx.tready = 1'b0;
    assign {card_sent, card_refused} = '0;
    assign card_tx_idle   = 1'b1;
    logic unused_ok;
    assign unused_ok = &{1'b0, card_tx.tvalid, card_tx.tdata, card_tx.tkeep, card_tx.tlast, card_tx.tuser};
  end
  always_comb begin
    card_events = '0;
    card_events.tx_card          = card_sent;
    card_events.drop_card_source = card_refused;
  end

  // Where all is stopped, also what was taken already.
  axis_gate gate (.clk, .rst, .stop(stop_roce && stop_other), .in(line_tx), .out(tx));

  packet_events_t link_events;
  always_comb begin
    link_events = '0;
    link_events.rx_pause      = rx_pause;
    link_events.rx_pfc        = rx_pfc;
    link_events.stopped_roce  = stop_roce;
    link_events.stopped_other = stop_other;
    link_events.pause_ignored = pause_ignored;
  end

  logic unused_classified;
  assign unused_classified = &{1'b0, classified.flow, classified.place, classified.hit, classified.position, classified.length, classified.over};   // counted where they come from

  assign events = rx_events | tx_events | route_events | link_events | card_events;
  assign idle = pause_idle && untagged_idle && card_rx_idle && card_tx_idle
                && rx_idle && tx_idle && arp_idle && echo_idle && route_idle && !aligned.tvalid;
endmodule
