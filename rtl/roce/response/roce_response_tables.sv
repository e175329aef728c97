// SPDX-License-Identifier: Apache-2.0

// The tables of roce_response: one word a QP. Each word has one writer; each reader has its own copy of the part that it needs. See
// roce_response_pkg for the words. `init` clears the words of QP `watch`, except `newest`.
//
//   written by        read by
//   intake   tail     intake, send, ack, atomics
//            newest   intake, ack
//   send     head     intake, send, ack, the responder
//   atomics  executed send, atomics
//
// Reads are combinational, except for `newest`, whose reads take a cycle (roce_qp_read_if).
module roce_response_tables
  import roce_pkg::*;
  import roce_response_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input logic      clk,
    input logic      init,
    input qp_index_t watch,

    roce_qp_write_if.table_ tail,         // rsp_tail_t
    roce_qp_write_if.table_ head,         // rsp_head_t
    roce_qp_write_if.table_ executed,     // rsp_executed_t
    roce_qp_write_if.table_ newest,       // rsp_ack_t

    input  qp_index_t       intake_index,
    output rsp_tail_t       intake_tail,
    output rsp_count_t      intake_head,
    input  qp_index_t       send_index,
    output rsp_count_t      send_tail,
    output rsp_head_t       send_head,
    output rsp_atomic_t     send_executed,
    input  qp_index_t       ack_index,
    output rsp_count_t      ack_tail,
    output rsp_count_t      ack_head,
    input  qp_index_t       atomic_index,
    output rsp_atomic_t     atomic_tail,
    output rsp_executed_t   atomic_executed,
    input  qp_index_t       done_index,
    output logic [7:0]      done,
    roce_qp_read_if.table_  newest_for_intake,  // rsp_ack_t
    roce_qp_read_if.table_  newest_for_ack      // rsp_ack_t
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  typedef logic [INDEX_W-1:0] index_t;

  rsp_tail_t     tail_word;
  rsp_head_t     head_word;
  rsp_executed_t executed_word;
  rsp_ack_t      newest_word;
  assign tail_word     = init ? '0 : tail.data;
  assign head_word     = init ? '0 : head.data;
  assign executed_word = init ? '0 : executed.data;
  assign newest_word   = newest.data;

  wire tail_write     = init || tail.valid;
  wire head_write     = init || head.valid;
  wire executed_write = init || executed.valid;
  qp_index_t tail_at, head_at, executed_at;
  assign tail_at     = init ? watch : tail.index;
  assign head_at     = init ? watch : head.index;
  assign executed_at = init ? watch : executed.index;

  roce_qp_table #(.T(rsp_tail_t), .QPS(QPS)) tail_for_intake (
      .clk, .write(tail_write), .write_index(tail_at), .write_data(tail_word),
      .read_index(intake_index), .read_data(intake_tail)
  );
  roce_qp_table #(.T(rsp_count_t), .QPS(QPS)) tail_for_send (
      .clk, .write(tail_write), .write_index(tail_at), .write_data(tail_word.count),
      .read_index(send_index), .read_data(send_tail)
  );
  roce_qp_table #(.T(rsp_count_t), .QPS(QPS)) tail_for_ack (
      .clk, .write(tail_write), .write_index(tail_at), .write_data(tail_word.count),
      .read_index(ack_index), .read_data(ack_tail)
  );
  roce_qp_table #(.T(rsp_atomic_t), .QPS(QPS)) tail_for_atomics (
      .clk, .write(tail_write), .write_index(tail_at), .write_data(tail_word.atomics),
      .read_index(atomic_index), .read_data(atomic_tail)
  );

  roce_qp_table #(.T(rsp_count_t), .QPS(QPS)) head_for_intake (
      .clk, .write(head_write), .write_index(head_at), .write_data(head_word.count),
      .read_index(intake_index), .read_data(intake_head)
  );
  roce_qp_table #(.T(rsp_head_t), .QPS(QPS)) head_for_send (
      .clk, .write(head_write), .write_index(head_at), .write_data(head_word),
      .read_index(send_index), .read_data(send_head)
  );
  roce_qp_table #(.T(rsp_count_t), .QPS(QPS)) head_for_ack (
      .clk, .write(head_write), .write_index(head_at), .write_data(head_word.count),
      .read_index(ack_index), .read_data(ack_head)
  );
  roce_qp_table #(.T(logic [7:0]), .QPS(QPS)) head_for_responder (
      .clk, .write(head_write), .write_index(head_at), .write_data(head_word.done),
      .read_index(done_index), .read_data(done)
  );

  roce_qp_table #(.T(rsp_atomic_t), .QPS(QPS)) executed_for_send (
      .clk, .write(executed_write), .write_index(executed_at), .write_data(executed_word.count),
      .read_index(send_index), .read_data(send_executed)
  );
  roce_qp_table #(.T(rsp_executed_t), .QPS(QPS)) executed_for_atomics (
      .clk, .write(executed_write), .write_index(executed_at), .write_data(executed_word),
      .read_index(atomic_index), .read_data(atomic_executed)
  );

  wire index_t newest_at = index_t'(newest.index);
  rsp_ack_t to_intake, to_ack;
  assign newest_for_intake.data = to_intake;
  assign newest_for_ack.data    = to_ack;
  ram_1w1r #(.T(rsp_ack_t), .WORDS(QPS)) intake_newest (
      .clk, .write(newest.valid), .write_at(newest_at), .write_data(newest_word),
      .read(newest_for_intake.read), .read_at(index_t'(newest_for_intake.index)), .read_data(to_intake)
  );
  ram_1w1r #(.T(rsp_ack_t), .WORDS(QPS)) ack_newest (
      .clk, .write(newest.valid), .write_at(newest_at), .write_data(newest_word),
      .read(newest_for_ack.read), .read_at(index_t'(newest_for_ack.index)), .read_data(to_ack)
  );
endmodule
