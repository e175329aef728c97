// SPDX-License-Identifier: Apache-2.0

// A FIFO whose values each go when everything that was ahead of them has gone: as tlp_behind, but they wait side by side, so that a value
// may go in each cycle, however much is ahead. `inside_` counts what is ahead; it is looked at when a value comes, and from then on each
// that has `gone` takes one off. What comes later is not waited for. Latency 1 cycle. Holds DEPTH values and one more.
module tlp_behind_fifo #(
    parameter type T = logic,
    parameter int unsigned DEPTH = 8,     // a power of two
    parameter int unsigned COUNT_W = 6
) (
    input  logic               clk,
    input  logic               rst,
    stream_if.sink             in,
    input  logic [COUNT_W-1:0] inside_,
    input  logic [1:0]         gone,      // how many go in this cycle
    stream_if.source           out,
    output logic               empty
);
  localparam int unsigned SLOTS = 2 * DEPTH;
  typedef logic [COUNT_W-1:0] count_t;
  typedef logic [$clog2(SLOTS)-1:0] slot_t;

  stream_if #(.T(T)) head ();
  stream_fifo #(.T(T), .DEPTH(DEPTH)) stored (.clk, .rst, .in, .out(head), .empty);

  count_t ahead_q[SLOTS];                 // of each value, in turn
  slot_t  write_q, read_q;
  wire    clear = ahead_q[read_q] == '0;
  assign out.valid  = head.valid && clear;
  assign out.data   = T'(head.data);
  assign head.ready = out.ready && clear;

  function automatic count_t less(count_t count, logic [1:0] by);
    return count > count_t'(by) ? count - count_t'(by) : '0;
  endfunction

  always_ff @(posedge clk) begin
    for (int unsigned i = 0; i < SLOTS; i++) ahead_q[i] <= less(slot_t'(i) == write_q ? inside_ : ahead_q[i], gone);
    if (rst) begin
      write_q <= '0;
      read_q  <= '0;
    end else begin
      write_q <= write_q + slot_t'(in.valid && in.ready);
      read_q  <= read_q + slot_t'(out.valid && out.ready);
    end
  end
endmodule
