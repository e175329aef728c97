// SPDX-License-Identifier: Apache-2.0

// The Toeplitz hash of receive-side scaling (virtio 1.2, 5.1.6.4.3), over the addresses and over the ports of a packet: the hash over both is the
// XOR of the two, as each bit of the packet that is 1 adds the 32 bits of the key that begin at its place. Only the lowest BITS of them are computed.
//
// One packet a cycle, latency 3 cycles. `key` is not registered: it changes seldom.
module card_hash
  import packet_pkg::*;
  import virtio_pkg::*;
#(
    parameter int unsigned BITS = 32
) (
    input  logic                        clk,
    input  logic [HASH_KEY_BYTES*8-1:0] key,          // its first byte is the highest
    input  logic                        v6,
    input  ip_addr_t                    src,          // an IPv4 address in its lowest bits
    input  ip_addr_t                    dst,
    input  logic [31:0]                 ports,        // source, destination
    output logic [BITS-1:0]             address_hash,
    output logic [BITS-1:0]             port_hash
);
  localparam int unsigned ADDRESSES = 2 * $bits(ip_addr_t);
  localparam int unsigned V4_ADDRESSES = 2 * $bits(ipv4_addr_t);
  localparam int unsigned GROUP = 32;                 // bits of the packet that a stage adds up
  localparam int unsigned GROUPS = ADDRESSES / GROUP;

  // The bits of the key that the bit at `place` of what is hashed adds.
  function automatic logic [BITS-1:0] window(logic [HASH_KEY_BYTES*8-1:0] whole, int unsigned place);
    return whole[HASH_KEY_BYTES*8-32-place+:BITS];
  endfunction

  logic [ADDRESSES-1:0]         addresses_q;          // the first bit is the highest
  logic [31:0]                  ports_q;
  logic                         v6_q;
  logic [GROUPS-1:0][BITS-1:0]  sums_q, sums;
  logic [BITS-1:0]              port_sum_q, port_sum, sum;

  always_comb begin
    sums = '0;
    for (int unsigned g = 0; g < GROUPS; g++)
      for (int unsigned i = g * GROUP; i < (g + 1) * GROUP; i++)
        if (addresses_q[ADDRESSES-1-i]) sums[g] ^= window(key, i);
    port_sum = '0;
    for (int unsigned i = 0; i < 32; i++)
      if (ports_q[31-i]) port_sum ^= v6_q ? window(key, ADDRESSES + i) : window(key, V4_ADDRESSES + i);
    sum = '0;
    for (int unsigned g = 0; g < GROUPS; g++) sum ^= sums_q[g];
  end

  always_ff @(posedge clk) begin
    addresses_q  <= v6 ? {src, dst} : {ipv4_of(src), ipv4_of(dst), (ADDRESSES - V4_ADDRESSES)'(0)};
    ports_q      <= ports;
    v6_q         <= v6;
    sums_q       <= sums;
    port_sum_q   <= port_sum;
    address_hash <= sum;
    port_hash    <= port_sum_q;
  end
endmodule
