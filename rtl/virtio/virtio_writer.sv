// SPDX-License-Identifier: Apache-2.0

// N clients of one axi_dma_write: commands in turn, each with its packet, and each client's outcomes back to it. All must take their
// outcomes at once. Latency 2 cycles more than the DMA engine's; one beat a cycle.
module virtio_writer
  import memory_pkg::*;
#(
    parameter int unsigned N           = 2,
    parameter int unsigned DATA_W      = 512,
    parameter int unsigned ID_W        = 4,
    parameter int unsigned OUTSTANDING = 64
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.sink   cmd[N],    // dma_cmd_t
    axis_if.sink     data[N],
    stream_if.source done[N],   // dma_done_t
    axi_if.master    mem,       // write channels
    output logic     idle
);
  typedef logic [$clog2(N)-1:0] client_t;
  typedef struct packed {
    client_t  from;
    dma_cmd_t cmd;
  } named_t;

  stream_if #(.T(named_t)) named[N] ();
  stream_if #(.T(named_t)) chosen ();
  stream_if #(.T(named_t)) part[3] ();
  stream_if #(.T(dma_cmd_t)) dma_cmd ();
  stream_if #(.T(dma_done_t)) dma_done ();
  stream_if #(.T(client_t)) turn_in ();
  stream_if #(.T(client_t)) turn ();
  stream_if #(.T(client_t)) owner_in ();
  stream_if #(.T(client_t)) owner ();
  axis_if #(.DATA_W(DATA_W)) dma_data ();
  logic dma_idle;

  stream_arbiter #(.T(named_t), .N(N)) arbiter (.clk, .rst, .in(named), .last('1), .out(chosen));
  stream_fork #(.T(named_t), .N(3)) parts (.clk, .rst, .in(chosen), .out(part));

  assign dma_cmd.valid  = part[0].valid;
  assign dma_cmd.data   = part[0].data.cmd;
  assign part[0].ready  = dma_cmd.ready;
  assign turn_in.valid  = part[1].valid;
  assign turn_in.data   = part[1].data.from;
  assign part[1].ready  = turn_in.ready;
  assign owner_in.valid = part[2].valid;
  assign owner_in.data  = part[2].data.from;
  assign part[2].ready  = owner_in.ready;

  stream_fifo #(.T(client_t), .DEPTH(16)) turns (.clk, .rst, .in(turn_in), .out(turn), .empty());
  stream_fifo #(.T(client_t), .DEPTH(2 * OUTSTANDING), .BLOCK_RAM(1'b0)) owners (
      .clk, .rst, .in(owner_in), .out(owner), .empty()
  );

  axi_dma_write #(.DATA_W(DATA_W), .ID_W(ID_W), .OUTSTANDING(OUTSTANDING)) dma (
      .clk, .rst, .cmd(dma_cmd), .data(dma_data), .mem, .done(dma_done), .idle(dma_idle)
  );

  logic [N-1:0]        beat, taken, tlast;
  logic [DATA_W-1:0]   tdata[N];
  logic [DATA_W/8-1:0] tkeep[N];
  for (genvar i = 0; i < N; i++) begin : g_client
    assign named[i].valid = cmd[i].valid;
    assign named[i].data  = '{from: client_t'(i), cmd: cmd[i].data};
    assign cmd[i].ready   = named[i].ready;
    assign beat[i]        = data[i].tvalid;
    assign tdata[i]       = data[i].tdata;
    assign tkeep[i]       = data[i].tkeep;
    assign tlast[i]       = data[i].tlast;
    assign data[i].tready = turn.valid && turn.data == client_t'(i) && dma_data.tready;
    assign done[i].valid  = dma_done.valid && owner.valid && owner.data == client_t'(i);
    assign done[i].data   = dma_done.data;
    assign taken[i]       = done[i].valid && done[i].ready;
  end
  assign dma_data.tvalid = turn.valid && beat[turn.data];
  assign dma_data.tdata  = tdata[turn.data];
  assign dma_data.tkeep  = tkeep[turn.data];
  assign dma_data.tlast  = tlast[turn.data];
  assign dma_data.tuser  = 1'b0;
  assign turn.ready      = dma_data.tvalid && dma_data.tready && dma_data.tlast;
  assign dma_done.ready  = |taken;
  assign owner.ready     = |taken;
  assign idle            = dma_idle && !chosen.valid && !owner.valid;
endmodule
