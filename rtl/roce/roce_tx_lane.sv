// SPDX-License-Identifier: Apache-2.0

// The lane of one slow memory in roce_tx_lanes: packets wait, those of each source in order, until all of their payload has been read into
// the source's store. Then they pass, and their payload is read from the store at one beat a cycle.
//
// The reads of the sources are issued round robin; up to PACKETS packets and STORE_BYTES of each are read ahead, which covers the latency
// of memory; PACKETS - 16 of a source that heeds `room`, which at the 170 cycles of a host is one every 4 cycles. A packet takes the latency
// of memory, its beats, and 6 cycles. When `ready_` or `data` stalls, the lane fills up, then `packet` stalls.
module roce_tx_lane
  import memory_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W = 4,
    parameter int unsigned QPS = 16,
    parameter int unsigned PACKETS = 64,         // power of two
    parameter int unsigned STORE_BYTES = 32768   // power of two
) (
    input  logic            clk,
    input  logic            rst,
    stream_if.sink          packet[2],           // tx_packet_t, not empty
    stream_if.source        ready_[2],           // the same packets after their payload was read,
    axis_if.source          data[2],             // and that payload
    axi_if.master           mem,                 // read channels
    output logic [1:0]      room,                // a quantum, 16 packets and 4 KiB, can be accepted in addition to a packet on its way
    input  qp_index_t [1:0][1:0] index,          // by source: for these two QPs,
    output logic [1:0][1:0] waits,               // packets are in this lane
    output logic [1:0]      passes,              // pulse: a packet has left,
    output logic [1:0][$clog2(PACKETS):0] count, // packets in this lane
    output logic [1:0]      was_read,            // pulse: payload of this source was read from memory
    output logic            freed,               // pulse: entries were freed
    output logic            idle
);
  localparam int unsigned UNITS = STORE_BYTES / 256;
  localparam int unsigned QUANTUM = 16;
  typedef logic [$clog2(UNITS):0]   units_t;
  typedef logic [$clog2(PACKETS):0] count_t;
  typedef struct packed {
    logic     source;
    dma_cmd_t cmd;
  } ask_t;

  if (STORE_BYTES < 4 * 4096 || PACKETS < 4 * QUANTUM) begin : g_bad
    $fatal(1, "roce_tx_lane: STORE_BYTES must be at least 16384 and PACKETS at least 64");
  end

  // ---- memory: the sources in turn ----
  stream_if #(.T(ask_t)) ask[2] ();
  stream_if #(.T(ask_t)) asked ();
  stream_if #(.T(ask_t)) fork_[2] ();
  stream_if #(.T(dma_cmd_t)) cmd ();
  stream_if #(.T(logic)) owner ();
  axis_if #(.DATA_W(DATA_W)) read ();
  axis_if #(.DATA_W(DATA_W)) mine[2] ();
  logic dma_idle;
  logic [1:0] none_waiting, leaves;

  stream_arbiter #(.T(ask_t), .N(2)) turns (.clk, .rst, .in(ask), .last('1), .out(asked));
  stream_fork #(.T(ask_t), .N(2)) both (.clk, .rst, .in(asked), .out(fork_));
  assign cmd.valid      = fork_[0].valid;
  assign cmd.data       = fork_[0].data.cmd;
  assign fork_[0].ready = cmd.ready;
  assign owner.valid = fork_[1].valid;
  assign owner.data  = fork_[1].data.source;
  assign fork_[1].ready = owner.ready;
  axi_dma_read #(.DATA_W(DATA_W), .ID_W(ID_W)) dma (.clk, .rst, .cmd, .mem, .data(read), .idle(dma_idle));

  axis_steer #(.DATA_W(DATA_W), .N(2), .DEPTH(2 * PACKETS)) owners (
      .clk, .rst, .in(read), .route(owner), .out(mine), .empty()
  );

  for (genvar i = 0; i < 2; i++) begin : g_source
    stream_if #(.T(tx_packet_t)) waiting ();
    stream_if #(.T(dma_cmd_t)) read_in ();
    stream_if #(.T(dma_cmd_t)) read_out ();
    stream_if #(.T(logic [4:0])) size_in ();
    stream_if #(.T(logic [4:0])) size ();
    stream_if #(.T(tx_packet_t)) queue_in ();
    tx_packet_t came, head;
    units_t units_q;             // of payload that is being read or in the store
    count_t count_q, whole_q;    // packets here; of those the ones whose payload is in the store
    logic   open_q;              // accepts one more packet of any size after the one of this cycle
    assign came            = packet[i].data;
    assign head            = waiting.data;
    assign packet[i].ready = open_q;
    wire enters = packet[i].valid && open_q;
    wire [4:0] came_units = came.length[12:8] + 5'(|came.length[7:0]);

    assign queue_in.valid = enters;
    assign queue_in.data  = came;
    stream_fifo #(.T(tx_packet_t), .DEPTH(PACKETS)) queue (.clk, .rst, .in(queue_in), .out(waiting), .empty(none_waiting[i]));
    assign read_in.valid  = enters;
    assign read_in.data   = '{target: came.target, key: came.key, addr: came.addr, length: 32'(came.length)};
    stream_fifo #(.T(dma_cmd_t), .DEPTH(PACKETS)) reads (.clk, .rst, .in(read_in), .out(read_out), .empty());
    assign ask[i].valid   = read_out.valid;
    assign ask[i].data    = '{source: 1'(i), cmd: read_out.data};
    assign read_out.ready = ask[i].ready;

    axis_fifo #(.DATA_W(DATA_W), .DEPTH(STORE_BYTES / (DATA_W / 8))) store (.clk, .rst, .in(mine[i]), .out(data[i]), .empty());
    wire whole = mine[i].tvalid && mine[i].tready && mine[i].tlast;
    assign was_read[i] = whole;
    assign leaves[i] = data[i].tvalid && data[i].tready && data[i].tlast;
    assign size_in.valid = enters;
    assign size_in.data  = came_units;
    stream_fifo #(.T(logic [4:0]), .DEPTH(2 * UNITS)) sizes (.clk, .rst, .in(size_in), .out(size), .empty());
    assign size.ready = leaves[i];

    assign ready_[i].valid = waiting.valid && whole_q != '0;
    assign ready_[i].data  = waiting.data;
    assign waiting.ready   = ready_[i].ready && whole_q != '0;
    assign passes[i]       = waiting.valid && waiting.ready;
    assign count[i]        = count_q;

    units_t units_d;
    count_t count_d;
    assign units_d = units_q + (enters ? units_t'(came_units) : '0) - (leaves[i] ? units_t'(size.data) : '0);
    assign count_d = count_q + count_t'(enters) - count_t'(passes[i]);
    always_ff @(posedge clk) begin
      if (rst) begin
        units_q <= '0;
        count_q <= '0;
        whole_q <= '0;
        open_q  <= 1'b0;
        room[i] <= 1'b0;
      end else begin
        units_q <= units_d;
        count_q <= count_d;
        whole_q <= whole_q + count_t'(whole) - count_t'(passes[i]);
        open_q  <= units_d <= units_t'(UNITS - QUANTUM) && count_d < count_t'(PACKETS);
        // The packet on its way is as large as a quantum; the last one finds `open_q`.
        room[i] <= units_d <= units_t'(UNITS - 3 * QUANTUM) && count_d < count_t'(PACKETS - QUANTUM);
        if (enters) assert (queue_in.ready && read_in.ready && size_in.ready);
        if (mine[i].tvalid) assert (mine[i].tready);
      end
    end

    roce_qp_outstanding #(.QPS(QPS), .COUNT_W($clog2(PACKETS) + 1), .READERS(2)) holders (
        .clk, .rst, .begins(enters), .begins_index(sq_index(came.qpn)), .ends(passes[i]), .ends_index(sq_index(head.qpn)),
        .index(index[i]), .outstanding(waits[i])
    );
  end

  assign freed = |passes || |leaves;
  assign idle  = dma_idle && (&none_waiting) && !asked.valid;
endmodule
