// SPDX-License-Identifier: Apache-2.0

// Cells of ECP5 that a board uses, by their ports and parameters (Lattice FPGA-TN-02200, FPGA-TN-02035), for synthesis and lint. What they do is in
// tools/netlist.py, for the simulation of the netlist.
/* verilator lint_off DECLFILENAME */
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off UNDRIVEN */
/* verilator lint_off PINCONNECTEMPTY */

(* blackbox *)
module EHXPLLL #(
    parameter CLKI_DIV = 1,
    parameter CLKFB_DIV = 1,
    parameter CLKOP_DIV = 8,
    parameter CLKOS_DIV = 8,
    parameter CLKOS2_DIV = 8,
    parameter CLKOS3_DIV = 8,
    parameter CLKOP_ENABLE = "ENABLED",
    parameter CLKOS_ENABLE = "DISABLED",
    parameter CLKOS2_ENABLE = "DISABLED",
    parameter CLKOS3_ENABLE = "DISABLED",
    parameter CLKOP_CPHASE = 0,
    parameter CLKOS_CPHASE = 0,
    parameter CLKOS2_CPHASE = 0,
    parameter CLKOS3_CPHASE = 0,
    parameter FEEDBK_PATH = "CLKOP"
) (
    input  CLKI, CLKFB, PHASESEL1, PHASESEL0, PHASEDIR, PHASESTEP, PHASELOADREG, STDBY, PLLWAKESYNC, RST, ENCLKOP, ENCLKOS, ENCLKOS2, ENCLKOS3,
    output CLKOP, CLKOS, CLKOS2, CLKOS3, LOCK, INTLOCK
);
endmodule

(* blackbox *)
module OSCG #(
    parameter DIV = 128
) (
    output OSC
);
endmodule

(* blackbox *)
module IDDRX1F (
    input  D, SCLK, RST,
    output Q0, Q1
);
endmodule

(* blackbox *)
module ODDRX1F (
    input  SCLK, RST, D0, D1,
    output Q
);
endmodule

(* blackbox *)
module DELAYG #(
    parameter DEL_MODE = "USER_DEFINED",
    parameter DEL_VALUE = 0
) (
    input  A,
    output Z
);
endmodule
