// SPDX-License-Identifier: Apache-2.0

// Registers of a socket, a page of 4 KiB: up to 0x0ff those of the socket, read only but for two; from 0x100 on those of the kernel
// (`kernel`, same offset).
//   0x00 MAGIC 0x4b524e4c  0x04 VERSION major << 16 | minor  0x08 FUNCTIONS  0x10..0x1f NAME  0x20 + 4 j FUNCTION_CODE[j]
//   0x40 STATUS (0: busy, 1: the kernel is decoupled, 2: work requests outstanding)  0x44 JOBS done  0x48 LAST_CYCLES of the last job
//   0x4c TIMEOUTS  0x50 REFUSED bursts and work requests
//   0x54 RDMA_PAGE, 0x58 RDMA_PAGES: the pages of 4 KiB for work requests of the kernel while no job runs; read and write
// One access at a time, 2 cycles. An access to no register, or a write to a read-only one, is answered with SLVERR. If the kernel
// does not respond within KERNEL_CYCLES, or is reset during the access, the response is SLVERR, and it is not accessed again until
// its reset.
module socket_registers
  import memory_pkg::*;
  import compute_pkg::*;
#(
    parameter int unsigned KERNEL_CYCLES = 256
) (
    input  logic             clk,
    input  logic             rst,
    input  logic             kernel_rst,
    axil_if.slave            ctrl,        // 12 bits of address count
    axil_if.master           kernel,
    input  kernel_identity_t identity,
    input  logic             busy,
    input  logic             cut,
    input  logic             outstanding,
    input  logic [31:0]      jobs,
    input  logic [31:0]      last_cycles,
    input  logic [31:0]      timeouts,
    input  logic [31:0]      refused,
    output window_t          software_window,  // for RDMA that the kernel starts while no job runs
    output logic             idle
);
  localparam logic [31:0] MAGIC = 32'h4b52_4e4c;
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
  logic              write_q, take_read, take_write, answered, give_up, dead_q, addr_sent_q, data_sent_q;
  logic [11:0]       addr_q;
  logic [31:0]       data_q, value;
  logic [3:0]        strb_q;
  logic [WAIT_W-1:0] wait_q;
  axi_resp_e         resp_q, value_resp;
  logic [WINDOW_W-1:0] page_q, pages_q;
  logic              page_write, pages_write;

  always_comb begin
    value_resp = AXI_OKAY;
    value      = '0;
    unique case (ctrl.araddr[7:2]) inside
      6'h00: value = MAGIC;
      6'h01: value = {identity.version_major, identity.version_minor};
      6'h02: value = 32'(identity.functions);
      [6'h04 : 6'h07]: value = identity.name[{ctrl.araddr[3:2], 2'b00}+:4];
      [6'h08 : 6'h0f]: value = 32'(identity.function_code[ctrl.araddr[4:2]]);
      6'h10: value = 32'({outstanding, cut, busy});
      6'h11: value = jobs;
      6'h12: value = last_cycles;
      6'h13: value = timeouts;
      6'h14: value = refused;
      6'h15: value = page_q;
      6'h16: value = pages_q;
      default: value_resp = AXI_SLVERR;
    endcase
  end

  assign take_read    = state_q == IDLE && ctrl.arvalid;
  assign take_write   = state_q == IDLE && !ctrl.arvalid && ctrl.awvalid && ctrl.wvalid;
  assign page_write   = take_write && ctrl.awaddr[11:2] == 10'h15;
  assign pages_write  = take_write && ctrl.awaddr[11:2] == 10'h16;
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
      resp_q  <= page_write || pages_write ? AXI_OKAY : take_write || ctrl.araddr[11:8] != '0 ? AXI_SLVERR : value_resp;
    end else if (answered) begin
      data_q <= kernel.rdata;
      resp_q <= axi_resp_e'(write_q ? kernel.bresp : kernel.rresp);
    end
    if (page_write) page_q <= ctrl.wdata;
    if (pages_write) pages_q <= ctrl.wdata;
    if (rst) begin
      state_q <= IDLE;
      dead_q  <= 1'b0;
      page_q  <= '0;
      pages_q <= '0;
    end else begin
      wait_q <= state_q == IDLE ? '0 : wait_q + 1'b1;
      unique case (state_q)
        IDLE: begin
          addr_sent_q <= 1'b0;
          data_sent_q <= 1'b0;
          if (take_read) state_q <= ctrl.araddr[11:8] != '0 && !dead_q && !kernel_rst ? ASK : ANSWER;
          else if (take_write) state_q <= ctrl.awaddr[11:8] != '0 && !dead_q && !kernel_rst ? ASK : ANSWER;
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

  assign software_window = '{base: addr_t'({page_q, PAGE_W'(0)}), size: addr_t'({pages_q, PAGE_W'(0)})};
  assign idle = state_q == IDLE;

  logic unused_ok;
  assign unused_ok = &{1'b0, ctrl.awaddr, ctrl.araddr};
endmodule
