// SPDX-License-Identifier: Apache-2.0

// Types of the stream kernel `telemetry`.
package flow_telemetry_pkg;
  import packet_pkg::*;

  localparam int unsigned TELEMETRY_PLACES = 512;   // of flows, of each direction
  localparam int unsigned BUCKETS = 32;             // of a histogram: bucket n from 2^n cycles on
  typedef logic [$clog2(TELEMETRY_PLACES)-1:0] telemetry_place_t;
  typedef logic [$clog2(TELEMETRY_PLACES/32)-1:0] flags_at_t;   // a word of flags, one for each place
  typedef logic [$clog2(BUCKETS)-1:0] bucket_t;

  // What frames of a flow have in common.
  typedef struct packed {
    logic        v6;
    logic [7:0]  protocol;
    ip_addr_t    src;                          // IPv4 in mapped form
    ip_addr_t    dst;
    logic [15:0] src_port;                     // 0 without ports
    logic [15:0] dst_port;
  } telemetry_key_t;

  typedef struct packed {
    telemetry_key_t key;
    logic [31:0] frames;
    logic [47:0] bytes;
    logic [47:0] earlier;                      // bytes of the place before the flow had it
    logic [47:0] total;                        // bytes of the place, whoever's
    logic [31:0] votes;                        // bytes that others need to take the place
    logic [31:0] last;                         // time of the last frame
  } telemetry_entry_t;
endpackage
