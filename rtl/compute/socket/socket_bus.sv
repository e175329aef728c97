// SPDX-License-Identifier: Apache-2.0

// The port of a kernel to the device's registers (CCI): an access that cci_policy_pkg::kernel_access does not give to kernels is refused
// with SLVERR and never reaches the bus.
//
// One access at a time: 3 cycles more than the bus takes, 2 cycles for one that is refused. An access that has begun on the bus is ended
// here, whatever the kernel does: its answer is taken at once, and discarded if the kernel was reset meanwhile. So a kernel that does not
// take an answer, or is cut off, holds up itself. A write begins when its address and its data are there. `off`: nothing new begins.
module socket_bus
  import memory_pkg::*;
  import cci_policy_pkg::*;
(
    input  logic    clk,
    input  logic    rst,
    input  logic    kernel_rst,   // the kernel is in reset
    input  logic    off,          // and if it has not said yet what it is
    input  logic    may_read,     // more than anybody may
    input  logic    may_write,
    axil_if.slave   kernel,       // 20 bits of address
    axil_if.master  bus,          // 20 bits of address
    output logic    refused,      // pulses: an access
    output logic    settled,      // nothing is under way on the bus
    output logic    idle
);
  typedef enum logic [1:0] {
    S_IDLE,
    S_CHECK,
    S_BUS,
    S_ANSWER
  } state_e;

  state_e      state_q;
  logic        write_q, address_q, data_q;    // still to be taken by the bus
  logic        void_q;                        // the kernel that asked is gone
  logic [19:0] at_q;
  logic [31:0] value_q;
  logic [3:0]  strobes_q;
  axi_resp_e   resp_q;

  wire writes = kernel.awvalid && kernel.wvalid;
  wire take = state_q == S_IDLE && !off && !kernel_rst;
  wire take_write = take && writes;
  wire take_read = take && !writes && kernel.arvalid;
  wire allowed = kernel_access(at_q, write_q, may_read, may_write);
  wire told = write_q ? bus.bvalid : bus.rvalid;
  wire taken = write_q ? kernel.bready : kernel.rready;
  wire gone = void_q || kernel_rst;

  assign kernel.awready = take_write;
  assign kernel.wready  = take_write;
  assign kernel.bvalid  = state_q == S_ANSWER && write_q;
  assign kernel.bresp   = resp_q;
  assign kernel.arready = take_read;
  assign kernel.rvalid  = state_q == S_ANSWER && !write_q;
  assign kernel.rdata   = value_q;
  assign kernel.rresp   = resp_q;

  assign bus.awaddr  = at_q;
  assign bus.awvalid = state_q == S_BUS && write_q && address_q;
  assign bus.wdata   = value_q;
  assign bus.wstrb   = strobes_q;
  assign bus.wvalid  = state_q == S_BUS && write_q && data_q;
  assign bus.bready  = state_q == S_BUS;
  assign bus.araddr  = at_q;
  assign bus.arvalid = state_q == S_BUS && !write_q && address_q;
  assign bus.rready  = state_q == S_BUS;

  always_ff @(posedge clk) begin
    refused <= 1'b0;
    unique case (state_q)
      S_IDLE: begin
        write_q   <= writes;
        at_q      <= {writes ? kernel.awaddr[19:2] : kernel.araddr[19:2], 2'b00};
        value_q   <= kernel.wdata;
        strobes_q <= kernel.wstrb;
        address_q <= 1'b1;
        data_q    <= 1'b1;
        void_q    <= 1'b0;
        if (take_write || take_read) state_q <= S_CHECK;
      end

      S_CHECK: begin
        resp_q  <= AXI_SLVERR;
        state_q <= gone ? S_IDLE : allowed ? S_BUS : S_ANSWER;
        refused <= !gone && !allowed;
        if (!allowed) value_q <= '0;
      end

      S_BUS: begin
        if ((bus.awvalid && bus.awready) || (bus.arvalid && bus.arready)) address_q <= 1'b0;
        if (bus.wvalid && bus.wready) data_q <= 1'b0;
        void_q <= gone;
        if (told) begin
          resp_q <= axi_resp_e'(write_q ? bus.bresp : bus.rresp);
          if (!write_q) value_q <= bus.rdata;
          state_q <= gone ? S_IDLE : S_ANSWER;
        end
      end

      default: if (taken || kernel_rst) state_q <= S_IDLE;
    endcase
    if (rst) state_q <= S_IDLE;
  end

  assign settled = state_q inside {S_IDLE, S_ANSWER};
  assign idle    = state_q == S_IDLE && !writes && !kernel.arvalid;

  logic unused_ok;
  assign unused_ok = &{1'b0, kernel.awaddr[1:0], kernel.araddr[1:0]};
endmodule
