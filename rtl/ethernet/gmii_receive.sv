// SPDX-License-Identifier: Apache-2.0

// Receive side of a Gigabit Ethernet MAC: frames from GMII (IEEE 802.3, clause 35) as a stream of bytes, without preamble and FCS.
//
// A frame whose FCS is wrong, or in which the PHY reports an error, ends with tuser. Fewer than five bytes behind the start delimiter are
// no frame, and leave no trace; what the packet plane needs in length it checks itself. What follows a preamble that is none is skipped
// until the line is quiet. GMII cannot stall: `out` must be ready when there is a byte.
//
// One byte a cycle. A byte is on `out` 7 cycles after it was on the line: the last four are the FCS, and the one before them the frame's last.
module gmii_receive
  import crc32_pkg::*;
(
    input  logic       clk,      // of the receiver: 125 MHz
    input  logic       rst,
    input  logic [7:0] gmii_rxd,
    input  logic       gmii_rx_dv,
    input  logic       gmii_rx_er,
    axis_if.source     out       // 8 bits
);
  localparam logic [7:0] PREAMBLE = 8'h55;
  localparam logic [7:0] DELIMITER = 8'hd5;
  localparam int unsigned HELD = 5;              // the FCS, and the byte that is the last if nothing follows

  typedef enum logic [1:0] {
    S_QUIET,
    S_PREAMBLE,
    S_FRAME,
    S_SKIP       // until the line is quiet
  } state_e;
  state_e state_q;

  logic [7:0] data_q;
  logic       valid_q, error_q;
  always_ff @(posedge clk) begin
    data_q  <= gmii_rxd;
    valid_q <= gmii_rx_dv;
    error_q <= gmii_rx_er;
  end

  logic [HELD-1:0][7:0] held_q;
  logic [$clog2(HELD+1)-1:0] count_q;
  crc32_t crc_q;
  logic bad_q;
  wire full = count_q == ($clog2(HELD + 1))'(HELD);
  wire ends = state_q == S_FRAME && !valid_q;

  always_ff @(posedge clk) begin
    unique case (state_q)
      S_QUIET: if (valid_q) state_q <= data_q == DELIMITER ? S_FRAME : data_q == PREAMBLE && !error_q ? S_PREAMBLE : S_SKIP;
      S_PREAMBLE:
      if (!valid_q) state_q <= S_QUIET;
      else if (data_q == DELIMITER) state_q <= S_FRAME;
      else if (data_q != PREAMBLE || error_q) state_q <= S_SKIP;
      S_FRAME: if (!valid_q) state_q <= S_QUIET;
      S_SKIP: if (!valid_q) state_q <= S_QUIET;
    endcase
    if (state_q != S_FRAME) begin
      count_q <= '0;
      crc_q   <= '1;
      bad_q   <= 1'b0;
    end else if (valid_q) begin
      held_q <= {held_q[HELD-2:0], data_q};
      crc_q  <= crc32_zero_byte(crc_q ^ crc32_t'(data_q));
      bad_q  <= bad_q || error_q;
      if (!full) count_q <= count_q + 1'b1;
    end

    out.tvalid <= !rst && full && state_q == S_FRAME;
    out.tdata  <= held_q[HELD-1];
    out.tlast  <= ends;
    out.tuser  <= bad_q || error_q || crc_q != CRC32_RESIDUE;
    if (rst) state_q <= S_SKIP;
  end
  assign out.tkeep = 1'b1;

  always_ff @(posedge clk) if (!rst && out.tvalid) assert (out.tready);
endmodule
