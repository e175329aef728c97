// SPDX-License-Identifier: Apache-2.0

// For a kernel that only computes on memory: sends nothing, discards everything received. Wires only.
module kernel_no_network (
    axis_if.sink     rx,
    axis_if.source   tx,
    stream_if.source wqe,
    stream_if.sink   cqe,
    stream_if.source connect,
    stream_if.sink   conn,
    axis_if.source   msg_tx,
    axis_if.sink     msg_rx
);
  kernel_no_stream no_stream (.rx, .tx, .msg_tx, .msg_rx);
  kernel_no_rdma no_rdma (.wqe, .cqe);
  kernel_no_connections no_connections (.connect, .conn);
endmodule
