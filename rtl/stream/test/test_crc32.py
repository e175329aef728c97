# SPDX-License-Identifier: Apache-2.0
"""crc32_stream and crc32_unwind: the CRC-32 that zlib computes, for every length of the last beat."""

import os
import random
import zlib

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import Plain, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import start

WIDTH = int(os.environ.get("WIDTH", "512"))
BACK = int(os.environ.get("BACK", "0"))
COUNT_W = int(os.environ.get("COUNT_W", "6"))
STEP = int(os.environ.get("STEP", "1"))
BYTES = WIDTH // 8


def state_of(message: bytes) -> int:
    """The register after `message` from a start of zero: zlib's start and final complement taken out again."""
    return zlib.crc32(message, 0xFFFF_FFFF) ^ 0xFFFF_FFFF


async def drive(dut, inputs: list[dict[str, int]], stall: float) -> list[int]:
    """Presents `inputs` one a cycle with random gaps; returns what came out."""
    outputs = []
    dut.in_valid.value = 0
    await start(dut)
    pending = list(inputs)
    for _ in range(10 * len(inputs) + 50):
        await FallingEdge(dut.clk)
        if int(dut.out_valid.value):
            outputs.append(int(dut.out_state.value))
        now = bool(pending) and random.random() >= stall
        dut.in_valid.value = int(now)
        if now:
            for name, value in pending.pop(0).items():
                getattr(dut, name).value = value
    return outputs


@cocotb.test(skip="WIDTH" not in os.environ)
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def same_as_zlib(dut, stall: float) -> None:
    messages = [random.randbytes(random.randrange(1, 5 * BYTES)) for _ in range(100)]
    messages += [random.randbytes(length) for length in range(1, 2 * BYTES + 1)]
    messages = [message for message in messages if -len(message) % BYTES >= BACK]
    beats = []
    for message in messages:
        message += bytes(-len(message) % BYTES)
        for at in range(0, len(message), BYTES):
            beats.append(
                {
                    "in_first": int(at == 0),
                    "in_last": int(at + BYTES == len(message)),
                    "in_data": int.from_bytes(message[at : at + BYTES], "little"),
                }
            )
    assert await drive(dut, beats, stall) == [state_of(message + bytes(-len(message) % BYTES - BACK)) for message in messages]


@cocotb.test(skip="COUNT_W" not in os.environ)
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def zeros_are_taken_back(dut, stall: float) -> None:
    messages = [(random.randbytes(random.randrange(1, 100)), count) for count in range(2**COUNT_W)]
    inputs = [{"in_state": state_of(message + bytes(count * STEP)), "in_count": count} for message, count in messages]
    assert await drive(dut, inputs, stall) == [state_of(message) for message, _ in messages]


PORTS = {"in_valid": Plain("input", "logic"), "out_valid": Plain("output", "logic"), "out_state": Plain("output", "logic [31:0]")}


@pytest.mark.parametrize(("width", "back"), [(64, 0), (512, 0), (512, 2)])
def test_crc32_stream(width: int, back: int) -> None:
    inputs = {"in_first": "logic", "in_last": "logic", "in_data": f"logic [{width - 1}:0]"}
    run(
        "crc32_stream",
        __file__,
        params={"DATA_W": width, "BACK": back},
        ports=PORTS | {name: Plain("input", kind) for name, kind in inputs.items()},
        env={"WIDTH": str(width), "BACK": str(back)},
    )


@pytest.mark.parametrize(("count_w", "step"), [(6, 1), (4, 4), (3, 1), (1, 4)])
def test_crc32_unwind(count_w: int, step: int) -> None:
    inputs = {"in_state": "logic [31:0]", "in_count": f"logic [{count_w - 1}:0]"}
    run(
        "crc32_unwind",
        __file__,
        params={"COUNT_W": count_w, "STEP": step},
        ports=PORTS | {name: Plain("input", kind) for name, kind in inputs.items()},
        env={"COUNT_W": str(count_w), "STEP": str(step)},
    )
