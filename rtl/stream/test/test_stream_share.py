# SPDX-License-Identifier: Apache-2.0
"""stream_share: each client gets the answers to its own commands, and its turn, however much the others ask."""

from __future__ import annotations

import cocotb
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import Several, Sink, Source, Type, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import StreamSink, StreamSource, start

CLIENTS = 3
WORD = "logic [15:0]"


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def answers_find_their_way_and_clients_take_turns(dut, stall: float) -> None:
    commands = [StreamSource(dut, f"command{i}", WORD, noise=True) for i in range(CLIENTS)]
    answers = [StreamSink(dut, f"answer{i}", WORD, stall) for i in range(CLIENTS)]
    to_server = StreamSink(dut, "to_server", WORD, stall)
    from_server = StreamSource(dut, "from_server", WORD, stall, noise=True)
    await start(dut)
    for n in range(30):
        for i in range(CLIENTS):
            commands[i].send(i << 8 | n)
    served = []
    for _ in range(30 * CLIENTS):
        command = await to_server.recv(2000)
        served.append(command >> 8)
        from_server.send(command ^ 0xFFFF)
    for begin in range(CLIENTS, 29 * CLIENTS, CLIENTS):  # all ask all the time
        assert sorted(served[begin : begin + CLIENTS]) == list(range(CLIENTS))
    for i in range(CLIENTS):
        assert [await answers[i].recv(2000) for _ in range(30)] == [(i << 8 | n) ^ 0xFFFF for n in range(30)]
    for _ in range(20):
        await FallingEdge(dut.clk)
        assert not any(int(getattr(dut, f"answer{i}_valid").value) for i in range(CLIENTS))


def test_stream_share() -> None:
    run(
        "stream_share",
        __file__,
        params={"COMMAND": Type(WORD), "ANSWER": Type(WORD), "N": CLIENTS, "DEPTH": 4},
        ports={
            "command": Several(Sink(WORD), CLIENTS), "answer": Several(Source(WORD), CLIENTS),
            "to_server": Source(WORD), "from_server": Sink(WORD),
        },
        random_state=True,
    )  # fmt: skip
