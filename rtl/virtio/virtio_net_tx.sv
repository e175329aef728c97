// SPDX-License-Identifier: Apache-2.0

// Transmit queues of a network device (virtio 1.2, 5.1.6.2): takes chains of the odd queues in turn, reads header and frame,
// however they are cut into buffers, and sends the frame from a store, so that it has no gap however slow memory is. A chain is
// given back when it has been read.
//
// VIRTIO_NET_F_CSUM: the checksum that a header asks for is put into the frame. VIRTIO_NET_F_HOST_TSO4, HOST_TSO6: a frame is cut into
// segments (virtio_net_segment), which go into the store one by one, so that it need not hold the frame. A chain without a frame, with
// too long a one, or with a header that asks for what was not negotiated is given back, dropped and counted. A chain that cannot be read
// stops its queue. Latency with memory of L cycles: segment to first beat L + 23 at least. One beat a cycle. When `tx` stops, the store
// fills, and then no further chain is read. While `halt` is high frames that have not begun are discarded.
module virtio_net_tx
  import memory_pkg::*;
  import virtio_pkg::*;
#(
    parameter int unsigned DATA_W    = 512,
    parameter int unsigned ID_W      = 4,
    parameter int unsigned QUEUES    = 4,
    parameter int unsigned SIZE      = 256,     // largest queue size: what a chain has of buffers
    parameter int unsigned MAX_FRAME = 9018     // bytes, without FCS
) (
    input  logic              clk,
    input  logic              rst,
    input  logic              halt,
    input  net_offload_t      offload,          // negotiated
    input  logic [QUEUES-1:0] ready,
    stream_if.source          pull,             // queue_t
    stream_if.sink            segment,          // virtq_segment_t
    output virtq_settle_t     settle,
    stream_if.source          used,             // virtq_used_t
    output virtq_fail_t       fail,
    axi_if.master             mem,              // read channels
    axis_if.source            tx,
    output net_tx_t           tx_info,          // with each beat of `tx`
    output net_tx_events_t    events,
    output logic              idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);
  localparam int unsigned HEAD_BEATS = (NET_HDR_BYTES + BYTES - 1) / BYTES;
  localparam int unsigned OFFSET = HEAD_BEATS * BYTES - NET_HDR_BYTES;
  localparam int unsigned FRAME_BEATS = 2 ** $clog2(2 * MAX_FRAME / BYTES);
  localparam int unsigned STORE_BEATS = FRAME_BEATS < 512 ? 512 : FRAME_BEATS;
  localparam int unsigned MIN_FRAME = 14;      // an Ethernet header
  localparam int unsigned LIMIT = MAX_FRAME + NET_HDR_BYTES;
  localparam int unsigned GSO_LIMIT = MAX_TCP_HEADERS + MAX_GSO_PAYLOAD + NET_HDR_BYTES;
  localparam int unsigned RECORDS = 32;         // frames in the store

  typedef enum logic [1:0] {
    CHAIN_GOOD,
    CHAIN_SHORT,
    CHAIN_LONG,
    CHAIN_BAD
  } verdict_e;

  typedef struct packed {
    queue_t      vq;
    logic [15:0] head;
    verdict_e    verdict;
    logic        fits;       // it is not longer than LIMIT
    logic [16:0] length;     // of one that is not longer than it may be, with its header
  } chain_t;

  // A buffer that is read.
  typedef struct packed {
    addr_t       addr;
    logic [16:0] length;
    logic        none;       // it is not: `length` is 0
    logic        ends;       // it is the last one of its chain
  } buffer_t;

  typedef struct packed {
    logic              none;
    logic              error;
    logic              last;
    logic [BYTES-1:0]  keep;
    logic [DATA_W-1:0] data;
  } beat_t;

  // ---- chains, of the queues in turn ----
  // No more than two are taken that are longer than a frame to the network can be, so that another queue's turn comes soon.
  logic [1:0] large_q;
  logic [QUEUES-1:0] one;
  round_robin #(.N(QUEUES)) turns (.clk, .rst, .request(ready), .take(pull.valid && pull.ready), .grant(one));
  assign pull.valid = |ready && large_q < 2'd2;
  always_comb begin
    pull.data = '0;
    for (int unsigned i = 0; i < QUEUES; i++) if (one[i]) pull.data |= queue_t'(i);
  end

  // ---- each segment: a buffer, and at the end of a chain what it is ----
  // To cut a frame into segments its length must be known: all buffers of a chain can wait until it is.
  logic [16:0] sum_q, limit_q;                 // bytes of the chain before, at most limit_q + 1
  logic [32:0] sum;
  logic        long_;
  logic        no_buffer, none_back, store_empty, no_record;
  stream_if #(.T(virtq_segment_t)) part[2] ();
  stream_if #(.T(buffer_t)) buffer_in ();
  stream_if #(.T(buffer_t)) buffer ();
  stream_if #(.T(buffer_t)) read[2] ();
  stream_if #(.T(dma_cmd_t)) cmd_in ();
  stream_if #(.T(dma_cmd_t)) cmd ();
  stream_if #(.T(gather_note_t)) note_in ();
  stream_if #(.T(gather_note_t)) note ();
  stream_if #(.T(chain_t)) chain_in ();
  stream_if #(.T(chain_t)) chain ();
  stream_fork #(.T(virtq_segment_t), .N(2)) parts (.clk, .rst, .in(segment), .out(part));

  assign sum   = 33'(sum_q) + 33'(segment.data.len);
  assign long_ = sum > 33'(limit_q);

  wire skip = long_ || segment.data.error;
  assign buffer_in.valid = part[0].valid;
  assign buffer_in.data  = '{addr: part[0].data.addr, length: skip ? '0 : 17'(part[0].data.len), none: skip, ends: part[0].data.last};
  assign part[0].ready   = buffer_in.ready;
  assign chain_in.valid  = part[1].valid && part[1].data.last;
  assign chain_in.data   = '{vq: part[1].data.vq, head: part[1].data.head,
                             verdict: part[1].data.error ? CHAIN_BAD : long_ ? CHAIN_LONG : sum < 33'(NET_HDR_BYTES + MIN_FRAME) ? CHAIN_SHORT : CHAIN_GOOD,
                             fits: sum <= 33'(LIMIT), length: long_ ? '1 : 17'(sum)};
  assign part[1].ready   = chain_in.ready || !part[1].data.last;

  // Beats come as they lie in memory: axis_gather puts the bytes together.
  stream_fifo #(.T(buffer_t), .DEPTH(SIZE)) buffers (.clk, .rst, .in(buffer_in), .out(buffer), .empty(no_buffer));
  stream_fork #(.T(buffer_t), .N(2)) reads (.clk, .rst, .in(buffer), .out(read));
  wire [LANE_W-1:0] first_lane = buffer.data.addr[LANE_W-1:0];
  wire [LANE_W-1:0] last_lane = first_lane + buffer.data.length[LANE_W-1:0] - 1'b1;
  assign cmd_in.valid  = read[0].valid;
  assign cmd_in.data   = '{target: '0, key: '0, addr: read[0].data.addr, length: 32'(read[0].data.length)};
  assign read[0].ready = cmd_in.ready;
  assign note_in.valid = read[1].valid;
  assign note_in.data  = '{ends: read[1].data.ends, none: read[1].data.none, first: 6'(first_lane), last: 6'(last_lane)};
  assign read[1].ready = note_in.ready;

  wire larger = chain_in.valid && chain_in.ready && !chain_in.data.fits;
  wire smaller = chain.valid && chain.ready && !chain.data.fits;
  always_ff @(posedge clk) large_q <= rst ? '0 : large_q + 2'(larger) - 2'(smaller);

  // What is pulled is always used.
  assign settle = '{valid: segment.valid && segment.ready && segment.data.last, vq: segment.data.vq, keep: 1'b1};

  always_ff @(posedge clk) begin
    limit_q <= offload.tso4 || offload.tso6 ? 17'(GSO_LIMIT) : 17'(LIMIT);
    if (rst) sum_q <= '0;
    else if (segment.valid && segment.ready) sum_q <= segment.data.last ? '0 : long_ ? limit_q + 1'b1 : 17'(sum);
  end

  stream_skid #(.T(dma_cmd_t)) skid (.clk, .rst, .in(cmd_in), .out(cmd));
  stream_fifo #(.T(gather_note_t), .DEPTH(64)) notes (.clk, .rst, .in(note_in), .out(note), .empty());
  stream_fifo #(.T(chain_t), .DEPTH(64)) chains (.clk, .rst, .in(chain_in), .out(chain), .empty());

  axis_if #(.DATA_W(DATA_W)) data ();
  logic dma_idle;
  axi_dma_read #(.DATA_W(DATA_W), .ID_W(ID_W), .BURST_BYTES(1024), .BUFFER_BEATS(512), .IN_PLACE(1'b1)) reader (
      .clk, .rst, .cmd, .mem, .data, .idle(dma_idle)
  );

  // ---- header and frame ----
  stream_if #(.T(beat_t)) beat ();
  axis_gather #(.DATA_W(DATA_W), .OFFSET(OFFSET % BYTES), .BEAT(beat_t)) gather (.clk, .rst, .in(data), .note, .out(beat));

  logic [HEAD_BEATS-1:0][DATA_W-1:0] head_q, head;
  logic [1:0] index_q;                         // of the beat, HEAD_BEATS for all of the frame
  logic       in_head;                         // it is less than that
  always_comb begin
    head = head_q;
    for (int unsigned i = 0; i < HEAD_BEATS; i++) if (32'(index_q) == i) head[i] = beat.data.data;
  end
  // No shift: Verilator loses the upper 32 of 96 bits of one by 32.
  localparam int unsigned HEAD_BITS = HEAD_BEATS * DATA_W;
  wire [HEAD_BITS-1:0] head_bits = head_q;
  wire [HEAD_BITS-1:0] head_bits_now = head;
  virtio_net_hdr_t header, header_now;         // header_now: a beat earlier
  assign header     = virtio_net_hdr_t'(head_bits[HEAD_BITS-1-:$bits(virtio_net_hdr_t)]);
  assign header_now = virtio_net_hdr_t'(head_bits_now[HEAD_BITS-1-:$bits(virtio_net_hdr_t)]);

  // The end of a chain waits until its used entry is taken. What it waits for is asked for a cycle before, and so is whether the header may
  // be as it is: a good chain has beats after its header. It stays true, as nobody else fills the FIFO.
  axis_if #(.DATA_W(DATA_W)) whole_frame ();
  axis_if #(.DATA_W(DATA_W)) cut ();
  stream_if #(.T(virtq_used_t)) back ();
  logic can_end_q, asks_q, segments, refused;
  wire over = beat.valid && beat.data.last;
  wire offered = beat.valid && (!over || can_end_q);
  wire move = offered && (in_head || whole_frame.tready);
  wire bad = beat.data.error || chain.data.verdict == CHAIN_BAD;
  wire good_chain = !bad && chain.data.verdict == CHAIN_GOOD;
  wire needs = header_now.flags[VIRTIO_NET_HDR_F_NEEDS_CSUM];
  wire [17:0] csum_end = 18'(header_now.csum_start) + 18'(header_now.csum_offset) + 18'd2;
  wire outside = csum_end + 18'(NET_HDR_BYTES) > 18'(chain.data.length);
  wire good = good_chain && chain.data.fits && !asks_q;
  wire finish = move && over;
  always_ff @(posedge clk) begin
    can_end_q <= back.ready && chain.valid && !finish && !rst;
    asks_q    <= needs && (!offload.csum || outside);
  end

  assign beat.ready     = move;
  assign chain.ready    = finish;
  assign back.valid     = finish && !bad;
  assign back.data      = '{vq: chain.data.vq, head: chain.data.head, len: '0, last: 1'b1};
  stream_fifo #(.T(virtq_used_t), .DEPTH(16)) backs (.clk, .rst, .in(back), .out(used), .empty(none_back));

  assign whole_frame.tvalid = offered && !in_head;
  assign whole_frame.tdata  = beat.data.data;
  assign whole_frame.tkeep  = beat.data.keep;
  assign whole_frame.tlast  = beat.data.last;
  assign whole_frame.tuser  = beat.data.error || beat.data.none;

  queue_t      cut_vq;
  csum_ask_t   ask;
  logic [15:0] start_now;
  logic        segment_idle;
  virtio_net_segment #(.DATA_W(DATA_W), .MAX_FRAME(MAX_FRAME)) segmentation (
      .clk, .rst, .halt, .offload, .in(whole_frame), .header, .header_now, .sized(chain.valid), .whole(chain.data.verdict == CHAIN_GOOD),
      .size(chain.data.length - 17'(NET_HDR_BYTES)), .vq(chain.data.vq), .leaves(good), .segments, .refused, .out(cut), .out_vq(cut_vq), .ask,
      .start_now, .idle(segment_idle)
  );

  // ---- the store: frames and segments ----
  axis_if #(.DATA_W(DATA_W)) stored ();
  axis_if #(.DATA_W(DATA_W)) frame ();
  stream_if #(.T(net_tx_t)) record_in ();
  stream_if #(.T(net_tx_t)) record ();
  logic [$clog2(STORE_BEATS):0] store_room;
  logic can_store_q;
  assign cut.tready = can_store_q && (!cut.tlast || record_in.ready);
  wire stores = cut.tvalid && cut.tready;
  wire keeps = stores && cut.tlast && !cut.tuser;
  always_ff @(posedge clk) can_store_q <= store_room > 4;  // its count and this are late by a beat each

  assign stored.tvalid   = stores;
  assign stored.tdata    = cut.tdata;
  assign stored.tkeep    = cut.tkeep;
  assign stored.tlast    = cut.tlast;
  assign stored.tuser    = 1'b0;
  assign record_in.valid = keeps;
  assign record_in.data  = '{vq: cut_vq};
  axis_store #(.DATA_W(DATA_W), .DEPTH(STORE_BEATS)) store (
      .clk, .rst, .in(stored), .commit(keeps), .rollback(stores && cut.tlast && cut.tuser), .out(frame), .room(store_room),
      .empty(store_empty)
  );
  stream_fifo #(.T(net_tx_t), .DEPTH(RECORDS)) records (.clk, .rst, .in(record_in), .out(record), .empty(no_record));

  always_ff @(posedge clk) begin
    if (move && in_head) head_q <= head;
    if (rst) begin
      index_q <= '0;
      in_head <= 1'b1;
    end else if (move) begin
      index_q <= over ? '0 : in_head ? index_q + 1'b1 : index_q;
      in_head <= over || (in_head && 32'(index_q) + 1 < HEAD_BEATS);
    end

    events        <= '0;
    events.sent    <= tx.tvalid && tx.tready && tx.tlast;   // one that a reset throws away is not
    events.sent_vq <= record.data.vq;
    events.vq     <= chain.data.vq;
    events.short_ <= finish && !bad && chain.data.verdict == CHAIN_SHORT;
    events.long_  <= finish && !bad && (chain.data.verdict == CHAIN_LONG || (good_chain && !chain.data.fits && !segments));
    events.header <= finish && good_chain && (segments ? refused : chain.data.fits && asks_q);
    events.memory <= finish && bad;
    fail          <= '{valid: finish && bad && !rst, vq: chain.data.vq, code: VIRTQ_MEMORY};
  end

  // ---- to the network ----
  // A frame that has begun goes on when the device halts; the others go nowhere.
  axis_if #(.DATA_W(DATA_W)) summed ();
  logic no_sum;
  virtio_net_csum #(.DATA_W(DATA_W), .FRAMES(RECORDS)) checksums (
      .clk, .rst, .sum_valid(stores), .sum_last(cut.tlast), .sum_data(cut.tdata), .sum_keep(cut.tkeep), .sum_ask(ask),
      .sum_start_now(start_now), .sum_kept(!cut.tuser), .sum_over(stores && cut.tlast), .in(frame), .out(summed), .idle(no_sum)
  );
  logic in_frame_q;
  wire  discard = halt && !in_frame_q;
  assign tx.tvalid     = summed.tvalid && !discard;
  assign tx.tdata      = summed.tdata;
  assign tx.tkeep      = summed.tkeep;
  assign tx.tlast      = summed.tlast;
  assign tx.tuser      = 1'b0;
  assign summed.tready = discard || tx.tready;
  assign record.ready  = summed.tvalid && summed.tready && summed.tlast;
  assign tx_info       = record.data;
  always_ff @(posedge clk) begin
    if (rst) in_frame_q <= 1'b0;
    else if (tx.tvalid) in_frame_q <= !(tx.tready && tx.tlast);   // from the cycle on in which its first beat is offered
  end

  assign idle = dma_idle && !cmd.valid && !segment.valid && no_buffer && segment_idle && !note.valid && !chain.valid && !beat.valid && store_empty && no_record && no_sum && none_back;

  always_ff @(posedge clk) if (!rst && stored.tvalid) assert (stored.tready) else $error("a beat found the store full");

  logic unused_ok;
  assign unused_ok = &{1'b0, summed.tuser};
endmodule
