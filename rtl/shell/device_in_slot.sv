// SPDX-License-Identifier: Apache-2.0

// The PCIe plane between a slot and the planes of the device.
//
// BAR 0 is 2 MiB: below 1 MiB the registers of the device, as on its local bus; at 1 MiB the MSI-X table (pcie_msix), a page behind it a register
// that asks for an interrupt, as units of the device do by `interrupt`. BAR 4 is the first memory of the device. Host memory is a memory of the fabric, whose IO virtual addresses have bit
// 63 set there. It lives from power-on; before the fabric does (`open`), BAR 4 is answered with CA.
//
// With a network card (NETWORK) there is a second function: its BAR 0 is two pages, the card's registers and an MSI-X table. It has IO virtual
// addresses of its own, and shares with the device what leads to the slot: bursts take turns. Its function-level reset is one of the card, too.
//
// Latency: that of pcie_plane, 2 cycles more to the registers, 4 to those of the card; with a card 1 to host memory.
module device_in_slot
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W = 4,            // of a master of the fabric
    parameter int unsigned HOST_ID_W = 8,       // of a memory of the fabric
    parameter memory_range_t MEMORY = '0,       // behind BAR 4
    parameter int unsigned TAGS = 64,
    parameter int unsigned VECTORS = 32,
    parameter int unsigned TIMEOUT = 250_000,   // cycles until a read of host memory is given up
    parameter bit NETWORK = 1'b0,               // there is a network card, function 1; else its ports are unused
    parameter int unsigned NETWORK_VECTORS = 3,
    parameter int unsigned NETWORK_ID_W = 5     // of `net_host`, at most HOST_ID_W
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         open,        // the fabric is there; it stays
    slot_if.device       slot,
    axil_if.master       registers,   // 20 bits of address
    axi_if.master        memory,      // a master of the fabric
    axi_if.slave         host,        // host memory
    stream_if.sink       interrupt,   // logic [$clog2(VECTORS)-1:0]
    // the network card: a PCI function of its own
    axil_if.master       net_registers,   // 12 bits of address: the first page of its BAR 0
    axi_if.slave         net_host,        // host memory as this function sees it: an address is an IO virtual address, below 2^63
    stream_if.sink       net_interrupt,   // logic [15:0], the vector; one that there is not is dropped
    output logic         net_reset,       // a function-level reset: the card becomes as after power-on, an access that waits at `net_registers` first,
    input  logic         net_reset_done,  //   and is so, from when it is idle until `net_reset` falls
    output pcie_events_t events,
    output logic         idle
);
  localparam int unsigned CONTROL_W = 20;
  localparam int unsigned BAR0_W = CONTROL_W + 1;
  localparam int unsigned PATIENCE = 4096;   // more than the register bus itself has

  // The registers of both functions in one space: behind BAR 0 of the device is that of the card.
  localparam int unsigned FUNCTIONS = NETWORK ? 2 : 1;
  localparam int unsigned REGISTERS_W = NETWORK ? BAR0_W + 1 : BAR0_W;
  localparam int unsigned CARD_W = 13;
  localparam int unsigned PLANE_ID_W = NETWORK ? HOST_ID_W + 1 : HOST_ID_W;

  function automatic bar_maps_t bars();
    bar_maps_t map;
    map       = '0;
    map[0][0] = '{base: '0, size: addr_t'(1) << BAR0_W};
    map[0][4] = MEMORY;
    if (NETWORK) map[NETWORK_CARD][0] = '{base: addr_t'(1) << BAR0_W, size: addr_t'(1) << CARD_W};
    return map;
  endfunction

  // ---- the plane ----
  stream_if #(.T(tlp_header_t)) rx_header ();
  axis_if #(.DATA_W(DATA_W)) rx_data ();
  stream_if #(.T(tlp_header_t)) tx_header ();
  axis_if #(.DATA_W(DATA_W)) tx_data ();
  assign rx_header.valid      = slot.rx_header_valid;
  assign rx_header.data       = slot.rx_header;
  assign slot.rx_header_ready = rx_header.ready;
  assign rx_data.tdata        = slot.rx_tdata;
  assign rx_data.tkeep        = slot.rx_tkeep;
  assign rx_data.tlast        = slot.rx_tlast;
  assign rx_data.tuser        = slot.rx_tuser;
  assign rx_data.tvalid       = slot.rx_tvalid;
  assign slot.rx_tready       = rx_data.tready;
  assign slot.tx_header_valid = tx_header.valid;
  assign slot.tx_header       = tx_header.data;
  assign tx_header.ready      = slot.tx_header_ready;
  assign slot.tx_tdata        = tx_data.tdata;
  assign slot.tx_tkeep        = tx_data.tkeep;
  assign slot.tx_tlast        = tx_data.tlast;
  assign slot.tx_tvalid       = tx_data.tvalid;
  assign tx_data.tready       = slot.tx_tready;

  axil_if #(.ADDR_W(REGISTERS_W)) bar0 ();
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(PLANE_ID_W)) bar4 ();
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(HOST_ID_W)) in_host[FUNCTIONS] ();
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(PLANE_ID_W)) host_memory ();
  axil_if #(.ADDR_W(12)) msix[FUNCTIONS] ();
  stream_if #(.T(msix_vector_t)) asked_vector[FUNCTIONS] ();
  stream_if #(.T(logic [$clog2(VECTORS)-1:0])) by_host ();
  logic [FUNCTIONS_MAX-1:0] plane_done;
  logic plane_idle, card_idle;

  pcie_plane #(
      .DATA_W(DATA_W), .AXIL_ADDR_W(REGISTERS_W), .ID_W(PLANE_ID_W), .FUNCTIONS(FUNCTIONS), .BAR_MAP(bars()), .TAGS(TAGS),
      .VECTORS({NETWORK_VECTORS, VECTORS}), .TIMEOUT(TIMEOUT)
  ) plane (
      .clk, .rst, .settings(slot.settings), .credits(slot.credits), .flr_request(slot.flr_request), .flr_done(plane_done),
      .rx_header, .rx_data, .tx_header, .tx_data, .registers(bar0), .memory(bar4), .host(host_memory), .msix_registers(msix),
      .interrupt(asked_vector), .events, .idle(plane_idle)
  );

  // ---- registers ----
  localparam int unsigned PLACES = NETWORK ? 3 : 2;                       // of 1 MiB
  localparam int unsigned PLACE_W = REGISTERS_W - CONTROL_W;
  function automatic logic [PLACES-1:0][PLACE_W-1:0] places();
    for (int unsigned i = 0; i < PLACES; i++) places[i] = PLACE_W'(i);
  endfunction
  axil_if #(.ADDR_W(CONTROL_W)) half[PLACES] ();
  axil_if #(.ADDR_W(12)) page[2] ();
  logic half_idle, page_idle, request_idle;
  axil_demux #(
      .N(PLACES), .IN_ADDR_W(REGISTERS_W), .PAGE_W(CONTROL_W), .PAGES(places()), .TIMEOUT(PATIENCE)
  ) halves (.clk, .rst, .in(bar0), .out(half), .idle(half_idle));
  axil_wires control (.in(half[0]), .out(registers));
  axil_demux #(
      .N(2), .IN_ADDR_W(CONTROL_W), .PAGE_W(12), .PAGES({8'd1, 8'd0})
  ) pages (.clk, .rst, .in(half[1]), .out(page), .idle(page_idle));
  axil_wires table_ (.in(page[0]), .out(msix[0]));
  interrupt_by_register #(.VECTORS(VECTORS)) by_register (.clk, .rst, .bus(page[1]), .request(by_host), .idle(request_idle));
  assign asked_vector[0].valid = by_host.valid || interrupt.valid;
  assign asked_vector[0].data  = by_host.valid ? msix_vector_t'(by_host.data) : msix_vector_t'(interrupt.data);
  assign by_host.ready         = 1'b1;                    // pcie_msix never stops
  assign interrupt.ready       = asked_vector[0].ready && !by_host.valid;

  // ---- BAR 4: an address that is nobody's until the fabric is there ----
  localparam memory_range_t ALL = '{base: '0, size: addr_t'(1) << (ADDR_W - 1)};
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(ID_W)) asked (), way[1] ();
  logic open_q;
  always_ff @(posedge clk) begin
    if (rst) open_q <= 1'b0;
    else if (!asked.awvalid && !asked.arvalid) open_q <= open;   // not while an address is offered
  end
  assign asked.awaddr  = {!open_q, bar4.awaddr[ADDR_W-2:0]};
  assign asked.awid    = bar4.awid[ID_W-1:0];
  assign asked.awlen   = bar4.awlen;
  assign asked.awvalid = bar4.awvalid;
  assign bar4.awready  = asked.awready;
  assign asked.wdata   = bar4.wdata;
  assign asked.wstrb   = bar4.wstrb;
  assign asked.wlast   = bar4.wlast;
  assign asked.wvalid  = bar4.wvalid;
  assign bar4.wready   = asked.wready;
  assign bar4.bid      = PLANE_ID_W'(asked.bid);
  assign bar4.bresp    = asked.bresp;
  assign bar4.bvalid   = asked.bvalid;
  assign asked.bready  = bar4.bready;
  assign asked.araddr  = {!open_q, bar4.araddr[ADDR_W-2:0]};
  assign asked.arid    = bar4.arid[ID_W-1:0];
  assign asked.arlen   = bar4.arlen;
  assign asked.arvalid = bar4.arvalid;
  assign bar4.arready  = asked.arready;
  assign bar4.rdata    = asked.rdata;
  assign bar4.rid      = PLANE_ID_W'(asked.rid);
  assign bar4.rresp    = asked.rresp;
  assign bar4.rlast    = asked.rlast;
  assign bar4.rvalid   = asked.rvalid;
  assign asked.rready  = bar4.rready;
  axi_demux #(.M(1), .MAP(ALL), .DATA_W(DATA_W), .ID_W(ID_W)) gate (.clk, .rst, .in(asked), .out(way));
  axi_wires to_fabric (.in(way[0]), .out(memory));

  // ---- host memory: bit 63 says for the fabric that it is the host's, and for the plane which function's ----
  assign in_host[0].awaddr   = {1'b0, host.awaddr[ADDR_W-2:0]};
  assign in_host[0].awid     = host.awid;
  assign in_host[0].awlen    = host.awlen;
  assign in_host[0].awvalid  = host.awvalid;
  assign host.awready        = in_host[0].awready;
  assign in_host[0].wdata    = host.wdata;
  assign in_host[0].wstrb    = host.wstrb;
  assign in_host[0].wlast    = host.wlast;
  assign in_host[0].wvalid   = host.wvalid;
  assign host.wready         = in_host[0].wready;
  assign host.bid            = in_host[0].bid;
  assign host.bresp          = in_host[0].bresp;
  assign host.bvalid         = in_host[0].bvalid;
  assign in_host[0].bready   = host.bready;
  assign in_host[0].araddr   = {1'b0, host.araddr[ADDR_W-2:0]};
  assign in_host[0].arid     = host.arid;
  assign in_host[0].arlen    = host.arlen;
  assign in_host[0].arvalid  = host.arvalid;
  assign host.arready        = in_host[0].arready;
  assign host.rdata          = in_host[0].rdata;
  assign host.rid            = in_host[0].rid;
  assign host.rresp          = in_host[0].rresp;
  assign host.rlast          = in_host[0].rlast;
  assign host.rvalid         = in_host[0].rvalid;
  assign in_host[0].rready   = host.rready;

  // ---- the network card ----
  assign slot.flr_done[0] = plane_done[0];
  if (NETWORK) begin : g_card
    axil_if #(.ADDR_W(12)) card_page[2] ();
    logic pages_idle;
    axil_demux #(
        .N(2), .IN_ADDR_W(CONTROL_W), .PAGE_W(12), .PAGES({8'd1, 8'd0})
    ) card_pages (.clk, .rst, .in(half[2]), .out(card_page), .idle(pages_idle));
    axil_wires card_registers (.in(card_page[0]), .out(net_registers));
    axil_wires card_table (.in(card_page[1]), .out(msix[NETWORK_CARD]));
    assign card_idle = pages_idle && !net_host.awvalid && !net_host.arvalid;

    assign asked_vector[NETWORK_CARD].valid = net_interrupt.valid && 32'(net_interrupt.data) < NETWORK_VECTORS;
    assign asked_vector[NETWORK_CARD].data  = msix_vector_t'(net_interrupt.data);
    assign net_interrupt.ready              = 1'b1;

    // First the plane: so that no write that was on its way reaches a card that is as new.
    assign net_reset                   = slot.flr_request[NETWORK_CARD] && plane_done[NETWORK_CARD];
    assign slot.flr_done[NETWORK_CARD] = plane_done[NETWORK_CARD] && net_reset_done;

    // An address from 2^63 on is nobody's.
    axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(NETWORK_ID_W)) card_host[1] ();
    axi_demux #(.M(1), .MAP(ALL), .DATA_W(DATA_W), .ID_W(NETWORK_ID_W)) card_gate (.clk, .rst, .in(net_host), .out(card_host));
    assign in_host[NETWORK_CARD].awaddr  = {1'b1, card_host[0].awaddr[ADDR_W-2:0]};
    assign in_host[NETWORK_CARD].awid    = HOST_ID_W'(card_host[0].awid);
    assign in_host[NETWORK_CARD].awlen   = card_host[0].awlen;
    assign in_host[NETWORK_CARD].awvalid = card_host[0].awvalid;
    assign card_host[0].awready          = in_host[NETWORK_CARD].awready;
    assign in_host[NETWORK_CARD].wdata   = card_host[0].wdata;
    assign in_host[NETWORK_CARD].wstrb   = card_host[0].wstrb;
    assign in_host[NETWORK_CARD].wlast   = card_host[0].wlast;
    assign in_host[NETWORK_CARD].wvalid  = card_host[0].wvalid;
    assign card_host[0].wready           = in_host[NETWORK_CARD].wready;
    assign card_host[0].bid              = in_host[NETWORK_CARD].bid[NETWORK_ID_W-1:0];
    assign card_host[0].bresp            = in_host[NETWORK_CARD].bresp;
    assign card_host[0].bvalid           = in_host[NETWORK_CARD].bvalid;
    assign in_host[NETWORK_CARD].bready  = card_host[0].bready;
    assign in_host[NETWORK_CARD].araddr  = {1'b1, card_host[0].araddr[ADDR_W-2:0]};
    assign in_host[NETWORK_CARD].arid    = HOST_ID_W'(card_host[0].arid);
    assign in_host[NETWORK_CARD].arlen   = card_host[0].arlen;
    assign in_host[NETWORK_CARD].arvalid = card_host[0].arvalid;
    assign card_host[0].arready          = in_host[NETWORK_CARD].arready;
    assign card_host[0].rdata            = in_host[NETWORK_CARD].rdata;
    assign card_host[0].rid              = in_host[NETWORK_CARD].rid[NETWORK_ID_W-1:0];
    assign card_host[0].rresp            = in_host[NETWORK_CARD].rresp;
    assign card_host[0].rlast            = in_host[NETWORK_CARD].rlast;
    assign card_host[0].rvalid           = in_host[NETWORK_CARD].rvalid;
    assign in_host[NETWORK_CARD].rready  = card_host[0].rready;
    axi_mux #(.N(2), .DATA_W(DATA_W), .ID_W(HOST_ID_W)) turns (.clk, .rst, .in(in_host), .out(host_memory), .others_write());

    wire unused_card = &{1'b0, asked_vector[NETWORK_CARD].ready, card_host[0].awaddr[ADDR_W-1], card_host[0].araddr[ADDR_W-1],
                         in_host[NETWORK_CARD].bid, in_host[NETWORK_CARD].rid};
  end else begin : g_no_card
    axi_wires to_plane (.in(in_host[0]), .out(host_memory));
    assign net_registers.awvalid       = 1'b0;
    assign net_registers.awaddr        = '0;
    assign net_registers.wvalid        = 1'b0;
    assign net_registers.wdata         = '0;
    assign net_registers.wstrb         = '0;
    assign net_registers.bready        = 1'b1;
    assign net_registers.arvalid       = 1'b0;
    assign net_registers.araddr        = '0;
    assign net_registers.rready        = 1'b1;
    assign net_interrupt.ready         = 1'b1;
    assign net_reset                   = 1'b0;
    assign slot.flr_done[NETWORK_CARD] = 1'b0;
    assign card_idle                   = 1'b1;
    axi_decode_error #(.ID_W(NETWORK_ID_W)) nowhere (.clk, .rst, .in(net_host));
    wire unused_card = &{1'b0, slot.flr_request[NETWORK_CARD], plane_done[NETWORK_CARD], net_registers.awready, net_registers.wready,
                         net_registers.bvalid, net_registers.bresp, net_registers.arready, net_registers.rvalid, net_registers.rresp,
                         net_registers.rdata, net_interrupt.valid, net_interrupt.data, net_reset_done};
  end

  assign idle = plane_idle && half_idle && page_idle && request_idle && card_idle && !bar4.awvalid && !bar4.arvalid;

  logic unused_ok;
  assign unused_ok = &{1'b0, bar4.awaddr[ADDR_W-1], bar4.araddr[ADDR_W-1], host.awaddr[ADDR_W-1], host.araddr[ADDR_W-1], bar4.awid, bar4.arid};
endmodule
