# SPDX-License-Identifier: Apache-2.0
"""Logic depth of a mapped netlist, in LUT levels. Works on the JSON netlist of yosys after `synth_xilinx`.

A path begins at a register, a RAM, a DSP unit or an input port, and ends at one of these or at an output port. A module that was
left out of the netlist (a black box) is a border like the ports. Costs:

    LUT, inverter, read of a LUT RAM or shift register by its address   1 level
    clock to output of a RAM (LUT RAM, block RAM, UltraRAM), a shift register or a DSP unit   1 level; of a flip-flop 0
    multiplication in a DSP unit without a register behind the multiplier   4 levels
    CARRY4, CARRY8   0.1 level; MUXF7, MUXF8, MUXF9   0.3 level

Wires cost nothing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_FLIP_FLOP = re.compile(r"^FD[A-Z]+$")
_BLOCK = re.compile(r"^(RAMB\w+|URAM\w+)$")
_DSP = re.compile(r"^DSP48\w+$")
_SHIFT = re.compile(r"^SRL\w+$")
_LUT_RAM = re.compile(r"^RAM(32|64|128|256|512)\w+$")
_CLOCK = re.compile(r"^(C|CLK|WCLK|CLKARDCLK|CLKBWRCLK)$")
_CONSTANT = ("VCC", "GND")
_LOGIC = ((re.compile(r"^(LUT[1-6]|INV)$"), 1.0), (re.compile(r"^CARRY[48]$"), 0.1), (re.compile(r"^MUXF[789]$"), 0.3))
# Read ports of a LUT RAM: the address that each output depends on.
_LUT_RAM_READ = (("DPO", "DPRA"), ("SPO", "A"), ("O", "A"), *((f"DO{port}", f"ADDR{port}") for port in "ABCDEFGH"))
_MULTIPLY = 4.0

FROM_REGISTER, FROM_PORT = "register", "port"


@dataclass
class _Node:
    """Combinational logic: its outputs are `cost` levels behind the latest of its inputs."""

    cost: float
    inputs: set[int]
    outputs: list[int]


@dataclass
class _Graph:
    nodes: list[_Node] = field(default_factory=list)
    starts: dict[str, dict[int, float]] = field(default_factory=lambda: {FROM_REGISTER: {}, FROM_PORT: {}})
    ends: dict[str, list[tuple[int, str]]] = field(default_factory=lambda: {FROM_REGISTER: [], FROM_PORT: []})

    def start(self, kind: str, bits: Iterable[int], level: float) -> None:
        for bit in bits:
            self.starts[kind][bit] = level

    def end(self, kind: str, name: str, bits: Iterable[int]) -> None:
        self.ends[kind] += [(bit, name) for bit in bits]


@dataclass(frozen=True)
class Path:
    """One path: from `start` to `end`, through the nets that have a name in the source."""

    levels: float
    start: str
    end: str
    nets: tuple[str, ...]


@dataclass(frozen=True)
class Depth:
    """The longest paths by kind ("register to register", "port to port" and so on), and the longest of all, worst first."""

    levels: float
    kinds: dict[str, float]
    worst: list[Path]
    histogram: dict[int, int]  # levels -> how many ends have them


def _registers(parameters: Mapping[str, Any], *names: str) -> bool:
    return any(int(str(parameters.get(name, 0)), 2) for name in names)


def _add(graph: _Graph, name: str, cell: Mapping[str, Any]) -> None:
    """Puts one cell into the graph."""
    kind = cell["type"]
    inputs: dict[str, list[int]] = {}
    outputs: dict[str, list[int]] = {}
    for port, bits in cell["connections"].items():
        wires = [bit for bit in bits if not isinstance(bit, str)]
        if cell["port_directions"][port] == "output":
            outputs[port] = wires
        elif not _CLOCK.match(port):
            inputs[port] = wires
    into = {bit for bits in inputs.values() for bit in bits}
    out = [bit for bits in outputs.values() for bit in bits]

    def ends_here(border: str = FROM_REGISTER) -> None:
        for port, bits in inputs.items():
            graph.end(border, f"{name}.{port}", bits)

    if kind in _CONSTANT:
        return
    if "$" in kind:
        ends_here(FROM_PORT)
        graph.start(FROM_PORT, out, 0.0)
        return
    for pattern, cost in _LOGIC:
        if pattern.match(kind):
            graph.nodes.append(_Node(cost, into, out))
            return
    if _FLIP_FLOP.match(kind):
        ends_here()
        graph.start(FROM_REGISTER, out, 0.0)
    elif _BLOCK.match(kind):
        ends_here()
        graph.start(FROM_REGISTER, out, 1.0)
    elif _SHIFT.match(kind):
        ends_here()
        graph.start(FROM_REGISTER, out, 1.0)
        address = {bit for port, bits in inputs.items() if re.match(r"A\d*$", port) for bit in bits}
        graph.nodes.append(_Node(1.0, address, outputs.get("Q", [])))
    elif _LUT_RAM.match(kind):
        ends_here()
        graph.start(FROM_REGISTER, out, 1.0)
        for output, address in _LUT_RAM_READ:
            named = {bit for port, bits in inputs.items() if re.sub(r"\d+$", "", port) == address for bit in bits}
            if output in outputs:
                graph.nodes.append(_Node(1.0, named, outputs[output]))
    elif _DSP.match(kind):
        parameters = cell["parameters"]
        if _registers(parameters, "PREG"):
            ends_here()
            graph.start(FROM_REGISTER, out, 1.0)
        elif _registers(parameters, "MREG", "AREG", "BREG", "CREG"):
            ends_here()
            graph.start(FROM_REGISTER, out, 1.0 if _registers(parameters, "MREG") else 1.0 + _MULTIPLY)
        else:
            graph.nodes.append(_Node(_MULTIPLY, into, out))
    else:
        raise ValueError(f"{name} is a {kind}, which has no cost")


def _order(nodes: list[_Node]) -> list[_Node]:
    """From inputs to outputs. Raises ValueError on a combinational loop."""
    driver = {bit for node in nodes for bit in node.outputs}
    users: dict[int, list[int]] = defaultdict(list)
    waiting = []
    for index, node in enumerate(nodes):
        pending = [bit for bit in node.inputs if bit in driver]
        for bit in pending:
            users[bit].append(index)
        waiting.append(len(pending))
    ready = [index for index, count in enumerate(waiting) if count == 0]
    ordered = []
    while ready:
        node = nodes[ready.pop()]
        ordered.append(node)
        for bit in node.outputs:
            for user in users[bit]:
                waiting[user] -= 1
                if waiting[user] == 0:
                    ready.append(user)
    if len(ordered) != len(nodes):
        raise ValueError(f"{len(nodes) - len(ordered)} cells are in combinational loops")
    return ordered


def _arrival(ordered: list[_Node], starts: Mapping[int, float]) -> tuple[dict[int, float], dict[int, int]]:
    """When each bit that depends on a start is there, and the bit before it on the longest path."""
    arrival = dict(starts)
    before: dict[int, int] = {}
    for node in ordered:
        latest = max((bit for bit in node.inputs if bit in arrival), key=lambda bit: arrival[bit], default=None)
        if latest is None:
            continue
        for bit in node.outputs:
            if arrival[latest] + node.cost > arrival.get(bit, -1.0):
                arrival[bit] = arrival[latest] + node.cost
                before[bit] = latest
    return arrival, before


def depth(module: Mapping[str, Any], count: int = 1) -> Depth:
    """Analyses one module of a yosys JSON netlist; `count` worst paths, to different registers. Raises ValueError on a loop."""
    names: dict[int, str] = {}
    for name, net in module["netnames"].items():
        for index, bit in enumerate(net["bits"]):
            if not isinstance(bit, str) and not net.get("hide_name") and len(name) < len(names.get(bit, name + "-")):
                names[bit] = f"{name}[{index}]" if len(net["bits"]) > 1 else name
    graph = _Graph()
    for name, cell in module["cells"].items():
        if not cell["type"].startswith("$"):
            _add(graph, name, cell)
    for name, port in module["ports"].items():
        wires = [bit for bit in port["bits"] if not isinstance(bit, str)]
        if port["direction"] == "input":
            graph.start(FROM_PORT, wires, 0.0)
        else:
            graph.end(FROM_PORT, name, wires)
    # What a register cell drives: an end is known by the register's own name, where it has one.
    driven = {
        name: next((names[bit] for port, bits in cell["connections"].items() if cell["port_directions"][port] == "output"
                    for bit in bits if bit in names), name)
        for name, cell in module["cells"].items() if not cell["type"].startswith("$")
    }  # fmt: skip

    ordered = _order(graph.nodes)
    kinds: dict[str, float] = {}
    latest: dict[tuple[int, str], tuple[float, str]] = {}
    found = {}
    for source, starts in graph.starts.items():
        found[source] = arrival, _ = _arrival(ordered, starts)
        for target, ends in graph.ends.items():
            reached = [(arrival[bit], bit, name) for bit, name in ends if bit in arrival]
            kinds[f"{source} to {target}"] = round(max((level for level, _, _ in reached), default=0.0), 1)
            for level, bit, name in reached:
                if level > latest.get((bit, name), (-1.0, ""))[0]:
                    latest[bit, name] = level, source

    worst: list[Path] = []
    seen: set[str] = set()
    for (bit, end), (level, source) in sorted(latest.items(), key=lambda item: -item[1][0]):
        if len(worst) == count:
            break
        cell, _, port = end.rpartition(".")
        target = f"{driven[cell]}.{port}" if cell in driven else end
        register = re.sub(r"\[\d+\]", "", target)
        if register in seen:
            continue
        seen.add(register)
        way = [bit]
        while way[-1] in found[source][1]:
            way.append(found[source][1][way[-1]])
        nets = tuple(dict.fromkeys(names[wire] for wire in reversed(way) if wire in names))
        worst.append(Path(round(level, 1), names.get(way[-1], "?"), target, nets))
    histogram = Counter(round(level) for level, _ in latest.values())
    return Depth(max(kinds.values(), default=0.0), kinds, worst, dict(histogram))
