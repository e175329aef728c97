// SPDX-License-Identifier: Apache-2.0

// The network card of the device's host: virtio_net between a PCI function of the slot and the packet plane (docs/reference/network-card.md).
//
// Before the planes of the device live (`open`) its link is down, and what the driver sends is discarded: a frame that waited for the device to
// be enabled would keep the driver from resetting its card.
module network_card
  import packet_pkg::*;
  import card_pkg::*;
  import virtio_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W = 5,
    parameter int unsigned PAIRS = 1,            // of queues
    parameter int unsigned VECTORS = 3,
    parameter int unsigned MTU = 1500,
    parameter int unsigned MAX_FRAME = 1518,     // bytes, without FCS
    parameter bit          IPV6 = 1'b1           // the packet plane reads IPv6
) (
    input  logic          clk,
    input  logic          rst,
    input  logic          open,                  // the packet plane lives; it stays so
    input  card_settings_t settings,             // as the operator has them,
    input  mac_t          device,                // and the MAC address of the device
    output card_settings_t used,                 // as the driver wants it, where it may say so
    input  logic          link_up,
    // the slot
    axil_if.slave         bus,                   // 12 bits of address
    axi_if.master         mem,                   // host memory
    stream_if.source      interrupt,             // 16 bits: the vector
    input  logic          reset,                 // of the function,
    output logic          reset_done,            // which is done, until `reset` falls
    // the packet plane
    axis_if.sink          rx,
    input  card_verdict_t rx_verdict,            // with the last beat
    axis_if.source        tx,
    output logic          idle
);
  // ---- receive: virtio_net drops what is not wanted ----
  net_rx_t rx_info;
  assign rx_info = '{
      vq: queue_t'({rx_verdict.flow, 1'b0}),
      fixed: rx_verdict.pair_set,
      hashed: rx_verdict.hashed,
      hash: rx_verdict.hash,
      csum_valid: rx_verdict.checked,
      edit: rx_verdict.edit,
      unwanted: !rx_verdict.wanted
  };

  // ---- transmit ----
  axis_if #(.DATA_W(DATA_W)) sent ();
  net_tx_t tx_info;
  logic in_frame_q, discards_q;
  wire  discards = in_frame_q ? discards_q : !open;
  assign tx.tvalid   = sent.tvalid && !discards;
  assign tx.tdata    = sent.tdata;
  assign tx.tkeep    = sent.tkeep;
  assign tx.tlast    = sent.tlast;
  assign tx.tuser    = sent.tuser;
  assign sent.tready = discards || tx.tready;
  always_ff @(posedge clk) begin
    discards_q <= discards;
    if (rst) in_frame_q <= 1'b0;
    else if (sent.tvalid) in_frame_q <= !(sent.tready && sent.tlast);
  end

  stream_if #(.T(queue_t)) notify ();            // all notifications come by the registers
  assign notify.valid = 1'b0;
  assign notify.data  = '0;

  // Where the card may send from any address, its driver may choose its own: but that of the device only where they share one.
  localparam hash_types_t HASHES = '{udpv6: IPV6, tcpv6: IPV6, ipv6: IPV6, default: 1'b1};
  mac_t      station;
  net_hash_t hash;
  always_comb begin
    used      = settings;
    used.mac  = station;
    used.hash = hash;
  end

  virtio_net #(.DATA_W(DATA_W), .ID_W(ID_W), .PAIRS(PAIRS), .VECTORS(VECTORS), .MAX_FRAME(MAX_FRAME), .HASHES(HASHES)) card (
      .clk, .rst, .bus, .mac(settings.mac), .mac_free(settings.any_source), .mac_taken(settings.shared ? '0 : device), .station, .hash, .mtu(16'(MTU)), .link_up(link_up && open), .reset, .reset_done, .notify, .interrupt, .mem, .rx, .rx_info,
      .tx(sent), .tx_info, .idle
  );

  logic unused_ok;
  assign unused_ok = &{1'b0, tx_info, notify.ready};
endmodule
