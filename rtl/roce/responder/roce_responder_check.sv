// SPDX-License-Identifier: Apache-2.0

// Checks a packet against the attributes of its QP, which are constant between packets: all checks that need no receive state. One packet a
// cycle; `form` is valid 2 cycles after `packet` and `attr`.
module roce_responder_check
  import roce_wire_pkg::*;
  import roce_rx_pkg::*;
(
    input  logic        clk,
    input  rc_packet_t  packet,
    input  qp_rx_attr_t attr,
    output form_t       form
);
  wire is_write = packet.kind == RC_WRITE;
  wire is_read  = packet.kind == RC_READ;
  wire is_atomic = packet.kind == RC_ATOMIC;

  // The last packet of a WRITE with immediate, segmented for selective repeat: its payload is the end of the range.
  wire tail = attr.selective_repeat && is_write && packet.first && packet.with_imm;

  // ---- cycle 0 ----
  logic [15:0] mtu;
  logic        full, part, empty;       // payload: exactly one path MTU, at most one, none
  form_t       first_d, first_q;
  psn_t        psn_q, responses_q;

  assign mtu   = 16'(mtu_bytes(attr.path_mtu));
  assign full  = packet.payload_length == mtu;
  assign part  = packet.payload_length <= mtu;
  assign empty = packet.payload_length == '0;

  // Packets of the response to a READ: dmalen in path MTUs, rounded up.
  logic [31:0] rounded;
  psn_t        responses;
  assign rounded = packet.reth.dmalen + 32'(mtu - 1'b1);
  always_comb begin
    unique case (attr.path_mtu)
      3'd1:    responses = rounded[31:8];
      3'd2:    responses = {1'b0, rounded[31:9]};
      3'd3:    responses = {2'b0, rounded[31:10]};
      3'd4:    responses = {3'b0, rounded[31:11]};
      default: responses = {4'b0, rounded[31:12]};
    endcase
    if (!is_read || packet.reth.dmalen == '0) responses = psn_t'(1);
  end

  always_comb begin
    first_d = '0;
    first_d.peer     = packet.src_ip == attr.dst_ip;
    first_d.disabled = (is_write && !attr.access.remote_write) || (is_read && !attr.access.remote_read)
                       || (is_atomic && !attr.access.remote_atomic);

    if (is_read || is_atomic) first_d.bad_length = !empty;
    else if (!packet.last) first_d.bad_length = !full;
    else first_d.bad_length = !part || (!packet.first && empty);
    if ((is_read || (is_write && packet.first)) && packet.reth.dmalen > MESSAGE_MAX) first_d.bad_length = 1'b1;
    if (is_atomic && packet.reth.va[2:0] != '0) first_d.bad_length = 1'b1;
    if (tail && empty && packet.reth.dmalen != '0) first_d.bad_length = 1'b1;

    first_d.checked = is_atomic || packet.with_inv
                      || ((is_read || (is_write && packet.first)) && packet.reth.dmalen != '0);
    first_d.placeable = attr.selective_repeat && is_write && packet.first && packet.last && !packet.with_imm
                        && packet.reth.dmalen == 32'(packet.payload_length);
    first_d.offset = tail ? packet.reth.dmalen - 32'(packet.payload_length) : '0;
  end

  always_ff @(posedge clk) begin
    first_q     <= first_d;
    psn_q       <= packet.psn;
    responses_q <= responses;
  end

  // ---- cycle 1 ----
  always_ff @(posedge clk) begin
    form           <= first_q;
    form.placeable <= first_q.placeable && !first_q.bad_length && !first_q.disabled;
    form.next      <= psn_q + responses_q;
  end
endmodule
