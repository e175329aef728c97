// SPDX-License-Identifier: Apache-2.0

// In place of roce_cc in a device without congestion control: no queue pair is limited, no CNP is sent, and those that come are counted as
// ignored. The state of a QP is read as 0, 1 cycle after the request.
module roce_no_cc
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_cc_pkg::*;
#(
    parameter int unsigned QPS = 256
) (
    input  logic           clk,
    input  logic           rst,

    input  logic           cnp,          // the ports of roce_cc
    input  logic           ecn_marked,
    stream_if.source       cnp_tx,
    output logic [QPS-1:0] blocked,
    stream_if.sink         parked,
    stream_if.source       resume,
    stream_if.sink         forget,
    stream_if.sink         view,
    stream_if.source       viewed,

    output cc_events_t     events,
    output logic           idle
);
  assign cnp_tx.valid = 1'b0;
  assign cnp_tx.data  = '0;
  assign blocked      = '0;
  assign parked.ready = 1'b1;
  assign resume.valid = 1'b0;
  assign resume.data  = '0;
  assign forget.ready = 1'b1;
  assign view.ready   = !viewed.valid;
  assign viewed.data  = '0;
  assign idle         = !cnp && !ecn_marked && !viewed.valid;

  always_ff @(posedge clk) begin
    viewed.valid <= !rst && ((view.valid && view.ready) || (viewed.valid && !viewed.ready));
    events       <= rst ? '0 : '{np_ecn_marked_roce_packets: ecn_marked, rp_cnp_ignored: cnp, default: '0};
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, cnp_tx.ready, parked.valid, parked.data, resume.ready, forget.valid, forget.data, view.data};
endmodule
