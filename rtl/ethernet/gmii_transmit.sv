// SPDX-License-Identifier: Apache-2.0

// Transmit side of a Gigabit Ethernet MAC: frames from a stream of bytes to GMII (IEEE 802.3, clause 35), with preamble, padding to 60
// bytes, FCS and a gap of 12 bytes.
//
// A frame that has begun cannot stall: `in` must have a byte in every cycle until its last. If it has none, or the frame ends with tuser,
// what is on the line ends with an error (TX_ER) and a wrong FCS, so that nobody takes it.
//
// One byte a cycle, and 24 cycles between the last byte of a frame and the first of the next: FCS, gap, preamble. A frame's first byte
// is on the line 9 cycles after it was offered.
module gmii_transmit
  import crc32_pkg::*;
(
    input  logic       clk,      // 125 MHz
    input  logic       rst,
    axis_if.sink       in,       // 8 bits
    output logic [7:0] gmii_txd,
    output logic       gmii_tx_en,
    output logic       gmii_tx_er
);
  localparam logic [7:0] PREAMBLE = 8'h55;
  localparam logic [7:0] DELIMITER = 8'hd5;
  localparam int unsigned PREAMBLE_BYTES = 7;
  localparam int unsigned LEAST = 60;            // bytes of a frame without FCS
  localparam int unsigned FCS_BYTES = 4;
  localparam int unsigned GAP = 12;

  typedef enum logic [2:0] {
    S_IDLE,
    S_PREAMBLE,
    S_DATA,
    S_PAD,
    S_FCS,
    S_DRAIN,     // the rest of a frame that failed
    S_GAP
  } state_e;
  state_e state_q;

  logic [5:0] count_q;        // bytes in this state; in a frame up to LEAST
  crc32_t     crc_q;
  logic       bad_q, ended_q; // the frame failed; its last byte was taken
  wire take  = in.tvalid && in.tready;
  wire short = count_q < 6'(LEAST - 1);

  assign in.tready = state_q inside {S_DATA, S_DRAIN};

  logic [7:0] data;
  always_comb
    unique case (state_q)
      S_DATA:  data = in.tdata;
      S_FCS:   data = bad_q ? crc_q[7:0] : ~crc_q[7:0];
      S_PREAMBLE: data = count_q == 6'(PREAMBLE_BYTES) ? DELIMITER : PREAMBLE;
      default: data = '0;
    endcase

  always_ff @(posedge clk) begin
    gmii_txd   <= data;
    gmii_tx_en <= !rst && state_q inside {S_PREAMBLE, S_DATA, S_PAD, S_FCS};
    gmii_tx_er <= !rst && state_q inside {S_PAD, S_FCS} && bad_q;

    if (state_q inside {S_DATA, S_PAD}) begin
      crc_q <= crc32_zero_byte(crc_q ^ crc32_t'(data));
      if (short) count_q <= count_q + 1'b1;
    end else if (state_q == S_FCS) crc_q <= {8'hff, crc_q[31:8]};
    else crc_q <= '1;

    unique case (state_q)
      S_IDLE: begin
        count_q <= '0;
        bad_q   <= 1'b0;
        ended_q <= 1'b0;
        if (in.tvalid) state_q <= S_PREAMBLE;
      end
      S_PREAMBLE: begin
        count_q <= count_q + 1'b1;
        if (count_q == 6'(PREAMBLE_BYTES)) begin
          state_q <= S_DATA;
          count_q <= '0;
        end
      end
      S_DATA: begin
        bad_q   <= !take || (in.tlast && in.tuser);
        ended_q <= take && in.tlast;
        if (!take || in.tlast) begin
          state_q <= short ? S_PAD : S_FCS;
          if (!short) count_q <= '0;
        end
      end
      S_PAD:
      if (!short) begin
        state_q <= S_FCS;
        count_q <= '0;
      end
      S_FCS: begin
        count_q <= count_q + 1'b1;
        if (count_q == 6'(FCS_BYTES - 1)) begin
          state_q <= ended_q ? S_GAP : S_DRAIN;
          count_q <= '0;
        end
      end
      S_DRAIN: if (take && in.tlast) state_q <= S_GAP;
      default: begin
        count_q <= count_q + 1'b1;
        if (count_q == 6'(GAP - 2)) state_q <= S_IDLE;   // one more cycle there
      end
    endcase
    if (rst) state_q <= S_IDLE;
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, in.tkeep};
endmodule
