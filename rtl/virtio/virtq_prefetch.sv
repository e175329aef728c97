// SPDX-License-Identifier: Apache-2.0

// Fetches the beginning of chains ahead (virtio 1.2, 2.7.5): for each entry of the available ring up to BLOCK descriptors from its
// head on, and if the head is an indirect descriptor up to BLOCK of its table instead. Heads that follow each other and lie in the same
// DESC_GROUP of descriptors, in any order, are fetched by one read. The chains of a queue come in the order of its slots, or with an indirect
// table between others later.
//
// One read every other cycle, and one cycle for each read of entries. At most 64 chains are under way, so that there is room for those of
// them that have a table: 2.7 cycles a chain at a latency of 155.
module virtq_prefetch
  import memory_pkg::*;
  import virtio_pkg::*;
(
    input  logic                    clk,
    input  logic                    rst,
    input  virtq_setup_t            setup,
    input  logic                    indirect,      // VIRTIO_F_INDIRECT_DESC is negotiated
    input  ring_reply_t             reply,
    input  virtq_desc_t [BLOCK-1:0] reply_data,
    input  desc_length_t [BLOCK-1:0] reply_lengths,
    stream_if.source                read[2],       // ring_read_t: descriptors of the queue's table, of indirect tables
    output logic                    unpacked,      // pulse: the entries of a read have left their buffer
    output logic                    start_write,   // where a chain begins, or the error in it
    output chain_start_t            start,
    output logic                    block_write,   // the chain in `reply.tag` is ready, with `reply_data` as its first descriptors
    output logic                    idle
);
  localparam int unsigned UNDER_WAY = 64;

  typedef struct packed {
    addr_t       desc;
    logic [15:0] size;
  } table_t;

  typedef struct packed {
    logic                      error;
    queue_t                    vq;
    slot_t                     slot;
    entries_t                  count;
    logic [ENTRIES-1:0][15:0]  heads;
  } entries_read_t;

  typedef struct packed {
    queue_t      vq;
    slot_t       slot;
    logic [15:0] head;
    addr_t       addr;
    logic [15:0] count;
  } indirect_t;

  // At most BLOCK descriptors, and no more than are there.
  function automatic logic [6:0] block_bytes(logic [15:0] left);
    return left < 16'(BLOCK) ? 7'(left) * 7'(DESC_BYTES) : 7'(BLOCK * DESC_BYTES);
  endfunction

  // ---- entries of the available ring, one after another ----
  stream_if #(.T(entries_read_t)) entries_in ();
  stream_if #(.T(entries_read_t)) entries ();
  assign entries_in.valid = reply.valid && reply.tag.kind == READ_ENTRIES;
  assign entries_in.data  = '{error: reply.error, vq: reply.tag.vq, slot: reply.tag.slot, count: reply.tag.count,
                              heads: (ENTRIES * 16)'(reply_data)};
  stream_fifo #(.T(entries_read_t), .DEPTH(8)) buffer (.clk, .rst, .in(entries_in), .out(entries), .empty());

  (* ram_style = "distributed" *) logic [$bits(table_t)-1:0] tables[MAX_QUEUES];
  always_ff @(posedge clk) if (setup.valid) tables[setup.vq] <= {setup.values.desc, setup.values.size};

  logic          busy_q;
  entries_read_t now_q;
  table_t        table_q;
  logic [$clog2(UNDER_WAY+1)-1:0] under_way_q;
  logic          asks, ends, done, led, room_q;   // room_q: sees what is done a cycle late
  wire [15:0] head = now_q.heads[0];

  // Found out a cycle before it is read: how many of the next entries are in the group of the first one.
  localparam int unsigned IN_GROUP_W = $bits(in_group_t);
  wire       whole = {head[15:IN_GROUP_W], in_group_t'('1)} < table_q.size && !now_q.error;
  in_group_t more, more_q;
  logic      known_q, outside_q;
  logic [6:0] bytes_q;
  always_comb begin
    automatic logic joins = whole;
    more = '0;
    for (int unsigned i = 1; i < DESC_GROUP; i++) begin
      joins = joins && now_q.count > entries_t'(i) && now_q.heads[i][15:IN_GROUP_W] == head[15:IN_GROUP_W];
      if (joins) more = in_group_t'(i);
    end
  end
  always_ff @(posedge clk) begin
    more_q    <= more;
    outside_q <= head >= table_q.size;
    bytes_q   <= block_bytes(table_q.size - head);
    known_q   <= busy_q && !asks && !rst;
  end
  wire entries_t chains = entries_t'(more_q) + 1'b1;

  assign asks          = known_q && read[0].ready && room_q;
  assign ends          = asks && now_q.count == chains;
  assign entries.ready = !busy_q;
  assign unpacked      = entries.valid && entries.ready;

  // A head that is outside of the table leads to a read, too, of its first descriptor: so that its slot follows the others.
  assign read[0].valid = known_q && room_q;
  always_comb begin
    read[0].data           = '0;
    read[0].data.tag.kind  = READ_DIRECT;
    read[0].data.tag.vq = now_q.vq;
    read[0].data.tag.slot  = now_q.slot;
    read[0].data.tag.head  = head;
    read[0].data.tag.bad   = now_q.error ? VIRTQ_MEMORY : outside_q ? VIRTQ_HEAD_RANGE : VIRTQ_OK;
    read[0].data.tag.more  = more_q;
    for (int unsigned i = 0; i < DESC_GROUP; i++) read[0].data.tag.at[i] = more_q == '0 ? '0 : now_q.heads[i][IN_GROUP_W-1:0];
    read[0].data.addr      = table_q.desc + addr_t'({outside_q ? 16'd0 : more_q != '0 ? {head[15:IN_GROUP_W], in_group_t'('0)} : head, 4'd0});
    read[0].data.bytes     = outside_q ? 7'(DESC_BYTES) : more_q != '0 ? 7'(DESC_GROUP * DESC_BYTES) : bytes_q;
  end

  always_ff @(posedge clk) begin
    if (entries.ready) begin
      now_q   <= entries.data;
      table_q <= table_t'(tables[entries.data.vq]);
    end else if (asks) begin
      for (int unsigned i = 0; i < ENTRIES; i++)
        for (int unsigned k = 0; k < DESC_GROUP; k++)
          if (32'(more_q) == k) now_q.heads[i] <= i + k + 1 < ENTRIES ? now_q.heads[(i+k+1)%ENTRIES] : '0;
      now_q.slot  <= now_q.slot + slot_t'(chains);
      now_q.count <= now_q.count - chains;
    end
    if (rst) busy_q <= 1'b0;
    else busy_q <= entries.ready ? entries.valid : !ends;
  end

  // ---- the first descriptors ----
  stream_if #(.T(indirect_t)) found ();
  stream_if #(.T(indirect_t)) indirect_table ();
  logic         direct, leads;
  virtq_error_e wrong;
  assign direct = reply.valid && reply.tag.kind == READ_DIRECT;
  assign wrong  = reply.tag.bad != VIRTQ_OK ? reply.tag.bad : reply.error ? VIRTQ_MEMORY
                : reply_data[0].flags.indirect ? indirect_error(reply_data[0], reply_lengths[0], indirect) : VIRTQ_OK;
  assign leads  = direct && reply_data[0].flags.indirect && wrong == VIRTQ_OK;

  assign found.valid = leads;
  assign found.data  = '{vq: reply.tag.vq, slot: reply.tag.slot, head: reply.tag.head, addr: reply_data[0].addr, count: reply_data[0].len[19:4]};
  stream_fifo #(.T(indirect_t), .DEPTH(UNDER_WAY)) found_ones (.clk, .rst, .in(found), .out(indirect_table), .empty());

  assign read[1].valid        = indirect_table.valid;
  assign indirect_table.ready = read[1].ready;
  always_comb begin
    read[1].data           = '0;
    read[1].data.tag.kind  = READ_TABLE;
    read[1].data.tag.vq = indirect_table.data.vq;
    read[1].data.tag.slot  = indirect_table.data.slot;
    read[1].data.tag.head  = indirect_table.data.head;
    read[1].data.addr      = indirect_table.data.addr;
    read[1].data.bytes     = block_bytes(indirect_table.data.count);
  end

  wire tabled = reply.valid && reply.tag.kind == READ_TABLE;
  assign start_write = direct || (tabled && reply.error);
  assign start       = '{error: tabled ? VIRTQ_MEMORY : wrong, head: reply.tag.head, indirect: leads, addr: reply_data[0].addr,
                         count: reply_data[0].len[19:4], only: reply.tag.at[0] == '1};
  assign block_write = (direct && !leads) || tabled;

  assign done = direct && !leads;
  assign led  = indirect_table.valid && indirect_table.ready;
  always_ff @(posedge clk) begin
    room_q <= 32'(under_way_q) + (asks ? 32'(chains) : 32'd0) + DESC_GROUP <= UNDER_WAY;
    if (rst) under_way_q <= '0;
    else under_way_q <= under_way_q + (asks ? ($bits(under_way_q))'(chains) : '0) - ($bits(under_way_q))'(done) - ($bits(under_way_q))'(led);
  end

  assign idle = !busy_q && !entries.valid && under_way_q == '0;

  always_ff @(posedge clk) if (!rst) assert (!found.valid || found.ready) else $error("more tables than there is room for");
  always_ff @(posedge clk) if (!rst) assert (!entries_in.valid || entries_in.ready) else $error("more entries than there is room for");

  logic unused_ok;
  assign unused_ok = &{1'b0, setup.values.vector, setup.values.avail, setup.values.used, reply.tag.more, reply.tag.at};
endmodule
