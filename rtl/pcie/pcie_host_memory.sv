// SPDX-License-Identifier: Apache-2.0

// Requests of the host to the BARs that are memory in the device, as AXI4. Writes: one after the other, by axi_dma_write, with the byte
// enables. Reads: a piece is read by axi_dma_read and stored until all of it is there, so that an error of memory makes its completion an
// abort (CA); what is left of the read then gets no completion. Latency: request to AW 2 cycles, to W 4; piece to AR 2, last beat of R to
// its completion 5. One beat a cycle each way.
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
    input  pcie_id_t id,
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
  // Room for the latency of memory, and for two pieces.
  localparam int unsigned BEATS = 2 * LARGEST * 8 / DATA_W > 128 ? 2 * LARGEST * 8 / DATA_W : 128;

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
  stream_if #(.T(tlp_header_t)) answer ();
  axis_if #(.DATA_W(DATA_W)) read ();
  axis_if #(.DATA_W(DATA_W)) store_in ();
  read_piece_t asked_piece;
  logic dma_idle, none_kept, none_stored, none_answered;
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

  // The verdict is with the last beat: then there must be room for the header.
  wire move = store_in.tvalid && store_in.tready;
  wire ends = move && read.tlast;
  wire skip = aborted_q && !kept.data.first;
  wire open = kept.valid && (!read.tlast || answer.ready);
  assign store_in.tvalid = read.tvalid && open;
  assign store_in.tdata  = read.tdata;
  assign store_in.tkeep  = read.tkeep;
  assign store_in.tlast  = read.tlast;
  assign store_in.tuser  = 1'b0;
  assign read.tready     = store_in.tready && open;
  assign kept.ready      = ends;
  assign answer.valid    = ends && !skip;
  assign answer.data     = completion_of(kept.data, id, read.tuser ? CPL_ABORT : CPL_SUCCESS);
  assign read_error      = ends && !skip && read.tuser;
  always_ff @(posedge clk) begin
    if (rst) aborted_q <= 1'b0;
    else if (ends) aborted_q <= skip || read.tuser;
  end
  axis_store #(.DATA_W(DATA_W), .DEPTH(BEATS)) store (
      .clk, .rst, .in(store_in), .commit(ends && !skip && !read.tuser), .rollback(ends && (skip || read.tuser)), .out(payload), .room(),
      .empty(none_stored)
  );
  stream_fifo #(.T(tlp_header_t), .DEPTH(PIECES)) headers (.clk, .rst, .in(answer), .out(header), .empty(none_answered));
  assign reads_idle = dma_idle && none_kept && none_stored && none_answered;
endmodule
