// SPDX-License-Identifier: Apache-2.0

// Builds the frames of the device's queue pairs: packets of two sources, each source in order, with payload read from memory; and
// acknowledgements and CNPs, which have no payload and no order, and have priority at each packet boundary.
//
// `ack` to `frame`: 4 cycles; one frame a cycle. The read of a payload is issued in the cycle after its packet was accepted, up to AHEAD
// packets or 16 KiB of each source ahead of transmission, which covers the latency of memory; no further ahead, because a retransmission is
// sent after the packets accepted before it. The sources are served round robin, packet by packet, both for reads and for transmission. A
// frame that is ready does not wait for one whose payload is still being read: a packet without payload passes those of the other source,
// and while no payload is being transmitted a packet waits until the first beat of its own has arrived. When `frame` or `payload` stalls,
// everything stalls; acknowledgements are accepted up to ACKS. Nothing is dropped.
//
// Payload that could not be read ends with tuser, which invalidates the frame before transmission, and is reported to its source on
// `fault`; no other payload passes until the report is taken. An acknowledgement of a QP that is not set up is dropped.
//
// A pulse on `flush_requests` or `flush_acks` sets `flushed` low until all requests, or all acknowledgements, that were inside at that
// moment have left, payload included. Nothing stalls meanwhile, and later arrivals do not delay the flush.
module roce_tx
  import packet_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import roce_requester_pkg::*;
  import roce_counters_pkg::*;
  import memory_pkg::*;
  import roce_tx_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned AHEAD = TX_AHEAD,   // packets whose reads are issued, of each source; at most TX_AHEAD
    parameter int unsigned ACKS = TX_ACKS      // acknowledgements accepted; at most TX_ACKS
) (
    input logic        clk,
    input logic        rst,
    input local_addr_t local_addr,
    input logic [5:0]  cnp_dscp,        // of CNPs; other packets have that of their QP
    input logic        ect,             // mark packets of `packet` ECT(0) (RFC 3168), else not ECT

    stream_if.sink     packet[2],       // tx_packet_t: [0] responses, [1] requests
    stream_if.sink     ack,             // ack_tx_t
    input logic        flush_requests,  // pulses, when `flushed`
    input logic        flush_acks,
    output logic       flushed,

    input logic        peer_write,
    input qp_index_t   peer_write_index,
    input sq_peer_t    peer_write_data,

    stream_if.source   read_cmd,        // dma_cmd_t,
    output logic       read_source,     // source of its packet
    axis_if.sink       read_data,
    stream_if.source   frame,           // frame_tx_t
    axis_if.source     payload,
    stream_if.source   fault[2],        // tx_fault_t, to the source of the packet

    output logic       left,  // a response was selected in the previous cycle: acknowledgements taken from now on are sent after it
    output qpn_t       left_qpn,
    output logic [1:0] passed,          // the payload of a packet of this source was read and transmitted

    output qp_sent_t        went,       // counts of the QP of a frame
    output roce_tx_events_t events,     // of packet[1]
    output logic            data_idle,  // no response inside
    output logic            idle
);
  // ---- input: packets enter the queue of their source, and their reads are issued ----
  typedef struct packed {
    target_t     target;
    mr_key_t     key;
    addr_t       addr;
    logic [12:0] length;
  } read_t;

  tx_packet_t  came[2];
  read_t       read[2];
  logic [1:0]  asks, taken;
  tx_count_t   waits_q[2];               // packets in its queue
  logic [1:0]  room_q;                   // accepts one more packet after the one of this cycle
  logic [1:0]  passed_q;                 // a payload of this source has passed, of this size
  tx_units_t   passed_units_q;
  logic        order_room_q;
  logic        pick;                     // the source whose read is issued
  logic        turn_q, locked_q, pick_q; // a read that was offered stays selected
  tx_queued_t  head[2];
  logic [1:0]  head_valid, head_taken;
  logic        chosen_payload;           // a packet with payload leaves its queue
  stream_if #(.T(logic)) order_in ();    // source of the next payload
  stream_if #(.T(logic)) order_out ();

  wire         ask = read_cmd.valid && read_cmd.ready;

  for (genvar i = 0; i < 2; i++) begin : g_source
    stream_if #(.T(tx_queued_t)) queue_in ();
    stream_if #(.T(tx_queued_t)) queue_out ();

    stream_if #(.T(read_t)) read_in ();
    stream_if #(.T(read_t)) read_out ();

    assign came[i]          = packet[i].data;
    assign packet[i].ready  = room_q[i];
    assign taken[i]         = packet[i].valid && room_q[i];
    assign read_in.valid    = taken[i] && !came[i].empty;
    assign read_in.data     = '{target: came[i].target, key: came[i].key, addr: came[i].addr, length: came[i].length};
    assign read[i]          = read_out.data;
    assign asks[i]          = read_out.valid && order_room_q;
    assign read_out.ready   = ask && pick == i;
    assign queue_in.valid   = taken[i];
    assign queue_in.data    = '{
            index: sq_index(came[i].qpn),
            opcode: came[i].opcode,
            psn: came[i].psn,
            se: came[i].se,
            ackreq: came[i].ackreq,
            ext: came[i].ext,
            length: came[i].length,
            empty: came[i].empty,
            again: came[i].again,
            internal_: came[i].internal_
        };

    stream_fifo #(.T(tx_queued_t), .DEPTH(TX_AHEAD)) queue (.clk, .rst, .in(queue_in), .out(queue_out), .empty());
    stream_fifo #(.T(read_t), .DEPTH(AHEAD)) reads (.clk, .rst, .in(read_in), .out(read_out), .empty());
    assign head[i]         = queue_out.data;
    assign head_valid[i]   = queue_out.valid;
    assign queue_out.ready = head_taken[i];

    logic [6:0] inside_q, inside_d;      // units of payload; a packet is accepted as long as the largest one fits
    assign inside_d = inside_q + (taken[i] ? 7'(tx_units(came[i].empty, came[i].length)) : '0)
        - (passed_q[i] ? 7'(passed_units_q) : '0);
    always_ff @(posedge clk) begin
      if (rst) begin
        waits_q[i] <= '0;
        inside_q   <= '0;
        room_q[i]  <= 1'b0;
      end else begin
        waits_q[i] <= waits_q[i] + tx_count_t'(taken[i]) - tx_count_t'(head_taken[i]);
        inside_q   <= inside_d;
        room_q[i]  <= waits_q[i] <= tx_count_t'(AHEAD - 2) && inside_d <= 7'(TX_AHEAD_UNITS - TX_PACKET_UNITS);
      end
    end
    always_ff @(posedge clk) if (!rst && taken[i]) assert (queue_in.ready && read_in.ready);
  end

  assign pick           = locked_q ? pick_q : &asks ? turn_q : asks[1];
  assign read_source    = pick;
  assign read_cmd.valid = |asks;
  assign read_cmd.data  = '{target: read[pick].target, key: read[pick].key, addr: read[pick].addr, length: 32'(read[pick].length)};
  assign order_in.valid = ask;
  assign order_in.data  = pick;

  always_ff @(posedge clk) begin
    pick_q <= pick;
    if (ask) turn_q <= !pick;
    if (rst) begin
      turn_q   <= 1'b0;
      locked_q <= 1'b0;
    end else locked_q <= read_cmd.valid && !read_cmd.ready;
  end

  tx_count_t ordered_q;
  always_ff @(posedge clk) begin
    if (rst) begin
      ordered_q    <= '0;
      order_room_q <= 1'b0;
    end else begin
      ordered_q    <= ordered_q + tx_count_t'(ask) - tx_count_t'(chosen_payload);
      order_room_q <= ordered_q <= tx_count_t'(AHEAD - 2);
    end
  end
  always_ff @(posedge clk) if (!rst && order_in.valid) assert (order_in.ready);

  stream_fifo #(.T(logic), .DEPTH(AHEAD)) order (.clk, .rst, .in(order_in), .out(order_out), .empty());

  stream_if #(.T(ack_tx_t)) ack_out ();
  logic ack_empty;
  stream_fifo #(.T(ack_tx_t), .DEPTH(ACKS)) acks (.clk, .rst, .in(ack), .out(ack_out), .empty(ack_empty));

  // ---- payload passes after its frame was selected ----
  stream_if #(.T(tx_owner_t)) owner_in ();
  stream_if #(.T(tx_owner_t)) owner_out ();
  logic       fault_valid_q;
  tx_owner_t  fault_q;
  logic [1:0] fault_ready;
  wire        payload_end = payload.tvalid && payload.tready && payload.tlast;
  wire        pass = owner_out.valid && !fault_valid_q;

  stream_fifo #(.T(tx_owner_t), .DEPTH(TX_CHOSEN)) owners (.clk, .rst, .in(owner_in), .out(owner_out), .empty());
  assign owner_out.ready = payload_end;

  assign passed           = passed_q;
  assign payload.tdata    = read_data.tdata;
  assign payload.tkeep    = read_data.tkeep;
  assign payload.tlast    = read_data.tlast;
  assign payload.tuser    = read_data.tuser;
  assign payload.tvalid   = read_data.tvalid && pass;
  assign read_data.tready = payload.tready && pass;

  for (genvar i = 0; i < 2; i++) begin : g_fault
    assign fault[i].valid = fault_valid_q && fault_q.source == i;
    assign fault[i].data  = tx_fault_t'{qpn: qp_number(fault_q.index), psn: fault_q.psn};
    assign fault_ready[i] = fault[i].ready;
  end
  always_ff @(posedge clk) begin
    passed_q       <= !rst && payload_end ? {owner_out.data.source, !owner_out.data.source} : '0;
    passed_units_q <= owner_out.data.units;
    if (payload_end) fault_q <= owner_out.data;
    if (rst) fault_valid_q <= 1'b0;
    else if (!fault_valid_q) fault_valid_q <= payload_end && payload.tuser;
    else if (fault_ready[fault_q.source]) fault_valid_q <= 1'b0;
  end

  // ---- selection ----
  ack_tx_t next_ack;
  assign next_ack = ack_out.data;

  stream_if #(.T(tx_job_t)) job ();
  logic       first_q;       // the source with priority
  logic [1:0] may;           // its packet can be sent
  logic       source;
  logic       ahead_room_q;  // one more frame may be selected ahead of its payload
  for (genvar i = 0; i < 2; i++) begin : g_may
    assign may[i] = head_valid[i] && (head[i].empty
        || (order_out.valid && order_out.data == i && ahead_room_q && (owner_out.valid || read_data.tvalid)));
  end
  assign source = may[first_q] ? first_q : !first_q;

  wire choose_ack  = ack_out.valid;
  wire choose_data = !choose_ack && |may;
  assign head_taken = {job.ready && choose_data && source, job.ready && choose_data && !source};
  tx_queued_t next_packet;
  assign next_packet   = head[source];
  assign ack_out.ready = job.ready && choose_ack;

  assign chosen_payload = (head_taken[0] && !head[0].empty) || (head_taken[1] && !head[1].empty);
  assign order_out.ready = chosen_payload;
  assign owner_in.valid  = chosen_payload;
  assign owner_in.data   = '{
          source: source, units: tx_units(1'b0, next_packet.length), index: next_packet.index, psn: next_packet.psn
      };

  assign job.valid = choose_ack || choose_data;
  always_comb begin
    if (choose_ack) begin
      job.data = '{
          from: FROM_ACKS,
          index: sq_index(next_ack.qpn),
          opcode: next_ack.cnp ? CNP : RC_ACKNOWLEDGE,
          becn: next_ack.cnp,
          psn: next_ack.cnp ? '0 : next_ack.psn,
          ext: {next_ack.cnp ? '0 : next_ack.aeth, {(EXT_BYTES - AETH_BYTES) * 8{1'b0}}},
          default: '0
      };
    end else begin
      job.data = '{
          from: source ? FROM_REQUESTS : FROM_RESPONSES,
          index: next_packet.index,
          opcode: next_packet.opcode,
          becn: 1'b0,
          psn: next_packet.psn,
          se: next_packet.se,
          ackreq: next_packet.ackreq,
          ext: next_packet.ext,
          length: next_packet.length,
          again: next_packet.again
      };
    end
  end

  tx_chosen_t ahead_q;  // frames selected whose payload has not passed
  always_ff @(posedge clk) begin
    ahead_room_q <= ahead_q <= tx_chosen_t'(TX_CHOSEN - 2);  // one more may be selected in this cycle
    if (rst) ahead_q <= '0;
    else ahead_q <= ahead_q + tx_chosen_t'(chosen_payload) - tx_chosen_t'(payload_end);
  end
  always_ff @(posedge clk) if (!rst && owner_in.valid) assert (owner_in.ready);

  always_ff @(posedge clk) begin
    left_qpn <= qp_number(head[0].index);
    if (rst) begin
      left    <= 1'b0;
      first_q <= 1'b0;
    end else begin
      left <= head_taken[0];
      if (|head_taken) first_q <= !source;
    end
  end

  // ---- headers ----
  logic [TX_FROM-1:0] under_way;
  roce_tx_headers #(.QPS(QPS)) headers (
      .clk, .rst, .local_addr, .cnp_dscp, .ect, .peer_write, .peer_write_index, .peer_write_data, .job, .frame, .under_way, .went
  );

  // ---- occupancy ----
  logic [6:0] open_q[2];  // packets accepted whose frame, or payload if they have one, has not passed
  logic [1:0] source_idle;
  for (genvar i = 0; i < 2; i++) begin : g_open
    wire closed_empty   = head_taken[i] && head[i].empty;
    wire closed_payload = payload_end && owner_out.data.source == i;
    always_ff @(posedge clk) begin
      if (rst) open_q[i] <= '0;
      else open_q[i] <= open_q[i] + 7'(taken[i]) - 7'(closed_empty) - 7'(closed_payload);
    end
    assign source_idle[i] = open_q[i] == 0 && !under_way[i == 0 ? FROM_RESPONSES : FROM_REQUESTS]
        && !(fault_valid_q && fault_q.source == i);
  end

  assign data_idle = source_idle[0];
  assign idle      = &source_idle && !under_way[FROM_ACKS] && ack_empty;

  roce_tx_flush flush (
      .clk, .rst, .flush_requests, .flush_acks,
      .ack_waits(ack.valid), .ack_taken(ack.valid && ack.ready), .ack_chosen(ack_out.valid && ack_out.ready),
      .requests(waits_q[1]), .request_taken(taken[1]), .request_chosen(head_taken[1]), .ahead(ahead_q), .payload_end,
      .step(job.ready), .fault(fault_valid_q && fault_q.source), .flushed
  );

  // ---- events ----
  // A message is counted when its last packet is selected for the first time.
  wire request = head_taken[1];
  wire message = request && !head[1].again && !head[1].internal_;
  always_ff @(posedge clk) begin
    events                   <= '0;
    events.sent_pkts         <= request;
    events.packet_retransmit <= request && head[1].again;
    events.sent_sends <= message && head[1].opcode inside {
        RC_SEND_LAST, RC_SEND_LAST_WITH_IMM, RC_SEND_LAST_WITH_INVALIDATE,
        RC_SEND_ONLY, RC_SEND_ONLY_WITH_IMM, RC_SEND_ONLY_WITH_INVALIDATE};
    events.sent_writes <= message && head[1].opcode inside {
        RC_RDMA_WRITE_LAST, RC_RDMA_WRITE_LAST_WITH_IMM, RC_RDMA_WRITE_ONLY, RC_RDMA_WRITE_ONLY_WITH_IMM};
    events.sent_reads   <= message && head[1].opcode == RC_RDMA_READ_REQUEST;
    events.sent_atomics <= message && head[1].opcode inside {RC_COMPARE_SWAP, RC_FETCH_ADD};
  end
endmodule
