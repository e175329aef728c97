// SPDX-License-Identifier: Apache-2.0

// In place of event_log in a device without one: nothing is taken down. Its block of registers is there, so that programs find those behind
// it: type and version are 0, NEXT is the block after this one, all else is answered with DECERR (see axil_access for the cycles).
module event_no_log
  import event_log_regs_pkg::*;
#(
    parameter logic [31:0] NEXT = {12'd0, cci_map_pkg::SOCKET_PAGE, 12'd0}   // the register block after this one
) (
    input  logic  clk,
    input  logic  rst,
    axil_if.slave bus,    // 12 bits of address
    output logic  idle    // no access in progress
);
  logic [11:0] at;
  axil_access access (
      .clk, .rst, .bus, .at, .write(), .wdata(), .readable(at inside {AT_TYPE, AT_VERSION, AT_NEXT}), .writable(1'b0),
      .rdata(at == AT_NEXT ? NEXT : '0), .idle
  );
endmodule
