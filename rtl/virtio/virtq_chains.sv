// SPDX-License-Identifier: Apache-2.0

// The chains of the queues of one client that are fetched ahead, and the walk over them: for each queue named on `pull` the buffers
// of its next chain, in order, with every check of the standard (virtio 1.2, 2.7.5). `settle` says whether what was pulled is used
// or given back; it comes when no chain of the queue is pulled.
//
// The queues of a client are those whose number has `CLIENT` as its lowest bit. A chain takes 2 cycles and one for each descriptor,
// and a latency of memory more for each descriptor that is not the successor of the one before, and for each BLOCK of them. While
// `segment` stops, so does the walk.
module virtq_chains
  import memory_pkg::*;
  import virtio_pkg::*;
#(
    parameter int unsigned QUEUES   = 4,
    parameter bit          CLIENT   = 1'b0,
    parameter bit          WRITABLE = 1'b0,     // buffers are to be written, else read;
    parameter int unsigned MIXED    = MAX_QUEUES // number of a queue with both; MAX_QUEUES: none
) (
    input  logic                    clk,
    input  logic                    rst,
    input  virtq_setup_t            setup,
    input  logic                    indirect,   // VIRTIO_F_INDIRECT_DESC is negotiated
    input  ring_reply_t             reply,
    input  virtq_desc_t [BLOCK-1:0] reply_data,
    input  desc_length_t [BLOCK-1:0] reply_lengths,
    input  logic                    start_write,
    input  chain_start_t            start,
    input  logic                    block_write,
    input  slot_t [QUEUES-1:0]      reserved,   // slots whose chains are fetched, counted
    stream_if.sink                  pull,       // queue_t: one that is ready
    input  virtq_settle_t           settle,
    stream_if.source                segment,    // virtq_segment_t
    stream_if.source                read,       // ring_read_t
    output logic [QUEUES-1:0]       ready,      // a chain can be pulled; for queues of others 0
    output logic [QUEUES-1:0]       fetching,   // more are under way
    output slot_t [QUEUES-1:0]      freed,      // slots of each queue, counted
    output virtq_fail_t             fail,
    output logic                    idle
);
  localparam int unsigned OWN = (QUEUES + (CLIENT ? 0 : 1)) / 2;
  localparam int unsigned INDEX_W = OWN > 1 ? $clog2(OWN) : 1;
  localparam int unsigned AT_W = (OWN > 1 ? INDEX_W : 0) + SLOT_W - 1;
  localparam int unsigned WORDS = 2 ** AT_W;

  typedef logic [AT_W-1:0] at_t;
  typedef logic [$clog2(QUEUES)-1:0] index_t;
  typedef struct packed {
    addr_t       desc;
    logic [15:0] size;
  } table_t;

  typedef struct packed {
    desc_length_t [BLOCK-1:0] lengths;
    virtq_desc_t [BLOCK-1:0]  descs;
  } block_t;

  function automatic at_t place(queue_t queue, slot_t slot);
    return at_t'({queue[INDEX_W:1], slot[SLOT_W-2:0]});
  endfunction

  slot_t take_q[QUEUES];                     // slot of the next chain to pull

  // ---- the store ----
  at_t                     walk_at;
  logic                    load;
  chain_start_t            stored_start;
  block_t                  stored_block;
  wire at_t reply_at = place(reply.tag.vq, reply.tag.slot);
  wire own_reply = reply.tag.vq[0] == CLIENT;
  wire completes = block_write && own_reply;

  ram_1w1r #(.T(chain_start_t), .WORDS(WORDS)) starts (
      .clk, .write(start_write && own_reply), .write_at(reply_at), .write_data(start),
      .read(load), .read_at(walk_at), .read_data(stored_start)
  );
  ram_1w1r #(.T(block_t), .WORDS(WORDS)) blocks (
      .clk, .write(completes), .write_at(reply_at), .write_data('{lengths: reply_lengths, descs: reply_data}),
      .read(load), .read_at(walk_at), .read_data(stored_block)
  );

  // ---- which are ready: the lap of the slot when its chain became so ----
  // After reset every slot is marked as ready in the lap before the first.
  slot_t clear_q;
  wire   clearing = !clear_q[SLOT_W-1];
  always_ff @(posedge clk) begin
    if (rst) clear_q <= '0;
    else if (clearing) clear_q <= clear_q + 1'b1;
  end

  // A chain is marked a cycle after it is stored.
  logic   completes_q;
  queue_t marked_vq_q;
  slot_t  marked_q;
  always_ff @(posedge clk) begin
    completes_q <= completes && !rst;
    marked_vq_q <= reply.tag.vq;
    marked_q    <= reply.tag.slot;
  end

  for (genvar i = 0; i < QUEUES; i++) begin : g_queue
    if ((i % 2 == 1) == CLIENT) begin : g_own
      (* ram_style = "distributed" *) logic laps[CONTEXTS];
      wire mine = completes_q && marked_vq_q == queue_t'(i);
      always_ff @(posedge clk) begin
        if (clearing || mine) laps[clearing ? clear_q[SLOT_W-2:0] : marked_q[SLOT_W-2:0]] <= clearing || marked_q[SLOT_W-1];
      end
      wire some = take_q[i] != reserved[i];
      assign ready[i]    = some && laps[take_q[i][SLOT_W-2:0]] == take_q[i][SLOT_W-1] && !clearing;
      assign fetching[i] = some;

      always_ff @(posedge clk) begin
        if (load && pull.data == queue_t'(i)) take_q[i] <= take_q[i] + 1'b1;
        if (settle.valid && settle.vq == queue_t'(i)) begin
          if (settle.keep) freed[i] <= take_q[i];
          else take_q[i] <= freed[i];
        end
        if (rst) begin
          take_q[i] <= '0;
          freed[i]  <= '0;
        end
      end
    end else begin : g_other
      assign ready[i]    = 1'b0;
      assign fetching[i] = 1'b0;
      assign freed[i]    = '0;
      assign take_q[i]   = '0;
    end
  end

  // ---- the walk ----
  typedef enum logic [2:0] {
    W_IDLE,
    W_LOAD,
    W_WALK,
    W_READ,
    W_WAIT
  } walk_e;

  (* ram_style = "distributed" *) logic [$bits(table_t)-1:0] tables[MAX_QUEUES];
  always_ff @(posedge clk) if (setup.valid) tables[setup.vq] <= {setup.values.desc, setup.values.size};

  walk_e                   state_q;
  queue_t                  queue_q;
  table_t                  main_q;           // the queue's table
  virtq_desc_t [BLOCK-1:0] block_q;          // from the descriptor at hand on
  desc_length_t [BLOCK-1:0] lengths_q;
  logic [$clog2(BLOCK):0]  left_q;           // of them, defined
  logic [15:0]             head_q, at_q;     // at_q: in its table
  logic                    inside_q;         // that is an indirect one
  addr_t                   base_q;
  logic [15:0]             count_q;          // descriptors of this table
  logic [15:0]             walked_q;         // descriptors before this one, without indirect ones
  virtq_error_e            error_q;

  virtq_desc_t  desc;
  virtq_error_e error;
  logic         leads, step, follows, is_last;
  logic [15:0]  left;
  assign desc    = block_q[0];
  assign leads   = desc.flags.indirect && error == VIRTQ_OK;
  assign follows = desc.next == at_q + 1'b1 && left_q > 1;
  assign is_last = error != VIRTQ_OK || !desc.flags.next;
  assign left    = count_q - at_q;

  always_comb begin
    error = error_q;
    if (error == VIRTQ_OK) begin
      if (walked_q >= main_q.size) error = VIRTQ_CHAIN_LENGTH;
      else if (desc.flags.indirect) error = inside_q ? VIRTQ_INDIRECT_NESTED : indirect_error(desc, lengths_q[0], indirect);
      else if (lengths_q[0].none) error = VIRTQ_ZERO_LENGTH;
      else if (desc.flags.write != WRITABLE && 32'(queue_q) != MIXED) error = VIRTQ_DIRECTION;
      else if (desc.flags.next && desc.next >= count_q) error = VIRTQ_NEXT_RANGE;
    end
  end

  assign pull.ready = state_q == W_IDLE;
  assign load       = pull.valid && pull.ready;
  assign walk_at    = place(pull.data, take_q[index_t'(pull.data)]);
  assign step       = state_q == W_WALK && (leads || !segment.valid || segment.ready);

  always_comb begin
    read.valid          = state_q == W_READ;
    read.data           = '0;
    read.data.tag.kind  = READ_WALK;
    read.data.tag.vq = queue_q;
    read.data.addr      = base_q + addr_t'({at_q, 4'd0});
    read.data.bytes     = left < 16'(BLOCK) ? 7'(left) * 7'(DESC_BYTES) : 7'(BLOCK * DESC_BYTES);
  end

  always_ff @(posedge clk) begin
    fail.valid <= 1'b0;
    unique case (state_q)
      W_IDLE: if (load) begin
        queue_q <= pull.data;
        main_q  <= table_t'(tables[pull.data]);
        state_q <= W_LOAD;
      end
      W_LOAD: begin
        head_q   <= stored_start.head;
        block_q   <= stored_block.descs;
        lengths_q <= stored_block.lengths;
        inside_q <= stored_start.indirect;
        base_q   <= stored_start.indirect ? stored_start.addr : main_q.desc;
        at_q     <= stored_start.indirect ? '0 : stored_start.head;
        count_q  <= stored_start.indirect ? stored_start.count : main_q.size;
        left_q   <= stored_start.only ? ($bits(left_q))'(1) : ($bits(left_q))'(BLOCK);
        walked_q <= '0;
        error_q  <= stored_start.error;
        state_q  <= W_WALK;
      end
      W_WALK: if (step) begin
        block_q   <= block_q >> $bits(virtq_desc_t);
        lengths_q <= lengths_q >> $bits(desc_length_t);
        left_q   <= left_q - 1'b1;
        at_q     <= desc.next;
        walked_q <= walked_q + 1'b1;
        if (leads) begin
          inside_q <= 1'b1;
          base_q   <= desc.addr;
          at_q     <= '0;
          count_q  <= desc.len[19:4];
          walked_q <= walked_q;
          state_q  <= W_READ;
        end else begin
          fail.valid <= error != VIRTQ_OK;
          fail.vq <= queue_q;
          fail.code  <= error;
          if (is_last) state_q <= W_IDLE;
          else if (!follows) state_q <= W_READ;
        end
      end
      W_READ: if (read.ready) state_q <= W_WAIT;
      default: if (reply.valid && reply.tag.kind == READ_WALK && own_reply) begin
        block_q   <= reply_data;
        lengths_q <= reply_lengths;
        left_q  <= ($bits(left_q))'(BLOCK);
        error_q <= reply.error ? VIRTQ_MEMORY : VIRTQ_OK;
        state_q <= W_WALK;
      end
    endcase
    if (rst) begin
      state_q    <= W_IDLE;
      fail.valid <= 1'b0;
    end
  end

  always_ff @(posedge clk) begin
    if (step && !leads) begin
      segment.data <= '{vq: queue_q, head: head_q, addr: desc.addr, len: desc.len, writable: desc.flags.write, last: is_last,
                        error: error != VIRTQ_OK};
    end
    if (rst) segment.valid <= 1'b0;
    else if (!segment.valid || segment.ready || (step && !leads)) segment.valid <= step && !leads;
  end

  assign idle = state_q == W_IDLE && !segment.valid && !completes_q && !clearing;

  always_ff @(posedge clk) if (!rst && load) begin
    assert (pull.data[0] == CLIENT && ready[index_t'(pull.data)]) else $error("pulled from a queue that is not ready");
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, setup.values.vector, setup.values.avail, setup.values.used, reply.tag.head, reply.tag.count, reply.tag.bad, reply.tag.more, reply.tag.at};
endmodule
