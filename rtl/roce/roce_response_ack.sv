// SPDX-License-Identifier: Apache-2.0

// Sends the newest acknowledgement of each QP: at once if no READ or atomic of the QP waits to be answered or is on its way to the
// wire, else when the last of them was chosen for the wire. QPs that may send one take turns; what is acknowledged until its turn
// comes is one acknowledgement. Knows for each QP whether a response is on its way: what was handed to roce_tx (`sent`) and
// was not chosen yet (`left`, in the order sent).
//
// One a cycle; `name` to `ack` 2 cycles. When `ack` stops acknowledgements are coalesced; nothing else stops.
module roce_response_ack
  import roce_pkg::*;
  import roce_requester_pkg::*;
  import roce_response_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input logic clk,
    input logic rst,

    input logic      pend,           // QP `at` has an acknowledgement to send ...
    input logic      unpend,         // ... has none
    input qp_index_t at,
    input logic      forget,         // has none
    input qp_index_t forget_index,
    stream_if.sink   name,           // qp_index_t: may send now
    stream_if.sink   dropped,        // qp_index_t: something left the queue of this QP unanswered

    input logic      sent,           // a response was handed over
    input qp_index_t sent_index,
    input logic      left,           // one was chosen
    input qp_index_t left_index,

    output qp_index_t index,         // whose tables are looked at
    input  rsp_tail_t tail,
    input  rsp_head_t head,
    input  rsp_ack_t  newest,

    stream_if.source ack,            // ack_tx_t
    input qp_index_t watch,
    output logic     engaged,        // an acknowledgement of `watch` waits for `ack`
    output roce_rx_events_t events,  // sent_ack, sent_nak, send_rnr_err
    output logic     idle
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  typedef logic [INDEX_W-1:0] short_t;
  typedef logic [6:0] flight_t;      // counts responses; fewer than half of its range are on their way

  logic [QPS-1:0] pending_q, flying_q;
  flight_t sent_q, left_q;

  // ---- on their way ----
  qp_index_t last_index[1];
  flight_t   last[1];
  assign last_index[0] = left_index;
  roce_qp_tx_table #(
      .T(flight_t),
      .QPS(QPS)
  ) last_sent (
      .clk,
      .write(sent),
      .write_index(sent_index),
      .write_data(sent_q),
      .read_index(last_index),
      .read_data(last)
  );
  // The QP's last, and no other is handed over just now.
  logic      landed_q;
  qp_index_t landed_index_q;

  always_ff @(posedge clk) begin
    landed_index_q <= left_index;
    landed_q       <= !rst && left && last[0] == left_q && !(sent && sent_index == left_index);
    if (rst) begin
      sent_q   <= '0;
      left_q   <= '0;
      flying_q <= '0;
    end else begin
      sent_q <= sent_q + flight_t'(sent);
      left_q <= left_q + flight_t'(left);
      if (landed_q) flying_q[short_t'(landed_index_q)] <= 1'b0;
      if (sent) flying_q[short_t'(sent_index)] <= 1'b1;
    end
  end

  // ---- who may send ----
  stream_if #(.T(qp_index_t)) named[3] ();
  stream_if #(.T(qp_index_t)) next ();
  logic list_empty;
  assign named[0].valid = landed_q;
  assign named[0].data  = landed_index_q;
  assign named[1].valid = dropped.valid;
  assign named[1].data  = dropped.data;
  assign dropped.ready  = named[1].ready;
  assign named[2].valid = name.valid;
  assign named[2].data  = name.data;
  assign name.ready     = named[2].ready;

  roce_qp_tx_list #(
      .QPS(QPS),
      .N(3),
      .BLOCK_RAM(1'b0)
  ) list (
      .clk,
      .rst,
      .in(named),
      .out(next),
      .empty(list_empty)
  );

  // ---- send: look up, then decide ----
  logic      valid_q;      // looked up, not through
  logic      first_q;      // this is the cycle after
  logic      pending_at_q, flying_at_q, renewed_q;
  qp_index_t index_q;
  rsp_count_t tail_q, head_q;
  rsp_ack_t  newest_q;
  short_t    at_short;

  wire may   = pending_at_q && !flying_at_q && tail_q == head_q;
  wire clear = first_q && may && !renewed_q;
  assign index      = next.data;
  assign at_short   = short_t'(index);
  assign next.ready = !valid_q || !may || ack.ready;

  always_ff @(posedge clk) begin
    if (next.ready) begin
      index_q      <= index;
      tail_q       <= tail.count;
      head_q       <= head.count;
      newest_q     <= newest;
      pending_at_q <= pending_q[at_short] && !(clear && index_q == index);
      flying_at_q  <= flying_q[at_short];
      renewed_q    <= pend && at == index;   // by one that was not looked at
    end
    if (rst) begin
      valid_q   <= 1'b0;
      first_q   <= 1'b0;
      pending_q <= '0;
    end else begin
      if (next.ready) valid_q <= next.valid;
      first_q <= next.valid && next.ready;
      if (clear) pending_q[short_t'(index_q)] <= 1'b0;
      if (forget) pending_q[short_t'(forget_index)] <= 1'b0;
      if (unpend) pending_q[short_t'(at)] <= 1'b0;
      if (pend) pending_q[short_t'(at)] <= 1'b1;
    end
  end

  assign ack.valid = valid_q && may;
  assign ack.data  = ack_tx_t'{qpn: qp_number(index_q), cnp: 1'b0, psn: newest_q.psn, aeth: newest_q.aeth};
  assign engaged   = valid_q && index_q == watch;
  assign idle      = !valid_q && list_empty && sent_q == left_q && !landed_q;

  wire goes = ack.valid && ack.ready;
  always_comb begin
    events = '0;
    unique case (newest_q.aeth.syndrome[6:5])
      2'b01: events.send_rnr_err = goes;
      2'b11: events.sent_nak = goes;
      default: events.sent_ack = goes;
    endcase
  end
endmodule
