// SPDX-License-Identifier: Apache-2.0

// Types of the virtio plane. Structures of the standard (virtio 1.2) have its names; they are little-endian, so the first field of
// a structure in memory is the last one of its packed struct.
package virtio_pkg;
  import memory_pkg::*;

  // ---- split virtqueues (2.7) ----
  typedef struct packed {
    logic [12:0] reserved;
    logic        indirect;   // VIRTQ_DESC_F_INDIRECT
    logic        write;      // VIRTQ_DESC_F_WRITE
    logic        next;       // VIRTQ_DESC_F_NEXT
  } virtq_desc_flags_t;

  typedef struct packed {    // 2.7.5
    logic [15:0]       next;
    virtq_desc_flags_t flags;
    logic [31:0]       len;
    logic [63:0]       addr;
  } virtq_desc_t;

  typedef struct packed {    // 2.7.8
    logic [31:0] len;
    logic [31:0] id;
  } virtq_used_elem_t;

  localparam int unsigned DESC_BYTES = $bits(virtq_desc_t) / 8;
  localparam int unsigned RING_AT = 4;                 // of ring[] in the available and in the used ring: flags and idx come first
  localparam int unsigned IDX_AT = 2;
  localparam int unsigned VIRTQ_AVAIL_F_NO_INTERRUPT = 0;
  localparam logic [15:0] VIRTIO_MSI_NO_VECTOR = 16'hffff;

  // ---- features (2.2, 5.1.3, 6) ----
  localparam int unsigned VIRTIO_NET_F_CSUM = 0;
  localparam int unsigned VIRTIO_NET_F_GUEST_CSUM = 1;
  localparam int unsigned VIRTIO_NET_F_MTU = 3;
  localparam int unsigned VIRTIO_NET_F_MAC = 5;
  localparam int unsigned VIRTIO_NET_F_HOST_TSO4 = 11;
  localparam int unsigned VIRTIO_NET_F_HOST_TSO6 = 12;
  localparam int unsigned VIRTIO_NET_F_HOST_ECN = 13;
  localparam int unsigned VIRTIO_NET_F_MRG_RXBUF = 15;
  localparam int unsigned VIRTIO_NET_F_STATUS = 16;
  localparam int unsigned VIRTIO_NET_F_CTRL_VQ = 17;
  localparam int unsigned VIRTIO_NET_F_CTRL_RX = 18;
  localparam int unsigned VIRTIO_NET_F_CTRL_VLAN = 19;
  localparam int unsigned VIRTIO_NET_F_CTRL_RX_EXTRA = 20;
  localparam int unsigned VIRTIO_NET_F_GUEST_ANNOUNCE = 21;
  localparam int unsigned VIRTIO_NET_F_MQ = 22;
  localparam int unsigned VIRTIO_NET_F_CTRL_MAC_ADDR = 23;
  localparam int unsigned VIRTIO_F_INDIRECT_DESC = 28;
  localparam int unsigned VIRTIO_F_EVENT_IDX = 29;
  localparam int unsigned VIRTIO_F_VERSION_1 = 32;
  localparam int unsigned VIRTIO_NET_F_RSS = 60;

  // The features that work by commands: each needs VIRTIO_NET_F_CTRL_VQ (5.1.3.1).
  localparam logic [63:0] BY_COMMANDS = 64'd1 << VIRTIO_NET_F_CTRL_RX | 64'd1 << VIRTIO_NET_F_CTRL_VLAN
                                      | 64'd1 << VIRTIO_NET_F_CTRL_RX_EXTRA | 64'd1 << VIRTIO_NET_F_GUEST_ANNOUNCE
                                      | 64'd1 << VIRTIO_NET_F_MQ | 64'd1 << VIRTIO_NET_F_CTRL_MAC_ADDR | 64'd1 << VIRTIO_NET_F_RSS;

  // ---- the header of a frame (5.1.6) ----
  localparam int unsigned VIRTIO_NET_HDR_F_NEEDS_CSUM = 0;
  localparam int unsigned VIRTIO_NET_HDR_F_DATA_VALID = 1;
  localparam logic [7:0] VIRTIO_NET_HDR_GSO_NONE = 8'd0;
  localparam logic [7:0] VIRTIO_NET_HDR_GSO_TCPV4 = 8'd1;
  localparam logic [7:0] VIRTIO_NET_HDR_GSO_TCPV6 = 8'd4;
  localparam logic [7:0] VIRTIO_NET_HDR_GSO_ECN = 8'h80;

  typedef struct packed {
    logic [15:0] num_buffers;
    logic [15:0] csum_offset;
    logic [15:0] csum_start;
    logic [15:0] gso_size;
    logic [15:0] hdr_len;
    logic [7:0]  gso_type;
    logic [7:0]  flags;
  } virtio_net_hdr_t;
  localparam int unsigned NET_HDR_BYTES = $bits(virtio_net_hdr_t) / 8;

  // ---- commands on the control queue (5.1.6.5) ----
  localparam logic [7:0] VIRTIO_NET_CTRL_RX = 8'd0;               // class; its commands are the numbers of rx_mode_t
  localparam logic [7:0] VIRTIO_NET_CTRL_MAC = 8'd1;
  localparam logic [7:0] VIRTIO_NET_CTRL_MAC_TABLE_SET = 8'd0;
  localparam logic [7:0] VIRTIO_NET_CTRL_MAC_ADDR_SET = 8'd1;
  localparam logic [7:0] VIRTIO_NET_CTRL_VLAN = 8'd2;
  localparam logic [7:0] VIRTIO_NET_CTRL_VLAN_ADD = 8'd0;
  localparam logic [7:0] VIRTIO_NET_CTRL_VLAN_DEL = 8'd1;
  localparam logic [7:0] VIRTIO_NET_CTRL_ANNOUNCE = 8'd3;
  localparam logic [7:0] VIRTIO_NET_CTRL_ANNOUNCE_ACK = 8'd0;
  localparam logic [7:0] VIRTIO_NET_CTRL_MQ = 8'd4;
  localparam logic [7:0] VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET = 8'd0;
  localparam logic [7:0] VIRTIO_NET_CTRL_MQ_RSS_CONFIG = 8'd1;
  localparam logic [7:0] VIRTIO_NET_OK = 8'd0;
  localparam logic [7:0] VIRTIO_NET_ERR = 8'd1;

  // What the commands of VIRTIO_NET_CTRL_RX turn on; the bit of each is its number.
  typedef struct packed {
    logic nobcast;
    logic nouni;
    logic nomulti;
    logic alluni;
    logic allmulti;
    logic promisc;
  } rx_mode_t;

  // A command as virtio_net_control reads it, byte after byte. What can do it says so when all bytes are there, and does it at `apply`.
  typedef struct packed {
    logic        start;        // pulse: what came before is forgotten
    logic        valid;        // pulse: a byte of the command's own data,
    logic [7:0]  value;        // which is this one
    logic [15:0] length;       // bytes of data before it; with `apply`: all of them
    logic [7:0]  class_;       // with the data, and after it
    logic [7:0]  command;
    logic        apply;        // pulse
  } net_command_t;

  // The pairs of queues in use are to be so many.
  typedef struct packed {
    logic        valid;
    logic [15:0] pairs;
  } pairs_set_t;

  // ---- receive-side scaling (5.1.6.4.3) ----
  // Over what a hash is computed, if the packet has it: VIRTIO_NET_HASH_TYPE_*, whose bits these are.
  typedef struct packed {
    logic udpv6;
    logic tcpv6;
    logic ipv6;
    logic udpv4;
    logic tcpv4;
    logic ipv4;
  } hash_types_t;
  localparam int unsigned HASH_KEY_BYTES = 40;
  localparam int unsigned INDIRECTIONS = 128;      // entries of the indirection table
  typedef logic [$clog2(INDIRECTIONS)-1:0] hash_index_t;

  typedef struct packed {
    hash_types_t                   types;
    logic [HASH_KEY_BYTES*8-1:0]   key;            // its first byte is the highest
  } net_hash_t;

  // ---- the engine ----
  // Queue number; of a network device the receive queues are even, the transmit queues odd (5.1.2). Inside of the device the control queue is
  // odd, too, as its commands are read like frames: it follows the last pair, with one number left out.
  localparam int unsigned QUEUE_W = 4;
  typedef logic [QUEUE_W-1:0] queue_t;
  localparam int unsigned MAX_QUEUES = 2 ** QUEUE_W;
  localparam int unsigned MAX_QUEUE_SIZE = 1024;

  typedef struct packed {
    logic   valid;           // there is one
    queue_t vq;
  } queue_named_t;

  // Whether the control queue is behind all pairs, or behind the first one (5.1.2).
  function automatic logic all_pairs(logic [63:0] features);
    return features[VIRTIO_NET_F_MQ] || features[VIRTIO_NET_F_RSS];
  endfunction

  // The queue that the driver gives a number; `all` as above.
  function automatic queue_named_t driver_queue(logic [15:0] number, int unsigned pairs, logic all);
    logic [15:0] control;
    control = all ? 16'(2 * pairs) : 16'd2;
    return '{valid: number <= control, vq: number == control ? queue_t'(2 * pairs + 1) : number[QUEUE_W-1:0]};
  endfunction

  // What the driver has set up for a queue (4.1.4.3).
  typedef struct packed {
    logic [15:0] size;
    logic [15:0] vector;
    addr_t       desc;
    addr_t       avail;      // the driver area
    addr_t       used;       // the device area
  } virtq_config_t;

  typedef struct packed {
    logic          valid;
    queue_t        vq;
    virtq_config_t values;
  } virtq_setup_t;

  // Why a queue has stopped. Its number is read by the driver's operator, so the order stays.
  typedef enum logic [3:0] {
    VIRTQ_OK,
    VIRTQ_AVAIL_JUMP,          // the available index is further ahead than the queue is long
    VIRTQ_HEAD_RANGE,          // the available ring names a descriptor that there is not
    VIRTQ_NEXT_RANGE,          // so does a descriptor
    VIRTQ_CHAIN_LENGTH,        // more descriptors than the queue is long: a loop, perhaps
    VIRTQ_INDIRECT_NESTED,     // an indirect descriptor in an indirect table
    VIRTQ_INDIRECT_NEXT,       // with VIRTQ_DESC_F_NEXT
    VIRTQ_INDIRECT_LENGTH,     // no whole number of descriptors, none, or more than 65,535
    VIRTQ_INDIRECT_UNASKED,    // VIRTIO_F_INDIRECT_DESC is not negotiated
    VIRTQ_ZERO_LENGTH,         // a buffer without a byte
    VIRTQ_DIRECTION,           // a buffer to write in a transmit queue, or one to read in a receive queue
    VIRTQ_MEMORY               // host memory answered with an error
  } virtq_error_e;

  typedef struct packed {
    logic         valid;
    queue_t       vq;
    virtq_error_e code;
  } virtq_fail_t;

  // ---- chains that are fetched ahead ----
  // Slots of a queue are used in order; the highest bit of a slot's number tells its laps apart.
  localparam int unsigned SLOT_W = 8;
  typedef logic [SLOT_W-1:0] slot_t;
  localparam int unsigned CONTEXTS = 2 ** (SLOT_W - 1);

  // Descriptors that one read fetches: most chains have one or two.
  localparam int unsigned BLOCK = 2;
  // Descriptors of the table, at a multiple of so many, that one read fetches if several of them begin chains that follow each other.
  localparam int unsigned DESC_GROUP = 4;
  typedef logic [$clog2(DESC_GROUP)-1:0] in_group_t;
  // Available entries that one read fetches.
  localparam int unsigned ENTRIES = 8;
  typedef logic [$clog2(ENTRIES):0] entries_t;

  typedef enum logic [2:0] {
    READ_INDEX,      // of the available ring
    READ_ENTRIES,    // of it
    READ_DIRECT,     // descriptors of the table, from the head of a chain on
    READ_TABLE,      // descriptors of an indirect table, from its first on
    READ_WALK,       // descriptors further on
    READ_CHECK,      // flags or used_event of the available ring
    READ_COMMAND     // a part of a command
  } ring_read_e;

  typedef struct packed {
    ring_read_e   kind;
    queue_t       vq;
    slot_t        slot;
    logic [15:0]  head;      // of the chain
    entries_t     count;
    virtq_error_e bad;       // the chain is known to be bad
    in_group_t    more;      // chains of the slots behind this one whose beginnings are read, too,
    in_group_t [DESC_GROUP-1:0] at; //   and where in what is read each of them begins, this one first
  } ring_tag_t;

  typedef struct packed {
    addr_t      addr;
    logic [6:0] bytes;       // at most DESC_GROUP descriptors
    ring_tag_t  tag;
  } ring_read_t;

  // Of the length of a descriptor, found out before it is looked at.
  typedef struct packed {
    logic none;              // it is 0
    logic no_table;          // no whole number of descriptors, none, or more than 65,535
  } desc_length_t;

  function automatic desc_length_t desc_length(logic [31:0] len);
    return '{none: len == '0, no_table: len[3:0] != '0 || len[31:4] == '0 || len[31:20] != '0};
  endfunction

  // The answer, without its data.
  typedef struct packed {
    logic      valid;
    logic      error;
    ring_tag_t tag;
  } ring_reply_t;

  typedef enum logic [1:0] {
    WRITE_ELEMENTS,  // of the used ring
    WRITE_INDEX,     // of it
    WRITE_EVENT      // avail_event
  } ring_write_e;

  typedef struct packed {
    ring_write_e kind;
    queue_t      vq;
    logic        whole;      // `index` is defined
    logic [15:0] index;      // up to this element all frames are whole, once the write is done
  } ring_write_tag_t;

  // avail_event is to be set to `index`.
  typedef struct packed {
    queue_t      vq;
    logic [15:0] index;
  } virtq_arm_t;

  // How a chain begins: from this the walk goes on.
  typedef struct packed {
    virtq_error_e error;
    logic [15:0]  head;
    logic         indirect;
    addr_t        addr;      // of the indirect table,
    logic [15:0]  count;     // and its descriptors
    logic         only;      // one descriptor is fetched, else BLOCK
  } chain_start_t;

  // A buffer of a chain.
  typedef struct packed {
    queue_t      vq;
    logic [15:0] head;       // the chain
    addr_t       addr;
    logic [31:0] len;
    logic        writable;
    logic        last;       // of its chain
    logic        error;      // the chain is bad and ends here: its queue has stopped, and it is never given back
  } virtq_segment_t;

  // A chain is given back to the driver.
  typedef struct packed {
    queue_t      vq;
    logic [15:0] head;
    logic [31:0] len;        // bytes written
    logic        last;       // of those that must be given back together
  } virtq_used_t;

  // What was pulled from a queue and not settled before is kept, which frees its slots, or will be pulled again.
  typedef struct packed {
    logic   valid;
    queue_t vq;
    logic   keep;
  } virtq_settle_t;

  // What is wrong with an indirect descriptor, apart from where it stands.
  function automatic virtq_error_e indirect_error(virtq_desc_t desc, desc_length_t length, logic negotiated);
    if (!negotiated) return VIRTQ_INDIRECT_UNASKED;
    if (desc.flags.next) return VIRTQ_INDIRECT_NEXT;
    if (length.no_table) return VIRTQ_INDIRECT_LENGTH;
    return VIRTQ_OK;
  endfunction

  // Ring position of a free-running index; sizes are powers of two.
  function automatic logic [15:0] ring_position(logic [15:0] index, logic [15:0] size);
    return index & (size - 1'b1);
  endfunction

  // ---- frames and their pieces ----
  // Of a packet that is part of a larger one (axis_gather).
  typedef struct packed {
    logic        ends;       // it is the last part
    logic        none;       // it was not read: there is no packet
    logic [5:0]  first;      // lane of its first byte, in its first beat
    logic [5:0]  last;       // and of its last one, in its last beat
  } gather_note_t;

  // A part of a packet that becomes a packet (axis_scatter).
  typedef struct packed {
    logic        last;
    logic [15:0] last_byte;  // its number, from 0
  } scatter_piece_t;

  // What is changed in a frame for the host.
  typedef struct packed {
    logic [5:0] dscp;
    logic       dscp_set;
    logic [2:0] pcp;         // of the outer VLAN tag
    logic       pcp_set;
  } net_edit_t;

  // Beside a frame from the network.
  typedef struct packed {
    queue_t      vq;         // receive queue, unless the driver has chosen otherwise,
    logic        fixed;      // which it cannot
    logic        hashed;     // the packet has what the driver's hash is over,
    hash_index_t hash;       // and these are its lowest bits
    logic        csum_valid; // its checksums were verified
    net_edit_t   edit;
    logic        unwanted;   // it is not for this device: not received, and not counted
  } net_rx_t;

  // Beside a frame to the network, from its first beat on.
  typedef struct packed {
    queue_t vq;
  } net_tx_t;

  // What a device does to frames for its driver, as negotiated.
  typedef struct packed {
    logic csum;
    logic tso4;
    logic tso6;
    logic ecn;
  } net_offload_t;

  // A checksum that is to be completed.
  typedef struct packed {
    logic        asks;
    logic [15:0] start;      // byte of the frame from which on it is summed,
    logic [15:0] at;         // and where it is put
    logic [15:0] extra;      // to be added to the sum
  } csum_ask_t;

  // ---- segmentation (virtio_net_segment) ----
  // The longest headers that can be: Ethernet with two tags, IPv4 and TCP with all their options (IPv6: 122).
  localparam int unsigned MAX_TCP_HEADERS = 22 + 60 + 60;
  localparam int unsigned MAX_GSO_PAYLOAD = 65_536;
  // Shorter segments are not made: nobody needs them (Linux has the same limit), and one chain would be tens of thousands of frames.
  localparam int unsigned MIN_GSO_SIZE = 8;

  // Of the headers of a frame with TCP; sums are one's complement sums of words (RFC 1071).
  typedef struct packed {
    logic        v6;
    logic [5:0]  l2_bytes;   // Ethernet header and tags
    logic [6:0]  tcp_at;     // byte of the frame
    logic [7:0]  bytes;      // all headers
    logic [15:0] id;         // IPv4
    logic [15:0] ip_sum;     // of the IPv4 header without total length, identification, checksum
    logic [15:0] pseudo_sum; // of the pseudo header without the length, less the checksum that the frame has
    logic [31:0] seq;
    logic [15:0] flags;      // of TCP, with the data offset
  } tcp_headers_t;

  // The fields in which the headers of segments differ.
  typedef struct packed {
    logic [15:0] length;     // total length (IPv4), payload length (IPv6)
    logic [15:0] id;
    logic [15:0] ip_csum;
    logic [31:0] seq;
    logic [15:0] flags;
  } tcp_patch_t;

  // A segment. The beats of the frame and of the segment are counted from the beat in which its headers end.
  typedef struct packed {
    tcp_patch_t  patch;
    logic [15:0] csum_extra;
    logic [13:0] visits;     // beats of the frame that have payload of it
    logic [5:0]  first;      // lane of its first byte in the first of these
    logic [5:0]  last_lane;  // of its last byte in the segment's last beat
    logic        skip;       // the first of these beats does not fill a beat of the segment
    logic        rest;       // after the last of them there is one more beat of the segment
    logic        consumes;   // nothing of the last of them is left for the next segment
    logic        last;       // segment of the frame
  } tcp_segment_t;

  // Pulses, each with the queue.
  typedef struct packed {
    logic   sent;            // a frame, or a segment of one
    queue_t sent_vq;
    logic   short_;          // dropped: no frame in the chain
    logic   long_;           // dropped: longer than the longest frame
    logic   header;          // dropped: the header asks for what was not negotiated, or what cannot be done
    logic   memory;          // dropped: not read, or the chain is bad
    queue_t vq;              // of what is dropped
  } net_tx_events_t;

  typedef struct packed {
    logic   overrun;         // dropped: the store is full
    logic   bad;             // dropped: marked bad, or too long
    queue_t in_vq;
    logic   no_buffer;       // dropped: the driver has no buffers for it, or the queue does not work
    queue_t drop_vq;
    logic   received;
    logic   memory;          // dropped: not written
    queue_t done_vq;
  } net_rx_events_t;

  // Counters, one for each pair of queues; their order is that of the registers.
  typedef enum logic [3:0] {
    COUNT_RX,
    COUNT_RX_NO_BUFFER,
    COUNT_RX_OVERRUN,
    COUNT_RX_BAD,
    COUNT_RX_MEMORY,
    COUNT_TX,
    COUNT_TX_SHORT,
    COUNT_TX_LONG,
    COUNT_TX_HEADER,
    COUNT_TX_MEMORY,
    COUNT_STOPPED            // queues of the pair that have stopped
  } counter_e;
  localparam int unsigned COUNTERS = 11;
  localparam int unsigned PAIR_W = 2;
  localparam int unsigned MAX_PAIRS = 2 ** PAIR_W;

  typedef struct packed {
    counter_e          kind;
    logic [PAIR_W-1:0] pair;
  } counter_t;

  // ---- PCI transport (4.1.4.3): offsets in the registers ----
  localparam logic [11:0] COMMON_AT = 12'h000;
  localparam logic [11:0] ISR_AT = 12'h040;
  localparam logic [11:0] DEVICE_AT = 12'h080;
  localparam logic [11:0] PAIRS_AT = 12'h0c0;      // ours: pairs in use, for a driver that has no commands
  localparam logic [11:0] NOTIFY_AT = 12'h100;     // 4 bytes a queue: notify_off_multiplier is 4
  localparam logic [11:0] FAULT_AT = 12'h180;      // ours: 4 bytes a queue
  localparam logic [11:0] COUNTERS_AT = 12'h200;   // ours

  typedef struct packed {      // 2.1, device_status
    logic failed;
    logic needs_reset;
    logic [1:0] unused;
    logic features_ok;
    logic driver_ok;
    logic driver;
    logic acknowledge;
  } device_status_t;

  localparam int unsigned VIRTIO_NET_S_LINK_UP = 0;
  localparam int unsigned VIRTIO_NET_S_ANNOUNCE = 1;
endpackage
