# SPDX-License-Identifier: Apache-2.0
"""A socket with several images: `increment`, a hostile kernel and one that does not say what it is. One takes the other's place
while jobs come, run, hang and access memory, registers and the engine; what is wrong is refused; and the socket goes back
by itself."""

from __future__ import annotations

import random
from pathlib import Path

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.axil import Monitor, Slave
from nacelle_tb.cci import offset
from nacelle_tb.device import DEVICES, load
from nacelle_tb.long import alternately
from nacelle_tb.memory import DECERR, SLVERR
from nacelle_tb.streams import start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from socket_bench import (
    BUS,
    CANCELLED,
    RDMA_PAGE,
    RDMA_PAGES,
    STATUS,
    SUCCESS,
    TIMEOUT,
    Bench,
    kernels_of_tests,
    run_socket,
)

ASKS, COUNTER = 1 << 20, 1 << 22  # of the device's registers
HERE = Path(__file__).parent
INCREMENT, HOSTILE, MUTE = range(3)
UNAVAILABLE = constant("compute_pkg::RESULT_SOCKET_UNAVAIL")
IMAGES, SELECT, RECORD, COMMAND, STATE, DIGEST = (
    offset(f"socket.{name}") for name in ("IMAGES", "IMAGE_SELECT", "IMAGE_RECORD", "IMAGE_COMMAND", "IMAGE_STATE", "IMAGE_DIGEST")
)
NAME, FUNCTIONS, CODES, KIND = (offset(f"socket.{name}") for name in ("NAME", "FUNCTIONS", "FUNCTION_CODE", "TYPE"))
SOCK = int.from_bytes(b"SOCK", "big")
OF_KERNEL = 0x114  # kernel_hostile.rdl
ACTIVATE, ROLL_BACK, CUT = 1, 2, 3
ERRORS = ("OK", "BAD_COMMAND", "BAD_IMAGE", "BAD_DIGEST", "NO_FORMER", "NOT_LOADED", "NO_IDENTITY")
READS, WRITES, LONG, WITHHOLDS, DEAF, POSTS, OUTSIDE, EARLY = (1 << i for i in range(8))
LOAD_CYCLES, OVERHEAD, START_CYCLES = 100, 60, 256
DEVICE = load(DEVICES / "test.toml")
KERNELS = {kernel.name: kernel for kernel in DEVICE.kernels}
NAMES = ("increment", "hostile", "mute")


class Scene(Bench):
    """The socket, and whoever changes its kernel."""

    async def start(self) -> None:
        await start(self.dut)
        await self.finished()

    async def digest(self, image: int, wrong: int | None = None) -> None:
        """Names an image's digest, with this bit of it wrong."""
        number = int.from_bytes(KERNELS[NAMES[image]].digest, "little")
        if wrong is not None:
            number ^= 1 << wrong
        for i in range(8):
            assert await self.ctrl.write(DIGEST + 4 * i, number >> 32 * i & 0xFFFFFFFF) == 0

    async def select(self, image: int, word: int = 0) -> None:
        assert await self.ctrl.write(SELECT, word << 8 | image) == 0

    async def begin(self, image: int) -> None:
        await self.digest(image)
        await self.select(image)
        assert await self.ctrl.write(COMMAND, ACTIVATE) == 0

    async def state(self) -> tuple[int, bool, str, int]:
        """State, live, error, commands finished."""
        value, answer = await self.ctrl.read(STATE)
        assert answer == 0
        return value & 15, bool(value >> 7 & 1), ERRORS[value >> 8 & 255], value >> 16

    async def finished(self, cycles: int = 2000) -> str:
        """Waits for the end of a command; its error."""
        for _ in range(cycles // 4):
            state, _, error, _ = await self.state()
            if state == 0:
                return error
        raise AssertionError("the command does not end")

    async def activate(self, image: int) -> str:
        await self.begin(image)
        return await self.finished()

    async def what(self) -> tuple[str, set[int]]:
        """The kernel and its functions, as the registers and the port have them."""
        name = b"".join([(await self.ctrl.read(NAME + 4 * i))[0].to_bytes(4, "little") for i in range(4)])
        count = (await self.ctrl.read(FUNCTIONS))[0]
        codes = {(await self.ctrl.read(CODES + 4 * i))[0] for i in range(count)}
        assert int(self.dut.functions.value) == sum(1 << code for code in codes)
        return name.rstrip(b"\0").decode(), codes

    def held(self) -> tuple[int, int]:
        value = struct("compute_pkg::held_t").unpack(int(self.dut.held.value))
        return value.live, value.image

    async def works(self, image: int, tag: int = 77) -> None:
        """A job of the kernel that is there is done, one of the other is not."""
        before = self.memory.read(0x9000, 5000)
        self.call(1, [(0x9000, 5000)], tag)
        assert (await self.done.recv()).code == (SUCCESS if image == INCREMENT else UNAVAILABLE)
        after = bytes(byte + 1 & 255 for byte in before) if image == INCREMENT else before
        assert self.memory.read(0x9000, 5000) == after
        self.call(2, [(0x9000, 64)], tag, user=EARLY)
        assert (await self.done.recv()).code == (SUCCESS if image == HOSTILE else UNAVAILABLE)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]))
async def one_takes_the_others_place(dut, stall: float) -> None:
    scene = Scene(dut, stall)
    await scene.start()
    assert await scene.what() == ("increment", {1, 3}) and scene.held() == (1, INCREMENT)
    assert await scene.ctrl.read(IMAGES) == (3, 0)
    await scene.works(INCREMENT)
    for image, expected, former in [(HOSTILE, ("hostile", {2}), INCREMENT), (INCREMENT, ("increment", {1, 3}), HOSTILE)] * 2:
        assert await scene.activate(image) == "OK"
        assert await scene.what() == expected and scene.held() == (1, image)
        assert await scene.ctrl.read(IMAGES) == (1 << 24 | former << 16 | image << 8 | 3, 0)
        await scene.works(image)
    assert (await scene.state())[3] == 4
    await wait_cycles(dut, 4)
    assert int(dut.idle.value) and not int(dut.paused.value)


@cocotb.test()
async def it_takes_few_cycles_beside_the_loading(dut) -> None:
    scene = Scene(dut)
    await scene.start()
    await scene.digest(HOSTILE)
    await scene.select(HOSTILE)
    for command, limit in ((ACTIVATE, OVERHEAD), (ROLL_BACK, OVERHEAD - 16)):
        cocotb.start_soon(scene.ctrl.write(COMMAND, command))
        while int(dut.idle.value):
            await RisingEdge(dut.clk)
        cycles = jobs_stop = 0
        while not int(dut.idle.value) or cycles < 20:
            await FallingEdge(dut.clk)
            cycles += 1
            jobs_stop += int(dut.paused.value)
        dut._log.info(
            f"command {command}: {cycles - LOAD_CYCLES} cycles beside the loading, jobs stop for {jobs_stop - LOAD_CYCLES}"
        )
        assert LOAD_CYCLES < jobs_stop <= cycles <= LOAD_CYCLES + limit


@cocotb.test()
async def records_are_shown(dut) -> None:
    scene = Scene(dut)
    await scene.start()
    for image, name in enumerate(NAMES):
        words = []
        for word in range(32):
            await scene.select(image, word)
            assert await scene.ctrl.read(SELECT) == (word << 8 | image, 0)
            value, answer = await scene.ctrl.read(RECORD)
            assert answer == 0
            words.append(value)
        record = b"".join(word.to_bytes(4, "little") for word in words)
        kernel = KERNELS[name]
        assert record[16:32] == name.encode().ljust(16, b"\0") and record[64:96] == kernel.digest
        assert words[2] == kernel.version[0] << 16 | kernel.version[1] and words[3] == len(kernel.functions)
        assert words[0:2] == ([int.from_bytes(b"HOST", "big"), 1 << 16] if name == "hostile" else [0, 0])
        assert words[8 : 8 + words[3]] == [function.code for function in kernel.functions]
        assert not any(record[96:])
    await scene.select(3)
    assert (await scene.ctrl.read(RECORD))[0] == 0
    for at in (COMMAND, 0x74, 0x78, 0x7C, DIGEST, 0x9C, 0xF0):
        assert (await scene.ctrl.read(at))[1] == DECERR
    for at in (IMAGES, RECORD, STATE, 0x74, 0xF0):
        assert await scene.ctrl.write(at, 1) == DECERR


@cocotb.test()
async def what_is_wrong_is_refused(dut) -> None:
    """And the kernel goes on."""
    scene = Scene(dut)
    await scene.start()
    finished = 0

    async def refused(error: str) -> None:
        nonlocal finished
        finished += 1
        assert await scene.finished() == error
        assert (await scene.state())[1:] == (True, error, finished)
        assert await scene.what() == ("increment", {1, 3})
        await scene.works(INCREMENT)

    for bit in (0, 31, 32, 100, 255):
        await scene.digest(HOSTILE, wrong=bit)
        await scene.select(HOSTILE)
        assert await scene.ctrl.write(COMMAND, ACTIVATE) == 0
        await refused("BAD_DIGEST")
    await scene.digest(HOSTILE)
    await scene.select(MUTE)
    assert await scene.ctrl.write(COMMAND, ACTIVATE) == 0
    await refused("BAD_DIGEST")
    for image in (3, 8, 255):
        await scene.select(image)
        assert await scene.ctrl.write(COMMAND, ACTIVATE) == 0
        await refused("BAD_IMAGE")
    assert await scene.ctrl.write(COMMAND, ROLL_BACK) == 0
    await refused("NO_FORMER")
    for command in (0, 4, 0x101, 0xFFFFFFFF):
        assert await scene.ctrl.write(COMMAND, command) == 0
        await refused("BAD_COMMAND")
    assert await scene.ctrl.write(COMMAND, CUT) == SLVERR, "nothing is under way"
    assert (await scene.state())[3] == finished


@cocotb.test()
async def it_goes_back(dut) -> None:
    """On command, and again; the former image is the one that was left."""
    scene = Scene(dut)
    await scene.start()
    assert await scene.activate(HOSTILE) == "OK"
    for image in (INCREMENT, HOSTILE, INCREMENT):
        assert await scene.ctrl.write(COMMAND, ROLL_BACK) == 0
        assert await scene.finished() == "OK"
        assert scene.held() == (1, image)
        await scene.works(image)
    assert await scene.activate(INCREMENT) == "OK"  # the same again: it is loaded again
    assert await scene.ctrl.read(IMAGES) == (1 << 24 | HOSTILE << 16 | INCREMENT << 8 | 3, 0)
    await scene.works(INCREMENT)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]))
async def one_that_does_not_say_what_it_is_goes_again(dut, stall: float) -> None:
    """By itself, within a bound, whatever it does meanwhile."""
    scene = Scene(dut, stall)
    await scene.start()
    before = bytes(scene.memory.content)
    for image in (INCREMENT, HOSTILE):
        assert await scene.activate(image) == "OK"
        former = (await scene.ctrl.read(IMAGES))[0] >> 16
        await scene.begin(MUTE)
        await wait_cycles(dut, 20)
        assert int(dut.paused.value)
        scene.call({INCREMENT: 3, HOSTILE: 2}[image], [(0, 64)], tag=5, user=EARLY)
        for _ in range(2 * (LOAD_CYCLES + OVERHEAD) + START_CYCLES + 200):
            if scene.done.received:
                break
            await RisingEdge(dut.clk)
        assert (await scene.done.recv(1)).code == SUCCESS, "the former kernel has taken the job that waited"
        assert (await scene.state())[1:3] == (True, "NO_IDENTITY")
        assert scene.held() == (1, image) and (await scene.ctrl.read(IMAGES))[0] >> 16 == former
    assert bytes(scene.memory.content) == before and not scene.posted
    await scene.works(HOSTILE)


@cocotb.test()
async def a_job_that_runs_ends_first(dut) -> None:
    """The next ones wait: one for the new kernel runs, one of the old kernel is told to try again."""
    scene = Scene(dut, 0.2, latency=(20, 60))
    await scene.start()
    before = scene.memory.read(0x4000, 9000)
    scene.call(1, [(0x4000, 9000)], tag=1)
    await wait_cycles(dut, 30)
    await scene.begin(HOSTILE)
    scene.call(1, [(0x4000, 9000), (0x8000, 30)], tag=2)
    scene.call(2, [(0x4000, 9000), (0x8000, 30)], tag=3, user=EARLY)
    await wait_cycles(dut, 20)
    assert (await scene.state())[0] == 2 and int(dut.paused.value), "it waits"
    done = [await scene.done.recv() for _ in range(3)]
    assert [(d.tag, d.code) for d in done] == [(1, SUCCESS), (2, UNAVAILABLE), (3, SUCCESS)]
    assert scene.memory.read(0x4000, 9000) == bytes(byte + 1 & 255 for byte in before)
    assert await scene.finished() == "OK"
    assert await scene.what() == ("hostile", {2})


@cocotb.test()
@cocotb.parametrize(
    mode=[0, READS | WRITES | LONG, WRITES | DEAF, READS | WRITES | WITHHOLDS | DEAF, POSTS, POSTS | DEAF],
    how=["limit", "cancel", "cut"],
)
async def a_job_that_hangs_is_cut_off_first(dut, mode: int, how: str) -> None:
    """At its limit, by its caller, or by who changes the kernel; nothing of it is outstanding when the kernel goes."""
    scene = Scene(dut, latency=(1, 40))
    await scene.start()
    assert await scene.activate(HOSTILE) == "OK"
    scene.window(0x4000, 0x4000)
    limit = 800
    if how == "limit":
        dut.kernel_timeout_cycles.value = limit
    scene.call(2, [(0x4000, 0x4000)], tag=9, user=mode)
    await wait_cycles(dut, 100)
    await scene.begin(INCREMENT)
    await wait_cycles(dut, 100)
    assert (await scene.state())[0] == 2 and scene.done.received == type(scene.done.received)()
    if how == "cancel":
        dut.cancel.value = 1
    elif how == "cut":
        assert await scene.ctrl.write(COMMAND, ACTIVATE) == SLVERR
        assert await scene.ctrl.write(COMMAND, CUT) == 0
    done = await scene.done.recv(limit + 10_000)
    assert (done.tag, done.code) == (9, {"limit": TIMEOUT, "cancel": CANCELLED, "cut": UNAVAILABLE}[how])
    dut.cancel.value = 0
    dut.kernel_timeout_cycles.value = 0
    while int(dut.paused.value):
        await FallingEdge(dut.clk)
        assert scene.memory.outstanding() == 0 and not scene.open
    assert await scene.finished() == "OK"
    scene.window(0, 1 << 18)
    assert await scene.what() == ("increment", {1, 3})
    posted = len(scene.posted)
    await scene.works(INCREMENT)
    assert len(scene.posted) == posted


@cocotb.test()
async def registers_are_answered_at_any_time(dut) -> None:
    """The socket's by their values, the kernel's by an error while there is none; two commands at once: the second is refused."""
    scene = Scene(dut)
    await scene.start()
    assert await scene.activate(HOSTILE) == "OK"
    for number in range(60):
        image = (INCREMENT, HOSTILE)[number % 2]
        await scene.begin(image)
        assert await scene.ctrl.write(COMMAND, random.choice([ACTIVATE, ROLL_BACK, 0])) == SLVERR
        for _ in range(random.randrange(12)):
            await wait_cycles(dut, random.randrange(20))
            choice = random.randrange(6)
            if choice == 0:
                assert await scene.ctrl.read(KIND) == (SOCK, 0)
            elif choice == 1:
                assert (await scene.ctrl.read(OF_KERNEL))[1] in (0, SLVERR, DECERR)
            elif choice == 2:
                assert (await scene.ctrl.write(OF_KERNEL, 1)) in (SLVERR, DECERR)
            elif (await scene.state())[0]:
                assert choice < 5 or await scene.ctrl.write(SELECT, 0) in (0, SLVERR)
                assert choice < 4 or (await scene.ctrl.read(RECORD))[1] in (0, SLVERR)
        assert await scene.finished() == "OK"
        assert scene.held() == (1, image)
    await scene.works(HOSTILE)
    assert (await scene.ctrl.read(OF_KERNEL))[1] == 0, "the kernel's registers are there again"


@cocotb.test()
async def rdma_of_the_kernel_ends_first(dut) -> None:
    """Work requests that it has posted by itself are flushed; the new kernel has no window before it is there."""
    scene = Scene(dut)
    await scene.start()
    assert await scene.activate(HOSTILE) == "OK"
    scene.call(2, [(0x4000, 0x1000)], tag=9, user=POSTS)
    dut.kernel_timeout_cycles.value = 300
    scene.completing = False
    await scene.begin(INCREMENT)
    await wait_cycles(dut, 1000)
    assert scene.open and (await scene.state())[0] == 2 and int(dut.abandon.value), "the engine has not completed all"
    assert await scene.ctrl.read(STATUS) == (0b111, 0)
    scene.completing = True
    assert (await scene.done.recv()).code == TIMEOUT
    assert await scene.finished() == "OK" and not scene.open
    dut.kernel_timeout_cycles.value = 0
    await scene.ctrl.write(RDMA_PAGE, 0)
    await scene.ctrl.write(RDMA_PAGES, 16)
    posted = len(scene.posted)
    assert await scene.activate(MUTE) == "NO_IDENTITY"
    assert len(scene.posted) == posted
    await scene.works(INCREMENT)


@cocotb.test()
async def an_access_of_the_kernel_to_a_register_ends_first(dut) -> None:
    """The new kernel gets no answer to what another has asked, and one that does not say what it is reaches no register."""
    scene = Scene(dut)
    registers = Slave(dut, "bus")
    port = Monitor(dut, "bus")
    await scene.start()
    assert await scene.activate(HOSTILE) == "OK"
    registers.held.add("r")
    scene.call(2, [(0x4000, 0x1000)], tag=9, user=ASKS | COUNTER)
    dut.kernel_timeout_cycles.value = 300
    await scene.begin(INCREMENT)
    await wait_cycles(dut, 1000)
    assert (await scene.state())[0] == 2 and await scene.ctrl.read(STATUS) == (0b011, 0), "the bus has not answered"
    registers.held.clear()
    assert (await scene.done.recv()).code == TIMEOUT
    assert await scene.finished() == "OK" and port.taken["ar"] == port.taken["r"] == 1
    dut.kernel_timeout_cycles.value = 0
    await scene.ctrl.write(BUS, 3)
    assert await scene.activate(MUTE) == "NO_IDENTITY"
    assert (port.taken["ar"], port.taken["aw"]) == (1, 0)
    await scene.works(INCREMENT)


def test_socket_images() -> None:
    sources = [*kernels_of_tests(), HERE / "kernel_hostile.sv", HERE / "kernel_mute.sv"]
    run_socket(__file__, 64, NAMES, sources, load_cycles=LOAD_CYCLES, registers=True)
