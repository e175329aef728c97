// SPDX-License-Identifier: Apache-2.0

// Cuts a read into the pieces that one completion each answers (Base Specification 2.3.1.1): at addresses that are a multiple of `mps`, of
// LARGEST, and for registers of 128 bytes, the read completion boundary of an endpoint. A refused request is one piece. Latency 1 cycle; a
// piece a cycle, a request every 2 cycles.
module pcie_completion_split
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned LARGEST = 512      // bytes, a power of two from 128
) (
    input  logic       clk,
    input  logic       rst,
    input  logic [FUNCTIONS_MAX-1:0][2:0] mps,   // by function, as pcie_config_t
    stream_if.sink     request,               // host_request_t
    stream_if.source   piece                  // read_piece_t
);
  localparam tlp_bytes_t REGISTERS_MASK = 13'd127;

  host_request_t request_q;
  tlp_bytes_t    left_q;                      // byte_count of the next piece
  tlp_dwords_t   room_q;                      // dwords to the next boundary
  tlp_bytes_t    span_q;                      // bytes to there, from the first that is enabled
  logic          valid_q, first_q;

  // The boundaries are at multiples of a power of two: it less one.
  tlp_bytes_t [FUNCTIONS_MAX-1:0] mask_q;
  for (genvar i = 0; i < FUNCTIONS_MAX; i++) begin : g_mask
    always_ff @(posedge clk)
      mask_q[i] <= (size_bytes(mps[i]) > tlp_bytes_t'(LARGEST) ? tlp_bytes_t'(LARGEST) : size_bytes(mps[i])) - 1'b1;
  end
  function automatic tlp_bytes_t mask_of(place_e place, tlp_bytes_t memory);
    return place == PLACE_REGISTERS ? REGISTERS_MASK : memory;
  endfunction

  wire last = request_q.place == PLACE_NOWHERE || request_q.dwords <= room_q;
  wire [3:0] first_be = first_q ? request_q.first_be : '1;
  wire step = valid_q && piece.ready;

  assign piece.valid = valid_q;
  always_comb begin
    piece.data              = '0;
    piece.data.place        = request_q.place;
    piece.data.func         = request_q.func;
    piece.data.first        = first_q;
    piece.data.none         = first_be == '0;
    piece.data.addr         = request_q.addr;
    piece.data.dwords       = last ? request_q.dwords : room_q;
    piece.data.byte_count   = left_q;
    piece.data.lower_addr   = request_q.addr[6:0] | 7'(be_first(first_be));
    piece.data.requester_id = request_q.requester_id;
    piece.data.tag          = request_q.tag;
    piece.data.tc           = request_q.tc;
    piece.data.attr         = request_q.attr;
  end
  assign request.ready = !valid_q;

  host_request_t next;
  tlp_bytes_t    next_mask, mask, behind;     // behind: bytes of the first dword's block that follow it
  assign next      = request.data;
  assign next_mask = mask_of(next.place, mask_q[next.func]);
  assign mask      = mask_of(request_q.place, mask_q[request_q.func]);
  assign behind    = ~tlp_bytes_t'({next.addr[11:2], 2'b11}) & next_mask;
  always_ff @(posedge clk) begin
    if (request.ready) begin
      request_q <= next;
      left_q    <= be_byte_count(next.dwords, next.first_be, next.last_be);
      room_q    <= tlp_dwords_t'(behind >> 2) + 1'b1;
      span_q    <= behind + (13'd4 - be_first(next.first_be));
      first_q   <= 1'b1;
    end else if (step) begin                  // for another piece, if there is one
      request_q.addr   <= {request_q.addr[ADDR_W-1:12], request_q.addr[11:0] + 12'({room_q, 2'b00})};
      request_q.dwords <= request_q.dwords - room_q;
      left_q           <= left_q - span_q;
      room_q           <= tlp_dwords_t'(mask >> 2) + 1'b1;
      span_q           <= mask + 1'b1;
      first_q          <= 1'b0;
    end
    if (rst) valid_q <= 1'b0;
    else if (request.ready) valid_q <= request.valid;
    else if (step && last) valid_q <= 1'b0;
  end
endmodule
