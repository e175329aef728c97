// SPDX-License-Identifier: Apache-2.0

// For tests, in place of the product's socket_kernel: where that has the traffic kernel, this has one that misbehaves.
module socket_kernel
  import compute_pkg::*;
#(
    parameter string       KERNEL = "increment",
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W   = 4
) (
    input  logic             clk,
    input  logic             rst,
    output kernel_identity_t identity,
    axil_if.slave            ctrl,
    stream_if.sink           job,
    stream_if.source         done,
    axi_if.master            mem,
    axis_if.sink             rx,
    axis_if.source           tx,
    stream_if.source         wqe,
    stream_if.sink           cqe,
    axis_if.source           msg_tx,
    axis_if.sink             msg_rx
);
  if (KERNEL == "traffic") begin : g_kernel
    kernel_hostile #(.DATA_W(DATA_W), .ID_W(ID_W)) kernel (.*);
  end else if (KERNEL == "matmul") begin : g_kernel
    kernel_matmul #(.DATA_W(DATA_W), .ID_W(ID_W)) kernel (.*);
  end else begin : g_kernel
    kernel_increment #(.DATA_W(DATA_W), .ID_W(ID_W)) kernel (.*);
  end
endmodule
