// SPDX-License-Identifier: Apache-2.0

// The function-level reset of one function (Base Specification 6.6.2), whatever the other function does meanwhile: from `request` on the
// plane refuses what it is asked and sends nothing of its own (`reset`). When it is `quiet`, no request inside and no read under way, what is
// on its way out still leaves, which is waited for by number; then the reset is `done`, until `request` falls.
module pcie_function_reset (
    input  logic       clk,
    input  logic       rst,
    input  logic       request,
    output logic       reset,
    input  logic       quiet,
    input  logic       header_waits,   // the plane offers a header
    input  logic       header_taken,
    input  logic [3:0] leaving,        // TLPs with a payload that have not left,
    input  logic       left,           //   pulse: one of them has; they leave in their order
    output logic       done,
    output logic       ended           // pulse
);
  typedef enum logic [1:0] {
    F_RUN,
    F_STOP,      // until it is quiet
    F_LEAVE,     // until what was on its way then has left
    F_DONE
  } state_e;

  state_e     state_q;
  logic       header_q;
  logic [3:0] ahead_q;
  assign reset = state_q != F_RUN;
  assign done  = state_q == F_DONE;
  assign ended = done && !request;

  always_ff @(posedge clk) begin
    ahead_q  <= state_q == F_STOP ? leaving - 4'(left) : ahead_q - 4'(left && ahead_q != '0);
    header_q <= (state_q == F_STOP ? header_waits : header_q) && !header_taken;
    unique case (state_q)
      F_RUN:   if (request) state_q <= F_STOP;
      F_STOP:  if (quiet) state_q <= F_LEAVE;
      F_LEAVE: if (ahead_q == '0 && !header_q) state_q <= F_DONE;
      default: if (!request) state_q <= F_RUN;
    endcase
    if (rst) state_q <= F_RUN;
  end
endmodule
