// SPDX-License-Identifier: Apache-2.0

// Which queue pair numbers belong to connections (`mine`). The places of connections and the numbers of queue pairs are the same,
// and software takes numbers too (`by_hand`); no number belongs to both. A place is taken in the cycle in which it is found. If
// software took it in the same cycle, `gives_way` is high in the next, and the place is left to software.
//
// If the queue pairs refuse a number all the same, a peer's REQ is processed again with another, until all have been tried.
module roce_cm_numbers
  import roce_cm_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input  logic clk,
    input  logic rst,
    input  logic [QPS-1:0] by_hand,
    output logic [QPS-1:0] mine,
    input  logic take,                    // this free place has been found
    input  logic [$clog2(QPS)-1:0] take_idx,
    input  logic reading,                 // the connection is being read: the cycle after `take`
    input  logic [$clog2(QPS)-1:0] idx,   // the connection at work
    output logic gives_way,
    input  logic refused,                 // the queue pairs refuse its number,
    input  logic active,                  // and we have called the peer
    output logic again,                   // same cycle: another number is tried
    output logic first,                   // none has been refused for the message at work
    input  logic commit,                  // the event at work ends,
    input  logic message,                 // which was a message,
    input  logic occupied                 // and the connection keeps its place
);
  typedef logic [$clog2(QPS):0] count_t;
  count_t tries_q;                        // numbers that were refused
  logic   taken_q;                        // the place has just been taken

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
