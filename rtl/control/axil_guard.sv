// SPDX-License-Identifier: Apache-2.0

// AXI4-Lite to a slave that may not answer, as the registers of a kernel: one access at a time, which takes 2 cycles more. If the slave does
// not answer within CYCLES, or is in reset, the response is SLVERR, and it is not accessed again until its reset.
module axil_guard
  import memory_pkg::*;
#(
    parameter int unsigned CYCLES = 256
) (
    input  logic   clk,
    input  logic   rst,
    input  logic   slave_rst,   // of the slave: nothing of an access is left in it
    axil_if.slave  in,
    axil_if.master out,
    output logic   idle         // no access under way
);
  typedef enum logic [1:0] {
    IDLE,
    ASK,                        // the slave has not taken the access
    WAIT,                       // nor answered it
    ANSWER
  } state_e;

  state_e      state_q;
  logic        write_q, dead_q, address_sent_q, data_sent_q;
  logic [31:0] data_q;
  axi_resp_e   resp_q;
  logic [$clog2(CYCLES)-1:0] count_q;

  wire writes = state_q == IDLE && in.awvalid && in.wvalid;
  wire reads = state_q == IDLE && in.arvalid && !writes;
  wire asked = write_q ? (address_sent_q || out.awready) && (data_sent_q || out.wready) : out.arready;
  wire answered = state_q == WAIT && (write_q ? out.bvalid : out.rvalid);
  wire gives_up = slave_rst || 32'(count_q) == CYCLES - 1;

  assign in.awready = writes;
  assign in.wready  = writes;
  assign in.arready = reads;
  assign in.bvalid  = state_q == ANSWER && write_q;
  assign in.bresp   = resp_q;
  assign in.rvalid  = state_q == ANSWER && !write_q;
  assign in.rresp   = resp_q;
  assign in.rdata   = data_q;

  assign out.awvalid = state_q == ASK && write_q && !address_sent_q;
  assign out.wvalid  = state_q == ASK && write_q && !data_sent_q;
  assign out.arvalid = state_q == ASK && !write_q;
  assign out.wdata   = data_q;
  assign out.bready  = state_q == WAIT && write_q;
  assign out.rready  = state_q == WAIT && !write_q;
  assign idle        = state_q == IDLE && !in.awvalid && !in.arvalid;

  always_ff @(posedge clk) begin
    count_q <= state_q == IDLE ? '0 : count_q + 1'b1;
    unique case (state_q)
      IDLE: begin
        write_q        <= writes;
        address_sent_q <= 1'b0;
        data_sent_q    <= 1'b0;
        out.awaddr     <= in.awaddr;
        out.araddr     <= in.araddr;
        out.wstrb      <= in.wstrb;
        data_q         <= writes ? in.wdata : '0;
        resp_q         <= AXI_SLVERR;
        if (writes || reads) state_q <= dead_q || slave_rst ? ANSWER : ASK;
      end
      ASK: begin
        address_sent_q <= address_sent_q || out.awready;
        data_sent_q    <= data_sent_q || out.wready;
        if (gives_up) state_q <= ANSWER;
        else if (asked) state_q <= WAIT;
      end
      WAIT: begin
        if (answered) begin
          resp_q <= axi_resp_e'(write_q ? out.bresp : out.rresp);
          data_q <= out.rdata;
        end
        if (answered || gives_up) state_q <= ANSWER;
      end
      default: if (write_q ? in.bready : in.rready) state_q <= IDLE;
    endcase
    if (slave_rst) dead_q <= 1'b0;
    else if (gives_up && !answered && state_q inside {ASK, WAIT}) dead_q <= 1'b1;
    if (rst) begin
      state_q <= IDLE;
      dead_q  <= 1'b0;
    end
  end
endmodule
