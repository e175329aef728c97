// SPDX-License-Identifier: Apache-2.0

// Types inside the receive side of the packet plane.
package packet_rx_pkg;
  import packet_pkg::*;
  import frame_pkg::*;

  // All fields that determine a frame's class and lengths are before this byte or in the same beat, at every width.
  localparam int unsigned DECISION_BYTE = ETH_HDR_BYTES + IPV4_HDR_BYTES + UDP_HDR_BYTES;  // 42: BTH opcode
  localparam int unsigned DECISION_BYTE_V6 = DECISION_BYTE + IPV6_MORE_BYTES;              // 62: the same of IPv6

  // Reasons to drop a frame before it has a class; one counter each, see packet_events_t.
  typedef enum logic [4:0] {
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
    DROP_ROCE_OPCODE,
    DROP_ICMP_UNREACHABLE,
    DROP_ICMP_TOO_BIG,
    DROP_IPV6_HEADER,
    DROP_IPV6_EXTENSION,
    DROP_IPV6_FRAGMENT,
    DROP_ND,
    DROP_ALONE             // no drop: the frame is for the card alone
  } drop_e;

  // The positions of a payload: the start of the frame, or after headers. Few positions, which keeps shifters small.
  localparam int unsigned RX_PLACES = PLACES + 1;
  typedef logic [4:0] rx_place_t;
  localparam rx_place_t RX_PLACE_0 = rx_place_t'(PLACES);  // below it: place_e
  localparam logic [RX_PLACES-1:0][7:0] RX_PLACE_BYTES = {8'd0, PLACE_BYTES};

  // The position of the payload of a RoCE frame with this many bytes of extension headers.
  function automatic place_e place_of_ext(logic [5:0] ext_bytes);   // behind IPv4
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
    drop_e        drop;            // from the checks of the headers
    frame_class_e cls;
    listener_e    listener;
    logic         for_card;        // it is for the station of the network card,
    logic         group;           // to a group,
    logic         asks_us;         // an ARP request for the device's address
    logic         has_addresses;   // of IP,
    logic         flow_known;      // and ports in the known place,
    logic         tcp;             // of TCP, else UDP,
    logic         sum_known;       // and checksums that cover all of its IP packet are in the known places
    logic         ipv4;            // there is an IPv4 header to check,
    logic         sum_checked;     // and a UDP or ICMP checksum
    logic         headers_fit;     // the length of the IP packet covers all headers, pad and ICRC
    rx_place_t    place;           // position of the payload
    logic [15:0]  payload_length;  // not valid for whole frames
    logic [16:0]  ip_top;          // index of the last byte that the frame must have
  } parsed_t;

  typedef struct packed {
    logic        ipv4_ok;          // the IPv4 header checksum is right, or there is none
    logic        card;             // the network card gets the frame,
    logic        alone;            // and no unit of the device
    logic [18:0] pseudo_sum;       // the part of the payload checksum from the pseudo-header
  } checks_t;

  // The part of a frame that is output as its payload.
  typedef struct packed {
    rx_place_t   place;
    logic [15:0] length;
  } extent_t;
endpackage
