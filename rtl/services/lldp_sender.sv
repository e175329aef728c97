// SPDX-License-Identifier: Apache-2.0

// Link Layer Discovery Protocol (IEEE 802.1AB-2016), the sender: the switch at the other end of the cable learns which device is there,
// also while the device has no IPv4 address. One frame each 30 s (msgTxInterval), and at once when the device begins or its address
// changes, then three more a second apart (txFastInit), since a link that has just come up may lose the first. There is at most one a
// second. When `enable` ends, a shutdown frame is sent (9.1.2). Nothing is received: the device makes no use of its neighbours.
//
// A frame is a header without payload; it is offered 1 cycle after its time has come, and sent when `tx` takes it.
module lldp_sender
  import packet_pkg::*;
#(
    parameter int unsigned TICKS = 16    // ticks of a second: a power of two
) (
    input  logic       clk,
    input  logic       rst,
    input  logic       tick,             // 1/TICKS s has passed
    input  logic       enable,
    input  mac_t       mac,
    input  ipv4_addr_t ip,               // 0: none
    stream_if.source   tx,               // frame_tx_t
    output logic       sent,             // pulse
    output logic       idle
);
  localparam mac_t NEAREST_BRIDGE = 48'h0180c2_00000e;     // 7.1
  localparam logic [15:0] ETHERTYPE_LLDP = 16'h88cc;
  localparam int unsigned INTERVAL = 30;                   // s
  localparam logic [15:0] TTL = 16'(4 * INTERVAL + 1);     // msgTxHold, 9.2.5.22
  localparam logic [2:0] FAST = 3'd4;
  localparam int unsigned DIGITS = 12;

  // ---- the TLVs (8.4): type in 7 bits, length in 9 ----
  typedef struct packed {
    logic [6:0] kind;
    logic [8:0] length;
  } tlv_t;
  typedef struct packed {
    tlv_t       tlv;
    logic [7:0] subtype;
    mac_t       mac;
  } id_tlv_t;
  typedef struct packed {
    eth_hdr_t               eth;
    id_tlv_t                chassis;
    id_tlv_t                port;
    tlv_t                   ttl;
    logic [15:0]            seconds;
    tlv_t                   name;
    logic [8*(8+DIGITS)-1:0] name_text;
    tlv_t                   capabilities;
    logic [15:0]            system;
    logic [15:0]            enabled;
  } start_t;
  typedef struct packed {
    tlv_t        tlv;
    logic [7:0]  address_length;      // with the subtype
    logic [7:0]  address_subtype;
    ipv4_addr_t  ip;
    logic [7:0]  interface_subtype;
    logic [31:0] interface_number;
    logic [7:0]  oid_length;
  } management_tlv_t;
  localparam tlv_t END = '0;
  typedef struct packed {
    start_t          start;
    management_tlv_t management;
    tlv_t            last;
  } lldp_t;
  localparam logic [7:0] BY_MAC_CHASSIS = 8'd4;
  localparam logic [7:0] BY_MAC_PORT = 8'd3;
  localparam logic [15:0] STATION_ONLY = 16'h0080;
  localparam logic [7:0] IPV4 = 8'd1;                      // of IANA's address families
  localparam logic [7:0] INTERFACE_UNKNOWN = 8'd1;

  localparam logic [6:0] FULL_BYTES = 7'($bits(lldp_t) / 8);
  localparam logic [6:0] UNADDRESSED_BYTES = 7'(($bits(start_t) + $bits(tlv_t)) / 8);
  localparam logic [6:0] SHUTDOWN_BYTES = 7'(($bits(eth_hdr_t) + 2 * $bits(id_tlv_t) + 2 * $bits(tlv_t) + 16) / 8);

  // The name that multicast DNS has, too.
  function automatic logic [8*(8+DIGITS)-1:0] name_of(mac_t address);
    logic [8*DIGITS-1:0] text;
    for (int unsigned i = 0; i < DIGITS; i++) text[8*i+:8] = mdns_pkg::hex_digit(address, mdns_pkg::digit_at_t'(DIGITS - 1 - i));
    return {"nacelle-", text};
  endfunction

  // ---- when ----
  typedef logic [$clog2(INTERVAL*TICKS+1)-1:0] wait_t;
  localparam wait_t SPACE = wait_t'(TICKS + 1);            // a second at least: the first tick may come at once
  ipv4_addr_t ip_q;
  logic       on_q, due_q, shutdown_q;
  logic [2:0] fast_q;                 // frames left of those that are a second apart
  wait_t      wait_q;                 // ticks until the next frame
  wait_t      space_q;                // ticks until there may be one
  wire begins = enable && (!on_q || ip != ip_q);

  assign tx.valid = due_q && space_q == '0;
  wire leaves = tx.valid && tx.ready;

  always_ff @(posedge clk) begin
    // What is offered does not change.
    if (!tx.valid) begin
      ip_q <= ip;
      on_q <= enable;
      if (begins) begin
        due_q      <= 1'b1;
        shutdown_q <= 1'b0;
        fast_q     <= FAST;
      end else if (on_q && !enable) begin
        due_q      <= 1'b1;
        shutdown_q <= 1'b1;
      end else if (on_q && wait_q == '0) due_q <= 1'b1;
    end
    if (tick) begin
      if (wait_q != '0) wait_q <= wait_q - 1'b1;
      if (space_q != '0) space_q <= space_q - 1'b1;
    end
    if (leaves) begin
      due_q   <= 1'b0;
      space_q <= SPACE;
      wait_q  <= fast_q > 3'd1 ? wait_t'(TICKS) : wait_t'(INTERVAL * TICKS);
      if (fast_q != '0) fast_q <= fast_q - 1'b1;
    end
    sent <= !rst && leaves;
    if (rst) begin
      on_q    <= 1'b0;
      due_q   <= 1'b0;
      fast_q  <= '0;
      wait_q  <= '0;
      space_q <= '0;
    end
  end
  assign idle = !tx.valid && !begins && on_q == enable && !(on_q && wait_q == '0 && space_q == '0);

  // ---- what ----
  wire addressed = ip_q != '0;
  lldp_t frame;
  assign frame = '{
      start: '{
          eth: '{dst: NEAREST_BRIDGE, src: mac, ethertype: ETHERTYPE_LLDP},
          chassis: '{tlv: '{kind: 7'd1, length: 9'd7}, subtype: BY_MAC_CHASSIS, mac: mac},
          port: '{tlv: '{kind: 7'd2, length: 9'd7}, subtype: BY_MAC_PORT, mac: mac},
          ttl: '{kind: 7'd3, length: 9'd2},
          seconds: shutdown_q ? '0 : TTL,
          name: shutdown_q ? END : '{kind: 7'd5, length: 9'd20},
          name_text: name_of(mac),
          capabilities: '{kind: 7'd7, length: 9'd4},
          system: STATION_ONLY,
          enabled: STATION_ONLY
      },
      management: {$bits(management_tlv_t) {addressed}} & management_tlv_t'{
          tlv: '{kind: 7'd8, length: 9'd12},
          address_length: 8'd5,
          address_subtype: IPV4,
          ip: ip_q,
          interface_subtype: INTERFACE_UNKNOWN,
          interface_number: '0,
          oid_length: '0
      },
      last: END
  };
  always_comb begin
    tx.data            = '0;
    tx.data.hdr_length = shutdown_q ? SHUTDOWN_BYTES : addressed ? FULL_BYTES : UNADDRESSED_BYTES;
    tx.data.hdr[HDR_BYTES*8-1-:$bits(lldp_t)] = frame;
  end
endmodule
