// SPDX-License-Identifier: Apache-2.0

// A step of one QP, whatever CNPs come, however time passes, whatever was sent and whatever the parameters are: it ends in time, only
// a CNP limits a QP, a CNP is used up only by a step that had it, a QP without a limit is never blocked, and one whose credit is
// used up may send nothing. Memory and multiplier give anything: prove() cuts them.
module roce_cc_step_formal
  import roce_requester_pkg::*;
  import roce_cc_pkg::*;
#(
    parameter bit REACH = 1'b0
) (
    input logic        clk,
    input logic        rst,
    input logic        step_valid,
    input logic        cnp,
    input logic        forget,
    input logic        sent_valid,
    input logic [47:0] now,
    input cc_bytes_t   sent,
    input cc_scaled_t  any_cfg
);
  localparam int unsigned LONGEST = 21;                       // cycles of a step, from when it is known what was sent

  cc_scaled_t cfg_q;             // as they were in reset
  always_ff @(posedge clk) if (rst) cfg_q <= any_cfg;

  // ---- the QP: limited as its last step left it, as in roce_cc ----
  logic       ready, result_valid;
  logic       limited_q;
  cc_step_t   step;
  cc_result_t result;
  cc_view_t   view;
  assign step = '{limited: limited_q, cnp: cnp, forget: forget, default: '0};

  roce_cc_step #(
      .QPS(2)
  ) dut (
      .clk, .rst, .now, .cfg(cfg_q), .step_valid, .ready, .step, .sent_index(), .sent_valid, .sent, .result_valid, .result, .view
  );

  localparam logic [4:0] P_BEGIN = 1, P_CHOOSE = 10, P_RATE = 19;   // phases of roce_cc_step, by number

  // A step is asked for only when the one before has been told.
  always_comb if (result_valid) assume (!step_valid);
  always_ff @(posedge clk) begin
    if (rst) limited_q <= 1'b0;
    else if (result_valid) limited_q <= result.limited;
  end

  // ---- what must hold ----
  logic       begun_q;          // a step was taken, and it is not known yet what was sent
  logic [5:0] cycles_q;         // since then; 0: no step
  wire cc_bytes_t   left = dut.reach_q - dut.sent_q;          // may be sent before the next step

  logic started_q = 1'b0;
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    if (rst) begin
      begun_q  <= 1'b0;
      cycles_q <= '0;
    end else begin
      if (step_valid && ready) begun_q <= 1'b1;
      else if (begun_q && sent_valid) begin
        begun_q  <= 1'b0;
        cycles_q <= 6'd1;
      end else if (result_valid) cycles_q <= '0;
      else if (cycles_q != 0) cycles_q <= cycles_q + 1'b1;
    end
  end

  always_comb begin
    if (!started_q) assume (rst);
    if (started_q && !rst) begin
      assert (cycles_q <= 6'(LONGEST));
      assert (!result_valid || cycles_q != 0);
      if (result_valid && result.limited) begin
        assert (cfg_q.rp_enable && !result.step.forget && (result.step.limited || result.step.cnp));
      end
      if (result_valid && result.blocked) assert (result.limited && left == '1);
      if (result_valid && result.cnp_done) assert (result.step.cnp);

      // On the way there.
      if (dut.phase_q > P_BEGIN) begin
        assert (cycles_q == 6'(dut.phase_q) - 6'd1 && (dut.limited_q || dut.phase_q > P_RATE));
        assert (cfg_q.rp_enable && !dut.step_q.forget && (dut.step_q.limited || dut.step_q.cnp));
      end
      if (dut.phase_q > P_CHOOSE && dut.credit_q < 0) assert (left == '1);

      if (REACH) assert (!(result_valid && result.limited && view.target != view.rate));
    end
  end
endmodule
