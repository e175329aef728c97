# SPDX-License-Identifier: Apache-2.0
"""rpc_messages: reads return the content of memory, writes change it and no byte beside it, errors are reported."""

import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import AxiMaster, Plain, Sink, Source, run
from nacelle_tb.long import alternately, some
from nacelle_tb.memory import AxiMemory
from nacelle_tb.streams import StreamSink, StreamSource, start

SIZE = 1 << 14
MESSAGE = 1024


class Bench:
    def __init__(self, dut, stall: float) -> None:
        self.dut = dut
        self.memory = AxiMemory(dut, "mem", SIZE, latency=(1, 30), stall=stall, noise=True)
        self.memory.content[:] = random.randbytes(SIZE)
        self.read_cmd = StreamSource(dut, "read", "rpc_pkg::message_read_t", stall, noise=True)
        self.word = StreamSink(dut, "word", "rpc_pkg::word_t", stall)
        self.write_word = StreamSource(dut, "write", "rpc_pkg::word_t", stall, noise=True)
        self.written = StreamSink(dut, "written", "logic", stall)
        dut.write_addr.value = 0

    async def read(self, addr: int, length: int) -> tuple[bytes, int]:
        """The message in whole words, and whether it could be read."""
        self.read_cmd.send(addr=addr, length=length)
        message, word = b"", None
        while word is None or not word.last:
            word = await self.word.recv(2000)
            assert word.first == (message == b"") and (word.last or not word.error)
            message += word.data.to_bytes(4, "big")
        return message, word.error

    async def write(self, addr: int, message: bytes, abandoned: bytes = b"") -> int:
        """Writes `message`, after a beginning of another that is given up."""
        self.dut.write_addr.value = addr
        for part, ends in ((abandoned, False), (message, True)):
            for at in range(0, len(part), 4):
                last = ends and at + 4 == len(part)
                self.write_word.send(data=int.from_bytes(part[at : at + 4], "big"), first=int(at == 0), last=int(last))
        return await self.written.recv(4000)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def reads(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await start(dut)
    for length in [1, 3, 4, 5, 28, 63, 64, 65, 76, 772, 1021, 1024, *(random.randint(1, MESSAGE) for _ in range(12))]:
        addr = random.randrange(0, SIZE, MESSAGE)
        message, error = await bench.read(addr, length)
        assert message == bench.memory.read(addr, (length + 3) // 4 * 4) and not error


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def writes(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await start(dut)
    for words in [1, 2, 15, 16, 17, 129, *(random.randint(1, 129) for _ in range(12))]:
        addr, message = random.randrange(0, SIZE, MESSAGE), random.randbytes(4 * words)
        abandoned = random.randbytes(4 * random.randint(0, words))
        expected = bytearray(bench.memory.content)
        expected[addr : addr + len(message)] = message
        assert await bench.write(addr, message, abandoned) == 0
        assert bench.memory.content == expected


@cocotb.test()
async def errors(dut) -> None:
    """An error anywhere in a message is reported with it, and with no other."""
    bench = Bench(dut, 0.2)
    await start(dut)
    for at in (0, 200, 700, 771):
        bench.memory.errors[:] = [(1024 + at, 1024 + at)]
        assert (await bench.read(1024, 772))[1] == 1
        assert (await bench.read(2048, 772))[1] == 0
        assert await bench.write(1024, bytes(772)) == 1
        assert await bench.write(2048, bytes(772)) == 0


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def reads_behind_each_other(dut, stall: float) -> None:
    """The next message is requested while one is read: it waits, however short they are."""
    bench = Bench(dut, stall)
    await start(dut)
    asked = [(random.randrange(0, SIZE, MESSAGE), length) for length in (1, 4, 2, 100, 3, 1024, 4, 4, 64, 1)]
    for addr, length in asked:
        bench.read_cmd.send(addr=addr, length=length)
    for addr, length in asked:
        words = (length + 3) // 4
        for i in range(words):
            word = await bench.word.recv(2000)
            assert (word.first, word.last, word.error) == (int(i == 0), int(i == words - 1), 0)
            assert word.data.to_bytes(4, "big") == bench.memory.read(addr + 4 * i, 4)


@cocotb.test()
async def a_memory_that_waits_for_valid(dut) -> None:
    """AXI allows a memory to be ready only after a request, and to take data before the address."""
    for name in ("arready", "awready", "wready", "bvalid", "rvalid"):
        getattr(dut, f"mem_{name}").value = 0
    write = StreamSource(dut, "write", "rpc_pkg::word_t")
    written = StreamSink(dut, "written", "logic")
    dut.read_valid.value = dut.write_addr.value = 0
    await start(dut)
    for at in range(3):
        write.send(data=at, first=int(at == 0), last=int(at == 2))
    beats = -(-12 // (len(dut.mem_wdata) // 8))
    for _ in range(beats):
        for channel in ("w", "aw"):
            for _ in range(100):
                await FallingEdge(dut.clk)
                if int(getattr(dut, f"mem_{channel}valid").value):
                    break
            else:
                raise AssertionError(f"no {channel}")
            await FallingEdge(dut.clk)
            getattr(dut, f"mem_{channel}ready").value = 1
            await FallingEdge(dut.clk)
            getattr(dut, f"mem_{channel}ready").value = 0
            assert not int(getattr(dut, f"mem_{channel}valid").value)
    dut.mem_bresp.value = 0
    dut.mem_bvalid.value = 1
    for _ in range(beats):
        await FallingEdge(dut.clk)
    dut.mem_bvalid.value = 0
    assert await written.recv(100) == 0


@pytest.mark.parametrize("data_w", some([64, 512, 128, 256]))
def test_rpc_messages(data_w: int) -> None:
    run(
        "rpc_messages",
        __file__,
        params={"DATA_W": data_w},
        ports={
            "mem": AxiMaster(data_w),
            "read": Sink("rpc_pkg::message_read_t"), "word": Source("rpc_pkg::word_t"),
            "write": Sink("rpc_pkg::word_t"), "write_addr": Plain("input", "memory_pkg::addr_t"),
            "written": Source("logic"),
        },
        random_state=True,
    )  # fmt: skip
