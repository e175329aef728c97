// SPDX-License-Identifier: Apache-2.0

// FIFO whose values come out only after `commit`; `rollback` removes those since the last one. A value taken in the cycle of a
// verdict is covered by it. One value a cycle in and out, latency 1 cycle from `commit`. Holds DEPTH values; when `out` stops it
// fills up, then stops `in`.
module stream_store #(
    parameter type T = logic,
    parameter int unsigned DEPTH = 64   // a power of two
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.sink   in,
    input  logic     commit,
    input  logic     rollback,
    stream_if.source out,
    output logic     none      // no value has been committed and not taken
);
  localparam int unsigned PTR_W = $clog2(DEPTH);

  if (2 ** PTR_W != DEPTH) begin : g_bad
    $fatal(1, "stream_store: DEPTH must be a power of two");
  end

  (* ram_style = "distributed" *) logic [$bits(T)-1:0] values[DEPTH];
  logic [PTR_W:0] write_q, committed_q, read_q;
  wire push = in.valid && in.ready;
  wire [PTR_W:0] write_next = push ? write_q + 1'b1 : write_q;

  assign in.ready  = write_q != {~read_q[PTR_W], read_q[PTR_W-1:0]};
  assign out.valid = read_q != committed_q;
  assign out.data  = T'(values[read_q[PTR_W-1:0]]);
  assign none      = !out.valid;

  always_ff @(posedge clk) if (push) values[write_q[PTR_W-1:0]] <= in.data;
  always_ff @(posedge clk) begin
    if (rst) begin
      write_q     <= '0;
      committed_q <= '0;
      read_q      <= '0;
    end else begin
      write_q <= rollback ? committed_q : write_next;
      if (commit) committed_q <= write_next;
      if (out.valid && out.ready) read_q <= read_q + 1'b1;
    end
  end

  always_ff @(posedge clk) if (!rst) assert (!(commit && rollback));
endmodule
