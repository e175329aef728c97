// SPDX-License-Identifier: Apache-2.0

// For a kernel that accesses no registers of the device. Wires only.
module kernel_no_bus (
    axil_if.master bus
);
  axil_silent silent (.out(bus));
endmodule
