// SPDX-License-Identifier: Apache-2.0

// The QP numbers used by connections (`mine`). A connection has the same index as its QP, and software uses QP numbers too (`by_hand`); no
// number is in both sets. An index is allocated in the cycle in which it is found. If software claimed it in the same cycle, `gives_way` is
// high in the next, and the index is released.
//
// If QP_SETUP is refused nevertheless, a peer's REQ is processed again with another number, until all have been tried.
module roce_cm_numbers
  import roce_cm_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input  logic clk,
    input  logic rst,
    input  logic [QPS-1:0] by_hand,
    output logic [QPS-1:0] mine,
    input  logic take,                    // allocate this free index
    input  logic [$clog2(QPS)-1:0] take_idx,
    input  logic reading,                 // the connection is read: the cycle after `take`
    input  logic [$clog2(QPS)-1:0] idx,   // the current connection
    output logic gives_way,
    input  logic refused,                 // QP_SETUP was refused,
    input  logic active,                  // for a connection that the device has opened
    output logic again,                   // same cycle: process the message again with another number
    output logic first,                   // no number was refused for the current message
    input  logic commit,                  // the current event ends,
    input  logic message,                 // which was a message,
    input  logic occupied                 // and the connection keeps its index
);
  typedef logic [$clog2(QPS):0] count_t;
  count_t tries_q;                        // numbers that were refused
  logic   taken_q;                        // allocated in the previous cycle

  assign gives_way = reading && taken_q && by_hand[idx];
  assign again     = refused && !active && tries_q != count_t'(QPS - 1);
  assign first     = tries_q == '0;

  always_ff @(posedge clk) begin
    taken_q <= take;
    if (take) mine[take_idx] <= 1'b1;
    if (gives_way || again) mine[idx] <= 1'b0;
    if (commit) mine[idx] <= occupied;
    if (again) tries_q <= tries_q + 1'b1;
    else if (commit && message) tries_q <= '0;
    if (rst) begin
      mine    <= '0;
      taken_q <= 1'b0;
      tries_q <= '0;
    end
  end
endmodule
