// SPDX-License-Identifier: Apache-2.0

// Joins the beats of write bursts to memory write TLPs: a TLP goes on as long as its bytes do, to the end of the burst, to an address that
// is a multiple of the largest payload, or of LARGEST. Its payload comes out from lane 0. `tlp` comes with the last beat in: its payload is
// then complete but for one beat at most, which follows in the next cycle. When there is no `room`, `run` stops. No latency; one beat
// a cycle, and one cycle more for a TLP whose payload's end does not fit with what was held.
module pcie_write_join
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input  logic              clk,
    input  logic              rst,
    stream_if.sink            run,                 // beat_run_t
    input  logic [DATA_W-1:0] run_data,            // with it
    input  logic              next_valid,          // see pcie_write_beats
    input  logic              next_bottom,
    stream_if.source          tlp,                 // write_tlp_t
    axis_if.source            payload,
    input  logic              room,                // `tlp` takes a value and `payload` two beats
    output logic              free,                // `run.ready` of a beat behind which there is one
    output logic              idle                 // no TLP is begun
);
  localparam int unsigned DWORDS = DATA_W / 32;
  localparam int unsigned LANE_W = $clog2(DWORDS);
  typedef logic [LANE_W-1:0] lane_t;
  typedef logic [LANE_W:0]   lanes_t;              // a number of dwords
  typedef logic [DWORDS-1:0][31:0] dwords_t;

  beat_run_t  now;
  logic       open_q;                              // a TLP is begun:
  addr_t      addr_q;
  logic [3:0] first_be_q;
  lane_t      shift_q;                             // lane of its first dword
  tlp_dwords_t count_q;                            // dwords so far
  dwords_t    held_q;                              // of these, those from shift_q on of the last beat
  logic       flush_q;                             // the end of a payload is still to be given: lanes 0 to
  lanes_t     flush_lanes_q;
  assign now = run.data;

  // ---- the beat ----
  wire closes = now.ends || !next_bottom;
  wire known  = now.ends || next_valid;           // what is empty ends, too
  wire lanes_t here = lanes_t'(now.dwords);
  wire lane_t shift = open_q ? shift_q : lane_t'(now.first);
  wire lanes_t held = open_q && shift != '0 ? lanes_t'(DWORDS) - lanes_t'(shift) : '0;
  wire [LANE_W+1:0] there = (LANE_W + 2)'(held) + (LANE_W + 2)'(here);   // dwords to give
  wire overflow = closes && there > (LANE_W + 2)'(DWORDS);
  wire gives    = closes || open_q || now.first == '0;   // a beat of payload: what does not close reaches the last lane

  dwords_t rotated, merged;
  dword_rotate #(.DATA_W(DATA_W)) rotate (.in(run_data), .amount(shift), .out(rotated));
  for (genvar i = 0; i < DWORDS; i++) begin : g_lane
    assign merged[i] = flush_q || lanes_t'(i) < held ? held_q[i] : rotated[i];
  end

  // ---- out ----
  wire ends = !now.empty && closes;
  wire tells = now.empty ? now.last : ends;        // with an entry of `tlp`
  assign free = !flush_q && room;
  wire may = known && free;                        // whether it takes them or not: a short path
  wire step = run.valid && may;
  assign run.ready = may;

  assign tlp.valid = run.valid && known && !flush_q && tells && room;
  always_comb begin
    write_tlp_t told;
    told.none     = now.empty;
    told.ends     = now.last;
    told.addr     = open_q ? addr_q : now.addr | (addr_t'(now.first) << 2);
    told.dwords   = (open_q ? count_q : '0) + tlp_dwords_t'(here);
    told.first_be = open_q ? first_be_q : now.first_be;
    told.last_be  = told.dwords == 11'd1 ? '0 : now.final_be;
    tlp.data      = told;
  end

  wire lanes_t last_lanes = overflow ? lanes_t'(DWORDS) : lanes_t'(there);
  assign payload.tvalid = flush_q || (run.valid && known && !now.empty && gives && room);
  assign payload.tdata  = merged;
  assign payload.tlast  = flush_q || (closes && !overflow);
  assign payload.tuser  = 1'b0;
  for (genvar i = 0; i < DWORDS; i++) begin : g_keep
    assign payload.tkeep[4*i+:4] = {4{lanes_t'(i) < (flush_q ? flush_lanes_q : last_lanes)}};
  end

  always_ff @(posedge clk) begin
    if (step && !now.empty) begin
      if (!open_q) begin
        addr_q     <= now.addr | (addr_t'(now.first) << 2);
        first_be_q <= now.first_be;
        shift_q    <= lane_t'(now.first);
      end
      count_q       <= (open_q ? count_q : '0) + tlp_dwords_t'(here);
      held_q        <= rotated;
      flush_lanes_q <= lanes_t'(there - (LANE_W + 2)'(DWORDS));
    end
    if (rst) begin
      open_q  <= 1'b0;
      flush_q <= 1'b0;
    end else begin
      if (step && !now.empty) open_q <= !closes;
      if (step && ends) flush_q <= overflow;
      else if (payload.tready) flush_q <= 1'b0;
    end
  end
  assign idle = !open_q && !flush_q;

  always_ff @(posedge clk) if (!rst) assert ((!payload.tvalid || payload.tready) && (!tlp.valid || tlp.ready));

  // What is empty ends nothing: the beat before saw that it does not go on.
  always_ff @(posedge clk) if (!rst && run.valid && now.empty) assert (!open_q && now.ends);
endmodule
