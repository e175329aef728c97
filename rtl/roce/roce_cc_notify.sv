// SPDX-License-Identifier: Apache-2.0

// The notification point: answers packets that came with congestion experienced by CNPs, at most one in `cnp_ticks` cycles to
// each QP (Zhu et al., SIGCOMM 2015, figure 6; IBTA annex A17.9).
//
// A mark each cycle, its CNP 3 cycles later. When more CNPs wait than the queue takes (DEPTH), the mark is passed over: the next
// one of that QP asks again. After reset the table is cleared, QPS cycles; marks wait for nothing but get no CNP before.
module roce_cc_notify
  import roce_pkg::*;
#(
    parameter int unsigned QPS = 256,
    parameter int unsigned DEPTH = 16
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [47:0] now,
    input  logic        enable,
    input  logic [24:0] cnp_ticks,
    input  logic        marked,        // pulse
    input  qpn_t        marked_qpn,    // ours
    stream_if.source    cnp,           // ack_tx_t
    output logic        idle
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  typedef logic [INDEX_W-1:0] index_t;

  // When the next CNP may leave.
  (* ram_style = "block" *) logic [47:0] free_at[QPS];

  logic [INDEX_W:0] cleared_q;         // this many entries; all when its top bit is set
  wire              clearing = !cleared_q[INDEX_W];

  logic        look_q, due_q;
  index_t      look_index_q, due_index_q;
  qpn_t        look_qpn_q, due_qpn_q;
  logic [47:0] found_q, next_q;

  stream_if #(.T(qpn_t)) ready_cnp ();
  stream_if #(.T(qpn_t)) queued ();

  wire send = due_q && ready_cnp.ready;
  assign ready_cnp.valid = due_q;
  assign ready_cnp.data  = due_qpn_q;

  logic queue_empty;
  stream_fifo #(.T(qpn_t), .DEPTH(DEPTH)) queue (.clk, .rst, .in(ready_cnp), .out(queued), .empty(queue_empty));
  assign cnp.valid    = queued.valid;
  assign cnp.data     = '{qpn: queued.data, cnp: 1'b1, default: '0};
  assign queued.ready = cnp.ready;

  // The mark behind one that is being decided, of the same QP, is passed over: it comes at the same time.
  wire again = due_q && due_index_q == look_index_q;

  always_ff @(posedge clk) begin
    found_q      <= free_at[index_t'(qp_index(marked_qpn))];
    look_index_q <= index_t'(qp_index(marked_qpn));
    look_qpn_q   <= marked_qpn;
    due_index_q  <= look_index_q;
    due_qpn_q    <= look_qpn_q;
    next_q       <= now + 48'(cnp_ticks);
    if (clearing || send) free_at[clearing ? cleared_q[INDEX_W-1:0] : due_index_q] <= clearing ? '0 : next_q;

    if (rst) begin
      cleared_q <= '0;
      look_q    <= 1'b0;
      due_q     <= 1'b0;
    end else begin
      if (clearing) cleared_q <= cleared_q + 1'b1;
      look_q <= marked && enable && !clearing;
      due_q  <= look_q && now >= found_q && !again;
    end
  end

  assign idle = !clearing && !look_q && queue_empty && !due_q;
endmodule
