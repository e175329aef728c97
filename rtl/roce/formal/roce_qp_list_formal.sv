// SPDX-License-Identifier: Apache-2.0

// roce_qp_list, seen by one QP of four that two streams name at will: it comes out only if it was named since it came out last,
// always if it was, and then behind each other QP once at most. Naming it in the cycle in which it comes out counts as later.
module roce_qp_list_formal
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

  roce_qp_list #(.QPS(QPS), .N(2), .BLOCK_RAM(BLOCK_RAM)) dut (.clk, .rst, .in, .out, .empty);

  logic       started_q = 1'b0;
  logic       listed_q, held_q;
  logic [2:0] cleared_q, passed_q;   // cycles since reset; others that came out while it was listed
  wire        comes = out.valid && !held_q && out.data == qp_index_t'(mine_q);
  wire        other = out.valid && !held_q && !comes;

  // What is stored, from which the rest follows: each QP is in the FIFO or about to come out once if its two bits differ, else not at
  // all; and those before this one are others, once each.
  logic [2:0] stored, ahead, earlier;
  logic [2:0] copies[QPS];
  logic [1:0] index[QPS];
  logic       bit_[QPS];
  logic [2:0] head_index;
  logic       sound;
  assign stored     = dut.fifo.write_q - dut.fifo.read_q;
  assign head_index = dut.fifo.g_memory.out_q;
  always_comb begin
    sound  = 1'b1;
    ahead  = '0;
    earlier = '0;
    for (int unsigned q = 0; q < QPS; q++) copies[q] = '0;
    if (out.valid && !held_q) begin
      copies[head_index[1:0]] = 3'd1;
      if (head_index[2] != dut.queued[head_index[1:0]]) sound = 1'b0;
      earlier = 3'd1;
    end
    for (int unsigned i = 0; i < QPS; i++) begin
      {bit_[i], index[i]} = dut.fifo.g_memory.values[2'(dut.fifo.read_q+3'(i))];
      if (3'(i) < stored) begin
        copies[index[i]] = copies[index[i]] + 1'b1;
        if (bit_[i] != dut.queued[index[i]]) sound = 1'b0;
        if (index[i] == mine_q) ahead = earlier;
        earlier = earlier + 1'b1;
      end
    end
    for (int unsigned q = 0; q < QPS; q++) if (copies[q] != 3'(dut.queued[q] != dut.passed[q])) sound = 1'b0;
  end
  wire coming = dut.named_valid_q && dut.named_q == mine_q;

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
      assert (dut.held_q == held_q);
      assert (dut.cleared_q == cleared_q);
      if (cleared_q != 3'(QPS)) begin
        cleared_q <= cleared_q + 1'b1;
        assert (dut.fifo.empty && !dut.named_valid_q && stored == '0);
        for (int unsigned q = 0; q < QPS; q++) if (3'(q) < cleared_q) assert (!dut.queued[q] && !dut.passed[q]);
      end else begin
        assert (stored <= 3'(QPS) && sound);
        assert (listed_q == (coming || copies[mine_q] != '0));
        assert (!listed_q || passed_q + ahead <= 3'(QPS));
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
