// SPDX-License-Identifier: Apache-2.0

// For a kernel without registers of its own, or a socket without a port to those of the device: answers every access on `ctrl` with RESP, one
// cycle later.
module kernel_no_registers
  import memory_pkg::*;
#(
    parameter axi_resp_e RESP = AXI_DECERR
) (
    input logic   clk,
    input logic   rst,
    axil_if.slave ctrl
);
  logic write;
  assign write        = ctrl.awvalid && ctrl.wvalid && !ctrl.bvalid;
  assign ctrl.awready = write;
  assign ctrl.wready  = write;
  assign ctrl.bresp   = RESP;
  assign ctrl.arready = !ctrl.rvalid;
  assign ctrl.rdata   = '0;
  assign ctrl.rresp   = RESP;

  always_ff @(posedge clk) begin
    ctrl.bvalid <= !rst && (write || (ctrl.bvalid && !ctrl.bready));
    ctrl.rvalid <= !rst && ((ctrl.arvalid && ctrl.arready) || (ctrl.rvalid && !ctrl.rready));
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, ctrl.awaddr, ctrl.wdata, ctrl.wstrb, ctrl.araddr};
endmodule
