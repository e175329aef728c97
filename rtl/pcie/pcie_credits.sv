// SPDX-License-Identifier: Apache-2.0

// Flow control of one class of TLPs (Base Specification 2.6.1): says which of the TLPs that are offered may be sent, and counts what was
// sent. At full rate while there are credits for two of MOST bytes; with fewer, each TLP is compared by itself, which takes a cycle. `may`
// is that of registers.
module pcie_credits
  import pcie_pkg::*;
#(
    parameter int unsigned N = 1,               // who sends
    parameter int unsigned MOST = 512           // bytes of a payload
) (
    input  logic                clk,
    input  logic                rst,
    input  tlp_credit_t         granted,
    input  logic [N-1:0]        offered,        // a TLP, until it is sent or taken back
    input  tlp_dwords_t [N-1:0] payload,        // with this payload, 0 if it has none
    input  logic [N-1:0]        send,           // pulse: it is sent
    output logic [N-1:0]        may
);
  localparam logic [15:0] TWO = 16'(2 * MOST / 16);

  logic [11:0]  headers_q;                      // used
  logic [15:0]  data_q, need;
  logic         plenty_q, sent_q;               // sent: in the cycle before; what was compared then is of before that
  logic [N-1:0] enough_q;
  wire [11:0] headers_left = granted.headers - headers_q;
  wire [15:0] data_left    = granted.data - data_q;
  assign may = {N{plenty_q}} | (enough_q & {N{!sent_q}});

  always_comb begin
    need = '0;
    for (int unsigned i = 0; i < N; i++) if (send[i]) need |= 16'(data_credits(payload[i]));
  end
  always_ff @(posedge clk) begin
    plenty_q <= (granted.headers_endless || headers_left >= 12'd2) && (granted.data_endless || data_left >= TWO);
    for (int unsigned i = 0; i < N; i++)
      enough_q[i] <= offered[i] && (granted.headers_endless || headers_left != '0)
                     && (granted.data_endless || data_left >= 16'(data_credits(payload[i])));
    sent_q <= |send;
    if (rst) begin
      headers_q <= '0;
      data_q    <= '0;
      plenty_q  <= 1'b0;
      enough_q  <= '0;
    end else if (|send) begin
      headers_q <= headers_q + 1'b1;
      data_q    <= data_q + need;
    end
  end

  always_ff @(posedge clk) if (!rst) assert ($onehot0(send));
endmodule
