// SPDX-License-Identifier: Apache-2.0

// Counts the events of a network device: 32 bits each, modulo 2^32, for each pair of queues. No event is lost. What is dropped on
// its way in, at most one frame a cycle, has a bank of its own; all else takes turns at another one, and comes at most every other
// cycle from transmit, every third from receive. `value` follows `read_at` in the same cycle.
module virtio_counters
  import virtio_pkg::*;
(
    input  logic           clk,
    input  logic           rst,
    input  net_tx_events_t tx,
    input  net_rx_events_t rx,
    input  virtq_fail_t    fault,
    input  counter_t       read_at,
    output logic [31:0]    value
);
  localparam int unsigned SOURCES = 5;

  stream_if #(.T(counter_t)) event_in[SOURCES] ();
  stream_if #(.T(counter_t)) waiting[SOURCES] ();
  stream_if #(.T(counter_t)) next ();

  function automatic logic [PAIR_W-1:0] pair(queue_t vq);
    return vq[PAIR_W:1];
  endfunction

  assign event_in[0].valid = tx.short_ || tx.long_ || tx.header || tx.memory;
  assign event_in[0].data  = '{kind: tx.short_ ? COUNT_TX_SHORT : tx.long_ ? COUNT_TX_LONG : tx.header ? COUNT_TX_HEADER : COUNT_TX_MEMORY,
                               pair: pair(tx.vq)};
  assign event_in[1].valid = rx.no_buffer;
  assign event_in[1].data  = '{kind: COUNT_RX_NO_BUFFER, pair: pair(rx.drop_vq)};
  assign event_in[2].valid = rx.received || rx.memory;
  assign event_in[2].data  = '{kind: rx.received ? COUNT_RX : COUNT_RX_MEMORY, pair: pair(rx.done_vq)};
  assign event_in[3].valid = fault.valid;
  assign event_in[3].data  = '{kind: COUNT_STOPPED, pair: pair(fault.vq)};
  assign event_in[4].valid = tx.sent;
  assign event_in[4].data  = '{kind: COUNT_TX, pair: pair(tx.sent_vq)};
  logic [SOURCES-1:0] lost;
  for (genvar i = 0; i < SOURCES; i++) begin : g_source
    stream_fifo #(.T(counter_t), .DEPTH(16)) fifo (.clk, .rst, .in(event_in[i]), .out(waiting[i]), .empty());
    assign lost[i] = event_in[i].valid && !event_in[i].ready;
  end
  stream_arbiter #(.T(counter_t), .N(SOURCES)) arbiter (.clk, .rst, .in(waiting), .last('1), .out(next));
  assign next.ready = 1'b1;

  counter_t    in_at;
  logic [31:0] in_value, other_value;
  assign in_at = '{kind: rx.overrun ? COUNT_RX_OVERRUN : COUNT_RX_BAD, pair: pair(rx.in_vq)};
  virtio_counter_bank in_bank (.clk, .rst, .count(rx.overrun || rx.bad), .at(in_at), .read_at, .value(in_value));
  virtio_counter_bank other_bank (.clk, .rst, .count(next.valid), .at(next.data), .read_at, .value(other_value));
  assign value = read_at.kind inside {COUNT_RX_OVERRUN, COUNT_RX_BAD} ? in_value : other_value;

  always_ff @(posedge clk) if (!rst) assert (lost == '0) else $error("an event was not counted");
endmodule
