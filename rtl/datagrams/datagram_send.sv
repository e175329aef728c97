// SPDX-License-Identifier: Apache-2.0

// Sends the datagrams of N sockets, round robin, as UDP (RFC 768) in IPv4 (RFC 791) on Ethernet: asks for the MAC address of one whose is not
// known, makes the headers, and takes the payload from the socket's store. All of a header but the destination is the device's own: its
// addresses, the port of the socket, time to live 64, no priority. The packets are never fragmented (DF), and so have identification 0
// (RFC 6864, 4.1), and no UDP checksum, which IPv4 permits.
//
// One datagram at a time: 7 cycles from `offer` to the frame if its MAC address is known, then one beat a cycle; else the time of an answer
// to `query` more. One that is not resolved goes back to its socket at once, and the next one is taken.
module datagram_send
  import packet_pkg::*;
  import datagrams_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned N = 1
) (
    input  logic                 clk,
    input  logic                 rst,
    input  mac_t                 own_mac,
    input  ipv4_addr_t           own_ip,
    input  logic [N-1:0]         offer,
    input  datagram_tx_t [N-1:0] request,
    output logic [N-1:0]         taken,           // pulses: see datagram_transmit
    output logic [N-1:0]         unresolved,
    output logic [N-1:0]         fetch,
    input  logic [N-1:0][DATA_W-1:0] beat,
    output logic [N-1:0]         sent,
    stream_if.source             query,           // ip_addr_t
    stream_if.sink               answer,          // arp_answer_t
    stream_if.source             tx,              // frame_tx_t
    axis_if.source               tx_payload,
    output logic                 idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned BYTE_W = $clog2(BYTES);

  typedef struct packed {
    eth_hdr_t  eth;
    ipv4_hdr_t ipv4;
    udp_hdr_t  udp;
  } udp_frame_t;

  typedef enum logic [2:0] {
    S_IDLE,
    S_QUERY,
    S_ANSWER,
    S_SUM,      // of the IPv4 header
    S_OFFER,
    S_SEND
  } state_e;

  state_e       state_q;
  logic [N-1:0] grant, mine_q;
  datagram_tx_t granted, datagram_q;
  wire          picks = state_q == S_IDLE;

  round_robin #(.N(N)) turns (.clk, .rst, .request(offer), .take(picks), .grant);

  logic [DATA_W-1:0] payload;
  always_comb begin
    granted = '0;
    payload = '0;
    for (int unsigned i = 0; i < N; i++) begin
      if (grant[i]) granted |= request[i];
      if (mine_q[i] || N == 1) payload |= beat[i];
    end
  end

  // ---- the header; its checksum takes a word a cycle (RFC 1071) ----
  localparam logic [2:0] STEPS = 3'd6;
  // The words that are the same in every packet: version and length, DF, time to live and protocol.
  localparam logic [16:0] CONSTANT_SUM = 17'h04500 + 17'h04000 + {1'b0, 8'd64, IPPROTO_UDP};
  localparam logic [7:0] TTL = 8'd64;
  logic [2:0]  step_q;
  logic [16:0] sum_q;
  logic [15:0] total_length, added;
  assign total_length = 16'(datagram_q.length) + 16'(IPV4_HDR_BYTES + UDP_HDR_BYTES);
  always_comb
    unique case (step_q)
      3'd0: added = total_length;
      3'd1: added = own_ip[31:16];
      3'd2: added = own_ip[15:0];
      3'd3: added = datagram_q.ip[31:16];
      3'd4: added = datagram_q.ip[15:0];
      default: added = '0;   // the last carry
    endcase

  udp_frame_t header;
  assign header = '{
      eth: '{dst: datagram_q.mac, src: own_mac, ethertype: ETHERTYPE_IPV4},
      ipv4: '{
          version: 4'd4,
          ihl: 4'd5,
          dscp: '0,
          ecn: '0,
          total_length: total_length,
          identification: '0,
          flag_reserved: 1'b0,
          flag_df: 1'b1,
          flag_mf: 1'b0,
          fragment_offset: '0,
          ttl: TTL,
          protocol: IPPROTO_UDP,
          header_checksum: ~sum_q[15:0],
          src: own_ip,
          dst: datagram_q.ip
      },
      udp: '{
          src_port: datagram_q.own_port,
          dst_port: datagram_q.port,
          length: 16'(datagram_q.length) + 16'(UDP_HDR_BYTES),
          checksum: '0
      }
  };
  always_comb begin
    tx.data = '0;
    tx.data.hdr_length = 7'($bits(udp_frame_t) / 8);
    tx.data.payload_length = 16'(datagram_q.length);
    tx.data.hdr[HDR_BYTES*8-1-:$bits(udp_frame_t)] = header;
  end
  assign tx.valid    = state_q == S_OFFER;
  assign query.valid = state_q == S_QUERY;
  assign query.data  = ip_mapped(datagram_q.ip);
  assign answer.ready = state_q == S_ANSWER;

  // ---- the payload ----
  datagram_length_t left_q;                  // bytes that were not fetched
  logic             beat_valid_q, last_q;
  logic [BYTE_W-1:0] top_q;                  // highest byte that is kept
  wire last = left_q <= datagram_length_t'(BYTES);
  wire passes = beat_valid_q && tx_payload.tready;
  wire fetches = state_q == S_SEND && left_q != '0 && (!beat_valid_q || passes);
  wire finished = state_q == S_SEND && left_q == '0 && (!beat_valid_q || passes);
  assign fetch = fetches ? mine_q : '0;
  assign sent  = finished ? mine_q : '0;
  assign taken = picks ? grant : '0;
  // An own address that is gone leaves nothing to send from.
  arp_answer_t told;
  assign told = answer.data;
  wire nowhere = (state_q == S_ANSWER && answer.valid && !told.found) || (state_q == S_SUM && own_ip == '0);
  assign unresolved = nowhere ? mine_q : '0;

  always_ff @(posedge clk) begin
    if (picks) begin
      mine_q     <= grant;
      datagram_q <= granted;
      left_q     <= granted.length;
    end
    if (state_q == S_ANSWER) datagram_q.mac <= told.mac;
    if (state_q != S_SUM) begin
      step_q <= '0;
      if (state_q != S_OFFER) sum_q <= CONSTANT_SUM;
    end else begin
      step_q <= step_q + 1'b1;
      sum_q  <= 17'(sum_q[15:0]) + 17'(added) + 17'(sum_q[16]);
    end
    if (fetches) begin
      left_q <= last ? '0 : left_q - datagram_length_t'(BYTES);
      last_q <= last;
      top_q  <= last ? BYTE_W'(left_q - 1'b1) : '1;
    end
    if (rst || !beat_valid_q || passes) beat_valid_q <= !rst && fetches;
    unique case (state_q)
      S_IDLE: if (|grant) state_q <= granted.known ? S_SUM : S_QUERY;
      S_QUERY: if (query.ready) state_q <= S_ANSWER;
      S_ANSWER: if (answer.valid) state_q <= told.found ? S_SUM : S_IDLE;
      S_SUM: begin
        if (nowhere) state_q <= S_IDLE;
        else if (step_q == STEPS - 3'd1) state_q <= S_OFFER;
      end
      S_OFFER: if (tx.ready) state_q <= S_SEND;
      default: if (finished) state_q <= S_IDLE;
    endcase
    if (rst) state_q <= S_IDLE;
  end

  assign tx_payload.tvalid = beat_valid_q;
  assign tx_payload.tdata  = payload;
  assign tx_payload.tlast  = last_q;
  assign tx_payload.tuser  = 1'b0;
  for (genvar i = 0; i < BYTES; i++) begin : g_keep
    assign tx_payload.tkeep[i] = i == 0 || BYTE_W'(i) <= top_q;
  end

  assign idle = state_q == S_IDLE && offer == '0;
endmodule
