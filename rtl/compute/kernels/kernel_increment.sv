// SPDX-License-Identifier: Apache-2.0

// Function 1: adds one to every byte (modulo 256) of every region of the job, internal ones too, as the software NAA of
// NAAICE does. Function 3: does nothing, at once.
// Reads, adds and writes one beat a cycle; done 2 cycles after the last write is visible, or after the last region of an
// empty call. RESULT_MEMORY_ERROR if memory answered anything with an error.
module kernel_increment
  import memory_pkg::*;
  import compute_pkg::*;
  import kernel_increment_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W   = 4,
    parameter int unsigned MOVE_W = 31    // a transfer has at most 2^MOVE_W bytes: a longer region is several
) (
    input  logic             clk,
    input  logic             rst,
    output kernel_identity_t identity,
    axil_if.slave            ctrl,
    stream_if.sink           job,
    stream_if.source         done,
    axi_if.master            mem,
    axis_if.sink             rx,
    axis_if.source           tx,
    stream_if.source         wqe,
    stream_if.sink           cqe,
    stream_if.source         connect,
    stream_if.sink           conn,
    axil_if.master           bus,
    axis_if.source           msg_tx,
    axis_if.sink             msg_rx
);
  localparam int unsigned OPEN_W = 8;

  assign identity = IDENTITY;

  axis_if #(.DATA_W(DATA_W)) from (), sum (), to ();

  // ---- transfers: each read and written by the same command ----
  typedef struct packed {
    dma_cmd_t bytes;
    logic     empty;
  } transfer_t;
  typedef logic [SIZE_W-MOVE_W-1:0] part_t;   // of a region

  stream_if #(.T(transfer_t)) parts ();
  stream_if #(.T(transfer_t)) work[2] ();   // to read, to write
  stream_if #(.T(transfer_t)) to_read ();
  stream_if #(.T(transfer_t)) to_write ();
  stream_if #(.T(dma_cmd_t)) read_cmd ();
  stream_if #(.T(dma_cmd_t)) write_cmd ();
  stream_if #(.T(dma_done_t)) written ();
  logic                 works, taken, last_q, error_q;
  logic [OPEN_W-1:0]    open_q;       // transfers not written yet
  tag_t                 tag_q;
  part_t                part_q;       // next one of the region

  assign works         = job.data.function_code == INCREMENT;
  wire region_size_t at = {part_q, MOVE_W'(0)};
  wire region_size_t left = job.data.size - at;
  wire               more = left > region_size_t'(1) << MOVE_W;   // transfers follow for this region
  assign parts.valid   = job.valid && works && !last_q && open_q != '1;
  assign parts.data    = '{
      bytes: '{addr: job.data.addr + addr_t'(at), length: more ? 32'd1 << MOVE_W : 32'(left), default: '0},
      empty: job.data.size == '0
  };
  assign job.ready     = !last_q && (!works || (parts.ready && open_q != '1 && !more));
  assign taken         = job.valid && job.ready;
  stream_fork #(.T(transfer_t), .N(2)) both (.clk, .rst, .in(parts), .out(work));
  stream_slice #(.T(transfer_t)) read_slice (.clk, .rst, .in(work[0]), .out(to_read));
  stream_slice #(.T(transfer_t)) write_slice (.clk, .rst, .in(work[1]), .out(to_write));

  assign read_cmd.valid = to_read.valid;
  assign read_cmd.data  = to_read.data.bytes;
  assign to_read.ready  = read_cmd.ready;
  // A write is announced to memory when bytes have begun to come.
  assign write_cmd.valid = to_write.valid && (from.tvalid || to_write.data.empty);
  assign write_cmd.data  = to_write.data.bytes;
  assign to_write.ready  = write_cmd.ready && (from.tvalid || to_write.data.empty);

  assign written.ready = 1'b1;
  assign done.valid    = last_q && open_q == '0;
  assign done.data     = '{tag: tag_q, code: error_q ? RESULT_MEMORY_ERROR : RESULT_SUCCESS};

  always_ff @(posedge clk) begin
    if (taken) tag_q <= job.data.tag;
    if (rst) begin
      last_q  <= 1'b0;
      open_q  <= '0;
      error_q <= 1'b0;
      part_q  <= '0;
    end else begin
      if (parts.valid && parts.ready) part_q <= more ? part_q + 1'b1 : '0;
      last_q  <= done.valid ? !done.ready : last_q || (taken && job.data.last);
      open_q  <= open_q + OPEN_W'(parts.valid && parts.ready) - OPEN_W'(written.valid);
      error_q <= !(done.valid && done.ready)
                 && (error_q || (written.valid && written.data.error) || (from.tvalid && from.tready && from.tlast && from.tuser));
    end
  end

  // ---- bytes ----
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(ID_W)) read_mem (), write_mem ();
  logic read_idle, write_idle;

  axi_dma_read #(.DATA_W(DATA_W), .ID_W(ID_W)) reader (.clk, .rst, .cmd(read_cmd), .mem(read_mem), .data(from), .idle(read_idle));
  axi_dma_write #(.DATA_W(DATA_W), .ID_W(ID_W)) writer (
      .clk, .rst, .cmd(write_cmd), .data(to), .mem(write_mem), .done(written), .idle(write_idle)
  );
  axi_join port (.reader(read_mem), .writer(write_mem), .out(mem));

  function automatic logic [DATA_W-1:0] plus_one(logic [DATA_W-1:0] bytes);
    for (int unsigned i = 0; i < DATA_W / 8; i++) plus_one[i*8+:8] = bytes[i*8+:8] + 8'd1;
  endfunction

  // Registered, so that `tready` of the writer is not combinational to the reader.
  assign sum.tvalid  = from.tvalid;
  assign sum.tdata   = plus_one(from.tdata);
  assign sum.tkeep   = from.tkeep;
  assign sum.tlast   = from.tlast;
  assign sum.tuser   = from.tuser;
  assign from.tready = sum.tready;
  axis_slice #(.DATA_W(DATA_W)) sums_slice (.clk, .rst, .in(sum), .out(to));

  kernel_no_registers no_registers (.clk, .rst, .ctrl);
  kernel_no_network no_network (.rx, .tx, .wqe, .cqe, .connect, .conn, .msg_tx, .msg_rx);
  kernel_no_bus no_bus (.bus);

  logic unused_ok;
  assign unused_ok = &{1'b0, job.data.user, job.data.input_, job.data.output_, job.data.internal_, read_idle, write_idle};
endmodule
