// SPDX-License-Identifier: Apache-2.0

// Writes the payload of responses to memory, and reports a completion only after memory has confirmed every write before it.
//
//   verdict ─┬─ write, data       payload of a READ response (or dropped), original value of an atomic
//            └─ waiting ── done ── confirmed table ── retire, work, fault
//
// One verdict a cycle; 2 cycles from `verdict` to the table without a write, 1 from `done` with one. One beat of payload a cycle.
// Confirmation is in order across all QPs, so a completion waits at most for the writes issued before it.
// A write error stops its QP: `una` of the table stays, and the QP is output once on `fault`, which has an entry for every QP.
// Stalls when memory, `retire` or `work` are not ready.
module roce_requester_receive
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;
  import memory_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned QPS = 16,
    parameter bit READS = 1'b1,              // else nothing is placed
    parameter int unsigned PENDING = 64      // verdicts pending for memory; a power of two
) (
    input logic clk,
    input logic rst,

    stream_if.sink   verdict,       // sq_verdict_t
    axis_if.sink     payload,       // of the responses that have payload, in order

    stream_if.source write,         // dma_cmd_t
    axis_if.source   data,
    stream_if.sink   done,          // dma_done_t

    output qp_index_t     index,    // QP whose word is read
    input  sq_confirmed_t confirmed,
    roce_qp_write_if.writer confirmed_next,  // sq_confirmed_t
    roce_qp_write_if.writer una,             // xpsn_t
    roce_qp_write_if.writer failure,         // sq_failure_t

    stream_if.source retire,        // qp_index_t: work requests may have completed
    stream_if.source work,          // qp_index_t: a READ or atomic has completed, requests waiting for it may be sent
    stream_if.source fault,         // qp_index_t
    output logic     commanded,     // pulse: a command of roce_qp_control is in the table
    output logic [$clog2(PENDING):0] confirming,  // verdicts pending for memory
    output logic     confirmed_one, // pulse: the oldest is confirmed
    output logic     idle
);
  typedef struct packed {
    sq_payload_e   payload;
    atomicacketh_t original;
  } steer_t;

  typedef struct packed {
    qp_index_t  index;
    logic       writes;
    logic       command;
    logic       fresh;
    logic       answered;
    logic       drained;
    sq_state_e  state;
    xpsn_t      una;
    wc_status_e status;
    xpsn_t      failed;
  } waiting_t;

  localparam int unsigned PLACING = 16;    // payloads pending
  typedef logic [$clog2(PENDING):0] count_t;

  stream_if #(.T(dma_cmd_t)) write_in ();
  stream_if #(.T(steer_t)) steer_in ();
  stream_if #(.T(steer_t)) steer_out ();
  stream_if #(.T(waiting_t)) waiting_in ();
  stream_if #(.T(waiting_t)) waiting_out ();
  logic   write_empty, steer_empty, waiting_empty, faults_empty;
  count_t writes_q, steers_q, waits_q;     // entries in each queue
  logic   room_q;                          // each has an entry free beyond that of this cycle

  sq_verdict_t said;
  assign said = verdict.data;
  wire places = READS && said.payload inside {PAYLOAD_PLACE, PAYLOAD_ORIGINAL};

  assign verdict.ready    = room_q;
  assign write_in.valid   = verdict.valid && room_q && places;
  assign write_in.data    = '{target: said.target, key: said.key, addr: said.addr, length: 32'(said.length)};
  assign steer_in.valid   = verdict.valid && room_q && said.payload != PAYLOAD_NONE;
  assign steer_in.data    = '{payload: said.payload, original: READS ? said.original : '0};
  assign waiting_in.valid = verdict.valid && room_q && said.confirms;
  assign waiting_in.data  = '{
          index: said.index,
          writes: places,
          command: said.command,
          fresh: said.fresh,
          answered: said.answered,
          drained: said.drained,
          state: said.state,
          una: said.una,
          status: said.status,
          failed: said.failed
      };

  if (READS) begin : g_writes
    stream_fifo #(.T(dma_cmd_t), .DEPTH(PLACING)) writes (.clk, .rst, .in(write_in), .out(write), .empty(write_empty));
  end else begin : g_no_writes
    assign write_in.ready = 1'b0;
    assign write.valid    = 1'b0;
    assign write.data     = '0;
    assign write_empty    = 1'b1;
  end
  stream_fifo #(.T(steer_t), .DEPTH(PLACING)) steers (.clk, .rst, .in(steer_in), .out(steer_out), .empty(steer_empty));
  stream_fifo #(.T(waiting_t), .DEPTH(PENDING)) waiting (.clk, .rst, .in(waiting_in), .out(waiting_out), .empty(waiting_empty));

  always_ff @(posedge clk) begin
    if (rst) begin
      writes_q <= '0;
      steers_q <= '0;
      waits_q  <= '0;
      room_q   <= 1'b0;
    end else begin
      writes_q <= writes_q + count_t'(write_in.valid) - count_t'(write.valid && write.ready);
      steers_q <= steers_q + count_t'(steer_in.valid) - count_t'(steer_out.valid && steer_out.ready);
      waits_q  <= waits_q + count_t'(waiting_in.valid) - count_t'(waiting_out.valid && waiting_out.ready);
      room_q   <= writes_q <= count_t'(PLACING - 2) && steers_q <= count_t'(PLACING - 2) && waits_q <= count_t'(PENDING - 2);
    end
  end

  // ---- payload ----
  steer_t steer;
  assign steer = steer_out.data;
  wire made = READS && steer.payload == PAYLOAD_ORIGINAL;
  wire drop = !READS || steer.payload == PAYLOAD_DROP;

  // The original value is big-endian on the wire and little-endian in device memory.
  assign data.tvalid     = steer_out.valid && (made || (!drop && payload.tvalid));
  always_comb begin
    data.tdata = payload.tdata;
    if (made) data.tdata[63:0] = steer.original;   // tkeep marks the other bytes as null
  end
  assign data.tkeep      = made ? (DATA_W / 8)'(8'hff) : payload.tkeep;
  assign data.tlast      = made || payload.tlast;
  assign data.tuser      = 1'b0;
  assign payload.tready  = steer_out.valid && !made && (drop || data.tready);
  assign steer_out.ready = made ? data.tready : payload.tvalid && payload.tlast && (drop || data.tready);

  // ---- confirmation ----
  waiting_t  head;
  dma_done_t result;
  assign head   = waiting_out.data;
  assign result = done.data;
  assign index  = head.index;

  wire writes   = READS && head.writes;
  wire confirms = waiting_out.valid && (!writes || done.valid);
  wire act      = confirms && (!head.answered || work.ready);
  wire refused  = writes && result.error;

  assign waiting_out.ready = act;
  assign done.ready        = waiting_out.valid && writes && (!head.answered || work.ready);
  assign work.valid        = confirms && head.answered;
  assign work.data         = head.index;
  assign confirming        = waits_q;
  assign confirmed_one     = act;
  assign retire.valid      = act;
  assign retire.data       = head.index;
  always_ff @(posedge clk) commanded <= !rst && act && head.command;

  // The state of a QP that has failed is kept.
  wire takes = confirmed.state != SQ_ERR || head.state == SQ_RESET;
  wire good  = !confirmed.refused && !refused;
  sq_confirmed_t next;
  always_comb begin
    next = confirmed;
    if (head.fresh) next = '{state: head.state, default: '0};
    else begin
      next.drains = confirmed.drains ^ head.drained;
      if (takes) begin
        next.state   = head.state;
        next.refused = !good;
      end
      if (head.answered && good) next.rd_done = confirmed.rd_done + 1'b1;
    end
  end
  assign confirmed_next.valid = act;
  assign confirmed_next.index = head.index;
  assign confirmed_next.data  = next;
  assign una.valid            = act && (head.fresh || (takes && good));
  assign una.index            = head.index;
  assign una.data             = head.una;
  // After a write error that is the failure, not any later one.
  assign failure.valid        = act && takes;
  assign failure.index        = head.index;
  assign failure.data         = '{status: confirmed.refused ? WC_LOC_PROT_ERR : head.status, psn: head.failed};

  stream_if #(.T(qp_index_t)) refusal[1] ();
  assign refusal[0].valid = act && refused && !confirmed.refused && !head.fresh;
  assign refusal[0].data  = head.index;
  roce_qp_list #(
      .QPS(QPS),
      .N(1)
  ) faults (
      .clk,
      .rst,
      .in(refusal),
      .out(fault),
      .empty(faults_empty)
  );

  assign idle = !verdict.valid && write_empty && steer_empty && waiting_empty && faults_empty;

  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (!refusal[0].valid || refusal[0].ready);
      assert (!retire.valid || retire.ready);
      assert (!write_in.valid || write_in.ready);
      assert (!steer_in.valid || steer_in.ready);
      assert (!waiting_in.valid || waiting_in.ready);
    end
  end
endmodule
