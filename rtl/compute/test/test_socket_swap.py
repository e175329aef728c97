# SPDX-License-Identifier: Apache-2.0
"""socket_swap alone, with a controller that fails and takes its time, and kernels that say what they are late, wrongly or never."""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.cci import offset
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import struct

IMAGES, SLOTS, START_CYCLES = 4, 1, 64  # the last of the images is an uploaded one
AT_IMAGES, AT_SELECT = offset("socket.IMAGES"), offset("socket.IMAGE_SELECT")
AT_COMMAND, AT_STATE, AT_DIGEST = offset("socket.IMAGE_COMMAND"), offset("socket.IMAGE_STATE"), offset("socket.IMAGE_DIGEST")
ACTIVATE, ROLL_BACK, CUT = 1, 2, 3
OK, BAD_IMAGE, NO_FORMER, NOT_LOADED, NO_IDENTITY = 0, 2, 4, 5, 6


@dataclass
class Image:
    """What an image's record says."""

    name: bytes
    codes: tuple[int, ...]
    block: tuple[int, int]
    digest: bytes
    addr: int
    length: int

    @property
    def identity(self) -> int:
        codes = sum(code << 7 * i for i, code in enumerate(self.codes))
        version = len(self.name) << 16 | 7
        own = version << 124 | len(self.codes) << 120 | codes << 64 | self.block[0] << 32 | self.block[1]
        return int.from_bytes(self.name, "little") << 156 | own

    @property
    def words(self) -> list[int]:
        name, digest = self.name.ljust(16, b"\0"), self.digest
        words = [*self.block, len(self.name) << 16 | 7, len(self.codes)]
        words += [int.from_bytes(name[i : i + 4], "little") for i in range(0, 16, 4)]
        words += [*self.codes, *[0] * (8 - len(self.codes))]
        words += [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 32, 4)]
        return [*words, self.addr & 0xFFFFFFFF, self.addr >> 32, self.length, *[0] * 5]


class Scene:
    """Registers, records, the socket around, and a controller. `fails`: the images that it cannot load. `says`: what each kernel
    says of itself, and how many cycles after its reset."""

    def __init__(self, dut) -> None:
        self.dut = dut
        rng = random.Random(1)
        names = (b"increment", b"a", b"sixteen-letters-", b"x1")
        counts = (2, 1, 8, 3)
        word = functools.partial(rng.getrandbits, 32)
        self.images = []
        for name, count in zip(names, counts, strict=True):
            codes = tuple(sorted(rng.sample(range(1, 128), count)))
            self.images.append(Image(name, codes, (word(), word()), rng.randbytes(32), rng.getrandbits(64), word()))
        self.load = StreamSink(dut, "load", "compute_pkg::reconfigure_t")
        self.loaded = StreamSource(dut, "loaded", "logic")
        self.fails: set[int] = set()
        self.says = {i: (image.identity, 0) for i, image in enumerate(self.images)}
        self.there = 0
        self.requests: list[tuple[int, int, int]] = []
        dut.write.value = dut.read_at.value = dut.write_at.value = dut.wdata.value = 0
        dut.busy.value, dut.quiet.value = 0, 1
        dut.identity.value = 0
        dut.uploaded.value, dut.kernel.value = 1, 0
        for task in (self._records(), self._controller(), self._kernel()):
            cocotb.start_soon(task)

    async def _records(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            image, word = int(self.dut.record_image.value), int(self.dut.record_at.value)
            await FallingEdge(self.dut.clk)
            self.dut.record_word.value = self.images[image].words[word] if image < IMAGES else 0

    async def _controller(self) -> None:
        while True:
            request = await self.load.recv(1 << 30)
            self.requests.append((request.image, request.addr, request.length))
            for _ in range(random.randrange(80)):
                await FallingEdge(self.dut.clk)
                assert int(self.dut.cut.value) and int(self.dut.hold.value), "the kernel is not decoupled"
            failed = request.image in self.fails
            if not failed:
                self.there = request.image
            self.loaded.send(int(failed))

    async def _kernel(self) -> None:
        running = 0
        while True:
            await FallingEdge(self.dut.clk)
            running = 0 if int(self.dut.cut.value) or int(self.dut.rst.value) else running + 1
            identity, after = self.says[self.there]
            self.dut.identity.value = identity if running > after else 0

    async def write(self, at: int, value: int) -> bool:
        """Whether it is taken."""
        await FallingEdge(self.dut.clk)
        self.dut.write.value, self.dut.write_at.value, self.dut.wdata.value = 1, at, value
        await RisingEdge(self.dut.clk)
        taken = bool(int(self.dut.writable.value))
        await FallingEdge(self.dut.clk)
        self.dut.write.value = 0
        return taken

    async def read(self, at: int) -> int:
        await FallingEdge(self.dut.clk)
        self.dut.read_at.value = at
        await RisingEdge(self.dut.clk)
        assert int(self.dut.readable.value), "it is not ready"
        return int(self.dut.value.value)

    async def begin(self, image: int) -> None:
        for i in range(8):
            assert await self.write(AT_DIGEST + 4 * i, self.images[image].words[16 + i])
        assert await self.write(AT_SELECT, image)
        assert await self.write(AT_COMMAND, ACTIVATE)

    async def finished(self, cycles: int = 5000) -> int:
        for _ in range(cycles // 2):
            value = await self.read(AT_STATE)
            if not value & 15:
                return value >> 8 & 255
        raise AssertionError("it does not end")

    async def activate(self, image: int) -> int:
        await self.begin(image)
        return await self.finished()

    def holds(self, image: int | None, former: int | None) -> None:
        """What it says that it holds."""
        held = struct("compute_pkg::held_t").unpack(int(self.dut.held.value))
        assert held.live == (image is not None) and (image is None or held.image == image)
        codes = () if image is None else self.images[image].codes
        assert int(self.dut.functions.value) == sum(1 << code for code in codes)
        assert int(self.dut.published.value) == (0 if image is None else self.images[image].identity)
        assert int(self.dut.cut.value) == (image is None) and not int(self.dut.hold.value)


@cocotb.test()
async def every_image_by_its_record(dut) -> None:
    scene = Scene(dut)
    await start(dut)
    assert await scene.finished() == OK
    assert await scene.read(AT_STATE) == 1 << 7
    scene.holds(0, None)
    for number, image in enumerate((2, 1, 3, 0, 3, 3, 1), 1):
        assert await scene.activate(image) == OK
        scene.holds(image, None)
        record = scene.images[image]
        assert scene.requests[-1] == (image, record.addr, record.length) and len(scene.requests) == number
        assert await scene.read(AT_STATE) == number << 16 | 1 << 7


@cocotb.test()
async def one_that_cannot_be_loaded(dut) -> None:
    """The former one is loaded again; if it cannot be, the socket is dead until an image is activated."""
    scene = Scene(dut)
    await start(dut)
    await scene.finished()
    assert await scene.activate(1) == OK
    scene.fails = {2}
    assert await scene.activate(2) == NOT_LOADED
    scene.holds(1, 0)
    assert [request[0] for request in scene.requests] == [1, 2, 1]
    assert await scene.read(AT_IMAGES) == 1 << 24 | 0 << 16 | 1 << 8 | IMAGES
    scene.fails = {2, 1}
    assert await scene.activate(2) == NOT_LOADED
    scene.holds(None, 0)
    assert not await scene.read(AT_STATE) & 1 << 7
    await wait_cycles(dut, 50)
    scene.holds(None, 0)
    assert await scene.activate(2) == NOT_LOADED, "and again"
    scene.holds(None, 0)
    assert await scene.activate(3) == OK
    scene.holds(3, 0)
    assert await scene.write(AT_COMMAND, ROLL_BACK) and await scene.finished() == OK
    scene.holds(0, None)


@cocotb.test()
@cocotb.parametrize(late=[0, 5, START_CYCLES // 2, START_CYCLES + 1, None])
async def one_that_says_what_it_is_late(dut, late: int | None) -> None:
    """In time, or never: then the former one comes back."""
    scene = Scene(dut)
    await start(dut)
    await scene.finished()
    scene.says[2] = (scene.images[2].identity, 1 << 20 if late is None else late)
    good = late is not None and late <= START_CYCLES // 2
    assert await scene.activate(2) == (OK if good else NO_IDENTITY)
    scene.holds(2 if good else 0, None)


@cocotb.test()
async def one_that_says_something_else(dut) -> None:
    """Whatever bit it is, of what a record has."""
    scene = Scene(dut)
    await start(dut)
    await scene.finished()
    width = struct("compute_pkg::kernel_identity_t").width
    for bit in random.sample(range(width), 40):
        scene.says[2] = (scene.images[2].identity ^ 1 << bit, 0)
        assert await scene.activate(2) == NO_IDENTITY, f"bit {bit}"
        scene.holds(0, None)
    scene.says[2] = (scene.images[2].identity, 0)
    assert await scene.activate(2) == OK


@cocotb.test()
async def the_first_one_does_not_say_what_it_is(dut) -> None:
    """The socket is dead after reset; an image that is right makes it live."""
    scene = Scene(dut)
    scene.says[0] = (0, 0)
    await start(dut)
    assert await scene.finished() == OK
    assert await scene.read(AT_STATE) == 0, "not live, and no command has finished"
    scene.holds(None, None)
    assert await scene.write(AT_COMMAND, ROLL_BACK) and await scene.finished() == NO_FORMER
    assert await scene.activate(1) == OK
    scene.holds(1, None)


@cocotb.test()
async def nothing_is_loaded_before_all_is_quiet(dut) -> None:
    scene = Scene(dut)
    await start(dut)
    await scene.finished()
    for _ in range(10):
        image = 3 - (await scene.read(AT_IMAGES) >> 8 & 3)
        dut.busy.value = 1
        await scene.begin(image)
        await wait_cycles(dut, 30 + random.randrange(50))
        assert int(dut.hold.value) and not int(dut.cut.value) and not int(dut.cut_job.value)
        if random.random() < 0.5:
            assert await scene.write(AT_COMMAND, CUT)
            await FallingEdge(dut.clk)
            assert int(dut.cut_job.value)
        count = len(scene.requests)
        dut.quiet.value = 0
        await FallingEdge(dut.clk)
        dut.busy.value = 0
        await wait_cycles(dut, 30 + random.randrange(50))
        assert int(dut.cut.value) and not int(dut.cut_job.value) and len(scene.requests) == count
        dut.quiet.value = 1
        assert await scene.finished() == OK
        scene.holds(image, None)


@cocotb.test()
async def an_uploaded_one_that_is_no_more(dut) -> None:
    """It is not activated, nor gone back to; one whose place is taken in the cycle in which the command comes, or while it waits,
    neither. While it is there or on its way its place is used."""
    scene = Scene(dut)
    await start(dut)
    await scene.finished()
    uploaded = IMAGES - 1
    dut.uploaded.value = 0
    await scene.begin(uploaded)
    assert await scene.finished() == BAD_IMAGE and not int(dut.used.value)
    dut.uploaded.value = 1
    await scene.begin(uploaded)
    await FallingEdge(dut.clk)
    assert int(dut.used.value) == 1
    assert await scene.finished() == OK and int(dut.used.value) == 1
    scene.holds(uploaded, None)
    assert await scene.activate(0) == OK and not int(dut.used.value)
    dut.uploaded.value = 0
    assert await scene.write(AT_COMMAND, ROLL_BACK) and await scene.finished() == NO_FORMER
    for late in (0, 1, 20):
        dut.uploaded.value, dut.busy.value = 1, 1
        if late % 2:
            assert await scene.write(AT_COMMAND, ROLL_BACK)
        else:
            await scene.begin(uploaded)
        await wait_cycles(dut, late)
        dut.uploaded.value = 0
        count = len(scene.requests)
        assert await scene.finished() == BAD_IMAGE and len(scene.requests) == count
        dut.busy.value = 0
        scene.holds(0, None)


def test_socket_swap() -> None:
    plain = {
        "read_at": ("input", "logic [11:0]"), "value": ("output", "logic [31:0]"), "readable": ("output", "logic"),
        "write": ("input", "logic"), "write_at": ("input", "logic [11:0]"), "wdata": ("input", "logic [31:0]"),
        "writable": ("output", "logic"), "record_image": ("output", "compute_pkg::image_t"),
        "record_at": ("output", "compute_pkg::record_word_t"), "record_word": ("input", "logic [31:0]"),
        "identity": ("input", "compute_pkg::kernel_identity_t"), "busy": ("input", "logic"), "quiet": ("input", "logic"),
        "hold": ("output", "logic"), "cut_job": ("output", "logic"), "cut": ("output", "logic"),
        "uploaded": ("input", "logic [images_pkg::MAX_SLOTS-1:0]"), "used": ("output", "logic [images_pkg::MAX_SLOTS-1:0]"),
        "kernel": ("input", "compute_pkg::image_t"),
        "held": ("output", "compute_pkg::held_t"), "published": ("output", "compute_pkg::kernel_identity_t"),
        "functions": ("output", "compute_pkg::function_set_t"), "idle": ("output", "logic"),
    }  # fmt: skip
    ports = {name: Plain(direction, kind) for name, (direction, kind) in plain.items()}
    ports |= {"load": Source("compute_pkg::reconfigure_t"), "loaded": Sink("logic")}
    run("socket_swap", __file__, params={"IMAGES": IMAGES - SLOTS, "SLOTS": SLOTS, "START_CYCLES": START_CYCLES}, ports=ports)
