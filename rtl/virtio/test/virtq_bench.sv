// SPDX-License-Identifier: Apache-2.0

// The engine with its writer on one port of memory. Each client's last segment of a chain settles it, unless `hold`.
module virtq_bench
  import memory_pkg::*;
  import virtio_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned QUEUES = 4
) (
    input  logic              clk,
    input  logic              rst,
    input  virtq_setup_t      setup,
    input  logic [QUEUES-1:0] enable,
    input  logic              event_idx,
    input  logic              indirect,
    input  logic              halt,
    stream_if.sink            notify,
    stream_if.sink            pull[2],
    stream_if.source          segment[2],
    input  virtq_settle_t     rewind,
    output logic [QUEUES-1:0] ready,
    output logic [QUEUES-1:0] more,
    stream_if.sink            used[2],
    axi_if.master             mem,
    stream_if.source          interrupt,
    output virtq_fail_t       fault,
    output logic [QUEUES-1:0] broken,
    output logic              idle
);
  axi_if #(.DATA_W(DATA_W)) reads ();
  axi_if #(.DATA_W(DATA_W)) writes ();
  stream_if #(.T(dma_cmd_t)) cmd ();
  stream_if #(.T(dma_done_t)) done ();
  axis_if #(.DATA_W(DATA_W)) data ();
  stream_if #(.T(virtq_segment_t)) given[2] ();
  stream_if #(.T(ring_read_t)) other_read ();
  virtq_settle_t settle[2];
  virtq_fail_t   client_fail[3];
  logic          engine_idle, writer_idle;

  assign client_fail[2] = '0;
  assign other_read.valid = 1'b0;
  assign other_read.data  = '0;
  for (genvar i = 0; i < 2; i++) begin : g_client
    assign segment[i].valid = given[i].valid;
    assign segment[i].data  = given[i].data;
    assign given[i].ready   = segment[i].ready;
    assign client_fail[i]   = '0;
    assign settle[i]        = rewind.valid && rewind.vq[0] == (i == 1) ? rewind : '{
        valid: given[i].valid && given[i].ready && given[i].data.last && !rewind.keep, vq: given[i].data.vq, keep: 1'b1
    };
  end

  virtq_engine #(.DATA_W(DATA_W), .QUEUES(QUEUES)) engine (
      .clk, .rst, .setup, .enable, .event_idx, .indirect, .halt, .notify, .pull, .segment(given), .settle, .ready, .more, .used,
      .client_fail, .mem(reads), .cmd, .data, .done, .interrupt, .fault, .broken, .other_read, .reply(),
      .reply_data(), .idle(engine_idle)
  );
  axi_dma_write #(.DATA_W(DATA_W), .OUTSTANDING(64)) writer (.clk, .rst, .cmd, .data, .mem(writes), .done, .idle(writer_idle));
  axi_join join_ (.reader(reads), .writer(writes), .out(mem));
  assign idle = engine_idle && writer_idle;
endmodule
