// SPDX-License-Identifier: Apache-2.0

// Types of the memory plane. Device addresses are byte addresses, ADDR_W bits; a region's RDMA address is its device address.
package memory_pkg;
  localparam int unsigned ADDR_W = 40;
  typedef logic [ADDR_W-1:0] addr_t;

  typedef enum logic [1:0] {
    AXI_OKAY   = 2'b00,
    AXI_EXOKAY = 2'b01,
    AXI_SLVERR = 2'b10,
    AXI_DECERR = 2'b11
  } axi_resp_e;

  // One transfer between a byte stream and memory, from any address, of any length; cut into bursts by the DMA units.
  // length 0 is allowed: no memory access, and for a write no beat is taken from the stream.
  typedef struct packed {
    addr_t       addr;
    logic [31:0] length;  // bytes
  } dma_cmd_t;

  // How a transfer ended; one for each dma_cmd_t, in order. For a write: all of it is visible to every reader.
  typedef struct packed {
    logic error;          // some beat of it was answered with SLVERR or DECERR
  } dma_done_t;

  // One burst of a transfer, as the burst walker cuts it.
  typedef struct packed {
    addr_t       addr;    // of its first byte: unaligned only in the first burst of a transfer
    logic [7:0]  len;     // beats - 1, as AxLEN
    logic        first;   // of its transfer
    logic        last;    // of its transfer
    logic        none;    // the transfer has length 0: no burst at all
    logic [6:0]  shift;   // byte lane of the transfer's first byte
    logic [6:0]  tail;    // bytes - 1 in the last beat of the transfer's byte-0 aligned packet
    logic [6:0]  lane;    // byte lane of the transfer's last byte
    logic        wraps;   // that last beat lies in two beats of memory
  } dma_burst_t;

  // Bits by which axi_mux extends the IDs of its N masters.
  function automatic int unsigned axi_mux_index_w(int unsigned n);
    return n > 1 ? $clog2(n) : 1;
  endfunction
endpackage
