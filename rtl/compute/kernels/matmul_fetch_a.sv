// SPDX-License-Identifier: Apache-2.0

// Reads A: for each panel of C's columns, for each tile of ROWS rows, chunk by chunk of CHUNK_K values of k, row by row.
// One request a cycle; stops while both halves of the A buffer are taken (`freed`: pulse, one chunk is used up).
module matmul_fetch_a
  import memory_pkg::*;
  import matmul_pkg::*;
#(
    parameter int unsigned ROWS    = 8,
    parameter int unsigned PANEL   = 64,    // columns of C that are worked on together
    parameter int unsigned CHUNK_K = 256
) (
    input  logic     clk,
    input  logic     rst,
    input  logic     start,      // pulse
    input  shape_t   shape,      // stable from `start` on
    input  logic     freed,
    stream_if.source fetch       // fetch_t
);
  localparam int unsigned ROW_W = $clog2(ROWS);

  logic             active_q, last_row, last_chunk, last_tile, last_panel, taken;
  logic [1:0]       chunks_q;     // in the buffer or on their way
  logic [31:0]      n_left_q, m_left_q, k_left_q;
  addr_t            tile_q, chunk_q, row_q, next_tile, row_bytes;
  logic [ROW_W-1:0] index_q;

  assign row_bytes  = addr_t'({shape.k, 2'b00});
  assign next_tile  = tile_q + addr_t'(row_bytes << ROW_W);
  assign last_row   = index_q == ROW_W'(ROWS - 1) || 32'(index_q) + 1 == m_left_q;
  assign last_chunk = k_left_q <= CHUNK_K;
  assign last_tile  = m_left_q <= ROWS;
  assign last_panel = n_left_q <= PANEL;
  assign taken      = fetch.valid && fetch.ready;

  assign fetch.valid = active_q && chunks_q != 2'd2;
  always_comb begin
    fetch.data            = '0;
    fetch.data.cmd.addr   = row_q;
    fetch.data.cmd.length = last_chunk ? {k_left_q[29:0], 2'b00} : 32'(4 * CHUNK_K);
    fetch.data.place      = TO_A;
    fetch.data.row        = 4'(index_q);
    fetch.data.last       = last_row;
  end

  always_ff @(posedge clk) begin
    if (start) begin
      n_left_q <= shape.n;
      m_left_q <= shape.m;
      k_left_q <= shape.k;
      tile_q   <= shape.a;
      chunk_q  <= shape.a;
      row_q    <= shape.a;
      index_q  <= '0;
    end else if (taken) begin
      index_q <= last_row ? '0 : index_q + 1'b1;
      if (!last_row) begin
        row_q <= row_q + row_bytes;
      end else if (!last_chunk) begin
        k_left_q <= k_left_q - CHUNK_K;
        chunk_q  <= chunk_q + addr_t'(4 * CHUNK_K);
        row_q    <= chunk_q + addr_t'(4 * CHUNK_K);
      end else begin
        k_left_q <= shape.k;
        m_left_q <= last_tile ? shape.m : m_left_q - ROWS;
        n_left_q <= last_tile ? n_left_q - PANEL : n_left_q;
        tile_q   <= last_tile ? shape.a : next_tile;
        chunk_q  <= last_tile ? shape.a : next_tile;
        row_q    <= last_tile ? shape.a : next_tile;
      end
    end
    if (rst) begin
      active_q <= 1'b0;
      chunks_q <= '0;
    end else begin
      if (start) active_q <= 1'b1;
      else if (taken && last_row && last_chunk && last_tile && last_panel) active_q <= 1'b0;
      chunks_q <= chunks_q + 2'(taken && last_row) - 2'(freed);
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, shape.float32, shape.b, shape.c};
endmodule
