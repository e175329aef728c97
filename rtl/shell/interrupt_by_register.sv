// SPDX-License-Identifier: Apache-2.0

// The host asks for an interrupt of its own device, to test the way: a write to address 0 is a request of the vector with this number. A number
// that there is not does nothing. A write takes 3 cycles; `request` must not stop.
module interrupt_by_register
  import memory_pkg::*;
#(
    parameter int unsigned VECTORS = 32
) (
    input  logic     clk,
    input  logic     rst,
    axil_if.slave    bus,       // 12 bits of address
    stream_if.source request,   // logic [$clog2(VECTORS)-1:0]
    output logic     idle
);
  logic [11:0] at;
  logic [31:0] wdata;
  logic        write;

  axil_access access (
      .clk, .rst, .bus, .at, .write, .wdata, .readable(1'b0), .writable(at == '0), .rdata('0), .idle
  );
  assign request.valid = write && wdata < VECTORS;
  assign request.data  = wdata[$clog2(VECTORS)-1:0];

  logic unused_ok;
  assign unused_ok = &{1'b0, request.ready};
endmodule
