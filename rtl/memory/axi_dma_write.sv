// SPDX-License-Identifier: Apache-2.0

// Writes packets to memory: for each transfer on `cmd`, from any byte address, one packet from `data` of exactly its length
// (none for length 0). One `done` for each transfer, in order, after its last write response.
//
// Throughput: one beat a cycle, also across transfers of one beat each. An unaligned transfer that touches one more beat of memory than its
// packet has takes one more cycle. Latency: 2 cycles from `cmd` to AW, 4 to W, 1 from `data` to W. Addresses run up to LEAD bursts ahead of
// data, and the rule of axi_mux requires data to be available before its address is issued: issue a command only when its data is
// available. Up to OUTSTANDING bursts are outstanding, counted until their transfer's `done` is taken; then no further address is issued.
// While memory stalls, `data` stalls. Write responses are always accepted: a stalled `done` does not delay other masters. tuser of `data`
// is ignored: bad packets must be discarded before.
//
// With IN_PLACE nothing is shifted: `data` has a beat for each beat of memory that the transfer touches, each byte in its lane; what the first
// beat has below the address and the last one behind the end is not written.
module axi_dma_write
  import memory_pkg::*;
#(
    parameter int unsigned DATA_W      = 512,
    parameter int unsigned ID_W        = 4,
    parameter int unsigned BURST_BYTES = 4096,
    parameter int unsigned OUTSTANDING = 32,     // bursts; power of two
    parameter int unsigned ALIGN       = 1,      // 1 or 4: what addresses are a multiple of
    parameter bit          IN_PLACE    = 1'b0
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.sink   cmd,     // dma_cmd_t
    axis_if.sink     data,
    axi_if.master    mem,     // write channels; the read channels are unused. All with ID 0
    stream_if.source done,    // dma_done_t
    output logic     idle     // no transfer inside
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);
  localparam int unsigned SLOT_W = $clog2(OUTSTANDING);

  typedef logic [LANE_W-1:0] lane_t;
  typedef logic [BYTES-1:0]  strb_t;

  if ((OUTSTANDING & (OUTSTANDING - 1)) != 0 || OUTSTANDING < 2) begin : g_bad_outstanding
    $fatal(1, "OUTSTANDING must be a power of two, at least 2");
  end

  // ---- bursts: the address is issued, the rest waits for its data ----
  localparam int unsigned LEAD = 4;

  typedef struct packed {
    dma_burst_t burst;
    logic       single;   // of one beat, or none
  } ahead_t;

  stream_if #(.T(dma_burst_t)) cut ();
  stream_if #(.T(dma_burst_t)) kept ();      // those with a reserved outcome entry
  stream_if #(.T(dma_burst_t)) cut_fork[2] ();
  stream_if #(.T(ahead_t)) ahead_in ();
  stream_if #(.T(ahead_t)) ahead_out ();
  logic walker_idle, none_ahead;
  logic [SLOT_W:0] kept_q;                   // bursts and empty transfers until their outcome is taken
  dma_burst_walker #(.DATA_W(DATA_W), .BURST_BYTES(BURST_BYTES)) walker (.clk, .rst, .cmd, .burst(cut), .idle(walker_idle));
  stream_fork #(.T(dma_burst_t), .N(2)) both (.clk, .rst, .in(kept), .out(cut_fork));
  stream_fifo #(.T(ahead_t), .DEPTH(LEAD)) ahead (.clk, .rst, .in(ahead_in), .out(ahead_out), .empty(none_ahead));

  // The outcome entry is reserved before the address is issued, so that the data does not wait for it.
  assign kept.valid = cut.valid && !kept_q[SLOT_W];
  assign kept.data  = cut.data;
  assign cut.ready  = kept.ready && !kept_q[SLOT_W];

  assign ahead_in.valid    = cut_fork[1].valid;
  always_comb begin
    ahead_in.data = '{burst: cut_fork[1].data, single: cut_fork[1].data.len == '0 || cut_fork[1].data.none};
    if (IN_PLACE) ahead_in.data.burst.wraps = 1'b0;
  end
  assign cut_fork[1].ready = ahead_in.ready;
  assign mem.awvalid       = cut_fork[0].valid && !cut_fork[0].data.none;
  assign mem.awaddr        = cut_fork[0].data.addr;
  assign mem.awlen         = cut_fork[0].data.len;
  assign mem.awid          = ID_W'(0);
  assign cut_fork[0].ready = cut_fork[0].data.none || mem.awready;

  // ---- one beat of memory per step ----
  // The last bytes of a packet may need one more beat of memory than the packet has: the flush, from the held bytes.
  ahead_t            now;
  dma_burst_t        burst;
  logic              opens_q;                // the beat is the first of its burst,
  logic              last_q;                 // or otherwise the last one
  logic [7:0]        next_q;                 // number of the beat after it
  logic [SLOT_W:0]   outstanding_q;          // bursts and empty transfers without an outcome
  logic              w_free, closes, flush, has_beat, step;
  lane_t             shift;
  logic [DATA_W-1:0] held_q, merged;
  strb_t             from_held, upto_end;

  assign now      = ahead_out.data;
  assign burst    = now.burst;
  assign shift    = lane_t'(burst.shift);
  assign closes   = opens_q ? now.single : last_q;
  assign flush    = burst.last && burst.wraps && closes;
  assign has_beat = flush || data.tvalid;

  assign w_free    = !mem.wvalid || mem.wready;
  assign step      = ahead_out.valid && (burst.none || (has_beat && w_free));

  assign ahead_out.ready = step && closes;
  assign data.tready = ahead_out.valid && !burst.none && !flush && w_free;

  // Lane i has byte i - shift of the packet's beat; the lanes below have the end of the previous beat.
  if (IN_PLACE) begin : g_in_place
    assign merged = data.tdata;
    logic unused_held;
    assign unused_held = &{1'b0, held_q};
  end else begin : g_shifted
    localparam int unsigned GRAIN = 8 * ALIGN;
    byte_funnel #(.DATA_W(DATA_W), .ALIGN(ALIGN)) funnel (
        .low({data.tdata[GRAIN-1:0], held_q[DATA_W-1:GRAIN]}), .high({GRAIN'(0), data.tdata[DATA_W-1:GRAIN]}), .amount(~shift), .out(merged)
    );
  end

  assign from_held = ~(strb_t'('1) << shift);
  assign upto_end  = strb_t'('1) >> ~lane_t'(burst.lane);

  always_ff @(posedge clk) begin
    if (step && !burst.none) begin
      mem.wdata <= merged;
      mem.wstrb <= (burst.first && opens_q ? ~from_held : '1) & (burst.last && closes ? upto_end : '1);
      mem.wlast <= closes;
      held_q <= data.tdata;
    end
    if (step) last_q <= next_q == burst.len;
    if (rst) begin
      opens_q    <= 1'b1;
      next_q     <= 8'd1;
      mem.wvalid <= 1'b0;
    end else begin
      if (step) opens_q <= closes;
      if (step) next_q <= closes ? 8'd1 : next_q + 1'b1;
      if (!mem.wvalid || mem.wready) mem.wvalid <= step && !burst.none;
    end
  end

  // ---- outcomes ----
  // Bursts and empty transfers in order; each burst is retired by its response. Its entry stays reserved until its transfer's `done` is
  // taken, so that the outcome queue cannot overflow.
  typedef struct packed {
    logic last;    // of its transfer
    logic none;
  } slot_t;

  (* ram_style = "distributed" *) logic [$bits(slot_t)-1:0] slots[OUTSTANDING];
  logic [SLOT_W-1:0] head_q, tail_q;
  slot_t             head;
  logic              opened, retire, error_q, b_error, none_told;
  stream_if #(.T(dma_done_t)) outcome ();

  // As `step && opens_q`, by a shorter path.
  wire first_beat = (burst.last && burst.wraps && now.single) || data.tvalid;
  assign opened        = ahead_out.valid && opens_q && (burst.none || (first_beat && w_free));
  assign head          = slot_t'(slots[head_q]);
  assign mem.bready    = outstanding_q != '0 && !head.none;
  assign b_error       = mem.bresp[1];
  assign retire        = outstanding_q != '0 && (head.none || mem.bvalid);
  assign outcome.valid = retire && head.last;
  assign outcome.data  = '{error: !head.none && (error_q || b_error)};
  stream_fifo #(.T(dma_done_t), .DEPTH(OUTSTANDING)) outcomes (.clk, .rst, .in(outcome), .out(done), .empty(none_told));

  always_ff @(posedge clk) begin
    if (opened) slots[tail_q] <= {burst.last, burst.none};
    if (rst) begin
      outstanding_q <= '0;
      kept_q        <= '0;
      head_q        <= '0;
      tail_q        <= '0;
      error_q       <= 1'b0;
    end else begin
      if (opened && !retire) outstanding_q <= outstanding_q + 1'b1;
      else if (retire && !opened) outstanding_q <= outstanding_q - 1'b1;
      kept_q        <= kept_q + (SLOT_W + 1)'(cut.valid && cut.ready) - (SLOT_W + 1)'(retire && !head.last) - (SLOT_W + 1)'(done.valid && done.ready);
      if (opened) tail_q <= tail_q + 1'b1;
      if (retire) begin
        head_q  <= head_q + 1'b1;
        error_q <= !head.last && (error_q || b_error);
      end
    end
  end

  always_ff @(posedge clk) if (!rst) assert (!outcome.valid || outcome.ready);

  assign idle = walker_idle && none_ahead && outstanding_q == '0 && none_told;

  assign mem.arvalid = 1'b0;
  assign mem.araddr  = '0;
  assign mem.arid    = ID_W'(0);
  assign mem.arlen   = '0;
  assign mem.rready  = 1'b0;

  // The packet has the length of its transfer.
  logic ended_q;
  always_ff @(posedge clk) begin
    if (step && !burst.none) begin
      assert (rst || flush || !ended_q) else $error("packet shorter than its transfer");
      if (burst.last && closes) assert (rst || (flush ? ended_q : data.tlast)) else $error("packet longer than its transfer");
      ended_q <= !(burst.last && closes) && (flush ? ended_q : data.tlast);
    end
    if (rst) ended_q <= 1'b0;
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, data.tkeep, data.tlast, data.tuser, mem.bid, mem.bresp[0], mem.arready, mem.rid, mem.rdata,
                       mem.rresp, mem.rlast, mem.rvalid, burst.addr, burst.tail};
endmodule
