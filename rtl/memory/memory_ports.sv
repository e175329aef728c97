// SPDX-License-Identifier: Apache-2.0

// What is between the fabric and the memories: with ECC an axi_ecc for each, else wires. Errors of all memories are counted
// together: a pulse of an event for each, one a cycle, none lost while fewer than 2^16 wait. Latency: that of axi_ecc, or 0; of the
// events 2 cycles.
module memory_ports
  import memory_pkg::*;
#(
    parameter int unsigned MEMORIES = 1,
    parameter int unsigned DATA_W   = 512,
    parameter int unsigned ID_W     = 8,     // of the fabric
    parameter bit          ECC      = 1'b0
) (
    input  logic           clk,
    input  logic           rst,
    axi_if.slave           in[MEMORIES],
    axi_if.master          out[MEMORIES],    // with ECC as axi_ecc has it
    output memory_events_t events
);
  logic [MEMORIES-1:0]        corrected, read_failed, write_failed;
  logic [1:0][15:0]           waiting_q;     // uncorrectable, corrected
  logic [1:0][2*MEMORIES-1:0] pulses_q;

  for (genvar i = 0; i < MEMORIES; i++) begin : g_memory
    if (ECC) begin : g_ecc
      axi_ecc #(.DATA_W(DATA_W), .ID_W(ID_W)) ecc (.clk, .rst, .in(in[i]), .out(out[i]), .corrected(corrected[i]));
    end else begin : g_plain
      axi_wires whole (.in(in[i]), .out(out[i]));
      assign corrected[i] = 1'b0;
    end
    assign read_failed[i]  = in[i].rvalid && in[i].rready && in[i].rresp == AXI_SLVERR;
    assign write_failed[i] = in[i].bvalid && in[i].bready && in[i].bresp == AXI_SLVERR;
  end

  always_ff @(posedge clk) begin
    pulses_q <= rst ? '0 : {read_failed, write_failed, MEMORIES'(0), corrected};
    for (int unsigned i = 0; i < 2; i++) begin
      if (rst) waiting_q[i] <= '0;
      else waiting_q[i] <= waiting_q[i] + 16'($countones(pulses_q[i])) - 16'(waiting_q[i] != '0);
    end
  end

  assign events = '{corrected: waiting_q[0] != '0, uncorrectable: waiting_q[1] != '0};
endmodule
