// SPDX-License-Identifier: Apache-2.0

// PSN arithmetic, for all values: "before" is an order within half of the space, and agrees between 24 and 31 bits.
module psn_formal
  import roce_wire_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter bit REACH = 1'b0
) (
    input logic  clk,
    input xpsn_t a,
    input xpsn_t b
);
  wire psn_t  near = b[23:0] - a[23:0];   // how far b is behind a, modulo 2^24
  wire xpsn_t far = b - a;
  wire        close = far[30:23] == '0 || far[30:23] == '1;
  wire        a_first = psn_before(a[23:0], b[23:0]);
  wire        b_first = psn_before(b[23:0], a[23:0]);

  always_ff @(posedge clk) begin
    assert (a_first == (near > 24'h80_0000 ? 1'b0 : near != 0));
    if (near != 24'h80_0000) assert (!(a_first && b_first));
    if (near != 0) assert (a_first || b_first);
    assert (xpsn_before(a, b) == (far > 31'h4000_0000 ? 1'b0 : far != 0));
    // What is outstanding is close together: the wire's 24 bits tell the same as the 31 inside.
    if (close && near != 24'h80_0000) assert (xpsn_before(a, b) == a_first);
    if (REACH) assert (!(close && a_first && a[23:0] > b[23:0]));
  end
endmodule
