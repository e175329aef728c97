# SPDX-License-Identifier: Apache-2.0
"""What a device says of itself (docs/reference/device-description.md), and what follows for the arguments of its functions."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ._errors import InvalidArgument
from ._regions import Region, inout, input, internal, output


@dataclass(frozen=True)
class Load:
    """How busy a device is."""

    # Connections of callers, the one that asks included.
    connections: int
    # Device memory in bytes, and what callers have of it.
    memory_bytes: int
    memory_held: int
    # Calls since the device's start.
    calls: int
    # Kernels that run now, and calls that wait for a thread.
    running: int
    waiting: int


@dataclass(frozen=True)
class RegionInfo:
    """A parameter of a function. `access` is "in", "out", "inout" or "internal"."""

    name: str
    access: str
    doc: str = ""
    repeated: bool = False


@dataclass(frozen=True)
class FunctionInfo:
    """A function that a device offers."""

    code: int
    name: str
    kernel: str = ""
    kernel_version: tuple[int, int] = (0, 0)
    doc: str = ""
    regions: tuple[RegionInfo, ...] = ()
    errors: Mapping[int, str] = field(default_factory=dict)

    @property
    def python_name(self) -> str:
        """Its name as that of a method."""
        return identifier(self.name)


@dataclass(frozen=True)
class Description:
    """A device's description of itself; `raw` has all of its keys."""

    device: str
    kind: str
    memory_bytes: int
    max_regions: int
    max_contexts: int
    functions: tuple[FunctionInfo, ...]
    raw: Mapping[str, Any]


def parse(text: bytes) -> Description:
    """Reads the description, which the library has checked."""
    raw = json.loads(text)
    functions = tuple(
        FunctionInfo(
            code=entry["code"],
            name=entry["name"],
            kernel=entry["kernel"],
            kernel_version=tuple(entry["kernel_version"]),
            doc=entry["doc"],
            regions=tuple(
                RegionInfo(region["name"], region["access"], region["doc"], region.get("repeated", False))
                for region in entry.get("regions", ())
            ),
            errors={int(code): text for code, text in entry.get("errors", {}).items()},
        )
        for entry in raw["functions"]
    )
    counts = {name: raw.get(name, 0) for name in ("memory_bytes", "max_regions", "max_contexts")}
    return Description(device=raw["device"], kind=raw["kind"], functions=functions, raw=raw, **counts)


def identifier(name: str) -> str:
    """A name of a device as one in Python."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII)
    name = f"_{name}" if name[:1].isdigit() else name
    return f"{name}_" if keyword.iskeyword(name) else name


def signature_text(function: FunctionInfo) -> str:
    """How a function is called, in one line."""
    names = [f"*{identifier(r.name)}" if r.repeated else identifier(r.name) for r in sent(function)]
    outs = [identifier(r.name) for r in function.regions if r.access == "out"]
    names += [f"out={'(' + ', '.join(outs) + ')' if len(outs) > 1 else outs[0]}"] if outs else []
    return f"{function.python_name}({', '.join(names)})"


def sent(function: FunctionInfo) -> list[RegionInfo]:
    """Its regions for which the caller gives a buffer by position."""
    return [region for region in function.regions if region.access in ("in", "inout")]


def bind(
    function: FunctionInfo,
    buffers: Sequence[Any],
    named: Mapping[str, Any],
    out: Any,
    scratch: int | Sequence[int],
) -> list[Region]:
    """The regions of a call of a function on these buffers, in its order."""
    if any(isinstance(buffer, Region) for buffer in buffers):
        if named or out is not None or scratch or not all(isinstance(buffer, Region) for buffer in buffers):
            raise TypeError("give either a Region for each region of the call, or buffers and out=")
        return list(buffers)
    given = _give(function, list(buffers), dict(named))
    outs = _list(function, "out", out, "out=", "a buffer to write to, or its size in bytes")
    sizes = _list(function, "internal", scratch or None, "internal=", "its size in bytes")
    regions = []
    for index, region in enumerate(function.regions):
        if region.access in ("in", "inout"):
            make = input if region.access == "in" else inout
            regions += [make(buffer).named(region.name) for buffer in given[index]]
        else:
            values = outs if region.access == "out" else sizes
            count = len(values) - _left(function, index, region.access) if region.repeated else 1
            role = output if region.access == "out" else internal
            regions += [role(values.pop(0)).named(region.name) for _ in range(count)]
    return regions


def _left(function: FunctionInfo, index: int, access: str) -> int:
    """How many regions with this access follow."""
    return sum(region.access == access for region in function.regions[index + 1 :])


def _give(function: FunctionInfo, buffers: list[Any], named: dict[str, Any]) -> dict[int, list[Any]]:
    """Buffers for each region that the caller sends: by name, else by position; a repeated one takes what is left."""
    sends = [(index, region) for index, region in enumerate(function.regions) if region.access in ("in", "inout")]
    repeated = [index for index, region in sends if region.repeated]
    if len(repeated) > 1:
        raise InvalidArgument(
            f"{function.name} has several repeated regions, so positions do not say which buffer is for which",
            "give nacelle.input(...), nacelle.inout(...) and nacelle.output(...) for each",
        )
    given: dict[int, list[Any]] = {}
    for index, region in sends:
        name = identifier(region.name)
        if name in named:
            value = named.pop(name)
            given[index] = list(value) if region.repeated else [value]
    if named:
        raise TypeError(f"{function.name} has no region {next(iter(named))!r}: {signature_text(function)}")
    ahead = [index for index, _ in sends if index not in given and not (repeated and index >= repeated[0])]
    behind = [index for index, _ in sends if index not in given and repeated and index > repeated[0]]
    takes_rest = bool(repeated) and repeated[0] not in given
    wanted = len(ahead) + len(behind)
    if len(buffers) < wanted or (len(buffers) > wanted and not takes_rest):
        least = "at least " if takes_rest else ""
        raise TypeError(f"{function.name} takes {least}{wanted} buffers, not {len(buffers)}: {signature_text(function)}")
    for index in ahead:
        given[index] = [buffers.pop(0)]
    for index in reversed(behind):
        given[index] = [buffers.pop()]
    if takes_rest:
        given[repeated[0]] = buffers
    return given


def _list(function: FunctionInfo, access: str, value: Any, option: str, what: str) -> list[Any]:
    """As many values as there are regions with this access."""
    regions = [region for region in function.regions if region.access == access]
    values = list(value) if isinstance(value, list | tuple) else [] if value is None else [value]
    repeated = sum(region.repeated for region in regions)
    if repeated > 1:
        raise InvalidArgument(f"{function.name} has several repeated regions with access {access}", "give regions one by one")
    if len(values) < len(regions) - repeated or (len(values) > len(regions) and not repeated):
        names = ", ".join(region.name for region in regions) or "no region"
        raise TypeError(f"{function.name} needs {option} for {names}: {what} each; {len(values)} given")
    return values
