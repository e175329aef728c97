# SPDX-License-Identifier: Apache-2.0
"""jitter_seed: each period of the noise matters, and nothing else; there is no seed before all of them."""

from __future__ import annotations

import random

import cocotb
from cocotb.triggers import Timer
from nacelle_tb.bench import Plain, run
from nacelle_tb.streams import CLOCK_NS, start

SAMPLES = 64


async def seed_of(dut, periods: list[int]) -> int:
    """The seed from periods of these lengths, in cycles."""
    dut.noise.value = 0
    await start(dut)
    for number, cycles in enumerate(periods):
        assert not int(dut.valid.value), f"after {number} samples"
        dut.noise.value = 1
        await Timer(2 * CLOCK_NS, "ns")
        dut.noise.value = 0
        await Timer((cycles - 2) * CLOCK_NS, "ns")
    assert int(dut.valid.value)
    return int(dut.seed.value)


@cocotb.test()
async def every_period_counts(dut) -> None:
    periods = [random.randint(8, 40) for _ in range(SAMPLES)]
    seeds = {await seed_of(dut, periods)}
    assert seeds == {await seed_of(dut, periods)}
    for place in random.sample(range(SAMPLES - 1), 8):  # the last one ends after the seed is there
        other = list(periods)
        other[place] += 1
        seeds.add(await seed_of(dut, other))
    assert len(seeds) == 9


@cocotb.test()
async def it_stays(dut) -> None:
    seed = await seed_of(dut, [10] * SAMPLES)
    for _ in range(20):
        dut.noise.value = 1
        await Timer(5 * CLOCK_NS, "ns")
        dut.noise.value = 0
        await Timer(5 * CLOCK_NS, "ns")
        assert int(dut.valid.value) and int(dut.seed.value) == seed


def test_jitter_seed() -> None:
    run(
        "jitter_seed",
        __file__,
        params={"SAMPLES": SAMPLES},
        ports={
            "noise": Plain("input", "logic"),
            "valid": Plain("output", "logic"),
            "seed": Plain("output", "logic [31:0]"),
        },
    )
