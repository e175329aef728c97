// SPDX-License-Identifier: Apache-2.0

// Store for packets that wait for a verdict: beats go in at once and come out only after `commit`; `rollback` removes them
// without a trace. A verdict covers every beat taken since the verdict before, one taken in its own cycle included; a beat must
// never be offered between the end of a packet and its verdict.
// One beat a cycle in and out. Latency 2 cycles from the verdict to the first beat out (block RAM). Holds DEPTH beats; when
// `out` stops it fills up, then stops `in`. A packet longer than DEPTH beats would wait for ever: the user cuts it before.
module axis_store #(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned DEPTH = 512  // beats, a power of two
) (
    input  logic                     clk,
    input  logic                     rst,
    axis_if.sink                     in,        // tuser is not stored: the verdict takes its place
    input  logic                     commit,
    input  logic                     rollback,
    axis_if.source                   out,
    output logic [$clog2(DEPTH):0]   room,      // free beats, one cycle late
    output logic                     empty      // nothing inside, committed or not
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned PTR_W = $clog2(DEPTH);
  localparam int unsigned COUNT_W = $clog2(BYTES);

  if (2 ** PTR_W != DEPTH) begin : g_bad
    $fatal(1, "axis_store: DEPTH must be a power of two");
  end

  typedef struct packed {
    logic               last;
    logic [COUNT_W-1:0] top;   // highest byte that is kept
    logic [DATA_W-1:0]  data;
  } entry_t;

  (* ram_style = "block" *) logic [$bits(entry_t)-1:0] entries[DEPTH];

  logic [PTR_W:0] write_q, committed_q, read_q, room_q;
  entry_t out_q;
  logic   out_valid_q;

  logic [COUNT_W-1:0] top;
  always_comb begin
    top = '0;
    for (int unsigned i = 1; i < BYTES; i++) if (in.tkeep[i] && (i == BYTES - 1 || !in.tkeep[(i+1)%BYTES])) top |= COUNT_W'(i);
  end

  wire full = write_q == {~read_q[PTR_W], read_q[PTR_W-1:0]};
  wire push = in.tvalid && in.tready;
  wire pop = (!out_valid_q || out.tready) && read_q != committed_q;
  wire [PTR_W:0] write_next = push ? write_q + 1'b1 : write_q;

  assign in.tready = !full;

  always_ff @(posedge clk) if (push) entries[write_q[PTR_W-1:0]] <= {in.tlast, top, in.tdata};
  always_ff @(posedge clk) if (pop) out_q <= entry_t'(entries[read_q[PTR_W-1:0]]);

  always_ff @(posedge clk) begin
    if (rst) begin
      write_q     <= '0;
      committed_q <= '0;
      read_q      <= '0;
      out_valid_q <= 1'b0;
      room_q      <= '0;
    end else begin
      write_q <= rollback ? committed_q : write_next;
      if (commit) committed_q <= write_next;
      if (pop) read_q <= read_q + 1'b1;
      if (!out_valid_q || out.tready) out_valid_q <= pop;
      room_q <= (PTR_W + 1)'(DEPTH) - (write_q - read_q);
    end
  end

  assign out.tvalid = out_valid_q;
  assign out.tdata  = out_q.data;
  assign out.tlast  = out_q.last;
  assign out.tuser  = 1'b0;
  for (genvar i = 0; i < BYTES; i++) begin : g_keep
    assign out.tkeep[i] = i == 0 || COUNT_W'(i) <= out_q.top;
  end

  assign room  = room_q;
  assign empty = write_q == read_q && !out_valid_q;

  always_ff @(posedge clk) if (!rst) assert (!(commit && rollback));
endmodule
