// SPDX-License-Identifier: Apache-2.0

// Address resolution (RFC 826) for one IPv4 address on Ethernet: answers requests for it, resolves the addresses of other hosts for the
// device, and sends an announcement whenever the device gets an address. Then it forgets all other hosts: they may be of another network.
//
// A query is answered from the cache, found or not, within 4 * ENTRIES + 10 cycles as long as `tx` does not stall: it never waits for the
// network. Answers have the order of the queries. For an address that is not found an ARP request is sent, unless one was sent less than
// REQUEST_CYCLES ago; the unit that needs the address repeats its query later. A host outside of the prefix is reached through the gateway;
// without a gateway it is not found.
//
// Received frames wait in a queue of QUEUE entries; a frame that finds it full is dropped and counted, so that `rx` never stalls. Frames
// between other hosts may use a quarter of it, so that entries stay free for frames to this device.
//
// The cache has two parts of ENTRIES hosts each, so that neither can evict the other: addresses that the device has requested, and others.
// As in RFC 826, a frame to this device creates or updates an entry, and any other frame updates one. An entry is valid for EXPIRY_CYCLES
// after the last frame of its host, and is then dropped. When all entries of a part are in use they are replaced round robin.
//
// For the detection of conflicts (RFC 5227) it sends what comes as a `claim`, as soon as it can, and reports each frame of another host that
// has the address of `watch`, 2 cycles after it, whether or not there is room for the frame. Without an address (0.0.0.0) no host is found
// and none is answered.
module arp
  import packet_pkg::*;
  import frame_pkg::*;
  import time_pkg::*;
#(
    parameter int unsigned ENTRIES = 8,               // of each part, a power of two
    parameter int unsigned QUEUE = 32,                // a power of two, 4 or more
    parameter longint unsigned REQUEST_CYCLES = 12_500_000,
    parameter longint unsigned EXPIRY_CYCLES = 64'd75_000_000_000
) (
    input  logic        clk,
    input  logic        rst,
    input  time_t       now,
    input  local_addr_t local_addr,
    stream_if.sink      rx,      // frame_rx_t of CLASS_ARP; always accepted
    stream_if.source    tx,      // frame_tx_t
    stream_if.sink      query,   // ip_addr_t
    stream_if.source    answer,  // arp_answer_t
    stream_if.sink      claim,   // arp_claim_t
    input  arp_watch_t  watch,
    output logic        conflict,       // pulse
    output logic        drop_overflow,  // pulse: a received frame found the queue full
    output logic        idle
);
  localparam int unsigned SLOTS = 2 * ENTRIES;       // first the others, then those requested
  localparam int unsigned SLOT_W = $clog2(SLOTS);
  localparam int unsigned EXPIRY_BITS = $clog2(EXPIRY_CYCLES + 1);

  if (ENTRIES < 2 || 2 ** SLOT_W != SLOTS || REQUEST_CYCLES > EXPIRY_CYCLES) begin : g_bad
    $fatal(1, "arp: ENTRIES must be a power of two, 2 or more, and REQUEST_CYCLES at most EXPIRY_CYCLES");
  end

  typedef logic [SLOT_W-1:0] slot_t;
  typedef logic [SLOT_W-2:0] turn_t;   // within a part
  localparam bit HEARD = 1'b0;
  localparam bit ASKED = 1'b1;

  typedef struct packed {
    eth_hdr_t eth;
    arp_hdr_t arp;
  } arp_frame_t;

  // The fields of a received frame that are used.
  typedef struct packed {
    logic       for_us;
    logic       asks;
    mac_t       sha;
    ipv4_addr_t spa;
  } heard_t;

  typedef struct packed {
    ipv4_addr_t ip;
    mac_t       mac;
    time_t      expiry;
  } entry_t;

  typedef enum logic [2:0] {
    S_IDLE,
    S_SCAN,    // look for the address, one entry a cycle
    S_LEARN,   // write a received frame to the cache
    S_LOOKUP,  // the result of a query
    S_ANSWER,
    S_SEND
  } state_e;

  // ---- received frames ----
  stream_if #(.T(heard_t)) arrived ();
  stream_if #(.T(heard_t)) heard ();
  logic       queue_empty;
  l4_arp_t    rx_arp;
  frame_rx_t  rx_frame;
  assign rx_frame = rx.data;
  assign rx_arp   = rx_frame.headers.l4.arp;

  logic [$clog2(QUEUE+2)-1:0] waiting_q;
  stream_fifo #(.T(heard_t), .DEPTH(QUEUE)) queue (.clk, .rst, .in(arrived), .out(heard), .empty(queue_empty));
  wire room = arrived.ready && (arrived.data.for_us || waiting_q < $bits(waiting_q)'(QUEUE / 4));
  wire probe = !arrived.data.for_us && arrived.data.spa == '0;   // for another host's address (RFC 5227): has no sender address
  assign arrived.valid = rx.valid && room && !probe;
  assign arrived.data  = '{
      for_us: rx_arp.tpa == local_addr.ip && local_addr.ip != '0,
      asks: rx_arp.request,
      sha: rx_arp.sha,
      spa: rx_arp.spa
  };
  assign rx.ready = 1'b1;
  always_ff @(posedge clk) begin
    drop_overflow <= !rst && rx.valid && !room && !probe;
    waiting_q     <= rst ? '0 : waiting_q + $bits(waiting_q)'(arrived.valid) - $bits(waiting_q)'(heard.valid && heard.ready);
  end

  // ---- conflicts ----
  logic foreign_q, claimed_q, probed_q;
  always_ff @(posedge clk) begin
    foreign_q <= !rst && rx.valid && watch.valid && rx_arp.sha != local_addr.mac;
    claimed_q <= rx_arp.spa == watch.ip;
    probed_q  <= watch.probing && rx_arp.request && rx_arp.spa == '0 && rx_arp.tpa == watch.ip;
    conflict  <= !rst && foreign_q && (claimed_q || probed_q);
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
  ipv4_addr_t  key_q;         // address that the scan looks for: the sender's, the host's or the gateway's
  logic        of_host_q;     // the frame was sent by another host
  logic        reachable_q;
  logic        request_q;     // a request follows the answer
  mac_t        found_mac_q;
  arp_answer_t answer_q;
  logic        announced_q;
  ipv4_addr_t  ip_q;          // which was announced
  logic        changed_q;     // is no longer the device's
  arp_frame_t  tx_q;

  ip_addr_t   queried;
  ipv4_addr_t asked;
  assign queried = query.data;
  assign asked   = ipv4_of(queried);
  ipv4_addr_t mask_q;         // of the prefix
  always_ff @(posedge clk) mask_q <= ~(ipv4_addr_t'('1) >> local_addr.prefix_length);
  wire on_link = ((asked ^ local_addr.ip) & mask_q) == '0;

  function automatic arp_frame_t make(logic [15:0] oper, mac_t dst, mac_t tha, ipv4_addr_t tpa, logic anonymous);
    return '{
        eth: '{dst: dst, src: local_addr.mac, ethertype: ETHERTYPE_ARP},
        arp: '{htype: ARP_HTYPE_ETHERNET, ptype: ETHERTYPE_IPV4, hlen: 8'd6, plen: 8'd4, oper: oper,
               sha: local_addr.mac, spa: anonymous ? '0 : local_addr.ip, tha: tha, tpa: tpa}
    };
  endfunction

  wire teaches = state_q == S_LEARN && of_host_q && (found_q || heard_q.for_us);
  wire requests = state_q == S_LOOKUP && reachable_q && !found_q;
  wire half = requests ? ASKED : HEARD;
  slot_t write_slot;
  assign write_slot = found_q ? found_slot_q : {half, free_q[half] ? free_turn_q[half] : turn_q[half]};

  always_ff @(posedge clk) if (teaches || requests)
    entries[write_slot] <= {key_q, heard_q.sha, now + (requests ? time_t'(REQUEST_CYCLES) : time_t'(EXPIRY_CYCLES))};

  // A query has priority: the unit that sends queries is busy between two of them.
  wire   ready = state_q == S_IDLE && announced_q && !changed_q;
  arp_claim_t claimed;
  assign claimed      = claim.data;
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
  end

  assign idle = ready && queue_empty && !claim.valid && !foreign_q && !conflict;

  always_ff @(posedge clk) begin
    slot_q    <= slot_next;
    read_q    <= read;
    alive_q   <= used_q[slot_next] && time_ahead(now, read.expiry, EXPIRY_BITS);
    written_q <= (teaches || requests) && write_slot == slot_next;
    of_host_q <= heard_q.spa != '0 && heard_q.spa != local_addr.ip;   // stable long before the scan ends
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
            if (local_addr.ip != '0) state_q <= S_SEND;
          end
        end else if (!local_addr.enable || changed_q) begin
          announced_q <= 1'b0;
        end else if (claim.valid) begin
          tx_q <= make(ARP_REQUEST, MAC_BROADCAST, '0, claimed.ip, claimed.probe);
          state_q <= S_SEND;
        end else if (query.valid) begin
          key_q <= on_link ? asked : local_addr.gateway;
          reachable_q <= local_addr.ip != '0 && (on_link || local_addr.gateway != '0);
          receiving_q <= 1'b0;
          state_q <= S_SCAN;
        end else if (heard.valid) begin
          heard_q <= heard.data;
          key_q <= heard.data.spa;
          receiving_q <= 1'b1;
          state_q <= S_SCAN;
        end
      end

      S_SCAN: begin
        left_q <= left_q - 1'b1;
        if (alive_q && read_q.ip == key_q) begin
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
        tx_q <= make(ARP_REPLY, heard_q.sha, heard_q.sha, heard_q.spa, 1'b0);
        state_q <= (heard_q.for_us && heard_q.asks && local_addr.ip != '0) ? S_SEND : S_IDLE;
      end

      S_LOOKUP: begin
        answer_q <= '{found: reachable_q && found_q && found_known_q, mac: found_mac_q};
        request_q <= requests;
        tx_q <= make(ARP_REQUEST, MAC_BROADCAST, '0, key_q, 1'b0);
        state_q <= S_ANSWER;
      end

      S_ANSWER: if (answer.ready) state_q <= request_q ? S_SEND : S_IDLE;

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
