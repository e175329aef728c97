// SPDX-License-Identifier: Apache-2.0

// card_hash, which has no reset, in the frame of the tests.
module card_hash_bench
  import packet_pkg::*;
#(
    parameter int unsigned BITS = 32
) (
    input  logic            clk,
    input  logic            rst,
    input  logic [319:0]    key,
    input  logic            v6,
    input  ip_addr_t        src,
    input  ip_addr_t        dst,
    input  logic [31:0]     ports,
    output logic [BITS-1:0] address_hash,
    output logic [BITS-1:0] port_hash
);
  card_hash #(.BITS(BITS)) hash (.clk, .key, .v6, .src, .dst, .ports, .address_hash, .port_hash);
  wire unused_ok = &{1'b0, rst};
endmodule
