// SPDX-License-Identifier: Apache-2.0

// Split virtqueues (virtio 1.2, 2.7) of a device with two clients: one for the even queues, whose buffers are written, one for the
// odd ones, whose buffers are read. A client pulls chains that are fetched ahead, up to 128 for each queue, as segments, and gives
// them back on `used`.
//
//   notify ─► virtq_avail ─ entries ─► virtq_prefetch ─ descriptors ─► virtq_chains (one a client) ─► segments
//                   └ index                                                         used ─► virtq_used ─► interrupt
//                              all reads: virtq_reader            all writes: the user's axi_dma_write
//
// A queue that is not as the standard has it stops for good: no chain of it is fetched, given out or back, `broken` says so,
// `fault` why. The others go on. While `halt` is high nothing begins; when `idle` is high as well nothing is under way, and `rst`
// may clear everything. Latency with memory of L cycles: notification to segment 3 L + 43; `used` to interrupt 3 L + 27.
module virtq_engine
  import memory_pkg::*;
  import virtio_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W   = 4,
    parameter int unsigned QUEUES = 4,
    parameter int unsigned MIXED  = MAX_QUEUES  // number of a queue, an odd one, whose buffers are read and written; MAX_QUEUES: none
) (
    input  logic              clk,
    input  logic              rst,
    input  virtq_setup_t      setup,          // of a queue that is not enabled
    input  logic [QUEUES-1:0] enable,
    input  logic              event_idx,      // VIRTIO_F_EVENT_IDX is negotiated,
    input  logic              indirect,       // VIRTIO_F_INDIRECT_DESC
    input  logic              halt,
    stream_if.sink            notify,         // queue_t
    stream_if.sink            pull[2],        // queue_t, of each client: a queue that is ready
    stream_if.source          segment[2],     // virtq_segment_t
    input  virtq_settle_t     settle[2],
    output logic [QUEUES-1:0] ready,          // a chain of the queue can be pulled
    output logic [QUEUES-1:0] more,           // a chain of the queue will be ready without a further notification
    stream_if.sink            used[2],        // virtq_used_t, of each client
    input  virtq_fail_t       client_fail[3],
    axi_if.master             mem,            // read channels
    stream_if.source          cmd,            // dma_cmd_t: ring writes
    axis_if.source            data,           // one beat for each
    stream_if.sink            done,           // dma_done_t
    stream_if.source          interrupt,      // 16 bits: the vector
    output virtq_fail_t       fault,          // pulse: a queue has stopped
    output logic [QUEUES-1:0] broken,
    stream_if.sink            other_read,     // ring_read_t: of what else is in host memory,
    output ring_reply_t       reply,          // whose answers are among these, by their tag,
    output virtq_desc_t [BLOCK-1:0] reply_data,
    output logic              idle
);

  typedef logic [$clog2(QUEUES)-1:0] index_t;
  logic [QUEUES-1:0] live, known;
  assign live = enable & ~broken & {QUEUES{!halt}};

  // Descriptors are most of what is read: the others take turns before.
  localparam int unsigned SELDOM = 5;
  stream_if #(.T(ring_read_t)) read[3] ();
  stream_if #(.T(ring_read_t)) seldom[SELDOM] ();
  stream_if #(.T(ring_read_t)) prefetch_read[2] ();
  stream_if #(.T(virtq_arm_t)) arm ();
  desc_length_t [BLOCK-1:0] reply_lengths;
  logic                    armed, unpacked, start_write, block_write;
  chain_start_t            start;
  slot_t [QUEUES-1:0]      reserved;
  slot_t [QUEUES-1:0]      freed;
  slot_t [QUEUES-1:0]      client_freed[2];
  logic [QUEUES-1:0]       client_ready[2];
  logic [QUEUES-1:0]       client_fetching[2];
  logic                    reader_idle, avail_idle, prefetch_idle, used_idle;
  logic [1:0]              chains_idle;

  virtq_reader #(.DATA_W(DATA_W), .ID_W(ID_W), .N(3)) reader (
      .clk, .rst, .request(read), .mem, .reply, .reply_data, .reply_lengths, .idle(reader_idle)
  );
  stream_arbiter #(.T(ring_read_t), .N(SELDOM)) turns (.clk, .rst, .in(seldom), .last('1), .out(read[2]));

  localparam int unsigned FAILS = 7;
  virtq_fail_t fails[FAILS];
  virtq_avail #(.QUEUES(QUEUES)) avail (
      .clk, .rst, .setup, .event_idx, .live, .notify, .read(seldom[0]), .reply, .reply_index(reply_data[0].addr[15:0]), .arm, .armed,
      .freed, .unpacked, .reserved, .more(known), .fail(fails[0]), .idle(avail_idle)
  );

  virtq_prefetch prefetch (
      .clk, .rst, .setup, .indirect, .reply, .reply_data, .reply_lengths, .read(prefetch_read), .unpacked,
      .start_write, .start, .block_write, .idle(prefetch_idle)
  );

  for (genvar i = 0; i < 2; i++) begin : g_client
    assign read[i].valid          = prefetch_read[i].valid;
    assign read[i].data           = prefetch_read[i].data;
    assign prefetch_read[i].ready = read[i].ready;

    virtq_chains #(.QUEUES(QUEUES), .CLIENT(i == 1), .WRITABLE(i == 0), .MIXED(MIXED)) chains (
        .clk, .rst, .setup, .indirect, .reply, .reply_data, .reply_lengths, .start_write, .start, .block_write, .reserved, .pull(pull[i]), .settle(settle[i]), .segment(segment[i]), .read(seldom[1+i]),
        .ready(client_ready[i]), .fetching(client_fetching[i]), .freed(client_freed[i]), .fail(fails[1+i]), .idle(chains_idle[i])
    );
  end
  assign seldom[4].valid  = other_read.valid;
  assign seldom[4].data   = other_read.data;
  assign other_read.ready = seldom[4].ready;

  for (genvar i = 0; i < 3; i++) begin : g_fail
    assign fails[4+i] = client_fail[i];
  end
  assign ready = (client_ready[0] | client_ready[1]) & live;
  assign more  = (client_fetching[0] | client_fetching[1] | known) & live;
  assign freed = client_freed[0] | client_freed[1];

  virtq_used #(.DATA_W(DATA_W), .QUEUES(QUEUES)) used_ring (
      .clk, .rst, .setup, .event_idx, .live(enable & ~broken), .used, .arm, .armed, .cmd, .data, .done, .read(seldom[3]), .reply,
      .reply_word(reply_data[0].addr[15:0]), .interrupt, .fail(fails[3]), .idle(used_idle)
  );

  // ---- queues that have stopped: the first reason counts ----
  virtq_fail_t first;
  always_comb begin
    first = '0;
    for (int unsigned i = 0; i < FAILS; i++) if (fails[i].valid) first = fails[i];
  end
  always_ff @(posedge clk) begin
    fault       <= first;
    fault.valid <= first.valid && !broken[index_t'(first.vq)] && !rst;
    if (rst) broken <= '0;
    else for (int unsigned i = 0; i < FAILS; i++) if (fails[i].valid) broken[index_t'(fails[i].vq)] <= 1'b1;
  end

  assign idle = reader_idle && !read[2].valid && avail_idle && prefetch_idle && used_idle && &chains_idle;
endmodule
