# SPDX-License-Identifier: Apache-2.0
"""axis_steer: each packet leaves whole at the output that its route names; without a route it waits."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Plain, Several, Sink, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import AxisSink, AxisSource, StreamSource, start, wait_cycles

OUTPUTS = 3


async def begin(dut: Any, stall: float = 0.0) -> tuple[AxisSource, StreamSource, list[AxisSink]]:
    source, route = AxisSource(dut, "in", stall), StreamSource(dut, "route", "logic [1:0]", stall)
    sinks = [AxisSink(dut, f"out{i}", stall) for i in range(OUTPUTS)]
    await start(dut)
    return source, route, sinks


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def packets_follow_their_routes(dut, stall: float) -> None:
    source, route, sinks = await begin(dut, stall)
    wanted: list[list[tuple[bytes, bool]]] = [[] for _ in range(OUTPUTS)]
    for _ in range(100):
        packet, output = (random.randbytes(random.randrange(1, 50)), random.random() < 0.2), random.randrange(OUTPUTS)
        wanted[output].append(packet)
        source.send(*packet)
        route.send(output)
    await sinks[0]._wait(lambda: sum(len(sink.packets) for sink in sinks) == 100, 20_000)
    assert [list(sink.packets) for sink in sinks] == wanted
    await wait_cycles(dut, 2)
    assert int(dut.empty.value)


@cocotb.test()
async def a_packet_waits_for_its_route(dut) -> None:
    source, route, sinks = await begin(dut)
    packets = [random.randbytes(20) for _ in range(2)]
    for packet in packets:
        source.send(packet)
    await wait_cycles(dut, 50)
    assert not any(sink.packets for sink in sinks)
    route.send(2)
    assert await sinks[2].recv() == packets[0]
    await wait_cycles(dut, 50)
    assert not any(sink.packets for sink in sinks), "the second packet left by the first one's route"
    route.send(0)
    assert await sinks[0].recv() == packets[1]


def test_axis_steer() -> None:
    run(
        "axis_steer",
        __file__,
        params={"DATA_W": 64, "N": OUTPUTS, "DEPTH": 4},
        ports={
            "in": AxisSinkPort(64),
            "route": Sink("logic [1:0]"),
            "out": Several(AxisSourcePort(64), OUTPUTS),
            "empty": Plain("output", "logic"),
        },
    )
