// SPDX-License-Identifier: Apache-2.0

// The tables of regions and of grants (block RAM), written by rpc_setup alone, read by READERS units, round robin. Latency 2 cycles from an
// accepted read to `view`, one read a cycle; `view` belongs to the reader whose `view_valid` is high, which must accept it in that cycle. A
// context is never read while it is written (ensured by rpc_connections).
//
// Regions of a connection share its MAX_REGIONS entries. Those of context c begin at c with its bits reversed, in the upper bits of the
// index: far enough apart for any number of contexts, without knowing how many there are.
module rpc_regions
  import memory_pkg::*;
  import rpc_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned CONTEXTS = 1,
    parameter int unsigned MAX_REGIONS = 32,
    parameter bit LONG_SET_UP = 1'b0,     // there are regions of 2^32 bytes and more
    parameter int unsigned READERS = 3
) (
    input  logic               clk,
    input  logic               rst,
    input  logic               region_write,
    input  logic               grant_write,
    input  region_key_t        write_key,   // for the grant: its context
    input  region_t            region,
    input  grant_t             grant,
    stream_if.sink             read[READERS],  // region_key_t
    output logic [READERS-1:0] view_valid,
    output region_view_t       view
);
  localparam int unsigned SLOT_W = $clog2(QPS);
  localparam int unsigned INDEX_W = $clog2(MAX_REGIONS);
  typedef logic [$clog2(QPS*CONTEXTS)-1:0] grant_addr_t;
  typedef logic [SLOT_W+INDEX_W-1:0] region_addr_t;

  function automatic region_addr_t region_addr(region_key_t key);
    logic [INDEX_W-1:0] index;
    index = INDEX_W'(key.index);
    for (int unsigned i = 0; i < NUMBER_W; i++) if (2 ** i < CONTEXTS) index[INDEX_W-1-i] |= key.of.number[i];
    return {SLOT_W'(key.of.slot), index};
  endfunction

  function automatic grant_addr_t grant_addr(region_key_t key);
    return grant_addr_t'(context_index(key.of, CONTEXTS));
  endfunction

  localparam int unsigned REGION_W = $bits(region_t) - SIZE_W + size_w(LONG_SET_UP);
  (* ram_style = "block" *) logic [REGION_W-1:0] regions[QPS*2**INDEX_W];
  (* ram_style = "block" *) logic [$bits(grant_t)-1:0] grants[QPS*CONTEXTS];

  // ---- one reader a cycle, round robin ----
  logic [READERS-1:0] asked, chosen, asker_q;
  region_key_t        keys[READERS];
  for (genvar i = 0; i < READERS; i++) begin : g_reader
    assign asked[i]      = read[i].valid;
    assign keys[i]       = read[i].data;
    assign read[i].ready = chosen[i];
  end

  round_robin #(.N(READERS)) turns (.clk, .rst, .request(asked), .take(1'b1), .grant(chosen));

  region_key_t key;
  always_comb begin
    key = '0;
    for (int unsigned i = 0; i < READERS; i++) if (chosen[i]) key |= keys[i];
  end

  region_t region_q;
  grant_t  grant_q;
  always_ff @(posedge clk) if (region_write) regions[region_addr(write_key)] <= REGION_W'(region);
  always_ff @(posedge clk) if (|chosen) region_q <= region_t'(regions[region_addr(key)]);
  always_ff @(posedge clk) if (grant_write) grants[grant_addr(write_key)] <= grant;
  always_ff @(posedge clk) if (|chosen) grant_q <= grants[grant_addr(key)];

  always_ff @(posedge clk) begin
    view <= '{grant: grant_q, region: region_q, addr: page_addr(grant_q.base + region_q.offset)};
    if (rst) begin
      asker_q    <= '0;
      view_valid <= '0;
    end else begin
      asker_q    <= chosen;
      view_valid <= asker_q;
    end
  end
endmodule
