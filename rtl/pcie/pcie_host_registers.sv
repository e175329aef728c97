// SPDX-License-Identifier: Apache-2.0

// Requests of the host to the registers, as AXI4-Lite: one access for each dword, in the order of addresses. A dword of a write without an
// enabled byte is passed over; a read reads whole dwords, and nothing if it has no enabled byte. One write and one read at a time,
// independent of each other. A failed read makes its completion an abort (CA); what is left of the read then gets no completion. Latency:
// request to AW 2 cycles, piece to AR 1, R to the header of the completion 2, its payload 4.
module pcie_host_registers
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned AXIL_ADDR_W = 20
) (
    input  logic     clk,
    input  logic     rst,
    input  pcie_configs_t settings,
    stream_if.sink   request,             // host_request_t, a write
    axis_if.sink     data,
    output logic     written,             // pulse: a write is done
    output logic     write_error,         // with it
    stream_if.sink   piece,               // read_piece_t, of 128 bytes at most
    stream_if.source header,              // tlp_header_t, of completions
    axis_if.source   payload,
    output logic     read_error,          // pulse
    axil_if.master   registers,
    output logic     reads_idle           // no piece inside
);
  localparam int unsigned DWORDS = DATA_W / 32;
  localparam int unsigned LANE_W = $clog2(DWORDS);

  // ---- writes ----
  typedef enum logic [1:0] {
    W_IDLE,
    W_WORD,      // a dword waits to be written
    W_ASKED,
    W_DONE
  } write_state_e;

  write_state_e  w_state_q;
  host_request_t write_q;
  logic          w_last_q, aw_left_q, w_left_q, w_error_q;
  logic [3:0]    enables_q;            // of the dword
  logic          taken_q;              // the beat is, in this cycle: a register, so that no path leads from here to the store of the writes
  logic [LANE_W-1:0] lane_q;           // of the dword in the beat, which stays until all of it is written

  logic [DWORDS-1:0][31:0] dwords;
  assign dwords = data.tdata;
  host_request_t asked;
  assign asked = request.data;
  wire here     = data.tvalid && !taken_q;
  wire answered = w_state_q == W_ASKED && registers.bvalid;
  wire passed   = w_state_q == W_WORD && here && enables_q == '0;
  assign request.ready     = w_state_q == W_IDLE;
  assign registers.awvalid = w_state_q == W_ASKED && aw_left_q;
  assign registers.awaddr  = AXIL_ADDR_W'(write_q.addr);
  assign registers.wvalid  = w_state_q == W_ASKED && w_left_q;
  assign registers.wdata   = dwords[lane_q];
  assign registers.wstrb   = enables_q;
  assign registers.bready  = w_state_q == W_ASKED && !aw_left_q && !w_left_q;
  wire   next_dword        = (answered && registers.bready) || passed;
  assign data.tready       = taken_q;
  assign written           = w_state_q == W_DONE;
  assign write_error       = written && w_error_q;

  logic unused_ok;
  assign unused_ok = &{1'b0, data.tkeep, data.tlast, data.tuser};

  always_ff @(posedge clk) begin
    if (registers.awready) aw_left_q <= 1'b0;
    if (registers.wready) w_left_q <= 1'b0;
    unique case (w_state_q)
      W_IDLE: begin
        write_q   <= asked;
        enables_q <= asked.first_be;
        w_last_q  <= asked.dwords == 11'd1;
        w_error_q <= 1'b0;
        if (request.valid) w_state_q <= W_WORD;
      end
      W_WORD: begin
        aw_left_q <= 1'b1;
        w_left_q  <= 1'b1;
        if (here && enables_q != '0) w_state_q <= W_ASKED;
      end
      W_ASKED: if (answered && registers.bready) w_error_q <= w_error_q || registers.bresp[1];
      default: w_state_q <= W_IDLE;
    endcase
    taken_q <= !rst && next_dword && (w_last_q || lane_q == LANE_W'(DWORDS - 1));
    if (next_dword) begin
      lane_q         <= w_last_q ? '0 : lane_q + 1'b1;
      write_q.addr   <= write_q.addr + addr_t'(4);
      write_q.dwords <= write_q.dwords - 1'b1;
      enables_q      <= write_q.dwords == 11'd2 ? write_q.last_be : '1;
      w_last_q       <= write_q.dwords == 11'd2;
      w_state_q      <= w_last_q ? W_DONE : W_WORD;
    end
    if (rst) begin
      w_state_q <= W_IDLE;
      lane_q    <= '0;
    end
  end

  // ---- reads ----
  typedef enum logic [2:0] {
    R_IDLE,
    R_ASK,
    R_WAIT,
    R_NONE,      // zero as the data of a read of no byte
    R_ANSWER
  } read_state_e;

  read_state_e r_state_q;
  read_piece_t piece_q;
  logic [5:0]  left_q;
  addr_t       r_addr_q;
  logic        r_error_q, aborted_q, none_stored;
  axis_if #(.DATA_W(32)) read ();
  axis_if #(.DATA_W(32)) stored ();

  read_piece_t next;
  assign next = piece.data;
  wire r_last = left_q == 6'd1;
  wire got    = r_state_q == R_WAIT && registers.rvalid && read.tready;
  wire told   = r_state_q == R_ANSWER && header.ready;

  assign piece.ready       = r_state_q == R_IDLE;
  assign registers.arvalid = r_state_q == R_ASK;
  assign registers.araddr  = AXIL_ADDR_W'(r_addr_q);
  assign registers.rready  = r_state_q == R_WAIT && read.tready;
  assign header.valid      = r_state_q == R_ANSWER;
  assign header.data       = completion_of(piece_q, settings, r_error_q ? CPL_ABORT : CPL_SUCCESS);
  assign read_error        = told && r_error_q;

  // The store holds this piece beside those that are told: so it never waits for itself.
  assign read.tvalid = got || r_state_q == R_NONE;
  assign read.tdata  = r_state_q == R_NONE ? '0 : registers.rdata;
  assign read.tkeep  = '1;
  assign read.tlast  = r_last;
  assign read.tuser  = 1'b0;
  axis_store #(.DATA_W(32), .DEPTH(64)) store (
      .clk, .rst, .in(read), .commit(told && !r_error_q), .rollback(told && r_error_q), .out(stored), .room(), .empty(none_stored)
  );
  axis_widen #(.DATA_W(DATA_W), .WORD_W(32)) widen (.clk, .rst, .in(stored), .out(payload));

  assign reads_idle = r_state_q == R_IDLE && none_stored && !payload.tvalid;

  always_ff @(posedge clk) begin
    unique case (r_state_q)
      R_IDLE: begin
        piece_q   <= next;
        left_q    <= 6'(next.dwords);
        r_addr_q  <= next.addr;
        r_error_q <= 1'b0;
        if (piece.valid && !(aborted_q && !next.first)) r_state_q <= next.none ? R_NONE : R_ASK;
      end
      R_ASK: if (registers.arready) r_state_q <= R_WAIT;
      R_WAIT: if (got) begin
        left_q    <= left_q - 1'b1;
        r_addr_q  <= r_addr_q + addr_t'(4);
        r_error_q <= r_error_q || registers.rresp[1];
        r_state_q <= r_last ? R_ANSWER : R_ASK;
      end
      R_NONE: if (read.tready) r_state_q <= R_ANSWER;
      default: if (header.ready) begin
        aborted_q <= r_error_q;
        r_state_q <= R_IDLE;
      end
    endcase
    if (rst) begin
      r_state_q <= R_IDLE;
      aborted_q <= 1'b0;
    end
  end
endmodule
