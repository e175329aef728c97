// SPDX-License-Identifier: Apache-2.0

// Writes of the device to host memory: AXI4 bursts as memory write TLPs, in order. A TLP is stored whole before it is offered. A write is
// posted: its response comes when the last TLP of the burst has left here, which says that everything that the device sends later is behind
// it; the host answers nothing. While its function is `off`, a TLP is dropped, and its burst answered with SLVERR. Latency: AW to the header 7 cycles, W
// 5 (of the last beat); last beat of the payload out to B 2. One beat a cycle, one TLP a cycle. BURSTS bursts are inside until their
// responses are taken; then AW stops.
module pcie_requester_writes
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W = 4,
    parameter int unsigned FUNCTIONS = 1,
    parameter int unsigned LARGEST = 512,          // bytes of a payload
    parameter int unsigned BURSTS = 32,            // a power of two
    parameter int unsigned STORE_BYTES = 2048      // of payloads, a power of two: one that leaves, one that comes, and as much for a wait
) (
    input  logic              clk,
    input  logic              rst,
    input  pcie_configs_t     settings,
    input  logic [FUNCTIONS_MAX-1:0] off,          // nothing of this function may be sent
    axi_if.slave              in,                  // write channels
    stream_if.source          header,              // tlp_header_t; taken back when `off` rises
    axis_if.source            payload,
    output logic [5:0]        inside_,             // TLPs that have not left
    output logic              gone,                // pulse: one has, sent or dropped
    output logic              sent,                // pulse: a header was taken
    output logic              dropped,             // pulse: a TLP was dropped
    output logic              idle
);
  localparam int unsigned TLPS = 32;
  localparam int unsigned STORE_BEATS = STORE_BYTES * 8 / DATA_W;
  if (STORE_BYTES < 2 * LARGEST) begin : g_bad
    $fatal(1, "the store must hold two payloads");
  end
  typedef logic [$clog2(BURSTS):0] count_t;

  // ---- bursts: their IDs, until they are answered ----
  count_t bursts_q;
  wire    room = !bursts_q[$clog2(BURSTS)];
  wire    take_aw = in.awvalid && in.awready;
  wire    answered = in.bvalid && in.bready;
  stream_if #(.T(logic [ID_W-1:0])) id_in ();
  stream_if #(.T(logic [ID_W-1:0])) id ();
  axi_if #(.DATA_W(DATA_W), .ID_W(ID_W)) bounded ();
  assign bounded.awvalid = in.awvalid && room;
  assign bounded.awaddr  = in.awaddr;
  assign bounded.awid    = in.awid;
  assign bounded.awlen   = in.awlen;
  assign in.awready      = bounded.awready && room;
  assign bounded.wvalid  = in.wvalid;
  assign bounded.wdata   = in.wdata;
  assign bounded.wstrb   = in.wstrb;
  assign bounded.wlast   = in.wlast;
  assign in.wready       = bounded.wready;
  assign id_in.valid     = take_aw;
  assign id_in.data      = in.awid;
  stream_fifo #(.T(logic [ID_W-1:0]), .DEPTH(BURSTS)) ids (.clk, .rst, .in(id_in), .out(id), .empty());

  // ---- TLPs, stored ----
  stream_if #(.T(beat_run_t)) run ();
  stream_if #(.T(write_tlp_t)) tlp_in ();
  stream_if #(.T(write_tlp_t)) tlp ();
  axis_if #(.DATA_W(DATA_W)) stored_in ();
  axis_if #(.DATA_W(DATA_W)) stored ();
  logic [DATA_W-1:0] run_data;
  logic store_room_q;
  logic out_free, next_valid, next_bottom, beats_idle, join_idle, none_stored;

  logic [FUNCTIONS_MAX-1:0][2:0] mps;
  for (genvar i = 0; i < FUNCTIONS_MAX; i++) begin : g_mps
    assign mps[i] = settings[i].mps;
  end
  pcie_write_beats #(.DATA_W(DATA_W), .FUNCTIONS(FUNCTIONS), .LARGEST(LARGEST)) beats (
      .clk, .rst, .mps, .in(bounded), .out(run), .out_data(run_data), .out_free, .next_valid, .next_bottom, .idle(beats_idle)
  );
  pcie_write_join #(.DATA_W(DATA_W)) join_beats (
      .clk, .rst, .run, .run_data, .next_valid, .next_bottom, .tlp(tlp_in), .payload(stored_in), .room(store_room_q), .free(out_free), .idle(join_idle)
  );
  stream_fifo #(.T(write_tlp_t), .DEPTH(TLPS)) tlps (.clk, .rst, .in(tlp_in), .out(tlp), .empty(none_stored));
  axis_fifo #(.DATA_W(DATA_W), .DEPTH(STORE_BEATS)) store (.clk, .rst, .in(stored_in), .out(stored), .empty());

  // Room for a TLP and two beats is counted, so that a register says it.
  logic [$clog2(STORE_BEATS)+1:0] beats_q, beats_d;
  logic [$clog2(TLPS)+1:0] tlps_q, tlps_d;
  assign tlps_d  = tlps_q + ($bits(tlps_q))'(tlp_in.valid && tlp_in.ready) - ($bits(tlps_q))'(tlp.valid && tlp.ready);
  assign beats_d = beats_q + ($bits(beats_q))'(stored_in.tvalid && stored_in.tready) - ($bits(beats_q))'(stored.tvalid && stored.tready);
  always_ff @(posedge clk) begin
    beats_q      <= rst ? '0 : beats_d;
    tlps_q       <= rst ? '0 : tlps_d;
    store_room_q <= !rst && beats_d <= ($bits(beats_q))'(STORE_BEATS - 2) && tlps_d < ($bits(tlps_q))'(TLPS);
  end

  // ---- out: sent or dropped ----
  typedef struct packed {
    logic none;
    logic ends;
    logic error;
  } leaving_t;

  stream_if #(.T(leaving_t)) leaving_in ();
  stream_if #(.T(leaving_t)) leaving ();
  stream_if #(.T(logic)) route ();
  axis_if #(.DATA_W(DATA_W)) way[2] ();
  write_tlp_t now;
  logic none_leaves;
  assign now = tlp.data;
  wire function_t func = function_of(now.addr, FUNCTIONS);
  wire off_now = off[func];
  wire may  = leaving_in.ready && route.ready;
  wire pass = tlp.valid && may && (now.none || off_now || header.ready);
  assign tlp.ready        = pass;
  assign header.valid     = tlp.valid && may && !now.none && !off_now;
  assign leaving_in.valid = pass;
  assign leaving_in.data  = '{none: now.none, ends: now.ends, error: !now.none && off_now};
  assign route.valid      = pass && !now.none;
  assign route.data       = off_now;
  assign sent             = header.valid && header.ready;
  assign dropped          = pass && !now.none && off_now;
  always_comb begin
    tlp_header_t told;
    told              = '0;
    told.kind         = TLP_MEM_WRITE;
    told.addr         = bus_address(now.addr, FUNCTIONS);
    told.length       = now.dwords;
    told.first_be     = now.first_be;
    told.last_be      = now.last_be;
    told.requester_id = settings[func].id;
    header.data       = told;
  end

  axis_steer #(.DATA_W(DATA_W), .N(2)) steer (.clk, .rst, .in(stored), .route, .out(way), .empty());
  // A payload passes when its entry is the first of those that leave.
  wire open = leaving.valid && !leaving.data.none;
  assign payload.tvalid = way[0].tvalid && open;
  assign payload.tdata  = way[0].tdata;
  assign payload.tkeep  = way[0].tkeep;
  assign payload.tlast  = way[0].tlast;
  assign payload.tuser  = 1'b0;
  assign way[0].tready  = payload.tready && open;
  assign way[1].tready  = open;

  // ---- left: the response ----
  logic error_q;
  wire  data_ends = (way[0].tvalid && way[0].tready && way[0].tlast) || (way[1].tvalid && way[1].tready && way[1].tlast);
  wire  retire = leaving.valid && (leaving.data.none || data_ends);
  stream_if #(.T(axi_resp_e)) response_in ();
  stream_if #(.T(axi_resp_e)) response ();
  stream_fifo #(.T(leaving_t), .DEPTH(16)) leavings (.clk, .rst, .in(leaving_in), .out(leaving), .empty(none_leaves));
  assign leaving.ready     = retire;
  assign response_in.valid = retire && leaving.data.ends;
  assign response_in.data  = error_q || leaving.data.error ? AXI_SLVERR : AXI_OKAY;
  stream_fifo #(.T(axi_resp_e), .DEPTH(BURSTS)) responses (.clk, .rst, .in(response_in), .out(response), .empty());
  assign in.bvalid      = response.valid;
  assign in.bresp       = response.data;
  assign in.bid         = id.data;
  assign response.ready = in.bready;
  assign id.ready       = response.valid && in.bready;

  wire enters = tlp_in.valid && tlp_in.ready && !tlp_in.data.none;
  assign gone = retire && !leaving.data.none;
  always_ff @(posedge clk) begin
    if (retire) error_q <= !leaving.data.ends && (error_q || leaving.data.error);
    if (rst) begin
      bursts_q <= '0;
      inside_  <= '0;
      error_q  <= 1'b0;
    end else begin
      bursts_q <= bursts_q + count_t'(take_aw) - count_t'(answered);
      inside_  <= inside_ + 6'(enters) - 6'(gone);
    end
  end
  assign idle = bursts_q == '0 && beats_idle && join_idle && none_stored && none_leaves;

  // Responses have room, and are of a burst.
  always_ff @(posedge clk) if (!rst) begin
    assert (!response_in.valid || response_in.ready);
    assert (!response.valid || id.valid);
  end

  assign bounded.bready  = 1'b0;
  assign bounded.arvalid = 1'b0;
  assign bounded.araddr  = '0;
  assign bounded.arid    = '0;
  assign bounded.arlen   = '0;
  assign bounded.rready  = 1'b0;
  assign in.arready = 1'b0;
  assign in.rvalid  = 1'b0;
  assign in.rdata   = '0;
  assign in.rid     = '0;
  assign in.rresp   = '0;
  assign in.rlast   = 1'b0;
endmodule
