// SPDX-License-Identifier: Apache-2.0

// Types of the link between the device and the switch at its port: flow control and VLAN.
package link_pkg;
  import packet_pkg::*;

  // ---- MAC control (IEEE 802.3, clause 31 and annexes 31B, 31D) ----
  localparam mac_t MAC_CONTROL = 48'h0180c2_000001;
  localparam logic [15:0] ETHERTYPE_CONTROL = 16'h8808;
  localparam logic [15:0] OPCODE_PAUSE = 16'h0001;
  localparam logic [15:0] OPCODE_PFC = 16'h0101;

  typedef struct packed {
    eth_hdr_t         eth;
    logic [15:0]      opcode;
    logic [15:0]      operand;     // PAUSE: its quanta. PFC: the priorities that it is about, priority 0 in the lowest bit
    logic [7:0][15:0] quanta;      // PFC: of each priority, priority 0 first
  } mac_control_t;

  // Frames to 01-80-C2-00-00-0X are for the next station: no bridge passes them on, and they have no tag (IEEE 802.1Q, 8.6.3).
  localparam logic [43:0] MAC_NEXT_STATION = 44'h0180c2_00000;

  // ---- settings ----
  typedef struct packed {
    logic        pause;            // PAUSE frames have effect,
    logic        pfc;              // so have PFC frames
    logic [17:0] quanta_per_cycle; // in 1/65536
    logic [9:0]  limit_ms;         // 0: none
  } flow_settings_t;

  typedef struct packed {
    logic [2:0] roce;
    logic [2:0] other;
  } priorities_t;

  typedef struct packed {
    logic        enable;
    logic        untagged;         // frames without a tag, or with a priority tag, are taken
    logic [11:0] vid;
  } vlan_settings_t;

  typedef struct packed {
    flow_settings_t flow;
    priorities_t    priorities;
    vlan_settings_t vlan;
  } link_settings_t;
endpackage
