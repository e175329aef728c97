// SPDX-License-Identifier: Apache-2.0

// Packets of beats as packets of words: the bus becomes narrower.
// One word a cycle, also between two beats. The first word of a beat comes 1 cycle after the beat was taken.
module axis_narrow #(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned WORD_W = 8      // a packet consists of whole words
) (
    input  logic   clk,
    input  logic   rst,
    axis_if.sink   in,
    axis_if.source out      // WORD_W bits
);
  localparam int unsigned WORDS = DATA_W / WORD_W;

  logic [WORDS-1:0][WORD_W-1:0] data_q;
  logic [WORDS-1:0] kept, kept_q;    // of the words that are still to come, from the one that is shown
  logic last_q, user_q;
  wire shown = kept_q[0];
  wire ends  = !kept_q[1];           // the word that is shown is the beat's last
  wire pass  = shown && out.tready;

  for (genvar i = 0; i < WORDS; i++) begin : g_kept
    assign kept[i] = in.tkeep[i*WORD_W/8];
  end

  assign in.tready = !shown || (pass && ends);
  always_ff @(posedge clk) begin
    if (in.tready) begin
      data_q <= in.tdata;
      kept_q <= in.tvalid ? kept : '0;
      last_q <= in.tlast;
      user_q <= in.tuser;
    end else if (pass) begin
      data_q <= data_q >> WORD_W;
      kept_q <= kept_q >> 1;
    end
    if (rst) kept_q <= '0;
  end
  assign out.tvalid = shown;
  assign out.tdata  = data_q[0];
  assign out.tkeep  = '1;
  assign out.tlast  = last_q && ends;
  assign out.tuser  = user_q;

  logic unused_ok;
  assign unused_ok = &{1'b0, in.tkeep};
endmodule
