# SPDX-License-Identifier: Apache-2.0
"""Calls to the software device by the size of their regions: alone, with region set-up, with a connection of their own."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from result import Result
from sampler import Sampler, SamplerError
from sizes import size_name

HOW = "make bench AREA=host"
UNSET = "none is set"
CALLS = (1, 4096, 1 << 20, 64 << 20)
SET_UPS = (1, 4096, 1 << 20, 64 << 20)
TRANSFERS = tuple(1 << shift for shift in range(10, 28, 2))
# Bytes that the samples of one size transfer in all, and how many samples there are at least and at most.
BUDGET = 256 << 20
LEAST, MOST = 3, 500
# Ways to make a call, by the sampler's command.
WAYS = {"call": "call", "with_set_up": "exchange", "with_connection": "connect"}


def _count(size: int) -> int:
    return max(LEAST, min(MOST, BUDGET // size))


def _result(name: str, command: str, unit: str, sampler: Sampler, size: int) -> Result:
    """A median time in microseconds, or the best rate of `size` bytes in gigabits a second, since other work only makes one slower.
    Where the system does not let us, it says why."""
    better = "lower" if unit == "us" else "higher"
    try:
        samples = sampler.seconds(command)
    except SamplerError as error:
        return Result(name, None, unit, None, better, UNSET, HOW, reason=str(error))
    value = median(samples) * 1e6 if unit == "us" else size * 8e-9 / min(samples)
    return Result(name, value, unit, None, better, UNSET, HOW)


def measure(sampler: Sampler) -> Iterator[Result]:
    """All of them."""
    for size in CALLS:
        yield _result(f"host.udp.call.{size_name(size)}", f"call {size} {_count(size)}", "us", sampler, size)
        sampler.command("forget")
    for size in SET_UPS:
        for pages, command in (("fresh", "setup"), ("pinned", "setup-pinned")):
            name = f"host.udp.setup.{pages}.{size_name(size)}"
            yield _result(name, f"{command} {size} {min(100, _count(size))}", "us", sampler, size)
    for size in TRANSFERS:
        for way, command in WAYS.items():
            name = f"host.udp.transfer.{way}.{size_name(size)}"
            yield _result(name, f"{command} {size} {min(100, _count(size))}", "Gb/s", sampler, size)
        sampler.command("forget")
