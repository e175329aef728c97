// SPDX-License-Identifier: Apache-2.0

// The rows at which a flow can be, one in each bank: simple tabulation hashing. For each six bits of a key a LUT RAM has 64 random numbers; the
// XOR of those that a key selects is its hash. Who does not know the numbers cannot choose flows that crowd a row (Patrascu and Thorup, "The
// power of simple tabulation hashing", 2012).
//
// The numbers are made from the seed, one a cycle, chunk by chunk and row by row: xorshift64 (Marsaglia, 2003) with shifts 13, 7 and 17, of
// whose state the two halves are added; the number is the upper bits of the sum. A seed of 0 makes zeros.
//
// One key a cycle, rows 2 cycles later. From `start` on the hash is undefined until it is not busy any more, CYCLES cycles later.
module classify_flow_hash
  import classify_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  flow_key_t   key,
    output flow_row_t [FLOW_BANKS-1:0] rows,
    input  logic        start,                       // pulse: with this seed
    input  logic [63:0] seed,
    output logic        busy,
    output logic [11:0] count                        // while busy: cycles since it began
);
  localparam int unsigned CHUNKS_OF_KEY = ($bits(flow_key_t) + CHUNK_W - 1) / CHUNK_W;
  localparam int unsigned CYCLES = CHUNKS_OF_KEY * CHUNK_ROWS + 1;
  localparam int unsigned HASH_W = $bits(rows);
  localparam int unsigned PART = 6;                  // chunks that are added in the cycle in which they are read
  localparam int unsigned PARTS = (CHUNKS_OF_KEY + PART - 1) / PART;
  typedef logic [HASH_W-1:0] hash_t;

  if (CYCLES >= 2 ** $bits(count)) begin : g_check
    $fatal(1, "classify_flow_hash: the counter is too short for its rows");
  end

  function automatic logic [63:0] xorshift(logic [63:0] state);
    logic [63:0] x;
    x = state ^ (state << 13);
    x = x ^ (x >> 7);
    return x ^ (x << 17);
  endfunction

  // ---- the numbers: the state, a cycle later the number ----
  logic [63:0] state_q;
  wire  [31:0] sum = state_q[63:32] + state_q[31:0];
  hash_t       number_q;
  logic [11:0] at_q;
  logic        write_q;
  always_ff @(posedge clk) begin
    number_q <= sum[31-:HASH_W];
    at_q     <= count;
    write_q  <= busy && !rst;
    state_q  <= start ? xorshift(seed) : xorshift(state_q);
    count    <= start ? '0 : count + 1'b1;
    if (start) busy <= 1'b1;
    else if (count == ($bits(count))'(CYCLES - 1)) busy <= 1'b0;
    if (rst) busy <= 1'b0;
  end

  // ---- the hash ----
  wire [CHUNKS_OF_KEY*CHUNK_W-1:0] bits = (CHUNKS_OF_KEY * CHUNK_W)'(key);
  hash_t [CHUNKS_OF_KEY-1:0] found;
  for (genvar c = 0; c < CHUNKS_OF_KEY; c++) begin : g_chunk
    (* ram_style = "distributed" *) hash_t numbers[CHUNK_ROWS];
    always_ff @(posedge clk)
      if (write_q && at_q[11:CHUNK_W] == ($bits(count) - CHUNK_W)'(c)) numbers[at_q[CHUNK_W-1:0]] <= number_q;
    assign found[c] = numbers[bits[c*CHUNK_W+:CHUNK_W]];
  end

  hash_t [PARTS-1:0] parts, parts_q;
  hash_t             whole;
  always_comb begin
    parts = '0;
    for (int unsigned c = 0; c < CHUNKS_OF_KEY; c++) parts[c/PART] ^= found[c];
    whole = '0;
    for (int unsigned p = 0; p < PARTS; p++) whole ^= parts_q[p];
  end
  always_ff @(posedge clk) begin
    parts_q <= parts;
    rows    <= whole;
  end
endmodule
