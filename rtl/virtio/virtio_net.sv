// SPDX-License-Identifier: Apache-2.0

// A virtio 1.2 network device: registers of the PCI transport on `bus`, rings and buffers in the memory behind `mem`, frames on
// `rx` and `tx`.
//
//            bus ─► virtio_registers ─► setup, enable, notify
//                                            │
//   mem ◄─ reads, ring writes ─ virtq_engine ┼─ segments ─► virtio_net_tx ─► tx
//                                            ├─ segments ─► virtio_net_control ─ commands ─┐
//                                            └─ segments ─► virtio_net_rx ◄─ virtio_net_filter, virtio_net_steering ◄─ rx
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
    parameter int unsigned PAIRS     = 1,            // of queues, 1 to MAX_PAIRS, beside a control queue
    parameter int unsigned VECTORS   = 8,
    parameter int unsigned SIZE      = 256,          // largest queue size: a power of two, at most MAX_QUEUE_SIZE
    parameter int unsigned MAX_FRAME = 9018,         // bytes, without FCS
    parameter hash_types_t HASHES    = '1            // that `rx_info` can have
) (
    input  logic           clk,
    input  logic           rst,
    axil_if.slave          bus,                      // 12 bits of address
    input  logic [47:0]    mac,                      // the first byte on the wire is the highest
    input  logic           mac_free,                 // the driver may set another one,
    input  logic [47:0]    mac_taken,                // but not this one
    output logic [47:0]    station,                  // the address in use
    input  logic [15:0]    mtu,                      // 68 at least
    input  logic           link_up,
    input  logic           reset,                    // until `reset_done`
    output logic           reset_done,               // until `reset` falls
    stream_if.sink         notify,                   // queue_t
    stream_if.source       interrupt,                // 16 bits: the vector
    axi_if.master          mem,                      // ID_W bits of ID
    axis_if.sink           rx,
    input  net_rx_t        rx_info,                  // with the last beat of `rx`
    output net_hash_t      hash,                     // how `rx_info` gets its hash
    axis_if.source         tx,
    output net_tx_t        tx_info,                  // with each beat of `tx`
    output logic           idle                      // nothing is under way
);
  localparam int unsigned CONTROL_QUEUE = 2 * PAIRS + 1;
  localparam int unsigned QUEUES = 2 * PAIRS + 2;
  localparam int unsigned UNITS = 3;                 // that know commands
  localparam logic [63:0] OFFERED = 64'd1 << VIRTIO_NET_F_CSUM | 64'd1 << VIRTIO_NET_F_GUEST_CSUM | 64'd1 << VIRTIO_NET_F_MTU
                                  | 64'd1 << VIRTIO_NET_F_MAC | 64'd1 << VIRTIO_NET_F_MRG_RXBUF | 64'd1 << VIRTIO_NET_F_STATUS
                                  | 64'd1 << VIRTIO_NET_F_HOST_TSO4 | 64'd1 << VIRTIO_NET_F_HOST_TSO6 | 64'd1 << VIRTIO_NET_F_HOST_ECN
                                  | 64'd1 << VIRTIO_NET_F_CTRL_VQ | 64'd1 << VIRTIO_NET_F_CTRL_RX | 64'd1 << VIRTIO_NET_F_CTRL_VLAN
                                  | 64'd1 << VIRTIO_NET_F_CTRL_RX_EXTRA | 64'd1 << VIRTIO_NET_F_GUEST_ANNOUNCE
                                  | 64'd1 << VIRTIO_NET_F_CTRL_MAC_ADDR
                                  | 64'd1 << VIRTIO_F_INDIRECT_DESC | 64'd1 << VIRTIO_F_EVENT_IDX | 64'd1 << VIRTIO_F_VERSION_1
                                  | 64'(PAIRS > 1) << VIRTIO_NET_F_MQ | 64'(PAIRS > 1) << VIRTIO_NET_F_RSS;

  if (PAIRS < 1 || PAIRS > MAX_PAIRS || SIZE > MAX_QUEUE_SIZE || (SIZE & (SIZE - 1)) != 0) begin : g_bad
    $fatal(1, "virtio_net: 1 to MAX_PAIRS pairs, SIZE a power of two of at most MAX_QUEUE_SIZE");
  end

  virtq_setup_t      setup;
  logic [QUEUES-1:0] enable, ready, more, broken;
  logic [63:0]       features;
  logic              halt, clear, engine_idle, tx_idle, rx_idle, control_idle, writer_idle;
  pairs_set_t        pairs_set;
  net_command_t      command;
  logic [UNITS-1:0]  command_good, command_busy;
  logic              mac_set;
  ring_reply_t       reply;
  virtq_desc_t [BLOCK-1:0] reply_data;
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
  stream_if #(.T(logic [15:0])) queue_interrupt ();
  stream_if #(.T(ring_read_t)) command_read ();
  stream_if #(.T(dma_cmd_t)) cmd[3] ();
  stream_if #(.T(dma_done_t)) done[3] ();
  axis_if #(.DATA_W(DATA_W)) data[3] ();
  axi_if #(.DATA_W(DATA_W), .ID_W(ID_W - 1)) reader[2] ();
  axi_if #(.DATA_W(DATA_W), .ID_W(ID_W)) reads ();
  axi_if #(.DATA_W(DATA_W), .ID_W(ID_W)) writes ();

  wire restart = rst || clear;
  assign idle = engine_idle && tx_idle && rx_idle && control_idle && writer_idle && !interrupt.valid && !queue_interrupt.valid;

  // The driver has told the network of itself: there is nothing to do but to know it.
  wire announces = features[VIRTIO_NET_F_GUEST_ANNOUNCE] && command.class_ == VIRTIO_NET_CTRL_ANNOUNCE
                 && command.command == VIRTIO_NET_CTRL_ANNOUNCE_ACK && command.length == '0;
  assign command_good[2] = announces;
  assign command_busy[2] = 1'b0;

  virtio_registers #(.PAIRS(PAIRS), .QUEUES(QUEUES), .VECTORS(VECTORS), .SIZE(SIZE), .OFFERED(OFFERED), .HASHES(PAIRS > 1 ? HASHES : '0)) registers (
      .clk, .rst, .bus, .mac(station), .mtu, .link_up, .mac_set, .announced(command.apply && announces), .reset, .reset_done, .setup, .enable, .features, .pairs_set, .halt, .clear, .idle, .notify(told[0]), .fault,
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
  assign notify_at      = driver_queue(16'(numbered.data), PAIRS, all_pairs(features));
  assign notified.valid = numbered.valid && notify_at.valid;
  assign notified.data  = notify_at.vq;
  assign numbered.ready = notified.ready || !notify_at.valid;

  virtq_engine #(.DATA_W(DATA_W), .ID_W(ID_W - 1), .QUEUES(QUEUES), .MIXED(CONTROL_QUEUE)) queues (
      .clk, .rst(restart), .setup, .enable, .event_idx(features[VIRTIO_F_EVENT_IDX]), .indirect(features[VIRTIO_F_INDIRECT_DESC]),
      .halt, .notify(notified), .pull, .segment, .settle, .ready, .more, .used, .client_fail, .mem(reader[0]), .cmd(cmd[0]), .data(data[0]),
      .done(done[0]), .interrupt(queue_interrupt), .fault, .broken, .other_read(command_read),
      .reply, .reply_data, .idle(engine_idle)
  );

  // VIRTIO_NET_F_MTU: what is longer, with an Ethernet header and a VLAN tag, is not for the driver (5.1.4.1).
  localparam int unsigned HEADERS = 18;
  logic [15:0] longest_q;
  always_ff @(posedge clk) begin
    longest_q <= features[VIRTIO_NET_F_MTU] && mtu < 16'(MAX_FRAME - HEADERS) ? mtu + 16'(HEADERS) : 16'(MAX_FRAME);
  end

  // ---- receive: what the driver wants, to the queue that it wants ----
  axis_if #(.DATA_W(DATA_W)) filtered ();
  net_rx_t rx_to, rx_filtered;
  queue_t  rx_vq;
  always_comb begin
    rx_to    = rx_info;
    rx_to.vq = rx_vq;
  end
  if (PAIRS > 1) begin : g_steering
    virtio_net_steering #(.PAIRS(PAIRS), .HASHES(HASHES)) steering (
        .clk, .rst(restart), .features, .pairs_set, .command, .good(command_good[0]), .hash, .info(rx_info), .vq(rx_vq)
    );
  end else begin : g_one_pair
    assign command_good[0] = 1'b0;
    assign hash            = '0;
    assign rx_vq           = '0;
    wire unused_pairs = &{1'b0, pairs_set};
  end
  assign command_busy[0] = 1'b0;

  virtio_net_filter #(.DATA_W(DATA_W)) filter (
      .clk, .rst(restart), .features, .mac, .mac_free, .mac_taken, .station, .mac_set, .command, .good(command_good[1]),
      .busy(command_busy[1]), .in(rx), .in_info(rx_to), .out(filtered), .out_info(rx_filtered)
  );

  virtio_net_rx #(.DATA_W(DATA_W), .QUEUES(QUEUES), .MAX_FRAME(MAX_FRAME)) receive (
      .clk, .rst(restart), .halt, .longest(longest_q), .mergeable(features[VIRTIO_NET_F_MRG_RXBUF]),
      .guest_csum(features[VIRTIO_NET_F_GUEST_CSUM]), .rx(filtered), .rx_info(rx_filtered),
      .ready, .more, .pull(pull[0]), .segment(segment[0]), .settle(settle[0]), .used(used[0]), .fail(client_fail[0]),
      .cmd(cmd[1]), .data(data[1]), .done(done[1]), .events(rx_events), .idle(rx_idle)
  );

  // ---- chains that are read: frames, and commands ----
  stream_if #(.T(queue_t)) tx_pull ();
  stream_if #(.T(queue_t)) control_pull ();
  stream_if #(.T(virtq_segment_t)) tx_segment ();
  stream_if #(.T(virtq_segment_t)) control_segment ();
  stream_if #(.T(virtq_used_t)) odd_used[2] ();
  virtq_settle_t tx_settle, control_settle;
  wire for_control = segment[1].data.vq == queue_t'(CONTROL_QUEUE);
  assign pull[1].valid         = tx_pull.valid || control_pull.valid;
  assign pull[1].data          = control_pull.valid ? control_pull.data : tx_pull.data;
  assign control_pull.ready    = pull[1].ready;
  assign tx_pull.ready         = pull[1].ready && !control_pull.valid;
  assign tx_segment.valid      = segment[1].valid && !for_control;
  assign tx_segment.data       = segment[1].data;
  assign control_segment.valid = segment[1].valid && for_control;
  assign control_segment.data  = segment[1].data;
  assign segment[1].ready      = for_control ? control_segment.ready : tx_segment.ready;
  assign settle[1]             = control_settle.valid ? control_settle : tx_settle;
  stream_arbiter #(.T(virtq_used_t), .N(2)) used_turns (.clk, .rst(restart), .in(odd_used), .last('1), .out(used[1]));

  virtio_net_control #(.DATA_W(DATA_W), .QUEUE(queue_t'(CONTROL_QUEUE)), .UNITS(UNITS)) control (
      .clk, .rst(restart), .halt, .ready(ready[CONTROL_QUEUE]), .pull(control_pull), .segment(control_segment), .settle(control_settle),
      .read(command_read), .reply, .reply_data(reply_data[0]), .command, .good(command_good), .busy(command_busy), .used(odd_used[1]),
      .cmd(cmd[2]), .data(data[2]), .done(done[2]), .fail(client_fail[2]), .idle(control_idle)
  );

  logic [QUEUES-1:0] tx_ready;
  for (genvar i = 0; i < QUEUES; i++) begin : g_queue
    assign tx_ready[i] = ready[i] && i % 2 == 1 && i != CONTROL_QUEUE;
  end
  net_offload_t offload;
  assign offload = '{csum: features[VIRTIO_NET_F_CSUM], tso4: features[VIRTIO_NET_F_HOST_TSO4], tso6: features[VIRTIO_NET_F_HOST_TSO6],
                     ecn: features[VIRTIO_NET_F_HOST_ECN]};
  virtio_net_tx #(.DATA_W(DATA_W), .ID_W(ID_W - 1), .QUEUES(QUEUES), .SIZE(SIZE), .MAX_FRAME(MAX_FRAME)) transmit (
      .clk, .rst(restart), .halt, .offload, .ready(tx_ready), .pull(tx_pull), .segment(tx_segment),
      .settle(tx_settle), .used(odd_used[0]), .fail(client_fail[1]), .mem(reader[1]), .tx, .tx_info, .events(tx_events), .idle(tx_idle)
  );

  virtio_writer #(.N(3), .DATA_W(DATA_W), .ID_W(ID_W)) writer (.clk, .rst(restart), .cmd, .data, .done, .mem(writes), .idle(writer_idle));
  axi_mux #(.N(2), .DATA_W(DATA_W), .ID_W(ID_W - 1)) mux (.clk, .rst, .in(reader), .out(reads), .others_write());
  axi_join join_ (.reader(reads), .writer(writes), .out(mem));

  logic unused_ok;
  assign unused_ok = &{1'b0, broken, reply_data[1]};
endmodule
