// SPDX-License-Identifier: Apache-2.0

// What follows from the sizes of the device (device_pkg, made from its description file): where things are in memory, and who is a
// master of the fabric.
package shell_pkg;
  import memory_pkg::*;
  import rpc_pkg::*;
  import device_pkg::SOCKETS;
  import device_pkg::RPC_MEMORY;
  import device_pkg::ECC;
  import device_pkg::SOCKET_MEMORIES;
  import device_pkg::DRAM_BYTES;
  import device_pkg::IMAGES;
  import device_pkg::IMAGE_SLOTS;
  import device_pkg::IMAGE_SLOT_BYTES;
  import device_pkg::PCIE;
  import device_pkg::COPY;
  import device_pkg::PCIE_HOST_BYTES;

  // The addresses of each memory begin 2^MEMORY_STRIDE_W behind those of the one before.
  localparam int unsigned MEMORY_STRIDE_W = 36;

  // Host memory is the memory behind those of the device: the slowest one. An IO virtual address has at most 57 bits; with bit 63 set it is
  // the address in the device.
  localparam int unsigned HOST_MEMORY = device_pkg::MEMORIES;
  localparam memory_range_t HOST_RANGE = '{base: addr_t'(1) << (ADDR_W - 1), size: addr_t'(1) << (ADDR_W - 1)};

  function automatic memory_range_t memory_range(int unsigned memory);
    if (PCIE && memory == HOST_MEMORY) return HOST_RANGE;
    return '{base: addr_t'(memory) << MEMORY_STRIDE_W, size: addr_t'(1) << MEMORY_STRIDE_W};
  endfunction

  function automatic memory_map_t memory_map();
    memory_map_t map;
    for (int unsigned i = 0; i < MAX_TARGETS; i++) map[i] = memory_range(i);
    return map;
  endfunction

  // In the memory that calls use: the load and the description of the device, messages of the RPC engine, regions.
  localparam addr_t DESCRIPTION_BASE = addr_t'(RPC_MEMORY) << MEMORY_STRIDE_W;
  localparam addr_t CTRL_BASE = DESCRIPTION_BASE + page_addr(page_t'(add_pages('0, region_size_t'(rpc_pkg::LOAD_BYTES) + region_size_t'(description_pkg::BYTES))));

  // At its end: images of kernels that come by the network, if the device takes them. No master but theirs reaches it.
  localparam addr_t STORE_BYTES = addr_t'(IMAGE_SLOTS) * addr_t'(IMAGE_SLOT_BYTES);
  localparam addr_t STORE_BASE = DESCRIPTION_BASE + addr_t'(DRAM_BYTES) - STORE_BYTES;

  // Before these: what the host of the slot takes by itself. The device gives it to nobody.
  localparam addr_t HOSTS_BYTES = addr_t'(PCIE_HOST_BYTES);
  localparam addr_t HOSTS_BASE = STORE_BASE - HOSTS_BYTES;

  // Masters of the fabric: the RPC engine, what clears memory, the sockets, the store of images if there is one, the host if the device is in
  // a slot, the copy engine if there is one, and the transport's: atomics, and one for each memory.
  localparam int unsigned RPC_MASTER = 0;
  localparam int unsigned CLEAR_MASTER = 1;
  localparam int unsigned SOCKET_MASTER = 2;
  localparam int unsigned IMAGE_MASTER = SOCKET_MASTER + SOCKETS;
  localparam int unsigned HOST_MASTER = IMAGE_MASTER + 32'(IMAGE_SLOTS != 0);
  localparam int unsigned COPY_MASTER = HOST_MASTER + 32'(PCIE);
  localparam int unsigned ROCE_MASTER = COPY_MASTER + 32'(COPY);
  localparam int unsigned MASTER_ID_W = 4;

  function automatic int unsigned targets(int unsigned memories);   // those of the fabric: memories of the device, and of the host
    return memories + 32'(PCIE);
  endfunction

  function automatic int unsigned masters(int unsigned memories);
    return ROCE_MASTER + 1 + targets(memories);
  endfunction

  // Which memories each of them reaches: sockets as the description says; the host the first one, by a BAR; those of the transport have one
  // each, but for its atomics.
  function automatic logic reaches(int unsigned master, int unsigned memory);
    if (master == IMAGE_MASTER && IMAGE_SLOTS != 0) return memory == RPC_MEMORY;
    if (master == HOST_MASTER && PCIE) return memory == 0;
    if (master < SOCKET_MASTER && PCIE) return memory != HOST_MEMORY;
    if (master >= SOCKET_MASTER && master < IMAGE_MASTER) return SOCKET_MEMORIES[master-SOCKET_MASTER][memory];
    return master <= ROCE_MASTER || master == ROCE_MASTER + 1 + memory;
  endfunction

  // Sockets that can hold an image that comes by the network.
  function automatic logic [SOCKETS-1:0] takes_images();
    logic [SOCKETS-1:0] takes;
    for (int unsigned i = 0; i < SOCKETS; i++) takes[i] = IMAGES[i] > 1;
    return takes;
  endfunction

  // The port of a memory: with ECC its check bits are above the data, and axi_ecc has a bit of the ID.
  function automatic int unsigned fabric_id_w(int unsigned memories);
    return MASTER_ID_W + axi_mux_index_w(masters(memories));
  endfunction

  function automatic int unsigned dram_id_w(int unsigned memories);
    return fabric_id_w(memories) + 32'(ECC);
  endfunction

  function automatic int unsigned dram_data_w(int unsigned data_w);
    return ECC ? ecc_pkg::ecc_beat_w(data_w) : data_w;
  endfunction
endpackage
