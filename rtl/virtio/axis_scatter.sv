// SPDX-License-Identifier: Apache-2.0

// Cuts packets into pieces: for each value on `piece` a packet up to that byte, the next ones of the packet on
// `in`. The piece with `last` is the last of its packet and has all that is left of it: so the lengths must add up. One beat a
// cycle; latency 2 cycles. When `out` stops, `in` does.
module axis_scatter #(
    parameter int unsigned DATA_W = 512
) (
    input  logic     clk,
    input  logic     rst,
    axis_if.sink     in,
    stream_if.sink   piece,    // scatter_piece_t
    axis_if.source   out
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);

  logic [DATA_W-1:0] now_q, moved;
  logic              now_valid_q;
  logic [LANE_W-1:0] at_q;                   // byte of now_q that comes next
  logic              piece_q, final_q;       // there is a piece; it is the last one of its packet
  logic [15:0]       left_q;                 // number of its last byte, from the next one on
  logic              ends_q;                 // that is in the next beat
  logic [LANE_W-1:0] last_byte;              // of the beat that is made,
  logic [LANE_W:0]   last_lane;              // where it is now
  logic              closes, needs, spends, step, load;

  assign last_byte = ends_q ? left_q[LANE_W-1:0] : '1;
  assign last_lane = (LANE_W + 1)'(at_q) + (LANE_W + 1)'(last_byte);
  assign needs     = last_lane[LANE_W];              // bytes of the beat on `in`
  assign closes    = ends_q && final_q;
  assign spends    = needs || &last_lane[LANE_W-1:0];
  assign step      = now_valid_q && piece_q && (!out.tvalid || out.tready) && (!needs || in.tvalid);
  assign load      = !piece_q || (step && ends_q);

  byte_funnel #(.DATA_W(DATA_W)) funnel (.low(now_q), .high(in.tdata), .amount(at_q), .out(moved));

  assign piece.ready = load;
  // The beat on `in` is held next, unless it is the rest of a packet that ends here.
  assign in.tready   = step ? spends || closes : !now_valid_q;
  wire   take = in.tvalid && in.tready;

  always_ff @(posedge clk) begin
    if (load) begin
      left_q  <= piece.data.last_byte;
      ends_q  <= piece.data.last_byte[15:LANE_W] == '0;
      final_q <= piece.data.last;
    end else if (step) begin
      left_q <= left_q - 16'(BYTES);
      ends_q <= left_q[15:LANE_W] == (16 - LANE_W)'(1);
    end
    if (step) begin
      out.tdata <= moved;
      out.tkeep <= {BYTES{1'b1}} >> ~last_byte;
      out.tlast <= ends_q;
      out.tuser <= 1'b0;
    end
    if (take) now_q <= in.tdata;
    if (rst) begin
      out.tvalid  <= 1'b0;
      now_valid_q <= 1'b0;
      piece_q     <= 1'b0;
      at_q        <= '0;
    end else begin
      if (!out.tvalid || out.tready) out.tvalid <= step;
      if (load) piece_q <= piece.valid;
      if (step) begin
        at_q        <= closes ? '0 : last_lane[LANE_W-1:0] + 1'b1;
        now_valid_q <= closes ? take && !needs : spends ? take : 1'b1;
      end else if (take) begin
        now_valid_q <= 1'b1;
      end
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, in.tkeep, in.tlast, in.tuser};
endmodule
