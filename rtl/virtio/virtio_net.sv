// SPDX-License-Identifier: Apache-2.0

// A virtio 1.2 network device: registers of the PCI transport on `bus`, rings and buffers in the memory behind `mem`, frames on
// `rx` and `tx`.
//
//            bus ─► virtio_registers ─► setup, enable, notify
//                                            │
//   mem ◄─ reads, ring writes ─ virtq_engine ┼─ segments ─► virtio_net_tx ─► tx, commands ─► virtio_net_control
//                                            └─ segments ─► virtio_net_rx ◄─ rx
//
// `reset` is a function-level reset. Nothing in the middle of an access to memory or of a frame is cut off: `reset_done` comes when they have
// ended, and all is cleared but the counters.
//
// `notify` is a second way to notify a queue, beside the registers: for a transport that does it by messages.
// Throughput: docs/reference/virtio-net.md.
module virtio_net
  import memory_pkg::*;
  import virtio_pkg::*;
#(
    parameter int unsigned DATA_W    = 512,
    parameter int unsigned ID_W      = 5,            // 2 at least
    parameter int unsigned PAIRS     = 1,            // of queues, 1 to MAX_PAIRS
    parameter int unsigned VECTORS   = 8,
    parameter int unsigned SIZE      = 256,          // largest queue size: a power of two, at most MAX_QUEUE_SIZE
    parameter int unsigned MAX_FRAME = 9018          // bytes, without FCS
) (
    input  logic           clk,
    input  logic           rst,
    axil_if.slave          bus,                      // 12 bits of address
    input  logic [47:0]    mac,
    input  logic [15:0]    mtu,                      // 68 at least
    input  logic           link_up,
    input  logic           reset,                    // until `reset_done`
    output logic           reset_done,               // until `reset` falls
    stream_if.sink         notify,                   // queue_t
    stream_if.source       interrupt,                // 16 bits: the vector
    axi_if.master          mem,                      // ID_W bits of ID
    axis_if.sink           rx,
    input  net_rx_t        rx_info,                  // with the last beat of `rx`
    axis_if.source         tx,
    output net_tx_t        tx_info,                  // with each beat of `tx`
    output logic           idle                      // nothing is under way
);
  // With more than one pair there is a control queue, by which the driver says how many it uses.
  localparam bit          CONTROL = PAIRS > 1;
  localparam int unsigned CONTROL_QUEUE = CONTROL ? 2 * PAIRS + 1 : MAX_QUEUES;
  localparam int unsigned QUEUES = CONTROL ? 2 * PAIRS + 2 : 2;
  localparam int unsigned WRITERS = CONTROL ? 3 : 2;
  localparam logic [63:0] OFFERED = 64'd1 << VIRTIO_NET_F_CSUM | 64'd1 << VIRTIO_NET_F_GUEST_CSUM | 64'd1 << VIRTIO_NET_F_MTU
                                  | 64'd1 << VIRTIO_NET_F_MAC | 64'd1 << VIRTIO_NET_F_MRG_RXBUF | 64'd1 << VIRTIO_NET_F_STATUS
                                  | 64'd1 << VIRTIO_NET_F_HOST_TSO4 | 64'd1 << VIRTIO_NET_F_HOST_TSO6 | 64'd1 << VIRTIO_NET_F_HOST_ECN
                                  | 64'd1 << VIRTIO_F_INDIRECT_DESC | 64'd1 << VIRTIO_F_EVENT_IDX | 64'd1 << VIRTIO_F_VERSION_1
                                  | 64'(CONTROL) << VIRTIO_NET_F_CTRL_VQ | 64'(CONTROL) << VIRTIO_NET_F_MQ;

  if (PAIRS < 1 || PAIRS > MAX_PAIRS || SIZE > MAX_QUEUE_SIZE || (SIZE & (SIZE - 1)) != 0) begin : g_bad
    $fatal(1, "virtio_net: 1 to MAX_PAIRS pairs, SIZE a power of two of at most MAX_QUEUE_SIZE");
  end

  virtq_setup_t      setup;
  logic [QUEUES-1:0] enable, ready, more, broken;
  logic [63:0]       features;
  logic              halt, clear, engine_idle, tx_idle, rx_idle, control_idle, writer_idle, control_busy;
  logic [PAIR_W:0]   pairs;              // that the driver uses
  net_command_t      command;
  virtq_fail_t       fault;
  virtq_fail_t       client_fail[3];
  virtq_settle_t     settle[2];
  net_tx_events_t    tx_events;
  net_rx_events_t    rx_events;
  counter_t          counter_at;
  logic [31:0]       counter;

  stream_if #(.T(queue_t)) told[2] ();
  stream_if #(.T(queue_t)) numbered ();
  stream_if #(.T(queue_t)) notified ();
  stream_if #(.T(queue_t)) pull[2] ();
  stream_if #(.T(virtq_segment_t)) segment[2] ();
  stream_if #(.T(virtq_used_t)) used[2] ();
  stream_if #(.T(virtq_used_t)) tx_used ();
  stream_if #(.T(logic [15:0])) queue_interrupt ();
  stream_if #(.T(dma_cmd_t)) cmd[WRITERS] ();
  stream_if #(.T(dma_done_t)) done[WRITERS] ();
  axis_if #(.DATA_W(DATA_W)) data[WRITERS] ();
  axi_if #(.DATA_W(DATA_W), .ID_W(ID_W - 1)) reader[2] ();
  axi_if #(.DATA_W(DATA_W), .ID_W(ID_W)) reads ();
  axi_if #(.DATA_W(DATA_W), .ID_W(ID_W)) writes ();

  wire restart = rst || clear;
  assign idle = engine_idle && tx_idle && rx_idle && control_idle && writer_idle && !interrupt.valid && !queue_interrupt.valid;

  virtio_registers #(.PAIRS(PAIRS), .QUEUES(QUEUES), .VECTORS(VECTORS), .SIZE(SIZE), .OFFERED(OFFERED)) registers (
      .clk, .rst, .bus, .mac, .mtu, .link_up, .reset, .reset_done, .setup, .enable, .features, .halt, .clear, .idle, .notify(told[0]), .fault,
      .queue_interrupt, .interrupt, .counter_at, .counter
  );
  // A control queue that stops counts for the first pair.
  virtq_fail_t counted_fault;
  always_comb begin
    counted_fault = fault;
    if (32'(fault.vq) == CONTROL_QUEUE) counted_fault.vq = '0;
  end
  virtio_counters counters (
      .clk, .rst, .tx(tx_events), .rx(rx_events), .fault(counted_fault), .read_at(counter_at), .value(counter)
  );

  assign told[1].valid = notify.valid;
  assign told[1].data  = notify.data;
  assign notify.ready  = told[1].ready;
  stream_arbiter #(.T(queue_t), .N(2)) notifications (.clk, .rst(restart), .in(told), .last('1), .out(numbered));
  queue_named_t notify_at;
  assign notify_at      = driver_queue(16'(numbered.data), PAIRS, features[VIRTIO_NET_F_MQ]);
  assign notified.valid = numbered.valid && notify_at.valid;
  assign notified.data  = notify_at.vq;
  assign numbered.ready = notified.ready || !notify_at.valid;

  virtq_engine #(.DATA_W(DATA_W), .ID_W(ID_W - 1), .QUEUES(QUEUES), .MIXED(CONTROL_QUEUE)) queues (
      .clk, .rst(restart), .setup, .enable, .event_idx(features[VIRTIO_F_EVENT_IDX]), .indirect(features[VIRTIO_F_INDIRECT_DESC]),
      .halt, .notify(notified), .pull, .segment, .settle, .ready, .more, .used, .client_fail, .mem(reader[0]), .cmd(cmd[0]), .data(data[0]),
      .done(done[0]), .interrupt(queue_interrupt), .fault, .broken, .idle(engine_idle)
  );

  // VIRTIO_NET_F_MTU: what is longer, with an Ethernet header and a VLAN tag, is not for the driver (5.1.4.1).
  localparam int unsigned HEADERS = 18;
  logic [15:0] longest_q;
  always_ff @(posedge clk) begin
    longest_q <= features[VIRTIO_NET_F_MTU] && mtu < 16'(MAX_FRAME - HEADERS) ? mtu + 16'(HEADERS) : 16'(MAX_FRAME);
  end

  // A frame for a pair that the driver does not use is for the first one (5.1.6.5.6.1).
  net_rx_t rx_to;
  always_comb begin
    rx_to = rx_info;
    if (CONTROL && 32'(rx_info.vq[QUEUE_W-1:1]) >= 32'(pairs)) rx_to.vq = '0;
  end

  virtio_net_rx #(.DATA_W(DATA_W), .QUEUES(QUEUES), .MAX_FRAME(MAX_FRAME)) receive (
      .clk, .rst(restart), .halt, .longest(longest_q), .mergeable(features[VIRTIO_NET_F_MRG_RXBUF]),
      .guest_csum(features[VIRTIO_NET_F_GUEST_CSUM]), .rx, .rx_info(rx_to),
      .ready, .more, .pull(pull[0]), .segment(segment[0]), .settle(settle[0]), .used(used[0]), .fail(client_fail[0]),
      .cmd(cmd[1]), .data(data[1]), .done(done[1]), .events(rx_events), .idle(rx_idle)
  );

  if (CONTROL) begin : g_control
    stream_if #(.T(virtq_used_t)) odd_used[2] ();
    assign odd_used[0].valid = tx_used.valid;
    assign odd_used[0].data  = tx_used.data;
    assign tx_used.ready     = odd_used[0].ready;
    virtio_net_control #(.DATA_W(DATA_W), .PAIRS(PAIRS), .QUEUE(queue_t'(CONTROL_QUEUE))) control (
        .clk, .rst(restart), .pulled(pull[1].valid && pull[1].ready && pull[1].data == queue_t'(CONTROL_QUEUE)),
        .segment_valid(segment[1].valid && segment[1].ready), .segment(segment[1].data), .command, .used(odd_used[1]),
        .cmd(cmd[WRITERS-1]), .data(data[WRITERS-1]), .done(done[WRITERS-1]), .fail(client_fail[2]), .busy(control_busy), .pairs,
        .idle(control_idle)
    );
    stream_arbiter #(.T(virtq_used_t), .N(2)) used_turns (.clk, .rst(restart), .in(odd_used), .last('1), .out(used[1]));
  end else begin : g_no_control
    assign used[1].valid  = tx_used.valid;
    assign used[1].data   = tx_used.data;
    assign tx_used.ready  = used[1].ready;
    assign client_fail[2] = '0;
    assign control_busy   = 1'b0;
    assign control_idle   = 1'b1;
    assign pairs          = (PAIR_W + 1)'(1);
    logic unused_ok;
    assign unused_ok = &{1'b0, command};
  end

  logic [QUEUES-1:0] tx_ready;
  for (genvar i = 0; i < QUEUES; i++) begin : g_queue
    assign tx_ready[i] = ready[i] && i % 2 == 1 && !(i == CONTROL_QUEUE && control_busy);
  end
  net_offload_t offload;
  assign offload = '{csum: features[VIRTIO_NET_F_CSUM], tso4: features[VIRTIO_NET_F_HOST_TSO4], tso6: features[VIRTIO_NET_F_HOST_TSO6],
                     ecn: features[VIRTIO_NET_F_HOST_ECN]};
  virtio_net_tx #(
      .DATA_W(DATA_W), .ID_W(ID_W - 1), .QUEUES(QUEUES), .CONTROL(CONTROL_QUEUE), .SIZE(SIZE), .MAX_FRAME(MAX_FRAME)
  ) transmit (
      .clk, .rst(restart), .halt, .offload, .ready(tx_ready), .pull(pull[1]), .segment(segment[1]),
      .settle(settle[1]), .used(tx_used), .fail(client_fail[1]), .mem(reader[1]), .tx, .tx_info, .events(tx_events), .command, .idle(tx_idle)
  );

  virtio_writer #(.N(WRITERS), .DATA_W(DATA_W), .ID_W(ID_W)) writer (.clk, .rst(restart), .cmd, .data, .done, .mem(writes), .idle(writer_idle));
  axi_mux #(.N(2), .DATA_W(DATA_W), .ID_W(ID_W - 1)) mux (.clk, .rst, .in(reader), .out(reads), .others_write());
  axi_join join_ (.reader(reads), .writer(writes), .out(mem));

  logic unused_ok;
  assign unused_ok = &{1'b0, broken};
endmodule
