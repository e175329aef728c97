// SPDX-License-Identifier: Apache-2.0

// The slot of a device that is in none. Constant.
module no_slot (
    slot_if.slot slot
);
  assign slot.settings        = '0;
  assign slot.credits         = '0;
  assign slot.flr_request     = '0;
  assign slot.rx_header       = '0;
  assign slot.rx_header_valid = 1'b0;
  assign slot.rx_tdata        = '0;
  assign slot.rx_tkeep        = '0;
  assign slot.rx_tlast        = 1'b0;
  assign slot.rx_tuser        = 1'b0;
  assign slot.rx_tvalid       = 1'b0;
  assign slot.tx_header_ready = 1'b1;
  assign slot.tx_tready       = 1'b1;

  logic unused_ok;
  assign unused_ok = &{1'b0, slot.flr_done, slot.rx_header_ready, slot.rx_tready, slot.tx_header, slot.tx_header_valid, slot.tx_tdata,
                       slot.tx_tkeep, slot.tx_tlast, slot.tx_tvalid};
endmodule
