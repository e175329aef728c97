// SPDX-License-Identifier: Apache-2.0

// A socket's port for datagrams: its receive and transmit side, the senders of the last datagrams, which its kernel may answer once each, and
// its counters. Latency and throughput: see the units.
module datagram_port
  import packet_pkg::*;
  import datagrams_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned RETRY_CYCLES = 500_000
) (
    input  logic               clk,
    input  logic               rst,
    input  logic [32:0]        elapsed,
    input  logic               off,              // the kernel is decoupled
    input  ipv4_addr_t         own_ip,
    input  datagram_settings_t settings,
    input  logic               offered,          // a datagram to this socket,
    input  logic               fits,             // not longer than DATAGRAM_BYTES,
    input  sender_t            from,
    output logic               keep,             // is taken; same cycle
    input  logic               beat_valid,       // payload of those that were taken
    input  logic [DATA_W-1:0]  beat_data,
    axis_if.source             to_kernel,
    axis_if.sink               from_kernel,
    output logic               offer,            // see datagram_transmit
    output datagram_tx_t       request,
    input  logic               taken,
    input  logic               unresolved,
    input  logic               fetch,
    output logic [DATA_W-1:0]  beat,
    input  logic               sent,
    input  logic [$clog2(COUNTS)-1:0] counter_at,
    output logic [31:0]        counter,
    output logic               idle
);
  localparam int unsigned SLOT_W = $clog2(ANSWERS);
  typedef logic [SLOT_W-1:0] slot_t;

  // ---- the senders, by the numbers of their datagrams ----
  (* ram_style = "distributed" *) logic [$bits(sender_t)-1:0] senders[ANSWERS];
  datagram_number_t   number, shown, answered;
  logic               answers, discarded_here, discarded_there, receive_idle, transmit_idle;
  logic [ANSWERS-1:0] open_q;                    // its sender is there and was not answered
  datagram_number_t   next_q;
  sender_t            shown_sender, answered_sender;
  datagram_events_t   events;
  datagram_number_t   age;                       // 0: the last one
  assign shown_sender    = senders[slot_t'(shown)];
  assign answered_sender = senders[slot_t'(answered)];
  assign age             = next_q - answered - 1'b1;
  always_ff @(posedge clk) if (keep) senders[slot_t'(number)] <= from;
  always_ff @(posedge clk) begin
    next_q <= rst ? '0 : keep ? number + 1'b1 : next_q;
    for (int unsigned i = 0; i < ANSWERS; i++) begin
      if (rst || off) open_q[i] <= 1'b0;
      else if (keep && slot_t'(number) == slot_t'(i)) open_q[i] <= 1'b1;
      else if (answers && slot_t'(answered) == slot_t'(i)) open_q[i] <= 1'b0;
    end
  end

  datagram_receive #(.DATA_W(DATA_W)) receive (
      .clk, .rst, .off, .own_ip, .own_port(settings.port), .offered, .fits, .offered_length(from.length), .keep, .number,
      .beat_valid, .beat_data, .shown, .sender(shown_sender), .out(to_kernel), .drop_room(events.drop_room),
      .discarded(discarded_here), .idle(receive_idle)
  );

  datagram_transmit #(.DATA_W(DATA_W), .RETRY_CYCLES(RETRY_CYCLES)) transmit (
      .clk, .rst, .elapsed, .off, .settings, .in(from_kernel), .answered, .sender(answered_sender),
      .may_answer(open_q[slot_t'(answered)] && age < datagram_number_t'(ANSWERS)), .answers, .offer, .request, .taken, .unresolved, .fetch,
      .beat, .sent, .malformed(events.malformed), .refused(events.refused), .given_up(events.unresolved),
      .discarded(discarded_there), .idle(transmit_idle)
  );

  always_ff @(posedge clk) begin
    events.received    <= !rst && keep;
    events.drop_length <= !rst && offered && !fits;
    events.sent        <= !rst && sent;
  end
  assign events.discarded = discarded_here || discarded_there;

  datagram_counters counters (.clk, .rst, .events, .at(counter_at), .value(counter));

  assign idle = receive_idle && transmit_idle && events == '0;
endmodule
