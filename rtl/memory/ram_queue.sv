// SPDX-License-Identifier: Apache-2.0

// FIFO in block RAM. Latency 2 cycles, one value a cycle. Holds DEPTH values and one more at its head; then `in` stops.
module ram_queue #(
    parameter type         T     = logic,
    parameter int unsigned DEPTH = 512     // power of two
) (
    input logic      clk,
    input logic      rst,
    stream_if.sink   in,
    stream_if.source out
);
  localparam int unsigned INDEX_W = $clog2(DEPTH);

  if ((DEPTH & (DEPTH - 1)) != 0 || DEPTH < 2) begin : g_bad_depth
    $fatal(1, "DEPTH must be a power of two, at least 2");
  end

  (* ram_style = "block" *) T ram[DEPTH];
  logic [INDEX_W:0] write_q, read_q;   // one bit more than an index: full and empty differ
  logic push, load, head_valid_q;
  T     head_q;

  assign in.ready  = write_q != {~read_q[INDEX_W], read_q[INDEX_W-1:0]};
  assign push      = in.valid && in.ready;
  assign load      = write_q != read_q && (!head_valid_q || out.ready);
  assign out.valid = head_valid_q;
  assign out.data  = head_q;

  always_ff @(posedge clk) begin
    if (push) ram[write_q[INDEX_W-1:0]] <= in.data;
    if (load) head_q <= ram[read_q[INDEX_W-1:0]];
    if (rst) begin
      write_q      <= '0;
      read_q       <= '0;
      head_valid_q <= 1'b0;
    end else begin
      if (push) write_q <= write_q + 1'b1;
      if (load) read_q <= read_q + 1'b1;
      if (!head_valid_q || out.ready) head_valid_q <= load;
    end
  end
endmodule
