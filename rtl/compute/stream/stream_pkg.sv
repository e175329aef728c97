// SPDX-License-Identifier: Apache-2.0

// Types of streaming sockets (docs/reference/stream-sockets.md).
package stream_pkg;
  localparam int unsigned FRAMES_INSIDE = 64;   // frames that a kernel may have of each direction
  localparam int unsigned MIN_FRAME = 14;       // bytes: an Ethernet header

  // Why a kernel was cut off: the register STATUS.
  typedef enum logic [2:0] {
    CUT_NONE,
    CUT_LATE,        // a frame has not left within the limit
    CUT_EXTRA,       // a frame left that had not been given to the kernel
    CUT_LONG,        // a frame left that is longer than the card's frames can be, or did not end
    CUT_MALFORMED,   // a beat has bytes missing, or a frame is shorter than an Ethernet header
    CUT_RESTART      // by COMMAND.restart
  } cut_e;

  // What a kernel says of itself; constant.
  typedef struct packed {
    logic [15:0][7:0] name;            // its first character lowest
    logic [15:0]      version_major;
    logic [15:0]      version_minor;
    logic [31:0]      block_type;      // of its registers; 0: it has none
    logic [31:0]      block_version;
    logic             keeps_checksums; // a frame that came with right checksums leaves with right ones
    logic             keeps_flow;      // addresses and ports of received frames stay as they are
  } identity_t;

  // What happened in one direction, in this cycle.
  typedef struct packed {
    logic       given;     // a frame to the kernel
    logic       round;     // a frame went round it
    logic       dropped;   // the kernel has dropped a frame
    logic [6:0] lost;      // frames in a kernel that was cut off
  } guard_events_t;

  typedef struct packed {
    logic        rx;        // received frames go through the kernel,
    logic        tx;        // and frames that are sent
    logic [15:0] limit;     // cycles in which the oldest frame must leave the kernel; 0: no limit
  } settings_t;
endpackage
