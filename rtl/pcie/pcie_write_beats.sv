// SPDX-License-Identifier: Apache-2.0

// The write channels of AXI4 as a stream of beats that each have one run of enabled bytes. A beat whose strobes have holes comes several
// times: the lowest dword alone, with any byte enables, until the rest is one run. So every beat, alone or joined to the next one, is a
// memory write that PCI Express allows (Base Specification 2.2.5). Latency: AW to the first beat 3 cycles, W 2. One beat a cycle.
module pcie_write_beats
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned LARGEST = 512,          // bytes of a TLP, a power of two from 128
    parameter int unsigned BURSTS = 16             // addresses that wait for their data, a power of two
) (
    input  logic              clk,
    input  logic              rst,
    input  logic [2:0]        mps,                 // as pcie_config_t
    axi_if.slave              in,                  // AW without its ID, and W
    stream_if.source          out,                 // beat_run_t
    output logic [DATA_W-1:0] out_data,            // with it
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
  stream_fifo #(.T(burst_t), .DEPTH(BURSTS)) bursts (.clk, .rst, .in(burst_in), .out(burst), .empty(none_waits));

  logic                  raw_valid_q, raw_last_q, raw_free;
  logic [DATA_W-1:0]     raw_data_q;
  enables_t              raw_strb_q;
  logic [ADDR_W-1:SHIFT] raw_beat_q;
  logic [7:0]            beat_q;                   // beats of the burst taken
  wire take = in.wvalid && in.wready;
  wire last = beat_q == burst.data.len;
  assign in.wready   = burst.valid && raw_free;
  assign burst.ready = take && last;

  // ---- what is enabled ----
  lanes_t any_q, prefix_q, suffix_q;               // dwords: some byte, those from the first on, those up to the last
  lanes_t lowest, chosen, earlier;
  logic   plain, gap;
  always_comb begin
    earlier = '0;                                  // a dword is enabled before it
    gap     = 1'b0;                                // and one after a gap
    for (int unsigned i = 0; i < DWORDS; i++) begin
      earlier[i] = |(any_q & ((lanes_t'(1) << i) - 1'b1));
      if (i > 0 && any_q[i] && earlier[i] && !any_q[i-1]) gap = 1'b1;
    end
    lowest = any_q & ~earlier;
    plain  = !gap && ((any_q & (any_q >> 1)) & ~suffix_q) == '0 && ((any_q & (any_q << 1)) & ~prefix_q) == '0;
    chosen = plain ? any_q : lowest;
  end

  // A TLP ends where the next address is a multiple of its largest size.
  tlp_bytes_t size;
  logic [11:0] behind;
  assign size   = size_bytes(mps) > tlp_bytes_t'(LARGEST) ? tlp_bytes_t'(LARGEST) : size_bytes(mps);
  assign behind = {raw_beat_q[11:SHIFT] + 1'b1, SHIFT'(0)};

  beat_run_t run, run_q;
  always_comb begin
    run        = '0;
    run.empty  = any_q == '0;
    run.last   = raw_last_q && plain;
    run.bottom = chosen[0] && prefix_q[0];
    run.ends   = run.last || !(chosen[DWORDS-1] && suffix_q[DWORDS-1]) || ({1'b0, behind} & (size - 1'b1)) == '0;
    run.addr   = {raw_beat_q, SHIFT'(0)};
    for (int unsigned i = 0; i < DWORDS; i++) begin
      if (lowest[i]) begin
        run.first    |= 4'(i);
        run.first_be |= raw_strb_q[i];
      end
      if (chosen[i] && (i == DWORDS - 1 || !chosen[(i+1)%DWORDS])) run.final_be |= raw_strb_q[i];
    end
    run.dwords = plain ? 5'($countones(any_q)) : 5'd1;
  end

  logic run_valid_q;
  wire step = !run_valid_q || out.ready;           // the next run comes to the output
  assign raw_free    = !raw_valid_q || (step && plain);
  assign out.valid   = run_valid_q;
  assign out.data    = run_q;
  assign next_valid  = raw_valid_q;
  assign next_bottom = run.bottom;

  always_ff @(posedge clk) begin
    if (step) begin
      run_q    <= run;
      out_data <= raw_data_q;
    end
    if (raw_free) begin
      raw_data_q <= in.wdata;
      raw_strb_q <= in.wstrb;
      raw_last_q <= last;
      raw_beat_q <= burst.data.beat + (ADDR_W - SHIFT)'(beat_q);
      for (int unsigned i = 0; i < DWORDS; i++) begin
        any_q[i]    <= in.wstrb[4*i+:4] != '0;
        prefix_q[i] <= in.wstrb[4*i+:4] inside {4'b1111, 4'b0111, 4'b0011, 4'b0001};
        suffix_q[i] <= in.wstrb[4*i+:4] inside {4'b1111, 4'b1110, 4'b1100, 4'b1000};
      end
    end else if (step) any_q <= any_q & ~lowest;   // the rest of it
    if (rst) begin
      run_valid_q <= 1'b0;
      raw_valid_q <= 1'b0;
      beat_q      <= '0;
    end else begin
      if (step) run_valid_q <= raw_valid_q;
      if (raw_free) raw_valid_q <= take;
      if (take) beat_q <= last ? '0 : beat_q + 1'b1;
    end
  end
  assign idle = none_waits && !raw_valid_q && !run_valid_q;

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
endmodule
