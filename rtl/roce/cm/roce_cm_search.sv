// SPDX-License-Identifier: Apache-2.0

// Searches all connections for a message or a `connect`: the one created by the same REQ, the one that becomes stale, a free one, and the
// number of connections of the peer. Every connection is presented once, one a cycle; the results are valid 2 cycles after the last.
//
// Indices are allocated in turn, so that a QP number is reused as late as possible: the search starts after the index that was allocated
// last.
// last.
module roce_cm_search
  import packet_pkg::*;
  import roce_pkg::*;
  import roce_cm_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input  logic       clk,
    input  logic       begins,            // clear the results
    input  cm_limits_t limits,
    input  cm_msg_t    msg,
    input  logic       seen_valid,
    input  logic [$clog2(QPS)-1:0] seen,
    input  cm_conn_t   found,             // the connection with this index
    input  logic       by_software,       // its number belongs to a QP created by software
    output logic       duplicate,
    output logic [$clog2(QPS)-1:0] duplicate_idx,
    output logic       stale,
    output logic [$clog2(QPS)-1:0] stale_idx,
    output logic       free,
    output logic [$clog2(QPS)-1:0] free_idx,
    output logic       per_peer,          // limits reached
    output logic       half_open,
    output logic       half_open_per_peer
);
  wire same_ip = found.ip == msg.ip;
  wire same_peer = cm_has_peer(found.state) && same_ip;
  wire same_id = found.ids.remote_comm_id == msg.ids.local_comm_id && !found.active;
  wire same_qpn = found.remote_qpn == msg.qpn;

  // Connections opened by peers: with this address, half open, both.
  typedef logic [$clog2(QPS):0] count_t;
  count_t with_peer_q, half_open_q, half_open_with_peer_q;

  function automatic logic reached(count_t count, logic [15:0] limit);
    return limit != '0 && 16'(count) >= limit;
  endfunction

  always_ff @(posedge clk) begin
    if (begins) begin
      with_peer_q           <= '0;
      half_open_q           <= '0;
      half_open_with_peer_q <= '0;
    end else if (seen_valid && !found.active) begin
      if (cm_occupied(found) && same_ip)        with_peer_q           <= with_peer_q + 1'b1;
      if (cm_half_open(found.state))            half_open_q           <= half_open_q + 1'b1;
      if (cm_half_open(found.state) && same_ip) half_open_with_peer_q <= half_open_with_peer_q + 1'b1;
    end
    per_peer           <= reached(with_peer_q, limits.per_peer);
    half_open          <= reached(half_open_q, limits.half_open);
    half_open_per_peer <= reached(half_open_with_peer_q, limits.half_open_per_peer);
  end

  always_ff @(posedge clk) begin
    if (begins) begin
      duplicate <= 1'b0;
      stale     <= 1'b0;
      free      <= 1'b0;
    end else if (seen_valid) begin
      if (same_peer && same_id) begin
        duplicate     <= 1'b1;
        duplicate_idx <= seen;
      end
      // The peer's QP has one connection only: this one is stale (IBTA 12.9.8.3.1).
      if (same_peer && same_qpn && !same_id && found.state != CM_DREQ_SENT) begin
        stale     <= 1'b1;
        stale_idx <= seen;
      end
      if (!cm_occupied(found) && !by_software && !free) begin
        free     <= 1'b1;
        free_idx <= seen;
      end
    end
  end
endmodule
