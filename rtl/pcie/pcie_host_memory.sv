// SPDX-License-Identifier: Apache-2.0

// Requests of the host to the BARs that are memory in the device, as AXI4. Writes: one after the other, by axi_dma_write, with the byte
// enables. Reads: a piece is read by axi_dma_read and waits in its buffer until all of it is there, so that an error of memory makes its
// completion an abort (CA); what is left of the read then gets no completion. Latency: request to AW 2 cycles, to W 4; piece to AR 2, last
// beat of R to its completion 4, to its payload 5. One beat a cycle each way.
module pcie_host_memory
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W = 4,
    parameter int unsigned LARGEST = 512      // bytes of a piece
) (
    input  logic     clk,
    input  logic     rst,
    input  pcie_configs_t settings,
    stream_if.sink   request,                 // host_request_t, a write
    axis_if.sink     data,
    output logic     written,                 // pulse: a write is done, in order
    output logic     write_error,             // with it
    stream_if.sink   piece,                   // read_piece_t
    stream_if.source header,                  // tlp_header_t, of completions
    axis_if.source   payload,
    output logic     read_error,              // pulse
    axi_if.master    memory,
    output logic     reads_idle               // no piece inside
);
  localparam int unsigned PIECES = 16;        // under way
  // Room for the latency of memory, about 50 cycles, and for three pieces: one leaves, one comes, one is asked for.
  localparam int unsigned BEATS = 4 * LARGEST * 8 / DATA_W > 128 ? 4 * LARGEST * 8 / DATA_W : 128;

  if (LARGEST > 256 * DATA_W / 8) begin : g_bad
    $fatal(1, "a piece must be one burst");
  end

  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(ID_W)) unmasked ();
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(ID_W)) writer ();
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(ID_W)) reader ();
  axi_join join_ports (.reader, .writer, .out(memory));

  // ---- writes ----
  stream_if #(.T(host_request_t)) asking ();
  stream_if #(.T(host_request_t)) asked[2] ();
  stream_if #(.T(dma_cmd_t)) write_cmd ();
  stream_if #(.T(dma_done_t)) done ();
  host_request_t write;
  stream_skid #(.T(host_request_t)) cut_ready (.clk, .rst, .in(request), .out(asking));
  stream_fork #(.T(host_request_t), .N(2)) both (.clk, .rst, .in(asking), .out(asked));
  assign write           = asked[0].data;
  assign write_cmd.valid = asked[0].valid;
  assign write_cmd.data  = '{target: '0, key: '0, addr: write.addr, length: 32'(write.dwords) << 2};
  assign asked[0].ready  = write_cmd.ready;
  axi_dma_write #(.DATA_W(DATA_W), .ID_W(ID_W), .ALIGN(4)) dma_write (
      .clk, .rst, .cmd(write_cmd), .data, .mem(unmasked), .done, .idle()
  );
  pcie_write_mask #(.DATA_W(DATA_W)) write_mask (.clk, .rst, .mask(asked[1]), .in(unmasked), .out(writer));
  assign done.ready  = 1'b1;
  assign written     = done.valid;
  assign write_error = done.valid && done.data.error;

  // ---- reads ----
  stream_if #(.T(read_piece_t)) pieces[2] ();
  stream_if #(.T(read_piece_t)) kept ();
  stream_if #(.T(dma_cmd_t)) read_cmd ();
  stream_if #(.T(logic)) verdict_in ();
  stream_if #(.T(logic)) verdict ();          // of a piece of which all is there: memory reported an error
  stream_if #(.T(tlp_header_t)) answer ();
  stream_if #(.T(logic)) route ();
  axis_if #(.DATA_W(DATA_W)) read ();
  axis_if #(.DATA_W(DATA_W)) way[2] ();
  read_piece_t asked_piece;
  logic dma_idle, none_kept, none_answered;
  logic error_q;                              // in the piece that is coming
  logic aborted_q;                            // the read that the last piece belongs to got its last completion

  stream_fork #(.T(read_piece_t), .N(2)) both_pieces (.clk, .rst, .in(piece), .out(pieces));
  assign asked_piece     = pieces[0].data;
  assign read_cmd.valid  = pieces[0].valid;
  assign read_cmd.data   = '{target: '0, key: '0, addr: asked_piece.addr, length: 32'(asked_piece.dwords) << 2};
  assign pieces[0].ready = read_cmd.ready;
  axi_dma_read #(.DATA_W(DATA_W), .ID_W(ID_W), .BURST_BYTES(LARGEST), .BUFFER_BEATS(BEATS), .ALIGN(4)) dma_read (
      .clk, .rst, .cmd(read_cmd), .mem(reader), .data(read), .idle(dma_idle)
  );
  stream_fifo #(.T(read_piece_t), .DEPTH(PIECES)) notes (.clk, .rst, .in(pieces[1]), .out(kept), .empty(none_kept));

  // A piece lies in a block of LARGEST bytes, so it is one burst, and the buffer of axi_dma_read has all of it with the burst's last beat.
  // That beat is at the buffer's output 4 cycles later: not before is the header offered.
  logic [1:0] whole_q, bad_q;
  wire beat  = reader.rvalid && reader.rready;
  wire whole = beat && reader.rlast;
  wire bad   = error_q || reader.rresp[1];
  assign verdict_in.valid = whole_q[1];
  assign verdict_in.data  = bad_q[1];
  stream_fifo #(.T(logic), .DEPTH(2 * PIECES)) verdicts (.clk, .rst, .in(verdict_in), .out(verdict), .empty());
  always_ff @(posedge clk) begin
    bad_q <= {bad_q[0], bad};
    if (rst) begin
      error_q <= 1'b0;
      whole_q <= '0;
    end else begin
      if (beat) error_q <= bad && !whole;
      whole_q <= {whole_q[0], whole};
    end
  end

  wire skip = aborted_q && !kept.data.first;
  wire goes = verdict.valid && kept.valid && answer.ready && route.ready;
  assign verdict.ready = goes;
  assign kept.ready    = goes;
  assign answer.valid  = goes && !skip;
  assign answer.data   = completion_of(kept.data, settings, verdict.data ? CPL_ABORT : CPL_SUCCESS);
  assign route.valid   = goes;
  assign route.data    = skip || verdict.data;
  assign read_error    = answer.valid && verdict.data;
  always_ff @(posedge clk) begin
    if (rst) aborted_q <= 1'b0;
    else if (goes) aborted_q <= skip || verdict.data;
  end
  stream_fifo #(.T(tlp_header_t), .DEPTH(PIECES)) headers (.clk, .rst, .in(answer), .out(header), .empty(none_answered));

  // Data of what is not answered goes nowhere.
  axis_steer #(.DATA_W(DATA_W), .N(2), .DEPTH(PIECES)) steer (.clk, .rst, .in(read), .route, .out(way), .empty());
  assign payload.tvalid = way[0].tvalid;
  assign payload.tdata  = way[0].tdata;
  assign payload.tkeep  = way[0].tkeep;
  assign payload.tlast  = way[0].tlast;
  assign payload.tuser  = 1'b0;
  assign way[0].tready  = payload.tready;
  assign way[1].tready  = 1'b1;
  assign reads_idle     = dma_idle && none_kept && none_answered;

  // Verdicts have room, and are of a piece.
  always_ff @(posedge clk) if (!rst) begin
    assert (!verdict_in.valid || verdict_in.ready);
    assert (!verdict.valid || kept.valid);
  end
endmodule
