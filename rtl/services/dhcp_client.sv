// SPDX-License-Identifier: Apache-2.0

// The DHCP client's state machine (RFC 2131, 4.4 and figure 5): gets a lease, keeps it, and says when it has ended. The first OFFER is
// taken. What is not sent again by itself is sent again after 4, 8, 16, 32 and then each 64 s, each time up to 1 s more or less (4.1).
// A lease is renewed with its server from T1 on, with any server from T2 on; requests are repeated after half of the time that is left, 60 s
// at least (4.4.5). Without T1 < T2 < lease from the server they are 1/2 and 7/8 of the lease. It is given up a second before its end, so
// that connections can be closed, and begins with the sending of the request that was acknowledged.
//
// `lease` is valid from the ACK to the end. Whoever uses it holds `in_use` while he does, and `conflict`, until `lease` has gone, if
// somebody else has the address: then it is declined. The lease is released after `give_up`, or when `run` falls, as soon as it is no
// longer in use.
//
// `admitted` answers `offered_valid` in the next cycle: only answers with the transaction id of a request that waits for one are taken, and
// the next one when this one has been read, or ADMIT_PAUSE cycles later if it was dropped on its way. So nothing that others send takes room,
// or time, of other services.
//
// Acts within a few cycles of a tick or an answer; one message at a time.
module dhcp_client
  import packet_pkg::*;
  import services_pkg::*;
  import address_pkg::*;
  import dhcp_pkg::*;
#(
    parameter int unsigned ADMIT_PAUSE = 4096    // longer than a message is worked on
) (
    input  logic            clk,
    input  logic            rst,
    input  logic            tick,                // 1/16 s has passed
    input  logic            second,              // with every 16th tick
    input  logic [31:0]     random,
    input  mac_t            mac,
    input  logic            run,
    input  logic            renew,               // pulses
    input  logic            give_up,

    input  logic            offered_valid,       // a message that arrives, with its first 8 bytes
    input  logic [63:0]     offered_first,
    output logic            expects,             // answers are expected now
    output logic            admitted,
    stream_if.sink          message,             // service_rx_t
    stream_if.sink          words,               // service_word_t
    stream_if.source        response,            // service_tx_t
    stream_if.source        response_words,      // service_word_t

    output lease_t          lease,
    input  logic            in_use,
    input  logic            conflict,
    output logic            failing,             // no server answers
    output dhcp_state_e     state,
    output seconds_t        lease_left,
    output ipv4_addr_t      server,
    output logic            got_nak,             // pulses
    output logic            got_lease,           // or its renewal
    output logic            lost_lease,          // it has ended without a release
    output logic            drop_malformed,
    output logic            drop_unexpected,     // not expected, too many, or of no use in this state
    output logic            idle
);
  localparam seconds_t    RENEW_PAUSE = 24'd60;
  localparam logic [2:0]  GIVES_UP = 3'd3;       // this many messages without an answer: 4 + 8 + 16 s
  localparam logic [2:0]  LONGEST = 3'd4;        // 64 s
  localparam logic [7:0]  STALE = '1;            // seconds after which an answer is not expected any longer
  localparam seconds_t    DECLINE_PAUSE = 24'(10 * TICKS);   // RFC 2131, 3.1 (5)
  localparam seconds_t    NAK_PAUSE = 24'(TICKS);

  // ---- answers ----
  logic         received_malformed, receive_idle;
  dhcp_answer_t got;
  logic [31:0]  xid_q;
  stream_if #(.T(dhcp_answer_t)) answer ();
  dhcp_receive receive (
      .clk, .rst, .mac, .xid(xid_q), .message, .words, .answer, .malformed(received_malformed), .idle(receive_idle)
  );
  assign got = answer.data;

  dhcp_state_e state_q;
  seconds_t    wait_q;           // until the next message: ticks; seconds when there is a lease
  seconds_t    left_q;           // of the lease
  seconds_t    t1_at_q, t2_at_q; // what is left at T1, T2
  logic [7:0]  since_q;          // seconds since the request was sent
  logic [7:0]  secs_q;           // since the client began to ask
  logic [2:0]  attempt_q;
  address_t    address_q;
  ipv4_addr_t  server_q;
  mac_t        server_mac_q;
  logic        valid_q, failing_q, released_q, owed_q;
  dhcp_type_e  kind_q;
  logic        send_q;

  wire has_lease = state_q inside {DHCP_CHECKING, DHCP_BOUND, DHCP_RENEWING, DHCP_REBINDING};
  wire prolongs = state_q inside {DHCP_RENEWING, DHCP_REBINDING};

  // ---- admission ----
  typedef logic [$clog2(ADMIT_PAUSE)-1:0] pause_t;
  logic   meant_q;
  pause_t pause_q;
  assign expects = (state_q inside {DHCP_SELECTING, DHCP_REQUESTING} || prolongs) && since_q != STALE;
  always_ff @(posedge clk) meant_q <= !rst && offered_valid && expects && offered_first == {OP_REPLY, HARDWARE, offered_first[39:32], xid_q};
  assign admitted = meant_q && pause_q == '0;
  always_ff @(posedge clk) begin
    if (rst || received_malformed || (answer.valid && answer.ready)) pause_q <= '0;
    else if (admitted) pause_q <= pause_t'(ADMIT_PAUSE - 1);
    else if (pause_q != '0) pause_q <= pause_q - 1'b1;
  end
  logic offered_q;
  always_ff @(posedge clk) offered_q <= !rst && offered_valid;

  // ---- messages ----
  stream_if #(.T(dhcp_request_t)) request ();
  wire declines = kind_q == DHCPDECLINE;
  wire releases = kind_q == DHCPRELEASE;
  wire requests = state_q == DHCP_REQUESTING || declines;
  assign request.valid = send_q;
  assign request.data  = '{
      kind: kind_q,
      xid: xid_q,
      secs: secs_q,
      ip: address_q.ip,
      owns: prolongs || releases,
      requests: requests,
      server: server_q,
      server_mac: server_mac_q,
      names_server: requests || releases,
      unicast: state_q == DHCP_RENEWING || releases
  };
  dhcp_send send (.clk, .rst, .mac, .request, .response, .response_words);

  // ---- times ----
  seconds_t    target, rest_q;   // of the lease, until the next state
  logic        due_q;
  logic [2:0]  settled_q;        // rest_q and due_q belong to this state
  always_comb
    unique case (state_q)
      DHCP_BOUND:    target = t1_at_q;
      DHCP_RENEWING: target = t2_at_q;
      default:       target = 24'd1;
    endcase
  always_ff @(posedge clk) begin
    rest_q <= left_q - target;
    due_q  <= left_q <= target && left_q != FOR_EVER;
  end
  wire due = due_q && settled_q[2] && has_lease;
  wire wait_over = wait_q == '0;

  function automatic seconds_t back_off(logic [2:0] attempt, logic [4:0] luck);
    return (seconds_t'(4 * TICKS) << attempt) - seconds_t'(TICKS) + seconds_t'(luck);
  endfunction

  // ---- a lease, step by step: T1 and T2 as times that are left ----
  typedef enum logic [1:0] {
    TAKE_LOOK,
    TAKE_T2,
    TAKE_T1,
    TAKE_DONE
  } take_e;
  take_e       take_q;
  seconds_t    difference_q;
  logic        below_q, t2_ok_q;
  logic        shown_q, same_server_q, same_ip_q, is_offer_q, is_ack_q, is_nak_q;   // the answer is there for a second cycle: these belong to it
  always_ff @(posedge clk) begin
    shown_q       <= !rst && answer.valid && !answer.ready;
    same_server_q <= got.server == server_q;
    same_ip_q     <= got.yiaddr == address_q.ip;
    is_offer_q    <= got.kind == DHCPOFFER;
    is_ack_q      <= got.kind == DHCPACK;
    is_nak_q      <= got.kind == DHCPNAK;
  end
  wire fits_request = is_ack_q && (state_q == DHCP_REQUESTING ? same_server_q : prolongs && same_ip_q);
  wire looks = answer.valid && shown_q && take_q == TAKE_LOOK && !send_q;
  wire nak = looks && is_nak_q && (state_q == DHCP_REQUESTING || prolongs);
  wire offer = looks && is_offer_q && state_q == DHCP_SELECTING;
  wire ack = looks && fits_request;
  assign answer.ready = (looks && !ack) || take_q == TAKE_DONE;

  always_ff @(posedge clk) begin
    seconds_t subtracted;
    subtracted   = take_q == TAKE_LOOK ? got.t2 : got.t1;
    difference_q <= got.lease - subtracted;
    below_q      <= subtracted != '0 && subtracted < got.lease;
    unique case (take_q)
      TAKE_LOOK: if (ack) take_q <= TAKE_T2;
      TAKE_T2: begin
        t2_at_q <= difference_q;
        t2_ok_q <= below_q;
        take_q  <= TAKE_T1;
      end
      TAKE_T1: begin
        t1_at_q <= difference_q;
        take_q  <= TAKE_DONE;
        if (!below_q || !t2_ok_q || difference_q <= t2_at_q) begin
          t1_at_q <= got.lease >> 1;
          t2_at_q <= got.lease >> 3;
        end
      end
      default: take_q <= TAKE_LOOK;
    endcase
    if (rst) take_q <= TAKE_LOOK;
  end

  // ---- the states ----
  wire ends = !run || released_q;
  always_ff @(posedge clk) begin
    settled_q  <= {settled_q[1:0], 1'b1};
    got_nak    <= 1'b0;
    got_lease  <= 1'b0;
    lost_lease <= 1'b0;
    if (request.ready) send_q <= 1'b0;

    if (tick) begin
      if (!wait_over && (second || !prolongs)) wait_q <= wait_q - 1'b1;
      if (second) begin
        if (since_q != STALE) since_q <= since_q + 1'b1;
        if (secs_q != '1 && state_q != DHCP_REQUESTING) secs_q <= secs_q + 1'b1;
        if (has_lease && left_q != FOR_EVER && left_q != '0) left_q <= left_q - 1'b1;
      end
    end

    // A message that is being sent is made from the state: it stays until the message has left.
    if (!send_q && take_q == TAKE_LOOK) begin
      unique case (state_q)
        DHCP_OFF: begin
          failing_q <= 1'b0;
          if (owed_q && !in_use) begin
            owed_q <= 1'b0;
            send_q <= 1'b1;
            kind_q <= DHCPRELEASE;
          end else if (!owed_q && run && !released_q) begin
            state_q <= DHCP_INIT;
            wait_q  <= seconds_t'(random[3:0]);
          end
        end

        DHCP_INIT: begin
          attempt_q <= '0;
          if (wait_over) begin
            state_q <= DHCP_SELECTING;
            xid_q   <= random;
            secs_q  <= '0;
            since_q <= '0;
            send_q  <= 1'b1;
            kind_q  <= DHCPDISCOVER;
            wait_q  <= back_off('0, random[4:0]);
          end
        end

        DHCP_SELECTING, DHCP_REQUESTING: begin
          if (offer) begin
            state_q      <= DHCP_REQUESTING;
            address_q.ip <= got.yiaddr;
            server_q     <= got.server;
            attempt_q    <= '0;
            since_q      <= '0;
            send_q       <= 1'b1;
            kind_q       <= DHCPREQUEST;
            wait_q       <= back_off('0, random[4:0]);
          end else if (wait_over) begin
            send_q <= 1'b1;
            wait_q <= back_off(attempt_q == LONGEST ? LONGEST : attempt_q + 1'b1, random[4:0]);
            if (attempt_q != LONGEST) attempt_q <= attempt_q + 1'b1;
            if (attempt_q == GIVES_UP - 1'b1) failing_q <= 1'b1;
            if (state_q == DHCP_SELECTING) since_q <= '0;
            else if (attempt_q == GIVES_UP) begin      // the server does not answer: look for others
              send_q  <= 1'b0;
              state_q <= DHCP_INIT;
              wait_q  <= '0;
            end
          end
        end

        DHCP_CHECKING: if (in_use) begin
          state_q   <= DHCP_BOUND;
          failing_q <= 1'b0;
          settled_q <= '0;
        end

        DHCP_BOUND: if (due || renew) begin
          state_q   <= DHCP_RENEWING;
          settled_q <= '0;
          secs_q    <= '0;
          since_q   <= STALE;
          wait_q    <= '0;
        end

        default: begin                                 // DHCP_RENEWING, DHCP_REBINDING
          if (due && state_q == DHCP_RENEWING) begin
            state_q   <= DHCP_REBINDING;
            settled_q <= '0;
            wait_q    <= '0;
          end else if (wait_over && settled_q[2]) begin
            xid_q   <= random;
            since_q <= '0;
            send_q  <= 1'b1;
            kind_q  <= DHCPREQUEST;
            wait_q  <= rest_q[23:1] < 23'(RENEW_PAUSE) ? RENEW_PAUSE : seconds_t'(rest_q[23:1]);
          end
        end
      endcase

      // How a lease, or the wish for one, ends.
      if (nak || (has_lease && conflict) || (due && state_q inside {DHCP_CHECKING, DHCP_REBINDING})) begin
        state_q    <= DHCP_INIT;
        settled_q  <= '0;
        valid_q    <= 1'b0;
        lost_lease <= has_lease;
        got_nak    <= nak;
        wait_q     <= seconds_t'(random[3:0]) + (conflict ? DECLINE_PAUSE : NAK_PAUSE);
        send_q     <= 1'b0;
        if (has_lease && conflict) begin
          send_q <= 1'b1;
          kind_q <= DHCPDECLINE;
        end
      end
      if (ends && state_q != DHCP_OFF) begin
        state_q <= DHCP_OFF;
        valid_q <= 1'b0;
        send_q  <= 1'b0;
        owed_q  <= has_lease;
      end
    end

    if (take_q == TAKE_DONE) begin
      left_q    <= got.lease == FOR_EVER ? FOR_EVER : got.lease - seconds_t'(since_q);
      address_q <= '{ip: got.yiaddr, prefix_length: got.prefix_length, gateway: got.router};
      server_q  <= got.server;
      server_mac_q <= got.mac;
      valid_q   <= 1'b1;
      got_lease <= 1'b1;
      settled_q <= '0;
      since_q   <= STALE;
      state_q   <= prolongs ? DHCP_BOUND : DHCP_CHECKING;
    end

    if (give_up) released_q <= 1'b1;
    else if (renew || !run) released_q <= 1'b0;

    if (!has_lease && take_q != TAKE_DONE) left_q <= '0;
    if (rst) begin
      state_q    <= DHCP_OFF;
      send_q     <= 1'b0;
      valid_q    <= 1'b0;
      failing_q  <= 1'b0;
      released_q <= 1'b0;
      owed_q     <= 1'b0;
    end
  end

  always_ff @(posedge clk) begin
    drop_malformed  <= !rst && received_malformed;
    drop_unexpected <= !rst && ((offered_q && !admitted) || (looks && !nak && !offer && !ack));
  end

  assign lease      = '{valid: valid_q, address: address_q};
  assign failing    = failing_q;
  assign state      = state_q;
  assign lease_left = left_q;
  assign server     = server_q;
  assign idle       = receive_idle && !send_q && settled_q[2] && !due && take_q == TAKE_LOOK
      && !(state_q == DHCP_OFF && (owed_q ? !in_use : run && !released_q)) && !(state_q == DHCP_CHECKING && in_use)
      && !(wait_over && state_q inside {DHCP_INIT, DHCP_SELECTING, DHCP_REQUESTING, DHCP_RENEWING, DHCP_REBINDING});
endmodule
