// SPDX-License-Identifier: Apache-2.0

// The registers of the event log on AXI4-Lite (event_log.rdl): one page of 4 KiB, read only: a write, and a read that no
// register has, is answered with DECERR. A read takes 4 cycles.
module event_log_registers
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

  logic [11:0] at;
  logic [31:0] read_data;
  always_comb begin
    unique case (at)
      AT_TYPE:     read_data = BLOCK_TYPE;
      AT_VERSION:  read_data = BLOCK_VERSION;
      AT_NEXT:     read_data = NEXT;
      AT_TICKS_HZ: read_data = TICKS_HZ;
      AT_NOW_LO:   read_data = now[31:0];
      AT_NOW_HI:   read_data = 32'(now[47:32]);
      AT_LOST:     read_data = lost;
      default:     read_data = at[11:4] == AT_HEAD[11:4] ? head[at[3:2]] : word;
    endcase
  end

  assign word_at = at[10:2];
  axil_access access (
      .clk, .rst, .bus, .at, .write(), .wdata(), .readable(readable(at)), .writable(1'b0), .rdata(read_data), .idle
  );
endmodule
