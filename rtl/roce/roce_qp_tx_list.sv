// SPDX-License-Identifier: Apache-2.0

// QPs that wait for service, each listed once, in the order in which they were named: a round robin without a scan.
// Naming a QP that is listed already has no effect. A QP is off the list from the cycle in which it is taken, so news that
// come while it is served list it again and are not lost.
// N streams name QPs, lower ones first; one is taken a cycle. Latency 1 cycle with distributed RAM, 2 cycles with block RAM.
// Never full: it has room for every QP.
module roce_qp_tx_list
  import roce_requester_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned N = 2,
    parameter bit BLOCK_RAM = QPS > 64,
    parameter bit STAGED = 1'b0             // a register behind the choice: one cycle more, for many inputs or QPs
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
  logic [QPS-1:0] listed_q;
  logic           fifo_empty;
  stream_fifo #(
      .T(short_t),
      .DEPTH(QPS),
      .BLOCK_RAM(BLOCK_RAM)
  ) fifo (
      .clk,
      .rst,
      .in (push),
      .out(pop),
      .empty(fifo_empty)
  );

  wire leaves = pop.valid && pop.ready;

  logic [N-1:0] valid, grant;
  short_t       data[N];
  for (genvar i = 0; i < N; i++) begin : g_in
    assign valid[i]    = in[i].valid;
    assign data[i]     = short_t'(in[i].data);
    assign in[i].ready = grant[i];
  end
  assign grant = valid & (~valid + 1'b1);

  short_t named;
  always_comb begin
    named = '0;
    for (int unsigned i = 0; i < N; i++) if (grant[i]) named |= data[i];
  end

  if (STAGED) begin : g_staged
    logic   asks_q;
    short_t asked_q;
    always_ff @(posedge clk) begin
      asks_q  <= |valid && !rst;
      asked_q <= named;
    end
    assign push.valid = asks_q && (!listed_q[asked_q] || (leaves && pop.data == asked_q));
    assign push.data  = asked_q;
    assign empty      = fifo_empty && !asks_q;
  end else begin : g_direct
    // Whether a name is news is looked up beside the choice, not behind it.
    logic [N-1:0] news;
    for (genvar i = 0; i < N; i++) begin : g_news
      assign news[i] = grant[i] && (!listed_q[data[i]] || (leaves && pop.data == data[i]));
    end
    assign push.valid = |news;
    assign push.data  = named;
    assign empty      = fifo_empty;
  end

  assign out.valid  = pop.valid;
  assign out.data   = qp_index_t'(pop.data);
  assign pop.ready  = out.ready;

  always_ff @(posedge clk) begin
    if (rst) listed_q <= '0;
    else begin
      if (leaves) listed_q[pop.data] <= 1'b0;
      if (push.valid) listed_q[push.data] <= 1'b1;
    end
  end

  always_ff @(posedge clk) if (!rst) assert (!push.valid || push.ready);
endmodule
