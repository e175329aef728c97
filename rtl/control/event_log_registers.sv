// SPDX-License-Identifier: Apache-2.0

// The registers of the event log on AXI4-Lite (event_log.rdl): one page of 4 KiB, read only. A read takes 3 cycles, one at a time. A write,
// and a read that no register has, is answered with DECERR.
module event_log_registers
  import memory_pkg::*;
  import event_log_pkg::*;
  import event_log_regs_pkg::*;
#(
    parameter logic [31:0] TICKS_HZ = 250_000_000,
    parameter logic [31:0] NEXT = {12'd0, cci_map_pkg::SOCKET_PAGE, 12'd0}   // the block after this one
) (
    input  logic        clk,
    input  logic        rst,
    axil_if.slave       bus,       // 12 bits of address
    input  logic [47:0] now,
    input  logic [31:0] lost,
    input  logic [LOG_RINGS-1:0][31:0] head,
    output logic [8:0]  word_at,
    input  logic [31:0] word,      // of the entries, a cycle later
    output logic        idle       // no access in progress
);
  if (WORDS_WORDS != LOG_RINGS * LOG_RING_ENTRIES * 4 || HEAD_WORDS != LOG_RINGS || AT_WORDS != 12'h800) begin : g_check
    $fatal(1, "event_log_registers: WORDS must have every word of every entry, from 0x800 on");
  end

  typedef enum logic [1:0] {
    B_IDLE,
    B_READ,
    B_ANSWER_WRITE,
    B_ANSWER_READ
  } state_e;

  state_e      state_q;
  logic [11:0] at_q;
  logic [31:0] rdata_q;
  axi_resp_e   resp_q;

  wire accepting = !rst && state_q == B_IDLE;
  wire writing = accepting && bus.awvalid && bus.wvalid;

  assign bus.awready = writing;
  assign bus.wready  = writing;
  assign bus.bvalid  = state_q == B_ANSWER_WRITE;
  assign bus.bresp   = AXI_DECERR;
  assign bus.arready = accepting && !writing;
  assign bus.rvalid  = state_q == B_ANSWER_READ;
  assign bus.rresp   = resp_q;
  assign bus.rdata   = rdata_q;
  assign idle        = state_q == B_IDLE && !bus.awvalid && !bus.arvalid;
  assign word_at     = bus.araddr[10:2];

  logic [31:0] read_data;
  always_comb begin
    unique case (at_q)
      AT_TYPE:     read_data = BLOCK_TYPE;
      AT_VERSION:  read_data = BLOCK_VERSION;
      AT_NEXT:     read_data = NEXT;
      AT_TICKS_HZ: read_data = TICKS_HZ;
      AT_NOW_LO:   read_data = now[31:0];
      AT_NOW_HI:   read_data = 32'(now[47:32]);
      AT_LOST:     read_data = lost;
      default:     read_data = at_q[11:4] == AT_HEAD[11:4] ? head[at_q[3:2]] : word;
    endcase
  end

  always_ff @(posedge clk) begin
    unique case (state_q)
      B_IDLE: begin
        at_q <= {bus.araddr[11:2], 2'b00};
        if (writing) state_q <= B_ANSWER_WRITE;
        else if (accepting && bus.arvalid) state_q <= B_READ;
      end
      B_READ: begin
        rdata_q <= readable(at_q) ? read_data : '0;
        resp_q  <= readable(at_q) ? AXI_OKAY : AXI_DECERR;
        state_q <= B_ANSWER_READ;
      end
      B_ANSWER_WRITE: if (bus.bready) state_q <= B_IDLE;
      default: if (bus.rready) state_q <= B_IDLE;
    endcase
    if (rst) state_q <= B_IDLE;
  end
endmodule
