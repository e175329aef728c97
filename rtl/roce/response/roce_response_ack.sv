// SPDX-License-Identifier: Apache-2.0

// Sends the newest acknowledgement of each QP: at once if no READ or atomic of the QP is queued or on its way to transmission, else when
// the last of them was selected for transmission. QPs with a pending acknowledgement are served round-robin; acknowledgements that become
// pending meanwhile are coalesced into one. For each QP the unit counts the responses in roce_tx: handed over (`sent`) and not yet selected
// (`left`). Those of different QPs leave in any order: with several memories each waits for its own.
//
// One a cycle; `name` to `ack` 2 cycles. When `ack` stalls, acknowledgements are coalesced; nothing else stalls.
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
    input logic      pend,           // a pending acknowledgement, else none
    input qp_index_t at,
    input qp_index_t watch,
    stream_if.sink   name[2],        // qp_index_t: an acknowledgement may be due
    stream_if.sink   dropped,        // qp_index_t: an entry left the queue of this QP unanswered

    input logic      sent,           // a response was handed to roce_tx
    input qp_index_t sent_index,
    input logic      left,           // roce_tx has selected a response
    input qp_index_t left_index,

    output qp_index_t  index,        // the QP whose words are read
    input  rsp_count_t tail,         // entries so far
    input  rsp_count_t head,         // entries answered
    roce_qp_read_if.reader newest,   // rsp_ack_t

    stream_if.source ack,            // ack_tx_t
    output logic     engaged,        // QP `watch` has a pending acknowledgement
    output roce_rx_events_t events,  // sent_ack, sent_nak, send_rnr_err
    output logic     idle
);
  // ---- responses in roce_tx ----
  logic      flying;
  logic      left_q, more_left;    // a response was selected; others of its QP are still there
  qp_index_t left_index_q;
  roce_qp_outstanding #(
      .QPS(QPS),
      .READERS(2)
  ) responses (
      .clk,
      .rst,
      .begins(sent),
      .begins_index(sent_index),
      .ends(left),
      .ends_index(left_index),
      .index({left_index_q, index}),
      .outstanding({more_left, flying})
  );
  always_ff @(posedge clk) begin
    left_q       <= !rst && left;
    left_index_q <= left_index;
  end

  typedef logic [8:0] count_t;
  count_t inside_q;                // of all QPs: fewer than 512, in all lanes
  always_ff @(posedge clk) inside_q <= rst ? '0 : inside_q + count_t'(sent) - count_t'(left);

  // ---- QPs that may send ----
  stream_if #(.T(qp_index_t)) named[4] ();
  stream_if #(.T(qp_index_t)) next ();
  logic list_empty;
  assign named[0].valid = left_q && !more_left;
  assign named[0].data  = left_index_q;
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

  // ---- send: read, then decide ----
  logic      valid_q;      // read, not finished
  logic      first_q;      // the cycle after the read
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

  // If an acknowledgement is renewed while it is sent, the newer one stays pending.
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
      renewed_q    <= renew && pend && at == index;   // by one that the read did not return
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
  assign idle      = !valid_q && list_empty && inside_q == '0 && !left_q;

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
