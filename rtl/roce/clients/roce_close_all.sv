// SPDX-License-Identifier: Apache-2.0

// Ends everything that uses an address of the device when that is about to go. When `leaving` names addresses, each connection is told, in the
// order of QP numbers: the peers of those that use one get a DREQ. When `abandon` rises, each is told once more, which ends those that still
// wait for their peer, and queue pairs that software has set up with such an address go to ERR; then `abandoned` is high until `abandon`
// falls. Connections and queue pairs with other addresses stay.
//
// One QP after another; waits for `command` and its answer, which comes in a bounded time (roce_qp_control).
module roce_close_all
  import roce_wire_pkg::*;
  import packet_pkg::*;
  import roce_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input  logic     clk,
    input  logic     rst,
    input  own_set_t leaving,       // addresses; stable until it is 0 again
    input  logic     abandon,       // only with `leaving`
    output logic     abandoned,
    input  logic     made,          // pulse: a QP was set up
    input  qp_cmd_t  changed,       // with these attributes
    stream_if.source closing,       // close_t
    stream_if.source command,       // qp_cmd_t
    stream_if.sink   answer,        // logic
    output logic     idle
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  typedef logic [INDEX_W-1:0] index_t;

  typedef enum logic [2:0] {
    S_IDLE,
    S_CLOSE,
    S_COMMAND,
    S_ANSWER,
    S_WAIT                          // for `abandon`
  } state_e;
  state_e state_q;
  index_t index_q;
  logic   abandon_q;                // this round is the second one
  wire qpn_t qpn = qp_number(qp_index_t'(index_q));
  wire    last = index_q == index_t'(QPS - 1);
  wire    close = leaving != '0;

  // The address of each queue pair.
  (* ram_style = "distributed" *) logic [$bits(own_address_e)-1:0] owns[QPS];
  wire index_t made_at = index_t'(qp_index(changed.qpn));
  always_ff @(posedge clk) if (made) owns[made_at] <= changed.attr.own;
  wire concerned = leaving[owns[index_q]];

  assign closing.valid = state_q == S_CLOSE;
  assign closing.data  = '{qpn: qpn, lost: 1'b1};
  assign command.valid = state_q == S_COMMAND;
  assign command.data  = '{op: QP_MODIFY, qpn: qpn, state: QPS_ERR, attr: '0};
  assign answer.ready  = state_q == S_ANSWER;
  assign abandoned     = state_q == S_WAIT && abandon_q;
  assign idle          = state_q == S_WAIT ? abandon == abandon_q && close : state_q == S_IDLE && !close;

  always_ff @(posedge clk) begin
    unique case (state_q)
      S_IDLE: begin
        index_q   <= '0;
        abandon_q <= abandon;
        if (close) state_q <= S_CLOSE;
      end
      S_CLOSE: if (closing.ready) begin
        index_q <= index_q + 1'b1;
        state_q <= last ? S_WAIT : S_CLOSE;
        if (abandon_q && concerned) begin
          index_q <= index_q;
          state_q <= S_COMMAND;
        end
      end
      S_COMMAND: if (command.ready) state_q <= S_ANSWER;
      S_ANSWER: if (answer.valid) begin
        index_q <= index_q + 1'b1;
        state_q <= last ? S_WAIT : S_CLOSE;
      end
      default: if (!close || abandon != abandon_q) state_q <= S_IDLE;
    endcase
    if (rst) state_q <= S_IDLE;
  end
endmodule
