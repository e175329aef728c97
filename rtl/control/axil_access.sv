// SPDX-License-Identifier: Apache-2.0

// The side of a register block on AXI4-Lite: one access at a time, writes before reads. The block says which addresses it has:
// an access to another is answered with DECERR, a write to a part of a register with SLVERR. In reset no access is accepted.
//
// `at` is the address of the access, from one cycle after it was accepted until it is answered. `write` pulses in the first of
// these. `rdata` of a read is taken READ_CYCLES cycles after that, so that the block may look into a memory. A write takes 3
// cycles, a read READ_CYCLES more.
module axil_access
  import memory_pkg::*;
#(
    parameter int unsigned READ_CYCLES = 1
) (
    input  logic        clk,
    input  logic        rst,
    axil_if.slave       bus,        // 12 bits of address
    output logic [11:0] at,         // of a word
    output logic        write,      // `wdata` to `at`
    output logic [31:0] wdata,
    input  logic        readable,   // `at`
    input  logic        writable,
    input  logic [31:0] rdata,
    output logic        idle        // no access in progress
);
  typedef enum logic [2:0] {
    B_IDLE,
    B_WRITE,
    B_READ,
    B_ANSWER_WRITE,
    B_ANSWER_READ
  } state_e;

  state_e      state_q;
  logic [31:0] data_q;      // of a write, or of the answer to a read
  logic        whole_q;
  logic [$clog2(READ_CYCLES+1)-1:0] wait_q;
  axi_resp_e   resp_q;

  wire accepting = !rst && state_q == B_IDLE;
  wire writing = accepting && bus.awvalid && bus.wvalid;

  assign write = state_q == B_WRITE && whole_q && writable;
  assign wdata = data_q;

  assign bus.awready = writing;
  assign bus.wready  = writing;
  assign bus.bvalid  = state_q == B_ANSWER_WRITE;
  assign bus.bresp   = resp_q;
  assign bus.arready = accepting && !writing;
  assign bus.rvalid  = state_q == B_ANSWER_READ;
  assign bus.rresp   = resp_q;
  assign bus.rdata   = data_q;
  assign idle        = state_q == B_IDLE && !bus.awvalid && !bus.arvalid;

  always_ff @(posedge clk) begin
    unique case (state_q)
      B_IDLE: begin
        at      <= {writing ? bus.awaddr[11:2] : bus.araddr[11:2], 2'b00};
        data_q  <= bus.wdata;
        whole_q <= &bus.wstrb;
        wait_q  <= ($bits(wait_q))'(READ_CYCLES);
        if (writing) state_q <= B_WRITE;
        else if (accepting && bus.arvalid) state_q <= B_READ;
      end
      B_WRITE: begin
        resp_q  <= !writable ? AXI_DECERR : whole_q ? AXI_OKAY : AXI_SLVERR;
        state_q <= B_ANSWER_WRITE;
      end
      B_READ: begin
        wait_q <= wait_q - 1'b1;
        data_q <= readable ? rdata : '0;
        resp_q <= readable ? AXI_OKAY : AXI_DECERR;
        if (wait_q == '0) state_q <= B_ANSWER_READ;
      end
      B_ANSWER_WRITE: if (bus.bready) state_q <= B_IDLE;
      default: if (bus.rready) state_q <= B_IDLE;
    endcase
    if (rst) state_q <= B_IDLE;
  end
endmodule
