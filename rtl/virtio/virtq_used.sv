// SPDX-License-Identifier: Apache-2.0

// Gives chains back to the driver (virtio 1.2, 2.7.8 and 2.7.14): writes elements of the used ring, up to four at once, when
// memory has them the used index, and when memory has that reads whether the driver wants a notification, and sends it. So
// whoever reads the index finds the elements, and a driver that enables notifications and then finds no new index gets one (2.7.7,
// 2.7.10).
//
// One element a cycle of each client into its batch, one write every other cycle to memory. While 24 batches of a client are under way its
// next one grows. Elements of one frame become visible by one index. The writes are commands and single beats for axi_dma_write,
// whose `done` comes in their order.
module virtq_used
  import memory_pkg::*;
  import virtio_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned QUEUES = 4
) (
    input  logic              clk,
    input  logic              rst,
    input  virtq_setup_t      setup,
    input  logic              event_idx,
    input  logic [QUEUES-1:0] live,        // no index is written for others
    stream_if.sink            used[2],     // virtq_used_t, of each client
    stream_if.sink            arm,         // virtq_arm_t
    output logic              armed,       // pulse: it is in memory
    stream_if.source          cmd,         // dma_cmd_t
    axis_if.source            data,        // one beat for each
    stream_if.sink            done,        // dma_done_t
    stream_if.source          read,        // ring_read_t
    input  ring_reply_t       reply,
    input  logic [15:0]       reply_word,
    stream_if.source          interrupt,   // 16 bits: the vector
    output virtq_fail_t       fail,
    output logic              idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned WRITES = 24;                 // batches of a client under way
  localparam int unsigned TAGS = 64;                   // more than all writes under way

  typedef logic [QUEUES-1:0] queues_t;
  typedef logic [$clog2(QUEUES)-1:0] index_t;
  typedef struct packed {
    addr_t       used;
    addr_t       avail;
    logic [15:0] size;
    logic [15:0] vector;
  } ring_t;
  typedef struct packed {
    ring_write_tag_t   tag;
    addr_t             addr;
    logic [6:0]        bytes;
    logic [DATA_W-1:0] data;
  } ring_write_t;

  function automatic queue_t number(queues_t one);
    queue_t n;
    n = '0;
    for (int unsigned i = 0; i < QUEUES; i++) if (one[i]) n |= queue_t'(i);
    return n;
  endfunction

  (* ram_style = "distributed" *) logic [$bits(ring_t)-1:0] rings[MAX_QUEUES];
  always_ff @(posedge clk) if (setup.valid) rings[setup.vq] <= {setup.values.used, setup.values.avail, setup.values.size, setup.values.vector};

  // ---- the elements: a batch of each client ----
  typedef struct packed {
    ring_write_tag_t   tag;
    logic [15:0]       at;
    logic [6:0]        bytes;
    logic [DATA_W-1:0] data;
  } batch_t;

  logic [1:0] batch_valid, batch_ready, batch_one, batch_taken;
  batch_t     batch[2];
  batch_t     batch_now;
  ring_t      batch_ring;
  logic [$clog2(WRITES+1)-1:0] writes_q[2];
  for (genvar i = 0; i < 2; i++) begin : g_batch
    virtq_batch #(.DATA_W(DATA_W), .QUEUES(QUEUES)) collect (
        .clk, .rst, .setup, .used(used[i]), .valid(batch_valid[i]), .take(batch_taken[i]),
        .tag(batch[i].tag), .at(batch[i].at), .bytes(batch[i].bytes), .data(batch[i].data)
    );
    assign batch_ready[i] = batch_valid[i] && 32'(writes_q[i]) != WRITES;
  end
  round_robin #(.N(2)) batch_turns (.clk, .rst, .request(batch_ready), .take(|batch_taken), .grant(batch_one));
  assign batch_now  = batch_one[1] ? batch[1] : batch[0];
  assign batch_ring = ring_t'(rings[batch_now.tag.vq]);

  // ---- the index, of a queue whose elements are in memory ----
  logic [15:0] confirmed_q[QUEUES];          // elements of whole frames in memory
  logic [15:0] written_q[QUEUES];            // the index as it was last written
  queues_t     index_busy_q, stale, index_one;
  logic        index_valid_q, index_taken;
  queue_t      index_queue_q;
  ring_t       index_ring;
  assign index_ring = ring_t'(rings[index_queue_q]);
  for (genvar i = 0; i < QUEUES; i++) begin : g_stale
    assign stale[i] = confirmed_q[i] != written_q[i] && !index_busy_q[i] && live[i];
  end
  wire index_picks = !index_valid_q && |stale;
  round_robin #(.N(QUEUES)) index_turns (.clk, .rst, .request(stale), .take(index_picks), .grant(index_one));

  // ---- one of the three is written ----
  stream_if #(.T(ring_write_t)) write ();
  stream_if #(.T(ring_write_tag_t)) tag_in ();
  stream_if #(.T(ring_write_tag_t)) tag ();
  ring_t arm_ring;
  assign arm_ring = ring_t'(rings[arm.data.vq]);
  wire write_free = !write.valid;

  assign index_taken = write_free && index_valid_q;
  assign arm.ready   = write_free && !index_valid_q;
  assign batch_taken = write_free && !index_valid_q && !arm.valid ? batch_one : '0;

  always_ff @(posedge clk) begin
    if (write_free) begin
      if (index_valid_q) begin
        write.data.tag   <= '{kind: WRITE_INDEX, vq: index_queue_q, whole: 1'b1, index: confirmed_q[index_t'(index_queue_q)]};
        write.data.addr  <= index_ring.used;
        write.data.bytes <= 7'd4;
        write.data.data  <= DATA_W'({confirmed_q[index_t'(index_queue_q)], 16'd0});       // flags: 0
      end else if (arm.valid) begin
        write.data.tag   <= '{kind: WRITE_EVENT, vq: arm.data.vq, whole: 1'b0, index: '0};
        write.data.addr  <= arm_ring.used + addr_t'(RING_AT) + addr_t'({arm_ring.size, 3'd0});
        write.data.bytes <= 7'd2;
        write.data.data  <= DATA_W'(arm.data.index);
      end else begin
        write.data.tag   <= batch_now.tag;
        write.data.addr  <= batch_ring.used + addr_t'(RING_AT) + addr_t'({batch_now.at, 3'd0});
        write.data.bytes <= batch_now.bytes;
        write.data.data  <= batch_now.data;
      end
    end
    if (index_picks) index_queue_q <= number(index_one);
    if (rst) begin
      write.valid   <= 1'b0;
      index_valid_q <= 1'b0;
    end else begin
      write.valid <= write_free ? index_valid_q || arm.valid || |batch_ready : !write.ready;
      index_valid_q <= index_picks || (index_valid_q && !index_taken);
    end
  end

  logic [2:0] taken_q;                       // of this write: the command, the data, the tag
  wire  [2:0] taken = taken_q | {tag_in.ready, data.tready, cmd.ready};
  assign cmd.valid    = write.valid && !taken_q[0];
  assign cmd.data     = '{target: '0, key: '0, addr: write.data.addr, length: 32'(write.data.bytes)};
  assign data.tvalid  = write.valid && !taken_q[1];
  assign data.tdata   = write.data.data;
  assign data.tkeep   = ~(BYTES'('1) << write.data.bytes);
  assign data.tlast   = 1'b1;
  assign data.tuser   = 1'b0;
  assign tag_in.valid = write.valid && !taken_q[2];
  assign tag_in.data  = write.data.tag;
  assign write.ready  = &taken;
  always_ff @(posedge clk) taken_q <= rst || !write.valid || write.ready ? '0 : taken;

  stream_fifo #(.T(ring_write_tag_t), .DEPTH(TAGS)) tags (.clk, .rst, .in(tag_in), .out(tag), .empty());

  // ---- what memory has ----
  queues_t check_q;                          // an index was written: does the driver want to know?
  logic [15:0] published_q[QUEUES];          // the index that memory has
  wire ends = done.valid && tag.valid;
  assign done.ready = tag.valid;
  assign tag.ready  = done.valid;
  assign armed      = ends && tag.data.kind == WRITE_EVENT;

  typedef enum logic [1:0] {
    C_PICK,
    C_READ,
    C_WAIT,
    C_TELL
  } check_e;
  check_e  check_state_q;
  queues_t check_one;
  wire     checks = check_state_q == C_PICK && |check_q;

  always_ff @(posedge clk) begin
    if (index_taken) begin
      written_q[index_t'(index_queue_q)]    <= confirmed_q[index_t'(index_queue_q)];
      index_busy_q[index_t'(index_queue_q)] <= 1'b1;
    end
    if (checks) check_q <= check_q & ~check_one;
    fail.valid <= 1'b0;
    fail.vq <= tag.data.vq;
    fail.code  <= VIRTQ_MEMORY;
    if (ends) begin
      fail.valid <= done.data.error;
      if (tag.data.kind == WRITE_ELEMENTS && tag.data.whole && !done.data.error) confirmed_q[index_t'(tag.data.vq)] <= tag.data.index;
      if (tag.data.kind == WRITE_INDEX) begin
        index_busy_q[index_t'(tag.data.vq)] <= 1'b0;
        check_q[index_t'(tag.data.vq)]      <= 1'b1;
        published_q[index_t'(tag.data.vq)]  <= tag.data.index;
      end
    end
    if (rst) begin
      fail.valid   <= 1'b0;
      index_busy_q <= '0;
      check_q      <= '0;
      for (int unsigned i = 0; i < 2; i++) writes_q[i] <= '0;
      for (int unsigned i = 0; i < QUEUES; i++) begin
        confirmed_q[i] <= '0;
        written_q[i]   <= '0;
        published_q[i] <= '0;
      end
    end else begin
      for (int unsigned i = 0; i < 2; i++) begin
        writes_q[i] <= writes_q[i] + ($bits(writes_q[i]))'(batch_taken[i])
                     - ($bits(writes_q[i]))'(ends && tag.data.kind == WRITE_ELEMENTS && tag.data.vq[0] == (i == 1));
      end
    end
  end

  // ---- notifications ----
  // The driver wants one if the index has passed its used_event since the last look (2.7.7.2), or without VIRTIO_F_EVENT_IDX unless
  // its flag says that it does not.
  logic [15:0] told_q[QUEUES];               // the index at the last look
  queue_t      check_queue_q;
  logic [15:0] check_index_q;
  ring_t       check_ring;
  assign check_ring = ring_t'(rings[check_queue_q]);
  wire [15:0] since_event = check_index_q - reply_word - 1'b1;
  wire [15:0] since_told = check_index_q - told_q[index_t'(check_queue_q)];
  wire wanted = event_idx ? since_event < since_told : !reply_word[VIRTQ_AVAIL_F_NO_INTERRUPT];
  wire looked = check_state_q == C_WAIT && reply.valid && reply.tag.kind == READ_CHECK;
  round_robin #(.N(QUEUES)) check_turns (.clk, .rst, .request(check_q), .take(checks), .grant(check_one));

  always_comb begin
    read.valid          = check_state_q == C_READ;
    read.data           = '0;
    read.data.tag.kind  = READ_CHECK;
    read.data.tag.vq = check_queue_q;
    read.data.addr      = check_ring.avail + (event_idx ? addr_t'(RING_AT) + addr_t'({check_ring.size, 1'b0}) : '0);
    read.data.bytes     = 7'd2;
  end
  assign interrupt.valid = check_state_q == C_TELL;
  assign interrupt.data  = check_ring.vector;

  always_ff @(posedge clk) begin
    unique case (check_state_q)
      C_PICK: if (checks) begin
        check_queue_q <= number(check_one);
        check_state_q <= C_READ;
      end
      C_READ: begin
        check_index_q <= published_q[index_t'(check_queue_q)];
        if (read.ready) check_state_q <= C_WAIT;
      end
      C_WAIT: if (looked) begin
        told_q[index_t'(check_queue_q)] <= check_index_q;
        check_state_q         <= wanted && !reply.error ? C_TELL : C_PICK;
      end
      default: if (interrupt.ready) check_state_q <= C_PICK;
    endcase
    if (rst) begin
      check_state_q <= C_PICK;
      for (int unsigned i = 0; i < QUEUES; i++) told_q[i] <= '0;
    end
  end

  assign idle = batch_valid == '0 && !write.valid && !index_valid_q && !tag.valid && stale == '0 && check_q == '0 && check_state_q == C_PICK;

  logic unused_ok;
  assign unused_ok = &{1'b0, setup.values.desc, reply.tag.slot};
endmodule
