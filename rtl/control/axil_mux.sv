// SPDX-License-Identifier: Apache-2.0

// Shares an AXI4-Lite bus between N masters, round robin: one read and one write at a time, independent of each other, so a master waits for
// at most one access of each other. 1 cycle more than the bus takes. A master must take the response of an access that it has begun; the
// others wait for that.
module axil_mux #(
    parameter int unsigned N = 2,
    parameter int unsigned ADDR_W = 20
) (
    input  logic    clk,
    input  logic    rst,
    axil_if.slave   in[N],
    axil_if.master  out,
    output logic    idle     // no access under way
);
  typedef logic [ADDR_W-1:0] addr_t;

  // ---- write ----
  logic [N-1:0] awvalid, wvalid, bready, w_grant, w_sel_q;
  logic         aw_left_q, w_left_q;          // not yet taken by the slave
  addr_t        awaddr[N];
  logic [31:0]  wdata[N];
  logic [3:0]   wstrb[N];
  wire          w_free = w_sel_q == '0;
  wire          w_done = out.bvalid && out.bready;

  round_robin #(.N(N)) w_turns (.clk, .rst, .request(awvalid & wvalid), .take(w_free), .grant(w_grant));

  always_ff @(posedge clk) begin
    if (w_free) begin
      aw_left_q <= 1'b1;
      w_left_q  <= 1'b1;
    end else begin
      if (out.awready) aw_left_q <= 1'b0;
      if (out.wready) w_left_q <= 1'b0;
    end
    if (rst || w_done) w_sel_q <= '0;
    else if (w_free) w_sel_q <= w_grant;
  end

  assign out.awvalid = !w_free && aw_left_q;
  assign out.wvalid  = !w_free && w_left_q;
  assign out.bready  = |(w_sel_q & bready);
  always_comb begin
    out.awaddr = '0;
    out.wdata  = '0;
    out.wstrb  = '0;
    for (int unsigned i = 0; i < N; i++)
      if (w_sel_q[i]) begin
        out.awaddr |= awaddr[i];
        out.wdata  |= wdata[i];
        out.wstrb  |= wstrb[i];
      end
  end

  // ---- read ----
  logic [N-1:0] arvalid, rready, r_grant, r_sel_q;
  logic         ar_left_q;
  addr_t        araddr[N];
  wire          r_free = r_sel_q == '0;
  wire          r_done = out.rvalid && out.rready;

  round_robin #(.N(N)) r_turns (.clk, .rst, .request(arvalid), .take(r_free), .grant(r_grant));

  always_ff @(posedge clk) begin
    if (r_free) ar_left_q <= 1'b1;
    else if (out.arready) ar_left_q <= 1'b0;
    if (rst || r_done) r_sel_q <= '0;
    else if (r_free) r_sel_q <= r_grant;
  end

  assign out.arvalid = !r_free && ar_left_q;
  assign out.rready  = |(r_sel_q & rready);
  always_comb begin
    out.araddr = '0;
    for (int unsigned i = 0; i < N; i++) if (r_sel_q[i]) out.araddr |= araddr[i];
  end

  // ---- the masters ----
  for (genvar i = 0; i < N; i++) begin : g_in
    assign awvalid[i] = in[i].awvalid;
    assign awaddr[i]  = in[i].awaddr;
    assign wvalid[i]  = in[i].wvalid;
    assign wdata[i]   = in[i].wdata;
    assign wstrb[i]   = in[i].wstrb;
    assign bready[i]  = in[i].bready;
    assign arvalid[i] = in[i].arvalid;
    assign araddr[i]  = in[i].araddr;
    assign rready[i]  = in[i].rready;
    assign in[i].awready = w_sel_q[i] && aw_left_q && out.awready;
    assign in[i].wready  = w_sel_q[i] && w_left_q && out.wready;
    assign in[i].bvalid  = w_sel_q[i] && out.bvalid;
    assign in[i].bresp   = out.bresp;
    assign in[i].arready = r_sel_q[i] && ar_left_q && out.arready;
    assign in[i].rvalid  = r_sel_q[i] && out.rvalid;
    assign in[i].rresp   = out.rresp;
    assign in[i].rdata   = out.rdata;
  end

  assign idle = w_free && r_free && awvalid == '0 && arvalid == '0;
endmodule
