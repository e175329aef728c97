// SPDX-License-Identifier: Apache-2.0

// Transmit queues of a network device (virtio 1.2, 5.1.6.2): takes chains of the odd queues in turn, reads header and frame,
// however they are cut into buffers, and sends the frame from a store, so that it has no gap however slow memory is. A chain is
// given back when it has been read.
//
// VIRTIO_NET_F_CSUM: the checksum that a header asks for is put into the frame. A chain without a frame, with too long a one, or
// with a header that asks for what was not negotiated is given back, dropped and counted. A chain that cannot be read stops its
// queue. Latency with memory of L cycles: segment to first beat L + 20 at least. One beat a cycle. When `tx` stops, the store
// fills, and then no further chain is read. While `halt` is high frames that have not begun are discarded.
module virtio_net_tx
  import memory_pkg::*;
  import virtio_pkg::*;
#(
    parameter int unsigned DATA_W    = 512,
    parameter int unsigned ID_W      = 4,
    parameter int unsigned QUEUES    = 4,
    parameter int unsigned MAX_FRAME = 9018     // bytes, without FCS
) (
    input  logic              clk,
    input  logic              rst,
    input  logic              halt,
    input  logic              csum,             // VIRTIO_NET_F_CSUM is negotiated
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
    logic [15:0] length;     // of one that is not longer than LIMIT, with its header
  } chain_t;

  typedef struct packed {
    logic              none;
    logic              error;
    logic              last;
    logic [BYTES-1:0]  keep;
    logic [DATA_W-1:0] data;
  } beat_t;

  // ---- chains, of the queues in turn ----
  logic [QUEUES-1:0] one;
  round_robin #(.N(QUEUES)) turns (.clk, .rst, .request(ready), .take(pull.valid && pull.ready), .grant(one));
  assign pull.valid = |ready;
  always_comb begin
    pull.data = '0;
    for (int unsigned i = 0; i < QUEUES; i++) if (one[i]) pull.data |= queue_t'(i);
  end

  // ---- each segment: a command, a note, and at the end of a chain what it is ----
  logic [16:0] sum_q;                          // bytes of the chain before, at most LIMIT + 1
  logic [32:0] sum;
  logic        long_;
  stream_if #(.T(virtq_segment_t)) part[3] ();
  stream_if #(.T(dma_cmd_t)) cmd_in ();
  stream_if #(.T(dma_cmd_t)) cmd ();
  stream_if #(.T(gather_note_t)) note_in ();
  stream_if #(.T(gather_note_t)) note ();
  stream_if #(.T(chain_t)) chain_in ();
  stream_if #(.T(chain_t)) chain ();
  stream_fork #(.T(virtq_segment_t), .N(3)) parts (.clk, .rst, .in(segment), .out(part));

  assign sum   = 33'(sum_q) + 33'(segment.data.len);
  assign long_ = sum > 33'(LIMIT);

  // Beats come as they lie in memory: axis_gather puts the bytes together.
  wire skip = long_ || segment.data.error;
  wire [LANE_W-1:0] first_lane = segment.data.addr[LANE_W-1:0];
  wire [LANE_W-1:0] last_lane = first_lane + segment.data.len[LANE_W-1:0] - 1'b1;
  assign cmd_in.valid     = part[0].valid;
  assign cmd_in.data      = '{target: '0, key: '0, addr: part[0].data.addr, length: skip ? '0 : part[0].data.len};
  assign part[0].ready    = cmd_in.ready;
  assign note_in.valid    = part[1].valid;
  assign note_in.data     = '{ends: part[1].data.last, none: skip, first: 6'(first_lane), last: 6'(last_lane)};
  assign part[1].ready    = note_in.ready;
  assign chain_in.valid   = part[2].valid && part[2].data.last;
  assign chain_in.data    = '{vq: part[2].data.vq, head: part[2].data.head,
                              verdict: part[2].data.error ? CHAIN_BAD : long_ ? CHAIN_LONG : sum < 33'(NET_HDR_BYTES + MIN_FRAME) ? CHAIN_SHORT : CHAIN_GOOD, length: long_ ? '1 : 16'(sum)};
  assign part[2].ready    = chain_in.ready || !part[2].data.last;

  // What is pulled is always used.
  assign settle = '{valid: segment.valid && segment.ready && segment.data.last, vq: segment.data.vq, keep: 1'b1};

  always_ff @(posedge clk) begin
    if (rst) sum_q <= '0;
    else if (segment.valid && segment.ready) sum_q <= segment.data.last ? '0 : long_ ? 17'(LIMIT + 1) : 17'(sum);
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

  axis_if #(.DATA_W(DATA_W)) stored ();
  axis_if #(.DATA_W(DATA_W)) frame ();
  stream_if #(.T(net_tx_t)) record_in ();
  stream_if #(.T(net_tx_t)) record ();
  logic store_empty, no_record, none_back;

  // The end of a chain waits until its record and its used entry are taken at once. What it waits for is asked for a cycle before, and so
  // is whether the header may be as it is: a good chain has beats after its header. It stays true, as nobody else fills these FIFOs.
  stream_if #(.T(virtq_used_t)) back ();
  logic [$clog2(STORE_BEATS):0] store_room;
  logic can_store_q, can_end_q, asks_q;
  wire over = beat.valid && beat.data.last;
  wire move = beat.valid && (in_head || can_store_q) && (!over || can_end_q);
  wire bad = beat.data.error || chain.data.verdict == CHAIN_BAD;
  wire needs = header_now.flags[VIRTIO_NET_HDR_F_NEEDS_CSUM];
  wire [17:0] csum_end = 18'(header_now.csum_start) + 18'(header_now.csum_offset) + 18'd2;
  wire outside = csum_end + 18'(NET_HDR_BYTES) > 18'(chain.data.length);
  wire good = !bad && chain.data.verdict == CHAIN_GOOD && !asks_q;
  wire finish = move && over;
  always_ff @(posedge clk) begin
    can_store_q <= store_room > 4;             // its count and this are late by a beat each
    can_end_q   <= record_in.ready && back.ready && chain.valid && !finish && !rst;
    asks_q      <= header_now.gso_type != VIRTIO_NET_HDR_GSO_NONE || (needs && (!csum || outside));
  end

  assign beat.ready    = move;
  assign stored.tvalid = beat.valid && !in_head && !beat.data.none && can_store_q && (!over || can_end_q);
  assign stored.tdata  = beat.data.data;
  assign stored.tkeep  = beat.data.keep;
  assign stored.tlast  = beat.data.last;
  assign stored.tuser  = 1'b0;

  assign chain.ready     = finish;
  assign record_in.valid = finish && good;
  assign record_in.data  = '{vq: chain.data.vq, header: header};
  assign back.valid      = finish && !bad;
  assign back.data       = '{vq: chain.data.vq, head: chain.data.head, len: '0, last: 1'b1};
  stream_fifo #(.T(virtq_used_t), .DEPTH(16)) backs (.clk, .rst, .in(back), .out(used), .empty(none_back));

  axis_store #(.DATA_W(DATA_W), .DEPTH(STORE_BEATS)) store (
      .clk, .rst, .in(stored), .commit(finish && good), .rollback(finish && !good), .out(frame), .room(store_room),
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
    events.vq     <= chain.data.vq;
    events.sent   <= finish && good;
    events.short_ <= finish && !bad && chain.data.verdict == CHAIN_SHORT;
    events.long_  <= finish && !bad && chain.data.verdict == CHAIN_LONG;
    events.header <= finish && !bad && chain.data.verdict == CHAIN_GOOD && asks_q;
    events.memory <= finish && bad;
    fail          <= '{valid: finish && bad && !rst, vq: chain.data.vq, code: VIRTQ_MEMORY};
  end

  // ---- to the network ----
  // A frame that has begun goes on when the device halts; the others go nowhere.
  axis_if #(.DATA_W(DATA_W)) summed ();
  logic no_sum;
  virtio_net_csum #(.DATA_W(DATA_W), .FRAMES(RECORDS)) checksums (
      .clk, .rst, .sum_valid(stored.tvalid), .sum_last(over), .sum_data(beat.data.data), .sum_keep(beat.data.keep),
      .sum_header(header), .sum_header_now(header_now), .sum_kept(good), .sum_over(finish), .in(frame), .out(summed), .idle(no_sum)
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

  assign idle = dma_idle && !cmd.valid && !segment.valid && !note.valid && !chain.valid && !beat.valid && store_empty && no_record && no_sum && none_back;

  always_ff @(posedge clk) if (!rst && stored.tvalid) assert (stored.tready) else $error("a beat found the store full");

  logic unused_ok;
  assign unused_ok = &{1'b0, summed.tuser};
endmodule
