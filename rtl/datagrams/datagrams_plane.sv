// SPDX-License-Identifier: Apache-2.0

// UDP for kernels: a port of UDP for each socket of BUILT, and one user of the packet plane's transmit side for all of them.
//
//   packet plane ── record, payload ─┬ datagram_port ── rx, tx ── kernel
//                └─ datagram_send ───┴ datagram_port ── rx, tx ── kernel
//
// Datagrams come by a route of their own, to the port of a socket that is enabled, and are taken whole or dropped: neither the packet plane nor
// another socket waits for a kernel. What a kernel sends is stored before it is offered to the packet plane, for the same reason.
//
// `frame` never stops; payload waits for the verdict on its record, which is there 3 cycles behind it. For the rest see the units.
module datagrams_plane
  import packet_pkg::*;
  import frame_pkg::*;
  import datagrams_pkg::*;
#(
    parameter int unsigned          DATA_W = 512,
    parameter int unsigned          CLOCK_HZ = 250_000_000,
    parameter int unsigned          SOCKETS = 1,
    parameter logic [SOCKETS-1:0]   BUILT = '1             // those that have a port
) (
    input  logic                    clk,
    input  logic                    rst,
    input  logic [32:0]             elapsed,               // cycles of device time since the cycle before
    input  local_addr_t             local_addr,
    input  datagram_settings_t [SOCKETS-1:0] settings,
    input  logic [SOCKETS-1:0]      off,                   // the kernel is decoupled
    output logic [SOCKETS-1:0][15:0] ports,                // of UDP; 0: none
    stream_if.sink                  frame,                 // frame_rx_t of CLASS_UDP to one of these, from one host
    axis_if.sink                    payload,
    axis_if.source                  to_kernel[SOCKETS],
    axis_if.sink                    from_kernel[SOCKETS],
    stream_if.source                tx,                    // frame_tx_t
    axis_if.source                  tx_payload,
    stream_if.source                query,                 // ip_addr_t
    stream_if.sink                  answer,                // arp_answer_t
    input  logic [SOCKETS-1:0][$clog2(COUNTS)-1:0] counter_at,
    output logic [SOCKETS-1:0][31:0] counter,              // same cycle
    output logic                    idle
);
  localparam int unsigned QUEUE = 16;                      // more than frames whose payload can still be on its way (packet_plane)
  typedef logic [SOCKETS-1:0] sockets_t;

  for (genvar i = 0; i < SOCKETS; i++) begin : g_ports
    assign ports[i] = BUILT[i] && settings[i].enable ? settings[i].port : '0;
  end

  // ---- the record, a cycle later ----
  frame_rx_t   head;
  udp_hdr_t    udp;
  sockets_t    to_q, keep;
  sender_t     from_q;
  logic        seen_q, fits_q, empty_q;
  assign head = frame.data;
  assign udp  = head.headers.l4.udp.udp;
  assign frame.ready = 1'b1;

  always_ff @(posedge clk) begin
    seen_q <= !rst && frame.valid;
    for (int unsigned i = 0; i < SOCKETS; i++) to_q[i] <= !rst && frame.valid && ports[i] != '0 && udp.dst_port == ports[i];
    from_q <= '{
        ip: ipv4_of(head.headers.l3.src),
        port: udp.src_port,
        mac: head.headers.l2.src,
        length: datagram_length_t'(head.payload_length)
    };
    fits_q  <= head.payload_length <= 16'(DATAGRAM_BYTES);
    empty_q <= head.payload_length == '0;
  end

  // ---- the payload goes to the socket that has taken its record ----
  stream_if #(.T(sockets_t)) verdict ();
  stream_if #(.T(sockets_t)) current ();
  logic verdicts_empty;
  assign verdict.valid = seen_q && !empty_q;
  assign verdict.data  = keep;
  stream_fifo #(.T(sockets_t), .DEPTH(QUEUE)) verdicts (.clk, .rst, .in(verdict), .out(current), .empty(verdicts_empty));
  always_ff @(posedge clk) if (!rst && verdict.valid) assert (verdict.ready);
  assign payload.tready = current.valid;
  assign current.ready  = payload.tvalid && payload.tlast;

  // ---- the sockets ----
  sockets_t offer, taken, unresolved, fetch, sent, port_idle;
  logic     send_idle;
  datagram_tx_t [SOCKETS-1:0] request;
  logic [SOCKETS-1:0][DATA_W-1:0] beat;

  for (genvar i = 0; i < SOCKETS; i++) begin : g_socket
    // Two sockets with one port: the first has it.
    wire mine = to_q[i] && (to_q & sockets_t'((1 << i) - 1)) == '0;
    if (BUILT[i]) begin : g_port
      datagram_port #(.DATA_W(DATA_W), .RETRY_CYCLES(CLOCK_HZ / 500)) port (
          .clk, .rst, .elapsed, .off(off[i]), .own_ip(local_addr.ip), .settings(settings[i]),
          .offered(mine), .fits(fits_q), .from(from_q), .keep(keep[i]),
          .beat_valid(payload.tvalid && current.valid && current.data[i]), .beat_data(payload.tdata),
          .to_kernel(to_kernel[i]), .from_kernel(from_kernel[i]), .offer(offer[i]), .request(request[i]), .taken(taken[i]),
          .unresolved(unresolved[i]), .fetch(fetch[i]), .beat(beat[i]), .sent(sent[i]),
          .counter_at(counter_at[i]), .counter(counter[i]), .idle(port_idle[i])
      );
    end else begin : g_port
      assign keep[i]               = 1'b0;
      assign to_kernel[i].tvalid   = 1'b0;
      assign to_kernel[i].tdata    = '0;
      assign to_kernel[i].tkeep    = '0;
      assign to_kernel[i].tlast    = 1'b0;
      assign to_kernel[i].tuser    = 1'b0;
      assign from_kernel[i].tready = 1'b0;
      assign offer[i]              = 1'b0;
      assign request[i]            = '0;
      assign beat[i]               = '0;
      assign counter[i]            = '0;
      assign port_idle[i]          = 1'b1;
      logic unused_ok;
      assign unused_ok = &{1'b0, mine, settings[i], off[i], taken[i], unresolved[i], fetch[i], sent[i], counter_at[i], to_kernel[i].tready,
                           from_kernel[i].tvalid, from_kernel[i].tdata, from_kernel[i].tkeep, from_kernel[i].tlast, from_kernel[i].tuser};
    end
  end

  datagram_send #(.DATA_W(DATA_W), .N(SOCKETS)) send (
      .clk, .rst, .own_mac(local_addr.mac), .own_ip(local_addr.ip), .offer, .request, .taken, .unresolved, .fetch, .beat, .sent,
      .query, .answer, .tx, .tx_payload, .idle(send_idle)
  );

  assign idle = !seen_q && verdicts_empty && (&port_idle) && send_idle;

  logic unused_ok;
  assign unused_ok = &{1'b0, payload.tkeep, payload.tuser, head};
endmodule
