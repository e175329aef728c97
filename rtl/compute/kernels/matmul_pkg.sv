// SPDX-License-Identifier: Apache-2.0

// Types of the matrix multiplication kernel.
package matmul_pkg;
  import memory_pkg::*;

  localparam logic [31:0] ARGS_MAGIC = 32'h4d4d_414e;
  localparam int unsigned ARGS_BYTES = 64;
  localparam logic [31:0] DTYPE_INT32 = 32'd0;
  localparam logic [31:0] DTYPE_FLOAT32 = 32'd1;

  // Region 0, little-endian: the first field is the last here.
  typedef struct packed {
    logic [319:0] reserved;   // zero
    logic [31:0]  flags;      // zero
    logic [31:0]  k;
    logic [31:0]  n;
    logic [31:0]  m;
    logic [31:0]  dtype;
    logic [31:0]  magic;
  } args_t;

  // C (m x n) = A (m x k) * B (k x n), checked.
  typedef struct packed {
    logic        float32;
    addr_t       a;
    addr_t       b;
    addr_t       c;
    logic [31:0] m;
    logic [31:0] n;
    logic [31:0] k;
  } shape_t;

  // Cells of the array, and the columns that each of them works on in turn: their number covers the adder's latency, so
  // that a cell starts a multiplication in every cycle.
  localparam int unsigned SLOTS = 8;
  localparam int unsigned SLOT_W = $clog2(SLOTS);
  typedef logic [SLOT_W-1:0] slot_t;

  // What the array does with the values that enter in this cycle. Cell (r, c) does it r + c cycles later.
  typedef struct packed {
    logic  valid;
    logic  first;    // of its sum
    logic  last;     // of its tile
    logic  bank;     // which half of the accumulators
    slot_t slot;
  } step_t;

  // Where bytes from memory go.
  typedef enum logic [1:0] {
    TO_ARGS,
    TO_A,
    TO_B
  } place_e;

  typedef struct packed {
    dma_cmd_t   cmd;
    place_e     place;
    logic [3:0] row;      // of the A chunk
    logic       last;     // with it the A chunk is complete
  } fetch_t;
endpackage
