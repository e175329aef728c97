// SPDX-License-Identifier: Apache-2.0

// Types of the memory plane. Device addresses are byte addresses, ADDR_W bits, 64 or fewer (widths_pkg); a region's RDMA address is its device address.
// A device has one memory or several, each a *target* of the fabric with its own port and its own range of addresses.
package memory_pkg;
  localparam int unsigned ADDR_W = widths_pkg::ADDR_W;
  typedef logic [ADDR_W-1:0] addr_t;

  // The size of a region, in bytes. Devices that never have a region of 2^SIZE_SHORT_W bytes or more keep the low bits only: see size_w().
  localparam int unsigned SIZE_W = 40;
  localparam int unsigned SIZE_SHORT_W = 32;
  typedef logic [SIZE_W-1:0] region_size_t;

  function automatic int unsigned size_w(bit long_);
    return long_ ? SIZE_W : SIZE_SHORT_W;
  endfunction

  // The addresses of a memory: `size` a power of two, `base` a multiple of it.
  typedef struct packed {
    addr_t base;
    addr_t size;
  } memory_range_t;

  function automatic logic in_range(memory_range_t range, addr_t addr);
    return (addr & ~(range.size - 1'b1)) == range.base;
  endfunction

  // Number of a memory. `target_of` decodes a device address; an address outside of all memories gives the first one. It is evaluated where
  // an access is admitted; from there the target accompanies the address.
  localparam int unsigned MAX_TARGETS = 4;
  typedef logic [1:0] target_t;
  typedef logic [MAX_TARGETS-1:0] targets_t;   // one bit per memory
  typedef memory_range_t [MAX_TARGETS-1:0] memory_map_t;

  function automatic target_t target_of(memory_map_t map, int unsigned targets, addr_t addr);
    target_t target;
    target = '0;
    for (int unsigned i = 1; i < MAX_TARGETS; i++) if (i < targets && in_range(map[i], addr)) target |= target_t'(i);
    return target;
  endfunction

  // True if `first` to `last` lies in one memory, or in none.
  function automatic logic in_one_target(memory_map_t map, int unsigned targets, addr_t first, addr_t last);
    logic one;
    one = 1'b1;
    if (targets > 1) begin
      for (int unsigned i = 0; i < MAX_TARGETS; i++) begin
        if (i < targets && (in_range(map[i], first) != in_range(map[i], last) || (first < map[i].base) != (last < map[i].base))) one = 1'b0;
      end
    end
    return one;
  endfunction

  typedef enum logic [1:0] {
    AXI_OKAY   = 2'b00,
    AXI_EXOKAY = 2'b01,
    AXI_SLVERR = 2'b10,
    AXI_DECERR = 2'b11
  } axi_resp_e;

  typedef struct packed {
    logic corrected;       // beats of memory in which the device's ECC has corrected a flipped bit
    logic uncorrectable;   // beats read, and writes, that memory answered with SLVERR
  } memory_events_t;

  // The key of the region under which memory is accessed (an L_Key or R_Key of roce_pkg; 0: the device's own access).
  typedef logic [31:0] mr_key_t;

  // One transfer between a byte stream and memory, from any address, of any length; split into bursts by the DMA units. Length 0 is
  // allowed: no memory access, and for a write no beat is taken from the stream.
  typedef struct packed {
    target_t     target;  // the memory that contains `addr`, decoded when the access was admitted
    mr_key_t     key;
    addr_t       addr;
    logic [31:0] length;  // bytes
  } dma_cmd_t;

  // The space that a packet occupies in the store of a write lane (dma_write_lanes), in units of 256 bytes.
  localparam int unsigned WRITE_UNIT = 256;
  localparam int unsigned WRITE_UNITS_MAX = 4096 / WRITE_UNIT;
  typedef struct packed {
    target_t    target;
    logic [4:0] units;
  } write_size_t;

  function automatic write_size_t write_size(target_t target, logic [15:0] length);
    return '{target: target, units: length[12:8] + 5'(|length[7:0])};
  endfunction

  // The result of a transfer; one for each dma_cmd_t, in order. For a write: all of it is visible to every reader.
  typedef struct packed {
    logic error;          // at least one beat was answered with SLVERR or DECERR
  } dma_done_t;

  // One burst of a transfer, from the burst walker.
  typedef struct packed {
    addr_t       addr;    // of its first byte: unaligned only in the first burst of a transfer
    logic [7:0]  len;     // beats - 1, as AxLEN
    logic        first;   // of its transfer
    logic        last;    // of its transfer
    logic        none;    // the transfer has length 0: no burst
    logic [6:0]  shift;   // byte lane of the transfer's first byte
    logic [6:0]  tail;    // bytes - 1 in the last beat of the transfer's byte-0 aligned packet
    logic [6:0]  lane;    // byte lane of the transfer's last byte
    logic        wraps;   // that last beat spans two beats of memory
  } dma_burst_t;

  // Bits by which axi_mux, and thus axi_crossbar, extends the IDs of its N masters.
  function automatic int unsigned axi_mux_index_w(int unsigned n);
    return n > 1 ? $clog2(n) : 1;
  endfunction
endpackage
