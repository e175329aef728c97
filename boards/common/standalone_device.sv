// SPDX-License-Identifier: Apache-2.0

// A device on a board on which no software is beside it: it starts by itself (device_start), with a seed from the jitter of `noise` against the board's
// crystal (jitter_seed), which takes 16384 periods of `noise`, and is managed by way of the network. Where software is there, its bus takes the place of
// device_start.
module standalone_device
  import device_pkg::*;
#(
    parameter logic [47:0] MAC = 48'h02_4e_41_43_4c_02,
    parameter logic [31:0] IP = 32'h0a_4d_00_02,     // 10.77.0.2
    parameter logic [5:0]  PREFIX_LEN = 6'd16,
    parameter logic [31:0] GATEWAY = 32'd0,          // 0: none
    parameter logic [1:0]  ADDRESS_MODE = 2'd0       // static; as the register of this name
) (
    input  logic   clk,
    input  logic   rst,
    input  logic   noise,                            // of the chip's own oscillator; below half of the frequency of `clk`
    axis_if.source tx,
    axis_if.sink   rx,
    stream_if.sink sensor_reading,                   // sensor_reading_t: of the board
    axi_if.master  dram[MEMORIES]
);
  axil_if #(.ADDR_W(20)) bus ();
  logic seed_valid;
  logic [31:0] seed;

  jitter_seed random (.clk, .rst, .noise, .valid(seed_valid), .seed);
  device_start #(
      .MAC         (MAC),
      .IP          (IP),
      .PREFIX_LEN  (PREFIX_LEN),
      .GATEWAY     (GATEWAY),
      .ADDRESS_MODE(ADDRESS_MODE)
  ) start (
      .clk, .rst, .seed_valid, .seed, .bus, .done(), .failed()
  );
  slot_if #(.DATA_W(DATA_W)) slot ();
  no_slot nowhere (.slot);

  nacelle_shell device (
      .clk, .rst, .time_skip('0), .chip_id('0), .idle(), .busy(), .sensor_reading, .link_up(1'b1), .rx, .tx, .bus, .slot, .dram
  );
endmodule
