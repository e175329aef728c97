// SPDX-License-Identifier: Apache-2.0

// The segments of a frame, one after another: the fields of each one's headers, and how it is cut out of the beats of the frame.
// `start`: a frame with these headers, and `payload` bytes behind them, of which each segment has `gso_size`, the last one the rest.
// The first segment is there 6 cycles after `start`, the next one 6 cycles after the one before was taken.
module virtio_net_tcp_fields
  import virtio_pkg::*;
#(
    parameter int unsigned BYTES = 64               // of a beat
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         start,
    input  tcp_headers_t headers,                   // constant from `start` on, its sums too, as are payload and gso_size
    input  logic [16:0]  payload,
    input  logic [15:0]  gso_size,
    stream_if.source     segment                    // tcp_segment_t
);
  localparam int unsigned LANE_W = $clog2(BYTES);
  localparam int unsigned STEPS = 5;
  localparam int unsigned TCP_FIN = 0, TCP_PSH = 3, TCP_CWR = 7;
  typedef logic [LANE_W-1:0] lane_t;

  // ---- from segment to segment ----
  logic [16:0] left_q;                              // bytes of payload from this segment on
  lane_t       first_q;                             // lane of the first of them
  logic [15:0] id_q;
  logic [31:0] seq_q;
  logic        opens_q;                             // it is the first segment
  logic [STEPS-1:0] step_q;                         // what is computed in this cycle

  // ---- this one ----
  logic        last_q;
  logic [15:0] length_q;                            // of its payload
  logic [15:0] net_q, net_rest_q;                   // length of the packet; of its headers that count for it
  logic [7:0]  tcp_bytes_q;
  logic [16:0] extra_once_q, ip_csum_once_q;
  logic [17:0] ip_csum_q;
  logic [15:0] extra_q, csum_q;
  logic [16:0] out_end_q, in_end_q;                 // byte behind its last one, from the beat on in which the headers end, resp. the first payload
  logic [13:0] out_beats_q, visits_q;
  logic        skip_q, rest_q;
  wire lane_t headers_lane = headers.bytes[LANE_W-1:0];
  // With its carries added, it may carry once more, and then 0 is left.
  wire [16:0] ip_csum = 17'(ip_csum_q[15:0]) + 17'(ip_csum_q[17:16]);
  wire taken = segment.valid && segment.ready;

  always_ff @(posedge clk) begin
    net_rest_q  <= 16'(headers.bytes) - 16'(headers.l2_bytes) - (headers.v6 ? 16'd40 : '0);
    tcp_bytes_q <= headers.bytes - 8'(headers.tcp_at);

    if (step_q[0]) last_q <= left_q <= 17'(gso_size);
    if (step_q[1]) length_q <= last_q ? left_q[15:0] : gso_size;
    if (step_q[2]) begin
      net_q        <= net_rest_q + length_q;
      extra_once_q <= 17'(headers.pseudo_sum) + 17'(16'(tcp_bytes_q) + length_q);
      out_end_q    <= 17'(headers_lane) + 17'(length_q);
      in_end_q     <= 17'(first_q) + 17'(length_q);
      ip_csum_once_q <= 17'(headers.ip_sum) + 17'(id_q);
    end
    if (step_q[3]) begin
      extra_q     <= extra_once_q[15:0] + 16'(extra_once_q[16]);
      ip_csum_q   <= 18'(ip_csum_once_q) + 18'(net_q);
      out_beats_q <= 14'((out_end_q + 17'(BYTES - 1)) >> LANE_W);
      visits_q    <= 14'((in_end_q + 17'(BYTES - 1)) >> LANE_W);
      skip_q      <= first_q > headers_lane && in_end_q > 17'(BYTES);
    end
    if (step_q[4]) begin
      csum_q <= ~{ip_csum[15:1], ip_csum[0] || ip_csum[16]};
      rest_q <= out_beats_q + 14'(skip_q) != visits_q;
    end
    if (taken) begin
      left_q  <= left_q - 17'(length_q);
      first_q <= in_end_q[LANE_W-1:0];
      id_q    <= id_q + 1'b1;
      seq_q   <= seq_q + 32'(gso_size);
      opens_q <= 1'b0;
    end
    if (start) begin
      left_q  <= payload;
      first_q <= headers_lane;
      id_q    <= headers.id;
      seq_q   <= headers.seq;
      opens_q <= 1'b1;
    end
    if (rst) begin
      step_q        <= '0;
      segment.valid <= 1'b0;
    end else begin
      step_q        <= {step_q[STEPS-2:0], start || (taken && !last_q)};
      segment.valid <= !start && !taken && (segment.valid || step_q[STEPS-1]);
    end
  end

  // FIN and PSH are for the last segment, CWR is for the first (RFC 3168, 6.1.2).
  logic [15:0] flags;
  always_comb begin
    flags = headers.flags;
    if (!last_q) begin
      flags[TCP_FIN] = 1'b0;
      flags[TCP_PSH] = 1'b0;
    end
    if (!opens_q) flags[TCP_CWR] = 1'b0;
  end
  assign segment.data = '{
      patch: '{length: net_q, id: id_q, ip_csum: csum_q, seq: seq_q, flags: flags},
      csum_extra: extra_q,
      visits: visits_q,
      first: 6'(first_q),
      last_lane: 6'(lane_t'(out_end_q[LANE_W-1:0] - 1'b1)),
      skip: skip_q,
      rest: rest_q,
      consumes: last_q || in_end_q[LANE_W-1:0] == '0,
      last: last_q
  };
endmodule
