// SPDX-License-Identifier: Apache-2.0

// stream_demux with three outputs: a value moves exactly if the output that was selected takes it, and no other sees it.
module stream_demux_formal #(
    parameter bit REACH = 1'b0
) (
    input logic       clk,
    input logic       in_valid,
    input logic       in_data,
    input logic [1:0] select,
    input logic [2:0] out_ready
);
  stream_if #(.T(logic)) in ();
  stream_if #(.T(logic)) out[3] ();
  logic [2:0] out_valid, out_data;
  assign in.valid = in_valid;
  assign in.data  = in_data;

  stream_demux #(.T(logic), .N(3)) dut (.in, .select, .out);

  for (genvar i = 0; i < 3; i++) begin : g_out
    assign out[i].ready = out_ready[i];
    assign out_valid[i] = out[i].valid;
    assign out_data[i]  = out[i].data;
  end

  always_ff @(posedge clk) begin
    assume (select < 2'd3);
    assert (out_valid == (in.valid ? 3'd1 << select : 3'd0));
    assert (out_data[select] == in.data);
    assert (in.ready == out_ready[select]);
    if (REACH) assert (!(in.valid && in.ready && select == 2'd2));
  end
endmodule
