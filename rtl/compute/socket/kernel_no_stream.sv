// SPDX-License-Identifier: Apache-2.0

// For a kernel without a data path of its own: sends no packet and no message, discards everything received. Wires only.
module kernel_no_stream (
    axis_if.sink   rx,
    axis_if.source tx,
    axis_if.source msg_tx,
    axis_if.sink   msg_rx
);
  assign tx.tvalid = 1'b0;
  assign tx.tdata  = '0;
  assign tx.tkeep  = '0;
  assign tx.tlast  = 1'b0;
  assign tx.tuser  = 1'b0;
  assign rx.tready = 1'b1;
  kernel_no_messages no_messages (.msg_tx, .msg_rx);

  logic unused_ok;
  assign unused_ok = &{1'b0, rx.tdata, rx.tkeep, rx.tlast, rx.tuser, rx.tvalid, tx.tready};
endmodule
