# SPDX-License-Identifier: Apache-2.0
"""The simulated device from Python: nacelle_sim.h through ctypes, for tests and benchmarks of the whole shell.

with SimDevice(512) as device:
    device.send(frame)
    answer = device.recv()
"""

from __future__ import annotations

import ctypes as c
import json
import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from nacelle_tb.device import DRAM_KEYS, DRAMS, load_dram

ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = Path(os.environ.get("NACELLE_SIM_LIBRARIES", ROOT / "build" / "sim"))
ABI = 7
HOST_MEMORY = 1 << 63
"""This bit in an address of the device: the rest is an IO virtual address of the host"""
NO_RATE_LIMIT = 0xFFFF_FFFF


class _Config(c.Structure):
    _fields_ = [
        ("abi", c.c_uint32),
        ("line_rate_mbps", c.c_uint32),
        ("dram_latency_cycles", c.c_uint32),
        ("dram_bytes_per_cycle", c.c_uint32),
        ("random_seed", c.c_uint64),
        ("wave_path", c.c_char_p),
    ]


class Timing(c.Structure):
    """nacelle_sim_memory"""

    _fields_ = [
        (name, c.c_uint32) for name in "latency_cycles jitter_cycles bytes_per_cycle stall_cycles stall_every_cycles".split()
    ]


class Dram(c.Structure):
    """nacelle_sim_dram"""

    _fields_ = [(key, c.c_uint32) for keys in DRAM_KEYS.values() for key in keys]


class Faults(c.Structure):
    """nacelle_sim_faults"""

    _fields_ = [(name, c.c_uint32) for name in "one_ppm two_ppm controller_ecc".split()]


class Info(c.Structure):
    """nacelle_sim_info"""

    _fields_ = [
        ("abi", c.c_uint32),
        ("data_w", c.c_uint32),
        ("clock_hz", c.c_uint32),
        ("max_frame", c.c_uint32),
        ("dram_bytes", c.c_uint64),
    ]


class Stamp(c.Structure):
    """nacelle_sim_stamp"""

    _fields_ = [("first_beat", c.c_uint64), ("last_beat", c.c_uint64)]


class Stats(c.Structure):
    """nacelle_sim_stats"""

    _fields_ = [
        (name, c.c_uint64)
        for name in (
            "cycles cycles_simulated rx_frames rx_bytes tx_frames tx_bytes tx_idle_beats "
            "dram_reads dram_read_bytes dram_writes dram_write_bytes dram_last_read dram_last_write dram_flips"
        ).split()
    ]


class _LineConfig(c.Structure):
    _fields_ = [
        *(
            (name, c.c_uint32)
            for name in (
                "abi delay_cycles rate_mbps queue_bytes mark_bytes loss_ppm corrupt_ppm duplicate_ppm reorder_ppm reorder_cycles"
            ).split()
        ),
        ("random_seed", c.c_uint64),
    ]


class LineStats(c.Structure):
    """nacelle_sim_line_stats"""

    _fields_ = [(name, c.c_uint64) for name in "sent lost corrupted duplicated delayed overflowed marked".split()]


class SlotSettings(c.Structure):
    """nacelle_sim_slot"""

    _fields_ = [
        *(
            (name, c.c_uint32)
            for name in (
                "generation lanes mps mrrs rcb tags request_bytes completion_bytes link_ns write_ns read_ns "
                "register_write_ns register_read_ns posted_headers posted_data non_posted_headers "
                "credit_stall_ns credit_stall_every_ns split jitter_ns reorder tail_ppm tail_ns iommu_entries iommu_miss_ns "
                "fault_aborts unsupported_ppm abort_ppm poison_ppm loss_ppm host_reads host_timeout_us reserved"
            ).split()
        ),
        ("random_seed", c.c_uint64),
    ]


class SlotFacts(c.Structure):
    """nacelle_sim_slot_facts"""

    _fields_ = [
        ("bar_bytes", c.c_uint64 * 6),
        *((name, c.c_uint32) for name in "vectors msix_table msix_pending reserved".split()),
    ]


class SlotSpace(c.Structure):
    """nacelle_sim_slot_space"""

    _fields_ = [
        (name, c.c_uint32) for name in "id mps mrrs rcb extended_tags memory_space bus_master msix_enable msix_mask".split()
    ]


class SlotAnswer(c.Structure):
    """nacelle_sim_slot_answer"""

    _fields_ = [
        *((name, c.c_uint64) for name in "token issued finished".split()),
        *((name, c.c_uint32) for name in "status length".split()),
        ("data", c.c_uint8 * 64),
    ]


class SlotMessage(c.Structure):
    """nacelle_sim_slot_message"""

    _fields_ = [
        *((name, c.c_uint64) for name in "token address".split()),
        *((name, c.c_uint32) for name in "length write".split()),
        ("data", c.c_uint8 * 4096),
    ]


class SlotInterrupt(c.Structure):
    """nacelle_sim_slot_interrupt"""

    _fields_ = [("address", c.c_uint64), ("data", c.c_uint32), ("reserved", c.c_uint32)]


class SlotFault(c.Structure):
    """nacelle_sim_slot_fault"""

    _fields_ = [("address", c.c_uint64), ("length", c.c_uint32), ("write", c.c_uint32)]


class SlotStats(c.Structure):
    """nacelle_sim_slot_stats"""

    _fields_ = [
        (name, c.c_uint64)
        for name in (
            "up_tlps up_bytes up_wire_bytes down_tlps down_bytes down_wire_bytes writes write_bytes reads read_bytes "
            "busy_cycles posted_dry_cycles non_posted_dry_cycles interrupts messages faults tlb_misses peer_tlps "
            "unsupported aborted poisoned lost violations"
        ).split()
    ]


@dataclass(frozen=True)
class Sent:
    """A frame that the device sent, and when its first and last beat left."""

    frame: bytes
    first_beat: int
    last_beat: int


class SimDevice:
    """One simulated device of `data_w` bits. Nothing happens but in step(), recv() and the register calls."""

    def __init__(
        self,
        data_w: int = 512,
        *,
        line_rate_mbps: int = 0,
        dram_latency_cycles: int = 0,
        dram_bytes_per_cycle: int = 0,
        qps: int | None = None,
        random_seed: int = 1,
        device: str = "standard",
        waves: Path | None = None,
    ) -> None:
        suffix = f"{f'_qps{qps}' if qps else ''}{f'_{device}' if device != 'standard' else ''}{'_waves' if waves else ''}"
        path = LIBRARIES / f"libnacelle_sim_{data_w}{suffix}.so"
        self._lib = lib = c.CDLL(str(path))
        lib.nacelle_sim_create.restype = c.c_void_p
        lib.nacelle_sim_step.restype = lib.nacelle_sim_skip.restype = c.c_uint64
        lib.nacelle_sim_pull_frame.restype = c.c_int64
        self.info = Info()
        lib.nacelle_sim_get_info(c.byref(self.info))
        error = c.create_string_buffer(512)
        wave_path = str(waves).encode() if waves else None
        config = _Config(ABI, line_rate_mbps, dram_latency_cycles, dram_bytes_per_cycle, random_seed, wave_path)
        handle = lib.nacelle_sim_create(c.byref(config), error, c.c_size_t(len(error)))
        if not handle:
            raise RuntimeError(error.value.decode())
        self._sim = c.c_void_p(handle)
        self._buffer = c.create_string_buffer(self.info.max_frame)
        self.slot = Slot(self)
        self._counters: dict[str, int] = {}

    def __enter__(self) -> SimDevice:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the simulation."""
        if self._sim:
            self._lib.nacelle_sim_destroy(self._sim)
            self._sim = None

    def send(self, frame: bytes) -> None:
        """Queues a frame for the device."""
        result = self._lib.nacelle_sim_push_frame(self._sim, frame, c.c_size_t(len(frame)))
        if result == -1:
            raise ValueError(f"the device takes frames of 1 to {self.info.max_frame} bytes, not {len(frame)}")
        if result == -2:
            raise BufferError("1024 frames wait already: step the device")

    def step(self, cycles: int, stop_on_frame: bool = False, stop_on_slot: bool = False) -> int:
        """Runs; returns the cycles that passed."""
        return self._lib.nacelle_sim_step(self._sim, c.c_uint64(cycles), int(stop_on_frame) | int(stop_on_slot) << 1)

    def skip(self, cycles: int) -> int:
        """Lets time pass while idle; returns the cycles that passed, 0 if busy."""
        return self._lib.nacelle_sim_skip(self._sim, c.c_uint64(cycles))

    def wait(self, cycles: int) -> None:
        """Lets so many cycles pass; those in which nothing moves cost nothing. What is due within these happens at their end."""
        end = self.stats.cycles + cycles
        while (left := end - self.stats.cycles) > 0:
            self.skip(left) or self.step(min(left, 100))

    @property
    def idle(self) -> bool:
        """Nothing moves inside."""
        return bool(self._lib.nacelle_sim_idle(self._sim))

    def set_link(self, up: bool) -> None:
        """Whether the MAC says that the line works; only the driver of a network card is told."""
        self._lib.nacelle_sim_set_link(self._sim, int(up))

    def pull(self) -> Sent | None:
        """The oldest frame that it sent, if any."""
        stamp = Stamp()
        length = self._lib.nacelle_sim_pull_frame(self._sim, self._buffer, c.c_size_t(len(self._buffer)), c.byref(stamp))
        return Sent(self._buffer.raw[:length], stamp.first_beat, stamp.last_beat) if length > 0 else None

    def recv(self, cycles: int = 20_000) -> Sent | None:
        """The next frame that it sends within `cycles`."""
        self.step(cycles, stop_on_frame=True)
        return self.pull()

    def rx_stamp(self) -> Stamp | None:
        """When the oldest sent-in frame not yet reported entered."""
        stamp = Stamp()
        return stamp if self._lib.nacelle_sim_pop_rx_stamp(self._sim, c.byref(stamp)) else None

    def read(self, address: int) -> int:
        """A register."""
        value = c.c_uint32()
        if self._lib.nacelle_sim_reg_read(self._sim, c.c_uint32(address), c.byref(value)):
            raise OSError(f"register {address:#x}: error response")
        return value.value

    def counter(self, name: str) -> int:
        """A counter of the device, by its name in docs/reference/registers.md."""
        if not self._counters:
            listed = json.loads((ROOT / "build" / "generated" / "registers.json").read_text())
            device = next(block for block in listed if block["name"] == "device")
            self._counters = {register["name"]: register["offset"] for register in device["registers"] if register["group"]}
        return self.read(self._counters[name])

    def write(self, address: int, value: int) -> None:
        """A register."""
        if self._lib.nacelle_sim_reg_write(self._sim, c.c_uint32(address), c.c_uint32(value)):
            raise OSError(f"register {address:#x}: error response")

    def set_memory(self, memory: int, **timing: int) -> None:
        """How a memory behaves from now on: the fields of nacelle_sim_memory. Only while no access is under way."""
        if self._lib.nacelle_sim_set_memory(self._sim, c.c_uint32(memory), c.byref(Timing(**timing))):
            raise ValueError(f"the device has no memory {memory}")

    def set_dram(self, memory: int, name: str | None) -> None:
        """A memory behaves as this DRAM of devices/memories from now on; None: as set_memory says. Only while it has no access."""
        dram = c.byref(Dram(**dict(load_dram(DRAMS / f"{name}.toml").values))) if name else None
        if self._lib.nacelle_sim_set_dram(self._sim, c.c_uint32(memory), dram):
            raise ValueError(f"the device has no memory {memory}, or there can be no such DRAM")

    def set_faults(self, memory: int, **faults: int) -> None:
        """What goes wrong in a memory from now on: the fields of nacelle_sim_faults."""
        if self._lib.nacelle_sim_set_faults(self._sim, c.c_uint32(memory), c.byref(Faults(**faults))):
            raise ValueError(f"the device has no memory {memory}, or corrects it itself")

    def flip(self, address: int, bits: int) -> None:
        """Flips bits of the word of 8 bytes that holds this address: 0 to 63 its data, 64 to 71 its check bits."""
        data, check = c.c_uint64(bits & (1 << 64) - 1), c.c_uint8(bits >> 64)
        if self._lib.nacelle_sim_flip(self._sim, c.c_uint64(address), data, check):
            raise ValueError("outside of device memory, or no check bits")

    def dram_read(self, address: int, length: int) -> bytes:
        """Device memory, without a simulated access; with HOST_MEMORY in the address that of the host."""
        if address & HOST_MEMORY:
            return self.slot.host_read(address & ~HOST_MEMORY, length)
        data = c.create_string_buffer(length)
        if self._lib.nacelle_sim_dram_read(self._sim, c.c_uint64(address), data, c.c_size_t(length)):
            raise ValueError("outside of device memory")
        return data.raw

    def dram_write(self, address: int, data: bytes) -> None:
        """Device memory, without a simulated access; with HOST_MEMORY in the address that of the host."""
        if address & HOST_MEMORY:
            self.slot.host_write(address & ~HOST_MEMORY, data)
            return
        if self._lib.nacelle_sim_dram_write(self._sim, c.c_uint64(address), data, c.c_size_t(len(data))):
            raise ValueError("outside of device memory")

    @property
    def stats(self) -> Stats:
        """Counts since it was made."""
        stats = Stats()
        self._lib.nacelle_sim_get_stats(self._sim, c.byref(stats))
        return stats


class SlotError(OSError):
    """An access of the host to a BAR has failed: `status` as in nacelle_sim.h."""

    def __init__(self, what: str, status: int) -> None:
        super().__init__(f"{what}: status {status}")
        self.status = status


class SlotViolation(AssertionError):
    """The device has broken a rule of PCI Express."""


UNSUPPORTED, ABORT, NO_ANSWER, POISONED = 1, 4, 16, 17
READ, WRITE = 1, 2


class SlotFunction:
    """A function of a device in a slot, and its host: nothing happens but in the device's step() and in accesses that wait."""

    def __init__(self, device: SimDevice, number: int) -> None:
        self._device, self._lib, self._sim = device, device._lib, device._sim
        self._number = c.c_uint32(number)
        for name in ("read", "write", "violation"):
            getattr(self._lib, f"nacelle_sim_slot_{name}").restype = c.c_int64
        self._ranges: dict[int, c.Array[c.c_char]] = {}
        self._space = SlotSpace()
        self._defaults()

    def _defaults(self) -> None:
        settings = self.settings
        self._ranges.clear()
        self._space = SlotSpace(
            id=0x100 + self._number.value,
            mps=settings.mps,
            mrrs=settings.mrrs,
            rcb=settings.rcb,
            extended_tags=int(settings.tags > 32),
        )

    @property
    def settings(self) -> SlotSettings:
        """What it is, defaults in place."""
        settings = SlotSettings()
        self._lib.nacelle_sim_slot_get(self._sim, c.byref(settings))
        return settings

    def space(self, **changes: int) -> None:
        """Changes what configuration space says: fields of nacelle_sim_slot_space."""
        for name, value in changes.items():
            setattr(self._space, name, value)
        if self._lib.nacelle_sim_slot_set_space(self._sim, self._number, c.byref(self._space)):
            raise ValueError("no such function, or a size that the slot does not have")

    def enable(self) -> None:
        """Memory space, bus mastering and MSI-X."""
        self.space(memory_space=1, bus_master=1, msix_enable=1)

    @property
    def facts(self) -> SlotFacts:
        """What it has for a slot."""
        facts = SlotFacts()
        self._lib.nacelle_sim_slot_get_facts(self._sim, self._number, c.byref(facts))
        return facts

    def set_bar(self, bar: int, address: int) -> None:
        """Where peers find a BAR."""
        if self._lib.nacelle_sim_slot_set_bar(self._sim, self._number, c.c_uint32(bar), c.c_uint64(address)):
            raise ValueError("no such slot or BAR, or an address that is no multiple of its size")

    # ---- host memory ----

    def map(self, address: int, size: int, access: int = READ | WRITE, by_message: bool = False) -> None:
        """Gives the function memory, all 0; with `by_message` each access is a message."""
        memory = None if by_message else c.create_string_buffer(size)
        where = c.c_uint64(address), c.c_uint64(size)
        if self._lib.nacelle_sim_slot_map(self._sim, self._number, *where, memory, c.c_uint32(access)):
            raise ValueError("no slot, no whole pages, or some are given already")
        if memory is not None:
            self._ranges[address] = memory

    def unmap(self, address: int, size: int) -> bool:
        """Takes it away; what is in it can still be read here. False: a message of it has no answer yet."""
        result = self._lib.nacelle_sim_slot_unmap(self._sim, self._number, c.c_uint64(address), c.c_uint64(size))
        if result < 0:
            raise ValueError(f"no memory of {size} bytes at {address:#x}")
        return result == 0

    def _range(self, address: int, length: int) -> tuple[c.Array[c.c_char], int]:
        for base, memory in self._ranges.items():
            if base <= address and address + length <= base + len(memory):
                return memory, address - base
        raise ValueError(f"no host memory at {address:#x}")

    def host_read(self, address: int, length: int) -> bytes:
        """Memory that the device was given, without a simulated access."""
        memory, at = self._range(address, length)
        return memory[at : at + length]

    def host_write(self, address: int, data: bytes) -> None:
        """The same."""
        memory, at = self._range(address, len(data))
        c.memmove(c.addressof(memory) + at, data, len(data))

    # ---- accesses of the host ----

    def post_read(self, bar: int, offset: int, length: int) -> int:
        """Begins to read; its token."""
        where = c.c_uint32(bar), c.c_uint64(offset), c.c_uint32(length)
        return self._token(self._lib.nacelle_sim_slot_read(self._sim, self._number, *where))

    def post_write(self, bar: int, offset: int, data: bytes) -> int:
        """Begins to write; its token."""
        where = c.c_uint32(bar), c.c_uint64(offset)
        return self._token(self._lib.nacelle_sim_slot_write(self._sim, self._number, *where, data, c.c_uint32(len(data))))

    @staticmethod
    def _token(token: int) -> int:
        if token < 0:
            raise ValueError("no such access" if token == -1 else "1024 wait already: step the device")
        return token

    def wait(self, token: int) -> SlotAnswer:
        """Steps the device until an access is answered."""
        answer = SlotAnswer()
        if self._lib.nacelle_sim_slot_wait(self._sim, c.c_int64(token), c.byref(answer)) < 0:
            raise ValueError(f"no access {token}")
        return answer

    def pull_answer(self) -> SlotAnswer | None:
        """The oldest answer, if there is one."""
        return self._pull("answer", SlotAnswer())

    def read(self, bar: int, offset: int, length: int) -> bytes:
        """Reads, in device time."""
        answer = self.wait(self.post_read(bar, offset, length))
        if answer.status:
            raise SlotError(f"read of BAR {bar}, {offset:#x}", answer.status)
        return bytes(answer.data[: answer.length])

    def write(self, bar: int, offset: int, data: bytes) -> None:
        """Writes, until the device has taken it."""
        self.wait(self.post_write(bar, offset, data))

    def register(self, offset: int) -> int:
        """A register in BAR 0."""
        return int.from_bytes(self.read(0, offset, 4), "little")

    def set_register(self, offset: int, value: int) -> None:
        """A register in BAR 0."""
        self.write(0, offset, value.to_bytes(4, "little"))

    # ---- what the function does ----

    def _pull(self, what: str, item: Any) -> Any:
        return item if getattr(self._lib, f"nacelle_sim_slot_pull_{what}")(self._sim, self._number, c.byref(item)) else None

    def pull_interrupt(self) -> SlotInterrupt | None:
        """The oldest interrupt, if there is one."""
        return self._pull("interrupt", SlotInterrupt())

    def pull_message(self) -> SlotMessage | None:
        """The oldest access to memory that is there by messages, if there is one."""
        return self._pull("message", SlotMessage())

    def answer_message(self, token: int, data: bytes | None = None) -> None:
        """Answers one: of a read with data, None: it cannot be read."""
        if self._lib.nacelle_sim_slot_answer_message(self._sim, c.c_uint64(token), data):
            raise ValueError(f"no message {token}")

    def pull_fault(self) -> SlotFault | None:
        """The oldest access to what is not mapped, if there is one."""
        return self._pull("fault", SlotFault())

    def reset(self, cycles: int = 100_000) -> int:
        """A function-level reset; returns the cycles that it took."""
        begin = self._device.stats.cycles
        self._lib.nacelle_sim_slot_reset(self._sim, self._number)
        while not self._lib.nacelle_sim_slot_reset_done(self._sim, self._number):
            if self._device.stats.cycles - begin > cycles:
                raise TimeoutError("the function does not get quiet")
            self._device.step(1)
        return self._device.stats.cycles - begin


class Slot(SlotFunction):
    """The slot that a device is in: as its function 0, and all of it. `card`: its function 1, if it has a network card."""

    def __init__(self, device: SimDevice) -> None:
        super().__init__(device, 0)
        self.card = SlotFunction(device, 1)

    def set(self, **settings: int) -> None:
        """Makes it another slot: the fields of nacelle_sim_slot. Only while no TLP is under way."""
        error = c.create_string_buffer(256)
        if self._lib.nacelle_sim_slot_set(self._sim, c.byref(SlotSettings(**settings)), error, c.c_size_t(len(error))):
            raise ValueError(error.value.decode())
        self._defaults()
        self.card._defaults()

    def __str__(self) -> str:
        text = c.create_string_buffer(600)
        self._lib.nacelle_sim_slot_text(self._sim, text, c.c_size_t(len(text)))
        return text.value.decode()

    def join(self, other: Slot, latency_ns: int) -> None:
        """Each reaches the BARs of the other. Both devices have the same age, and are stepped together."""
        if self._lib.nacelle_sim_slot_join(self._sim, other._sim, c.c_uint32(latency_ns)):
            raise ValueError("two devices of the same age in slots are joined")

    @property
    def stats(self) -> SlotStats:
        """Counts since set()."""
        stats = SlotStats()
        self._lib.nacelle_sim_slot_get_stats(self._sim, c.byref(stats))
        return stats

    def check(self) -> None:
        """Raises SlotViolation if the device has broken a rule."""
        text = c.create_string_buffer(300)
        if self._lib.nacelle_sim_slot_violation(self._sim, text, c.c_size_t(len(text))):
            raise SlotViolation(text.value.decode())


class Line:
    """Two devices on a line of their own. From now on the line steps both; a register access of one steps the other too.

    Keywords: the fields of nacelle_sim_line_config.
    """

    def __init__(self, a: SimDevice, b: SimDevice, *, random_seed: int = 1, **config: int) -> None:
        self._lib = a._lib
        self._lib.nacelle_sim_line_create.restype = c.c_void_p
        error = c.create_string_buffer(512)
        fields = _LineConfig(abi=ABI, random_seed=random_seed, **config)
        handle = self._lib.nacelle_sim_line_create(a._sim, b._sim, c.byref(fields), error, c.c_size_t(len(error)))
        if not handle:
            raise RuntimeError(error.value.decode())
        self._line = c.c_void_p(handle)

    def close(self) -> None:
        """Takes the line away."""
        if self._line:
            self._lib.nacelle_sim_line_destroy(self._line)
            self._line = None

    def step(self, cycles: int, skip: bool = False) -> None:
        """Runs both devices; with `skip`, time in which nothing happens costs nothing."""
        self._lib.nacelle_sim_line_step(self._line, c.c_uint64(cycles), int(skip))

    def stats(self, direction: int) -> LineStats:
        """What has happened to the frames of the first (0) or second (1) device."""
        stats = LineStats()
        self._lib.nacelle_sim_line_get_stats(self._line, direction, c.byref(stats))
        return stats
