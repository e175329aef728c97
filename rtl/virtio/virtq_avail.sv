// SPDX-License-Identifier: Apache-2.0

// What the driver makes available (virtio 1.2, 2.7.6 and 2.7.13): on a notification reads a queue's available index, and goes on
// reading it as long as that brings something; reads the new entries, up to ENTRIES at once, as far as there are slots for their chains.
//
// With VIRTIO_F_EVENT_IDX a queue that brought nothing writes avail_event, and when that is in memory reads the index once more: an
// entry that the driver added before it could see avail_event is found, and one that it adds later comes with a notification
// (2.7.10). A notification takes 3 cycles to the read, a second one for a queue while its index is read leads to another read. One
// read of an index is under way at a time. Entries take 4 cycles to a read; one read a time begins, several are under way.
module virtq_avail
  import memory_pkg::*;
  import virtio_pkg::*;
#(
    parameter int unsigned QUEUES = 4
) (
    input  logic               clk,
    input  logic               rst,
    input  virtq_setup_t       setup,
    input  logic               event_idx,
    input  logic [QUEUES-1:0]  live,         // others are left alone
    stream_if.sink             notify,       // queue_t
    stream_if.source           read,         // ring_read_t
    input  ring_reply_t        reply,
    input  logic [15:0]        reply_index,
    stream_if.source           arm,          // virtq_arm_t
    input  logic               armed,        // pulse: it is in memory
    input  slot_t [QUEUES-1:0] freed,        // slots of each queue, counted
    input  logic               unpacked,     // pulse: the entries of a read have left their buffer
    output slot_t [QUEUES-1:0] reserved,     // slots of each queue, counted
    output logic [QUEUES-1:0]  more,         // entries of the queue are known and can be read
    output virtq_fail_t        fail,
    output logic               idle
);
  localparam int unsigned READS = 8;         // of entries under way: as many as their buffer holds
  localparam int unsigned BATCH = ENTRIES;         // so many entries are worth a read while there are more

  typedef logic [QUEUES-1:0] queues_t;
  typedef logic [$clog2(QUEUES)-1:0] index_t;
  typedef struct packed {
    addr_t       avail;
    logic [15:0] size;
  } ring_t;

  function automatic queue_t number(queues_t one);
    queue_t n;
    n = '0;
    for (int unsigned i = 0; i < QUEUES; i++) if (one[i]) n |= queue_t'(i);
    return n;
  endfunction

  (* ram_style = "distributed" *) logic [$bits(ring_t)-1:0] rings[MAX_QUEUES];
  queue_t poll_queue_q, fetch_queue_q;
  ring_t  poll_ring, fetch_ring;
  always_ff @(posedge clk) if (setup.valid) rings[setup.vq] <= {setup.values.avail, setup.values.size};
  assign poll_ring  = ring_t'(rings[poll_queue_q]);
  assign fetch_ring = ring_t'(rings[fetch_queue_q]);

  logic [15:0] seen_q[QUEUES];               // the available index
  logic [15:0] next_q[QUEUES];               // the entry to read next

  typedef enum logic [1:0] {
    F_PICK,
    F_LOOK,
    F_COUNT,
    F_READ
  } fetch_e;

  // ---- the index ----
  typedef enum logic [2:0] {
    P_PICK,
    P_READ,
    P_WAIT,
    P_ARM,
    P_ARMED
  } poll_e;

  poll_e   poll_state_q;
  fetch_e  fetch_state_q;
  queues_t poll_q, armed_q, poll_one;
  wire     polls = poll_state_q == P_PICK && |(poll_q & live) && fetch_state_q != F_READ;   // what is offered to `read` stays
  wire     answered = poll_state_q == P_WAIT && reply.valid && reply.tag.kind == READ_INDEX;
  wire [15:0] fresh = reply_index - seen_q[index_t'(poll_queue_q)];

  round_robin #(.N(QUEUES)) poll_turns (.clk, .rst, .request(poll_q & live), .take(polls), .grant(poll_one));

  assign notify.ready   = 1'b1;
  assign arm.valid      = poll_state_q == P_ARM;
  assign arm.data.vq = poll_queue_q;
  assign arm.data.index = seen_q[index_t'(poll_queue_q)];

  always_ff @(posedge clk) begin
    fail.valid <= 1'b0;
    fail.vq <= poll_queue_q;
    fail.code  <= reply.error ? VIRTQ_MEMORY : VIRTQ_AVAIL_JUMP;
    if (polls) begin
      poll_queue_q <= number(poll_one);
      poll_q       <= poll_q & ~poll_one;
    end
    unique case (poll_state_q)
      P_PICK: if (polls) poll_state_q <= P_READ;
      P_READ: if (read.ready) poll_state_q <= P_WAIT;
      P_WAIT: if (answered) begin
        poll_state_q <= P_PICK;
        if (reply.error || fresh > poll_ring.size) begin
          fail.valid <= 1'b1;
        end else if (fresh != '0) begin
          seen_q[index_t'(poll_queue_q)]  <= reply_index;
          armed_q[index_t'(poll_queue_q)] <= 1'b0;
          poll_q[index_t'(poll_queue_q)]  <= 1'b1;
        end else if (event_idx && !armed_q[index_t'(poll_queue_q)]) begin
          poll_state_q <= P_ARM;
        end
      end
      P_ARM: if (arm.ready) poll_state_q <= P_ARMED;
      default: if (armed) begin
        poll_state_q          <= P_PICK;
        armed_q[index_t'(poll_queue_q)] <= 1'b1;
        poll_q[index_t'(poll_queue_q)]  <= 1'b1;
      end
    endcase
    if (notify.valid && 32'(notify.data) < QUEUES) poll_q[index_t'(notify.data)] <= 1'b1;
    if (rst) begin
      poll_state_q <= P_PICK;
      poll_q       <= '0;
      armed_q      <= '0;
      fail.valid   <= 1'b0;
      for (int unsigned i = 0; i < QUEUES; i++) seen_q[i] <= '0;
    end
  end

  // ---- the entries ----
  queues_t     due_q, fetch_one;
  logic [15:0] want_q, room_q, at_q;         // entries known; to the end of the ring; position
  slot_t       space_q;                      // slots free
  entries_t    count_q, count;
  logic [$clog2(READS+1)-1:0] reads_q;
  wire fetches = fetch_state_q == F_PICK && |due_q && 32'(reads_q) != READS;

  // Valid once the values that it is from have not changed for a cycle: F_LOOK looks again.
  for (genvar i = 0; i < QUEUES; i++) begin : g_due
    logic [15:0] want;
    slot_t       space;
    assign want  = seen_q[i] - next_q[i];
    assign space = slot_t'(CONTEXTS) - (reserved[i] - freed[i]);
    assign more[i] = live[i] && want != '0 && space != '0;
    always_ff @(posedge clk) due_q[i] <= more[i] && (space >= slot_t'(BATCH) || want <= 16'(space));
  end

  round_robin #(.N(QUEUES)) fetch_turns (.clk, .rst, .request(due_q), .take(fetches), .grant(fetch_one));

  always_comb begin
    count = entries_t'(ENTRIES);
    if (want_q < 16'(count)) count = entries_t'(want_q);
    if (16'(space_q) < 16'(count)) count = entries_t'(space_q);
    if (room_q < 16'(count)) count = entries_t'(room_q);
  end

  wire issue = fetch_state_q == F_READ && read.ready && poll_state_q != P_READ;

  always_ff @(posedge clk) begin
    if (fetches) fetch_queue_q <= number(fetch_one);
    want_q  <= seen_q[index_t'(fetch_queue_q)] - next_q[index_t'(fetch_queue_q)];
    space_q <= slot_t'(CONTEXTS) - (reserved[index_t'(fetch_queue_q)] - freed[index_t'(fetch_queue_q)]);
    at_q    <= ring_position(next_q[index_t'(fetch_queue_q)], fetch_ring.size);
    room_q  <= fetch_ring.size - ring_position(next_q[index_t'(fetch_queue_q)], fetch_ring.size);
    unique case (fetch_state_q)
      F_PICK: if (fetches) fetch_state_q <= F_LOOK;
      F_LOOK: fetch_state_q <= F_COUNT;
      F_COUNT: begin
        count_q       <= count;
        fetch_state_q <= count == '0 ? F_PICK : F_READ;
      end
      default: if (issue) fetch_state_q <= F_PICK;
    endcase
    if (issue) begin
      next_q[index_t'(fetch_queue_q)]   <= next_q[index_t'(fetch_queue_q)] + 16'(count_q);
      reserved[index_t'(fetch_queue_q)] <= reserved[index_t'(fetch_queue_q)] + slot_t'(count_q);
    end
    if (rst) begin
      fetch_state_q <= F_PICK;
      reads_q       <= '0;
      reserved      <= '0;
      for (int unsigned i = 0; i < QUEUES; i++) next_q[i] <= '0;
    end else begin
      reads_q <= reads_q + ($bits(reads_q))'(issue) - ($bits(reads_q))'(unpacked);
    end
  end

  // ---- both read ----
  always_comb begin
    read.valid          = poll_state_q == P_READ || fetch_state_q == F_READ;
    read.data           = '0;
    read.data.tag.kind  = READ_ENTRIES;
    read.data.tag.vq = fetch_queue_q;
    read.data.tag.slot  = reserved[index_t'(fetch_queue_q)];
    read.data.tag.count = count_q;
    read.data.addr      = fetch_ring.avail + addr_t'(RING_AT) + addr_t'({at_q, 1'b0});
    read.data.bytes     = 7'({count_q, 1'b0});
    if (poll_state_q == P_READ) begin
      read.data.tag.kind  = READ_INDEX;
      read.data.tag.vq = poll_queue_q;
      read.data.addr      = poll_ring.avail + addr_t'(IDX_AT);
      read.data.bytes     = 7'd2;
    end
  end

  // A read that is about to begin counts as well.
  assign idle = poll_state_q == P_PICK && (poll_q & live) == '0 && fetch_state_q == F_PICK && due_q == '0 && reads_q == '0;

  logic unused_ok;
  assign unused_ok = &{1'b0, setup.values.vector, setup.values.desc, setup.values.used};
endmodule
