// SPDX-License-Identifier: Apache-2.0

// Registers of a socket (socket.rdl), a page of 4 KiB: up to 0x0ff those of the socket, from 0x110 on those of the kernel (`kernel`, same
// offset). The words between say what block the kernel's registers are; the socket answers them, so that the chain of blocks can be
// followed past any kernel.
// One access at a time, 2 cycles. One that no register of the socket has is answered with DECERR. If the kernel does not respond within
// KERNEL_CYCLES, or is reset during the access, the response is SLVERR, and it is not accessed again until its reset.
module socket_registers
  import memory_pkg::*;
  import compute_pkg::*;
  import socket_regs_pkg::*;
  import roce_pkg::*;
  import datagrams_pkg::*;
#(
    parameter int unsigned CONNECTIONS = 0,      // 0: without the registers of its peers: they read as 0, a write is answered with SLVERR
    parameter bit          DATAGRAMS = 1'b0,     // the socket has a port for them
    parameter bit          REGISTERS = 1'b0,     // and one to the device's registers
    parameter int unsigned KERNEL_CYCLES = 256
) (
    input  logic             clk,
    input  logic             rst,
    input  logic             kernel_rst,
    axil_if.slave            ctrl,        // 12 bits of address count
    axil_if.master           kernel,
    input  kernel_identity_t identity,
    input  logic [7:0]       page,        // of this socket; constant
    input  logic [19:0]      next_block,  // behind the socket's and its kernel's block; constant
    input  logic             busy,
    input  logic             cut,
    input  logic             outstanding,
    input  logic [31:0]      jobs,
    input  logic [31:0]      last_cycles,
    input  logic [31:0]      timeouts,
    input  logic [31:0]      refused,
    output logic [11:0]      images_read_at,   // registers of images
    input  logic [31:0]      images_value,     // same cycle
    input  logic             images_readable,
    output logic             images_write,
    output logic [11:0]      images_write_at,
    output logic [31:0]      images_wdata,
    input  logic             images_writable,
    output datagram_settings_t datagrams,
    output logic [$clog2(COUNTS)-1:0] counter_at,  // of datagrams
    input  logic [31:0]      counter,              // same cycle
    output window_t          software_window,  // for RDMA that the kernel starts while no job runs
    output kernel_peers_t    peers,            // to which the kernel may connect
    input  logic [MAX_KERNEL_CONNECTIONS-1:0] connections,  // slots in use
    output logic             bus_read,         // registers of the device that the kernel may access
    output logic             bus_write,
    output logic             idle
);
  localparam logic [11:0] KERNEL_AT = cci_map_pkg::KERNEL_AT;
  localparam logic [11:0] KERNEL_HEADER = 12'hc;   // bytes
  localparam int unsigned WAIT_W = $clog2(KERNEL_CYCLES);
  localparam int unsigned PAGE_W = 12;
  localparam int unsigned WINDOW_W = 32;   // of a page number: the register has no more bits

  typedef enum logic [1:0] {
    IDLE,
    ASK,       // the kernel has not taken the access
    WAIT,      // nor answered it
    ANSWER
  } state_e;

  state_e            state_q;
  logic              known, described, to_kernel, write_q, take_read, take_write, answered, give_up, dead_q, addr_sent_q, data_sent_q;
  logic [11:0]       addr_q;
  logic [31:0]       data_q, value;
  logic [3:0]        strb_q;
  logic [WAIT_W-1:0] wait_q;
  axi_resp_e         resp_q, value_resp;
  logic [WINDOW_W-1:0] page_q, pages_q;
  logic              page_write, pages_write, peers_write;
  logic [3:0][31:0]  network_q;
  logic [7:0]        prefix_q;
  logic              peers_q;
  datagram_settings_t datagrams_q;

  // Whether the kernel answers it.
  function automatic logic of_kernel(logic [11:0] address);
    return address[11:8] != '0 && address[11:4] != KERNEL_AT[11:4];
  endfunction

  // Whether it is of images: see socket_swap.
  function automatic logic of_images(logic [11:0] address);
    return address inside {[AT_IMAGES : AT_IMAGE_DIGEST + 12'(4 * IMAGE_DIGEST_WORDS - 1)]};
  endfunction

  // Whether it is of the peers that the kernel may connect to.
  function automatic logic of_peers(logic [11:0] address);
    return address inside {[AT_PEER_NETWORK : AT_PEERS]};
  endfunction

  // Whether it is of datagrams.
  function automatic logic of_datagrams(logic [11:0] address);
    return address inside {[AT_DATAGRAM_PORT : AT_DATAGRAM_PACE], [AT_DATAGRAMS_RECEIVED : AT_DATAGRAMS_UNRESOLVED]};
  endfunction

  wire [11:0] read_at = {ctrl.araddr[11:2], 2'b00};
  wire [11:0] write_at = {ctrl.awaddr[11:2], 2'b00};
  assign described = identity.block_type != '0;
  assign known     = readable(read_at) || (described && read_at >= KERNEL_AT && read_at < KERNEL_AT + KERNEL_HEADER);
  assign to_kernel = take_write ? of_kernel(write_at) : of_kernel(read_at);

  always_comb begin
    unique case (read_at) inside
      AT_TYPE: value = BLOCK_TYPE;
      AT_VERSION: value = BLOCK_VERSION;
      AT_NEXT: value = 32'(described ? {page, KERNEL_AT} : next_block);
      AT_FUNCTIONS: value = 32'(identity.functions);
      [AT_NAME : AT_NAME + 12'(4 * NAME_WORDS - 1)]: value = identity.name[{read_at[3:2], 2'b00}+:4];
      [AT_FUNCTION_CODE : AT_FUNCTION_CODE + 12'(4 * FUNCTION_CODE_WORDS - 1)]: value = 32'(identity.function_code[read_at[4:2]]);
      AT_STATUS: value = 32'({outstanding, cut, busy});
      AT_JOBS: value = jobs;
      AT_LAST_CYCLES: value = last_cycles;
      AT_TIMEOUTS: value = timeouts;
      AT_REFUSED: value = refused;
      AT_RDMA_PAGE: value = page_q;
      AT_RDMA_PAGES: value = pages_q;
      AT_KERNEL_VERSION: value = {identity.version_major, identity.version_minor};
      [AT_IMAGES : AT_IMAGE_STATE]: value = images_value;
      [AT_PEER_NETWORK : AT_PEER_NETWORK + 12'(4 * PEER_NETWORK_WORDS - 1)]: value = network_q[2'd3 - read_at[3:2]];
      AT_PEERS: value = {peers_q, 23'd0, prefix_q};
      AT_CONNECTIONS: value = {8'd0, 8'(connections), 8'd0, 8'(CONNECTIONS)};
      AT_BUS: value = 32'({bus_write, bus_read});
      AT_DATAGRAM_PORT: value = DATAGRAMS ? {6'd0, datagrams_q.to, 7'd0, datagrams_q.enable, datagrams_q.port} : '0;
      AT_DATAGRAM_NETWORK: value = datagrams_q.network;
      AT_DATAGRAM_MASK: value = datagrams_q.mask;
      AT_DATAGRAM_PACE: value = 32'(datagrams_q.pace);
      [AT_DATAGRAMS_RECEIVED : AT_DATAGRAMS_UNRESOLVED]: value = counter;
      KERNEL_AT + AT_TYPE: value = identity.block_type;
      KERNEL_AT + AT_VERSION: value = identity.block_version;
      KERNEL_AT + AT_NEXT: value = 32'(next_block);
      default: value = '0;
    endcase
    value_resp = known ? AXI_OKAY : of_kernel(read_at) ? AXI_SLVERR : AXI_DECERR;
    if (!known) value = '0;
    if (known && of_images(read_at) && !images_readable) value_resp = AXI_SLVERR;
    if (take_write) begin
      value_resp = writable(write_at) ? AXI_OKAY : of_kernel(write_at) ? AXI_SLVERR : AXI_DECERR;
      if (writable(write_at) && of_images(write_at) && !images_writable) value_resp = AXI_SLVERR;
      if (of_peers(write_at) && CONNECTIONS == 0) value_resp = AXI_SLVERR;
      if (writable(write_at) && of_datagrams(write_at) && !DATAGRAMS) value_resp = AXI_SLVERR;
      if (write_at == AT_BUS && !REGISTERS) value_resp = AXI_SLVERR;
    end
  end

  assign take_read    = state_q == IDLE && ctrl.arvalid;
  assign take_write   = state_q == IDLE && !ctrl.arvalid && ctrl.awvalid && ctrl.wvalid;
  assign page_write   = take_write && write_at == AT_RDMA_PAGE;
  assign pages_write  = take_write && write_at == AT_RDMA_PAGES;
  assign peers_write  = take_write && of_peers(write_at) && CONNECTIONS != 0;
  assign images_read_at  = read_at;
  assign images_write_at = write_at;
  assign images_write    = take_write && of_images(write_at);
  assign images_wdata    = ctrl.wdata;
  assign ctrl.arready = take_read;
  assign ctrl.awready = take_write;
  assign ctrl.wready  = take_write;
  assign ctrl.rvalid  = state_q == ANSWER && !write_q;
  assign ctrl.rdata   = data_q;
  assign ctrl.rresp   = resp_q;
  assign ctrl.bvalid  = state_q == ANSWER && write_q;
  assign ctrl.bresp   = resp_q;

  assign kernel.arvalid = state_q == ASK && !write_q;
  assign kernel.araddr  = 20'(addr_q);
  assign kernel.awvalid = state_q == ASK && write_q && !addr_sent_q;
  assign kernel.awaddr  = 20'(addr_q);
  assign kernel.wvalid  = state_q == ASK && write_q && !data_sent_q;
  assign kernel.wdata   = data_q;
  assign kernel.wstrb   = strb_q;
  assign kernel.rready  = state_q == WAIT && !write_q;
  assign kernel.bready  = state_q == WAIT && write_q;
  assign answered       = state_q == WAIT && (write_q ? kernel.bvalid : kernel.rvalid);
  assign give_up        = kernel_rst || wait_q == WAIT_W'(KERNEL_CYCLES - 1);

  always_ff @(posedge clk) begin
    if (take_read || take_write) begin
      addr_q  <= take_write ? ctrl.awaddr[11:0] : ctrl.araddr[11:0];
      data_q  <= take_write ? ctrl.wdata : value;
      strb_q  <= ctrl.wstrb;
      write_q <= take_write;
      resp_q  <= value_resp;
    end else if (answered) begin
      data_q <= kernel.rdata;
      resp_q <= axi_resp_e'(write_q ? kernel.bresp : kernel.rresp);
    end
    if (page_write) page_q <= ctrl.wdata;
    if (pages_write) pages_q <= ctrl.wdata;
    if (peers_write && write_at != AT_PEERS) network_q[2'd3 - write_at[3:2]] <= ctrl.wdata;
    if (peers_write && write_at == AT_PEERS) {peers_q, prefix_q} <= {ctrl.wdata[31], ctrl.wdata[7:0]};
    if (rst) begin
      state_q <= IDLE;
      dead_q  <= 1'b0;
      page_q  <= '0;
      pages_q <= '0;
      network_q <= '0;
      prefix_q  <= '0;
      peers_q   <= 1'b0;
    end else begin
      wait_q <= state_q == IDLE ? '0 : wait_q + 1'b1;
      unique case (state_q)
        IDLE: begin
          addr_sent_q <= 1'b0;
          data_sent_q <= 1'b0;
          if (take_read || take_write) state_q <= to_kernel && !dead_q && !kernel_rst ? ASK : ANSWER;
        end
        ASK: begin
          addr_sent_q <= addr_sent_q || kernel.awready;
          data_sent_q <= data_sent_q || kernel.wready;
          if (give_up) state_q <= ANSWER;
          else if (write_q ? (addr_sent_q || kernel.awready) && (data_sent_q || kernel.wready) : kernel.arready) state_q <= WAIT;
        end
        WAIT: if (answered || give_up) state_q <= ANSWER;
        ANSWER: if (write_q ? ctrl.bready : ctrl.rready) state_q <= IDLE;
      endcase
      if (kernel_rst) dead_q <= 1'b0;
      else if (give_up && !answered && (state_q == ASK || state_q == WAIT)) dead_q <= 1'b1;
    end
  end

  assign peers = '{enable: peers_q, prefix: prefix_q, network: network_q};

  // ---- the device's registers ----
  if (REGISTERS) begin : g_bus
    always_ff @(posedge clk) begin
      if (rst) {bus_write, bus_read} <= '0;
      else if (take_write && write_at == AT_BUS) {bus_write, bus_read} <= ctrl.wdata[1:0];
    end
  end else begin : g_no_bus
    assign {bus_write, bus_read} = '0;
  end

  // ---- datagrams ----
  assign datagrams  = datagrams_q;
  assign counter_at = read_at[4:2] - AT_DATAGRAMS_RECEIVED[4:2];
  if (DATAGRAMS) begin : g_datagrams
    always_ff @(posedge clk) begin
      if (take_write) begin
        unique case (write_at)
          AT_DATAGRAM_PORT: begin
            datagrams_q.port   <= ctrl.wdata[15:0];
            datagrams_q.enable <= ctrl.wdata[16];
            datagrams_q.to     <= destinations_e'(ctrl.wdata[25:24]);
          end
          AT_DATAGRAM_NETWORK: datagrams_q.network <= ctrl.wdata;
          AT_DATAGRAM_MASK: datagrams_q.mask <= ctrl.wdata;
          AT_DATAGRAM_PACE: datagrams_q.pace <= ctrl.wdata[23:0];
          default: ;
        endcase
      end
      if (rst) datagrams_q <= '{mask: '1, pace: PACE_RESET, to: TO_NOBODY, default: '0};
    end
  end else begin : g_no_datagrams
    assign datagrams_q = '{to: TO_NOBODY, default: '0};
  end

  assign software_window = '{base: addr_t'({page_q, PAGE_W'(0)}), size: addr_t'({pages_q, PAGE_W'(0)})};
  assign idle = state_q == IDLE;

  logic unused_ok;
  assign unused_ok = &{1'b0, ctrl.awaddr, ctrl.araddr};
endmodule
