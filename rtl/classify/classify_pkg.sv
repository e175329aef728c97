// SPDX-License-Identifier: Apache-2.0

// Types of the classifier (docs/reference/classifier.md): the key of a frame, how a table is organised, and what a table decides.
package classify_pkg;
  import packet_pkg::*;
  import card_pkg::*;

  // ---- the table with wildcards ----
  localparam int unsigned POSITIONS = 128;                     // entries; the lowest position that matches decides
  localparam int unsigned QUARTERS = 4;                        // positions of a group, which can be one wide entry
  localparam int unsigned GROUPS = POSITIONS / QUARTERS;
  localparam int unsigned UNIT = 32;                           // positions that are loaded together
  localparam int unsigned UNITS = POSITIONS / UNIT;
  typedef logic [$clog2(POSITIONS)-1:0] position_t;

  // A key is looked up by pieces of six bits: the size of a LUT RAM.
  localparam int unsigned CHUNK_W = 6;
  localparam int unsigned CHUNK_ROWS = 2 ** CHUNK_W;

  // What all positions look at.
  typedef struct packed {
    logic [3:0]  zero;         // fills up the last chunk
    logic        one_tag;      // there is a VLAN tag,
    logic        two_tags;     // and another behind it
    logic        v4;           // IPv4 header, with options or without
    logic        v6;           // IPv6 header
    logic        ports;        // TCP or UDP, whose ports are there
    logic        roce;         // UDP to port 4791 with a whole BTH
    logic        fragment;     // a fragment, the first one included
    logic        window;       // the frame has the bytes of the window
    logic [11:0] outer_vid;    // 0 if there is no tag
    logic [11:0] inner_vid;
    logic [7:0]  protocol;     // of IPv4; next header of IPv6; else 0
    logic [15:0] src_port;     // 0 without `ports`
    logic [15:0] dst_port;
    logic [7:0]  opcode;       // 0 without `roce`
    logic [23:0] qpn;
  } common_t;

  // What each position of a group has a quarter of.
  typedef struct packed {
    logic [63:0] address;      // IPv4: source and destination; IPv6: a quarter of source and destination; else EtherType and destination MAC
    logic [31:0] bytes;        // of the window
  } quarter_t;

  typedef struct packed {
    common_t                 common;
    logic [QUARTERS-1:0][63:0] addresses;   // the first quarter highest
    logic [QUARTERS-1:0][31:0] window;      // likewise
  } key_t;

  localparam int unsigned COMMON_CHUNKS = $bits(common_t) / CHUNK_W;      // 18
  localparam int unsigned QUARTER_CHUNKS = $bits(quarter_t) / CHUNK_W;    // 16
  localparam int unsigned CHUNKS = COMMON_CHUNKS + QUARTER_CHUNKS;        // chunk 0: the lowest bits of quarter_t

  // ---- the words of an entry, 12 bits each: for each chunk mask and value, then the action ----
  localparam int unsigned WORD_W = 2 * CHUNK_W;
  localparam int unsigned ENTRY_WORDS = 64;
  localparam int unsigned ACTION_WORD = CHUNKS;
  typedef logic [WORD_W-1:0] word_t;

  typedef struct packed {
    logic [CHUNK_W-1:0] mask;  // bits that are compared
    logic [CHUNK_W-1:0] value;
  } term_t;

  // ---- what is decided ----
  typedef enum logic [1:0] {
    CARD_AS_CLASS,             // the host gets what the class of the frame says,
    CARD_ALWAYS,               // this frame in any case,
    CARD_NEVER                 // in no case
  } card_choice_e;

  typedef struct packed {
    logic         pair_set;    // the pair of queues is
    flow_t        pair;        // this one
    card_choice_e card;
    logic         keep_away;   // from the units of the device
  } decision_t;

  // Of a frame that has ended.
  typedef struct packed {
    logic        hit;          // an entry matches:
    position_t   position;     // this one
    logic [15:0] length;       // bytes of the frame, without FCS
    decision_t   decision;     // 0 without a hit: as the class says
  } classified_t;

  // The staged settings, which change together.
  typedef struct packed {
    logic [POSITIONS-1:0] enable;
    logic [GROUPS-1:0]    wide;     // the group is one entry, whose enable is that of its first position
    logic [6:0]           offset;   // of the window in the frame as it came
  } table_settings_t;
endpackage
