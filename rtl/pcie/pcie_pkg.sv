// SPDX-License-Identifier: Apache-2.0

// Types of the PCIe plane (docs/reference/pcie-plane.md): the transaction layer of PCI Express (Base Specification 4.0, chapter 2) without
// anything of a vendor's hard block. A TLP is a `tlp_header_t` on a stream, and beside it, if it has data, a packet of a payload stream.
package pcie_pkg;
  import memory_pkg::*;

  // Bit 0 says that a payload belongs to the header: see tlp_has_data.
  typedef enum logic [2:0] {
    TLP_MEM_READ        = 3'b000,   // MRd
    TLP_MEM_WRITE       = 3'b001,   // MWr
    TLP_COMPLETION      = 3'b010,   // Cpl
    TLP_COMPLETION_DATA = 3'b011,   // CplD
    TLP_OTHER           = 3'b100,   // any other non-posted request without data (I/O read, locked read, configuration)
    TLP_OTHER_DATA      = 3'b101,   // and with data (I/O write, AtomicOp, configuration)
    TLP_MESSAGE         = 3'b110,   // Msg
    TLP_MESSAGE_DATA    = 3'b111    // MsgD
  } tlp_kind_e;

  function automatic logic tlp_has_data(tlp_kind_e kind);
    return kind[0];
  endfunction

  function automatic logic tlp_is_completion(tlp_kind_e kind);
    return kind inside {TLP_COMPLETION, TLP_COMPLETION_DATA};
  endfunction

  function automatic logic tlp_is_posted(tlp_kind_e kind);
    return kind inside {TLP_MEM_WRITE, TLP_MESSAGE, TLP_MESSAGE_DATA};
  endfunction

  // Completion status (table 2-34).
  typedef enum logic [2:0] {
    CPL_SUCCESS     = 3'd0,   // SC
    CPL_UNSUPPORTED = 3'd1,   // UR
    CPL_RETRY       = 3'd2,   // CRS
    CPL_ABORT       = 3'd4    // CA
  } cpl_status_e;

  typedef struct packed {
    logic [7:0] bus;
    logic [4:0] device;
    logic [2:0] func;
  } pcie_id_t;

  typedef logic [9:0]  tlp_tag_t;
  typedef logic [10:0] tlp_dwords_t;   // 0 to 1024
  typedef logic [12:0] tlp_bytes_t;    // 0 to 4096

  // Fields that a kind does not have are 0 where a TLP is sent and of any value where it is received.
  typedef struct packed {
    tlp_kind_e   kind;
    // of requests
    logic [2:0]  bar;            // received: the base address register that was hit, 0 to 5; 7: none. Sent: 0
    logic [7:0]  func;           // received: the function that is asked. Sent: 0
    addr_t       addr;           // byte address on the bus, a multiple of 4
    logic [3:0]  last_be;        // byte enables of the last dword, 0 if there is one only
    logic [3:0]  first_be;       // byte enables of the first dword, bit 0 for the byte at `addr`
    // of completions
    pcie_id_t    completer_id;
    cpl_status_e status;
    tlp_bytes_t  byte_count;     // bytes left of the request, those of this completion included: 1 to 4096
    logic [6:0]  lower_addr;     // of the first byte that is enabled
    // of all
    tlp_dwords_t length;         // dwords of the payload, of a read those asked for: 1 to 1024; 0 for a completion or message without data
    pcie_id_t    requester_id;
    tlp_tag_t    tag;
    logic [2:0]  tc;             // traffic class
    logic [2:0]  attr;           // {ID-based ordering, relaxed ordering, no snoop}
    logic        poisoned;       // EP: the payload is known to be wrong
  } tlp_header_t;

  // Functions of a device: 0 is the device, 1 its network card, if it has one.
  localparam int unsigned FUNCTIONS_MAX = 2;
  localparam int unsigned NETWORK_CARD = 1;
  typedef logic [$clog2(FUNCTIONS_MAX)-1:0] function_t;

  // Host memory as the functions of a device see it: each has IO virtual addresses of its own, below 2^63. With more than one function the
  // highest bit of an address at the plane's port says whose it is; with one it is a bit as the others.
  function automatic function_t function_of(addr_t addr, int unsigned functions);
    return functions > 1 && addr[ADDR_W-1];
  endfunction

  function automatic addr_t bus_address(addr_t addr, int unsigned functions);
    return functions > 1 ? {1'b0, addr[ADDR_W-2:0]} : addr;
  endfunction

  // What configuration space says of a function. May change at any time.
  typedef struct packed {
    pcie_id_t   id;              // captured with the last configuration write
    logic [2:0] mps;             // largest payload: 128 << mps bytes, 0 to 5
    logic [2:0] mrrs;            // largest read request: 128 << mrrs bytes, 0 to 5
    logic       rcb_128;         // read completion boundary of the root complex: 64 or 128 bytes
    logic       extended_tags;   // tags of 8 bits may be used, else of 5 bits
    logic       memory_space;    // memory requests are answered
    logic       bus_master;      // requests may be sent
    logic       msix_enable;
    logic       msix_mask;       // function mask
  } pcie_config_t;
  typedef pcie_config_t [FUNCTIONS_MAX-1:0] pcie_configs_t;

  function automatic tlp_bytes_t size_bytes(logic [2:0] encoded);
    return encoded >= 3'd5 ? 13'd4096 : 13'd128 << encoded;
  endfunction

  // Flow control for what is sent, of one class: all credits that the other side has granted since the link came up, modulo the width.
  // The plane counts what it has used.
  typedef struct packed {
    logic        headers_endless;
    logic        data_endless;
    logic [11:0] headers;
    logic [15:0] data;           // units of 16 bytes
  } tlp_credit_t;

  typedef struct packed {
    tlp_credit_t posted;
    tlp_credit_t non_posted;
    tlp_credit_t completion;
  } tlp_credits_t;

  // Credits of data that a payload takes.
  function automatic logic [8:0] data_credits(tlp_dwords_t dwords);
    return 9'((dwords + 11'd3) >> 2);
  endfunction

  // Bytes of the first enabled one to the last enabled one of a request, 1 if none is enabled (table 2-38).
  function automatic tlp_bytes_t be_first(logic [3:0] first_be);   // number of the first enabled byte
    return first_be[0] ? 13'd0 : first_be[1] ? 13'd1 : first_be[2] ? 13'd2 : first_be[3] ? 13'd3 : 13'd0;
  endfunction

  function automatic tlp_bytes_t be_behind(logic [3:0] be);        // bytes of a dword behind the last enabled one
    return be[3] ? 13'd0 : be[2] ? 13'd1 : be[1] ? 13'd2 : be[0] ? 13'd3 : 13'd3;
  endfunction

  function automatic tlp_bytes_t be_byte_count(tlp_dwords_t dwords, logic [3:0] first_be, logic [3:0] last_be);
    return (13'(dwords) << 2) - be_first(first_be) - be_behind(dwords == 11'd1 ? first_be : last_be);
  endfunction

  // ---- the completer ----
  localparam int unsigned BARS = 6;
  typedef memory_range_t [BARS-1:0] bar_map_t;   // per BAR: its size (0: there is none) and where its addresses begin in the device
  typedef bar_map_t [FUNCTIONS_MAX-1:0] bar_maps_t;

  // Where a request that is answered goes.
  typedef enum logic [1:0] {
    PLACE_REGISTERS = 2'd0,
    PLACE_MEMORY    = 2'd1,
    PLACE_NOWHERE   = 2'd2    // it is refused: UR
  } place_e;

  // A request with its address in the device.
  typedef struct packed {
    place_e      place;
    function_t   func;
    logic [2:0]  bar;
    addr_t       addr;
    tlp_dwords_t dwords;
    logic [3:0]  first_be;
    logic [3:0]  last_be;
    pcie_id_t    requester_id;
    tlp_tag_t    tag;
    logic [2:0]  tc;
    logic [2:0]  attr;
  } host_request_t;

  // The part of a read that one completion answers.
  typedef struct packed {
    place_e      place;
    function_t   func;
    logic        first;        // of its request
    logic        none;         // no byte is enabled: a read that only waits for the writes before it
    addr_t       addr;
    tlp_dwords_t dwords;
    tlp_bytes_t  byte_count;
    logic [6:0]  lower_addr;
    pcie_id_t    requester_id;
    tlp_tag_t    tag;
    logic [2:0]  tc;
    logic [2:0]  attr;
  } read_piece_t;

  function automatic tlp_header_t completion_of(read_piece_t piece, pcie_configs_t settings, cpl_status_e status);
    tlp_header_t header;
    header              = '0;
    header.kind         = status == CPL_SUCCESS ? TLP_COMPLETION_DATA : TLP_COMPLETION;
    header.func         = 8'(piece.func);   // within the device: 0 where it leaves
    header.completer_id = settings[piece.func].id;
    header.status       = status;
    header.byte_count   = piece.byte_count;
    header.lower_addr   = piece.lower_addr;
    header.length       = status == CPL_SUCCESS ? piece.dwords : '0;
    header.requester_id = piece.requester_id;
    header.tag          = piece.tag;
    header.tc           = piece.tc;
    header.attr         = piece.attr;
    return header;
  endfunction

  // It is the last one of its request.
  function automatic logic completion_ends(tlp_header_t header);
    return header.kind == TLP_COMPLETION || 13'({header.length, 2'b00}) - 13'(header.lower_addr[1:0]) >= header.byte_count;
  endfunction

  typedef struct packed {
    logic reads;              // answered, or begun to be
    logic writes;
    logic refused_reads;      // and other non-posted requests: UR
    logic refused_writes;     // for no BAR, over a boundary of 4 KiB, or while memory space is off: dropped
    logic poisoned_writes;    // dropped
    logic damaged_writes;     // by the block: dropped
    logic messages;           // dropped
    logic read_errors;        // an access in the device failed: CA
    logic write_errors;       // likewise, of a write: nobody is told
  } completer_events_t;

  // ---- the requester ----
  // What is enabled in a beat of a write: a run of bytes, or one dword with any byte enables. Dwords count from the lowest lane.
  typedef struct packed {
    logic       last;          // of its burst
    logic       empty;         // nothing is enabled
    logic       bottom;        // a run that begins with the beat's first byte
    logic       ends;          // no TLP goes on behind it
    logic [3:0] first;         // dword
    logic [4:0] dwords;
    logic [3:0] first_be;
    logic [3:0] final_be;
    addr_t      addr;          // of the beat
  } beat_run_t;

  // A write TLP that is stored whole, and what it means for the burst that it is part of.
  typedef struct packed {
    logic        none;         // no TLP: the burst has nothing more that is enabled
    logic        ends;         // the burst, which is answered when this one has left
    addr_t       addr;
    tlp_dwords_t dwords;
    logic [3:0]  first_be;
    logic [3:0]  last_be;
  } write_tlp_t;

  // AR of a burst, without its ID.
  typedef struct packed {
    addr_t      addr;
    logic [7:0] len;           // beats - 1
  } read_burst_t;

  // A part of a read burst, for one TLP.
  typedef struct packed {
    logic        ends;         // the burst
    addr_t       addr;
    tlp_dwords_t dwords;
  } read_part_t;

  // Writes and interrupts that have not left, and how many leave in a cycle.
  typedef logic [6:0] posted_count_t;

  // Why a read of host memory has failed.
  typedef enum logic [2:0] {
    FAULT_NONE        = 3'd0,
    FAULT_UNSUPPORTED = 3'd2,   // UR, or CRS
    FAULT_ABORT       = 3'd3,   // CA
    FAULT_POISONED    = 3'd4,   // the completion's data is wrong
    FAULT_MALFORMED   = 3'd5,   // a completion that does not fit its request
    FAULT_TIMEOUT     = 3'd6    // no completion came, or a function-level reset ended it
  } fault_e;

  typedef struct packed {
    logic writes;               // TLPs sent
    logic reads;
    logic writes_off;           // TLPs not sent: bus mastering is off, or reset
    logic reads_off;
    logic unsupported;          // completions: UR or CRS
    logic aborts;               // CA
    logic poisoned;
    logic malformed;
    logic timeouts;             // reads ended without a completion
    logic unexpected;           // completions for no request: dropped
    logic late;                 // completions for a request that was given up: dropped
  } requester_events_t;

  // ---- MSI-X ----
  localparam logic [11:0] MSIX_TABLE    = 12'h000;   // 16 bytes a vector
  localparam logic [11:0] MSIX_PBA      = 12'h800;   // a bit a vector
  localparam logic [11:0] MSIX_INTERVAL = 12'hc00;   // 4 bytes a vector: least cycles between two of its interrupts
  localparam int unsigned MSIX_VECTORS_MAX = 128;
  typedef logic [$clog2(MSIX_VECTORS_MAX)-1:0] msix_vector_t;
  localparam int unsigned MSIX_INTERVAL_W = 24;

  typedef struct packed {
    logic sent;
    logic merged;               // a request for a vector that is pending already
  } msix_events_t;

  typedef struct packed {
    completer_events_t completer;
    requester_events_t requester;
    msix_events_t      msix;
    logic              resets;  // function-level resets done
    msix_events_t      network_msix;     // of the network card
    logic              network_resets;
  } pcie_events_t;
endpackage
