# SPDX-License-Identifier: Apache-2.0
"""The published figures of the system that Nacelle is after (NAAICE), with ours beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sizes import size_name

CLOCK_MHZ = 250
HEAD = [
    "| figure | published, software | published, gateware | software device, here | simulated device, its time |",
    "| --- | --- | --- | --- | --- |",
]
SIZES = (1, 4096, 1 << 20, 64 << 20)
NOTHING = "-"

Values = dict[str, float | None]


def _shown(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if value >= 1000 else f"{value:.3g} {unit}"


@dataclass(frozen=True)
class Row:
    """A line: words, what is published, and where our two figures come from."""

    words: str
    software: str
    gateware: str
    here: Callable[[Values], float | None]
    simulated: Callable[[Values], float | None]
    unit: str


def _of(name: str) -> Callable[[Values], float | None]:
    return lambda values: values.get(name)


def _cycles(name: str) -> Callable[[Values], float | None]:
    """A number of cycles as a time in microseconds."""

    def time(values: Values) -> float | None:
        cycles = values.get(name)
        return None if cycles is None else cycles / CLOCK_MHZ

    return time


def _most(prefix: str) -> Callable[[Values], float | None]:
    """The largest of several figures."""

    def most(values: Values) -> float | None:
        return max((value for name, value in values.items() if name.startswith(prefix) and value is not None), default=None)

    return most


def _rows() -> list[Row]:
    rows = []
    for size in SIZES:
        name = size_name(size)
        published = ("4.6 µs", "2.95 µs") if size == 1 else (NOTHING, NOTHING)
        rows.append(Row(f"call, {name} in", *published, _of(f"host.udp.call.{name}"), _cycles(f"rtl.call.{name}.cycles"), "µs"))
    for size in SIZES:
        name = size_name(size)
        gateware = "4 µs (device to device)" if size == 1 else NOTHING
        here, simulated = _of(f"host.udp.setup.fresh.{name}"), _cycles(f"rtl.setup.{name}.cycles")
        rows.append(Row(f"set-up of a region of {name}", NOTHING, gateware, here, simulated, "µs"))
        pinned = _of(f"host.udp.setup.pinned.{name}")
        rows.append(Row("the same, its memory locked first", NOTHING, NOTHING, pinned, _of(""), "µs"))
    best, nothing = _most("host.udp.transfer.call."), _of("")
    device = _of("rtl.write.bandwidth.mtu1024.64KiB")
    rows.append(Row("bandwidth, of 92.5 Gb/s that fit 100G Ethernet at MTU 1024", NOTHING, "90.87 Gb/s", nothing, device, "Gb/s"))
    large = _of("rtl.write.bandwidth.mtu4096.64KiB")
    rows.append(Row("the same at MTU 4096, of 98.0 Gb/s", NOTHING, NOTHING, best, large, "Gb/s"))
    return rows


def table(values: Values) -> list[str]:
    """Markdown. What there is none of is a dash."""

    def cell(source: Callable[[Values], float | None], unit: str) -> str:
        value = source(values)
        return NOTHING if value is None else _shown(value, unit)

    lines = [
        f"| {row.words} | {row.software} | {row.gateware} | {cell(row.here, row.unit)} | {cell(row.simulated, row.unit)} |"
        for row in _rows()
    ]
    return [*HEAD, *lines]
