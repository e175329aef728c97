// SPDX-License-Identifier: Apache-2.0

// The device's side of a slot, where the device was built without one. Constant.
module network_only (
    slot_if.device slot
);
  assign slot.flr_done        = '0;
  assign slot.rx_header_ready = 1'b1;
  assign slot.rx_tready       = 1'b1;
  assign slot.tx_header       = '0;
  assign slot.tx_header_valid = 1'b0;
  assign slot.tx_tdata        = '0;
  assign slot.tx_tkeep        = '0;
  assign slot.tx_tlast        = 1'b0;
  assign slot.tx_tvalid       = 1'b0;

  logic unused_ok;
  assign unused_ok = &{1'b0, slot.settings, slot.credits, slot.flr_request, slot.rx_header, slot.rx_header_valid, slot.rx_tdata, slot.rx_tkeep,
                       slot.rx_tlast, slot.rx_tuser, slot.rx_tvalid, slot.tx_header_ready, slot.tx_tready};
endmodule
