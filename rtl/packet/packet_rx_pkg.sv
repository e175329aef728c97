// SPDX-License-Identifier: Apache-2.0

// Types inside the receive side of the packet plane.
package packet_rx_pkg;
  import packet_pkg::*;

  // All that decides about a frame's class and lengths lies before this byte or in the same beat, at every width.
  localparam int unsigned DECISION_BYTE = ETH_HDR_BYTES + IPV4_HDR_BYTES + UDP_HDR_BYTES;  // 42: BTH opcode

  // Why a frame is dropped; one counter each, see packet_events_t.
  typedef enum logic [3:0] {
    DROP_NONE,
    DROP_FCS,
    DROP_RUNT,
    DROP_OVERSIZE,
    DROP_NOT_OURS,
    DROP_ETHERTYPE,
    DROP_IPV4_HEADER,
    DROP_IPV4_FRAGMENT,
    DROP_IP_PROTOCOL,
    DROP_UDP_LENGTH,
    DROP_UDP_CHECKSUM,
    DROP_ICMP,
    DROP_ARP,
    DROP_ICRC,
    DROP_ROCE_OPCODE
  } drop_e;

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
    logic         udp_checked;     // there is a UDP checksum to be checked
    logic         headers_fit;     // the IPv4 length covers all headers, pad and ICRC
    logic [15:0]  payload_length;
    logic [16:0]  ip_top;          // index in the frame of the last byte that counts
    logic [16:0]  payload_top;     // index in the frame of the last byte of payload
    place_e       place;           // where the payload begins
  } parsed_t;

  typedef struct packed {
    logic        ipv4_ok;          // the IPv4 header checksum is right
    logic [18:0] pseudo_sum;       // what the checksum of the IPv4 payload has in addition
  } checks_t;
endpackage
