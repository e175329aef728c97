// SPDX-License-Identifier: Apache-2.0

// Two packet streams into one, so that both get the same number of beats while both have some to send: the one that is behind goes first. A
// stream that has had nothing to send gets at most LONGEST beats more than the other afterwards.
//
// No latency: `in[0]` passes as if it were alone while `in[1]` has nothing. One beat a cycle. A stream that has had nothing for less than PATIENCE
// cycles is waited for if it is behind, since a packet of the other may take long: that costs so many cycles at most. There is no other bubble.
// A packet is never cut: a stream that stalls in the middle of one stalls the other.
module axis_share #(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned LONGEST = 9216,    // bytes
    parameter int unsigned PATIENCE = 4
) (
    input logic    clk,
    input logic    rst,
    axis_if.sink   in[2],
    axis_if.source out
);
  localparam int unsigned BEATS = LONGEST * 8 / DATA_W;
  localparam int unsigned COUNT_W = $clog2(BEATS + 1);
  typedef logic signed [COUNT_W:0] balance_t;
  localparam balance_t MOST = balance_t'(BEATS);

  typedef logic [$clog2(PATIENCE+1)-1:0] quiet_t;

  balance_t balance_q;           // beats that in[1] is ahead of in[0]
  quiet_t   quiet_q[2];          // cycles without an offer, up to PATIENCE
  logic     held_q, turn_q;      // in the middle of a packet, of this one
  logic     turn, ends;

  // The one that is behind, unless it has had nothing for long.
  logic [1:0] alive;
  assign alive = {in[1].tvalid || quiet_q[1] != quiet_t'(PATIENCE), in[0].tvalid || quiet_q[0] != quiet_t'(PATIENCE)};
  assign turn = held_q ? turn_q : alive[1] && (!alive[0] || balance_q < 0);
  assign ends = turn ? in[1].tlast : in[0].tlast;
  wire fire = out.tvalid && out.tready;

  assign out.tvalid    = turn ? in[1].tvalid : in[0].tvalid;
  assign out.tdata     = turn ? in[1].tdata : in[0].tdata;
  assign out.tkeep     = turn ? in[1].tkeep : in[0].tkeep;
  assign out.tlast     = ends;
  assign out.tuser     = turn ? in[1].tuser : in[0].tuser;
  assign in[0].tready  = out.tready && !turn;
  assign in[1].tready  = out.tready && turn;

  always_ff @(posedge clk) begin
    turn_q <= turn;
    if (rst) begin
      held_q    <= 1'b0;
      balance_q <= '0;
      quiet_q   <= '{default: quiet_t'(PATIENCE)};
    end else begin
      quiet_q[0] <= in[0].tvalid ? '0 : alive[0] ? quiet_q[0] + 1'b1 : quiet_q[0];
      quiet_q[1] <= in[1].tvalid ? '0 : alive[1] ? quiet_q[1] + 1'b1 : quiet_q[1];
      if (out.tvalid) held_q <= !(out.tready && ends);   // what is offered stays
      if (fire && turn && balance_q != MOST) balance_q <= balance_q + balance_t'(1);
      if (fire && !turn && balance_q != -MOST) balance_q <= balance_q - balance_t'(1);
    end
  end
endmodule
