// SPDX-License-Identifier: Apache-2.0

// List of QPs that wait for service, each at most once, in order of insertion: a round robin without a scan.
// Inserting a QP that is listed already has no effect. A QP leaves the list as soon as it is on `out`, accepted or not, so a later
// insertion lists it again and is not lost, even in the cycle in which the tables that caused it are written.
// N inputs, the lowest has priority; one insertion a cycle. Latency 2 cycles with distributed RAM, 3 cycles with block RAM.
// Never full: it has an entry for every QP. After reset it clears itself for QPS cycles, in which insertions are ignored.
module roce_qp_list
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
  typedef logic [INDEX_W-1:0] index_t;

  // ---- arbitrate ----
  logic [N-1:0] valid, grant;
  index_t       data[N];
  for (genvar i = 0; i < N; i++) begin : g_in
    assign valid[i]    = in[i].valid;
    assign data[i]     = index_t'(in[i].data);
    assign in[i].ready = grant[i];
  end
  assign grant = valid & (~valid + 1'b1);

  index_t chosen, named_q;
  logic   named_valid_q;
  always_comb begin
    chosen = '0;
    for (int unsigned i = 0; i < N; i++) if (grant[i]) chosen |= data[i];
  end

  // ---- insert unless listed ----
  // A QP is listed while its two bits differ: one toggles on insertion, the other copies it when the QP leaves. So each has one
  // writer, and one reader.
  typedef struct packed {
    logic   queued;
    index_t index;
  } entry_t;

  (* ram_style = "distributed" *) logic queued[QPS];
  (* ram_style = "distributed" *) logic passed[QPS];
  logic [INDEX_W:0] cleared_q;
  logic             held_q;

  stream_if #(.T(entry_t)) push ();
  stream_if #(.T(entry_t)) pop ();
  logic fifo_empty;
  stream_fifo #(
      .T(entry_t),
      .DEPTH(QPS),
      .BLOCK_RAM(BLOCK_RAM)
  ) fifo (
      .clk,
      .rst,
      .in(push),
      .out(pop),
      .empty(fifo_empty)
  );

  wire clearing = !cleared_q[INDEX_W];
  wire arrives  = pop.valid && !held_q;
  wire was      = queued[named_q];
  entry_t head;
  assign head = pop.data;

  assign push.valid = named_valid_q && was == passed[named_q];
  assign push.data  = '{queued: !was, index: named_q};
  assign out.valid  = pop.valid;
  assign out.data   = qp_index_t'(head.index);
  assign pop.ready  = out.ready;
  assign empty      = fifo_empty && !named_valid_q;

  wire index_t queued_at = clearing ? cleared_q[INDEX_W-1:0] : named_q;
  wire index_t passed_at = clearing ? cleared_q[INDEX_W-1:0] : head.index;
  always_ff @(posedge clk) begin
    named_q <= chosen;
    if (clearing || push.valid) queued[queued_at] <= !clearing && !was;
    if (clearing || arrives) passed[passed_at] <= !clearing && head.queued;
    if (rst) begin
      cleared_q     <= '0;
      held_q        <= 1'b0;
      named_valid_q <= 1'b0;
    end else begin
      if (clearing) cleared_q <= cleared_q + 1'b1;
      held_q        <= pop.valid && !pop.ready;
      named_valid_q <= |valid && !clearing;
    end
  end

  always_ff @(posedge clk) if (!rst) assert (!push.valid || push.ready);
endmodule
