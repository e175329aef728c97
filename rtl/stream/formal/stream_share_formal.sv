// SPDX-License-Identifier: Apache-2.0

// stream_share with two clients and a server that answers each command whenever it likes: the answer to any command, one of the
// solver's choice, goes to the client that gave it, with as many before it as were under way, and to nobody else.
module stream_share_formal #(
    parameter bit REACH = 1'b0
) (
    input logic       clk,
    input logic       rst,
    input logic [1:0] command_valid,
    input logic [1:0] answer_ready,
    input logic       server_ready,
    input logic       server_valid,
    input logic       server_data,
    input logic       choose           // the command that goes to the server now
);
  stream_if #(.T(logic)) command[2] ();      // which client it is of
  stream_if #(.T(logic)) answer[2] ();
  stream_if #(.T(logic)) to_server ();
  stream_if #(.T(logic)) from_server ();
  logic [1:0] answer_valid, answer_data;

  stream_share #(.N(2), .DEPTH(4)) dut (.clk, .rst, .command, .answer, .to_server, .from_server);

  for (genvar i = 0; i < 2; i++) begin : g_client
    assign command[i].valid = command_valid[i];
    assign command[i].data  = 1'(i);
    assign answer[i].ready  = answer_ready[i];
    assign answer_valid[i]  = answer[i].valid;
    assign answer_data[i]   = answer[i].data;
    polite_source #(.ASSUME(1'b1)) client (.clk, .rst, .valid(command[i].valid), .ready(command[i].ready), .data(1'b0));
  end
  assign to_server.ready   = server_ready;
  assign from_server.valid = server_valid;
  assign from_server.data  = server_data;
  polite_source #(.ASSUME(1'b1)) server (
      .clk, .rst, .valid(from_server.valid), .ready(from_server.ready), .data(from_server.data)
  );
  polite_source shared (.clk, .rst, .valid(to_server.valid), .ready(to_server.ready), .data(to_server.data));

  wire push = to_server.valid && to_server.ready;
  wire pop = from_server.valid && from_server.ready;

  logic       started_q = 1'b0;
  logic [2:0] inside_q, ahead_q;     // commands under way; those before the chosen one
  logic       chosen_q, gone_q, client_q;
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    if (!started_q) assume (rst);
    if (rst) begin
      inside_q <= '0;
      chosen_q <= 1'b0;
      gone_q   <= 1'b0;
    end else if (started_q) begin
      assume (!server_valid || inside_q != '0);
      assert (inside_q <= 3'd5);
      assert (from_server.valid == |answer_valid && answer_valid != 2'b11);
      if (from_server.valid) assert (answer_data == {2{from_server.data}});
      if (from_server.valid && chosen_q && !gone_q && ahead_q == '0) assert (answer_valid == 2'd1 << client_q);

      inside_q <= inside_q + 3'(push) - 3'(pop);
      if (push && choose && !chosen_q) begin
        chosen_q <= 1'b1;
        client_q <= to_server.data;
        ahead_q  <= inside_q - 3'(pop);
      end else if (pop && chosen_q) begin
        if (ahead_q == '0) gone_q <= 1'b1;
        else ahead_q <= ahead_q - 1'b1;
      end
      if (REACH) assert (!(inside_q == 3'd4 && chosen_q && ahead_q == 3'd2 && client_q));
    end
  end
endmodule
