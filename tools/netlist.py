# SPDX-License-Identifier: Apache-2.0
"""A netlist of ECP5 cells (yosys JSON) as plain Verilog: what Verilator simulates fast, cell by cell as the data sheets have it.

It may be what yosys mapped, or what nextpnr has packed, placed and routed (--write), in which cells have other names: one LUT or
one bit of carry or RAM each, and pins of their own. A pin of these that is joined to nothing has its constant in a parameter, or
is 1.
Clocks are ports: the outputs of the PLL and of the oscillator become inputs of the module, named after the instance and the port
(`pll_clkop`, `oscillator_osc`). Delays in pins are left out. A cell that is not known ends it with an error.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Bits = Sequence[int | str]
CLOCK_SOURCES = ("EHXPLLL", "OSCG")


def _number(value: str | int) -> int:
    """A parameter; what does not matter in it is 0."""
    return value if isinstance(value, int) else int(value.strip().replace("x", "0"), 2)


class Netlist:
    """Writes one module."""

    def __init__(self, module: Mapping[str, Any]) -> None:
        self.module = module
        self.lines: list[str] = []
        self.extra: list[str] = []  # inputs in place of clock sources
        self.given: set[int] = set()

    @staticmethod
    def net(bit: int | str) -> str:
        """The name of a net, or a constant."""
        return f"n{bit}" if isinstance(bit, int) else f"1'b{1 if bit == '1' else 0}"

    def word(self, bits: Bits) -> str:
        """Several nets, the first lowest."""
        return f"{{{', '.join(self.net(bit) for bit in reversed(bits))}}}"

    def one(self, cell: Mapping[str, Any], port: str, otherwise: str = "1'b0") -> str:
        """The net at a port of one bit. If there is none, nextpnr may have left a constant in its place."""
        if bits := cell["connections"].get(port, []):
            return self.net(bits[0])
        constant = str(cell["parameters"].get(f"{port}MUX", "")).strip()
        return f"1'b{constant}" if constant in ("0", "1") else otherwise

    def bus(self, cell: Mapping[str, Any], prefix: str, width: int) -> str:
        """The nets at ports that are numbered from 0."""
        return f"{{{', '.join(self.one(cell, f'{prefix}{i}') for i in reversed(range(width)))}}}"

    def drive(self, cell: Mapping[str, Any], port: str, value: str) -> None:
        """What a port of one bit has, if it is joined."""
        if bits := cell["connections"].get(port):
            self.lines.append(f"assign {self.net(bits[0])} = {value};")

    # ---- cells ----

    def lut(self, init: int, inputs: Sequence[str]) -> str:
        """A table of 16 bits."""
        return f"1'(16'h{init:04x} >> {{{', '.join(reversed(inputs))}}})"

    def lut4(self, name: str, cell: Mapping[str, Any]) -> None:
        self.drive(cell, "Z", self.lut(_number(cell["parameters"]["INIT"]), [self.one(cell, pin) for pin in "ABCD"]))

    def pfumx(self, name: str, cell: Mapping[str, Any]) -> None:
        self.drive(cell, "Z", f"{self.one(cell, 'C0')} ? {self.one(cell, 'ALUT')} : {self.one(cell, 'BLUT')}")

    def l6mux21(self, name: str, cell: Mapping[str, Any]) -> None:
        self.drive(cell, "Z", f"{self.one(cell, 'SD')} ? {self.one(cell, 'D1')} : {self.one(cell, 'D0')}")

    def ccu2c(self, name: str, cell: Mapping[str, Any]) -> None:
        carry = self.one(cell, "CIN")
        for i in range(2):
            init = _number(cell["parameters"][f"INIT{i}"])
            alone = cell["parameters"][f"INJECT1_{i}"].strip() == "YES"
            four = f"{name}_f{i}"
            table = self.lut(init, [self.one(cell, f"{pin}{i}") for pin in "ABCD"])
            two = f"1'(4'h{init & 15:x} >> {{{self.one(cell, f'B{i}')}, {self.one(cell, f'A{i}')}}})"
            self.lines.append(f"wire {four} = {table};")
            self.drive(cell, f"S{i}", four if alone else f"{four} ^ {carry}")
            self.lines.append(f"wire {name}_c{i} = {four} ? {carry} : {'1' + chr(39) + 'b0' if alone else two};")
            carry = f"{name}_c{i}"
        self.drive(cell, "COUT", carry)

    def ff(self, name: str, cell: Mapping[str, Any]) -> None:
        parameters = {key: str(value).strip() for key, value in cell["parameters"].items()}
        q = self.one(cell, "Q")
        data = self.one(cell, "M" if parameters.get("SD") == "0" and "M" in cell["connections"] else "DI")
        reset = self.one(cell, "LSR") if parameters.get("LSRMUX", "LSR") == "LSR" else f"!{self.one(cell, 'LSR')}"
        clock = f"{'negedge' if parameters.get('CLKMUX') == 'INV' else 'posedge'} {self.one(cell, 'CLK')}"
        value = f"1'b{int(parameters.get('REGSET') == 'SET')}"
        enable = {"1": "", "0": "if (1'b0) ", "INV": f"if (!{self.one(cell, 'CE')}) "}.get(
            parameters.get("CEMUX", "1"), f"if ({self.one(cell, 'CE')}) "
        )
        self.lines.append(f"reg {q}_q = {value}; assign {q} = {q}_q;")
        if not cell["connections"].get("LSR") or reset == "1'b0":
            self.lines.append(f"always @({clock}) {enable}{q}_q <= {data};")
        elif parameters.get("SRMODE") == "ASYNC":
            edge = f"{'negedge' if reset[0] == '!' else 'posedge'} {reset.lstrip('!')}"
            self.lines.append(f"always @({clock} or {edge}) if ({reset}) {q}_q <= {value}; else {enable}{q}_q <= {data};")
        elif parameters.get("SRMODE") == "CE_OVER_LSR":
            self.lines.append(f"always @({clock}) {enable}begin if ({reset}) {q}_q <= {value}; else {q}_q <= {data}; end")
        else:
            self.lines.append(f"always @({clock}) if ({reset}) {q}_q <= {value}; else {enable}{q}_q <= {data};")

    def distributed_ram(self, name: str, cell: Mapping[str, Any]) -> None:
        at = cell["connections"]
        write = f"!{self.one(cell, 'WRE')}" if cell["parameters"].get("WREMUX", "WRE").strip() == "INV" else self.one(cell, "WRE")
        edge = "negedge" if cell["parameters"].get("WCKMUX", "WCK").strip() == "INV" else "posedge"
        initial = _number(cell["parameters"].get("INITVAL", 0))
        rows = ", ".join(f"4'h{initial >> 4 * i & 15:x}" for i in range(16))
        self.lines.append(f"reg [3:0] {name}_m [16] = '{{{rows}}};")
        self.lines.append(
            f"always @({edge} {self.one(cell, 'WCK')}) if ({write}) {name}_m[{self.word(at['WAD'])}] <= {self.word(at['DI'])};"
        )
        self.lines.append(f"wire [3:0] {name}_o = {name}_m[{self.word(at['RAD'])}];")
        for i, bit in enumerate(at["DO"]):
            self.lines.append(f"assign {self.net(bit)} = {name}_o[{i}];")

    def block_ram(self, name: str, cell: Mapping[str, Any]) -> None:
        """Two ports of 1 to 18 bits, or one that writes 36 and one that reads: 2048 bytes of 9 bits. A read in the cycle of a write
        to the same place from the other port comes as it was before; the mapper makes no use of it."""
        parameters = {key: value.strip() if isinstance(value, str) else value for key, value in cell["parameters"].items()}
        widths = {p: _number(parameters[f"DATA_WIDTH_{p}"]) for p in "AB"}
        content = [0] * 2048
        for row in range(64):
            initial = _number(parameters.get(f"INITVAL_{row:02X}", 0) or 0)
            # 32 bytes a row: 16 words of 18 bits, in 20 bits each
            for i in range(16):
                word = initial >> 20 * i & 0x3FFFF
                content[row * 32 + 2 * i] = word & 0x1FF
                content[row * 32 + 2 * i + 1] = word >> 9
        if any(content):
            rows = ", ".join(f"9'h{value:x}" for value in content)
            self.lines.append(f"reg [8:0] {name}_m [2048] = '{{{rows}}};")
        else:
            self.lines.append(f"reg [8:0] {name}_m [2048];")
            self.lines.append(f"initial for (int i = 0; i < 2048; i++) {name}_m[i] = 0;")
        self.lines.append(f"wire [35:0] {name}_i = {{{self.bus(cell, 'DIB', 18)}, {self.bus(cell, 'DIA', 18)}}};")
        for p in "AB":
            self._ram_port(name, cell, parameters, p, widths[p], wide=widths["A"] == 36)

    def _ram_port(self, name: str, cell: Mapping[str, Any], parameters: Mapping[str, Any], p: str, width: int, wide: bool) -> None:
        """One port. `wide`: port A writes 36 bits, by the data of both, and port B reads."""
        mode = parameters.get(f"WRITEMODE_{p}", "NORMAL")
        if mode not in ("NORMAL", "READBEFOREWRITE") or (
            parameters.get("RESETMODE") == "ASYNC" and self.one(cell, f"RST{p}") != "1'b0"
        ):
            sys.exit(f"error: {name}: no model of a block RAM with {mode}, or with a reset that is not synchronous")
        a, o, m = f"{name}_a{p}", f"{name}_o{p}", f"{name}_m"
        self.lines.append(f"wire [13:0] {a} = {self.bus(cell, f'AD{p}', 14)}; reg [35:0] {o} = 0;")
        lanes = {36: 4, 18: 2}.get(width, 1)
        low = 0 if p == "A" else 18
        if lanes > 1:
            places = [f"{m}[{{{a}[13:{3 + lanes // 2}], {lanes // 2}'d{k}}}]" for k in range(lanes)]
            written = range(0 if wide and p == "B" else lanes)
            store = " ".join(f"if ({a}[{k}]) {places[k]} <= {name}_i[{low + 9 * k} +: 9];" for k in written)
            load = f"{o}[{9 * lanes - 1}:0] <= {{{', '.join(reversed(places))}}};"
        elif width == 9:
            store, load = f"{m}[{a}[13:3]] <= {name}_i[{low} +: 9];", f"{o}[8:0] <= {m}[{a}[13:3]];"
        else:
            step = {1: 0, 2: 1, 4: 2}[width]
            place = f"{{{a}[2:{step}]{f', {step}' + chr(39) + 'd0' if step else ''}}}"
            store = f"{m}[{a}[13:3]][{place} +: {width}] <= {name}_i[{low} +: {width}];"
            load = f"{o}[{width - 1}:0] <= {m}[{a}[13:3]][{place} +: {width}];"
        chosen = _number(str(parameters.get(f"CSDECODE_{p}", "0b000"))[-3:])
        selected = [f"{self._muxed(cell, parameters, f'CS{p}{k}')} == 1'b{chosen >> k & 1}" for k in range(3)]
        enable = " && ".join([self._muxed(cell, parameters, f"CE{p}"), *selected])
        write = self._muxed(cell, parameters, f"WE{p}")
        reset = self._muxed(cell, parameters, f"RST{p}")
        reads = load if mode == "READBEFOREWRITE" else f"if (!({write})) begin {load} end"
        clock = self._muxed(cell, parameters, f"CLK{p}")
        edge = f"negedge {clock[1:]}" if clock[0] == "!" else f"posedge {clock}"
        self.lines.append(
            f"always @({edge}) if ({reset}) {o} <= 0; else if ({enable}) begin if ({write}) begin {store} end {reads} end"
        )
        if wide and p == "A":
            return
        outputs = [f"DOA{k}" for k in range(18)] if wide and width == 36 else []
        outputs += [f"DO{p}{k}" for k in range(18)]
        for k, port in enumerate(outputs):
            self.drive(cell, port, f"{o}[{k}]")

    def _muxed(self, cell: Mapping[str, Any], parameters: Mapping[str, Any], port: str) -> str:
        chosen = parameters.get(f"{port}MUX", "")
        inverted = chosen == "INV"
        # A control pin that is joined to nothing is 1; one that has no parameter is not used.
        value = self.one(cell, port, "1'b1" if chosen or port.startswith("CE") else "1'b0")
        return f"!{value}" if inverted else value

    def multiplier(self, name: str, cell: Mapping[str, Any]) -> None:
        registers = [value for key, value in cell["parameters"].items() if key.startswith("REG_") and key.endswith("_CLK")]
        if any(str(value).strip() != "NONE" for value in registers):
            sys.exit(f"error: {name}: a multiplier with registers")
        terms = []
        for p in "AB":
            sign = f"{self.one(cell, f'SIGNED{p}')} && {self.one(cell, f'{p}17')}"
            terms.append(f"$signed({{{{18{{{sign}}}}}, {self.bus(cell, p, 18)}}})")
        self.lines.append(f"wire [35:0] {name}_p = {terms[0]} * {terms[1]};")
        for i in range(36):
            self.drive(cell, f"P{i}", f"{name}_p[{i}]")

    # ---- cells as nextpnr has packed them ----

    def comb(self, name: str, cell: Mapping[str, Any]) -> None:
        """A LUT, one bit of a carry chain, or one of a distributed RAM."""
        parameters = cell["parameters"]
        mode = str(parameters.get("MODE", "LOGIC")).strip()
        if mode == "RAMW_BLOCK":
            return
        if cell["connections"].get("OFX"):
            sys.exit(f"error: {name}: no model of a wide LUT that is placed")
        init = _number(parameters["INITVAL"])
        inputs = [self.one(cell, pin, "1'b1") for pin in "ABCD"]
        if mode == "DPRAM":
            self._ram_bit(name, cell, init, inputs)
            return
        table = self.lut(init, inputs)
        if mode != "CCU2":
            self.drive(cell, "F", table)
            return
        alone = str(parameters["CCU2_INJECT1"]).strip() == "YES"
        carry, two = self.one(cell, "FCI", "1'b1"), f"1'(4'h{init & 15:x} >> {{{inputs[1]}, {inputs[0]}}})"
        self.lines.append(f"wire {name}_f = {table};")
        self.drive(cell, "F", f"{name}_f" if alone else f"{name}_f ^ {carry}")
        self.drive(cell, "FCO", f"{name}_f ? {carry} : {'1' + chr(39) + 'b0' if alone else two}")

    def _ram_bit(self, name: str, cell: Mapping[str, Any], init: int, inputs: Sequence[str]) -> None:
        """16 words of a bit. The inputs A, B, C and D are bits 3, 1, 2 and 0 of the address."""
        a, b, c, d = inputs
        rows = (init >> ((at >> 3 & 1) | (at >> 1 & 1) << 1 | (at >> 2 & 1) << 2 | (at & 1) << 3) & 1 for at in range(16))
        write = self.one(cell, "WRE", "1'b1")
        if str(cell["parameters"].get("WREMUX", "")).strip() == "INV":
            write = f"!{write}"
        edge = "negedge" if str(cell["parameters"].get("WCKMUX", "")).strip() == "INV" else "posedge"
        at = ", ".join(self.one(cell, f"WAD{i}") for i in (3, 2, 1, 0))
        self.lines.append(f"reg {name}_m [16] = '{{{', '.join(str(row) for row in rows)}}};")
        self.lines.append(f"always @({edge} {self.one(cell, 'WCK')}) if ({write}) {name}_m[{{{at}}}] <= {self.one(cell, 'WD')};")
        self.drive(cell, "F", f"{name}_m[{{{a}, {c}, {b}, {d}}}]")

    def ram_write(self, name: str, cell: Mapping[str, Any]) -> None:
        """The way of a RAM's address and data through its slice."""
        for i, pin in enumerate(("D0", "B0", "C0", "A0")):
            self.drive(cell, f"WADO{i}", self.one(cell, pin, "1'b1"))
        for i, pin in enumerate(("C1", "A1", "D1", "B1")):
            self.drive(cell, f"WDO{i}", self.one(cell, pin, "1'b1"))

    def pin(self, name: str, cell: Mapping[str, Any]) -> None:
        """A pin in one direction, by its register if it has one."""
        parameters = cell["parameters"]
        if parameters["DIR"] == "INPUT":
            self.drive(cell, "O", self.one(cell, "B"))
        else:
            self.drive(cell, "B", self.one(cell, "IOLDO" if parameters.get("DATAMUX_ODDR") == "IOLDO" else "I"))

    def pin_register(self, name: str, cell: Mapping[str, Any]) -> None:
        """Both edges of a clock, in or out; delays are left out."""
        if cell["parameters"]["MODE"] != "IDDRX1_ODDRX1":
            sys.exit(f"error: {name}: no model of a pin's register in mode {cell['parameters']['MODE']}")
        at = cell["connections"]
        if at.get("IOLDO"):
            self.ddr_out(
                name, {**cell, "connections": {"SCLK": at["CLK"], "D0": at["TXDATA0"], "D1": at["TXDATA1"], "Q": at["IOLDO"]}}
            )
        else:
            wires = {"SCLK": at["CLK"], "D": at["PADDI"], "Q0": at["RXDATA0"], "Q1": at["RXDATA1"]}
            self.ddr_in(name, {**cell, "connections": wires})

    def global_clock(self, name: str, cell: Mapping[str, Any]) -> None:
        self.drive(cell, "CLKO", self.one(cell, "CLKI"))

    def ddr_in(self, name: str, cell: Mapping[str, Any]) -> None:
        d, clock = self.one(cell, "D"), self.one(cell, "SCLK")
        self.lines.append(f"reg {name}_r = 0, {name}_f = 0, {name}_q0 = 0, {name}_q1 = 0;")
        self.lines.append(f"always @(negedge {clock}) {name}_f <= {d};")
        self.lines.append(f"always @(posedge {clock}) begin {name}_r <= {d}; {name}_q0 <= {name}_r; {name}_q1 <= {name}_f; end")
        self.drive(cell, "Q0", f"{name}_q0")
        self.drive(cell, "Q1", f"{name}_q1")

    def ddr_out(self, name: str, cell: Mapping[str, Any]) -> None:
        clock = self.one(cell, "SCLK")
        self.lines.append(f"reg {name}_r = 0, {name}_f = 0;")
        for edge, port in (("r", "D0"), ("f", "D1")):
            self.lines.append(f"always @(posedge {clock}) {name}_{edge} <= {self.one(cell, port)};")
        self.drive(cell, "Q", f"{clock} ? {name}_r : {name}_f")

    def delay(self, name: str, cell: Mapping[str, Any]) -> None:
        self.drive(cell, "Z", self.one(cell, "A"))

    def clock_source(self, name: str, cell: Mapping[str, Any], given: str) -> None:
        for port, direction in cell["port_directions"].items():
            bits = cell["connections"].get(port, [])
            if direction == "output" and bits and isinstance(bits[0], int):
                self.extra.append(f"{given}_{port.lower()}")
                self.lines.append(f"assign {self.net(bits[0])} = {given}_{port.lower()};")

    # ---- the module ----

    def write(self, path: Path) -> None:
        """As Verilog."""
        known = {
            "LUT4": self.lut4, "PFUMX": self.pfumx, "L6MUX21": self.l6mux21, "CCU2C": self.ccu2c, "TRELLIS_FF": self.ff,
            "TRELLIS_DPR16X4": self.distributed_ram, "DP16KD": self.block_ram, "MULT18X18D": self.multiplier,
            "IDDRX1F": self.ddr_in, "ODDRX1F": self.ddr_out, "DELAYG": self.delay,
            "TRELLIS_COMB": self.comb, "TRELLIS_RAMW": self.ram_write, "TRELLIS_IO": self.pin, "SIOLOGIC": self.pin_register,
            "DCCA": self.global_clock,
        }  # fmt: skip
        nets: set[int] = set()
        for number, (name, cell) in enumerate(self.module["cells"].items()):
            for bits in cell["connections"].values():
                nets |= {bit for bit in bits if isinstance(bit, int)}
            if cell["type"] in CLOCK_SOURCES:
                self.clock_source(name, cell, re.sub(r"\W", "_", name))
            elif cell["type"] in known:
                known[cell["type"]](f"u{number}", cell)
            elif cell["type"] != "$scopeinfo":
                sys.exit(f"error: {name}: no model of {cell['type']}")
        ports = []
        for name, port in self.module["ports"].items():
            width = len(port["bits"])
            ports.append(f"{port['direction']} wire {f'[{width - 1}:0] ' if width > 1 else ''}{name}")
            nets |= {bit for bit in port["bits"] if isinstance(bit, int)}
            for i, bit in enumerate(port["bits"]):
                own = f"{name}[{i}]" if width > 1 else name
                to, of = (self.net(bit), own) if port["direction"] == "input" else (own, self.net(bit))
                self.lines.append(f"assign {to} = {of};")
        ports += [f"input wire {name}" for name in self.extra]
        with path.open("w") as file:
            print(f"module netlist (\n    {f',{chr(10)}    '.join(ports)}\n);", file=file)
            for net in sorted(nets):
                print(f"  wire n{net};", file=file)
            for line in self.lines:
                print(f"  {line}", file=file)
            print("endmodule", file=file)


def convert(netlist: Path, verilog: Path) -> None:
    """The top module of a file."""
    modules = json.loads(netlist.read_text())["modules"]
    Netlist(next(m for m in modules.values() if int(m["attributes"].get("top", "0"), 2))).write(verilog)
