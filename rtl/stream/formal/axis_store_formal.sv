// SPDX-License-Identifier: Apache-2.0

// axis_store: what was committed comes out, in order and nothing else; what was rolled back never does; no overflow.
module axis_store_formal #(
    parameter bit REACH = 1'b0
) (
    input logic clk,
    input logic rst,
    input logic in_valid,
    input logic in_colour,
    input logic commit,
    input logic rollback,
    input logic out_ready
);
  localparam int unsigned DEPTH = 2;

  axis_if #(.DATA_W(16)) in ();
  axis_if #(.DATA_W(16)) out ();
  logic [$clog2(DEPTH):0] room;
  logic empty;
  assign in.tvalid = in_valid;
  assign in.tdata  = {15'd0, in_colour};
  assign in.tkeep  = '1;
  assign in.tlast  = 1'b0;
  assign in.tuser  = 1'b0;
  assign out.tready = out_ready;

  axis_store #(.DATA_W(16), .DEPTH(DEPTH)) dut (.clk, .rst, .in, .commit, .rollback, .out, .room, .empty);

  polite_source #(.WIDTH(18)) sink (
      .clk, .rst, .valid(out.tvalid), .ready(out.tready), .data({out.tkeep, out.tdata})
  );

  wire push = in.tvalid && in.tready;
  wire pop = out.tvalid && out.tready;

  // The coloured beat, and how many beats that will come out are before it.
  logic [3:0] waiting_q, committed_q, ahead_q;  // beats without verdict; beats to come out
  logic coloured_q, judged_q, kept_q, gone_q;
  wire judged = judged_q || (coloured_q && (commit || rollback));
  wire here = pop && coloured_q && judged_q && kept_q && !gone_q && ahead_q == '0;

  logic started_q = 1'b0;
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    if (!started_q) assume (rst);
    if (rst) begin
      waiting_q   <= '0;
      committed_q <= '0;
      coloured_q  <= 1'b0;
      judged_q    <= 1'b0;
      gone_q      <= 1'b0;
    end else if (started_q) begin
      assume (!(commit && rollback));
      assume (!(in_colour && in_valid && coloured_q));
      assert (waiting_q + committed_q <= 4'(DEPTH + 1));
      assert (empty == (waiting_q + committed_q == '0));
      if (pop) assert (committed_q != '0);
      if (pop) assert (out.tdata[0] == here && out.tkeep == 2'b11);

      waiting_q <= commit || rollback ? '0 : waiting_q + 4'(push);
      committed_q <= committed_q + (commit ? waiting_q + 4'(push) : '0) - 4'(pop);
      if (push && in_colour) begin
        coloured_q <= 1'b1;
        ahead_q    <= committed_q + waiting_q - 4'(pop);
        judged_q   <= commit || rollback;
        kept_q     <= commit;
      end else if (coloured_q) begin
        if (pop && ahead_q != '0) ahead_q <= ahead_q - 1'b1;
        if (here) gone_q <= 1'b1;
        if (!judged_q) begin
          judged_q <= judged;
          kept_q   <= commit;
        end
      end
      if (REACH) assert (!(here && room == '0));
    end
  end
endmodule
