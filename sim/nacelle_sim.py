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

from nacelle_tb.device import DRAM_KEYS, DRAMS, load_dram

ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = Path(os.environ.get("NACELLE_SIM_LIBRARIES", ROOT / "build" / "sim"))
ABI = 4
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

    def step(self, cycles: int, stop_on_frame: bool = False) -> int:
        """Runs; returns the cycles that passed."""
        return self._lib.nacelle_sim_step(self._sim, c.c_uint64(cycles), int(stop_on_frame))

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
        """Device memory, without a simulated access."""
        data = c.create_string_buffer(length)
        if self._lib.nacelle_sim_dram_read(self._sim, c.c_uint64(address), data, c.c_size_t(length)):
            raise ValueError("outside of device memory")
        return data.raw

    def dram_write(self, address: int, data: bytes) -> None:
        """Device memory, without a simulated access."""
        if self._lib.nacelle_sim_dram_write(self._sim, c.c_uint64(address), data, c.c_size_t(len(data))):
            raise ValueError("outside of device memory")

    @property
    def stats(self) -> Stats:
        """Counts since it was made."""
        stats = Stats()
        self._lib.nacelle_sim_get_stats(self._sim, c.byref(stats))
        return stats


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
