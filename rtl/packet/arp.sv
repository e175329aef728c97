// SPDX-License-Identifier: Apache-2.0

// Address resolution (RFC 826) for one IPv4 address on Ethernet: answers who asks for us, finds others for the device, and
// announces the device when it gets its address.
//
// One thing at a time: a received frame or a question is dealt with within ENTRIES + 4 cycles, as long as `tx` takes what it
// causes. Answers come in the order of the questions. A question that the cache cannot answer is asked on the network up to
// TRIES times, TRY_CYCLES apart, and then answered "not found": every question is answered. Received frames are dealt with
// meanwhile. A host outside of the prefix is reached by the gateway; without one it is not found.
//
// The cache learns as RFC 826 says: from frames for us, and newer addresses of whom it knows from any frame. An entry serves
// for EXPIRY_CYCLES after the host was last heard. When all entries are taken the next in turn makes room.
module arp
  import packet_pkg::*;
#(
    parameter int unsigned ENTRIES = 16,
    parameter int unsigned TRIES = 3,
    parameter longint unsigned TRY_CYCLES = 25_000_000,
    parameter longint unsigned EXPIRY_CYCLES = 75_000_000_000
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [47:0] now,
    input  local_addr_t local_addr,
    stream_if.sink      rx,      // frame_rx_t of CLASS_ARP
    stream_if.source    tx,      // frame_tx_t
    stream_if.sink      query,   // ipv4_addr_t
    stream_if.source    answer,  // arp_answer_t
    output logic        idle     // an unanswered question on the network is a timer, not work
);
  localparam int unsigned SLOT_W = $clog2(ENTRIES);

  typedef logic [47:0] time_t;
  typedef logic [SLOT_W-1:0] slot_t;

  typedef struct packed {
    eth_hdr_t eth;
    arp_hdr_t arp;
  } arp_frame_t;

  typedef struct packed {
    ipv4_addr_t ip;
    mac_t       mac;
    time_t      expiry;
  } entry_t;

  typedef enum logic [2:0] {
    S_IDLE,
    S_SCAN,    // look for the address, one entry a cycle
    S_LEARN,   // what a received frame says
    S_LOOKUP,  // what the cache says to a question
    S_SEND,
    S_ANSWER
  } state_e;

  typedef enum logic [1:0] {
    Q_NONE,
    Q_NEW,     // came in, cache not yet asked
    Q_ASKED    // on the network
  } question_e;

  // `t` is not in the future, modulo 2^48.
  function automatic logic reached(time_t t);
    time_t d;
    d = now - t;
    return !d[47];
  endfunction

  // ---- the cache ----
  (* ram_style = "distributed" *) logic [$bits(entry_t)-1:0] entries[ENTRIES];
  logic [ENTRIES-1:0] used_q;
  slot_t  slot_q, found_slot_q, free_slot_q, turn_q;
  logic   found_q, free_q;
  entry_t read;
  assign read = entry_t'(entries[slot_q]);

  // ---- what is being dealt with ----
  state_e      state_q;
  question_e   question_q;
  logic        receiving_q;   // the scan is for a received frame, else for the question
  ipv4_addr_t  key_q;         // address that the scan looks for
  ipv4_addr_t  target_q;      // address that the question is about: the host's or the gateway's
  logic        reachable_q;
  mac_t        found_mac_q;
  arp_answer_t answer_q;
  logic        announced_q;
  time_t       deadline_q;
  logic [$clog2(TRIES+1)-1:0] tries_q;
  arp_frame_t  rx_q;          // received frame
  arp_frame_t  tx_q;

  wire alive = used_q[slot_q] && !reached(read.expiry);
  wire hit = alive && read.ip == key_q;

  frame_rx_t  rx_frame;
  arp_frame_t rx_arp;
  assign rx_frame = rx.data;
  assign rx_arp   = rx_frame.hdr[HDR_BYTES*8-1-:$bits(arp_frame_t)];

  ipv4_addr_t asked;
  assign asked = query.data;
  wire ipv4_addr_t mask = ~(ipv4_addr_t'('1) >> local_addr.prefix_length);
  wire on_link = ((asked ^ local_addr.ip) & mask) == '0;

  function automatic arp_frame_t make(logic [15:0] oper, mac_t dst, mac_t tha, ipv4_addr_t tpa);
    return '{
        eth: '{dst: dst, src: local_addr.mac, ethertype: ETHERTYPE_ARP},
        arp: '{htype: ARP_HTYPE_ETHERNET, ptype: ETHERTYPE_IPV4, hlen: 8'd6, plen: 8'd4, oper: oper,
               sha: local_addr.mac, spa: local_addr.ip, tha: tha, tpa: tpa}
    };
  endfunction

  // About the received frame, known long before its scan ends.
  logic for_us_q, of_host_q, asks_q, of_target_q;
  always_ff @(posedge clk) begin
    for_us_q    <= rx_q.arp.tpa == local_addr.ip;
    of_host_q   <= rx_q.arp.spa != '0 && rx_q.arp.spa != local_addr.ip;
    asks_q      <= rx_q.arp.oper == ARP_REQUEST;
    of_target_q <= rx_q.arp.spa == target_q;
  end

  wire teaches = of_host_q && (found_q || for_us_q);
  wire replies = for_us_q && asks_q;
  wire resolves = teaches && question_q == Q_ASKED && of_target_q;
  wire overdue = question_q == Q_ASKED && reached(deadline_q);
  slot_t learn_slot;
  assign learn_slot = found_q ? found_slot_q : free_q ? free_slot_q : turn_q;

  assign rx.ready     = state_q == S_IDLE && announced_q;
  assign query.ready  = state_q == S_IDLE && announced_q && !rx.valid && question_q == Q_NONE;
  assign tx.valid     = state_q == S_SEND;
  assign answer.valid = state_q == S_ANSWER;
  assign answer.data  = answer_q;

  always_comb begin
    tx.data = '0;
    tx.data.hdr_length = 7'(ETH_HDR_BYTES + ARP_HDR_BYTES);
    tx.data.hdr[HDR_BYTES*8-1-:$bits(arp_frame_t)] = tx_q;
  end

  assign idle = state_q == S_IDLE && announced_q && question_q != Q_NEW && !overdue;

  always_ff @(posedge clk) if (state_q == S_LEARN && teaches)
    entries[learn_slot] <= {rx_q.arp.spa, rx_q.arp.sha, now + time_t'(EXPIRY_CYCLES)};

  always_ff @(posedge clk) begin
    unique case (state_q)
      S_IDLE: begin
        slot_q  <= '0;
        found_q <= 1'b0;
        free_q  <= 1'b0;
        if (!announced_q) begin
          if (local_addr.enable) begin
            announced_q <= 1'b1;
            tx_q <= make(ARP_REQUEST, MAC_BROADCAST, '0, local_addr.ip);
            state_q <= S_SEND;
          end
        end else if (!local_addr.enable) begin
          announced_q <= 1'b0;
        end else if (rx.valid) begin
          rx_q <= rx_arp;
          key_q <= rx_arp.arp.spa;
          receiving_q <= 1'b1;
          state_q <= S_SCAN;
        end else if (question_q == Q_NEW) begin
          key_q <= target_q;
          receiving_q <= 1'b0;
          state_q <= S_SCAN;
        end else if (overdue) begin
          tries_q <= tries_q + 1'b1;
          deadline_q <= now + time_t'(TRY_CYCLES);
          if (tries_q == $bits(tries_q)'(TRIES)) begin
            answer_q <= '0;
            question_q <= Q_NONE;
            state_q <= S_ANSWER;
          end else begin
            tx_q <= make(ARP_REQUEST, MAC_BROADCAST, '0, target_q);
            state_q <= S_SEND;
          end
        end else if (query.valid && query.ready) begin
          target_q <= on_link ? asked : local_addr.gateway;
          reachable_q <= on_link || local_addr.gateway != '0;
          question_q <= Q_NEW;
        end
      end

      S_SCAN: begin
        slot_q <= slot_q + 1'b1;
        if (hit) begin
          found_q <= 1'b1;
          found_slot_q <= slot_q;
          found_mac_q <= read.mac;
        end
        if (!alive) begin
          free_q <= 1'b1;
          free_slot_q <= slot_q;
        end
        if (slot_q == slot_t'(ENTRIES - 1)) state_q <= receiving_q ? S_LEARN : S_LOOKUP;
      end

      S_LEARN: begin
        if (teaches) begin
          used_q[learn_slot] <= 1'b1;
          if (!found_q && !free_q) turn_q <= turn_q + 1'b1;
        end
        tx_q <= make(ARP_REPLY, rx_q.arp.sha, rx_q.arp.sha, rx_q.arp.spa);
        state_q <= replies ? S_SEND : S_IDLE;
        // What resolves the question is in the cache now: look it up again.
        if (resolves) question_q <= Q_NEW;
      end

      S_LOOKUP: begin
        answer_q <= '{found: reachable_q && found_q, mac: found_mac_q};
        tries_q <= $bits(tries_q)'(1);
        deadline_q <= now + time_t'(TRY_CYCLES);
        tx_q <= make(ARP_REQUEST, MAC_BROADCAST, '0, target_q);
        if (found_q || !reachable_q) begin
          question_q <= Q_NONE;
          state_q <= S_ANSWER;
        end else begin
          question_q <= Q_ASKED;
          state_q <= S_SEND;
        end
      end

      S_SEND: if (tx.ready) state_q <= S_IDLE;

      S_ANSWER: if (answer.ready) state_q <= S_IDLE;

      default: state_q <= S_IDLE;
    endcase
    if (rst) begin
      state_q     <= S_IDLE;
      question_q  <= Q_NONE;
      used_q      <= '0;
      turn_q      <= '0;
      announced_q <= 1'b0;
    end
  end
endmodule
