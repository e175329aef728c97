// SPDX-License-Identifier: Apache-2.0

// The write channels of AXI4 as a stream of beats that each have one run of enabled bytes. A beat whose strobes have holes comes several
// times: the lowest dword alone, with any byte enables, until the rest is one run. So every beat, alone or joined to the next one, is a
// memory write that PCI Express allows (Base Specification 2.2.5). Latency: AW to the first beat 5 cycles, W 3. One beat a cycle.
module pcie_write_beats
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned FUNCTIONS = 1,
    parameter int unsigned LARGEST = 512,          // bytes of a TLP, a power of two from 128
    parameter int unsigned BURSTS = 16             // addresses that wait for their data, a power of two
) (
    input  logic              clk,
    input  logic              rst,
    input  logic [FUNCTIONS_MAX-1:0][2:0] mps,     // by function, as pcie_config_t
    axi_if.slave              in,                  // AW without its ID, and W
    stream_if.source          out,                 // beat_run_t
    output logic [DATA_W-1:0] out_data,            // with it
    input  logic              out_free,            // `out.ready` of a beat behind which there is one: a short path
    output logic              next_valid,          // the beat behind it is known:
    output logic              next_bottom,         // its `bottom`
    output logic              idle                 // no burst inside
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned DWORDS = DATA_W / 32;
  localparam int unsigned SHIFT = $clog2(BYTES);
  typedef logic [DWORDS-1:0] lanes_t;
  typedef logic [DWORDS-1:0][3:0] enables_t;
  typedef struct packed {
    logic [ADDR_W-1:SHIFT] beat;
    logic [7:0]            len;
  } burst_t;

  // ---- addresses, and beats with theirs ----
  stream_if #(.T(burst_t)) burst_in ();
  stream_if #(.T(burst_t)) burst ();
  logic none_waits;
  assign burst_in.valid = in.awvalid;
  assign burst_in.data  = '{beat: in.awaddr[ADDR_W-1:SHIFT], len: in.awlen};
  assign in.awready     = burst_in.ready;
  stream_fifo #(.T(burst_t), .DEPTH(BURSTS), .BYPASS(1'b0)) bursts (.clk, .rst, .in(burst_in), .out(burst), .empty(none_waits));

  typedef struct packed {
    logic                  last;
    logic [ADDR_W-1:SHIFT] beat;
    enables_t              strb;
    lanes_t                any, prefix, suffix;    // dwords: some byte, those from the first on, those up to the last
    logic [DATA_W-1:0]     data;
  } beat_t;
  beat_t      came_q, raw_q;                       // raw: its runs are told, the lowest first
  logic       came_valid_q, came_free, raw_valid_q, raw_free;
  logic [7:0] beat_q;                              // beats of the burst taken
  wire take = in.wvalid && in.wready;
  wire last = beat_q == burst.data.len;
  assign in.wready   = burst.valid && came_free;
  assign burst.ready = take && last;
  assign came_free   = !came_valid_q || raw_free;

  // ---- what is enabled: known with the beat, or with the rest of it ----
  logic   plain_q;                                 // one run
  lanes_t lowest_q, chosen;                        // its lowest dword
  wire    more = raw_valid_q && !plain_q;
  wire lanes_t rest = raw_q.any & ~lowest_q;
  assign chosen = plain_q ? raw_q.any : lowest_q;

  // More than one bit, by fours: no carry.
  function automatic logic several(logic [15:0] set);
    logic [3:0] some, many;
    for (int unsigned i = 0; i < 4; i++) begin
      some[i]  = |set[4*i+:4];
      many[i] = !(set[4*i+:4] inside {4'b0000, 4'b0001, 4'b0010, 4'b0100, 4'b1000});
    end
    return |many || !(some inside {4'b0000, 4'b0001, 4'b0010, 4'b0100, 4'b1000});
  endfunction
  function automatic logic one_run(lanes_t any, lanes_t prefix, lanes_t suffix);
    lanes_t rises;
    rises = any & ~(any << 1);
    return !several(16'(rises)) && (any & (any >> 1) & ~suffix) == '0 && (any & (any << 1) & ~prefix) == '0;
  endfunction
  function automatic lanes_t lowest_of(lanes_t any);
    return any & ~(any - 1'b1);
  endfunction

  // A TLP ends where the next address is a multiple of its largest size, a power of two: it less one.
  tlp_bytes_t [FUNCTIONS_MAX-1:0] masks_q;
  logic [11:0] behind;
  for (genvar i = 0; i < FUNCTIONS_MAX; i++) begin : g_mask
    always_ff @(posedge clk)
      masks_q[i] <= (size_bytes(mps[i]) > tlp_bytes_t'(LARGEST) ? tlp_bytes_t'(LARGEST) : size_bytes(mps[i])) - 1'b1;
  end
  wire tlp_bytes_t mask = masks_q[function_of({raw_q.beat, SHIFT'(0)}, FUNCTIONS)];
  assign behind = {raw_q.beat[SHIFT+:12-SHIFT] + 1'b1, SHIFT'(0)};

  beat_run_t run, run_q;
  always_comb begin
    run        = '0;
    run.empty  = raw_q.any == '0;
    run.last   = raw_q.last && plain_q;
    run.bottom = raw_q.any[0] && raw_q.prefix[0];
    run.ends   = run.last || !(chosen[DWORDS-1] && raw_q.suffix[DWORDS-1]) || ({1'b0, behind} & mask) == '0;
    run.addr   = {raw_q.beat, SHIFT'(0)};
    for (int unsigned i = 0; i < DWORDS; i++) begin
      if (lowest_q[i]) begin
        run.first    |= 4'(i);
        run.first_be |= raw_q.strb[i];
      end
      if (chosen[i] && (i == DWORDS - 1 || !chosen[(i+1)%DWORDS])) run.final_be |= raw_q.strb[i];
    end
    run.dwords = plain_q ? 5'($countones(raw_q.any)) : 5'd1;
  end

  logic run_valid_q;
  wire step = !run_valid_q || out.ready;           // the next run comes to the output
  assign raw_free    = !raw_valid_q || ((!run_valid_q || out_free) && plain_q);
  assign out.valid   = run_valid_q;
  assign out.data    = run_q;
  assign next_valid  = raw_valid_q;
  assign next_bottom = run.bottom;

  always_ff @(posedge clk) begin
    if (step) begin
      run_q    <= run;
      out_data <= raw_q.data;
    end
    if (came_free) begin
      came_q.data <= in.wdata;
      came_q.strb <= in.wstrb;
      came_q.last <= last;
      came_q.beat <= burst.data.beat + (ADDR_W - SHIFT)'(beat_q);
      for (int unsigned i = 0; i < DWORDS; i++) begin
        came_q.any[i]    <= in.wstrb[4*i+:4] != '0;
        came_q.prefix[i] <= in.wstrb[4*i+:4] inside {4'b1111, 4'b0111, 4'b0011, 4'b0001};
        came_q.suffix[i] <= in.wstrb[4*i+:4] inside {4'b1111, 4'b1110, 4'b1100, 4'b1000};
      end
    end
    if (raw_free) raw_q <= came_q;
    else if (step) raw_q.any <= rest;
    if (raw_free || step) begin
      lowest_q <= more ? lowest_of(rest) : lowest_of(came_q.any);
      plain_q  <= more ? one_run(rest, raw_q.prefix, raw_q.suffix) : one_run(came_q.any, came_q.prefix, came_q.suffix);
    end
    if (rst) begin
      run_valid_q  <= 1'b0;
      raw_valid_q  <= 1'b0;
      came_valid_q <= 1'b0;
      beat_q       <= '0;
    end else begin
      if (step) run_valid_q <= raw_valid_q;
      if (raw_free) raw_valid_q <= came_valid_q;
      if (came_free) came_valid_q <= take;
      if (take) beat_q <= last ? '0 : beat_q + 1'b1;
    end
  end
  assign idle = none_waits && !came_valid_q && !raw_valid_q && !run_valid_q;

  // The other channels are not used here.
  assign in.arready = 1'b0;
  assign in.bid     = '0;
  assign in.bresp   = '0;
  assign in.bvalid  = 1'b0;
  assign in.rdata   = '0;
  assign in.rid     = '0;
  assign in.rresp   = '0;
  assign in.rlast   = 1'b0;
  assign in.rvalid  = 1'b0;

  logic unused_ok;
  assign unused_ok = &{1'b0, in.awaddr[SHIFT-1:0], in.awid, in.wlast, in.bready, in.araddr, in.arid, in.arlen, in.arvalid, in.rready};

  // What is said twice agrees.
  always_ff @(posedge clk) if (!rst && run_valid_q && raw_valid_q) assert (out.ready == out_free);
endmodule
