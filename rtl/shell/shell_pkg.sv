// SPDX-License-Identifier: Apache-2.0

// The one configuration of a device: every size that is not DATA_W. Parameters come down from here through nacelle_shell.
package shell_pkg;
  localparam int unsigned VERSION = 32'h0001_0000;        // major 16, minor 16
  localparam int unsigned CLOCK_HZ = 250_000_000;

  // Network
  localparam int unsigned MAX_FRAME = 4096 + 128;         // bytes, without FCS

  // Transport
  localparam int unsigned QPS = 16;                       // connections at once
  localparam int unsigned MRS = 256;                      // memory regions at once
  localparam int unsigned SQ_DEPTH = 32;                  // sends outstanding a QP
  localparam int unsigned RQ_DEPTH = 4;                   // receives outstanding a QP

  // Memory
  localparam longint unsigned DRAM_BYTES = 64'd1 << 30;
  localparam int unsigned DRAM_ID_W = 8;

  // Compute
  localparam int unsigned SOCKETS = 2;
  localparam int unsigned MAX_REGIONS = 32;               // a connection
endpackage
