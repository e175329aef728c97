// SPDX-License-Identifier: Apache-2.0

// The table with wildcards: the first position whose entry matches a key. A LUT RAM for each six bits of the key has a bit for each entry,
// at each value of these bits whether the entry takes it; an entry matches if all of its bits are set. So any mask costs the same.
//
// Positions 4n to 4n + 3 see different quarters of addresses and window, and can be one wide entry, which sees all of them.
//
// One key a cycle, result 5 cycles later. `enable` and `wide` are those for the keys of 2 cycles before. Rows of entries that are not
// enabled can be written at any time; rows of enabled ones only with what they have.
module classify_ternary
  import classify_pkg::*;
(
    input  logic                 clk,
    input  logic                 rst,
    input  logic                 valid,
    input  key_t                 key,
    input  logic [POSITIONS-1:0] enable,       // of a wide entry that of its first position
    input  logic [GROUPS-1:0]    wide,
    input  logic                 write,        // a row of one chunk, for all positions of a unit
    input  logic [$clog2(UNITS)-1:0]  write_unit,
    input  logic [$clog2(CHUNKS)-1:0] write_chunk,
    input  logic [CHUNK_W-1:0]   write_at,
    input  logic [UNIT-1:0]      write_bits,
    output logic                 hit,          // 5 cycles after `valid`
    output position_t            position      // 0 without a hit
);
  localparam int unsigned PART = 6;            // chunks that are ANDed in the cycle in which they are read
  localparam int unsigned PARTS = (COMMON_CHUNKS + PART - 1) / PART + (QUARTER_CHUNKS + PART - 1) / PART;
  localparam int unsigned COMMON_PARTS = (COMMON_CHUNKS + PART - 1) / PART;
  localparam int unsigned UNIT_GROUPS = UNIT / QUARTERS;
  localparam int unsigned BLOCK = 8;           // positions among which the first one is found in one cycle
  localparam int unsigned BLOCKS = POSITIONS / BLOCK;

  // ---- look up ----
  logic [CHUNKS-1:0][POSITIONS-1:0] found;

  for (genvar c = 0; c < COMMON_CHUNKS; c++) begin : g_common
    (* ram_style = "distributed" *) logic [POSITIONS-1:0] rows[CHUNK_ROWS];
    wire [CHUNK_W-1:0] at = key.common[c*CHUNK_W+:CHUNK_W];
    wire here = write && write_chunk == ($bits(write_chunk))'(QUARTER_CHUNKS + c);
    for (genvar u = 0; u < UNITS; u++) begin : g_unit
      always_ff @(posedge clk) if (here && write_unit == ($bits(write_unit))'(u)) rows[write_at][u*UNIT+:UNIT] <= write_bits;
    end
    assign found[QUARTER_CHUNKS+c] = rows[at];
  end

  for (genvar q = 0; q < QUARTERS; q++) begin : g_quarter
    quarter_t             quarter;
    logic [UNIT_GROUPS-1:0] bits;
    assign quarter = '{address: key.addresses[QUARTERS-1-q], bytes: key.window[QUARTERS-1-q]};
    for (genvar g = 0; g < UNIT_GROUPS; g++) begin : g_bit
      assign bits[g] = write_bits[g*QUARTERS+q];
    end
    for (genvar c = 0; c < QUARTER_CHUNKS; c++) begin : g_chunk
      (* ram_style = "distributed" *) logic [GROUPS-1:0] rows[CHUNK_ROWS];
      wire [CHUNK_W-1:0] at = quarter[c*CHUNK_W+:CHUNK_W];
      wire [GROUPS-1:0] row = rows[at];
      wire here = write && write_chunk == ($bits(write_chunk))'(c);
      for (genvar u = 0; u < UNITS; u++) begin : g_unit
        always_ff @(posedge clk)
          if (here && write_unit == ($bits(write_unit))'(u)) rows[write_at][u*UNIT_GROUPS+:UNIT_GROUPS] <= bits;
      end
      for (genvar g = 0; g < GROUPS; g++) begin : g_position
        assign found[c][g*QUARTERS+q] = row[g];
      end
    end
  end

  logic [PARTS-1:0][POSITIONS-1:0] parts, parts_q;
  always_comb begin
    parts = '1;
    for (int unsigned c = 0; c < QUARTER_CHUNKS; c++) parts[COMMON_PARTS+c/PART] &= found[c];
    for (int unsigned c = 0; c < COMMON_CHUNKS; c++) parts[c/PART] &= found[QUARTER_CHUNKS+c];
  end

  // ---- all chunks; then wide entries; then the first one ----
  logic [POSITIONS-1:0] all, match_q, counts;
  always_comb begin
    all = '1;
    for (int unsigned i = 0; i < PARTS; i++) all &= parts_q[i];
  end
  always_comb begin
    for (int unsigned g = 0; g < GROUPS; g++)
      counts[g*QUARTERS+:QUARTERS] = wide[g] ? QUARTERS'(&match_q[g*QUARTERS+:QUARTERS]) & enable[g*QUARTERS+:QUARTERS]
                                             : match_q[g*QUARTERS+:QUARTERS] & enable[g*QUARTERS+:QUARTERS];
  end

  logic [POSITIONS-1:0] counts_q;
  logic [BLOCKS-1:0]    any_q;
  logic [BLOCKS-1:0][$clog2(BLOCK)-1:0] first, first_q;
  always_comb begin
    first = '0;
    for (int unsigned b = 0; b < BLOCKS; b++)
      for (int unsigned i = BLOCK; i > 0; i--) if (counts_q[b*BLOCK+i-1]) first[b] = ($clog2(BLOCK))'(i - 1);
  end
  position_t lowest;
  always_comb begin
    lowest = '0;
    for (int unsigned b = BLOCKS; b > 0; b--) if (any_q[b-1]) lowest = {($clog2(BLOCKS))'(b - 1), first_q[b-1]};
  end

  logic [3:0] valid_q;
  always_ff @(posedge clk) begin
    valid_q <= rst ? '0 : {valid_q[2:0], valid};
    if (valid) parts_q <= parts;
    if (valid_q[0]) match_q <= all;
    if (valid_q[1]) counts_q <= counts;
    if (valid_q[2]) begin
      for (int unsigned b = 0; b < BLOCKS; b++) any_q[b] <= counts_q[b*BLOCK+:BLOCK] != '0;
      first_q <= first;
    end
    if (valid_q[3]) begin
      hit      <= any_q != '0;
      position <= lowest;
    end
  end
endmodule
