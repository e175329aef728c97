// SPDX-License-Identifier: Apache-2.0

// axis_strip, two bytes a beat, strip none or one: every packet comes out as it went in, less its first bytes.
// All packets have a one in the byte at an index of the solver's choice and zeros elsewhere.
module axis_strip_formal #(
    parameter bit REACH = 1'b0
) (
    input logic       clk,
    input logic       rst,
    input logic       in_valid,
    input logic       in_last,
    input logic [1:0] in_keep,
    input logic       out_ready,
    input logic       choice_free,
    input logic [2:0] mark_free
);
  axis_if #(.DATA_W(16)) in ();
  axis_if #(.DATA_W(16)) out ();

  // Constants of the solver's choice.
  logic choice_q;
  logic [2:0] mark_q;

  logic [3:0] in_index_q, out_index_q;  // bytes of this packet that went by
  logic [3:0] in_length_q;              // of the packet that went in last and is not yet all out
  logic in_done_q;

  assign in.tvalid = in_valid;
  assign in.tlast  = in_last;
  assign in.tkeep  = in_keep;
  assign in.tdata  = {7'd0, in_index_q + 1'b1 == 4'(mark_q), 7'd0, in_index_q == 4'(mark_q)};
  assign in.tuser  = 1'b0;
  assign out.tready = out_ready;

  axis_strip #(.DATA_W(16), .CHOICES(2), .SHIFTS({8'd1, 8'd0})) dut (.clk, .rst, .in, .choice(choice_q), .out);

  polite_source #(.ASSUME(1'b1), .WIDTH(3)) source (
      .clk, .rst, .valid(in.tvalid), .ready(in.tready), .data({in_last, in_keep})
  );

  wire push = in.tvalid && in.tready;
  wire pop = out.tvalid && out.tready;
  wire [3:0] in_bytes = in.tkeep == 2'b11 ? 4'd2 : 4'd1;
  wire [3:0] out_bytes = out.tkeep == 2'b11 ? 4'd2 : 4'd1;
  wire [3:0] in_next = in_index_q + in_bytes;
  wire [3:0] out_next = out_index_q + out_bytes;
  wire same_cycle = push && in.tlast && !in_done_q;
  wire [3:0] length = same_cycle ? in_next : in_length_q;

  logic started_q = 1'b0;
  logic flowing_q;
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    flowing_q <= in_valid && out_ready && !rst;
    if (!started_q) begin
      assume (rst);
      choice_q <= choice_free;
      mark_q   <= mark_free;
    end
    if (rst) begin
      in_index_q  <= '0;
      out_index_q <= '0;
      in_done_q   <= 1'b0;
    end else if (started_q) begin
      assume (in_keep == 2'b11 || (in_keep == 2'b01 && in_last));
      assume (in_next <= 4'd8);
      assume (!(in_last && in_next <= 4'(choice_q)));

      if (push) in_index_q <= in.tlast ? '0 : in_next;
      if (pop) begin
        assert (out.tkeep == 2'b11 || (out.tkeep == 2'b01 && out.tlast));
        assert (out.tdata[7:0] == 8'(out_index_q + 4'(choice_q) == 4'(mark_q)));
        if (out.tkeep[1]) assert (out.tdata[15:8] == 8'(out_index_q + 4'(choice_q) + 1'b1 == 4'(mark_q)));
        assert (out.tlast == ((in_done_q || same_cycle) && out_next + 4'(choice_q) == length));
        out_index_q <= out.tlast ? '0 : out_next;
      end
      if (push && in.tlast) begin
        in_length_q <= in_next;
        in_done_q   <= !(pop && out.tlast && !in_done_q);
      end else if (pop && out.tlast) in_done_q <= 1'b0;
      // A packet ends inside only while the one before it is all out.
      if (push && in.tlast && in_done_q) assert (pop && out.tlast);
      if (in.tvalid && out_ready) assert (in.tready);
      if (REACH) assert (!(pop && out.tlast && out_index_q == 4'd4 && choice_q));
    end
  end
endmodule
