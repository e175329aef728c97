// SPDX-License-Identifier: Apache-2.0

// Packets of words as packets of beats: the bus becomes wider. Words of a beat are gathered until it is full or the packet ends.
// One word a cycle in, never slower as long as `out` takes a beat while the next one is gathered. A beat comes 1 cycle after its last word.
module axis_widen #(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned WORD_W = 8      // all bytes of a word are kept
) (
    input  logic   clk,
    input  logic   rst,
    axis_if.sink   in,      // WORD_W bits
    axis_if.source out
);
  localparam int unsigned WORDS = DATA_W / WORD_W;
  typedef logic [$clog2(WORDS)-1:0] lane_t;

  lane_t lane_q;            // where the next word goes
  logic [WORDS-1:0][WORD_W-1:0] gathered_q;
  logic [WORDS-1:0] kept_q;
  wire take = in.tvalid && in.tready;
  wire done = take && (in.tlast || lane_q == lane_t'(WORDS - 1));

  assign in.tready = !out.tvalid || out.tready;
  always_ff @(posedge clk) begin
    for (int unsigned i = 0; i < WORDS; i++)
      if (take && lane_q == lane_t'(i)) gathered_q[i] <= in.tdata;
    if (take) begin
      lane_q <= done ? '0 : lane_q + 1'b1;
      kept_q <= lane_q == '0 ? WORDS'(1) : {kept_q[WORDS-2:0], 1'b1};
      out.tlast <= in.tlast;
      out.tuser <= in.tuser;
    end
    if (in.tready) out.tvalid <= done;
    if (rst) begin
      lane_q     <= '0;
      out.tvalid <= 1'b0;
    end
  end
  assign out.tdata = gathered_q;
  for (genvar i = 0; i < WORDS; i++) begin : g_keep
    assign out.tkeep[i*WORD_W/8+:WORD_W/8] = {WORD_W / 8{kept_q[i]}};
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, in.tkeep};
endmodule
