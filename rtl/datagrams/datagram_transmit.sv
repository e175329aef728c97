// SPDX-License-Identifier: Apache-2.0

// Transmit side of a socket: takes a packet of its kernel, a header and the payload, whole into a store, looks whether the kernel may send
// it, and offers it to datagram_send. So a kernel that stops in the middle of a packet, or is cut off there, holds up nobody and leaves
// nothing behind.
//
// The length in the header is what counts: the packet has as many beats as that needs, else it is dropped. Addresses, ports and the time between two datagrams are not the kernel's to choose: see destinations_e and `pace`.
//
// One datagram at a time: one beat a cycle in, then it is offered 4 cycles after its last beat if the time of the one before has passed.
// A datagram whose destination is not resolved is offered again after RETRY_CYCLES, TRIES times in all, then dropped.
//
// While `off` is high the kernel is in reset: a datagram that datagram_send does not have yet is discarded.
module datagram_transmit
  import packet_pkg::*;
  import datagrams_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned RETRY_CYCLES = 500_000,
    parameter int unsigned TRIES = 64
) (
    input  logic               clk,
    input  logic               rst,
    input  logic [32:0]        elapsed,          // cycles of device time since the cycle before
    input  logic               off,
    input  datagram_settings_t settings,
    axis_if.sink               in,
    output datagram_number_t   answered,         // which datagram the one at hand answers;
    input  sender_t            sender,           // its sender, in the same cycle,
    input  logic               may_answer,       // if it can be answered
    output logic               answers,          // pulse: it is
    output logic               offer,            // a datagram is there: `request` is valid until `sent`
    output datagram_tx_t       request,
    input  logic               taken,            // pulses: of datagram_send
    input  logic               unresolved,       // it is not resolved, and not sent
    input  logic               fetch,            // the next beat of the payload,
    output logic [DATA_W-1:0]  beat,             // a cycle later
    input  logic               sent,
    output logic               malformed,        // pulses: events
    output logic               refused,
    output logic               given_up,
    output logic               discarded,
    output logic               idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned BYTE_W = $clog2(BYTES);
  localparam int unsigned STORED = DATAGRAM_BYTES / BYTES;
  localparam int unsigned DEPTH = STORED < 128 ? 128 : STORED;   // no less: it would be in distributed RAM
  localparam int unsigned HEAD_BEATS = HEADER_BYTES / BYTES;
  localparam int unsigned FRACTION_W = 8;
  localparam int unsigned WAIT_W = 42;
  typedef logic [$clog2(DEPTH)-1:0] at_t;
  typedef logic [$clog2(HEAD_BEATS+1)-1:0] head_t;
  typedef logic [WAIT_W-1:0] wait_t;

  localparam int unsigned ANSWER_FACTOR = 3;     // RFC 9000, 8.1, has it for the same reason
  localparam int unsigned FRAME_BYTES = ETH_HDR_BYTES + IPV4_HDR_BYTES + UDP_HDR_BYTES;

  typedef enum logic [2:0] {
    S_HEAD,      // take the header,
    S_BODY,      // the payload
    S_LOOK,      // may it be sent?
    S_JUDGE,
    S_WAIT,      // for its time
    S_OFFER,
    S_TAKEN      // datagram_send has it
  } state_e;

  state_e state_q;

  // ---- the packet ----
  logic [HEAD_BEATS-1:0][DATA_W-1:0] header_q;
  datagram_t        header;
  head_t            head_q;
  at_t              at_q, last_at;
  logic             bad_q;                       // not as long as its header says
  assign header = header_of(header_q);
  assign last_at = at_t'((datagram_length_t'(header.length) - 1'b1) >> BYTE_W);

  // At 512 bits the last beat of the header is the first, which has the length.
  datagram_t arriving;
  assign arriving = HEAD_BEATS == 1 ? header_of(header_bytes_t'(in.tdata)) : header;
  wire empty = arriving.length == '0;
  wire last_head = head_q == head_t'(HEAD_BEATS - 1);

  assign in.tready = (state_q == S_HEAD || state_q == S_BODY) && !off;
  wire take = in.tvalid && in.tready;

  ram_1w1r #(.T(logic [DATA_W-1:0]), .WORDS(DEPTH)) beats (
      .clk, .write(take && state_q == S_BODY), .write_at(at_q), .write_data(in.tdata), .read(fetch), .read_at(at_q), .read_data(beat)
  );

  // ---- may it be sent ----
  logic  told_q, near_q, host_q;
  wire   mapped = header.peer[127:32] == 96'hffff;
  assign answered = header.number;
  always_ff @(posedge clk) begin
    told_q    <= may_answer && 16'(header.length) <= 16'(sender.length) * 16'(ANSWER_FACTOR) + 16'(FRAME_BYTES * (ANSWER_FACTOR - 1));
    near_q    <= ((ipv4_of(header.peer) ^ settings.network) & settings.mask) == '0 && mapped;
    host_q    <= one_host('0, ipv4_of(header.peer)) && header.peer_port != '0 && ipv4_of(header.peer) >> 24 != 32'd127;
  end
  wire to_sender = settings.to == TO_SENDERS;
  wire allowed = settings.enable && (to_sender ? told_q : settings.to == TO_NETWORK && near_q && host_q);
  wire well_formed = !bad_q && header.kind == KIND_DATAGRAM && header.length <= 16'(DATAGRAM_BYTES);
  wire judged = state_q == S_JUDGE && !off;

  assign answers = judged && well_formed && allowed && to_sender;
  assign offer   = state_q == S_OFFER && !off;

  // The answer's table may change while the datagram waits.
  datagram_tx_t request_q;
  assign request = request_q;
  always_ff @(posedge clk) if (state_q == S_JUDGE)
    request_q <= '{
        ip: to_sender ? sender.ip : ipv4_of(header.peer),
        port: to_sender ? sender.port : header.peer_port,
        own_port: settings.port,
        known: to_sender,
        mac: sender.mac,
        length: datagram_length_t'(header.length)
    };

  // ---- the time between two: what is sent takes `pace` for each byte, header and all ----
  wait_t wait_q, passed;
  logic  [$clog2(TRIES)-1:0] tries_q;
  wire   last_try = tries_q == ($clog2(TRIES))'(TRIES - 1);
  logic  cut_q;                                  // it was in the hands of datagram_send when the kernel was decoupled
  wire   gone = unresolved && (last_try || cut_q || off);
  assign passed = wait_t'(elapsed) << FRACTION_W;

  always_ff @(posedge clk) begin
    if (fetch || taken) wait_q <= wait_q + (wait_t'(settings.pace) << (taken ? $clog2(HEADER_BYTES) : BYTE_W));
    else if (unresolved && !gone) wait_q <= wait_t'(RETRY_CYCLES) << FRACTION_W;
    else wait_q <= wait_q <= passed ? '0 : wait_q - passed;

    malformed <= !rst && judged && !well_formed;
    refused   <= !rst && judged && well_formed && !allowed;
    given_up  <= !rst && gone;
    cut_q     <= state_q == S_TAKEN && (cut_q || off);
    discarded <= !rst && off && (state_q inside {S_LOOK, S_JUDGE, S_WAIT, S_OFFER});

    if (take && state_q == S_HEAD) header_q[head_q] <= in.tdata;
    unique case (state_q)
      S_HEAD: begin
        at_q    <= '0;
        tries_q <= '0;
        if (take) begin
          head_q <= head_q + 1'b1;
          bad_q  <= in.tlast ? !last_head || !empty : last_head && empty;
          if (in.tlast) state_q <= S_LOOK;
          else if (last_head) state_q <= S_BODY;
        end
      end
      S_BODY:
      if (take) begin
        at_q <= at_q + 1'b1;
        if (in.tlast != (at_q == last_at)) bad_q <= 1'b1;
        if (in.tlast) state_q <= S_LOOK;
      end
      S_LOOK: state_q <= S_JUDGE;
      S_JUDGE: state_q <= well_formed && allowed ? S_WAIT : S_HEAD;
      S_WAIT: begin
        at_q <= '0;
        if (wait_q == '0) state_q <= S_OFFER;
      end
      S_OFFER: if (taken) state_q <= S_TAKEN;
      default: begin
        if (fetch) at_q <= at_q + 1'b1;
        if (sent || gone) state_q <= S_HEAD;
        else if (unresolved) begin
          state_q <= S_WAIT;
          tries_q <= tries_q + 1'b1;
        end
      end
    endcase
    if (off && state_q != S_TAKEN) state_q <= S_HEAD;
    if (state_q != S_HEAD || off) head_q <= '0;
    if (rst) begin
      state_q <= S_HEAD;
      head_q  <= '0;
      wait_q  <= '0;
    end
  end

  // A kernel that stops in the middle of a packet, and time that passes, are no work.
  assign idle = ((state_q == S_HEAD || state_q == S_BODY) && !in.tvalid) || (state_q == S_WAIT && wait_q != '0);

  logic unused_ok;
  assign unused_ok = &{1'b0, in.tkeep, in.tuser, header, arriving};
endmodule
