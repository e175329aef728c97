// SPDX-License-Identifier: Apache-2.0

// roce_cc with a sender, as roce_requester is one in as far as congestion control can see: it serves the QPs that have something to
// send in turn, a quantum each, at the full width of the data path, and lets go of those that are blocked. Measures from
// `measure_from` on what each QP sends between the first time that it is resumed and the last time.
module cc_bench
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;
  import roce_cc_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input  logic           clk,
    input  logic           rst,
    input  cc_config_t     cfg,
    input  logic           cnp,
    input  qpn_t           cnp_qpn,
    input  logic           begin_,         // pulse: `members` have something to send, for ever
    input  logic [QPS-1:0] members,
    input  logic [12:0]    packet,         // bytes
    input  logic [12:0]    quantum,
    input  logic [47:0]    measure_from,   // cycles after `begin_`
    input  qp_index_t      shown,
    output logic [47:0]    cycles,
    output logic [47:0]    bytes
);
  stream_if #(.T(ack_tx_t)) cnp_tx ();
  stream_if #(.T(qp_index_t)) parked ();
  stream_if #(.T(qp_index_t)) resume ();
  stream_if #(.T(qp_index_t)) forget ();
  stream_if #(.T(qp_index_t)) view ();
  stream_if #(.T(cc_view_t)) viewed ();
  logic sent;
  qp_index_t sent_index;
  logic [QPS-1:0] blocked;
  logic [47:0] now;

  assign cnp_tx.ready = 1'b1;
  assign resume.ready = 1'b1;
  assign viewed.ready = 1'b1;
  assign {forget.valid, view.valid} = '0;
  assign {forget.data, view.data} = '0;

  roce_cc #(.QPS(QPS)) dut (
      .clk, .rst, .now, .cfg, .cnp, .cnp_qpn, .ecn_marked(1'b0), .ecn_marked_qpn('0), .cnp_tx,
      .sent, .sent_index, .sent_bytes({1'b0, packet}), .blocked, .parked, .resume, .forget, .view, .viewed, .events(), .idle()
  );

  qp_index_t   list[$];
  qp_index_t   visit;
  int          left, pause;
  logic        waited[QPS];       // the QP was blocked since its last visit
  logic [47:0] began;
  logic [47:0] total[QPS], first_at[QPS], first_total[QPS], last_at[QPS], last_total[QPS];
  assign cycles = last_at[shown] - first_at[shown];
  assign bytes  = last_total[shown] - first_total[shown];

  always @(posedge clk) begin
    now <= rst ? 48'd1000 : now + 1'b1;
    sent <= 1'b0;
    parked.valid <= 1'b0;
    if (rst) begin
      list = {};
      left = 0;
      pause = 0;
    end else begin
      if (resume.valid) list.push_back(resume.data);
      if (begin_) begin
        list = {};
        left = 0;
        began = now;
        for (int i = 0; i < QPS; i++) begin
          total[i] = 0;
          first_at[i] = 0;
          waited[i] = 1'b0;
          if (members[i]) list.push_back(qp_index_t'(i));
        end
      end else if (pause > 1) pause--;
      else begin
        if (left <= 0 && list.size() != 0) begin
          visit = list.pop_front();
          if (blocked[visit]) begin
            parked.valid <= 1'b1;
            parked.data <= visit;
            waited[visit] = 1'b1;
          end else begin
            left = int'(quantum);
            list.push_back(visit);
            if (now - began >= measure_from && waited[visit]) begin
              if (first_at[visit] == 0) begin
                first_at[visit] = now;
                first_total[visit] = total[visit];
              end
              last_at[visit] = now;
              last_total[visit] = total[visit];
            end
            waited[visit] = 1'b0;
          end
        end
        if (left > 0) begin
          sent <= 1'b1;
          sent_index <= visit;
          total[visit] += 48'(packet);
          left -= int'(packet);
          pause = (int'(packet) + 63) / 64;
        end
      end
    end
  end
endmodule
