// SPDX-License-Identifier: Apache-2.0

// Reads of rings and descriptors from host memory: N clients ask, round robin; each answer comes in one cycle, with the tag of its
// request, in the order of the requests of all. A read for several chains has an answer for each, one after another. Who asks has room
// for the answer: an answer cannot wait. Latency beside that of memory: 3 cycles to AR, 5 from R at 512 bits, more where an answer has
// several beats; one request a cycle, one answer a cycle. At most BUFFER_BEATS beats are outstanding.
module virtq_reader
  import memory_pkg::*;
  import virtio_pkg::*;
#(
    parameter int unsigned DATA_W       = 512,
    parameter int unsigned ID_W         = 4,
    parameter int unsigned N            = 2,
    parameter int unsigned WAITING      = 64,        // a power of two: no fewer than all `more` of the reads under way
    parameter int unsigned BUFFER_BEATS = DATA_W < 256 ? 256 : 128
) (
    input  logic                        clk,
    input  logic                        rst,
    stream_if.sink                      request[N],   // ring_read_t
    axi_if.master                       mem,          // read channels
    output ring_reply_t                 reply,
    output virtq_desc_t [BLOCK-1:0]     reply_data,   // from byte 0, or where the chain begins; what was not read is undefined
    output desc_length_t [BLOCK-1:0]    reply_lengths,
    output logic                        idle
);
  localparam int unsigned BITS = DESC_GROUP * $bits(virtq_desc_t);
  localparam int unsigned PARTS = BITS > DATA_W ? BITS / DATA_W : 1;
  typedef struct packed {
    logic                    error;
    ring_tag_t               tag;
    virtq_desc_t [DESC_GROUP-1:0] descs;
  } answer_t;

  stream_if #(.T(ring_read_t)) chosen ();
  stream_if #(.T(ring_read_t)) granted ();
  stream_if #(.T(ring_read_t)) both[2] ();
  stream_if #(.T(dma_cmd_t)) cmd ();
  stream_if #(.T(ring_tag_t)) tag_in ();
  stream_if #(.T(ring_tag_t)) tag ();
  stream_if #(.T(answer_t)) answer_in ();
  stream_if #(.T(answer_t)) answer ();
  axis_if #(.DATA_W(DATA_W)) data ();
  logic dma_idle, none_waits;

  stream_arbiter #(.T(ring_read_t), .N(N)) arbiter (.clk, .rst, .in(request), .last('1), .out(chosen));
  stream_skid #(.T(ring_read_t)) skid (.clk, .rst, .in(chosen), .out(granted));
  stream_fork #(.T(ring_read_t), .N(2)) fork_ (.clk, .rst, .in(granted), .out(both));

  assign cmd.valid     = both[0].valid;
  assign cmd.data      = '{target: '0, key: '0, addr: both[0].data.addr, length: 32'(both[0].data.bytes)};
  assign both[0].ready = cmd.ready;
  assign tag_in.valid  = both[1].valid;
  assign tag_in.data   = both[1].data.tag;
  assign both[1].ready = tag_in.ready;

  stream_fifo #(.T(ring_tag_t), .DEPTH(BUFFER_BEATS)) tags (.clk, .rst, .in(tag_in), .out(tag), .empty());
  axi_dma_read #(.DATA_W(DATA_W), .ID_W(ID_W), .BURST_BYTES(1024), .BUFFER_BEATS(BUFFER_BEATS), .STORE(1'b0)) dma (
      .clk, .rst, .cmd, .mem, .data, .idle(dma_idle)
  );

  // ---- an answer of several beats is collected; those that come while one for several chains is given wait ----
  logic [PARTS-1:0][DATA_W-1:0] parts;
  if (PARTS == 1) begin : g_one
    assign parts = data.tdata;
  end else begin : g_parts
    logic [PARTS-1:0][DATA_W-1:0] parts_q;
    logic [$clog2(PARTS)-1:0]     part_q;
    always_comb begin
      parts = parts_q;
      for (int unsigned i = 0; i < PARTS; i++) if (32'(part_q) == i) parts[i] = data.tdata;
    end
    always_ff @(posedge clk) begin
      if (data.tvalid) parts_q <= parts;
      if (rst) part_q <= '0;
      else if (data.tvalid) part_q <= data.tlast ? '0 : part_q + 1'b1;
    end
  end
  assign data.tready     = 1'b1;
  assign answer_in.valid = data.tvalid && data.tlast;
  assign answer_in.data  = '{error: data.tuser, tag: tag.data, descs: BITS'(parts)};
  assign tag.ready       = answer_in.valid;
  stream_fifo #(.T(answer_t), .DEPTH(WAITING), .BLOCK_RAM(1'b0), .BYPASS(1'b0)) answers (
      .clk, .rst, .in(answer_in), .out(answer), .empty(none_waits)
  );

  // ---- and given, chain by chain ----
  in_group_t given_q;
  ring_tag_t now;
  virtq_desc_t [DESC_GROUP-1:0] fetched;              // from where the chain begins
  virtq_desc_t [BLOCK-1:0] descs;
  wire last = given_q == answer.data.tag.more;
  assign now          = answer.data.tag;
  assign answer.ready = last;
  wire in_group_t at  = now.at[given_q];
  always_comb begin
    fetched = answer.data.descs;
    for (int unsigned b = 0; b < $bits(in_group_t); b++) if (at[b]) fetched = fetched >> ($bits(virtq_desc_t) << b);
  end
  assign descs = fetched[BLOCK-1:0];
  always_ff @(posedge clk) begin
    reply.error      <= answer.data.error;
    reply.tag        <= now;
    reply.tag.slot   <= now.slot + slot_t'(given_q);
    reply.tag.at[0]  <= at;
    if (now.more != '0) reply.tag.head[$bits(in_group_t)-1:0] <= at;
    reply_data       <= descs;
    for (int unsigned i = 0; i < BLOCK; i++) reply_lengths[i] <= desc_length(descs[i].len);
    if (rst) begin
      reply.valid <= 1'b0;
      given_q     <= '0;
    end else begin
      reply.valid <= answer.valid;
      if (answer.valid) given_q <= last ? '0 : given_q + 1'b1;
    end
  end
  assign idle = dma_idle && !granted.valid && !tag.valid && none_waits && !reply.valid;

  // Every answer has been asked for, and has room.
  always_ff @(posedge clk) if (!rst && answer_in.valid) assert (tag.valid && answer_in.ready);

  logic unused_ok;
  assign unused_ok = &{1'b0, data.tkeep};
endmodule
