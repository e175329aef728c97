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
endpackage
