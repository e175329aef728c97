// SPDX-License-Identifier: Apache-2.0

// Flow control of one class of TLPs (Base Specification 2.6.1): says whether the TLP that is offered may be sent, and counts what was sent. Combinational.
module pcie_credits
  import pcie_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  tlp_credit_t granted,
    input  tlp_dwords_t payload,     // of the TLP that is offered, 0 if it has none
    input  logic        send,        // pulse: it is sent
    output logic        may
);
  logic [11:0] headers_q;            // used
  logic [15:0] data_q;
  wire [11:0] headers_left = granted.headers - headers_q;
  wire [15:0] data_left    = granted.data - data_q;
  wire [15:0] need         = 16'(data_credits(payload));
  assign may = (granted.headers_endless || headers_left != '0) && (granted.data_endless || data_left >= need);

  always_ff @(posedge clk) begin
    if (rst) begin
      headers_q <= '0;
      data_q    <= '0;
    end else if (send) begin
      headers_q <= headers_q + 1'b1;
      data_q    <= data_q + need;
    end
  end
endmodule
