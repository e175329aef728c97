// SPDX-License-Identifier: Apache-2.0

// Registers of a streaming socket (stream.rdl), one page of 4 KiB: up to 0x0ff its own, from 0x110 on those of the kernel. The first words of
// the kernel's block, at 0x100, are answered here, so that the chain of blocks can be followed past any kernel. A kernel that does not answer
// within 256 cycles costs the access alone (axil_guard).
module stream_registers
  import stream_pkg::*;
  import stream_regs_pkg::*;
  import cci_map_pkg::KERNEL_AT;
#(
    parameter logic [7:0]  PAGE = '0,         // of this block
    parameter logic [31:0] NEXT = '0          // the block behind this and the kernel's
) (
    input  logic          clk,
    input  logic          rst,
    input  logic          kernel_rst,
    axil_if.slave         bus,                // 12 bits of address
    axil_if.master        kernel,             // likewise
    input  identity_t     identity,
    output settings_t     settings,
    output logic          restart,            // pulse
    input  logic          cut,
    input  logic          cut_tx,             // of the last time
    input  cut_e          cause,
    input  logic          cuts,               // pulse
    input  guard_events_t rx_events,
    input  guard_events_t tx_events,
    input  logic          rx_overflow,
    output logic          idle                // no access under way
);
  localparam int unsigned PAGE_W = 12;
  localparam logic [PAGE_W-1:0] KERNEL_HEADER = 12'hc;           // bytes

  // ---- whose register it is: the kernel's are behind a page of their own ----
  axil_if #(.ADDR_W(PAGE_W + 1)) split ();
  axil_if #(.ADDR_W(PAGE_W)) part[2] ();
  logic split_idle, own_idle, kernel_idle;
  function automatic logic of_kernel(logic [PAGE_W-1:0] address);
    return address >= KERNEL_AT && address[PAGE_W-1:4] != KERNEL_AT[PAGE_W-1:4];
  endfunction

  assign split.awaddr  = {of_kernel(bus.awaddr), bus.awaddr};
  assign split.awvalid = bus.awvalid;
  assign bus.awready   = split.awready;
  assign split.wdata   = bus.wdata;
  assign split.wstrb   = bus.wstrb;
  assign split.wvalid  = bus.wvalid;
  assign bus.wready    = split.wready;
  assign bus.bresp     = split.bresp;
  assign bus.bvalid    = split.bvalid;
  assign split.bready  = bus.bready;
  assign split.araddr  = {of_kernel(bus.araddr), bus.araddr};
  assign split.arvalid = bus.arvalid;
  assign bus.arready   = split.arready;
  assign bus.rdata     = split.rdata;
  assign bus.rresp     = split.rresp;
  assign bus.rvalid    = split.rvalid;
  assign split.rready  = bus.rready;
  axil_demux #(.N(2), .IN_ADDR_W(PAGE_W + 1), .PAGE_W(PAGE_W), .PAGES(2'b10), .TIMEOUT(512)) demux (
      .clk, .rst, .in(split), .out(part), .idle(split_idle)
  );
  axil_guard guard (.clk, .rst, .slave_rst(kernel_rst), .in(part[1]), .out(kernel), .idle(kernel_idle));

  logic [PAGE_W-1:0] at;
  logic              write, described, of_block;
  logic [31:0]       wdata, value, value_q;
  assign described = identity.block_type != '0;
  assign of_block  = described && at >= KERNEL_AT && at < KERNEL_AT + KERNEL_HEADER;
  axil_access #(.READ_CYCLES(2)) access (
      .clk, .rst, .bus(part[0]), .at, .write, .wdata, .readable(readable(at) || of_block), .writable(writable(at)), .rdata(value_q),
      .idle(own_idle)
  );

  // ---- settings ----
  always_ff @(posedge clk) begin
    restart <= write && at == AT_COMMAND && wdata[0] && !rst;
    if (write) begin
      unique case (at)
        AT_CONTROL: {settings.tx, settings.rx} <= wdata[1:0];
        AT_LIMIT:   settings.limit <= wdata[15:0];
        default: ;
      endcase
    end
    if (rst) settings <= '{rx: 1'b1, tx: 1'b1, limit: 16'd4096};
  end

  // ---- counters ----
  typedef struct packed {
    logic [31:0] frames;
    logic [31:0] dropped;
    logic [31:0] lost;
    logic [31:0] round;
  } counters_t;
  counters_t   rx_q, tx_q;
  logic [31:0] overflow_q, cuts_q;
  guard_events_t rx_events_q, tx_events_q;

  function automatic counters_t counted(counters_t c, guard_events_t e);
    return '{frames: c.frames + 32'(e.given), dropped: c.dropped + 32'(e.dropped), lost: c.lost + 32'(e.lost), round: c.round + 32'(e.round)};
  endfunction

  always_ff @(posedge clk) begin
    rx_events_q <= rst ? '0 : rx_events;
    tx_events_q <= rst ? '0 : tx_events;
    rx_q        <= rst ? '0 : counted(rx_q, rx_events_q);
    tx_q        <= rst ? '0 : counted(tx_q, tx_events_q);
    overflow_q  <= rst ? '0 : overflow_q + 32'(rx_overflow);
    cuts_q      <= rst ? '0 : cuts_q + 32'(cuts);
  end

  // ---- read ----
  wire [3:0][31:0] name = identity.name;
  always_comb begin
    unique case (at) inside
      AT_TYPE:        value = BLOCK_TYPE;
      AT_VERSION:     value = BLOCK_VERSION;
      AT_NEXT:        value = described ? {12'd0, PAGE, KERNEL_AT} : NEXT;
      AT_KERNEL_VERSION: value = {identity.version_major, identity.version_minor};
      AT_CONTROL:     value = 32'({settings.tx, settings.rx});
      AT_LIMIT:       value = 32'(settings.limit);
      AT_STATUS:      value = {21'd0, cause, 6'd0, cut_tx, cut};
      AT_CUTS:        value = cuts_q;
      AT_RX_FRAMES:   value = rx_q.frames;
      AT_RX_DROPPED:  value = rx_q.dropped;
      AT_RX_LOST:     value = rx_q.lost;
      AT_RX_ROUND:    value = rx_q.round;
      AT_RX_OVERFLOW: value = overflow_q;
      AT_TX_FRAMES:   value = tx_q.frames;
      AT_TX_DROPPED:  value = tx_q.dropped;
      AT_TX_LOST:     value = tx_q.lost;
      AT_TX_ROUND:    value = tx_q.round;
      KERNEL_AT + AT_TYPE:    value = identity.block_type;
      KERNEL_AT + AT_VERSION: value = identity.block_version;
      KERNEL_AT + AT_NEXT:    value = NEXT;
      [AT_NAME : AT_NAME + 12'hf]: value = name[at[3:2]];
      default:        value = '0;
    endcase
  end
  always_ff @(posedge clk) value_q <= value;

  assign idle = split_idle && own_idle && kernel_idle;
endmodule
