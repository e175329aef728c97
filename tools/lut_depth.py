# SPDX-License-Identifier: Apache-2.0
"""Logic depth of a mapped netlist: the longest path between two registers, in LUT levels.

Works on the JSON netlist of yosys after `synth_xilinx`. Registers, block RAM, DSPs and the write side of LUT RAM start and end
paths; a LUT and the read side of LUT RAM cost one level, a carry or wide-multiplexer cell a fraction of one.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

_SEQUENTIAL = re.compile(r"^(FD[A-Z]+|RAMB\w+|URAM\w+|DSP48\w+|SRL\w+)$")
_LUT_RAM = re.compile(r"^RAM(32|64|128|256|512)\w+$")
_CLOCK = re.compile(r"^(C|CLK|WCLK|CLKARDCLK|CLKBWRCLK)$")
# Read ports of a LUT RAM: the address that each output depends on.
_LUT_RAM_READ = (("DPO", "DPRA"), ("SPO", "A"), ("O", "A"), *((f"DO{port}", f"ADDR{port}") for port in "ABCDEFGH"))


def _levels(cell_type: str) -> float:
    if re.match(r"^LUT[1-6]$", cell_type) or _LUT_RAM.match(cell_type):
        return 1.0
    if cell_type.startswith("CARRY"):
        return 0.1
    if re.match(r"^MUXF[789]$", cell_type):
        return 0.3
    return 0.0


@dataclass(frozen=True)
class Depth:
    """`levels` of the longest register-to-register path, from the net `start` to the register at `end`."""

    levels: float
    start: str
    end: str
    endpoints: dict[int, int]  # levels -> how many register inputs have them


def depth(module: dict[str, Any]) -> Depth:
    """Analyses one module of a yosys JSON netlist. Raises ValueError on a combinational loop."""
    names: dict[int, str] = {}
    for name, net in module["netnames"].items():
        for index, bit in enumerate(net["bits"]):
            if not isinstance(bit, str) and (bit not in names or not net.get("hide_name")):
                names[bit] = f"{name}[{index}]" if len(net["bits"]) > 1 else name

    arrival: dict[int, float] = {}
    came_from: dict[int, int | None] = {}
    ends: list[tuple[int, str]] = []
    logic: dict[str, tuple[str, set[int], list[int]]] = {}
    for cell_name, cell in module["cells"].items():
        kind = cell["type"]
        if kind.startswith("$"):
            continue
        inputs: dict[str, list[int]] = defaultdict(list)
        outputs: list[int] = []
        for port, bits in cell["connections"].items():
            wires = [bit for bit in bits if not isinstance(bit, str)]
            if cell["port_directions"][port] == "output":
                outputs += wires
            elif not _CLOCK.match(port):
                inputs[port] += wires
        if _SEQUENTIAL.match(kind):
            for bit in outputs:
                arrival[bit], came_from[bit] = 0.0, None
            ends += [(bit, f"{cell_name}.{port}") for port, bits in inputs.items() for bit in bits]
        else:
            through = {bit for port, bits in inputs.items() for bit in bits}
            if _LUT_RAM.match(kind):
                ends += [(bit, f"{cell_name}.{port}") for port, bits in inputs.items() for bit in bits]
                for output, address in _LUT_RAM_READ:
                    read = [bit for bit in cell["connections"].get(output, []) if not isinstance(bit, str)]
                    named = {b for port, bits in inputs.items() if re.sub(r"\d+$", "", port) == address for b in bits}
                    if read:
                        logic[f"{cell_name}.{output}"] = (kind, named, read)
                continue
            logic[cell_name] = (kind, through, outputs)
    for port in module["ports"].values():
        for bit in port["bits"]:
            if port["direction"] == "input" and not isinstance(bit, str):
                arrival[bit], came_from[bit] = 0.0, None

    driver = {bit: name for name, (_, _, outputs) in logic.items() for bit in outputs}
    users: dict[int, list[str]] = defaultdict(list)
    waiting = {}
    for name, (_, inputs, _) in logic.items():
        pending = [bit for bit in inputs if bit in driver]
        waiting[name] = len(pending)
        for bit in pending:
            users[bit].append(name)
    ready = [name for name, count in waiting.items() if count == 0]
    done = 0
    while ready:
        name = ready.pop()
        done += 1
        kind, inputs, outputs = logic[name]
        latest = max(inputs, key=lambda bit: arrival.get(bit, 0.0), default=None)
        for bit in outputs:
            arrival[bit] = (arrival.get(latest, 0.0) if latest is not None else 0.0) + _levels(kind)
            came_from[bit] = latest
            for user in users[bit]:
                waiting[user] -= 1
                if waiting[user] == 0:
                    ready.append(user)
    if done != len(logic):
        raise ValueError(f"{len(logic) - done} cells are in combinational loops")

    if not ends:
        return Depth(0.0, "", "", {})
    worst, end = max(ends, key=lambda item: arrival.get(item[0], 0.0))
    first: int | None = worst
    while first is not None and came_from.get(first) is not None:
        first = came_from[first]
    histogram = Counter(round(arrival.get(bit, 0.0)) for bit, _ in ends)
    start = names.get(first, "?") if first is not None else "?"
    return Depth(round(arrival.get(worst, 0.0), 1), start, f"{names.get(worst, '?')} -> {end}", dict(histogram))
