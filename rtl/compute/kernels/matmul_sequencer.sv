// SPDX-License-Identifier: Apache-2.0

// Drives the array: for each panel of C's columns, for each tile of ROWS rows, for each k, SLOTS steps. One step a cycle,
// as long as A, B and a bank of accumulators are there; otherwise it waits between two values of k.
module matmul_sequencer
  import matmul_pkg::*;
#(
    parameter int unsigned ROWS    = 8,
    parameter int unsigned PANEL   = 64,
    parameter int unsigned CHUNK_K = 256,
    parameter int unsigned BUFFER  = 512
) (
    input  logic                       clk,
    input  logic                       rst,
    input  logic                       start,        // pulse
    input  shape_t                     shape,        // stable from `start` on
    input  logic                       keep,         // B's panel stays in the buffer for all its tiles
    input  logic                       a_loaded,     // pulses, as matmul_buffers gives them
    input  logic                       b_loaded,
    output logic                       a_freed,      // pulse: a chunk of A is used up
    output logic [$clog2(BUFFER):0]    b_freed,      // rows of B used up in this cycle
    input  logic                       bank_freed,   // pulse: a bank of accumulators was read out
    output step_t                      step,         // with the reads of the buffers below
    output logic                       read_half,
    output logic [$clog2(CHUNK_K)-1:0] read_k,
    output logic [$clog2(BUFFER)-1:0]  read_row
);
  localparam int unsigned K_W = $clog2(CHUNK_K);
  localparam int unsigned ROW_W = $clog2(BUFFER);
  typedef logic [ROW_W:0] rows_t;

  logic         active_q, first_q, half_q, bank_q, go, ends_k, last_k, last_chunk_k, last_tile, last_panel;
  slot_t        slot_q;
  logic [K_W-1:0] k_q;
  logic [1:0]   chunks_q, banks_q;           // A chunks there; banks free
  rows_t        ahead_q;                     // B rows there, from read_row on
  logic [ROW_W-1:0] row_q, panel_row_q;
  logic [31:0]  k_left_q, m_left_q, n_left_q;
  rows_t        rewind;

  assign go           = active_q && chunks_q != '0 && ahead_q != '0 && (banks_q != '0 || !first_q || slot_q != '0);
  assign ends_k       = go && slot_q == '1;
  assign last_k       = k_left_q == 32'd1;
  assign last_chunk_k = last_k || k_q == K_W'(CHUNK_K - 1);
  assign last_tile    = m_left_q <= ROWS;
  assign last_panel   = n_left_q <= PANEL;

  assign a_freed = ends_k && last_chunk_k;
  // Kept rows are given up with their last tile, all together; other ones each when it is used.
  assign rewind  = keep && !last_tile ? rows_t'(shape.k) : '0;
  always_comb begin
    b_freed = '0;
    if (ends_k) b_freed = !keep ? rows_t'(1) : last_k && last_tile ? rows_t'(shape.k) : '0;
  end

  always_comb begin
    step.valid = go;
    step.first = first_q;
    step.last  = last_k && slot_q == '1;
    step.bank  = bank_q;
    step.slot  = slot_q;
  end
  assign read_half = half_q;
  assign read_k    = k_q;
  assign read_row  = row_q;

  always_ff @(posedge clk) begin
    if (start) begin
      n_left_q    <= shape.n;
      m_left_q    <= shape.m;
      k_left_q    <= shape.k;
      k_q         <= '0;
      slot_q      <= '0;
      first_q     <= 1'b1;
      half_q      <= 1'b0;
      bank_q      <= 1'b0;
      row_q       <= '0;
      panel_row_q <= '0;
    end else if (go) begin
      slot_q <= slot_q + 1'b1;
      if (ends_k) begin
        k_q     <= last_chunk_k ? '0 : k_q + 1'b1;
        half_q  <= half_q ^ last_chunk_k;
        first_q <= last_k;
        row_q   <= last_k && keep && !last_tile ? panel_row_q : row_q + 1'b1;
        if (!last_k) begin
          k_left_q <= k_left_q - 1'b1;
        end else begin
          k_left_q <= shape.k;
          bank_q   <= !bank_q;
          m_left_q <= last_tile ? shape.m : m_left_q - ROWS;
          if (last_tile) begin
            n_left_q    <= n_left_q - PANEL;
            panel_row_q <= row_q + 1'b1;
          end
        end
      end
    end
    if (rst || start) begin
      active_q <= !rst;
      chunks_q <= '0;
      ahead_q  <= '0;
      banks_q  <= 2'd2;
    end else begin
      if (ends_k && last_k && last_tile && last_panel) active_q <= 1'b0;
      chunks_q <= chunks_q + 2'(a_loaded) - 2'(a_freed);
      ahead_q  <= ahead_q + rows_t'(b_loaded) - rows_t'(ends_k) + (ends_k && last_k ? rewind : '0);
      banks_q  <= banks_q + 2'(bank_freed) - 2'(go && first_q && slot_q == '0);
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, shape.float32, shape.a, shape.b, shape.c};
endmodule
