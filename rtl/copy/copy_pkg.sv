// SPDX-License-Identifier: Apache-2.0

// Types of the copy engine (docs/reference/copy.md).
package copy_pkg;
  import memory_pkg::*;

  localparam int unsigned DESCRIPTOR_BYTES = 32;
  localparam int unsigned COMPLETION_BYTES = 16;
  localparam int unsigned RING_LOG_MIN = 5;            // descriptors, and completions, of a ring: 2^5 to 2^15
  localparam int unsigned RING_LOG_MAX = 15;
  localparam int unsigned BATCH = 2 ** RING_LOG_MIN;   // descriptors that one read takes at most: none crosses a multiple of it

  // A number of descriptors or completions since the queue began. Its low bits are a place in the ring.
  typedef logic [RING_LOG_MAX:0] index_t;
  typedef logic [RING_LOG_MAX-1:0] place_t;

  // A descriptor in memory: bit 0 is bit 0 of the byte at its address.
  typedef struct packed {
    logic [31:0] reserved;
    logic [31:0] tag;
    logic [29:0] no_flags;     // 0, as `reserved`
    logic        interrupts;   // behind the completion
    logic        report;       // by a completion
    logic [31:0] length;
    logic [63:0] destination;
    logic [63:0] source;
  } copy_descriptor_t;

  typedef enum logic [1:0] {
    COPY_OK          = 2'd0,
    COPY_SOURCE      = 2'd1,   // a read failed
    COPY_DESTINATION = 2'd2,   // a write failed
    COPY_DESCRIPTOR  = 2'd3    // the descriptor is none
  } copy_status_e;

  typedef struct packed {
    logic [31:0]  tag;         // of the descriptor that reports
    copy_status_e status;      // the first error since the report before it
    logic         interrupts;
  } copy_outcome_t;

  // A completion in memory.
  typedef struct packed {
    logic         generation;  // 1 in the first pass of the ring, then 0, and so on
    logic [28:0]  zeros;
    copy_status_e status;
    logic [63:0]  none;
    logic [31:0]  tag;
  } copy_completion_t;

  // What the units of the engine pass on.
  typedef struct packed {
    logic         bad;         // nothing is copied
    logic         report;
    logic         interrupts;
    logic [31:0]  tag;
    logic [31:0]  length;
    addr_t        destination;
    addr_t        source;
  } copy_t;

  // A piece ends where the source has a multiple of this, if beats have 256 bits or more; else of fewer bytes: at least four of PIECE_BEATS are in
  // the buffer of the read engine, so that one can wait until it is whole while others come and go.
  localparam int unsigned PIECE_BYTES = 4096;
  localparam int unsigned PIECE_BEATS = 128;
  function automatic int unsigned piece_bytes(int unsigned data_w);
    return PIECE_BEATS * data_w / 8 < PIECE_BYTES ? PIECE_BEATS * data_w / 8 : PIECE_BYTES;
  endfunction

  typedef logic [$clog2(PIECE_BYTES):0] piece_size_t;

  // A part of a copy that is one burst to read.
  typedef struct packed {
    logic         bad;
    logic         last;        // of its copy
    logic         report;      // with the last one
    logic         interrupts;
    logic [31:0]  tag;
    piece_size_t  length;      // 0: nothing to read
    addr_t        destination;
  } copy_piece_t;

  typedef struct packed {
    addr_t       address;
    piece_size_t length;
  } copy_read_t;

  typedef struct packed {
    addr_t         address;
    logic          generation;
    copy_outcome_t outcome;
  } copy_report_t;

  // What a write command is for.
  typedef struct packed {
    logic          completion; // else a piece
    logic          last;       // of its copy
    logic          report;
    copy_outcome_t outcome;    // of a piece: what is known before it is written
  } copy_begun_t;

  // Where the packets go that are read, and where from those come that are written, in the order of the write commands.
  typedef enum logic [1:0] {
    MOVE_WRITE,                // read and written
    MOVE_FETCHED,              // descriptors
    MOVE_DROP,                 // the read failed
    MOVE_REPORT                // a completion
  } move_e;

  // The way of a packet from the lanes of its source to those of its destination: see copy_steer.
  typedef struct packed {
    logic [5:0] amount;        // source lane - destination lane - 1, modulo the lanes
    logic       prime;         // the source lane is above that of the destination
    logic [7:0] beats;         // that it has there
    logic       half;          // of descriptors: the last beat has an odd number of them
  } copy_shift_t;

  typedef struct packed {
    move_e        kind;
    copy_shift_t  shift;
    logic         generation;  // of a completion
    copy_status_e status;
    logic [31:0]  tag;
  } copy_move_t;

  // Why the queue has stopped.
  typedef enum logic [2:0] {
    STOP_NONE       = 3'd0,
    STOP_SETTINGS   = 3'd1,    // a size that no ring has
    STOP_PRODUCER   = 3'd2,    // further ahead than the ring is long
    STOP_FETCH      = 3'd3,    // descriptors could not be read
    STOP_COMPLETION = 3'd4,    // a completion could not be written
    STOP_DESCRIPTOR = 3'd5,    // a descriptor is none
    STOP_RESET      = 3'd6     // the function was reset
  } stop_e;

  typedef struct packed {
    logic [6:0]  vector;
    logic [3:0]  completions_log;
    addr_t       completions;
    logic [3:0]  descriptors_log;
    addr_t       descriptors;
  } copy_settings_t;

  typedef struct packed {
    stop_e  stopped;
    logic   running;           // from the start until the last of it has ended
    index_t consumer;          // descriptors whose places are free
    index_t reported;          // completions that were written
  } copy_state_t;

  typedef struct packed {
    piece_size_t bytes;        // given to memory in this cycle
    logic        copied;       // a copy has ended,
    logic        failed;       // with an error
  } copy_events_t;
endpackage
