// SPDX-License-Identifier: Apache-2.0

// First-word-fall-through FIFO: what goes in comes out, in order.
// One value a cycle, in and out at once. Latency 1 cycle with distributed RAM, 2 cycles with block RAM, or without BYPASS: that is a
// multiplexer as wide as a value.
// Holds DEPTH values and one more in the output register: when `out` stops it takes that many, then stops `in`.
// No combinational path between the two sides.
module stream_fifo #(
    parameter type T = logic,
    parameter int unsigned DEPTH = 32,          // a power of two, 2 or more
    parameter bit BLOCK_RAM = DEPTH > 64,       // else distributed RAM
    parameter bit BYPASS = !BLOCK_RAM           // a value goes straight to the output register if there is none before it
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.sink   in,
    stream_if.source out,
    output logic     empty  // nothing inside, the output register included
);
  localparam int unsigned PTR_W = $clog2(DEPTH);

  if (DEPTH < 2 || 2 ** PTR_W != DEPTH) begin : g_bad
    $fatal(1, "stream_fifo: DEPTH must be a power of two, 2 or more");
  end
  if (BLOCK_RAM && BYPASS) begin : g_bad_bypass
    $fatal(1, "stream_fifo: there is no bypass of a block RAM");
  end

  // One bit more than the address tells full from empty.
  logic [PTR_W:0] write_q, read_q;
  logic out_valid_q;

  wire stored_none = write_q == read_q;
  wire stored_full = write_q == {~read_q[PTR_W], read_q[PTR_W-1:0]};
  wire push = in.valid && in.ready;
  wire advance = !out_valid_q || out.ready;  // the output register is free for a value
  wire bypass = BYPASS && stored_none;
  wire pop = advance && !stored_none;
  wire store = push && !(advance && bypass);

  assign in.ready  = !stored_full;
  assign out.valid = out_valid_q;
  assign empty     = stored_none && !out_valid_q;

  if (BLOCK_RAM) begin : g_memory
    (* ram_style = "block" *) logic [$bits(T)-1:0] values[DEPTH];
    logic [$bits(T)-1:0] out_q;
    always_ff @(posedge clk) if (store) values[write_q[PTR_W-1:0]] <= in.data;
    always_ff @(posedge clk) if (pop) out_q <= values[read_q[PTR_W-1:0]];
    assign out.data = T'(out_q);
  end else begin : g_memory
    (* ram_style = "distributed" *) logic [$bits(T)-1:0] values[DEPTH];
    logic [$bits(T)-1:0] out_q;
    always_ff @(posedge clk) if (store) values[write_q[PTR_W-1:0]] <= in.data;
    always_ff @(posedge clk) if (BYPASS ? advance && (push || pop) : pop) out_q <= bypass ? in.data : values[read_q[PTR_W-1:0]];
    assign out.data = T'(out_q);
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      write_q     <= '0;
      read_q      <= '0;
      out_valid_q <= 1'b0;
    end else begin
      if (store) write_q <= write_q + 1'b1;
      if (pop) read_q <= read_q + 1'b1;
      if (advance) out_valid_q <= pop || (bypass && push);
    end
  end

  always_ff @(posedge clk) if (!rst) assert ((PTR_W + 1)'(write_q - read_q) <= (PTR_W + 1)'(DEPTH));
endmodule
