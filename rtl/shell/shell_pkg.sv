// SPDX-License-Identifier: Apache-2.0

// The one configuration of a device: every size that is not DATA_W. Parameters come down from here through nacelle_shell.
package shell_pkg;
  import memory_pkg::*;
  import rpc_pkg::*;

  localparam logic [31:0] VERSION = 32'h0000_0001;        // major 16 bits, minor 16 bits
  localparam int unsigned CLOCK_HZ = 250_000_000;

  // Network
  localparam int unsigned MAX_FRAME = 4096 + 128;         // bytes, without FCS

  // Transport
  localparam int unsigned DEFAULT_QPS = 256;              // connections at once, if the shell is not asked for another number
  localparam int unsigned MRS = 1024;                     // memory regions at once
  localparam int unsigned SQ_DEPTH = 32;                  // sends outstanding a QP
  localparam int unsigned RQ_DEPTH = 16;                  // receives outstanding a QP
  localparam int unsigned RD_DEPTH = 8;                   // READs and atomics outstanding a QP, of each side

  // Compute: the kernel in each socket (socket_kernel has the names). Functions of two sockets must not overlap.
  localparam int unsigned SOCKETS = 3;
  localparam string KERNELS[SOCKETS] = '{"increment", "matmul", "traffic"};
  localparam int unsigned MAX_REGIONS = 32;               // a connection

  // Clients of the transport: the RPC engine, software through the management port, and a socket whose kernel starts RDMA itself
  localparam int unsigned CLIENTS = 3;
  localparam logic [CLIENTS-1:0][15:0] CQ_DEPTH = {16'd4096, 16'd256, 16'd8192};  // completions that each can be owed, the last first
  localparam int unsigned RPC_CLIENT = 0;
  localparam int unsigned MANAGEMENT_CLIENT = 1;
  localparam int unsigned TRAFFIC_CLIENT = 2;
  localparam int unsigned TRAFFIC_SOCKET = 2;
  localparam int unsigned RDMA_CLIENT[SOCKETS] = '{0, 0, TRAFFIC_CLIENT};  // of each socket; 0: its kernel starts no RDMA

  // Memory: messages of the RPC engine first, regions behind
  localparam longint unsigned DRAM_BYTES = 64'd1 << 30;
  localparam addr_t CTRL_BASE = '0;

  // Masters of the fabric: the transport's three, the RPC engine, the sockets, and what clears memory
  localparam int unsigned MASTERS = 5 + SOCKETS;
  localparam int unsigned CLEAR_MASTER = 4 + SOCKETS;
  localparam int unsigned MASTER_ID_W = 4;
  localparam int unsigned DRAM_ID_W = MASTER_ID_W + axi_mux_index_w(MASTERS);
endpackage
