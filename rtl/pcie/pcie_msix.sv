// SPDX-License-Identifier: Apache-2.0

// MSI-X (PCI Local Bus 3.0, 6.8.2; Base Specification 6.1.4): the table, the pending bits, and requests of vectors as memory writes. A
// vector that is requested is pending until its message is sent; requests meanwhile are merged. It is sent if MSI-X and bus mastering are
// on, neither the function nor the vector is masked, and the vector's interval since its last message is over. One vector a cycle is looked
// at: that which is requested, else one after the other. Latency: request to header 4 cycles, if it may be sent; one that waited is found
// within 2 VECTORS cycles. A message every 4 cycles. `request` never stops.
//
// Addresses of the page: see MSIX_TABLE, MSIX_PBA, MSIX_INTERVAL. Whole dwords only.
module pcie_msix
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned VECTORS = 32      // 2 to MSIX_VECTORS_MAX
) (
    input  logic         clk,
    input  logic         rst,
    input  pcie_config_t settings,
    input  logic         reset,              // a function-level reset is under way: all is as after `rst` but what is on its way
    axil_if.slave        bus,                // 12 bits of address
    stream_if.sink       request,            // logic [$clog2(VECTORS)-1:0]
    stream_if.source     header,             // tlp_header_t
    axis_if.source       payload,
    output msix_events_t events,
    output logic         idle                // no message on its way
);
  localparam int unsigned VECTOR_W = $clog2(VECTORS);
  typedef logic [VECTOR_W-1:0] vector_t;
  typedef logic [MSIX_INTERVAL_W-1:0] interval_t;

  if (VECTORS < 2 || VECTORS > MSIX_VECTORS_MAX) begin : g_bad
    $fatal(1, "VECTORS must be 2 to 128");
  end

  logic [VECTORS-1:0] masked_q, pending_q, waits_q, limited_q;   // waits: for its interval; limited: it has one
  (* ram_style = "distributed" *) logic [31:0] addr_lo[VECTORS];
  (* ram_style = "distributed" *) logic [31:0] addr_hi[VECTORS];
  (* ram_style = "distributed" *) logic [31:0] data[VECTORS];
  (* ram_style = "distributed" *) interval_t   interval[VECTORS];
  (* ram_style = "distributed" *) interval_t   next_at[VECTORS];  // when the next message may go

  // ---- the bus ----
  logic [11:0] at;
  logic [31:0] wdata, rdata;
  logic        write, bus_idle;
  wire in_table    = at < MSIX_TABLE + 12'(16 * VECTORS);
  wire in_pba      = at >= MSIX_PBA && at < MSIX_PBA + 12'(8 * ((VECTORS + 63) / 64));
  wire in_interval = at >= MSIX_INTERVAL && 13'(at) < 13'(MSIX_INTERVAL) + 13'(4 * VECTORS);
  wire vector_t entry  = vector_t'(at[10:4]);
  wire vector_t timer  = vector_t'(at[8:2]);
  axil_access access (
      .clk, .rst, .bus, .at, .write, .wdata, .readable(in_table || in_pba || in_interval), .writable(in_table || in_interval), .rdata, .idle(bus_idle)
  );

  wire [127:0] pending = 128'(pending_q);
  always_comb begin
    rdata = '0;
    if (in_table)
      unique case (at[3:2])
        2'd0: rdata = addr_lo[entry];
        2'd1: rdata = addr_hi[entry];
        2'd2: rdata = data[entry];
        2'd3: rdata = {31'b0, masked_q[entry]};
      endcase
    else if (in_interval) rdata = limited_q[timer] ? 32'(interval[timer]) : '0;
    else rdata = pending[32*at[3:2]+:32];
  end
  always_ff @(posedge clk) begin
    if (write && in_table && at[3:2] == 2'd0) addr_lo[entry] <= {wdata[31:2], 2'b00};
    if (write && in_table && at[3:2] == 2'd1) addr_hi[entry] <= wdata;
    if (write && in_table && at[3:2] == 2'd2) data[entry] <= wdata;
    if (write && in_interval) interval[timer] <= interval_t'(wdata);
  end

  // ---- messages ----
  typedef enum logic [1:0] {
    M_PICK,
    M_READ,
    M_HEADER,
    M_DATA
  } state_e;

  state_e      state_q;
  vector_t     vector_q, turn_q, look_q;         // look: the vector that is looked at
  logic        direct_q;                         // it is one that was requested
  addr_t       addr_q;
  logic [31:0] data_q;
  interval_t   time_q;
  wire on   = settings.msix_enable && settings.bus_master && !reset;
  wire may  = pending_q[look_q] && !masked_q[look_q] && !waits_q[look_q];
  wire pick = state_q == M_PICK && on && !settings.msix_mask && may;
  wire sent = state_q == M_DATA && payload.tready;

  assign header.valid = state_q == M_HEADER && on;
  always_comb begin
    tlp_header_t told;
    told              = '0;
    told.kind         = TLP_MEM_WRITE;
    told.addr         = addr_q;
    told.length       = 11'd1;
    told.first_be     = '1;
    told.requester_id = settings.id;
    header.data       = told;
  end
  assign payload.tvalid = state_q == M_DATA;
  assign payload.tdata  = DATA_W'(data_q);
  assign payload.tkeep  = (DATA_W / 8)'(4'b1111);
  assign payload.tlast  = 1'b1;
  assign payload.tuser  = 1'b0;

  // A request is of a vector that there is.
  vector_t asked;
  assign asked         = vector_t'(request.data);
  assign request.ready = 1'b1;
  wire asks = request.valid && 32'(asked) < VECTORS;

  // Is its interval over?
  wire interval_t left = next_at[look_q] - time_q;
  wire over = left[MSIX_INTERVAL_W-1] || left == '0;
  wire back = state_q == M_HEADER && !on;       // it goes later
  always_ff @(posedge clk) begin
    if (sent) next_at[vector_q] <= time_q + interval[vector_q];
    if (state_q == M_READ) begin
      addr_q <= {addr_hi[vector_q], addr_lo[vector_q]};
      data_q <= data[vector_q];
    end
    if (pick) vector_q <= look_q;
    if (over) waits_q[look_q] <= 1'b0;
    if (sent) waits_q[vector_q] <= limited_q[vector_q];
    if (write && in_table && at[3:2] == 2'd3) masked_q[entry] <= wdata[0];
    if (write && in_interval) limited_q[timer] <= interval_t'(wdata) != '0;
    if (pick) pending_q[look_q] <= 1'b0;
    if (asks) pending_q[asked] <= 1'b1;
    if (back) pending_q[vector_q] <= 1'b1;
    unique case (state_q)
      M_PICK: if (pick) state_q <= M_READ;
      M_READ: state_q <= M_HEADER;
      M_HEADER: begin
        if (back) state_q <= M_PICK;
        else if (header.ready) state_q <= M_DATA;
      end
      default: if (payload.tready) state_q <= M_PICK;
    endcase
    time_q <= time_q + 1'b1;
    direct_q <= asks && !direct_q;               // every other cycle at most, so that no client keeps others from their turn
    look_q   <= asks && !direct_q ? asked : turn_q;
    if (!asks || direct_q) turn_q <= 32'(turn_q) == VECTORS - 1 ? '0 : turn_q + 1'b1;
    if (reset) begin
      pending_q <= '0;
      masked_q  <= '1;
      limited_q <= '0;
      waits_q   <= '0;
    end
    if (rst) begin
      state_q   <= M_PICK;
      masked_q  <= '1;
      pending_q <= '0;
      waits_q   <= '0;
      limited_q <= '0;
      turn_q    <= '0;
      direct_q  <= 1'b0;
      look_q    <= '0;
      time_q    <= '0;
    end
  end

  always_ff @(posedge clk) begin
    events.sent   <= sent && !rst;
    events.merged <= asks && pending_q[asked] && !rst;
  end
  assign idle = state_q == M_PICK && bus_idle;
endmodule
