// SPDX-License-Identifier: Apache-2.0

// Sends the newest acknowledgement of each QP: at once if no READ or atomic of the QP waits to be answered or is on its way to the
// wire, else when the last of them was chosen for the wire. QPs that may send one take turns; what is acknowledged until its turn
// comes is one acknowledgement. Knows for each QP whether a response is on its way: what was handed to roce_tx (`sent`) and
// was not chosen yet (`left`, in the order sent).
//
// One a cycle; `name` to `ack` 2 cycles. When `ack` stops acknowledgements are coalesced; nothing else stops.
module roce_response_ack
  import roce_pkg::*;
  import roce_events_pkg::*;
  import roce_response_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input logic clk,
    input logic rst,

    input logic      renew,          // QP `at` has
    input logic      pend,           // an acknowledgement to send, else none
    input qp_index_t at,
    input qp_index_t watch,
    stream_if.sink   name[2],        // qp_index_t: may send now
    stream_if.sink   dropped,        // qp_index_t: something left the queue of this QP unanswered

    input logic      sent,           // a response was handed over
    input qp_index_t sent_index,
    input logic      left,           // one was chosen
    input qp_index_t left_index,

    output qp_index_t  index,        // whose words are read
    input  rsp_count_t tail,         // entries so far
    input  rsp_count_t head,         // entries answered
    roce_qp_read_if.reader newest,   // rsp_ack_t

    stream_if.source ack,            // ack_tx_t
    output logic     engaged,        // QP `watch` has an acknowledgement to send
    output roce_rx_events_t events,  // sent_ack, sent_nak, send_rnr_err
    output logic     idle
);
  typedef logic [6:0] flight_t;      // counts responses; fewer than half of its range are on their way

  flight_t sent_q, left_q;

  // ---- on their way ----
  flight_t last;
  roce_qp_table #(
      .T(flight_t),
      .QPS(QPS)
  ) last_sent (
      .clk,
      .write(sent),
      .write_index(sent_index),
      .write_data(sent_q),
      .read_index(left_index),
      .read_data(last)
  );
  // The QP's last, and no other is handed over just now.
  logic      landed_q;
  qp_index_t landed_index_q;

  always_ff @(posedge clk) begin
    landed_index_q <= left_index;
    landed_q       <= !rst && left && last == left_q && !(sent && sent_index == left_index);
    if (rst) begin
      sent_q <= '0;
      left_q <= '0;
    end else begin
      sent_q <= sent_q + flight_t'(sent);
      left_q <= left_q + flight_t'(left);
    end
  end

  logic flying;
  roce_qp_flags #(
      .QPS(QPS)
  ) flying_flags (
      .clk,
      .rst,
      .write({landed_q, sent}),
      .write_index({landed_index_q, sent_index}),
      .write_data(2'b01),
      .read_index(index),
      .read_data(flying)
  );

  // ---- who may send ----
  stream_if #(.T(qp_index_t)) named[4] ();
  stream_if #(.T(qp_index_t)) next ();
  logic list_empty;
  assign named[0].valid = landed_q;
  assign named[0].data  = landed_index_q;
  assign named[1].valid = dropped.valid;
  assign named[1].data  = dropped.data;
  assign dropped.ready  = named[1].ready;
  for (genvar i = 0; i < 2; i++) begin : g_name
    assign named[2+i].valid = name[i].valid;
    assign named[2+i].data  = name[i].data;
    assign name[i].ready    = named[2+i].ready;
  end

  roce_qp_list #(
      .QPS(QPS),
      .N(4),
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
  logic      pending, watched, pending_at_q, flying_at_q, renewed_q, empty_q;
  qp_index_t index_q;

  wire may   = pending_at_q && !flying_at_q && empty_q;
  wire clear = first_q && may && !renewed_q;
  assign index      = next.data;
  assign next.ready = !valid_q || !may || ack.ready;
  rsp_ack_t newest_ack;
  assign newest.read  = next.ready;
  assign newest.index = index;
  assign newest_ack   = newest.data;

  // Of an acknowledgement that is renewed while it is sent the newer one stays.
  roce_qp_flags #(
      .QPS(QPS),
      .READERS(2)
  ) pending_flags (
      .clk,
      .rst,
      .write({clear, renew}),
      .write_index({index_q, at}),
      .write_data({1'b0, pend}),
      .read_index({watch, index}),
      .read_data({watched, pending})
  );

  always_ff @(posedge clk) begin
    if (next.ready) begin
      index_q      <= index;
      empty_q      <= tail == head;
      pending_at_q <= pending && !(clear && index_q == index);
      flying_at_q  <= flying;
      renewed_q    <= renew && pend && at == index;   // by one that was not looked at
    end
    if (rst) begin
      valid_q <= 1'b0;
      first_q <= 1'b0;
    end else begin
      if (next.ready) valid_q <= next.valid;
      first_q <= next.valid && next.ready;
    end
  end

  assign ack.valid = valid_q && may;
  assign ack.data  = ack_tx_t'{qpn: qp_number(index_q), cnp: 1'b0, psn: newest_ack.psn, aeth: newest_ack.aeth};
  assign engaged   = watched || (valid_q && index_q == watch);
  assign idle      = !valid_q && list_empty && sent_q == left_q && !landed_q;

  wire goes = ack.valid && ack.ready;
  always_comb begin
    events = '0;
    unique case (newest_ack.aeth.syndrome[6:5])
      2'b01: events.send_rnr_err = goes;
      2'b11: events.sent_nak = goes;
      default: events.sent_ack = goes;
    endcase
  end
endmodule
