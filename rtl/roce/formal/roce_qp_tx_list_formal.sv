// SPDX-License-Identifier: Apache-2.0

// roce_qp_tx_list, seen by one QP of four that two streams name at will: it comes out only if it was named since it came out last,
// always if it was, and then behind each other QP once at most. Naming it in the cycle in which it comes out counts as later.
module roce_qp_tx_list_formal
  import roce_pkg::*;
#(
    parameter bit REACH = 1'b0,
    parameter bit BLOCK_RAM = 1'b0
) (
    input logic       clk,
    input logic       rst,
    input logic [1:0] mine,          // of four QPs
    input logic [1:0] in_valid,
    input logic [1:0] in_index[2],
    input logic       out_ready
);
  localparam int unsigned QPS = 4;

  stream_if #(.T(qp_index_t)) in[2] ();
  stream_if #(.T(qp_index_t)) out ();
  logic       empty;
  logic [1:0] named, mine_q;
  for (genvar i = 0; i < 2; i++) begin : g_in
    assign in[i].valid = in_valid[i];
    assign in[i].data  = qp_index_t'(in_index[i]);
    assign named[i]    = in[i].valid && in[i].ready && in_index[i] == mine_q;
  end
  assign out.ready = out_ready;

  roce_qp_tx_list #(.QPS(QPS), .N(2), .BLOCK_RAM(BLOCK_RAM)) dut (.clk, .rst, .in, .out, .empty);

  logic       started_q = 1'b0;
  logic       listed_q, held_q;
  logic [2:0] cleared_q, passed_q;   // cycles since reset; others that came out while it was listed
  wire        comes = out.valid && !held_q && out.data == qp_index_t'(mine_q);
  wire        other = out.valid && !held_q && !comes;

  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    if (!started_q) assume (rst);
    if (rst) begin
      mine_q    <= mine;
      listed_q  <= 1'b0;
      held_q    <= 1'b0;
      cleared_q <= '0;
      passed_q  <= '0;
    end else if (started_q) begin
      held_q <= out.valid && !out.ready;
      if (cleared_q != 3'(QPS)) cleared_q <= cleared_q + 1'b1;
      else begin
        assert (!comes || listed_q);
        assert (!listed_q || !empty);
        assert (passed_q <= 3'(QPS));
        listed_q <= |named || (listed_q && !comes);
        passed_q <= comes || !listed_q ? '0 : passed_q + 3'(other);
        if (REACH) assert (!(passed_q == 3'(QPS - 1) && comes));
      end
      assert (in[0].ready || !in[0].valid);
      assert (in[1].ready == in[1].valid || in[0].valid);
    end
  end
endmodule
