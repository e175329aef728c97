// SPDX-License-Identifier: Apache-2.0

// Address resolution on Ethernet, by ARP (RFC 826) for one IPv4 address, and by neighbour discovery (RFC 4861) for a link-local and a global
// IPv6 address: answers requests for them, and resolves the addresses of other hosts for the device. It announces the IPv4 address whenever
// the device gets one, and then forgets all other hosts: they may be of another network.
//
// A query is answered from the cache, found or not, within 4 * ENTRIES + 10 cycles (30 more while a message of neighbour discovery is
// summed) as long as `tx` does not stall: it never waits for the network. Answers have the order of the queries. For an address that is not
// found a request is sent, unless one was sent less than REQUEST_CYCLES ago; the unit that needs the address repeats its query later. A host
// outside of the prefix is reached through the gateway or router; without one it is not found.
//
// Received frames wait in a queue of QUEUE entries; a frame that finds it full is dropped and counted, so that `rx` never stalls. Frames
// between other hosts, and what is sent to all, may use a quarter of it, so that entries stay free for frames to this device.
//
// The cache has two parts of ENTRIES hosts each, so that neither can evict the other: addresses that the device has requested, and others.
// As in RFC 826, a frame to this device creates or updates an entry, and any other frame updates one; a neighbour advertisement never
// creates one, and without its override flag has no effect on one that is known (RFC 4861, 7.2.5). An entry is valid for EXPIRY_CYCLES
// after the last frame of its host, and is then dropped: there are no probes of its reachability. When all entries of a part are in use they
// are replaced round robin.
//
// Of a message of neighbour discovery the options are read of which each before it has 8 bytes, ND_OPTIONS at most. One that is malformed
// (RFC 4861, 7.1) has no effect but `drop_malformed`.
//
// For the detection of conflicts (RFC 5227, RFC 4862) it sends what comes as a `claim`, as soon as it can, and reports each frame of another
// host that has the address of `watch` or `nd_watch`, 2 cycles after it, whether or not there is room for the frame. Without an address no
// host is found and none is answered.
module neighbours
  import packet_pkg::*;
  import frame_pkg::*;
  import time_pkg::*;
#(
    parameter int unsigned ENTRIES = 8,               // of each part, a power of two
    parameter int unsigned QUEUE = 32,                // a power of two, 4 or more
    parameter longint unsigned REQUEST_CYCLES = 12_500_000,
    parameter longint unsigned EXPIRY_CYCLES = 64'd75_000_000_000,
    parameter bit IPV6 = 1'b1
) (
    input  logic        clk,
    input  logic        rst,
    input  time_t       now,
    input  local_addr_t local_addr,
    input  logic        answers, // requests for these addresses; else the host of the network card does
    stream_if.sink      rx,      // frame_rx_t of CLASS_ARP or CLASS_ND; always accepted
    stream_if.source    tx,      // frame_tx_t
    stream_if.sink      query,   // ip_addr_t
    stream_if.source    answer,  // arp_answer_t
    stream_if.sink      claim,   // arp_claim_t
    input  arp_watch_t  watch,
    input  nd_watch_t   nd_watch,
    output logic        conflict,       // pulses
    output logic        nd_conflict,
    output logic        drop_overflow,  // a received frame found the queue full
    output logic        drop_malformed,
    output logic        idle
);
  localparam int unsigned SLOTS = 2 * ENTRIES;       // first the others, then those requested
  localparam int unsigned SLOT_W = $clog2(SLOTS);
  localparam int unsigned EXPIRY_BITS = $clog2(EXPIRY_CYCLES + 1);
  localparam int unsigned KEY_W = IPV6 ? $bits(ip_addr_t) : $bits(ipv4_addr_t);  // of an address in the cache

  if (ENTRIES < 2 || 2 ** SLOT_W != SLOTS || REQUEST_CYCLES > EXPIRY_CYCLES) begin : g_bad
    $fatal(1, "neighbours: ENTRIES must be a power of two, 2 or more, and REQUEST_CYCLES at most EXPIRY_CYCLES");
  end

  typedef logic [SLOT_W-1:0] slot_t;
  typedef logic [SLOT_W-2:0] turn_t;   // within a part
  typedef logic [KEY_W-1:0] key_t;
  localparam bit HEARD = 1'b0;
  localparam bit ASKED = 1'b1;

  typedef struct packed {
    eth_hdr_t eth;
    arp_hdr_t arp;
  } arp_frame_t;

  // The fields of a received frame that are used.
  typedef struct packed {
    logic     v6;
    logic     for_us;
    logic     asks;
    logic     global_;    // IPv6: for the global address, else the link-local one
    logic     keeps;      // IPv6: does not change the MAC address of an entry
    mac_t     mac;
    ip_addr_t ip;         // of the sender
  } heard_t;

  typedef struct packed {
    key_t  ip;
    mac_t  mac;
    time_t expiry;
  } entry_t;

  typedef enum logic [2:0] {
    S_IDLE,
    S_SCAN,    // look for the address, one entry a cycle
    S_LEARN,   // write a received frame to the cache
    S_LOOKUP,  // the result of a query
    S_ANSWER,
    S_SUM,     // the checksum of a message of neighbour discovery
    S_SEND
  } state_e;

  // ---- received frames ----
  stream_if #(.T(heard_t)) arrived ();
  stream_if #(.T(heard_t)) heard ();
  logic       queue_empty;
  l4_arp_t    rx_arp;
  l4_nd_t     rx_nd;
  l3_t        rx_ip;
  frame_rx_t  rx_frame;
  heard_t     from_arp, from_nd, came;
  assign rx_frame = rx.data;
  assign rx_arp   = rx_frame.headers.l4.arp;
  assign rx_nd    = rx_frame.headers.l4.nd;
  assign rx_ip    = rx_frame.headers.l3;
  wire rx_v6 = IPV6 && rx_frame.cls == CLASS_ND;

  assign from_arp = '{
      v6: 1'b0,
      for_us: rx_arp.tpa == local_addr.ip && local_addr.ip != '0,
      asks: rx_arp.request && answers,
      global_: 1'b0,
      keeps: 1'b0,
      mac: rx_arp.sha,
      ip: ip_mapped(rx_arp.spa)
  };

  // ---- neighbour discovery: the link-layer address among the options ----
  wire asks = rx_nd.icmp_type == ND_NEIGHBOUR_SOLICITATION;
  wire anonymous = rx_ip.src[127:64] == '0;          // the unspecified address: the parser takes no other one like it
  logic has_lla, options_ok;
  mac_t lla;
  always_comb begin
    logic reads;
    reads      = 1'b1;
    has_lla    = 1'b0;
    options_ok = 1'b1;
    lla        = '0;
    for (int unsigned i = 0; i < ND_OPTIONS; i++) begin
      nd_lla_t option;
      option = rx_nd.options[ND_OPTIONS-1-i];
      if (rx_ip.total_length < 16'(ND_HDR_BYTES) + 16'(i * $bits(nd_lla_t) / 8)) reads = 1'b0;
      if (reads) begin
        if (option.length == '0) options_ok = 1'b0;
        if (!has_lla && option.length == 8'd1 && option.option == (asks ? ND_OPTION_SOURCE_LLA : ND_OPTION_TARGET_LLA)) begin
          has_lla = 1'b1;
          lla     = option.mac;
        end
        if (option.length != 8'd1) reads = 1'b0;
      end
    end
  end
  wire malformed = !options_ok || came.mac[MAC_GROUP_BIT] || (asks && anonymous && has_lla)
                   || (!asks && anonymous) || (!asks && rx_nd.solicited && rx_frame.headers.l2.group);
  wire to_link_local = rx_nd.target == local_addr.link_local && local_addr.link_local != '0;
  wire to_global     = rx_nd.target == local_addr.global_ && local_addr.global_ != '0;

  // An advertisement without a link-layer address has nothing to tell: all solicitations of the device are to groups, and want one.
  wire useless = rx_v6 && (asks ? !to_link_local && !to_global : !has_lla || rx_nd.target[127:64] == '0);
  assign from_nd = '{
      v6: 1'b1,
      for_us: asks,
      asks: asks && answers,
      global_: to_global,
      keeps: !asks && !rx_nd.override_,
      mac: has_lla ? lla : rx_frame.headers.l2.src,
      ip: asks ? rx_ip.src : rx_nd.target
  };
  assign came = rx_v6 ? from_nd : from_arp;

  logic   wanted_q, favoured_q;
  heard_t came_q;
  logic [$clog2(QUEUE+2)-1:0] waiting_q;
  stream_fifo #(.T(heard_t), .DEPTH(QUEUE)) queue (.clk, .rst, .in(arrived), .out(heard), .empty(queue_empty));
  wire favoured = rx_v6 ? asks || !rx_frame.headers.l2.group : came.for_us;
  wire room = arrived.ready && (favoured_q || waiting_q < $bits(waiting_q)'(QUEUE / 4));
  wire probe = !rx_v6 && !came.for_us && rx_arp.spa == '0;   // for another host's address (RFC 5227): has no sender address
  wire wanted = rx.valid && !probe && !useless && !(rx_v6 && malformed);
  assign arrived.valid = wanted_q && room;
  assign arrived.data  = came_q;
  assign rx.ready = 1'b1;
  always_ff @(posedge clk) begin
    wanted_q       <= !rst && wanted;
    favoured_q     <= favoured;
    came_q         <= came;
    drop_overflow  <= !rst && wanted_q && !room;
    drop_malformed <= !rst && rx.valid && rx_v6 && malformed;
    waiting_q      <= rst ? '0 : waiting_q + $bits(waiting_q)'(arrived.valid) - $bits(waiting_q)'(heard.valid && heard.ready);
  end

  // ---- conflicts ----
  logic foreign_q, claimed_q, probed_q, nd_foreign_q;
  always_ff @(posedge clk) begin
    foreign_q <= !rst && rx.valid && !rx_v6 && watch.valid && rx_arp.sha != local_addr.mac;
    claimed_q <= rx_arp.spa == watch.ip;
    probed_q  <= watch.probing && rx_arp.request && rx_arp.spa == '0 && rx_arp.tpa == watch.ip;
    conflict  <= !rst && foreign_q && (claimed_q || probed_q);
    nd_foreign_q <= !rst && rx.valid && rx_v6 && nd_watch.valid && !malformed && rx_nd.target == nd_watch.ip && (!asks || anonymous)
                    && rx_frame.headers.l2.src != local_addr.mac;
    nd_conflict  <= !rst && nd_foreign_q;
  end

  // ---- the cache: each cycle one entry is read, a cycle ahead, and dropped if it has expired ----
  (* ram_style = "distributed" *) logic [$bits(entry_t)-1:0] entries[SLOTS];
  logic [SLOTS-1:0] used_q, known_q;   // an entry that is used but not known: its host was requested
  slot_t  slot_q, found_slot_q;
  logic   found_q, found_known_q;
  logic [1:0] free_q;                  // of each part
  turn_t [1:0] free_turn_q, turn_q;
  entry_t read, read_q;                // read_q: the entry of slot_q
  logic   alive_q;
  logic   written_q;                   // written in the previous cycle: the value read is older
  wire slot_t slot_next = slot_q + 1'b1;
  wire    part = slot_q[SLOT_W-1];
  assign read = entry_t'(entries[slot_next]);

  // ---- the current query or frame ----
  state_e      state_q;
  slot_t       left_q;        // entries that the scan has not checked yet
  logic        receiving_q;   // the scan is for a received frame, else for a query
  heard_t      heard_q;
  ip_addr_t    key_q;         // address that the scan looks for: the sender's, the host's or the router's
  logic        of_host_q;     // the frame was sent by another host
  logic        reachable_q;
  logic        request_q;     // a request follows the answer
  mac_t        found_mac_q;
  arp_answer_t answer_q;
  logic        announced_q;
  ipv4_addr_t  ip_q;          // which was announced
  logic        changed_q;     // is no longer the device's
  arp_frame_t  tx_q;

  ip_addr_t   asked;
  assign asked = query.data;
  wire asked_v6 = IPV6 && !is_mapped(asked);
  ipv4_addr_t mask_q;         // of the prefix
  always_ff @(posedge clk) mask_q <= ~(ipv4_addr_t'('1) >> local_addr.prefix_length);
  wire on_link = asked_v6 ? is_link_local(asked) || (local_addr.on_link && asked[127:64] == local_addr.global_[127:64])
                          : ((ipv4_of(asked) ^ local_addr.ip) & mask_q) == '0;
  logic has_ip_q, has_local_q, has_global_q, has_gateway_q, has_router_q;
  always_ff @(posedge clk) begin
    has_ip_q      <= local_addr.ip != '0;
    has_local_q   <= local_addr.link_local != '0;
    has_global_q  <= local_addr.global_ != '0;
    has_gateway_q <= local_addr.gateway != '0;
    has_router_q  <= local_addr.router != '0;
  end
  wire has_own = asked_v6 ? (is_link_local(asked) ? has_local_q : has_global_q) : has_ip_q;   // as source_address
  wire has_way = on_link || (asked_v6 ? has_router_q : has_gateway_q);

  function automatic arp_frame_t make(logic [15:0] oper, mac_t dst, mac_t tha, ipv4_addr_t tpa, logic anonymous_);
    return '{
        eth: '{dst: dst, src: local_addr.mac, ethertype: ETHERTYPE_ARP},
        arp: '{htype: ARP_HTYPE_ETHERNET, ptype: ETHERTYPE_IPV4, hlen: 8'd6, plen: 8'd4, oper: oper,
               sha: local_addr.mac, spa: anonymous_ ? '0 : local_addr.ip, tha: tha, tpa: tpa}
    };
  endfunction

  // ---- messages of neighbour discovery ----
  typedef enum logic [1:0] {
    ND_SOLICIT,               // the MAC address of `about`
    ND_PROBE,                 // the same without an address
    ND_ADVERTISE,             // an own address
    ND_ROUTERS
  } nd_kind_e;
  typedef struct packed {
    nd_kind_e kind;
    logic     solicited;      // ND_ADVERTISE: to `about`, else to all nodes
    logic     global_;        //               the global address, else the link-local one
    mac_t     mac;            //               of `about`
    ip_addr_t about;
  } nd_tx_t;
  nd_tx_t nd_q;
  logic   tx_v6_q;            // nd_q is what is sent, else tx_q

  ip_addr_t nd_own, nd_src, nd_dst, nd_target;
  assign nd_own    = nd_q.global_ ? local_addr.global_ : local_addr.link_local;
  assign nd_target = nd_q.kind == ND_ADVERTISE ? nd_own : nd_q.kind == ND_ROUTERS ? '0 : nd_q.about;
  always_comb
    unique case (nd_q.kind)
      ND_PROBE: {nd_src, nd_dst} = {128'd0, solicited_node(nd_q.about)};
      ND_ADVERTISE: {nd_src, nd_dst} = {nd_own, nd_q.solicited ? nd_q.about : ALL_NODES};
      ND_ROUTERS: {nd_src, nd_dst} = {local_addr.link_local, ALL_ROUTERS};
      default: {nd_src, nd_dst} = {nd_own, solicited_node(nd_q.about)};
    endcase

  typedef struct packed {
    eth_hdr_t  eth;
    ipv6_hdr_t ipv6;
    nd_hdr_t   nd;
  } nd_frame_t;
  typedef struct packed {
    eth_hdr_t    eth;
    ipv6_hdr_t   ipv6;
    logic [63:0] head;        // of nd_hdr_t
    nd_lla_t     lla;
  } routers_frame_t;
  localparam int unsigned ND_FRAME_BYTES = $bits(nd_frame_t) / 8;
  localparam int unsigned LLA_BYTES = $bits(nd_lla_t) / 8;
  localparam int unsigned ROUTERS_FRAME_BYTES = $bits(routers_frame_t) / 8;

  // What is summed beside the addresses: the rest of the pseudo-header, and the message. A word a cycle.
  logic [15:0] sum_q;
  logic [4:0]  step_q;
  nd_lla_t     nd_lla;
  logic [7:0]  nd_type;
  logic [15:0] nd_length;
  logic [7:0][15:0] nd_rest;
  assign nd_lla = nd_q.kind == ND_PROBE ? '0
      : '{option: nd_q.kind == ND_ADVERTISE ? ND_OPTION_TARGET_LLA : ND_OPTION_SOURCE_LLA, length: 8'd1, mac: local_addr.mac};
  assign nd_type = nd_q.kind == ND_ADVERTISE ? ND_NEIGHBOUR_ADVERTISEMENT
                   : nd_q.kind == ND_ROUTERS ? ND_ROUTER_SOLICITATION : ND_NEIGHBOUR_SOLICITATION;
  assign nd_length = nd_q.kind == ND_ROUTERS ? 16'(ROUTERS_FRAME_BYTES - ETH_HDR_BYTES - IPV6_HDR_BYTES)
                     : nd_q.kind == ND_PROBE ? 16'(ND_HDR_BYTES - LLA_BYTES) : 16'(ND_HDR_BYTES);
  wire [15:0] nd_flags = nd_q.kind == ND_ADVERTISE ? {1'b0, nd_q.solicited, 1'b1, 13'd0} : '0;
  assign nd_rest = {nd_length, 8'd0, IPPROTO_ICMPV6, nd_type, 8'd0, nd_flags, nd_lla};

  logic [3:0][7:0][15:0] summed;
  assign summed = {nd_src, nd_dst, nd_target, nd_rest};
  wire [16:0] sum = 17'(sum_q) + 17'(summed[step_q[4:3]][step_q[2:0]]);
  always_ff @(posedge clk) begin
    step_q <= state_q == S_SUM ? step_q + 1'b1 : '0;
    sum_q  <= state_q == S_SUM ? sum[15:0] + 16'(sum[16]) : state_q == S_SEND ? sum_q : '0;
  end

  eth_hdr_t       nd_eth;
  ipv6_hdr_t      nd_ipv6;
  nd_frame_t      nd_frame;
  routers_frame_t routers_frame;
  assign nd_eth = '{dst: nd_q.kind == ND_ADVERTISE && nd_q.solicited ? nd_q.mac : mac_of_group(nd_dst), src: local_addr.mac,
                    ethertype: ETHERTYPE_IPV6};
  assign nd_ipv6 = '{version: 4'd6, dscp: '0, ecn: '0, flow_label: '0, payload_length: nd_length, next_header: IPPROTO_ICMPV6,
                     hop_limit: ND_HOP_LIMIT, src: nd_src, dst: nd_dst};
  assign nd_frame = '{
      eth: nd_eth,
      ipv6: nd_ipv6,
      nd: '{icmp_type: nd_type, code: '0, checksum: ~sum_q, router: 1'b0, solicited: nd_flags[14], override_: nd_flags[13],
            reserved: '0, target: nd_target, lla: nd_lla}
  };
  assign routers_frame = '{eth: nd_eth, ipv6: nd_ipv6, head: {nd_type, 8'd0, ~sum_q, 32'd0}, lla: nd_lla};

  wire teaches = state_q == S_LEARN && of_host_q && (found_q || heard_q.for_us)
                 && !(found_q && found_known_q && heard_q.keeps);
  wire requests = state_q == S_LOOKUP && reachable_q && !found_q;
  wire half = requests ? ASKED : HEARD;
  slot_t write_slot;
  assign write_slot = found_q ? found_slot_q : {half, free_q[half] ? free_turn_q[half] : turn_q[half]};

  always_ff @(posedge clk) if (teaches || requests)
    entries[write_slot] <= {key_t'(key_q), heard_q.mac, now + (requests ? time_t'(REQUEST_CYCLES) : time_t'(EXPIRY_CYCLES))};

  // A query has priority: the unit that sends queries is busy between two of them.
  wire   ready = state_q == S_IDLE && announced_q && !changed_q;
  arp_claim_t claimed;
  assign claimed      = claim.data;
  wire claimed_v6 = IPV6 && !is_mapped(claimed.ip);
  assign claim.ready  = ready;
  assign query.ready  = ready && !claim.valid;
  assign heard.ready  = ready && !claim.valid && !query.valid;
  assign tx.valid     = state_q == S_SEND;
  assign answer.valid = state_q == S_ANSWER;
  assign answer.data  = answer_q;

  always_comb begin
    tx.data = '0;
    tx.data.hdr_length = 7'(ETH_HDR_BYTES + ARP_HDR_BYTES);
    tx.data.hdr[HDR_BYTES*8-1-:$bits(arp_frame_t)] = tx_q;
    if (tx_v6_q && nd_q.kind == ND_ROUTERS) begin
      tx.data.hdr_length = 7'(ROUTERS_FRAME_BYTES);
      tx.data.hdr[HDR_BYTES*8-1-:$bits(routers_frame_t)] = routers_frame;
    end else if (tx_v6_q) begin
      tx.data.hdr_length = nd_q.kind == ND_PROBE ? 7'(ND_FRAME_BYTES - LLA_BYTES) : 7'(ND_FRAME_BYTES);
      tx.data.hdr[HDR_BYTES*8-1-:$bits(nd_frame_t)] = nd_frame;
    end
  end

  assign idle = ready && queue_empty && !wanted_q && !claim.valid && !foreign_q && !conflict && !nd_foreign_q && !nd_conflict;

  always_ff @(posedge clk) begin
    slot_q    <= slot_next;
    read_q    <= read;
    alive_q   <= used_q[slot_next] && time_ahead(now, read.expiry, EXPIRY_BITS);
    written_q <= (teaches || requests) && write_slot == slot_next;
    // Stable long before the scan ends.
    of_host_q <= heard_q.v6 ? heard_q.ip[127:64] != '0 && heard_q.ip != local_addr.link_local && heard_q.ip != local_addr.global_
                            : ipv4_of(heard_q.ip) != '0 && ipv4_of(heard_q.ip) != local_addr.ip;
    if (!alive_q && !written_q) used_q[slot_q] <= 1'b0;
    changed_q <= announced_q && ip_q != local_addr.ip;

    unique case (state_q)
      S_IDLE: begin
        left_q    <= slot_t'(SLOTS - 1);
        found_q   <= 1'b0;
        free_q    <= '0;
        request_q <= 1'b0;
        if (!announced_q) begin
          if (local_addr.enable) begin
            announced_q <= 1'b1;
            used_q <= '0;
            ip_q <= local_addr.ip;
            tx_q <= make(ARP_REQUEST, MAC_BROADCAST, '0, local_addr.ip, 1'b0);
            tx_v6_q <= 1'b0;
            if (local_addr.ip != '0) state_q <= S_SEND;
          end
        end else if (!local_addr.enable || changed_q) begin
          announced_q <= 1'b0;
        end else if (claim.valid) begin
          tx_q <= make(ARP_REQUEST, MAC_BROADCAST, '0, ipv4_of(claimed.ip), claimed.probe);
          tx_v6_q <= claimed_v6;
          nd_q <= '{
              kind: claimed.probe ? ND_PROBE : is_multicast(claimed.ip) ? ND_ROUTERS : ND_ADVERTISE,
              solicited: 1'b0,
              global_: !is_link_local(claimed.ip),
              mac: '0,
              about: claimed.ip
          };
          state_q <= claimed_v6 ? S_SUM : S_SEND;
        end else if (query.valid) begin
          key_q <= on_link ? asked : asked_v6 ? local_addr.router : ip_mapped(local_addr.gateway);
          reachable_q <= has_own && has_way && !(asked_v6 && is_multicast(asked));
          tx_v6_q <= asked_v6;
          receiving_q <= 1'b0;
          state_q <= S_SCAN;
        end else if (heard.valid) begin
          heard_q <= heard.data;
          key_q <= heard.data.ip;
          tx_v6_q <= heard.data.v6;
          receiving_q <= 1'b1;
          state_q <= S_SCAN;
        end
      end

      S_SCAN: begin
        left_q <= left_q - 1'b1;
        if (alive_q && read_q.ip == key_t'(key_q)) begin
          found_q <= 1'b1;
          found_known_q <= known_q[slot_q];
          found_slot_q <= slot_q;
          found_mac_q <= read_q.mac;
        end
        if (!alive_q) begin
          free_q[part] <= 1'b1;
          free_turn_q[part] <= turn_t'(slot_q);
        end
        if (left_q == '0) state_q <= receiving_q ? S_LEARN : S_LOOKUP;
      end

      S_LEARN: begin
        tx_q <= make(ARP_REPLY, heard_q.mac, heard_q.mac, ipv4_of(heard_q.ip), 1'b0);
        nd_q <= '{kind: ND_ADVERTISE, solicited: heard_q.ip != '0, global_: heard_q.global_, mac: heard_q.mac, about: heard_q.ip};
        if (!heard_q.for_us || !heard_q.asks) state_q <= S_IDLE;
        else if (heard_q.v6) state_q <= S_SUM;
        else state_q <= local_addr.ip != '0 ? S_SEND : S_IDLE;
      end

      S_LOOKUP: begin
        answer_q <= '{found: reachable_q && found_q && found_known_q, mac: found_mac_q};
        request_q <= requests;
        tx_q <= make(ARP_REQUEST, MAC_BROADCAST, '0, ipv4_of(key_q), 1'b0);
        nd_q <= '{kind: ND_SOLICIT, solicited: 1'b0, global_: !is_link_local(key_q), mac: '0, about: key_q};
        state_q <= S_ANSWER;
      end

      S_ANSWER: if (answer.ready) state_q <= !request_q ? S_IDLE : tx_v6_q ? S_SUM : S_SEND;

      S_SUM: if (step_q == '1) state_q <= S_SEND;

      S_SEND: if (tx.ready) state_q <= S_IDLE;

      default: state_q <= S_IDLE;
    endcase

    if (teaches || requests) begin
      used_q[write_slot]  <= 1'b1;
      known_q[write_slot] <= teaches;
      if (!found_q && !free_q[half]) turn_q[half] <= turn_q[half] + 1'b1;
    end
    if (rst) begin
      state_q     <= S_IDLE;
      slot_q      <= '0;
      used_q      <= '0;
      turn_q      <= '0;
      announced_q <= 1'b0;
    end
  end
endmodule
