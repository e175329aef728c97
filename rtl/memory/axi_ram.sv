// SPDX-License-Identifier: Apache-2.0

// Memory of the chip behind an AXI4 port: for a board whose device needs little. BYTES from address 0; a burst that begins behind them is answered
// with DECERR, and writes nothing. A burst goes around at the end.
//
// One burst is written and one is read at a time, a beat a cycle each; between two bursts of a direction are 1 cycle (reads) and 2
// cycles (writes). First data 2 cycles after the address was taken, the response of a write 1 cycle after its last beat: by then it can be read.
module axi_ram
  import memory_pkg::*;
#(
    parameter int unsigned DATA_W = 64,
    parameter longint unsigned BYTES = 64'd131_072,   // a power of two
    parameter int unsigned ID_W = 4
) (
    input logic   clk,
    input logic   rst,
    axi_if.slave  in
);
  localparam int unsigned LANES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(LANES);
  localparam int unsigned SIZE_BITS = $clog2(BYTES);
  localparam int unsigned WORD_W = SIZE_BITS - LANE_W;
  typedef logic [WORD_W-1:0] word_t;
  typedef logic [ID_W-1:0] id_t;

  if (64'd1 << SIZE_BITS != BYTES || BYTES < 64'd4096) begin : g_bad
    $fatal(1, "axi_ram: BYTES is %0d; it must be a power of two from 4096", BYTES);
  end

  function automatic logic outside(addr_t address);
    return |address[ADDR_W-1:SIZE_BITS];
  endfunction

  // ---- write ----
  logic  writing_q, write_bad_q;
  word_t write_at_q;
  wire   write = in.wvalid && in.wready;
  assign in.awready = !writing_q && !in.bvalid;
  assign in.wready  = writing_q && !in.bvalid;

  always_ff @(posedge clk) begin
    if (in.awvalid && in.awready) begin
      writing_q   <= 1'b1;
      write_at_q  <= in.awaddr[SIZE_BITS-1:LANE_W];
      write_bad_q <= outside(in.awaddr);
      in.bid      <= in.awid;
      in.bresp    <= outside(in.awaddr) ? AXI_DECERR : AXI_OKAY;
    end
    if (write) begin
      write_at_q <= write_at_q + 1'b1;
      if (in.wlast) writing_q <= 1'b0;
    end
    in.bvalid <= (write && in.wlast) || (in.bvalid && !in.bready);
    if (rst) begin
      writing_q <= 1'b0;
      in.bvalid <= 1'b0;
    end
  end

  // ---- read ----
  logic       reading_q;
  word_t      read_at_q;
  logic [7:0] left_q;                    // beats behind the one that is read
  id_t        read_id_q;
  axi_resp_e  read_resp_q;
  wire        advance = !in.rvalid || in.rready;
  assign in.arready = !reading_q;

  always_ff @(posedge clk) begin
    if (in.arvalid && in.arready) begin
      reading_q   <= 1'b1;
      read_at_q   <= in.araddr[SIZE_BITS-1:LANE_W];
      left_q      <= in.arlen;
      read_id_q   <= in.arid;
      read_resp_q <= outside(in.araddr) ? AXI_DECERR : AXI_OKAY;
    end
    if (reading_q && advance) begin
      read_at_q <= read_at_q + 1'b1;
      left_q    <= left_q - 1'b1;
      if (left_q == '0) reading_q <= 1'b0;
      in.rid   <= read_id_q;
      in.rresp <= read_resp_q;
      in.rlast <= left_q == '0;
    end
    if (advance) in.rvalid <= reading_q;
    if (rst) begin
      reading_q <= 1'b0;
      in.rvalid <= 1'b0;
    end
  end

  // ---- a memory for each byte of a word ----
  for (genvar i = 0; i < LANES; i++) begin : g_lane
    ram_1w1r #(
        .T    (logic [7:0]),
        .WORDS(2 ** WORD_W)
    ) bytes (
        .clk,
        .write(write && in.wstrb[i] && !write_bad_q),
        .write_at(write_at_q),
        .write_data(in.wdata[8*i+:8]),
        .read(reading_q && advance),
        .read_at(read_at_q),
        .read_data(in.rdata[8*i+:8])
    );
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, in.awlen, in.awaddr[LANE_W-1:0], in.araddr[LANE_W-1:0]};
endmodule
