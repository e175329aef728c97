// SPDX-License-Identifier: Apache-2.0

// QPs that wait for service, each listed once, in the order in which they were named: a round robin without a scan.
// Naming a QP that is listed already has no effect. A QP is off the list as soon as it is on `out`, taken or not, so news that
// come from then on list it again and are not lost, even those that come in the cycle in which what they are about is written.
// N streams name QPs, lower ones first; one is taken a cycle. Latency 1 cycle with distributed RAM, 2 cycles with block RAM.
// Never full: it has room for every QP. After reset it clears itself, QPS cycles, and forgets whom it is named meanwhile.
module roce_qp_tx_list
  import roce_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned N = 2,
    parameter bit BLOCK_RAM = QPS > 256
) (
    input  logic      clk,
    input  logic      rst,
    stream_if.sink    in[N],   // qp_index_t
    stream_if.source  out,     // qp_index_t
    output logic      empty
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  typedef logic [INDEX_W-1:0] short_t;

  stream_if #(.T(short_t)) push ();
  stream_if #(.T(short_t)) pop ();
  stream_fifo #(
      .T(short_t),
      .DEPTH(QPS),
      .BLOCK_RAM(BLOCK_RAM)
  ) fifo (
      .clk,
      .rst,
      .in(push),
      .out(pop),
      .empty
  );

  // A QP is listed while its two bits differ: one toggles when it is queued, the other when it comes out. So each has one writer.
  (* ram_style = "distributed" *) logic queued[QPS];
  (* ram_style = "distributed" *) logic passed[QPS];
  logic [INDEX_W:0] cleared_q;
  logic             held_q;
  wire              clearing = !cleared_q[INDEX_W];
  wire              arrives = pop.valid && !held_q;

  // Whether a name is news is looked up beside the choice, not behind it.
  logic [N-1:0] valid, grant, news, was_queued;
  short_t       data[N];
  for (genvar i = 0; i < N; i++) begin : g_in
    assign valid[i]      = in[i].valid;
    assign data[i]       = short_t'(in[i].data);
    assign in[i].ready   = grant[i];
    assign was_queued[i] = queued[data[i]];
    assign news[i]       = was_queued[i] == passed[data[i]] || (arrives && pop.data == data[i]);
  end
  assign grant = valid & (~valid + 1'b1);

  short_t named;
  always_comb begin
    named = '0;
    for (int unsigned i = 0; i < N; i++) if (grant[i]) named |= data[i];
  end
  wire short_t queued_at = clearing ? cleared_q[INDEX_W-1:0] : named;
  wire short_t passed_at = clearing ? cleared_q[INDEX_W-1:0] : pop.data;
  assign push.valid = |(grant & news) && !clearing;
  assign push.data  = named;

  assign out.valid = pop.valid;
  assign out.data  = qp_index_t'(pop.data);
  assign pop.ready = out.ready;

  always_ff @(posedge clk) begin
    if (clearing || push.valid) queued[queued_at] <= !clearing && |(grant & ~was_queued);
    if (clearing || arrives) passed[passed_at] <= !clearing && !passed[pop.data];
    if (rst) begin
      cleared_q <= '0;
      held_q    <= 1'b0;
    end else begin
      if (clearing) cleared_q <= cleared_q + 1'b1;
      held_q <= pop.valid && !pop.ready;
    end
  end

  always_ff @(posedge clk) if (!rst) assert (!push.valid || push.ready);
endmodule
