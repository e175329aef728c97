// SPDX-License-Identifier: Apache-2.0

// The registers of the meters (classifier.rdl, METER*), a part of the page of classify_registers, and what meters have counted. Settings are
// staged, and change together by the write to METER_COMMAND.
module classify_meter_registers
  import classify_pkg::*;
  import classifier_regs_pkg::*;
(
    input  logic            clk,
    input  logic            rst,
    input  logic [11:0]     at,
    input  logic            write,          // `wdata` to `at`
    input  logic [31:0]     wdata,
    output logic [31:0]     value,          // of `at` a cycle before
    // classify_meters
    output logic            put,
    output logic            remove,
    output meter_t          meter,
    output meter_settings_t settings,
    input  meter_settings_t current,
    input  logic [METERS-1:0] present,
    input  logic            over,           // a frame was over this meter
    input  meter_t          over_meter
);
  always_ff @(posedge clk) begin
    put    <= write && at == AT_METER_COMMAND && wdata[0];
    remove <= write && at == AT_METER_COMMAND && wdata[1];
    if (write) begin
      unique case (at)
        AT_METER:       meter <= wdata[$bits(meter_t)-1:0];
        AT_METER_RATE:  settings.rate <= wdata;
        AT_METER_BURST: settings.burst <= wdata[$bits(settings.burst)-1:0];
        AT_METER_MODE:  {settings.to_host, settings.frames} <= wdata[1:0];
        default: ;
      endcase
    end
    if (rst) begin
      put      <= 1'b0;
      remove   <= 1'b0;
      meter    <= '0;
      settings <= '0;
    end
  end

  // ---- counters: what is in the memory counts from the first frame on after settings were put ----
  (* ram_style = "distributed" *) logic [31:0] counts[METERS];
  logic [METERS-1:0] counted_q;
  always_ff @(posedge clk) if (over) counts[over_meter] <= counted_q[over_meter] ? counts[over_meter] + 1'b1 : 32'd1;
  always_ff @(posedge clk) begin
    if (put) counted_q[meter] <= 1'b0;
    if (over) counted_q[over_meter] <= 1'b1;
    if (rst) counted_q <= '0;
  end
  wire [31:0] count = counts[meter];

  always_ff @(posedge clk)
    unique case (at)
      AT_METER_RATE:    value <= current.rate;
      AT_METER_BURST:   value <= 32'(current.burst);
      AT_METER_MODE:    value <= 32'({current.to_host, current.frames});
      AT_METER_PRESENT: value <= 32'(present);
      AT_METER_OVER:    value <= counted_q[meter] ? count : '0;
      default:          value <= 32'(meter);
    endcase
endmodule
