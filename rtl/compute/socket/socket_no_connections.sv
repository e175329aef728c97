// SPDX-License-Identifier: Apache-2.0

// In the place of socket_connections, for a socket whose kernel can open none: each attempt gets KERNEL_REFUSED, with CONN_NOT_PERMITTED.
// Latency: one cycle.
module socket_no_connections
  import roce_pkg::*;
(
    input  logic     clk,
    input  logic     rst,
    input  logic     cut,
    stream_if.sink   kernel_connect,   // kernel_connect_t
    stream_if.source kernel_conn,      // kernel_conn_t
    output logic     refused           // pulse
);
  kernel_connect_t asked;
  kernel_slot_t    slot_q;
  logic            valid_q;
  assign asked = kernel_connect.data;
  wire opens = kernel_connect.valid && kernel_connect.ready && !cut && !asked.close;

  assign kernel_connect.ready = cut || !valid_q;
  assign kernel_conn.valid    = valid_q && !cut;
  assign kernel_conn.data     = '{kind: KERNEL_REFUSED, slot: slot_q, reason: CONN_NOT_PERMITTED, default: '0};

  always_ff @(posedge clk) begin
    if (opens) slot_q <= asked.slot;
    refused <= !rst && opens;
    valid_q <= !rst && !cut && (opens || (valid_q && !kernel_conn.ready));
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, asked.ip, asked.port, asked.private_data};
endmodule
