// SPDX-License-Identifier: Apache-2.0

// Gives each of N slaves one page of an AXI4-Lite address space: `out[i]` owns page PAGES[i], of 2^PAGE_W bytes, and sees
// addresses within it.
//
// One read and one write at a time, independent of each other: 2 cycles each beside the slave's own. A page without a slave is
// answered with DECERR. If a slave takes longer than TIMEOUT cycles the response is SLVERR, and at once SLVERR for further accesses
// until its late response has come, which is discarded: a faulty slave blocks its own page, never the bus. The request to it stays
// in separate registers until it is accepted, as AXI requires (IHI 0022, A3.2.1), while other slaves are served.
module axil_demux
  import memory_pkg::*;
#(
    parameter int unsigned N = 2,
    parameter int unsigned IN_ADDR_W = 20,
    parameter int unsigned PAGE_W = 12,
    parameter logic [N-1:0][IN_ADDR_W-PAGE_W-1:0] PAGES = '0,
    parameter int unsigned TIMEOUT = 1024
) (
    input  logic    clk,
    input  logic    rst,
    axil_if.slave   in,      // IN_ADDR_W
    axil_if.master  out[N],  // PAGE_W
    output logic    idle     // no access under way
);
  typedef logic [$clog2(TIMEOUT+1)-1:0] count_t;

  // Which slave a page belongs to, one bit each.
  function automatic logic [N-1:0] owner(logic [IN_ADDR_W-PAGE_W-1:0] page);
    logic [N-1:0] selected;
    for (int unsigned i = 0; i < N; i++) selected[i] = page == PAGES[i];
    return selected;
  endfunction

  typedef enum logic [1:0] {
    IDLE,
    WAIT,    // for the slave
    ANSWER   // to the master
  } state_e;

  // ---- write ----
  state_e       w_state_q;
  logic [N-1:0] w_sel_q, w_busy_q;       // slaves whose response is awaited; slaves with a response outstanding, perhaps a late one
  logic [N-1:0] b_taken;
  axi_resp_e    w_resp_q;
  count_t       w_count_q;
  logic [N-1:0][1:0] bresp;

  wire w_start = w_state_q == IDLE && in.awvalid && in.wvalid;
  wire [N-1:0] w_owner = owner(in.awaddr[IN_ADDR_W-1:PAGE_W]);
  wire [N-1:0] w_ask = w_start ? w_owner & ~w_busy_q : '0;

  assign in.awready = w_start;
  assign in.wready  = w_start;
  assign in.bvalid  = w_state_q == ANSWER;
  assign in.bresp   = w_resp_q;

  always_ff @(posedge clk) begin
    w_count_q <= w_state_q == WAIT ? w_count_q + 1'b1 : '0;
    w_busy_q  <= (w_busy_q & ~b_taken) | w_ask;
    unique case (w_state_q)
      IDLE: begin
        w_sel_q  <= w_ask;
        w_resp_q <= |w_owner ? AXI_SLVERR : AXI_DECERR;
        if (w_start) w_state_q <= |w_ask ? WAIT : ANSWER;
      end
      WAIT: begin
        for (int unsigned i = 0; i < N; i++) if (b_taken[i] && w_sel_q[i]) w_resp_q <= axi_resp_e'(bresp[i]);
        if (|(b_taken & w_sel_q) || w_count_q == count_t'(TIMEOUT - 1)) w_state_q <= ANSWER;
      end
      default: if (in.bready) w_state_q <= IDLE;
    endcase
    if (rst) begin
      w_state_q <= IDLE;
      w_busy_q  <= '0;
    end
  end

  // ---- read ----
  state_e       r_state_q;
  logic [N-1:0] r_sel_q, r_busy_q;
  logic [N-1:0] r_taken;
  axi_resp_e    r_resp_q;
  logic [31:0]  r_data_q;
  count_t       r_count_q;
  logic [N-1:0][1:0] rresp;
  logic [N-1:0][31:0] rdata;

  wire r_start = r_state_q == IDLE && in.arvalid;
  wire [N-1:0] r_owner = owner(in.araddr[IN_ADDR_W-1:PAGE_W]);
  wire [N-1:0] r_ask = r_start ? r_owner & ~r_busy_q : '0;

  assign in.arready = r_state_q == IDLE;
  assign in.rvalid  = r_state_q == ANSWER;
  assign in.rresp   = r_resp_q;
  assign in.rdata   = r_data_q;

  always_ff @(posedge clk) begin
    r_count_q <= r_state_q == WAIT ? r_count_q + 1'b1 : '0;
    r_busy_q  <= (r_busy_q & ~r_taken) | r_ask;
    unique case (r_state_q)
      IDLE: begin
        r_sel_q  <= r_ask;
        r_data_q <= '0;
        r_resp_q <= |r_owner ? AXI_SLVERR : AXI_DECERR;
        if (r_start) r_state_q <= |r_ask ? WAIT : ANSWER;
      end
      WAIT: begin
        for (int unsigned i = 0; i < N; i++) begin
          if (r_taken[i] && r_sel_q[i]) begin
            r_resp_q <= axi_resp_e'(rresp[i]);
            r_data_q <= rdata[i];
          end
        end
        if (|(r_taken & r_sel_q) || r_count_q == count_t'(TIMEOUT - 1)) r_state_q <= ANSWER;
      end
      default: if (in.rready) r_state_q <= IDLE;
    endcase
    if (rst) begin
      r_state_q <= IDLE;
      r_busy_q  <= '0;
    end
  end

  // ---- the slaves ----
  for (genvar i = 0; i < N; i++) begin : g_out
    always_ff @(posedge clk) begin
      if (w_ask[i]) begin
        out[i].awaddr <= in.awaddr[PAGE_W-1:0];
        out[i].wdata  <= in.wdata;
        out[i].wstrb  <= in.wstrb;
      end
      if (r_ask[i]) out[i].araddr <= in.araddr[PAGE_W-1:0];
      if (rst) begin
        out[i].awvalid <= 1'b0;
        out[i].wvalid  <= 1'b0;
        out[i].arvalid <= 1'b0;
      end else begin
        if (!out[i].awvalid || out[i].awready) out[i].awvalid <= w_ask[i];
        if (!out[i].wvalid || out[i].wready) out[i].wvalid <= w_ask[i];
        if (!out[i].arvalid || out[i].arready) out[i].arvalid <= r_ask[i];
      end
    end
    // A response belongs to a request that was taken.
    assign out[i].bready = w_busy_q[i] && !out[i].awvalid && !out[i].wvalid;
    assign out[i].rready = r_busy_q[i] && !out[i].arvalid;
    assign b_taken[i]    = out[i].bvalid && out[i].bready;
    assign r_taken[i]    = out[i].rvalid && out[i].rready;
    assign bresp[i]      = out[i].bresp;
    assign rresp[i]      = out[i].rresp;
    assign rdata[i]      = out[i].rdata;
  end

  assign idle = w_state_q == IDLE && r_state_q == IDLE && !in.awvalid && !in.arvalid;
endmodule
