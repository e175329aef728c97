// SPDX-License-Identifier: Apache-2.0

// Writes of the host, in order, to the registers and to memory. Each is stored until it is whole; one whose data is damaged (tuser) is
// dropped. It goes on when all writes to other BARs before it are done: so a write of a doorbell is behind the data that it announces, in
// whichever memory that is. Latency 4 cycles from the last beat in to the request out, 1 more to the first beat; one beat a cycle, a
// request every cycle. WRITES writes wait or are under way; then `request` stops.
module pcie_host_writes
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned WRITES = 32,          // a power of two
    parameter int unsigned STORE_BYTES = 8192    // a power of two, two payloads or more
) (
    input  logic       clk,
    input  logic       rst,
    stream_if.sink     request,                  // host_request_t, to PLACE_REGISTERS or PLACE_MEMORY
    axis_if.sink       data,
    stream_if.source   out_request[2],           // host_request_t, by place_e
    axis_if.source     out_data[2],
    input  logic [1:0] done,                     // pulses: a write to there is done
    output logic       dropped,                  // pulse: a write was damaged
    output logic       ended,                    // pulse: a write is done or dropped, in order,
    output function_t  ended_func,               //   of this function
    output logic [$clog2(WRITES):0] inside_      // writes that have not ended
);
  typedef logic [$clog2(WRITES):0] count_t;

  typedef struct packed {
    logic          damaged;
    host_request_t request;
  } whole_t;

  count_t inside_q, pending_q;                   // taken and not ended; given on and not done
  logic [2:0] bar_q;                             // of those
  function_t  func_q;
  logic room;

  stream_if #(.T(host_request_t)) promised_in ();
  stream_if #(.T(host_request_t)) promised ();   // until its data is whole,
  stream_if #(.T(whole_t)) whole_in ();
  stream_if #(.T(whole_t)) whole ();             // then until it may go
  stream_if #(.T(logic)) route ();
  axis_if #(.DATA_W(DATA_W)) store_in ();
  axis_if #(.DATA_W(DATA_W)) stored ();

  assign room              = !inside_q[$clog2(WRITES)];
  assign promised_in.valid = request.valid && room;
  assign promised_in.data  = request.data;
  assign request.ready     = promised_in.ready && room;
  stream_slice #(.T(host_request_t)) promises (.clk, .rst, .in(promised_in), .out(promised));

  wire ends = store_in.tvalid && store_in.tready && store_in.tlast;
  assign store_in.tvalid = data.tvalid && promised.valid;
  assign store_in.tdata  = data.tdata;
  assign store_in.tkeep  = data.tkeep;
  assign store_in.tlast  = data.tlast;
  assign store_in.tuser  = 1'b0;
  assign data.tready     = store_in.tready && promised.valid;
  assign promised.ready  = ends;
  assign dropped         = ends && data.tuser;
  assign whole_in.valid  = ends;
  assign whole_in.data   = '{damaged: data.tuser, request: promised.data};
  axis_store #(.DATA_W(DATA_W), .DEPTH(STORE_BYTES * 8 / DATA_W)) store (
      .clk, .rst, .in(store_in), .commit(ends && !data.tuser), .rollback(dropped), .out(stored), .room(), .empty()
  );
  stream_fifo #(.T(whole_t), .DEPTH(WRITES)) wholes (.clk, .rst, .in(whole_in), .out(whole), .empty());

  // ---- on, by place ----
  logic [1:0] ready;
  wire place = whole.data.request.place != PLACE_REGISTERS;
  wire may   = !whole.data.damaged && (pending_q == '0 || (whole.data.request.bar == bar_q && whole.data.request.func == func_q)) && route.ready;
  wire skip  = whole.valid && whole.data.damaged && pending_q == '0;   // it ends in its turn too
  wire goes  = whole.valid && may && ready[place];
  for (genvar i = 0; i < 2; i++) begin : g_out
    assign out_request[i].valid = whole.valid && may && place == 1'(i);
    assign out_request[i].data  = whole.data.request;
    assign ready[i]             = out_request[i].ready;
  end
  assign whole.ready = goes || skip;
  assign route.valid = goes;
  assign route.data  = place;
  axis_steer #(.DATA_W(DATA_W), .N(2)) steer (.clk, .rst, .in(stored), .route, .out(out_data), .empty());

  assign inside_ = inside_q;
  assign ended   = |done || skip;
  assign ended_func = skip ? whole.data.request.func : func_q;
  always_ff @(posedge clk) begin
    if (goes) bar_q  <= whole.data.request.bar;
    if (goes) func_q <= whole.data.request.func;
    if (rst) begin
      inside_q  <= '0;
      pending_q <= '0;
    end else begin
      inside_q  <= inside_q + count_t'(request.valid && request.ready) - count_t'(ended);
      pending_q <= pending_q + count_t'(goes) - count_t'(|done);
    end
  end

  // Only one place has writes under way.
  always_ff @(posedge clk) if (!rst) begin
    assert ($onehot0({done, skip}));
    assert (!whole_in.valid || whole_in.ready);
  end
endmodule
