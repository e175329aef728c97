// SPDX-License-Identifier: Apache-2.0

// Validity of keys, for one reader: the valid bit and the random part of each slot's key, in block RAM. `live` is set one cycle
// after `key` if the key is valid and all 32 bits match. A write is visible to lookups in later cycles. One lookup a cycle.
module roce_mr_live #(
    parameter int unsigned MRS = 256   // regions; a power of two
) (
    input  logic        clk,
    input  logic        write,
    input  logic [31:0] write_key,     // the new key of its slot
    input  logic        write_valid,
    input  logic [31:0] key,
    output logic        live
);
  localparam int unsigned SLOT_W = $clog2(MRS);

  (* ram_style = "block" *) logic [32-SLOT_W:0] keys[MRS];   // valid, random part

  logic [32-SLOT_W:0]  there_q;
  logic [31-SLOT_W:0]  asked_q;
  always_ff @(posedge clk) begin
    if (write) keys[write_key[SLOT_W-1:0]] <= {write_valid, write_key[31:SLOT_W]};
    there_q <= keys[key[SLOT_W-1:0]];
    asked_q <= key[31:SLOT_W];
  end

  assign live = there_q == {1'b1, asked_q};
endmodule
