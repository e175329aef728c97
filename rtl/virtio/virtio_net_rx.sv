// SPDX-License-Identifier: Apache-2.0

// Receive queues of a network device (virtio 1.2, 5.1.6.3, 5.1.6.4): stores each frame of the network, takes chains of its queue
// until they hold header and frame, writes both, and gives the chains back, all of a frame at once.
//
// `rx` never waits. A frame that is marked bad or too long, and one for which there is no room or no buffer, is dropped as a whole
// and counted, but for one that is not wanted; the chains that were too small for it are taken for the next one. Without VIRTIO_NET_F_MRG_RXBUF a frame has one
// chain. A frame needs at most PIECES buffers. Latency: 9 cycles from the last beat of `rx` to the command of its write. A frame of
// one buffer takes 5 cycles, or one a beat if those are more.
module virtio_net_rx
  import memory_pkg::*;
  import virtio_pkg::*;
#(
    parameter int unsigned DATA_W    = 512,
    parameter int unsigned QUEUES    = 4,
    parameter int unsigned MAX_FRAME = 9018,     // bytes, without FCS
    parameter int unsigned PIECES    = 64
) (
    input  logic              clk,
    input  logic              rst,               // may come in the middle of a frame, of which nothing is taken then
    input  logic              halt,              // no frame is taken
    input  logic [15:0]       longest,           // bytes of a frame, at most MAX_FRAME
    input  logic              mergeable,         // VIRTIO_NET_F_MRG_RXBUF is negotiated,
    input  logic              guest_csum,        // VIRTIO_NET_F_GUEST_CSUM
    axis_if.sink              rx,
    input  net_rx_t           rx_info,           // with the last beat of `rx`
    input  logic [QUEUES-1:0] ready,
    input  logic [QUEUES-1:0] more,
    stream_if.source          pull,              // queue_t
    stream_if.sink            segment,           // virtq_segment_t
    output virtq_settle_t     settle,
    stream_if.source          used,              // virtq_used_t
    output virtq_fail_t       fail,
    stream_if.source          cmd,               // dma_cmd_t
    axis_if.source            data,              // a packet for each
    stream_if.sink            done,              // dma_done_t
    output net_rx_events_t    events,
    output logic              idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned FRAME_BEATS = 2 ** $clog2(2 * MAX_FRAME / BYTES);
  localparam int unsigned STORE_BEATS = FRAME_BEATS < 512 ? 512 : FRAME_BEATS;
  localparam int unsigned FRAMES = 128;
  localparam int unsigned EDITS = 256;                               // more than the frames that wait for buffers, or have them
  localparam int unsigned HEAD_BEATS = NET_HDR_BYTES / BYTES;        // whole beats of the header,
  localparam int unsigned SHIFT = NET_HDR_BYTES % BYTES;             // and bytes of it in the next

  typedef logic [$clog2(QUEUES)-1:0] index_t;

  typedef struct packed {
    queue_t      vq;
    logic        csum_valid;
    logic [15:0] length;
  } frame_t;

  // A buffer, as far as it is written.
  typedef struct packed {
    addr_t       addr;
    logic [15:0] length;
    logic        last;         // of its frame,
    logic        ends;         // of its chain,
    queue_t      vq;
    logic [15:0] head;         // which is this one,
    logic [15:0] written;      // with so many bytes
  } piece_t;

  typedef struct packed {
    logic        drop;
    logic        csum_valid;
    logic [15:0] buffers;
  } job_t;

  typedef struct packed {
    logic        last;
    logic        ends;
    queue_t      vq;
    logic [15:0] head;
    logic [15:0] written;
  } outcome_t;

  // ---- the store: takes every frame, and forgets what it cannot keep ----
  axis_if #(.DATA_W(DATA_W)) stored ();
  axis_if #(.DATA_W(DATA_W)) as_came ();
  axis_if #(.DATA_W(DATA_W)) kept ();
  stream_if #(.T(net_edit_t)) edit_in ();
  stream_if #(.T(net_edit_t)) edit ();
  stream_if #(.T(frame_t)) frame_in ();
  stream_if #(.T(frame_t)) frame ();
  typedef struct packed {
    logic                last;
    logic                bad;
    net_rx_t             info;
    logic [15:0]         bytes;
    logic [DATA_W/8-1:0] keep;
    logic [DATA_W-1:0]   data;
  } in_beat_t;

  in_beat_t    in_q;
  logic        in_valid_q = 1'b0;           // with the next one, kept in reset: the rest of a frame is not taken for a frame
  logic        in_frame_q = 1'b0;
  logic [15:0] length_q, length, bytes;
  logic        lost_q, lost, good, ends_in, no_frame;

  always_comb begin
    bytes = '0;
    for (int unsigned i = 0; i < BYTES; i++) if (rx.tkeep[i] && (i == BYTES - 1 || !rx.tkeep[(i+1)%BYTES])) bytes |= 16'(i + 1);
  end
  always_ff @(posedge clk) begin
    in_valid_q <= rx.tvalid;
    in_q       <= '{last: rx.tlast, bad: rx.tuser, info: rx_info, bytes: bytes, keep: rx.tkeep, data: rx.tdata};
    if (in_valid_q) in_frame_q <= !in_q.last;
  end

  assign length  = length_q + in_q.bytes;
  assign lost    = lost_q || halt || !stored.tready || length > longest;
  assign good    = !lost && !in_q.bad && !in_q.info.unwanted && frame_in.ready && edit_in.ready && 32'(in_q.info.vq) < QUEUES && !in_q.info.vq[0];
  assign ends_in = in_valid_q && in_q.last;

  assign rx.tready      = 1'b1;
  assign stored.tvalid  = in_valid_q && !lost_q;
  assign stored.tdata   = in_q.data;
  assign stored.tkeep   = in_q.keep;
  assign stored.tlast   = in_q.last;
  assign stored.tuser   = 1'b0;
  assign frame_in.valid = ends_in && good;
  assign frame_in.data  = '{vq: in_q.info.vq, csum_valid: in_q.info.csum_valid, length: length};

  always_ff @(posedge clk) begin
    if (rst) begin
      length_q <= '0;
      lost_q   <= in_valid_q ? !in_q.last : in_frame_q;
    end else if (in_valid_q) begin
      length_q <= in_q.last ? '0 : lost_q ? length_q : length;
      lost_q   <= !in_q.last && lost;
    end
  end

  axis_store #(.DATA_W(DATA_W), .DEPTH(STORE_BEATS)) store (
      .clk, .rst, .in(stored), .commit(ends_in && good), .rollback(ends_in && !good), .out(as_came), .room(), .empty()
  );
  assign edit_in.valid = ends_in && good;
  assign edit_in.data  = in_q.info.edit;
  stream_fifo #(.T(net_edit_t), .DEPTH(EDITS)) edits (.clk, .rst, .in(edit_in), .out(edit), .empty());
  virtio_net_edit #(.DATA_W(DATA_W)) change (.clk, .rst, .in(as_came), .edit, .out(kept));
  stream_fifo #(.T(frame_t), .DEPTH(FRAMES)) frames (.clk, .rst, .in(frame_in), .out(frame), .empty(no_frame));

  // ---- buffers for the frame ----
  typedef enum logic [1:0] {
    B_PULL,
    B_TAKE,
    B_SETTLE
  } buffers_e;

  buffers_e    state_q;
  logic        begun_q, keeps_q;            // the frame has chains; it is written
  logic        placed_q;                    // all of it has its place
  logic [15:0] left_q, buffers_q, chain_q;  // bytes to place; chains; bytes in this one
  logic [15:0] left, placed, buffers;
  logic        all, ends, gives_up, can_push, overflow, piece_none;
  stream_if #(.T(piece_t)) piece_in ();
  stream_if #(.T(piece_t)) piece ();
  stream_if #(.T(job_t)) job_in ();
  stream_if #(.T(job_t)) job ();

  assign left     = begun_q ? left_q : frame.data.length + 16'(NET_HDR_BYTES);
  assign placed   = segment.data.len < 32'(left_q) ? segment.data.len[15:0] : left_q;
  assign all      = 32'(left_q) <= segment.data.len;
  assign ends     = segment.data.last || all;
  assign buffers  = buffers_q + 1'b1;

  wire at_hand = ready[index_t'(frame.data.vq)];
  assign pull.valid = state_q == B_PULL && frame.valid && at_hand;
  assign pull.data  = frame.data.vq;
  assign gives_up   = state_q == B_PULL && frame.valid && !at_hand && !more[index_t'(frame.data.vq)];

  // The buffers behind the last one that is needed are not looked at. A frame in more pieces than there is room for is dropped.
  wire wanted = state_q == B_TAKE && segment.valid && !placed_q && keeps_q && !segment.data.error;
  assign overflow       = wanted && !piece_in.ready && piece_none;
  assign can_push       = !wanted || piece_in.ready || overflow;
  assign piece_in.valid = wanted;
  assign piece_in.data  = '{addr: segment.data.addr, length: placed, last: all, ends: ends, vq: segment.data.vq, head: segment.data.head,
                            written: chain_q + placed};
  assign segment.ready  = state_q == B_TAKE && can_push;
  wire   took = segment.valid && segment.ready;

  assign job_in.valid = state_q == B_SETTLE;
  assign job_in.data  = '{drop: !keeps_q, csum_valid: frame.data.csum_valid, buffers: buffers_q};
  assign frame.ready  = state_q == B_SETTLE && job_in.ready;
  assign settle       = '{valid: state_q == B_SETTLE && job_in.ready, vq: frame.data.vq, keep: keeps_q};

  always_ff @(posedge clk) begin
    unique case (state_q)
      B_PULL: begin
        left_q   <= left;
        placed_q <= 1'b0;
        chain_q  <= '0;
        if (!begun_q) buffers_q <= '0;
        if (!begun_q) keeps_q <= 1'b1;
        if (pull.valid && pull.ready) begin
          begun_q <= 1'b1;
          state_q <= B_TAKE;
        end else if (gives_up) begin
          keeps_q <= 1'b0;
          state_q <= B_SETTLE;
        end
      end
      B_TAKE: if (took) begin
        if (wanted && !overflow) begin
          left_q   <= left_q - placed;
          placed_q <= all;
          chain_q  <= chain_q + placed;
        end
        if (overflow || segment.data.error) keeps_q <= 1'b0;
        if (segment.data.last) begin
          buffers_q <= buffers;
          if (overflow || segment.data.error || !keeps_q || placed_q || all) begin
            state_q <= B_SETTLE;
          end else begin
            // A frame that does not fit its only chain is dropped.
            if (!mergeable) keeps_q <= 1'b0;
            state_q <= mergeable ? B_PULL : B_SETTLE;
          end
        end
      end
      default: if (job_in.ready) begin
        begun_q <= 1'b0;
        state_q <= B_PULL;
      end
    endcase
    if (rst) begin
      state_q <= B_PULL;
      begun_q <= 1'b0;
    end
  end

  stream_store #(.T(piece_t), .DEPTH(PIECES)) pieces (
      .clk, .rst, .in(piece_in), .commit(settle.valid && keeps_q), .rollback(settle.valid && !keeps_q), .out(piece), .none(piece_none)
  );
  stream_fifo #(.T(job_t), .DEPTH(32)) jobs (.clk, .rst, .in(job_in), .out(job), .empty());

  // ---- header and frame, as one packet ----
  // A frame that is dropped goes nowhere.
  axis_if #(.DATA_W(DATA_W)) whole ();
  logic [HEAD_BEATS:0][DATA_W-1:0] head_beats;
  logic [SHIFT*8-1:0] carry_q;
  logic [1:0]        index_q;
  logic              rest_q;
  virtio_net_hdr_t   header;
  wire in_head = HEAD_BEATS != 0 && 32'(index_q) < HEAD_BEATS && !job.data.drop;
  wire first = 32'(index_q) == HEAD_BEATS;
  wire flows = job.valid && (job.data.drop ? kept.tvalid : in_head || rest_q || kept.tvalid);
  wire step = flows && (job.data.drop || whole.tready);
  wire over = kept.tlast && kept.tkeep[BYTES-SHIFT];       // its last bytes need a beat of their own
  wire last = rest_q || (!in_head && kept.tlast && (job.data.drop || !over));

  always_comb begin
    header             = '0;
    header.num_buffers = job.data.buffers;
    header.flags[VIRTIO_NET_HDR_F_DATA_VALID] = job.data.csum_valid && guest_csum;
  end
  assign head_beats = ($bits(head_beats))'(header);

  assign whole.tvalid = flows && !job.data.drop;
  assign whole.tdata  = in_head ? head_beats[0] : {kept.tdata[DATA_W-SHIFT*8-1:0], first ? head_beats[HEAD_BEATS][SHIFT*8-1:0]
                                                                                         : carry_q};
  assign whole.tkeep  = '1;                                // lengths are those of the pieces
  assign whole.tlast  = last;
  assign whole.tuser  = 1'b0;
  assign kept.tready  = step && (job.data.drop || (!in_head && !rest_q));
  assign job.ready    = step && last;

  always_ff @(posedge clk) begin
    if (step && !rest_q) carry_q <= kept.tdata[DATA_W-1-:SHIFT*8];
    if (rst) begin
      index_q <= '0;
      rest_q  <= 1'b0;
    end else if (step) begin
      index_q <= last ? '0 : in_head || first ? index_q + 1'b1 : index_q;
      rest_q  <= !job.data.drop && !in_head && !rest_q && kept.tlast && over;
    end
  end

  // ---- pieces: each is a command, a packet, and an outcome ----
  // No more are under way than have room for what is given back: `done` never waits, which others of the same writer do not
  // survive.
  localparam int unsigned UNDER_WAY = 64;
  logic [$clog2(UNDER_WAY+1)-1:0] under_way_q;
  stream_if #(.T(piece_t)) open ();
  stream_if #(.T(piece_t)) part[3] ();
  stream_if #(.T(scatter_piece_t)) cut_in ();
  stream_if #(.T(scatter_piece_t)) cut ();
  stream_if #(.T(outcome_t)) outcome_in ();
  stream_if #(.T(outcome_t)) outcome ();
  stream_if #(.T(virtq_used_t)) back ();
  logic nothing_under_way, nothing_back;

  wire has_room = 32'(under_way_q) != UNDER_WAY;
  assign open.valid  = piece.valid && has_room;
  assign open.data   = piece.data;
  assign piece.ready = open.ready && has_room;
  stream_fork #(.T(piece_t), .N(3)) parts (.clk, .rst, .in(open), .out(part));

  assign cmd.valid        = part[0].valid;
  assign cmd.data         = '{target: '0, key: '0, addr: part[0].data.addr, length: 32'(part[0].data.length)};
  assign part[0].ready    = cmd.ready;
  assign cut_in.valid     = part[1].valid;
  assign cut_in.data      = '{last: part[1].data.last, last_byte: part[1].data.length - 1'b1};
  assign part[1].ready    = cut_in.ready;
  assign outcome_in.valid = part[2].valid;
  assign outcome_in.data  = '{last: part[2].data.last, ends: part[2].data.ends, vq: part[2].data.vq, head: part[2].data.head,
                              written: part[2].data.written};
  assign part[2].ready    = outcome_in.ready;

  stream_fifo #(.T(scatter_piece_t), .DEPTH(8)) cuts (.clk, .rst, .in(cut_in), .out(cut), .empty());
  stream_fifo #(.T(outcome_t), .DEPTH(UNDER_WAY)) outcomes (.clk, .rst, .in(outcome_in), .out(outcome), .empty(nothing_under_way));
  stream_fifo #(.T(virtq_used_t), .DEPTH(UNDER_WAY)) backs (.clk, .rst, .in(back), .out(used), .empty(nothing_back));
  axis_scatter #(.DATA_W(DATA_W)) scatter (.clk, .rst, .in(whole), .piece(cut), .out(data));

  logic bad_q;                                             // a piece of this frame was not written
  wire  bad = bad_q || done.data.error;
  wire  ended = done.valid && outcome.valid;
  assign done.ready    = outcome.valid;
  assign outcome.ready = done.valid;
  assign back.valid    = ended && outcome.data.ends && !bad;
  assign back.data     = '{vq: outcome.data.vq, head: outcome.data.head, len: 32'(outcome.data.written), last: outcome.data.last};
  wire none_back = ended && !back.valid;
  wire given = used.valid && used.ready;

  always_ff @(posedge clk) begin
    fail             <= '{valid: ended && done.data.error && !rst, vq: outcome.data.vq, code: VIRTQ_MEMORY};
    events           <= '0;
    events.in_vq     <= in_q.info.vq;
    events.overrun   <= ends_in && !good && !in_q.info.unwanted && !in_q.bad && length <= longest;
    events.bad       <= ends_in && !good && !in_q.info.unwanted && (in_q.bad || length > longest);
    events.drop_vq   <= frame.data.vq;
    events.no_buffer <= settle.valid && !keeps_q && !rst;
    events.done_vq   <= outcome.data.vq;
    events.received  <= ended && outcome.data.last && !bad && !rst;
    events.memory    <= ended && outcome.data.last && bad && !rst;
    if (rst) begin
      bad_q       <= 1'b0;
      under_way_q <= '0;
    end else begin
      if (ended) bad_q <= bad && !outcome.data.last;
      under_way_q <= under_way_q + ($bits(under_way_q))'(open.valid && open.ready) - ($bits(under_way_q))'(none_back)
                   - ($bits(under_way_q))'(given);
    end
  end

  always_ff @(posedge clk) if (!rst) assert (!back.valid || back.ready) else $error("more given back than there is room for");

  assign idle = !frame.valid && no_frame && state_q == B_PULL && piece_none && !job.valid && nothing_under_way && nothing_back
              && under_way_q == '0 && !data.tvalid;
endmodule
