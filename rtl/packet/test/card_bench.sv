// SPDX-License-Identifier: Apache-2.0

// The packet plane with a network card behind it, as in the shell; of the device there is what sends and receives RoCE frames. The plane is in
// reset until `open`.
module card_bench
  import packet_pkg::*;
  import frame_pkg::*;
  import link_pkg::*;
  import card_pkg::*;
#(
    parameter int unsigned DATA_W = 64,
    parameter int unsigned PAIRS = 1,
    parameter int unsigned MTU = 9000
) (
    input  logic           clk,
    input  logic           rst,
    input  logic           open,
    input  local_addr_t    local_addr,
    input  link_settings_t link,
    input  card_settings_t card,
    input  logic           link_up,
    axis_if.sink           rx,
    axis_if.source         tx,
    stream_if.source       frame,
    axis_if.source         payload,
    stream_if.sink         roce,
    axis_if.sink           roce_payload,
    axil_if.slave          bus,
    axi_if.master          mem,
    stream_if.source       interrupt,
    input  logic           reset,
    output logic           reset_done,
    output packet_events_t events,
    output logic           idle
);
  localparam int unsigned MAX_FRAME = MTU + 18;

  logic plane_rst_q;
  always_ff @(posedge clk) begin
    if (rst) plane_rst_q <= 1'b1;
    else if (open) plane_rst_q <= 1'b0;
  end

  axis_if #(.DATA_W(DATA_W)) card_rx ();
  axis_if #(.DATA_W(DATA_W)) card_tx ();
  card_verdict_t card_rx_verdict;
  stream_if #(.T(frame_tx_t)) user_tx[1] ();
  axis_if #(.DATA_W(DATA_W)) user_tx_payload[1] ();
  assign user_tx[0].valid = roce.valid;
  assign user_tx[0].data  = roce.data;
  assign roce.ready       = user_tx[0].ready;
  axis_wires sends (.in(roce_payload), .out(user_tx_payload[0]));

  stream_if #(.T(frame_rx_t)) service_frame (), datagram_frame ();
  axis_if #(.DATA_W(DATA_W)) service_payload (), datagram_payload ();
  stream_if #(.T(ip_addr_t)) arp_query ();
  stream_if #(.T(arp_answer_t)) arp_answer ();
  stream_if #(.T(arp_claim_t)) arp_claim ();
  assign service_frame.ready     = 1'b1;
  assign datagram_frame.ready    = 1'b1;
  assign service_payload.tready  = 1'b1;
  assign datagram_payload.tready = 1'b1;
  assign arp_query.valid         = 1'b0;
  assign arp_query.data          = '0;
  assign arp_answer.ready        = 1'b1;
  assign arp_claim.valid         = 1'b0;
  assign arp_claim.data          = '0;
  logic [47:0] now_q = '0;
  always_ff @(posedge clk) now_q <= now_q + 1'b1;

  logic plane_idle, card_idle;
  card_settings_t card_used;
  packet_plane #(.DATA_W(DATA_W), .USERS(1), .CARD(1'b1), .CARD_FRAME(MAX_FRAME)) plane (
      .clk, .rst(plane_rst_q), .now(now_q), .local_addr, .link, .card(card_used), .rx, .tx, .frame, .payload, .service_ports('0), .service_frame,
      .service_payload, .datagram_ports('0), .datagram_frame, .datagram_payload, .user_tx, .user_tx_payload, .card_rx, .card_rx_verdict,
      .card_tx, .classified('0), .classified_next(), .classified_applied(), .arp_query, .arp_answer, .arp_claim, .arp_watch('0), .arp_conflict(), .nd_watch('0), .nd_conflict(), .unwanted_valid(),
      .unwanted(), .events, .idle(plane_idle)
  );

  network_card #(.DATA_W(DATA_W), .PAIRS(PAIRS), .VECTORS(1 + 2 * PAIRS), .MTU(MTU), .MAX_FRAME(MAX_FRAME)) network (
      .clk, .rst, .open(!plane_rst_q), .settings(card), .device(local_addr.mac), .used(card_used), .link_up, .bus, .mem, .interrupt, .reset, .reset_done, .rx(card_rx),
      .rx_verdict(card_rx_verdict), .tx(card_tx), .idle(card_idle)
  );
  assign idle = plane_idle && card_idle;
endmodule
