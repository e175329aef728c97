// SPDX-License-Identifier: Apache-2.0

// Types inside the receive side of the packet plane.
package packet_rx_pkg;
  import packet_pkg::*;
  import frame_pkg::*;

  // All that decides about a frame's class and lengths lies before this byte or in the same beat, at every width.
  localparam int unsigned DECISION_BYTE = ETH_HDR_BYTES + IPV4_HDR_BYTES + UDP_HDR_BYTES;  // 42: BTH opcode

  // Why a frame is dropped before it has a class; one counter each, see packet_events_t.
  typedef enum logic [3:0] {
    DROP_NONE,
    DROP_FCS,
    DROP_RUNT,
    DROP_OVERSIZE,
    DROP_NOT_OURS,
    DROP_IPV4_HEADER,
    DROP_IPV4_FRAGMENT,
    DROP_UDP_LENGTH,
    DROP_UDP_CHECKSUM,
    DROP_ICMP,
    DROP_ARP,
    DROP_ICRC,
    DROP_ROCE_OPCODE
  } drop_e;

  // Where a payload may begin: where the frame does, or behind headers. Few places, so that shifters stay small.
  localparam int unsigned RX_PLACES = PLACES + 1;
  typedef logic [3:0] rx_place_t;
  localparam rx_place_t RX_PLACE_0 = rx_place_t'(PLACES);  // below it: place_e
  localparam logic [RX_PLACES-1:0][7:0] RX_PLACE_BYTES = {8'd0, PLACE_BYTES};

  // Where the payload of a RoCE frame begins whose extension headers have so many bytes.
  function automatic place_e place_of_ext(logic [5:0] ext_bytes);
    unique case (ext_bytes)
      6'd4:    return PLACE_58;
      6'd8:    return PLACE_62;
      6'd12:   return PLACE_66;
      6'd16:   return PLACE_70;
      6'd20:   return PLACE_74;
      6'd28:   return PLACE_82;
      default: return PLACE_54;
    endcase
  endfunction

  typedef struct packed {
    drop_e        drop;            // as far as the headers tell
    frame_class_e cls;
    logic         ipv4;            // there is an IPv4 header to be checked,
    logic         sum_checked;     // and a UDP or ICMP checksum
    logic         headers_fit;     // the IPv4 length covers all headers, pad and ICRC
    rx_place_t    place;           // where the payload begins
    logic [15:0]  payload_length;  // not of whole frames
    logic [16:0]  ip_top;          // index in the frame of the last byte that must be there
  } parsed_t;

  typedef struct packed {
    logic        ipv4_ok;          // the IPv4 header checksum is right, or there is none
    logic [18:0] pseudo_sum;       // what the checksum of the IPv4 payload has in addition
  } checks_t;

  // The part of a frame that is handed on as its payload.
  typedef struct packed {
    rx_place_t   place;
    logic [15:0] length;
  } extent_t;
endpackage
