// SPDX-License-Identifier: Apache-2.0

// Sensors of a board (docs/reference/sensors.md).
package sensors_pkg;
  localparam int unsigned MAX_SENSORS = 16;

  typedef logic [3:0] sensor_t;

  // What a monitor of a board gives: a value of one sensor.
  typedef struct packed {
    sensor_t            sensor;      // its number, in the order of the device's description
    logic               known;       // it could be measured; else it has no value from now on
    logic               simulated;   // it is that of a model
    logic signed [31:0] value;       // m°C, mV, mA, mW, thousandths of a turn a minute
  } sensor_reading_t;
endpackage
