// SPDX-License-Identifier: Apache-2.0

// stream_arbiter with two inputs: each input's order kept, packets whole, full throughput, and a waiting input is served after at
// most one packet of the other and what is in the output register.
module stream_arbiter_formal #(
    parameter bit REACH = 1'b0
) (
    input logic       clk,
    input logic       rst,
    input logic [1:0] in_valid,
    input logic [1:0] in_colour,
    input logic [1:0] in_last,
    input logic       out_ready
);
  typedef struct packed {
    logic source;
    logic last;
    logic colour;
  } value_t;

  stream_if #(.T(value_t)) in[2] ();
  stream_if #(.T(value_t)) out ();
  logic [1:0] ready, taken;
  value_t got;
  assign got = out.data;
  assign out.ready = out_ready;
  wire pop = out.valid && out.ready;

  stream_arbiter #(.T(value_t), .N(2)) dut (.clk, .rst, .in, .last(in_last), .out);

  polite_source #(.WIDTH(3)) sink (.clk, .rst, .valid(out.valid), .ready(out.ready), .data(out.data));

  for (genvar i = 0; i < 2; i++) begin : g_in
    assign in[i].valid = in_valid[i];
    assign in[i].data  = '{source: i == 1, last: in_last[i], colour: in_colour[i]};
    assign ready[i]    = in[i].ready;
    assign taken[i]    = in_valid[i] && ready[i];
    polite_source #(.ASSUME(1'b1), .WIDTH(2)) source (
        .clk, .rst, .valid(in_valid[i]), .ready(ready[i]), .data({in_last[i], in_colour[i]})
    );
    one_in_line #(.CAPACITY(1)) line (
        .clk, .rst, .push(taken[i]), .in_colour(in_colour[i]), .pop(pop && got.source == (i == 1)), .out_colour(got.colour)
    );
  end

  logic started_q = 1'b0;
  logic flowing_q, inside_packet_q, packet_source_q;
  logic [1:0] overtaken_q[2];  // packets of the other that went by while this input waited
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    flowing_q <= in_valid == 2'b11 && out.ready && !rst;
    if (!started_q) assume (rst);
    if (rst) begin
      inside_packet_q <= 1'b0;
      for (int unsigned i = 0; i < 2; i++) overtaken_q[i] <= '0;
    end else if (started_q) begin
      // Only what is offered moves, one at a time.
      assert (taken != 2'b11);
      if (in_valid == 2'b11 && out.ready) assert (|taken);
      if (flowing_q && in_valid == 2'b11 && out.ready) assert (out.valid);
      if (pop) begin
        if (inside_packet_q) assert (got.source == packet_source_q);
        inside_packet_q <= !got.last;
        packet_source_q <= got.source;
      end
      for (int unsigned i = 0; i < 2; i++) begin
        if (!in_valid[i] || taken[i]) overtaken_q[i] <= '0;
        else if (taken[1-i] && in_last[1-i]) overtaken_q[i] <= overtaken_q[i] + 1'b1;
        assert (overtaken_q[i] <= 2'd1);
      end
      if (REACH) assert (!(pop && got.colour && overtaken_q[0] == 2'd1 && got.source));
    end
  end
endmodule
