// SPDX-License-Identifier: Apache-2.0

// Carries out what was decided, action by action, in order: memory write and its payload, event. An action is done when every
// part of it was taken; `dispatched` says so of those that have an outcome.
//
// One action a cycle, latency 0 from `action`. Payload follows one beat a cycle, the payload of refused packets is drained.
// Any output that stops holds back the actions behind; payload stops with `data` alone.
module roce_responder_dispatch
  import memory_pkg::*;
  import roce_pkg::*;
  import roce_rx_pkg::*;
#(
    parameter int unsigned DATA_W   = 512,
    parameter int unsigned PAYLOADS = 16       // packets decided ahead of their payload; power of two
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.sink   action,                   // action_t
    stream_if.source qp_event,                 // qp_event_t
    output logic     dispatched,               // pulse, and of which lane
    output target_t  dispatched_lane,
    axis_if.sink     payload,
    stream_if.source write,                    // dma_cmd_t
    axis_if.source   data,
    output logic     idle
);
  action_t now;
  assign now = action.data;

  // ---- the parts of an action, each taken in its own time ----
  typedef enum int unsigned {
    PART_EVENT,
    PART_WRITE,
    PART_PAYLOAD,
    PARTS
  } part_e;

  stream_if #(.T(logic)) whole ();
  stream_if #(.T(logic)) part[PARTS] ();
  stream_if #(.T(logic)) verdict ();           // 1: to memory, 0: discarded. One for each packet with payload

  assign whole.valid  = action.valid;
  assign whole.data   = 1'b0;
  assign action.ready = whole.ready;
  assign dispatched      = action.valid && whole.ready && now.waits;
  assign dispatched_lane = now.lane;

  stream_fork #(.T(logic), .N(PARTS)) fork_ (.clk, .rst, .in(whole), .out(part));

  assign qp_event.valid = part[PART_EVENT].valid && now.event_;
  assign qp_event.data  = '{kind: now.fatal ? EVENT_QP_FATAL : EVENT_COMM_EST, qpn: now.qpn, status: now.status};
  assign part[PART_EVENT].ready = qp_event.ready || !now.event_;

  assign write.valid    = part[PART_WRITE].valid && now.write;
  assign write.data     = '{target: now.target, key: now.key, addr: now.addr, length: 32'(now.length)};
  assign part[PART_WRITE].ready = write.ready || !now.write;

  assign verdict.valid  = part[PART_PAYLOAD].valid && now.payload;
  assign verdict.data   = now.write;
  assign part[PART_PAYLOAD].ready = verdict.ready || !now.payload;

  // ---- payload ----
  localparam int unsigned DRAIN = 0;
  localparam int unsigned MEMORY = 1;

  axis_if #(.DATA_W(DATA_W)) way[2] ();
  logic verdicts_empty;

  axis_steer #(.DATA_W(DATA_W), .N(2), .DEPTH(PAYLOADS)) payloads (
      .clk, .rst, .in(payload), .route(verdict), .out(way), .empty(verdicts_empty)
  );

  assign way[DRAIN].tready = 1'b1;

  assign data.tvalid = way[MEMORY].tvalid;
  assign data.tdata  = way[MEMORY].tdata;
  assign data.tkeep  = way[MEMORY].tkeep;
  assign data.tlast  = way[MEMORY].tlast;
  assign data.tuser  = way[MEMORY].tuser;
  assign way[MEMORY].tready = data.tready;

  assign idle = !action.valid && verdicts_empty && !payload.tvalid;
endmodule
