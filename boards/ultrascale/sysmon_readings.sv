// SPDX-License-Identifier: Apache-2.0

// What the monitor of an UltraScale+ chip measures of the chip itself, as readings of sensors: 0 the temperature, 1 VCCINT, 2 VCCAUX, 3 VCCBRAM. After each
// `eos`, the end of a round of the monitor, it reads the four results by the DRP and gives them, one after the other; an `eos` that comes meanwhile is passed
// over. A monitor that stops gives nothing any more, so that the values end (board_sensors).
//
// A result is the upper part of 16 bits (AMD UG580): T = code * 509.3140 / 2^16 - 280.2309 °C with the reference of the chip, V = code * 3 / 2^16.
// A reading follows its result by 3 cycles; it waits for `reading`.
module sysmon_readings
  import sensors_pkg::*;
(
    input  logic        clk,       // the DRP's
    input  logic        rst,
    input  logic        eos,       // pulse
    output logic        den,       // pulse: reads `daddr`
    output logic [7:0]  daddr,
    input  logic        drdy,      // pulse, with the answer
    input  logic [15:0] drp_data,
    stream_if.source    reading    // sensor_reading_t
);
  localparam logic [18:0] TEMPERATURE_SCALE = 19'd509_314;    // thousandths, of 2^16 codes
  localparam logic [18:0] VOLTAGE_SCALE = 19'd3000;
  localparam logic signed [31:0] TEMPERATURE_OFFSET = -32'sd280_231;

  typedef enum logic [2:0] {
    S_WAIT,       // for the end of a round
    S_ASK,
    S_ANSWER,
    S_MULTIPLY,
    S_GIVE
  } state_e;

  state_e      state_q;
  logic [1:0]  channel_q;
  logic [15:0] code_q;
  logic [34:0] product_q;
  wire is_temperature = channel_q == 2'd0;

  assign den   = state_q == S_ASK;
  assign daddr = channel_q == 2'd3 ? 8'h06 : 8'(channel_q);   // VCCBRAM is not behind VCCAUX

  sensor_reading_t given;
  assign given = '{
      sensor: sensor_t'(channel_q), known: 1'b1, simulated: 1'b0,
      value: 32'(product_q[34:16]) + (is_temperature ? TEMPERATURE_OFFSET : '0)
  };
  assign reading.valid = state_q == S_GIVE;
  assign reading.data  = given;

  always_ff @(posedge clk) begin
    product_q <= 35'(code_q) * 35'(is_temperature ? TEMPERATURE_SCALE : VOLTAGE_SCALE);
    if (drdy) code_q <= drp_data;
    unique case (state_q)
      S_WAIT:     if (eos) state_q <= S_ASK;
      S_ASK:      state_q <= S_ANSWER;
      S_ANSWER:   if (drdy) state_q <= S_MULTIPLY;
      S_MULTIPLY: state_q <= S_GIVE;
      default: begin
        if (reading.ready) begin
          channel_q <= channel_q + 1'b1;
          state_q   <= &channel_q ? S_WAIT : S_ASK;
        end
      end
    endcase
    if (rst) begin
      state_q   <= S_WAIT;
      channel_q <= '0;
    end
  end
endmodule
