// SPDX-License-Identifier: Apache-2.0

// pcie_credits: no TLP is sent for which there are no credits, whatever two senders offer, and when; and with credits enough one that is
// offered may go within two cycles in which none is sent.
module pcie_credits_formal
  import pcie_pkg::*;
#(
    parameter bit REACH = 1'b0
) (
    input logic       clk,
    input logic       rst,
    input logic [1:0] offer,
    input logic [3:0] first,        // payloads in dwords
    input logic [3:0] second,
    input logic [1:0] choose,       // which of those that may
    input logic       grant_header,
    input logic [1:0] grant_data
);
  // Granted and not used.
  logic [2:0] headers_q;
  logic [3:0] data_q;
  logic [1:0] offered_q, send, may;
  logic [1:0][3:0] length_q;
  tlp_dwords_t [1:0] payload;
  tlp_credit_t granted;
  logic [11:0] granted_headers_q;
  logic [15:0] granted_data_q;
  assign payload = {tlp_dwords_t'(length_q[1]), tlp_dwords_t'(length_q[0])};
  assign granted = '{headers_endless: 1'b0, data_endless: 1'b0, headers: granted_headers_q, data: granted_data_q};
  assign send = choose[0] && may[0] && offered_q[0] ? 2'b01 : choose[1] && may[1] && offered_q[1] ? 2'b10 : 2'b00;
  pcie_credits #(.N(2), .MOST(64)) dut (.clk, .rst, .granted, .offered(offered_q), .payload, .send, .may);

  wire header = grant_header && headers_q < 3'd6;
  wire [1:0] data = data_q < 4'd11 ? grant_data : 2'd0;
  wire [3:0] used = 4'(send == '0 ? 9'd0 : data_credits(payload[send[1]]));
  logic started_q = 1'b0;
  logic [1:0] still_q;              // cycles in which nothing was sent or granted, and the first was offered with credits for it
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    for (int unsigned i = 0; i < 2; i++)
      if (!offered_q[i] || send[i]) begin
        offered_q[i] <= offer[i];
        length_q[i]  <= i == 0 ? first : second;
      end
    headers_q         <= headers_q + 3'(header) - 3'(|send);
    data_q            <= data_q + 4'(data) - used;
    granted_headers_q <= granted_headers_q + 12'(header);
    granted_data_q    <= granted_data_q + 16'(data);
    still_q           <= {still_q[0], send == '0 && offered_q[0] && headers_q != '0 && data_q >= 4'(data_credits(payload[0]))};
    if (rst) begin
      headers_q         <= '0;
      data_q            <= '0;
      granted_headers_q <= '0;
      granted_data_q    <= '0;
      offered_q         <= '0;
      still_q           <= '0;
    end
    if (!started_q) assume (rst);
    else if (!rst) begin
      if (|send) assert (headers_q != '0 && data_q >= used);
      if (still_q == '1) assert (may[0]);
      if (REACH) assert (!(send[1] && headers_q == 3'd1 && data_q == used && used == 4'd4));
    end
  end
endmodule
