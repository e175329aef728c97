// SPDX-License-Identifier: Apache-2.0

// For a kernel without registers of its own: answers every access on `ctrl` with DECERR, one cycle later.
module kernel_no_registers
  import memory_pkg::*;
(
    input logic   clk,
    input logic   rst,
    axil_if.slave ctrl
);
  logic write;
  assign write        = ctrl.awvalid && ctrl.wvalid && !ctrl.bvalid;
  assign ctrl.awready = write;
  assign ctrl.wready  = write;
  assign ctrl.bresp   = AXI_DECERR;
  assign ctrl.arready = !ctrl.rvalid;
  assign ctrl.rdata   = '0;
  assign ctrl.rresp   = AXI_DECERR;

  always_ff @(posedge clk) begin
    ctrl.bvalid <= !rst && (write || (ctrl.bvalid && !ctrl.bready));
    ctrl.rvalid <= !rst && ((ctrl.arvalid && ctrl.arready) || (ctrl.rvalid && !ctrl.rready));
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, ctrl.awaddr, ctrl.wdata, ctrl.wstrb, ctrl.araddr};
endmodule
