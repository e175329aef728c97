# SPDX-License-Identifier: Apache-2.0
"""Devices as their description files have them (docs/reference/device-description.md).

A description that cannot be built is refused with a sentence that names the file and the key.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tomllib
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
DEVICES = ROOT / "devices"
DRAMS = DEVICES / "memories"
FIXED = "fixed"  # the timing of a memory with one latency
STANDARD = "standard"

WIDTHS = (64, 128, 256, 512)
MAX_FUNCTION_CODE = 127
MAX_KERNEL_FUNCTIONS = 8  # compute_pkg::KERNEL_FUNCTIONS_MAX
MAX_SOCKETS = 16
MAX_IMAGES = 8  # compute_pkg::MAX_IMAGES
MAX_SLOTS = 4  # images_pkg::MAX_SLOTS
MAX_STORE = 64 << 20  # images_pkg::store_word_t
MAX_SENSORS = 16  # sensors_pkg::MAX_SENSORS
RPC_CLIENT, MANAGEMENT_CLIENT, FIRST_KERNEL_CLIENT = 0, 1, 2
MAX_CLIENTS = 4  # roce_pkg::client_t
MAX_KERNEL_CONNECTIONS = 4  # roce_pkg
MAX_MEMORIES = 4  # memory_pkg::MAX_TARGETS
PCIE_TAGS = (32, 256)
PCIE_VECTORS = (2, 128)  # pcie_pkg::MSIX_VECTORS_MAX
PCIE_TIMEOUT_US = (50, 50_000)
NETWORK_PAIRS = (1, 4)  # virtio_pkg::MAX_PAIRS
NETWORK_MTU = (68, 9000)  # virtio 1.2, 5.1.4.1; what rings and stores are tested with
NETWORK_HEADERS = 18  # an Ethernet header with a VLAN tag
MEMORY_STRIDE_W = 36  # shell_pkg::MEMORY_STRIDE_W
MAX_CONTEXTS = 4  # roce_pkg::MAX_CONTEXTS
RECEIVES = 2  # rpc_pkg::RECEIVES
MESSAGES = 4096  # rpc_pkg::CTRL_BYTES
DESCRIPTION_VERSION = 1
LOAD_BYTES = 64  # rpc_pkg::LOAD_BYTES
MAX_DESCRIPTION = 64 << 10
MAX_TRACE = 1 << 20
TRACE_ROWS_MIN = 16  # frame_trace
TRACE_FRAME = 128  # bytes of a frame for which the trace has an entry
PAGE = 4096  # rpc_pkg::PAGE_W
DATAGRAM_FRAME = 4096 + 42  # datagrams_pkg::DATAGRAM_BYTES, with their headers
DRAM_KEYS = {
    "organisation": ("burst_bytes", "row_bytes", "bank_groups", "banks"),
    "timing": (
        *("burst", "cl", "cwl", "trcd", "trp", "tras", "trrd_s", "trrd_l", "tfaw", "tccd_s", "tccd_l"),
        *("twr", "twtr", "trtw", "trtp", "trefi", "trfc"),
    ),
    "controller": ("latency", "lookahead", "writes"),
}
DESCRIPTION_WORD = 4  # bytes
ACCESS = ("in", "out", "inout", "internal")
SENSOR_KINDS = ("temperature", "voltage", "current", "power", "fan")  # numbers from 1 on: the register KIND of sensors.rdl
SENSOR_LIMIT = 2_000_000  # of a value, whose thousandths have 32 bits


class DescriptionError(ValueError):
    """A description file that cannot be built."""


@dataclass(frozen=True)
class Region:
    """A parameter of a function."""

    name: str
    access: str  # of ACCESS, as the caller sees it
    repeated: bool  # any number of these
    doc: str


@dataclass(frozen=True)
class Function:
    """What a caller can call."""

    code: int
    name: str
    doc: str
    regions: tuple[Region, ...]


@dataclass(frozen=True)
class Kernel:
    """A kernel: module `kernel_<name>`."""

    name: str
    version: tuple[int, int]
    functions: tuple[Function, ...]  # by code
    errors: tuple[tuple[int, str], ...]  # by code
    file: Path

    @property
    def module(self) -> str:
        """Its module."""
        return f"kernel_{self.name}"

    @property
    def registers(self) -> Path | None:
        """The description of its registers, if it has one: the file beside its own that ends in .rdl."""
        path = self.file.with_suffix(".rdl")
        return path if path.exists() else None

    @property
    def digest(self) -> bytes:
        """SHA-256 of what an image of it is made from: its module and its descriptions."""
        files = [self.file.with_suffix(".sv"), self.file, *([self.registers] if self.registers else [])]
        return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()


@dataclass(frozen=True)
class StreamKernel:
    """A kernel on the path of the network card: module `stream_<name>`."""

    name: str
    version: tuple[int, int]
    keeps_checksums: bool  # a frame that came with right checksums leaves with right ones
    keeps_flow: bool  # addresses and ports of received frames stay as they are
    file: Path

    @property
    def module(self) -> str:
        """Its module."""
        return f"stream_{self.name}"

    registers, digest = Kernel.registers, Kernel.digest


@dataclass(frozen=True)
class Socket:
    """A socket and what can be in it. `completions`: how many its kernel can have outstanding; 0: it starts no RDMA. `connections`:
    how many it can open."""

    images: tuple[Kernel, ...]
    completions: int
    memories: tuple[int, ...]  # that it reaches; none: all
    connections: int
    datagrams: bool  # its kernel has a port of UDP
    registers: bool  # and one to the registers of the device

    @property
    def kernel(self) -> Kernel:
        """What is in it after reset."""
        return self.images[0]


@dataclass(frozen=True)
class Sensor:
    """What the board measures. `simulated`: what the simulation gives, in the kind's unit, when no socket is busy, and when all
    are; None: nothing."""

    name: str
    kind: str  # of SENSOR_KINDS
    simulated: tuple[float, float] | None


@dataclass(frozen=True)
class Dram:
    """How DRAM behaves, for its model (sim/ddr.h): the keys of a file in devices/memories, times in picoseconds."""

    name: str
    values: tuple[tuple[str, int], ...]  # in the order of nacelle_sim_dram


@dataclass(frozen=True)
class Pcie:
    """A device in a slot."""

    tags: int  # reads of host memory under way
    vectors: int  # of MSI-X
    timeout_us: int  # until such a read is given up
    host_bytes: int  # of the memory of calls, which the device gives to nobody: the host has them
    copy: bool  # there is a copy engine
    network_card: bool  # there is a second function, a network card
    pairs: int  # of its queues
    mtu: int  # of its interface: bytes behind the Ethernet header

    @property
    def network_vectors(self) -> int:
        """Of MSI-X, of the network card: one for changes of its configuration, one for each queue, the control queue too."""
        return 2 + 2 * self.pairs


@dataclass(frozen=True)
class Device:
    """A device that can be built."""

    name: str
    data_w: int
    clock_hz: int
    max_frame: int
    queue_pairs: int
    memory_regions: int
    send_queue_depth: int
    receive_queue_depth: int
    read_depth: int
    max_regions: int
    contexts: int  # of a connection at most; 1: connections have no contexts (docs/reference/calls.md)
    long_set_up: bool  # deadlines and chains of calls
    call_completions: int
    management_completions: int
    management_port: bool
    congestion_control: bool
    selective_repeat: bool
    discovery: bool
    ipv6: bool
    link_control: bool  # VLAN and flow control
    classifier: bool  # rules say which received frames the device and its network card get
    event_log: bool
    counters: bool  # of events
    histograms: bool  # of the calls of each socket
    memory_bytes: int
    memories: int  # each of memory_bytes
    calls_memory: int  # the one that callers' regions are in
    trace_bytes: int  # of frames that the trace holds, half of them received, half sent; 0: there is none
    image_slots: int  # places for images of kernels that come by the network; 0: it takes none
    image_slot_bytes: int  # of each
    ecc: bool  # the device keeps its memories by a code of its own
    dram: Dram | None  # how the simulated memories behave; None: with a fixed latency
    pcie: Pcie | None  # None: it is in no slot
    stream: StreamKernel | None  # on the path of its network card
    sockets: tuple[Socket, ...]
    sensors: tuple[Sensor, ...]  # of its board; none: there is no block for them
    kernel_folders: tuple[Path, ...]
    files: tuple[Path, ...]  # that this is from

    @property
    def kernels(self) -> list[Kernel]:
        """Each kernel once."""
        return list(dict.fromkeys(kernel for socket in self.sockets for kernel in socket.images))

    @property
    def digest(self) -> bytes:
        """Of its parameters and kernels: 8 bytes that are others for any other build."""
        plain = {field.name: value for field in fields(self) if isinstance(value := getattr(self, field.name), bool | int | str)}
        sockets = [[kernel.digest.hex() for kernel in socket.images] for socket in self.sockets]
        rdma = [[socket.completions, socket.connections] for socket in self.sockets]
        sensors = [[sensor.name, sensor.kind] for sensor in self.sensors]
        slot = vars(self.pcie) if self.pcie else None
        stream = [self.stream.digest.hex()] if self.stream else []
        parameters = json.dumps([plain, sockets, self.reach(), rdma, self.datagrams(), self.registers(), sensors, slot, *stream])
        return hashlib.sha256(parameters.encode()).digest()[:8]

    @property
    def address_bits(self) -> int:
        """Of a device address. Those of the memory and of its end are enough where no software or kernel names addresses: those
        in requests of peers are checked as they come."""
        named = self.management_port or self.image_slots or any(socket.completions for socket in self.sockets)
        return 64 if named or self.memories > 1 else self.memory_bytes.bit_length()

    @property
    def trace_rows(self) -> int:
        """Beats that the trace of frames holds of each direction; 0: there is none."""
        return self.trace_bytes // 2 * 8 // self.data_w

    @property
    def trace_frames(self) -> int:
        """Frames that it holds of each direction."""
        return max(self.trace_bytes // 2 // TRACE_FRAME, TRACE_ROWS_MIN)

    @property
    def changes(self) -> bool:
        """Whether a socket has several images: then what the device says of itself changes."""
        return any(len(socket.images) > 1 for socket in self.sockets)

    def socket_of(self, kernel: str) -> int:
        """The socket that holds this kernel after reset."""
        return next(i for i, socket in enumerate(self.sockets) if socket.kernel.name == kernel)

    @property
    def longest_frame(self) -> int:
        """Bytes of the longest frame that it or its network card takes."""
        card = self.pcie.mtu + NETWORK_HEADERS if self.pcie and self.pcie.network_card else 0
        return max(self.max_frame, card)

    @property
    def targets(self) -> int:
        """Its memories, and that of the host if it is in a slot."""
        return self.memories + (self.pcie is not None)

    def reach(self) -> list[int]:
        """For each socket the memories that it reaches, a bit each."""
        return [sum(1 << memory for memory in set(socket.memories or range(self.targets))) for socket in self.sockets]

    def datagrams(self) -> int:
        """The sockets that have a port of UDP, a bit each."""
        return sum(socket.datagrams << i for i, socket in enumerate(self.sockets))

    def registers(self) -> int:
        """The sockets whose kernels have a port to the registers of the device, a bit each."""
        return sum(socket.registers << i for i, socket in enumerate(self.sockets))

    def clients(self) -> list[int | None]:
        """For each socket the client of the transport that its kernel is."""
        free = iter(range(FIRST_KERNEL_CLIENT, MAX_CLIENTS))
        return [next(free) if socket.completions else None for socket in self.sockets]

    def client_of(self, kernel: str) -> int:
        """The client of the transport that this kernel is."""
        client = self.clients()[self.socket_of(kernel)]
        if client is None:
            raise DescriptionError(f"{self.name}: the kernel {kernel} starts no RDMA")
        return client

    def with_sizes(self, data_w: int | None = None, queue_pairs: int | None = None) -> Device:
        """The same device with another width, or for another number of connections."""
        changed = replace(self, data_w=data_w or self.data_w, queue_pairs=queue_pairs or self.queue_pairs)
        check(changed)
        return changed


# ---- reading ----


class _Table:
    """A table of a description file. Every key must be taken: one that is left is unknown."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values, self.where = dict(values), where

    def take(self, key: str, kind: type, default: Any = None) -> Any:
        value = self.values.pop(key, default)
        if value is None:
            raise DescriptionError(f"{self.where}: {key} is missing")
        if type(value) is not kind:
            raise DescriptionError(f"{self.where}: {key} is {value!r}; it must be of type {kind.__name__}")
        return value

    def text(self, key: str, longest: int = 200) -> str:
        value = self.take(key, str)
        if not value or len(value) > longest or not value.isascii() or not value.isprintable():
            raise DescriptionError(f"{self.where}: {key} is {value!r}; it must be 1 to {longest} printable ASCII characters")
        return value

    def number(self, key: str, low: int, high: int, power_of_two: bool = False, default: int | None = None) -> int:
        value = self.take(key, int, default)
        if not low <= value <= high or (power_of_two and value & (value - 1)):
            rule = "a power of two " if power_of_two else ""
            raise DescriptionError(f"{self.where}: {key} is {value}; it must be {rule}from {low} to {high}")
        return value

    def table(self, key: str) -> _Table:
        return _Table(self.take(key, dict), f"{self.where}, [{key}]")

    def tables(self, key: str, least: int = 1) -> list[_Table]:
        found = self.take(key, list, [])
        if len(found) < least or not all(type(item) is dict for item in found):
            raise DescriptionError(f"{self.where}: {key} must be {least} tables or more")
        return [_Table(item, f"{self.where}, {key}[{i}]") for i, item in enumerate(found)]

    def end(self) -> None:
        if self.values:
            raise DescriptionError(f"{self.where}: unknown key {', '.join(sorted(self.values))}")


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise DescriptionError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DescriptionError(f"{path}: {error}") from None


def _kernel_file(kind: str, name: str, folders: Sequence[Path]) -> tuple[Path, tuple[int, int], _Table]:
    """The description `<kind>_<name>.toml` in the first of these folders that has it: its path, the version, and what is left."""
    path = next((folder / f"{kind}_{name}.toml" for folder in folders if (folder / f"{kind}_{name}.toml").exists()), None)
    if path is None:
        raise DescriptionError(f"no {kind}_{name}.toml in {', '.join(map(str, folders))}")
    if not path.with_suffix(".sv").exists():
        raise DescriptionError(f"{path}: there is no {path.with_suffix('.sv').name} beside it")
    table = _Table(_parse(path), str(path))
    if table.text("name", 16) != name:
        raise DescriptionError(f"{path}: its name must be {name}, as in the name of the file")
    version = table.text("version").split(".")
    if len(version) != 2 or not all(part.isdecimal() and int(part) < 1 << 16 for part in version):
        raise DescriptionError(f"{path}: version must be two numbers below 65536 with a dot between")
    return path, (int(version[0]), int(version[1])), table


def load_stream(name: str, folders: Sequence[Path]) -> StreamKernel | None:
    """The kernel of this name for the path of the network card; none without a name."""
    if not name:
        return None
    path, version, table = _kernel_file("stream", name, folders)
    kernel = StreamKernel(name, version, table.take("keeps_checksums", bool), table.take("keeps_flow", bool), path)
    table.end()
    return kernel


def load_kernel(name: str, folders: Sequence[Path]) -> Kernel:
    """The kernel of this name in the first of these folders that has it."""
    path, version, table = _kernel_file("kernel", name, folders)
    functions = []
    for entry in table.tables("functions"):
        regions = []
        for row in entry.tables("regions", 0):
            region = Region(row.text("name"), row.text("access"), row.take("repeated", bool, False), row.text("doc"))
            if region.access not in ACCESS:
                raise DescriptionError(f"{row.where}: access is {region.access!r}; it must be one of {', '.join(ACCESS)}")
            row.end()
            regions.append(region)
        code = entry.number("code", 1, MAX_FUNCTION_CODE)
        functions.append(Function(code, entry.text("name", 32), entry.text("doc"), tuple(regions)))
        entry.end()
    codes = [function.code for function in functions]
    if len(codes) > MAX_KERNEL_FUNCTIONS or codes != sorted(set(codes)):
        raise DescriptionError(f"{path}: at most {MAX_KERNEL_FUNCTIONS} functions, in the order of their codes, each code once")
    errors = {}
    for code, text in _Table(table.take("errors", dict, {}), f"{path}, [errors]").values.items():
        try:
            number = int(code, 0)
        except ValueError:
            number = 0
        if not 0x10 <= number <= 0x7F or type(text) is not str:
            raise DescriptionError(f"{path}, [errors]: {code} must be a code from 0x10 to 0x7f, with a text")
        errors[number] = text
    table.end()
    return Kernel(name, version, tuple(functions), tuple(sorted(errors.items())), path)


def load_dram(path: Path) -> Dram:
    """The DRAM of this file."""
    table = _Table(_parse(path), str(path))
    name, values = table.text("name", 32), {}
    for part, keys in DRAM_KEYS.items():
        inside = table.table(part)
        for key in keys:
            if part == "timing":
                time = inside.take(key, float)
                if not 0 < time <= 1e6:
                    raise DescriptionError(f"{inside.where}: {key} is {time}; it must be nanoseconds, above 0 and up to 1000000.0")
                values[key] = round(time * 1000)
            elif key == "latency":
                values[key] = round(inside.take(key, float) * 1000)
            else:
                values[key] = inside.number(key, 1, 1 << 20, power_of_two=part == "organisation")
        inside.end()
    table.end()
    if values["banks"] % values["bank_groups"]:
        raise DescriptionError(f"{path}: bank_groups is {values['bank_groups']}; it must divide banks, {values['banks']}")
    if values["trefi"] <= values["trfc"] + values["trp"]:
        raise DescriptionError(f"{path}: trefi is {values['trefi'] / 1000}; it must be longer than a refresh, trfc and trp")
    return Dram(name, tuple(values.items()))


def dram_named(name: str, device: Path) -> Dram | None:
    """The DRAM that a description names: of a file beside it, or of a name in devices/memories."""
    if name == FIXED:
        return None
    path = device.parent / name if name.endswith(".toml") else DRAMS / f"{name}.toml"
    if not path.exists():
        known = ", ".join([FIXED, *sorted(file.stem for file in DRAMS.glob("*.toml"))])
        raise DescriptionError(f"{device}: timing is {name!r}; it must be a .toml file, or one of {known}")
    return load_dram(path)


def _merged(path: Path, seen: tuple[Path, ...] = ()) -> tuple[dict[str, Any], tuple[Path, ...]]:
    """The keys of a description over those of its base. Folders are taken from where they are named."""
    if path in seen:
        raise DescriptionError(f"{path}: it is its own base")
    values = _parse(path)
    if "kernels" in values:
        if type(values["kernels"]) is not list or not all(type(folder) is str for folder in values["kernels"]):
            raise DescriptionError(f"{path}: kernels must be a list of folders")
        values["kernels"] = [str((path.parent / folder).resolve()) for folder in values["kernels"]]
    files = (*seen, path)
    if "base" not in values:
        return values, files
    base, files = _merged((path.parent / str(values.pop("base"))).resolve(), files)
    for key, value in values.items():
        base[key] = {**base[key], **value} if type(value) is dict and type(base.get(key)) is dict else value
    return base, files


def _images(socket: _Table) -> list[str]:
    """The kernels that a socket can hold: one, or several of which one at a time is there."""
    if "kernels" not in socket.values:
        return [socket.text("kernel", 16)]
    names = socket.take("kernels", list)
    if not 1 <= len(names) <= MAX_IMAGES or not all(type(name) is str for name in names) or len(set(names)) < len(names):
        raise DescriptionError(f"{socket.where}: kernels must be 1 to {MAX_IMAGES} names, each once")
    if "kernel" in socket.values:
        raise DescriptionError(f"{socket.where}: it has kernel and kernels; the first of kernels is there after reset")
    return names


def _sensor(table: _Table) -> Sensor:
    """A sensor of the board."""
    name, kind = table.text("name", 16), table.text("kind")
    if kind not in SENSOR_KINDS:
        raise DescriptionError(f"{table.where}: kind is {kind!r}; it must be one of {', '.join(SENSOR_KINDS)}")
    values = None
    if "simulated" in table.values:
        values = tuple(table.take("simulated", list))
        if len(values) != 2 or not all(type(value) in (int, float) and abs(value) <= SENSOR_LIMIT for value in values):
            raise DescriptionError(
                f"{table.where}: simulated is {list(values)}; it must be two numbers from -{SENSOR_LIMIT} to {SENSOR_LIMIT}"
            )
    table.end()
    return Sensor(name, kind, values)


def _pcie(table: _Table) -> Pcie:
    """The device's side of a slot."""
    pcie = Pcie(
        table.number("tags", *PCIE_TAGS, power_of_two=True, default=64),
        table.number("vectors", *PCIE_VECTORS, default=32),
        table.number("timeout_us", *PCIE_TIMEOUT_US, default=1000),
        table.number("host_bytes", 0, 1 << MEMORY_STRIDE_W, default=0),
        table.take("copy", bool, True),
        table.take("network_card", bool, False),
        table.number("pairs", *NETWORK_PAIRS, default=1),
        table.number("mtu", *NETWORK_MTU, default=1500),
    )
    table.end()
    return pcie


def load(path: Path) -> Device:
    """Reads a description and checks it."""
    values, files = _merged(path.resolve())
    table = _Table(values, str(path))
    folders = tuple(Path(folder) for folder in table.take("kernels", list))
    transport, calls, management, memory = (table.table(key) for key in ("transport", "calls", "management", "memory"))
    network, services, telemetry = (
        _Table(table.take(key, dict, {}), f"{path}, [{key}]") for key in ("network", "services", "telemetry")
    )
    uploads = _Table(table.take("images", dict, {}), f"{path}, [images]")
    stream = load_stream(network.take("stream", str, ""), folders)
    sockets = []
    for entry in table.tables("sockets"):
        images = tuple(load_kernel(name, folders) for name in _images(entry))
        completions = entry.number("completions", 0, 1 << 15, default=0)
        connections = entry.number("connections", 0, MAX_KERNEL_CONNECTIONS, default=0)
        datagrams, registers = (entry.take(key, bool, False) for key in ("datagrams", "registers"))
        sockets.append(Socket(images, completions, tuple(entry.take("memories", list, [])), connections, datagrams, registers))
        entry.end()
    device = Device(
        name=table.text("name", 32),
        data_w=table.number("data_w", WIDTHS[0], WIDTHS[-1], power_of_two=True),
        clock_hz=table.number("clock_hz", 1_000_000, 2_000_000_000),
        max_frame=table.number("max_frame", 512, 9216),
        queue_pairs=transport.number("queue_pairs", 16, 1024, power_of_two=True),
        memory_regions=transport.number("memory_regions", 16, 4096, power_of_two=True),
        send_queue_depth=transport.number("send_queue_depth", 2, 64, power_of_two=True),
        receive_queue_depth=transport.number("receive_queue_depth", 2, 64, power_of_two=True),
        read_depth=transport.number("read_depth", 1, 16, power_of_two=True),
        max_regions=calls.number("max_regions", 2, 32),
        contexts=calls.number("contexts", 1, MAX_CONTEXTS, power_of_two=True, default=1),
        long_set_up=calls.take("long_set_up", bool, False),
        call_completions=calls.number("completions", 16, 1 << 15, power_of_two=True),
        management_completions=management.number("completions", 16, 1 << 15, power_of_two=True),
        management_port=management.take("port", bool, True),
        congestion_control=transport.take("congestion_control", bool, True),
        selective_repeat=transport.take("selective_repeat", bool, True),
        discovery=services.take("discovery", bool, True),
        ipv6=network.take("ipv6", bool, True),
        link_control=network.take("link_control", bool, True),
        classifier=network.take("classifier", bool, False),
        event_log=telemetry.take("event_log", bool, True),
        counters=telemetry.take("counters", bool, True),
        histograms=telemetry.take("histograms", bool, True),
        memory_bytes=memory.number("bytes", 1 << 16, 1 << MEMORY_STRIDE_W, power_of_two=True),
        memories=memory.number("count", 1, MAX_MEMORIES, default=1),
        calls_memory=memory.number("of_calls", 0, MAX_MEMORIES - 1, default=0),
        trace_bytes=telemetry.number("trace_bytes", 0, MAX_TRACE, power_of_two=True, default=0),
        image_slots=uploads.number("slots", 0, MAX_SLOTS, default=0),
        image_slot_bytes=uploads.number("slot_bytes", PAGE, MAX_STORE, power_of_two=True, default=PAGE),
        ecc=memory.take("ecc", bool, False),
        dram=dram_named(memory.take("timing", str, FIXED), path),
        pcie=_pcie(table.table("pcie")) if "pcie" in table.values else None,
        stream=stream,
        sockets=tuple(sockets),
        sensors=tuple(_sensor(entry) for entry in table.tables("sensors", 0)),
        kernel_folders=folders,
        files=(*files, *(kernel.file for socket in sockets for kernel in socket.images), *([stream.file] if stream else [])),
    )
    for part in (transport, calls, management, network, services, memory, telemetry, uploads, table):
        part.end()
    check(device)
    return device


def check(device: Device) -> None:
    """What the parts of a description must keep together."""
    where = device.files[0]
    if len(device.sockets) > MAX_SOCKETS:
        raise DescriptionError(f"{where}: {len(device.sockets)} sockets; there can be {MAX_SOCKETS}")
    if len(device.sensors) > MAX_SENSORS:
        raise DescriptionError(f"{where}: {len(device.sensors)} sensors; there can be {MAX_SENSORS}")
    for i, sensor in enumerate(device.sensors):
        if any((sensor.name, sensor.kind) == (other.name, other.kind) for other in device.sensors[:i]):
            raise DescriptionError(f"{where}: sensors[{i}]: there is another {sensor.kind} of {sensor.name}")
    if device.pcie and (device.pcie.host_bytes % PAGE or device.pcie.host_bytes > device.memory_bytes // 2):
        raise DescriptionError(
            f"{where}, [pcie]: host_bytes is {device.pcie.host_bytes}; it must be a multiple of {PAGE}, "
            f"and half of the memory at most, {device.memory_bytes // 2}"
        )
    if device.stream and not (device.pcie and device.pcie.network_card):
        raise DescriptionError(f"{where}: stream is {device.stream.name!r}; it needs network_card = true in [pcie]")
    slots, slot_bytes = device.image_slots, device.image_slot_bytes
    if slots & (slots - 1) or slots * slot_bytes > min(MAX_STORE, device.memory_bytes // 4):
        raise DescriptionError(
            f"{where}: {slots} slots of {slot_bytes} bytes; they must be 0, 1, 2 or 4, together a quarter of the memory and "
            f"{MAX_STORE} bytes at most"
        )
    if slots and not device.changes:
        raise DescriptionError(f"{where}: it has slots for images; a socket must have several kernels to take one")
    for i, socket in enumerate(device.sockets):
        if len(socket.images) > 1 and len(socket.images) + slots > MAX_IMAGES:
            raise DescriptionError(f"{where}: sockets[{i}]: its kernels and the slots are more than {MAX_IMAGES}")
    if device.queue_pairs & (device.queue_pairs - 1) or not 16 <= device.queue_pairs <= 1024:
        raise DescriptionError(f"{where}: {device.queue_pairs} queue pairs; it must be a power of two from 16 to 1024")
    if device.contexts > device.max_regions:
        raise DescriptionError(f"{where}: contexts is {device.contexts}; it must be at most max_regions, {device.max_regions}")
    if device.long_set_up and device.contexts == 1:
        raise DescriptionError(f"{where}: long_set_up needs contexts: 2 or 4")
    if device.contexts * RECEIVES > device.receive_queue_depth:
        raise DescriptionError(
            f"{where}: contexts is {device.contexts}; receive_queue_depth must be {device.contexts * RECEIVES} or more"
        )
    described = -(-(LOAD_BYTES + len(description(device))) // PAGE) * PAGE
    if described + device.queue_pairs * device.contexts * MESSAGES >= device.memory_bytes:
        raise DescriptionError(f"{where}: the messages of {device.queue_pairs} connections fill the memory: bytes must be larger")
    if 0 < device.trace_bytes < TRACE_ROWS_MIN * 2 * device.data_w // 8:
        least = TRACE_ROWS_MIN * 2 * device.data_w // 8
        raise DescriptionError(
            f"{where}: trace_bytes is {device.trace_bytes}; at {device.data_w} bits it must be 0, or {least} or more"
        )
    if device.targets > MAX_MEMORIES:
        raise DescriptionError(
            f"{where}: count is {device.memories}; with [pcie] there can be {MAX_MEMORIES - 1}: host memory is one more"
        )
    if device.calls_memory >= device.memories:
        raise DescriptionError(f"{where}: calls use memory {device.calls_memory}; there are {device.memories}")
    for i, socket in enumerate(device.sockets):
        if any(memory not in range(device.targets) for memory in socket.memories):
            raise DescriptionError(
                f"{where}: sockets[{i}]: memories is {list(socket.memories)}; there are {device.targets}, from 0"
            )
        if socket.memories and device.calls_memory not in socket.memories:
            raise DescriptionError(
                f"{where}: sockets[{i}]: memories must have {device.calls_memory}, which callers' regions are in"
            )
    # Images of one socket are never there together.
    owners: dict[int, tuple[str, int]] = {}
    for number, socket in enumerate(device.sockets):
        for kernel in socket.images:
            for function in kernel.functions:
                name, other = owners.setdefault(function.code, (kernel.name, number))
                if name != kernel.name and other != number:
                    raise DescriptionError(f"{where}: {name} and {kernel.name} both have function {function.code}")
    if device.datagrams() and device.max_frame < DATAGRAM_FRAME:
        raise DescriptionError(f"{where}: max_frame is {device.max_frame}; datagrams need {DATAGRAM_FRAME} or more")
    kernel_clients = sum(socket.completions > 0 for socket in device.sockets)
    if kernel_clients > MAX_CLIENTS - FIRST_KERNEL_CLIENT:
        raise DescriptionError(f"{where}: {kernel_clients} sockets start RDMA; at most {MAX_CLIENTS - FIRST_KERNEL_CLIENT} can")
    for socket in device.sockets:
        if socket.completions & (socket.completions - 1):
            raise DescriptionError(f"{where}: {socket.kernel.name}: completions must be a power of two")
        if socket.connections and not socket.completions:
            raise DescriptionError(f"{where}: {socket.kernel.name}: a kernel with connections needs completions")
    if len(description(device)) > MAX_DESCRIPTION:
        raise DescriptionError(f"{where}: the description for callers is longer than {MAX_DESCRIPTION} bytes")


def named(name: str) -> Device:
    """The device of this description: a file, or a name in devices/."""
    path = Path(name) if name.endswith(".toml") else DEVICES / f"{name}.toml"
    if not path.exists():
        known = ", ".join(sorted(file.stem for file in DEVICES.glob("*.toml")))
        raise DescriptionError(f"there is no device {name}: name a .toml file, or one of {known}")
    return load(path)


def standard() -> Device:
    """The device that unit tests are about."""
    return named(STANDARD)


def add_options(parser: ArgumentParser) -> None:
    """Gives a tool the options that choose a device: --device, --data-w and --qps."""
    parser.add_argument("--device", default=STANDARD, help=f"description file, or the name of one in devices/ [{STANDARD}]")
    parser.add_argument("--data-w", type=int, choices=WIDTHS, help="bits of the data path, if not as described")
    parser.add_argument("--qps", type=int, help="connections at once, if not as described")


def from_options(options: Namespace) -> Device:
    """The device that these options choose. Ends the tool with a message if there is none."""
    try:
        return named(options.device).with_sizes(options.data_w, options.qps)
    except DescriptionError as error:
        sys.exit(f"error: {error}")


def revision() -> str:
    """The first 8 digits of the revision that is built, where the builder says it: else each commit would make all devices
    again."""
    return f"{int(os.environ.get('NACELLE_REVISION', '0')[:8], 16):08x}"


# ---- the description for callers ----


class Mark(IntEnum):
    """A word of the description's template that is not text. With one of these goes the number of a kernel."""

    BEGIN = 0  # a comma, if functions of other kernels come before; up to END the text is there only if a socket holds the kernel
    COUNT = 1  # how many sockets hold it
    END = 2


def template(device: Device) -> list[bytes | tuple[Mark, int]]:
    """The description for callers: pieces of text, and marks in a device in which it changes."""
    head = {
        "version": DESCRIPTION_VERSION,
        "device": device.name,
        "kind": "rtl",
        "build": f"{revision()}-{device.digest.hex()}",
        "data_w": device.data_w,
        "clock_hz": device.clock_hz,
        "memory_bytes": device.memory_bytes,
        "max_regions": device.max_regions,
        "max_contexts": device.contexts if device.contexts > 1 else 0,
        "load_bytes": LOAD_BYTES,
    }
    pieces: list[bytes | tuple[Mark, int]] = [_json(head)[:-1] + b',"functions":[']
    for number, kernel in enumerate(device.kernels):
        pieces.append((Mark.BEGIN, number))
        for i, function in enumerate(kernel.functions):
            before = {
                "code": function.code,
                "name": function.name,
                "kernel": kernel.name,
                "kernel_version": list(kernel.version),
            }
            behind = {
                "doc": function.doc,
                "regions": [
                    {"name": r.name, "access": r.access, **({"repeated": True} if r.repeated else {}), "doc": r.doc}
                    for r in function.regions
                ],
                "errors": {str(code): text for code, text in kernel.errors},
            }
            pieces += [b"," * (i > 0) + _json(before)[:-1] + b',"sockets":', (Mark.COUNT, number), b"," + _json(behind)[1:]]
        pieces.append((Mark.END, number))
    return [*pieces, b"]}"]


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def description(device: Device, held: Sequence[int | None] | None = None) -> bytes:
    """The description of the device for callers: JSON (docs/reference/device-description.md). `held`: the image in each socket, or
    None; without, the first of each. Where images change, each piece has its place: whole words, with spaces instead of what is not
    there."""
    images = [0] * len(device.sockets) if held is None else held
    there = [socket.images[image].name for socket, image in zip(device.sockets, images, strict=True) if image is not None]
    text, shown, any_before = b"", True, False
    for piece in template(device):
        if isinstance(piece, bytes):
            padded = piece.ljust(-(-len(piece) // DESCRIPTION_WORD) * DESCRIPTION_WORD) if device.changes else piece
            text += padded if shown else b" " * len(padded)
            continue
        mark, number = piece
        count = there.count(device.kernels[number].name)
        word = b""
        if mark == Mark.BEGIN:
            shown = count > 0
            word = b"," if shown and any_before else b""
            any_before = any_before or shown
        elif mark == Mark.COUNT:
            word = str(count).encode() if shown else b""
        else:
            shown = True
        text += word.ljust(DESCRIPTION_WORD) if device.changes else word
    return text
