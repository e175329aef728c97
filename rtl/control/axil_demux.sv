// SPDX-License-Identifier: Apache-2.0

// Gives each of N slaves one page of an AXI4-Lite address space: `out[i]` owns page PAGES[i], of 2^PAGE_W bytes, and sees
// addresses within it.
//
// One read and one write at a time, independent of each other: 3 cycles each beside the slave's own. A page that nobody owns
// is answered with DECERR. A slave that takes longer than TIMEOUT cycles is answered for with SLVERR, and again at once until
// its late response has come, which is thrown away: a broken slave costs its own page, never the bus. (An address that it did
// not take in this time is withdrawn, which AXI forbids a master: nobody else would be served otherwise.)
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
  typedef logic [PAGE_W-1:0] offset_t;
  typedef logic [$clog2(TIMEOUT+1)-1:0] count_t;

  // Which slave a page belongs to, one bit each.
  function automatic logic [N-1:0] owner(logic [IN_ADDR_W-PAGE_W-1:0] page);
    logic [N-1:0] selected;
    for (int unsigned i = 0; i < N; i++) selected[i] = page == PAGES[i];
    return selected;
  endfunction

  typedef enum logic [1:0] {
    S_IDLE,
    S_REQUEST,   // to the slave
    S_RESPONSE,  // from the slave
    S_ANSWER     // to the master
  } state_e;

  // ---- write ----
  state_e       w_state_q;
  logic [N-1:0] w_sel_q, w_owed_q;      // owed: a response that comes too late
  offset_t      w_addr_q;
  logic [31:0]  w_data_q;
  logic [3:0]   w_strb_q;
  logic         aw_done_q, w_done_q;
  axi_resp_e    w_resp_q;
  count_t       w_count_q;
  logic [N-1:0] awready, wready, bvalid;
  logic [N-1:0][1:0] bresp;

  wire w_start = w_state_q == S_IDLE && in.awvalid && in.wvalid;
  wire w_requesting = w_state_q == S_REQUEST;
  wire aw_done = aw_done_q || |(awready & w_sel_q);
  wire w_done = w_done_q || |(wready & w_sel_q);
  wire w_late = w_count_q == count_t'(TIMEOUT);
  wire w_answered = w_state_q == S_RESPONSE && |(bvalid & w_sel_q & ~w_owed_q);

  assign in.awready = w_start;
  assign in.wready  = w_start;
  assign in.bvalid  = w_state_q == S_ANSWER;
  assign in.bresp   = w_resp_q;

  always_ff @(posedge clk) begin
    w_owed_q  <= w_owed_q & ~bvalid;
    w_count_q <= w_count_q + 1'b1;
    unique case (w_state_q)
      S_IDLE: begin
        w_sel_q   <= owner(in.awaddr[IN_ADDR_W-1:PAGE_W]);
        w_addr_q  <= in.awaddr[PAGE_W-1:0];
        w_data_q  <= in.wdata;
        w_strb_q  <= in.wstrb;
        aw_done_q <= 1'b0;
        w_done_q  <= 1'b0;
        w_count_q <= '0;
        if (w_start) w_state_q <= S_REQUEST;
      end
      S_REQUEST: begin
        aw_done_q <= aw_done;
        w_done_q  <= w_done;
        if (w_sel_q == 0) begin
          w_resp_q  <= AXI_DECERR;
          w_state_q <= S_ANSWER;
        end else if (|(w_sel_q & w_owed_q)) begin
          w_resp_q  <= AXI_SLVERR;
          w_state_q <= S_ANSWER;
        end else if (aw_done && w_done) w_state_q <= S_RESPONSE;
        else if (w_late) begin
          if (aw_done || w_done) w_owed_q <= (w_owed_q & ~bvalid) | w_sel_q;
          w_resp_q  <= AXI_SLVERR;
          w_state_q <= S_ANSWER;
        end
      end
      S_RESPONSE:
      if (w_answered) begin
        w_resp_q <= AXI_OKAY;
        for (int unsigned i = 0; i < N; i++) if (w_sel_q[i]) w_resp_q <= axi_resp_e'(bresp[i]);
        w_state_q <= S_ANSWER;
      end else if (w_late) begin
        w_owed_q  <= (w_owed_q & ~bvalid) | w_sel_q;
        w_resp_q  <= AXI_SLVERR;
        w_state_q <= S_ANSWER;
      end
      default: if (in.bready) w_state_q <= S_IDLE;
    endcase
    if (rst) begin
      w_state_q <= S_IDLE;
      w_owed_q  <= '0;
    end
  end

  // ---- read ----
  state_e       r_state_q;
  logic [N-1:0] r_sel_q, r_owed_q;
  offset_t      r_addr_q;
  axi_resp_e    r_resp_q;
  logic [31:0]  r_data_q;
  count_t       r_count_q;
  logic [N-1:0] arready, rvalid;
  logic [N-1:0][1:0] rresp;
  logic [N-1:0][31:0] rdata;

  wire r_requesting = r_state_q == S_REQUEST;
  wire r_late = r_count_q == count_t'(TIMEOUT);
  wire r_answered = r_state_q == S_RESPONSE && |(rvalid & r_sel_q & ~r_owed_q);

  assign in.arready = r_state_q == S_IDLE;
  assign in.rvalid  = r_state_q == S_ANSWER;
  assign in.rresp   = r_resp_q;
  assign in.rdata   = r_data_q;

  always_ff @(posedge clk) begin
    r_owed_q  <= r_owed_q & ~rvalid;
    r_count_q <= r_count_q + 1'b1;
    unique case (r_state_q)
      S_IDLE: begin
        r_sel_q   <= owner(in.araddr[IN_ADDR_W-1:PAGE_W]);
        r_addr_q  <= in.araddr[PAGE_W-1:0];
        r_data_q  <= '0;
        r_count_q <= '0;
        if (in.arvalid) r_state_q <= S_REQUEST;
      end
      S_REQUEST:
      if (r_sel_q == 0) begin
        r_resp_q  <= AXI_DECERR;
        r_state_q <= S_ANSWER;
      end else if (|(r_sel_q & r_owed_q)) begin
        r_resp_q  <= AXI_SLVERR;
        r_state_q <= S_ANSWER;
      end else if (|(arready & r_sel_q)) r_state_q <= S_RESPONSE;
      else if (r_late) begin
        r_resp_q  <= AXI_SLVERR;
        r_state_q <= S_ANSWER;
      end
      S_RESPONSE:
      if (r_answered) begin
        r_resp_q <= AXI_OKAY;
        for (int unsigned i = 0; i < N; i++)
          if (r_sel_q[i]) begin
            r_resp_q <= axi_resp_e'(rresp[i]);
            r_data_q <= rdata[i];
          end
        r_state_q <= S_ANSWER;
      end else if (r_late) begin
        r_owed_q  <= (r_owed_q & ~rvalid) | r_sel_q;
        r_resp_q  <= AXI_SLVERR;
        r_state_q <= S_ANSWER;
      end
      default: if (in.rready) r_state_q <= S_IDLE;
    endcase
    if (rst) begin
      r_state_q <= S_IDLE;
      r_owed_q  <= '0;
    end
  end

  // ---- the slaves ----
  for (genvar i = 0; i < N; i++) begin : g_out
    wire w_go = w_requesting && w_sel_q[i] && !w_owed_q[i];
    assign out[i].awaddr  = w_addr_q;
    assign out[i].awvalid = w_go && !aw_done_q;
    assign out[i].wdata   = w_data_q;
    assign out[i].wstrb   = w_strb_q;
    assign out[i].wvalid  = w_go && !w_done_q;
    assign out[i].bready  = (w_state_q == S_RESPONSE && w_sel_q[i]) || w_owed_q[i];
    assign out[i].araddr  = r_addr_q;
    assign out[i].arvalid = r_requesting && r_sel_q[i] && !r_owed_q[i];
    assign out[i].rready  = (r_state_q == S_RESPONSE && r_sel_q[i]) || r_owed_q[i];
    assign awready[i] = out[i].awready && out[i].awvalid;
    assign wready[i]  = out[i].wready && out[i].wvalid;
    assign bvalid[i]  = out[i].bvalid;
    assign bresp[i]   = out[i].bresp;
    assign arready[i] = out[i].arready && out[i].arvalid;
    assign rvalid[i]  = out[i].rvalid;
    assign rresp[i]   = out[i].rresp;
    assign rdata[i]   = out[i].rdata;
  end

  assign idle = w_state_q == S_IDLE && r_state_q == S_IDLE && !in.awvalid && !in.arvalid;
endmodule
