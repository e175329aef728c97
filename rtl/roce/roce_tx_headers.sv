// SPDX-License-Identifier: Apache-2.0

// Builds the headers of a frame over IPv4 or IPv6: reads the addresses of the QP's peer, fills in the headers, and computes the IPv4 checksum.
//
// `job` to `frame`: 3 cycles, one frame a cycle; when `frame` stalls, `job` stalls. `went` is valid 2 cycles after `job` was taken. An
// acknowledgement of a QP that is not set up is dropped.
module roce_tx_headers
  import packet_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;
  import roce_counters_pkg::*;
  import roce_tx_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input  logic        clk,
    input  logic        rst,
    input  local_addr_t local_addr,
    input  logic [5:0]  cnp_dscp,
    input  logic        ect,                  // ECN field of all packets except acknowledgements and CNPs: ECT(0), else not ECT

    input  logic        peer_write,
    input  qp_index_t   peer_write_index,
    input  sq_peer_t    peer_write_data,

    stream_if.sink      job,                  // tx_job_t
    stream_if.source    frame,                // frame_tx_t
    output logic [TX_FROM-1:0] under_way,     // frames inside, by tx_from_e
    output qp_sent_t    went                  // counts of the QP of a frame
);
  localparam int unsigned INDEX_W = $clog2(QPS);

  logic summed_valid_q;
  wire  step = !summed_valid_q || frame.ready;  // the pipeline advances
  assign job.ready = step;

  // ---- addresses ----
  (* ram_style = "block" *) logic [$bits(sq_peer_t)-1:0] peers[QPS];
  logic [$bits(sq_peer_t)-1:0] peer_bits_q;
  sq_peer_t peer_q;
  tx_job_t  job_q;
  logic     job_valid_q;
  assign peer_q = sq_peer_t'(peer_bits_q);

  always_ff @(posedge clk) begin
    if (peer_write) peers[peer_write_index[INDEX_W-1:0]] <= peer_write_data;
    if (step) begin
      job_q       <= job.data;
      peer_bits_q <= peers[job.data.index[INDEX_W-1:0]];
    end
  end

  // ---- headers, except the IPv4 checksum ----
  typedef struct packed {
    tx_from_e    from;
    logic [6:0]  hdr_length;
    logic [15:0] payload_length;
    logic [1:0]  pad;
  } shape_t;

  typedef struct packed {
    shape_t      shape;
    roce_frame_t says;
  } laid_t;

  typedef struct packed {
    shape_t      shape;
    logic        v6;
    hdr_window_t hdr;
  } summed_t;

  // Spreads the flows of a device over the paths of a network (IBTA annex A17.4.5): one port per QP, selected as in Linux.
  function automatic logic [15:0] source_port(qp_index_t index);
    qpn_t qpn;
    qpn = qp_number(index);
    return 16'hc000 | 16'(qpn[13:0] ^ 14'(qpn[23:14]));
  endfunction

  function automatic laid_t headers(tx_job_t job_, sq_peer_t peer, local_addr_t local_, logic [5:0] cnp_dscp_, logic ect_, logic [15:0] identification);
    laid_t       r;
    logic        v6;
    logic [5:0]  ext_bytes;
    logic [10:0] words;      // of payload
    logic [15:0] udp_length;
    v6               = peer.own != OWN_IPV4;
    words            = job_.length[12:2] + 11'(|job_.length[1:0]);
    ext_bytes        = ext_headers(job_.opcode).bytes;
    udp_length       = 16'(UDP_HDR_BYTES + BTH_BYTES + ICRC_BYTES) + 16'(ext_bytes) + {3'b0, words, 2'b00};
    r.shape = '{
        from: job_.from,
        hdr_length: roce_hdr_bytes(v6) + 7'(ext_bytes),
        payload_length: 16'(job_.length),
        pad: 2'(-job_.length[1:0])
    };
    r.says = '{
        dst_mac: peer.mac,
        src_mac: local_.mac,
        v6: v6,
        dst: peer.ip,
        src: own_address(local_, peer.own),
        dscp: job_.becn ? cnp_dscp_ : peer.dscp,
        ecn: {ect_ && job_.from != FROM_ACKS, 1'b0},
        identification: identification,
        src_port: source_port(job_.index),
        udp_length: udp_length,
        bth: '{
            opcode: job_.opcode,
            se: job_.se,
            migreq: !job_.becn,   // 0 in a CNP (IBTA annex A17.9.3)
            padcnt: r.shape.pad,
            pkey: PKEY_DEFAULT,
            becn: job_.becn,
            destqp: peer.qpn,
            ackreq: job_.ackreq,
            psn: job_.psn,
            default: '0
        },
        ext: job_.ext
    };
    return r;
  endfunction

  laid_t       laid_q;
  summed_t     summed_q;
  logic [15:0] sum_q, identification_q;
  logic        laid_valid_q;
  wire         keep = job_valid_q && (peer_q.valid || job_q.from != FROM_ACKS);

  roce_hdr_t   hdr;
  hdr_window_t window;
  always_comb begin
    hdr    = summed_q.hdr[$bits(hdr_window_t)-1-:$bits(roce_hdr_t)];
    window = summed_q.hdr;
    hdr.ipv4.header_checksum = ~sum_q;
    if (!summed_q.v6) window[$bits(hdr_window_t)-1-:$bits(roce_hdr_t)] = hdr;
  end
  ipv4_hdr_t ipv4;
  assign ipv4 = roce_ipv4(laid_q.says);
  assign frame.valid = summed_valid_q;
  assign frame.data  = frame_tx_t'{
          hdr_length: summed_q.shape.hdr_length,
          payload_length: summed_q.shape.payload_length,
          pad: summed_q.shape.pad,
          icrc: 1'b1,
          hdr: window
      };

  always_ff @(posedge clk) begin
    if (step) begin
      laid_q   <= headers(job_q, peer_q, local_addr, cnp_dscp, ect, identification_q);
      summed_q <= '{shape: laid_q.shape, v6: laid_q.says.v6, hdr: roce_window(laid_q.says, ipv4)};
      sum_q    <= ipv4_header_sum(ipv4);
    end
    if (rst) begin
      job_valid_q      <= 1'b0;
      laid_valid_q     <= 1'b0;
      summed_valid_q   <= 1'b0;
      identification_q <= '0;
    end else if (step) begin
      job_valid_q      <= job.valid;
      laid_valid_q     <= keep;
      summed_valid_q   <= laid_valid_q;
      identification_q <= identification_q + 16'(keep);
    end
  end

  // ---- occupancy ----
  always_comb begin
    for (int unsigned i = 0; i < TX_FROM; i++)
      under_way[i] = (job_valid_q && job_q.from == tx_from_e'(i)) || (laid_valid_q && laid_q.shape.from == tx_from_e'(i))
          || (summed_valid_q && summed_q.shape.from == tx_from_e'(i));
  end

  // ---- counts of the QP ----
  aeth_t aeth;
  assign aeth = job_q.ext[EXT_BYTES*8-1-:AETH_BYTES*8];
  wire answers = job_q.from == FROM_ACKS && !job_q.becn;
  always_ff @(posedge clk) begin
    went <= '0;
    if (!rst && keep && step) begin
      went <= '{
          index: job_q.index,
          pkts: job_q.from == FROM_REQUESTS,
          responses: job_q.from == FROM_RESPONSES || answers,
          bytes: qp_bytes_t'(job_q.length),
          packet_retransmit: job_q.from == FROM_REQUESTS && job_q.again,
          sent_nak: answers && aeth.syndrome[6:5] == SYNDROME_NAK_PSN_SEQ[6:5],
          send_rnr_err: answers && aeth.syndrome[6:5] == SYNDROME_RNR_NAK[6:5],
          np_cnp_sent: job_q.becn
      };
    end
  end
endmodule
