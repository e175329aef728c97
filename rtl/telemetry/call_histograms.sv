// SPDX-License-Identifier: Apache-2.0

// Histograms of the calls of each socket (docs/reference/histograms.md): how long calls take, how long they have their socket, how many
// a call finds before it. It only looks: calls do not wait for it. A call is in the histograms up to 100 cycles after it has ended.
module call_histograms
  import histogram_pkg::*;
  import rpc_pkg::*;
#(
    parameter int unsigned SOCKETS = 2,
    parameter int unsigned QPS = 16,
    parameter int unsigned CONTEXTS = 1,
    parameter logic [31:0] CLOCK_HZ = 250_000_000,   // of `now`
    parameter logic [31:0] NEXT = '0                 // the register block after this one
) (
    input  logic           clk,
    input  logic           rst,
    input  logic [47:0]    now,                      // device cycles; may jump ahead
    input  call_progress_t progress,                 // of rpc_dispatch
    input  logic [SOCKETS-1:0] running,              // likewise
    axil_if.slave          bus,                      // 12 bits of address
    output logic           idle                      // nothing to be counted, no access in progress
);
  stream_if #(.T(sample_t)) sample ();
  socket_t     since_of;
  time_t       since;
  logic        clear, clearing, lost, read, times_idle, memory_idle, registers_idle;
  bin_t        read_bin;
  histogram_e  read_sum;
  logic [31:0] count;
  sum_t        sum;

  call_times #(.SOCKETS(SOCKETS), .QPS(QPS), .CONTEXTS(CONTEXTS)) times (
      .clk, .rst, .now(time_t'(now)), .progress, .sample, .read, .since_of, .since, .lost, .idle(times_idle)
  );

  histogram_memory memory (
      .clk, .rst, .sample, .clear, .clearing, .read, .read_bin, .read_sum, .count, .sum, .idle(memory_idle)
  );

  call_histograms_registers #(.SOCKETS(SOCKETS), .CLOCK_HZ(CLOCK_HZ), .NEXT(NEXT)) registers (
      .clk, .rst, .bus, .now, .running, .since_of, .since, .clear, .clearing, .lost, .read, .read_bin, .read_sum, .count, .sum,
      .idle(registers_idle)
  );

  assign idle = times_idle && memory_idle && registers_idle;
endmodule
