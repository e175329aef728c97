// SPDX-License-Identifier: Apache-2.0

// Cuts a read into the pieces that one completion each answers (Base Specification 2.3.1.1): at addresses that are a multiple of `mps`, of
// LARGEST, and for registers of 128 bytes, the read completion boundary of an endpoint. A refused request is one piece. Latency 1 cycle, a
// piece a cycle.
module pcie_completion_split
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned LARGEST = 512      // bytes, a power of two from 128
) (
    input  logic       clk,
    input  logic       rst,
    input  logic [2:0] mps,                   // as pcie_config_t
    stream_if.sink     request,               // host_request_t
    stream_if.source   piece                  // read_piece_t
);
  localparam int unsigned REGISTERS = 128;

  host_request_t request_q;
  tlp_bytes_t    left_q;                      // byte_count of the next piece
  logic          valid_q, first_q;

  // Bytes to the next boundary, a multiple of 4.
  tlp_bytes_t size, room, all, bytes;
  always_comb begin
    size = size_bytes(mps);
    if (size > tlp_bytes_t'(LARGEST)) size = tlp_bytes_t'(LARGEST);
    if (request_q.place == PLACE_REGISTERS) size = tlp_bytes_t'(REGISTERS);
    room = size - (tlp_bytes_t'({request_q.addr[11:2], 2'b00}) & (size - 1'b1));
    all  = tlp_bytes_t'(request_q.dwords) << 2;
  end
  wire last = request_q.place == PLACE_NOWHERE || all <= room;
  assign bytes = last ? all : room;
  wire [3:0] first_be = first_q ? request_q.first_be : '1;
  wire step = valid_q && piece.ready;

  assign piece.valid = valid_q;
  always_comb begin
    piece.data              = '0;
    piece.data.place        = request_q.place;
    piece.data.first        = first_q;
    piece.data.none         = first_be == '0;
    piece.data.addr         = request_q.addr;
    piece.data.dwords       = tlp_dwords_t'(bytes >> 2);
    piece.data.byte_count   = left_q;
    piece.data.lower_addr   = request_q.addr[6:0] | 7'(be_first(first_be));
    piece.data.requester_id = request_q.requester_id;
    piece.data.tag          = request_q.tag;
    piece.data.tc           = request_q.tc;
    piece.data.attr         = request_q.attr;
  end
  assign request.ready = !valid_q || (step && last);

  host_request_t next;
  assign next = request.data;
  always_ff @(posedge clk) begin
    if (request.ready) begin
      request_q <= next;
      left_q    <= be_byte_count(next.dwords, next.first_be, next.last_be);
      first_q   <= 1'b1;
    end else if (step) begin
      request_q.addr   <= request_q.addr + addr_t'(bytes);
      request_q.dwords <= request_q.dwords - tlp_dwords_t'(bytes >> 2);
      left_q           <= left_q - bytes + be_first(first_be);
      first_q          <= 1'b0;
    end
    if (rst) valid_q <= 1'b0;
    else if (request.ready) valid_q <= request.valid;
  end
endmodule
