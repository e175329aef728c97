// SPDX-License-Identifier: Apache-2.0

// Reads B: for each panel of PANEL columns, row by row; once for the panel if `keep` (the buffer holds it), else again for
// each tile of ROWS rows of C. One request a cycle; stops while the buffer has no room for a row (`freed`: rows used up in
// this cycle).
module matmul_fetch_b
  import memory_pkg::*;
  import matmul_pkg::*;
#(
    parameter int unsigned ROWS   = 8,
    parameter int unsigned PANEL  = 64,
    parameter int unsigned BUFFER = 512     // rows; power of two
) (
    input  logic                    clk,
    input  logic                    rst,
    input  logic                    start,   // pulse
    input  shape_t                  shape,   // stable from `start` on
    input  logic                    keep,
    input  logic [$clog2(BUFFER):0] freed,
    stream_if.source                fetch    // fetch_t
);
  localparam int unsigned COUNT_W = $clog2(BUFFER) + 1;

  logic               active_q, last_row, last_tile, last_panel, taken;
  logic [COUNT_W-1:0] used_q;
  logic [31:0]        n_left_q, m_left_q, k_left_q;
  addr_t              panel_q, row_q, next_panel;

  assign last_row   = k_left_q == 32'd1;
  assign last_tile  = keep || m_left_q <= ROWS;
  assign last_panel = n_left_q <= PANEL;
  assign next_panel = panel_q + addr_t'(4 * PANEL);
  assign taken      = fetch.valid && fetch.ready;

  assign fetch.valid = active_q && !used_q[COUNT_W-1];
  always_comb begin
    fetch.data            = '0;
    fetch.data.cmd.addr   = row_q;
    fetch.data.cmd.length = last_panel ? {n_left_q[29:0], 2'b00} : 32'(4 * PANEL);
    fetch.data.place      = TO_B;
    fetch.data.row        = '0;
    fetch.data.last       = last_row;
  end

  always_ff @(posedge clk) begin
    if (start) begin
      n_left_q <= shape.n;
      m_left_q <= shape.m;
      k_left_q <= shape.k;
      panel_q  <= shape.b;
      row_q    <= shape.b;
    end else if (taken) begin
      if (!last_row) begin
        k_left_q <= k_left_q - 1'b1;
        row_q    <= row_q + addr_t'({shape.n, 2'b00});
      end else begin
        k_left_q <= shape.k;
        m_left_q <= last_tile ? shape.m : m_left_q - ROWS;
        n_left_q <= last_tile ? n_left_q - PANEL : n_left_q;
        panel_q  <= last_tile ? next_panel : panel_q;
        row_q    <= last_tile ? next_panel : panel_q;
      end
    end
    if (rst) begin
      active_q <= 1'b0;
      used_q   <= '0;
    end else begin
      if (start) active_q <= 1'b1;
      else if (taken && last_row && last_tile && last_panel) active_q <= 1'b0;
      used_q <= used_q + COUNT_W'(taken) - freed;
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, shape.float32, shape.a, shape.c};
endmodule
