// SPDX-License-Identifier: Apache-2.0

// The monitor of an UltraScale+ chip (SYSMONE4, AMD UG580) as sensors of the board: temperature, VCCINT, VCCAUX and VCCBRAM, without pins. It goes through
// them again and again, each an average of 64 conversions (sysmon_readings).
module sysmon_sensors #(
    parameter int unsigned CLOCK_HZ = 250_000_000   // up to 250 MHz
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.source reading   // sensor_reading_t
);
  localparam logic [7:0] DIVIDER = 8'((CLOCK_HZ + 4_999_999) / 5_000_000);   // the ADC takes 1 to 5.2 MHz

  logic        eos, den, drdy;
  logic [7:0]  daddr;
  logic [15:0] drp_data;

  // Averages of 64; a round of the channels that are chosen, for ever; these are calibration, temperature, VCCINT, VCCAUX, VCCBRAM.
  SYSMONE4 #(
      .INIT_40(16'h2000), .INIT_41(16'h2000), .INIT_42({DIVIDER, 8'h00}), .INIT_48(16'h4701), .INIT_4B(16'h4700)
  ) monitor (
      .DCLK(clk), .RESET(rst), .EOS(eos), .DEN(den), .DADDR(daddr), .DRDY(drdy), .DO(drp_data), .DI('0), .DWE(1'b0),
      .CONVST(1'b0), .CONVSTCLK(1'b0), .VP(1'b0), .VN(1'b0), .VAUXP('0), .VAUXN('0), .I2C_SCLK(1'b1), .I2C_SDA(1'b1),
      .ADC_DATA(), .ALM(), .BUSY(), .CHANNEL(), .EOC(), .I2C_SCLK_TS(), .I2C_SDA_TS(), .JTAGBUSY(), .JTAGLOCKED(), .JTAGMODIFIED(), .MUXADDR(),
      .OT(), .SMBALERT_TS()
  );
  sysmon_readings readings (.clk, .rst, .eos, .den, .daddr, .drdy, .drp_data, .reading);
endmodule
