// SPDX-License-Identifier: Apache-2.0

// Reads complete tiles out of the array and writes them to C: a packet for each row of a tile. COLS values a cycle, less
// when memory is slower.
module matmul_store
  import memory_pkg::*;
  import matmul_pkg::*;
#(
    parameter int unsigned ROWS  = 8,
    parameter int unsigned COLS  = 8,
    parameter int unsigned PANEL = 64
) (
    input  logic                    clk,
    input  logic                    rst,
    input  logic                    start,        // pulse
    input  shape_t                  shape,        // stable from `start` on
    input  logic                    complete,     // pulse: a tile is in the accumulators
    output logic                    bank_freed,   // pulse: and is read out
    output logic                    drain,
    output logic                    drain_bank,
    output logic [$clog2(ROWS)-1:0] drain_row,
    output slot_t                   drain_slot,
    input  logic [COLS-1:0][31:0]   drained,      // one cycle after `drain`
    stream_if.source                cmd,          // dma_cmd_t, with the first values of a row
    axis_if.source                  data,         // COLS values a beat
    output logic                    active        // rows left to write
);
  localparam int unsigned ROW_W = $clog2(ROWS);
  localparam int unsigned COL_W = $clog2(COLS);

  logic [31:0]      n_left_q, m_left_q, cols;
  addr_t            panel_q, row_q;
  logic [ROW_W-1:0] index_q;
  slot_t            slot_q, last_slot;
  logic             bank_q, cmd_sent_q, ready, ends_row, ends_tile, last_panel;
  logic [1:0]       tiles_q;        // complete
  logic [COL_W-1:0] tail;           // values - 1 in the last beat of a row

  assign last_panel = n_left_q <= PANEL;
  assign cols       = last_panel ? n_left_q : PANEL;
  assign tail       = COL_W'(cols - 1'b1);
  assign last_slot  = slot_t'((cols - 1'b1) >> COL_W);
  assign ends_row   = slot_q == last_slot;
  assign ends_tile  = ends_row && (index_q == ROW_W'(ROWS - 1) || m_left_q == 32'd1);

  assign ready     = active && tiles_q != '0;
  assign cmd.valid = ready && !cmd_sent_q;
  assign cmd.data  = '{addr: row_q, length: {cols[29:0], 2'b00}, default: '0};

  assign drain      = ready && (cmd_sent_q || cmd.ready) && (!data.tvalid || data.tready);
  assign drain_bank = bank_q;
  assign drain_row  = index_q;
  assign drain_slot = slot_q;
  assign bank_freed = drain && ends_tile;

  assign data.tdata = drained;
  assign data.tuser = 1'b0;

  always_ff @(posedge clk) begin
    if (start) begin
      n_left_q <= shape.n;
      m_left_q <= shape.m;
      panel_q  <= shape.c;
      row_q    <= shape.c;
      index_q  <= '0;
      slot_q   <= '0;
      bank_q   <= 1'b0;
    end else if (drain) begin
      slot_q <= ends_row ? '0 : slot_q + 1'b1;
      bank_q <= bank_q ^ ends_tile;
      if (ends_row) begin
        index_q  <= ends_tile ? '0 : index_q + 1'b1;
        m_left_q <= m_left_q == 32'd1 ? shape.m : m_left_q - 1'b1;
        row_q    <= row_q + addr_t'({shape.n, 2'b00});
        if (m_left_q == 32'd1) begin
          n_left_q <= n_left_q - PANEL;
          panel_q  <= panel_q + addr_t'(4 * PANEL);
          row_q    <= panel_q + addr_t'(4 * PANEL);
        end
      end
    end
    if (drain) begin
      data.tlast <= ends_row;
      for (int unsigned i = 0; i < COLS; i++) data.tkeep[i*4+:4] <= {4{!ends_row || COL_W'(i) <= tail}};
    end
    if (rst || start) begin
      active      <= !rst;
      tiles_q     <= '0;
      cmd_sent_q  <= 1'b0;
      data.tvalid <= 1'b0;
    end else begin
      if (drain && ends_row && m_left_q == 32'd1 && last_panel) active <= 1'b0;
      tiles_q    <= tiles_q + 2'(complete) - 2'(bank_freed);
      cmd_sent_q <= drain ? !ends_row : cmd_sent_q || (cmd.valid && cmd.ready);
      if (!data.tvalid || data.tready) data.tvalid <= drain;
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, shape.float32, shape.a, shape.b, shape.k};
endmodule
