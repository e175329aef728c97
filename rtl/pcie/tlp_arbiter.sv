// SPDX-License-Identifier: Apache-2.0

// N streams of TLPs into one, round robin by TLP among those that `may` go: it can take it back as long as the header waits here. Latency 1
// cycle for the header, 1 for the payload, which follows its header by a cycle at the earliest. One header and one beat a cycle; DEPTH
// headers run ahead of their payload. When the output stops all inputs stop.
module tlp_arbiter
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned N = 2,
    parameter int unsigned DEPTH = 4         // a power of two
) (
    input  logic         clk,
    input  logic         rst,
    stream_if.sink       in_header[N],       // tlp_header_t
    axis_if.sink         in_data[N],
    input  logic [N-1:0] may,
    stream_if.source     out_header,
    axis_if.source       out_data,
    output logic         empty               // no TLP is between an input and the output
);
  localparam int unsigned INDEX_W = N > 1 ? $clog2(N) : 1;
  typedef logic [INDEX_W-1:0] index_t;
  typedef logic [DATA_W+DATA_W/8+1:0] beat_t;

  // ---- headers ----
  logic [N-1:0] valid, grant;
  tlp_header_t  header[N];
  tlp_header_t  chosen;
  index_t       index;
  stream_if #(.T(tlp_header_t)) next ();
  stream_if #(.T(index_t)) turn_in ();
  stream_if #(.T(index_t)) turn ();
  logic none_waits;

  for (genvar i = 0; i < N; i++) begin : g_header
    assign valid[i]           = in_header[i].valid && may[i];
    assign header[i]          = in_header[i].data;
    assign in_header[i].ready = grant[i] && next.ready && turn_in.ready;
  end
  round_robin #(.N(N)) turns (.clk, .rst, .request(valid), .take(next.ready && turn_in.ready), .grant);

  always_comb begin
    chosen = '0;
    index  = '0;
    for (int unsigned i = 0; i < N; i++)
      if (grant[i]) begin
        chosen |= header[i];
        index  |= index_t'(i);
      end
  end
  assign next.valid    = |grant && turn_in.ready;
  assign next.data     = chosen;
  assign turn_in.valid = |grant && next.ready && tlp_has_data(chosen.kind);
  assign turn_in.data  = index;
  stream_slice #(.T(tlp_header_t), .SKID(1'b0)) slice (.clk, .rst, .in(next), .out(out_header));
  stream_fifo #(.T(index_t), .DEPTH(DEPTH)) order (.clk, .rst, .in(turn_in), .out(turn), .empty(none_waits));

  // ---- payload, in the order of the headers ----
  logic [N-1:0] offered;
  beat_t        beat[N];
  stream_if #(.T(beat_t)) moved ();
  stream_if #(.T(beat_t)) sent ();
  for (genvar i = 0; i < N; i++) begin : g_data
    assign offered[i]        = in_data[i].tvalid;
    assign beat[i]           = {in_data[i].tlast, in_data[i].tuser, in_data[i].tkeep, in_data[i].tdata};
    assign in_data[i].tready = turn.valid && turn.data == index_t'(i) && moved.ready;
  end
  beat_t now;
  assign now        = beat[turn.data];
  assign moved.valid = turn.valid && offered[turn.data];
  assign moved.data = now;
  assign turn.ready = moved.valid && moved.ready && now[DATA_W+DATA_W/8+1];

  stream_slice #(.T(beat_t), .SKID(1'b0)) beats (.clk, .rst, .in(moved), .out(sent));
  assign out_data.tvalid = sent.valid;
  assign {out_data.tlast, out_data.tuser, out_data.tkeep, out_data.tdata} = sent.data;
  assign sent.ready      = out_data.tready;

  assign empty = !out_header.valid && none_waits && !out_data.tvalid;
endmodule
