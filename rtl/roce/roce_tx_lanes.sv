// SPDX-License-Identifier: Apache-2.0

// The stage in front of roce_tx through which the payload of slow memories is read without stalling roce_tx. Packets without payload, and
// those with payload in the first memory, pass: roce_tx reads that payload. Packets for any other memory wait in that memory's lane
// (roce_tx_lane) until all of their payload was read; then they pass, and roce_tx takes the payload from the lane at one beat a cycle.
//
// The packets of a QP stay in order: a packet waits here, and those of its source behind it, until the packets of its QP in other lanes
// have passed. A source that must not wait checks first: `room` has a bit for each lane that accepts a quantum (4 KiB, 16 packets), `waits`
// one for each lane in which the QP `waits_index` has packets; meanwhile it sends packets of other QPs.
//
// Latency: 0 with one memory (wires only); with several 1 cycle, and for a packet of a lane that of the lane. One packet a cycle. When
// roce_tx stalls, everything stalls.
module roce_tx_lanes
  import memory_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W   = 4,
    parameter int unsigned QPS    = 16,
    parameter int unsigned LANES  = 1
) (
    input  logic           clk,
    input  logic           rst,
    stream_if.sink         packet[2],        // tx_packet_t: [0] responses, [1] requests
    output targets_t [1:0] room,
    input  qp_index_t [1:0] waits_index,
    output targets_t [1:0] waits,
    output logic           freed,            // pulse: entries may have been freed, or a QP no longer waits
    stream_if.source       frames[2],        // tx_packet_t, to roce_tx
    stream_if.sink         read_cmd,         // dma_cmd_t, from roce_tx,
    input  logic           read_source,      // for a packet of this source
    axis_if.source         read_data,
    axi_if.master          mem[LANES],       // read channels
    input  logic [1:0]     passed,           // pulse of roce_tx: the payload of a packet of this source was transmitted
    output targets_t [1:0] was_read,         // pulse, by source: the payload of a packet was read from this memory
    input  logic           flush_requests,   // pulse, when `flushed`: `flushed` is low until all requests that were here have left,
    output logic           flush_frames,     // and this pulse starts the flush of roce_tx
    output logic           flushed,
    output logic           responses_idle,   // no response inside
    output logic           idle
);
  stream_if #(.T(dma_cmd_t)) near_cmd ();
  axis_if #(.DATA_W(DATA_W)) near_data ();
  logic near_idle;
  axi_dma_read #(.DATA_W(DATA_W), .ID_W(ID_W)) near (.clk, .rst, .cmd(near_cmd), .mem(mem[0]), .data(near_data), .idle(near_idle));

  if (LANES == 1) begin : g_one
    for (genvar i = 0; i < 2; i++) begin : g_source
      assign frames[i].valid = packet[i].valid;
      assign frames[i].data  = packet[i].data;
      assign packet[i].ready = frames[i].ready;
    end
    assign near_cmd.valid   = read_cmd.valid;
    assign near_cmd.data    = read_cmd.data;
    assign read_cmd.ready   = near_cmd.ready;
    assign read_data.tvalid = near_data.tvalid;
    assign read_data.tdata  = near_data.tdata;
    assign read_data.tkeep  = near_data.tkeep;
    assign read_data.tlast  = near_data.tlast;
    assign read_data.tuser  = near_data.tuser;
    assign near_data.tready = read_data.tready;
    assign room             = '1;
    assign waits            = '0;
    assign freed            = 1'b0;
    assign was_read         = {targets_t'(passed[1]), targets_t'(passed[0])};
    assign flush_frames     = flush_requests;
    assign flushed          = 1'b1;
    assign responses_idle   = 1'b1;
    assign idle             = near_idle;

    logic unused_ok;
    assign unused_ok = &{1'b0, waits_index, read_source};
  end else begin : g_several
    localparam int unsigned PACKETS = 64;
    typedef logic [$clog2(PACKETS):0] count_t;

    // Indexed by lane l and source i as 2 * l + i; the first memory has no lane.
    stream_if #(.T(tx_packet_t)) lane_in[2*LANES] ();
    stream_if #(.T(tx_packet_t)) lane_out[2*LANES] ();
    axis_if #(.DATA_W(DATA_W)) lane_data[2*LANES] ();
    targets_t [1:0]        here;                   // lanes with packets of the QP of the offered packet
    targets_t [1:0]        ready;                  // lanes that accept it
    logic [LANES-1:0][1:0] lane_passes;
    count_t [LANES-1:0][1:0] lane_count;
    logic [LANES-1:0]      lane_freed, lane_idle;
    logic [LANES-1:0][1:0] lane_read;
    target_t [1:0]         target;
    qp_index_t [1:0]       own;
    logic [1:0]            response_empty;

    // ---- sources ----
    for (genvar i = 0; i < 2; i++) begin : g_source
      stream_if #(.T(tx_packet_t)) out[LANES] ();
      tx_packet_t came;
      targets_t   elsewhere;
      assign came      = packet[i].data;
      assign own[i]    = sq_index(came.qpn);
      assign target[i] = came.empty ? '0 : came.target;
      always_comb begin
        elsewhere            = here[i];
        elsewhere[target[i]] = 1'b0;
      end
      wire clear = elsewhere == '0;
      assign packet[i].ready = clear && ready[i][target[i]];
      for (genvar l = 0; l < LANES; l++) begin : g_lane
        wire this_one = packet[i].valid && clear && target[i] == target_t'(l);
        if (l == 0) begin : g_near
          assign out[l].valid = this_one;
          assign out[l].data  = packet[i].data;
          assign ready[i][l]  = out[l].ready;
          assign here[i][l]   = 1'b0;
          assign waits[i][l]  = 1'b0;
          assign room[i][l]   = 1'b1;
          // The first memory has no lane.
          assign lane_in[i].valid      = 1'b0;
          assign lane_in[i].data       = '0;
          assign lane_in[i].ready      = 1'b0;
          assign lane_out[i].valid     = 1'b0;
          assign lane_out[i].data      = '0;
          assign lane_out[i].ready     = 1'b0;
        end else begin : g_far
          assign lane_in[2*l+i].valid  = this_one;
          assign lane_in[2*l+i].data   = packet[i].data;
          assign ready[i][l]           = lane_in[2*l+i].ready;
          assign out[l].valid          = lane_out[2*l+i].valid;
          assign out[l].data           = lane_out[2*l+i].data;
          assign lane_out[2*l+i].ready = out[l].ready;
        end
      end
      for (genvar l = LANES; l < MAX_TARGETS; l++) begin : g_no_lane
        assign {ready[i][l], here[i][l], waits[i][l], room[i][l]} = '0;
      end
      stream_arbiter #(.T(tx_packet_t), .N(LANES)) merge (.clk, .rst, .in(out), .last('1), .out(frames[i]));
    end

    // ---- lanes ----
    for (genvar l = 1; l < LANES; l++) begin : g_lane
      logic [1:0]      lane_room;
      logic [1:0][1:0] lane_waits;
      roce_tx_lane #(.DATA_W(DATA_W), .ID_W(ID_W), .QPS(QPS), .PACKETS(PACKETS)) lane (
          .clk, .rst, .packet(lane_in[2*l:2*l+1]), .ready_(lane_out[2*l:2*l+1]), .data(lane_data[2*l:2*l+1]), .mem(mem[l]),
          .room(lane_room), .index({waits_index[1], own[1], waits_index[0], own[0]}), .waits(lane_waits), .passes(lane_passes[l]),
          .count(lane_count[l]), .was_read(lane_read[l]), .freed(lane_freed[l]), .idle(lane_idle[l])
      );
      for (genvar i = 0; i < 2; i++) begin : g_source
        assign room[i][l]  = lane_room[i];
        assign here[i][l]  = lane_waits[i][0];
        assign waits[i][l] = lane_waits[i][1];
      end
    end
    assign lane_passes[0] = '0;
    assign lane_count[0]  = '0;
    assign {lane_freed[0], lane_idle[0], lane_read[0]} = 4'b0100;
    assign freed          = |lane_freed;

    // ---- payload in the order of roce_tx's read commands ----
    typedef struct packed {
      target_t target;
      logic    source;
    } from_t;
    typedef struct packed {
      logic                tuser;
      logic                tlast;
      logic [DATA_W/8-1:0] tkeep;
      logic [DATA_W-1:0]   tdata;
    } beat_t;
    stream_if #(.T(from_t)) order_in ();
    stream_if #(.T(from_t)) order ();
    target_t read_target;
    from_t   now;
    beat_t [2*MAX_TARGETS-1:0] beats;
    logic [2*MAX_TARGETS-1:0]  there;
    logic order_empty;
    assign read_target    = read_cmd.data.target;
    wire is_near          = read_target == '0;
    assign near_cmd.valid = read_cmd.valid && is_near && order_in.ready;
    assign near_cmd.data  = read_cmd.data;
    assign read_cmd.ready = order_in.ready && (near_cmd.ready || !is_near);
    assign order_in.valid = read_cmd.valid && (near_cmd.ready || !is_near);
    assign order_in.data  = '{target: read_target, source: read_source && !is_near};
    stream_fifo #(.T(from_t), .DEPTH(64)) orders (.clk, .rst, .in(order_in), .out(order), .empty(order_empty));

    assign now              = order.data;
    assign read_data.tvalid = order.valid && there[now];
    assign {read_data.tuser, read_data.tlast, read_data.tkeep, read_data.tdata} = beats[now];
    assign order.ready      = read_data.tvalid && read_data.tready && read_data.tlast;
    for (genvar k = 0; k < 2 * MAX_TARGETS; k++) begin : g_data
      if (k == 0) begin : g_near
        assign there[k]         = near_data.tvalid;
        assign beats[k]         = {near_data.tuser, near_data.tlast, near_data.tkeep, near_data.tdata};
        assign near_data.tready = order.valid && now == 3'(k) && read_data.tready;
      end else if (k >= 2 && k < 2 * LANES) begin : g_far
        assign there[k]            = lane_data[k].tvalid;
        assign beats[k]            = {lane_data[k].tuser, lane_data[k].tlast, lane_data[k].tkeep, lane_data[k].tdata};
        assign lane_data[k].tready = order.valid && now == 3'(k) && read_data.tready;
      end else begin : g_none
        assign there[k] = 1'b0;
        assign beats[k] = '0;
      end
    end
    for (genvar i = 0; i < 2; i++) begin : g_no_data
      assign lane_data[i].tvalid = 1'b0;
      assign lane_data[i].tdata  = '0;
      assign lane_data[i].tkeep  = '0;
      assign lane_data[i].tlast  = 1'b0;
      assign lane_data[i].tuser  = 1'b0;
      assign lane_data[i].tready = 1'b0;
    end

    // ---- payload read: from the first memory when it was transmitted, from the others when it is in the store ----
    for (genvar i = 0; i < 2; i++) begin : g_read
      stream_if #(.T(logic)) near_in ();
      stream_if #(.T(logic)) near_out ();
      tx_packet_t given;
      assign given          = frames[i].data;
      assign near_in.valid  = frames[i].valid && frames[i].ready && !given.empty;
      assign near_in.data   = given.target == '0;
      assign near_out.ready = passed[i];
      stream_fifo #(.T(logic), .DEPTH(128)) nears (.clk, .rst, .in(near_in), .out(near_out), .empty());
      always_ff @(posedge clk) if (!rst) assert (!near_in.valid || near_in.ready);
      always_comb begin
        was_read[i]    = '0;
        was_read[i][0] = passed[i] && near_out.data;
        for (int unsigned l = 1; l < LANES; l++) was_read[i][l] = lane_read[l][i];
      end
    end

    // ---- flush of the requests ----
    enum logic [1:0] {
      F_LEFT,
      F_LANES,       // some are in a lane
      F_PASS,        // the last of them may be on its way to roce_tx
      F_TELL
    } flush_q;
    count_t [LANES-1:0] before_q;
    logic   none_before;
    always_comb begin
      none_before = 1'b1;
      for (int unsigned l = 1; l < LANES; l++) if (before_q[l] != '0) none_before = 1'b0;
    end
    assign flushed      = flush_q == F_LEFT && !flush_requests;
    assign flush_frames = flush_q == F_TELL;
    always_ff @(posedge clk) begin
      for (int unsigned l = 0; l < LANES; l++) begin
        if (flush_requests) before_q[l] <= lane_count[l][1] - count_t'(lane_passes[l][1]);
        else if (lane_passes[l][1] && before_q[l] != '0) before_q[l] <= before_q[l] - 1'b1;
      end
      if (rst) flush_q <= F_LEFT;
      else begin
        unique case (flush_q)
          F_LANES: if (none_before) flush_q <= F_PASS;
          F_PASS:  if (!frames[1].valid || frames[1].ready) flush_q <= F_TELL;
          F_TELL:  flush_q <= F_LEFT;
          default: ;
        endcase
        if (flush_requests) flush_q <= F_LANES;
      end
    end

    always_comb begin
      response_empty[0] = !frames[0].valid;
      response_empty[1] = 1'b1;
      for (int unsigned l = 1; l < LANES; l++) if (lane_count[l][0] != '0) response_empty[1] = 1'b0;
    end
    assign responses_idle = &response_empty;
    assign idle           = near_idle && (&lane_idle) && order_empty && !frames[0].valid && !frames[1].valid;
  end
endmodule
