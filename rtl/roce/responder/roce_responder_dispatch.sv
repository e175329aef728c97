// SPDX-License-Identifier: Apache-2.0

// Executes the actions in order: memory write command with payload, and event. `dispatched` pulses when an action that has an outcome is
// taken; all parts of the actions before it were taken by then.
//
// One action a cycle, latency 0 from `action`. Payload passes at one beat a cycle; the payload of refused packets is discarded. A stalled
// output takes its part of one more action and then stalls the later ones; payload stalls with `data` alone. The ready of an output has no
// combinational path to `action`.
module roce_responder_dispatch
  import memory_pkg::*;
  import roce_pkg::*;
  import roce_rx_pkg::*;
#(
    parameter int unsigned DATA_W   = 512,
    parameter int unsigned PAYLOADS = 16       // packets decided before their payload has passed; power of two
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.sink   action,                   // action_t
    stream_if.source qp_event,                 // qp_event_t
    output logic     dispatched,               // pulse, with its lane
    output target_t  dispatched_lane,
    axis_if.sink     payload,
    stream_if.source write,                    // dma_cmd_t
    axis_if.source   data,
    output logic     idle
);
  action_t now;
  assign now = action.data;

  // ---- the parts of an action, each with its own buffer: an action is taken when all of them are free ----
  stream_if #(.T(qp_event_t)) event_part ();
  stream_if #(.T(dma_cmd_t)) write_part ();
  stream_if #(.T(logic)) verdict ();           // 1: to memory, 0: discarded. One for each packet with payload

  assign action.ready = event_part.ready && write_part.ready && verdict.ready;
  wire taken = action.valid && action.ready;
  assign dispatched      = taken && now.waits;
  assign dispatched_lane = now.lane;

  assign event_part.valid = taken && now.event_;
  assign event_part.data  = '{kind: now.fatal ? EVENT_QP_FATAL : EVENT_COMM_EST, qpn: now.qpn, status: now.status};
  stream_skid #(.T(qp_event_t)) event_skid (.clk, .rst, .in(event_part), .out(qp_event));

  assign write_part.valid = taken && now.write;
  assign write_part.data  = '{target: now.target, key: now.key, addr: now.addr, length: 32'(now.length)};
  stream_skid #(.T(dma_cmd_t)) write_skid (.clk, .rst, .in(write_part), .out(write));

  assign verdict.valid = taken && now.payload;
  assign verdict.data  = now.write;

  // ---- payload ----
  localparam int unsigned DRAIN = 0;
  localparam int unsigned MEMORY = 1;

  axis_if #(.DATA_W(DATA_W)) way[2] ();
  logic verdicts_empty;

  axis_steer #(.DATA_W(DATA_W), .N(2), .DEPTH(PAYLOADS)) payloads (
      .clk, .rst, .in(payload), .route(verdict), .out(way), .empty(verdicts_empty)
  );

  assign way[DRAIN].tready = 1'b1;

  axis_wires to_memory (.in(way[MEMORY]), .out(data));

  assign idle = !action.valid && !qp_event.valid && !write.valid && verdicts_empty && !payload.tvalid;
endmodule
