// SPDX-License-Identifier: Apache-2.0

// The slave for addresses outside of all memories: each burst is answered with DECERR (AMBA IHI 0022, A3.4.4), a read with beats of ones, a
// write after its data was discarded. One burst at a time in each direction. Latency: AR to R 1 cycle, then one beat a cycle; WLAST to B 1
// cycle. R and B wait until accepted.
module axi_decode_error
  import memory_pkg::*;
#(
    parameter int unsigned ID_W = 4
) (
    input  logic  clk,
    input  logic  rst,
    axi_if.slave  in
);
  // ---- read ----
  logic            reading_q;
  logic [ID_W-1:0] read_id_q;
  logic [7:0]      left_q;      // beats after the next one

  assign in.arready = !reading_q;
  assign in.rvalid  = reading_q;
  assign in.rid     = read_id_q;
  assign in.rdata   = '1;
  assign in.rresp   = AXI_DECERR;
  assign in.rlast   = left_q == '0;

  // ---- write ----
  logic            taking_q, answering_q;
  logic [ID_W-1:0] write_id_q;

  assign in.awready = !taking_q && !answering_q;
  assign in.wready  = taking_q;
  assign in.bvalid  = answering_q;
  assign in.bid     = write_id_q;
  assign in.bresp   = AXI_DECERR;

  always_ff @(posedge clk) begin
    if (in.arready) begin
      read_id_q <= in.arid;
      left_q    <= in.arlen;
    end else if (in.rready) left_q <= left_q - 1'b1;
    if (in.awready) write_id_q <= in.awid;
    if (rst) begin
      reading_q   <= 1'b0;
      taking_q    <= 1'b0;
      answering_q <= 1'b0;
    end else begin
      reading_q   <= reading_q ? !(in.rready && in.rlast) : in.arvalid;
      taking_q    <= taking_q ? !(in.wvalid && in.wlast) : in.awready && in.awvalid;
      answering_q <= answering_q ? !in.bready : taking_q && in.wvalid && in.wlast;
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, in.araddr, in.awaddr, in.awlen, in.wdata, in.wstrb};
endmodule
