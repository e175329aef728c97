// SPDX-License-Identifier: Apache-2.0

// Types of the classifier (docs/reference/classifier.md): the key of a frame, how a table is organised, and what a table decides.
package classify_pkg;
  import packet_pkg::*;
  import card_pkg::*;
  import virtio_pkg::net_edit_t;

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
  localparam int unsigned ACTION_WORD = CHUNKS;                // the lower half; the upper half is behind it
  localparam int unsigned ACTION_WORDS = 2;
  typedef logic [WORD_W-1:0] word_t;

  typedef struct packed {
    logic [CHUNK_W-1:0] mask;  // bits that are compared
    logic [CHUNK_W-1:0] value;
  } term_t;

  // ---- flows: two banks of rows, three slots a row ----
  localparam int unsigned FLOW_BANKS = 2;                      // each with a hash of its own
  localparam int unsigned FLOW_ROWS = 1024;                    // of a bank
  localparam int unsigned FLOW_SLOTS = 3;                      // of a row: three flows of IPv4, or one of IPv6
  localparam int unsigned FLOW_PLACES = FLOW_BANKS * FLOW_ROWS * FLOW_SLOTS;
  typedef logic [$clog2(FLOW_ROWS)-1:0] flow_row_t;

  typedef struct packed {
    logic [1:0] slot;
    logic       bank;
    flow_row_t  row;
  } flow_place_t;

  // What makes a flow. IPv4 addresses in the lowest bits.
  typedef struct packed {
    logic        v6;
    logic [7:0]  protocol;
    logic [15:0] src_port;     // 0 but for TCP and UDP
    logic [15:0] dst_port;
    ip_addr_t    src;
    ip_addr_t    dst;
  } flow_key_t;

  // What a slot keeps of a key: of IPv4 all, of IPv6 a third.
  typedef struct packed {
    logic [7:0]  protocol;
    logic [15:0] src_port;
    logic [15:0] dst_port;
    ipv4_addr_t  src;
    ipv4_addr_t  dst;
  } flow_part_t;
  typedef flow_part_t [FLOW_SLOTS-1:0] flow_parts_t;

  function automatic flow_parts_t flow_parts(flow_key_t key);
    flow_part_t whole;
    whole = '{protocol: key.protocol, src_port: key.src_port, dst_port: key.dst_port, src: ipv4_of(key.src), dst: ipv4_of(key.dst)};
    return key.v6 ? ($bits(flow_parts_t))'({key.protocol, key.src_port, key.dst_port, key.src, key.dst}) : {FLOW_SLOTS{whole}};
  endfunction

  // ---- what is decided ----
  typedef enum logic [1:0] {
    CARD_AS_CLASS,             // the host gets what the class of the frame says,
    CARD_ALWAYS,               // this frame in any case,
    CARD_NEVER                 // in no case
  } card_choice_e;

  localparam int unsigned METERS = 16;
  typedef logic [$clog2(METERS)-1:0] meter_t;

  typedef struct packed {
    net_edit_t    edit;        // of the host's copy
    meter_t       meter;       // if `metered`: what is above its rate nobody gets, or only the host
    logic         metered;
    stream_choice_e stream;    // through the kernel on the card's path, or round it
    logic         pair_set;    // the pair of queues is
    flow_t        pair;        // this one
    card_choice_e card;
    logic         keep_away;   // from the units of the device
  } decision_t;

  // A slot of a row of flows.
  typedef struct packed {
    logic       used;
    logic       v6;            // the three slots are one flow
    decision_t  decision;
    flow_part_t part;
  } flow_slot_t;
  typedef flow_slot_t [FLOW_SLOTS-1:0] flow_slots_t;

  // A flow as software writes and reads it.
  typedef struct packed {
    flow_key_t key;
    decision_t decision;
  } flow_entry_t;

  function automatic flow_entry_t flow_entry(flow_slots_t slots, logic [1:0] slot);
    flow_slot_t  one;
    flow_parts_t parts;
    one = '0;
    for (int unsigned s = 0; s < FLOW_SLOTS; s++) begin
      if (slot == 2'(s)) one = slots[s];
      parts[s] = slots[s].part;
    end
    flow_entry.decision = one.decision;
    flow_entry.key = one.v6 ? {1'b1, ($bits(flow_key_t) - 1)'(parts)}
                            : '{v6: 1'b0, protocol: one.part.protocol, src_port: one.part.src_port, dst_port: one.part.dst_port,
                                src: ip_addr_t'(one.part.src), dst: ip_addr_t'(one.part.dst)};
  endfunction

  // One of these at a time.
  typedef struct packed {
    logic        put;          // a flow into the place, with counters of 0
    logic        remove;       // what is in the place
    logic        get;
    logic        renew;        // all flows are deleted, and the hash has this seed
    logic        v6;           // the place is a row
    flow_place_t place;
    logic [63:0] seed;
  } flow_command_t;

  // Of a frame that has ended.
  typedef struct packed {
    logic        flow;         // it is of a flow:
    flow_place_t place;        // the one that is here. Else
    logic        hit;          // an entry with wildcards matches:
    position_t   position;     // this one
    logic [15:0] length;       // bytes of the frame, without FCS
    logic        over;         // the frame is above the rate of the decision's meter, which has changed `decision`
    decision_t   decision;     // 0 if nothing matches: as the class says
  } classified_t;

  // ---- meters ----
  localparam int unsigned METER_FRACTION = 20;
  typedef struct packed {
    logic        to_host;      // frames above the rate are for the host, else for nobody
    logic        frames;       // tokens are frames, else bytes
    logic [23:0] burst;        // tokens that there can be
    logic [31:0] rate;         // 2^-METER_FRACTION of a token, every METERS cycles
  } meter_settings_t;

  // The staged settings, which change together.
  typedef struct packed {
    logic [POSITIONS-1:0] enable;
    logic [GROUPS-1:0]    wide;     // the group is one entry, whose enable is that of its first position
    logic [6:0]           offset;   // of the window in the frame as it came
  } table_settings_t;
endpackage
