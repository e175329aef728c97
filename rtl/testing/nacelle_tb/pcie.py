# SPDX-License-Identifier: Apache-2.0
"""A slot for the PCIe plane in tests: the root complex of cocotbext-pcie, and between it and the module a device whose
configuration space is Python and whose transaction layer is the module under test.

`Rules` holds what the module sends to the Base Specification as it goes: that root complex checks next to nothing.
"""

from __future__ import annotations

import logging
import random
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import cocotb
from cocotb.handle import SimHandleBase
from cocotb.triggers import Event, RisingEdge, ValueChange

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from cocotbext.pcie.core import Device, Endpoint, RootComplex, Switch
    from cocotbext.pcie.core.caps import MsixCapability
    from cocotbext.pcie.core.tlp import CplStatus, Tlp, TlpAttr, TlpTc, TlpType
    from cocotbext.pcie.core.utils import PcieId

from .streams import AxisSink, AxisSource, StreamSink, StreamSource, wait_cycles
from .svtypes import Struct, constant, struct

HEADER = "pcie_pkg::tlp_header_t"
KINDS = ("MEM_READ", "MEM_WRITE", "COMPLETION", "COMPLETION_DATA", "OTHER", "OTHER_DATA", "MESSAGE", "MESSAGE_DATA")
KIND = SimpleNamespace(**{name: constant(f"pcie_pkg::TLP_{name}") for name in KINDS})
NO_BAR = 7
READS = {TlpType.MEM_READ, TlpType.MEM_READ_64}
WRITES = {TlpType.MEM_WRITE, TlpType.MEM_WRITE_64}
COMPLETIONS = {TlpType.CPL: KIND.COMPLETION, TlpType.CPL_DATA: KIND.COMPLETION_DATA}
POSTED, NON_POSTED, COMPLETION = "posted", "non_posted", "completion"

logging.getLogger("cocotb.pcie").setLevel(logging.ERROR)


def kind_of(tlp: Tlp) -> int:
    """The kind of header that a TLP has."""
    if tlp.fmt_type in READS:
        return int(KIND.MEM_READ)
    if tlp.fmt_type in WRITES:
        return int(KIND.MEM_WRITE)
    if tlp.fmt_type in COMPLETIONS:
        return int(COMPLETIONS[tlp.fmt_type])
    if tlp.fmt_type.name.startswith("MSG"):
        return int(KIND.MESSAGE_DATA if tlp.has_data() else KIND.MESSAGE)
    return int(KIND.OTHER_DATA if tlp.has_data() else KIND.OTHER)


def class_of(tlp: Tlp) -> str:
    """Its class of flow control."""
    return POSTED if tlp.is_posted() else COMPLETION if tlp.is_completion() else NON_POSTED


def first_enabled(enables: int) -> int:
    """The number of the first enabled byte, 0 if there is none."""
    return (enables & -enables).bit_length() - 1 if enables else 0


def byte_count(length: int, first_be: int, last_be: int) -> int:
    """Bytes from the first to the last enabled one (table 2-38)."""
    end = first_be if length == 1 else last_be
    return 4 * length - first_enabled(first_be) - (4 - end.bit_length() if end else 3)


class Rules:
    """What the functions of a device must keep, by the requests that they have sent and got."""

    def __init__(self, functions: Sequence[Endpoint]) -> None:
        self.functions = functions
        self.sent: dict[int, SimpleNamespace] = {}  # own reads, by tag: those of all functions share these
        self.asked: dict[tuple[int, int], SimpleNamespace] = {}  # the host's, by requester and tag
        self.sizes: dict[str, list[int]] = {"read": [], "write": [], "completion": []}
        self.most_reads = 0

    @property
    def mps(self) -> int:
        """Of function 0."""
        return self.payload(self.functions[0])

    @staticmethod
    def payload(function: Endpoint) -> int:
        return 128 << int(function.pcie_cap.max_payload_size)

    def named(self, identity: PcieId) -> int | None:
        """The number of the function with this ID."""
        return next((number for number, function in enumerate(self.functions) if function.pcie_id == identity), None)

    def to_device(self, tlp: Tlp) -> None:
        """A TLP that the module gets."""
        if tlp.fmt_type in COMPLETIONS:
            read = self.sent.get(tlp.tag)
            if read is None or self.named(tlp.requester_id) != read.function:
                return
            read.left -= 4 * tlp.length - (tlp.lower_address & 3)
            if tlp.status != CplStatus.SC or read.left <= 0:
                del self.sent[tlp.tag]
        elif not tlp.is_posted():
            memory = tlp.fmt_type in READS
            left = byte_count(tlp.length, tlp.first_be, tlp.last_be) if memory else 4
            at = tlp.address + first_enabled(tlp.first_be) if memory else 0
            key = int(tlp.requester_id), tlp.tag
            assert key not in self.asked, f"the host uses tag {tlp.tag} twice"
            number = getattr(tlp, "give_func", None)
            if number is None:
                number = next((n for n, function in enumerate(self.functions) if memory and function.match_bar(tlp.address)), 0)
            function = self.functions[number if number < len(self.functions) else 0]
            self.asked[key] = SimpleNamespace(left=left, at=at, memory=memory, function=function)

    def from_device(self, tlp: Tlp, settings: Sequence[Mapping[str, int]], cycles_off: Sequence[int]) -> None:
        """A TLP that the module sends; bus mastering of a function may be off, since `cycles_off`: then one is still in the last
        register."""
        if tlp.fmt_type in COMPLETIONS:
            self._completion(tlp)
            return
        number = self.named(tlp.requester_id)
        assert number is not None, f"another's requester ID: {tlp!r}"
        function = self.functions[number]
        assert settings[number]["bus_master"] or cycles_off[number] <= 2, f"sent while bus mastering is off: {tlp!r}"
        assert tlp.address % 4 == 0 and 1 <= tlp.length <= 1024
        assert tlp.address % 4096 + 4 * tlp.length <= 4096, f"crosses 4 KiB: {tlp!r}"
        first, last = tlp.first_be, tlp.last_be
        if tlp.length == 1:
            assert last == 0, f"last BE of one dword: {tlp!r}"
        else:
            assert first and last, f"no byte of the first or last dword: {tlp!r}"
            if tlp.length > 2 or tlp.address % 8:
                assert first in (0xF, 0xE, 0xC, 0x8) and last in (0xF, 0x7, 0x3, 0x1), f"byte enables with holes: {tlp!r}"
        if tlp.fmt_type in WRITES:
            assert 4 * tlp.length <= self.payload(function), f"over the largest payload: {tlp!r}"
            self.sizes["write"].append(4 * tlp.length)
        else:
            assert tlp.fmt_type in READS, f"a request that it has no reason to send: {tlp!r}"
            assert 4 * tlp.length <= 128 << int(function.pcie_cap.max_read_request_size), f"over the largest read: {tlp!r}"
            assert tlp.tag not in self.sent, f"tag {tlp.tag} is in use"
            assert tlp.tag < (256 if settings[number]["extended_tags"] else 32), f"tag {tlp.tag} is not allowed"
            self.sent[tlp.tag] = SimpleNamespace(left=byte_count(tlp.length, first, last), function=number)
            self.most_reads = max(self.most_reads, len(self.sent))
            self.sizes["read"].append(4 * tlp.length)

    def _completion(self, tlp: Tlp) -> None:
        key = int(tlp.requester_id), tlp.tag
        assert key in self.asked, f"a completion for nothing: {tlp!r}"
        request = self.asked[key]
        assert tlp.completer_id == request.function.pcie_id, f"another's completer ID: {tlp!r}"
        assert tlp.byte_count == request.left, f"byte count is not {request.left}: {tlp!r}"
        assert tlp.lower_address == request.at % 128, f"lower address is not {request.at % 128}: {tlp!r}"
        if tlp.status != CplStatus.SC:
            assert not tlp.has_data()
            del self.asked[key]
            return
        assert tlp.fmt_type == TlpType.CPL_DATA and request.memory
        assert 4 * tlp.length <= self.payload(request.function), f"over the largest payload: {tlp!r}"
        bytes_ = 4 * tlp.length - request.at % 4
        if bytes_ >= request.left:
            assert bytes_ - request.left < 4, f"more than was asked: {tlp!r}"
            del self.asked[key]
        else:
            request.left -= bytes_
            request.at += bytes_
            assert request.at % 128 == 0, f"does not end at the read completion boundary: {tlp!r}"
        self.sizes["completion"].append(4 * tlp.length)


class _Function(Endpoint):
    """The configuration space."""

    def __init__(self, vectors: int, msix_at: tuple[int, int]) -> None:
        super().__init__()
        self.vendor_id, self.device_id = 0x1172, 0x0001
        self.pcie_cap.max_payload_size_supported = 5
        self.pcie_cap.extended_tag_supported = True
        self.pcie_cap.function_level_reset_capability = True
        self.msix_cap = MsixCapability()
        if vectors:
            self.msix_cap.msix_table_size = vectors - 1
            self.msix_cap.msix_table_offset, self.msix_cap.msix_pba_offset = msix_at
            self.register_capability(self.msix_cap)


class _Board(Device):
    """The device in the slot: configuration requests are answered here, all others are the module's."""

    def __init__(self, slot: Slot) -> None:
        super().__init__()
        self.slot = slot

    async def upstream_recv(self, tlp: Tlp) -> None:
        if tlp.fmt_type in {TlpType.CFG_READ_0, TlpType.CFG_WRITE_0, TlpType.CFG_READ_1, TlpType.CFG_WRITE_1}:
            await super().upstream_recv(tlp)
            self.slot.configured()
        else:
            self.slot.arrived(tlp)


@dataclass(frozen=True)
class Card:
    """A second function: sizes of its BARs by number, its vectors, and where in BAR 0 the table and the pending bits are."""

    bars: Mapping[int, int]
    vectors: int
    msix_at: tuple[int, int]


class Slot:
    """The module under test in a slot.

    Ports of the module, as far as it has them: rx_header, rx_data, tx_header, tx_data, settings, credits, flr_request, flr_done.
    `bars`: sizes by number; all but BAR 0 have 64 bits. `switch`: there is one between the root complex and the device.
    `credits`: what is granted of each class at the beginning, (headers, units of data); without end of the others.
    `card`: the device has a second function. `function` is the first one, and `host` the host's view of it; `functions` and `hosts`
    are all.
    """

    def __init__(
        self,
        dut: SimHandleBase,
        bars: Mapping[int, int],
        *,
        switch: bool = False,
        stall: float = 0.0,
        mps: int = 256,
        vectors: int = 0,
        msix_at: tuple[int, int] = (0, 0),
        credits: Mapping[str, tuple[int, int]] | None = None,
        card: Card | None = None,
    ) -> None:
        self.dut = dut
        self.rx_header = StreamSource(dut, "rx_header", HEADER, stall, noise=True)
        self.rx_data = AxisSource(dut, "rx_data", stall, noise=True)
        self.stall = stall
        self.device = _Board(self)
        self.functions: list[_Function] = []
        for has in [Card(bars, vectors, msix_at), *([card] if card else [])]:
            function = _Function(has.vectors, has.msix_at)
            self.device.append_function(function)
            for number, size in has.bars.items():
                function.configure_bar(number, size, ext=number > 0, prefetch=number > 0)
            self.functions.append(function)
        self.function = self.functions[0]
        self.rules = Rules(self.functions)
        self.rc = RootComplex()
        self.rc.max_payload_size = (mps // 128).bit_length() - 1
        self.rc.tag_count = 32
        if switch:
            self.switch = Switch()
            self.rc.make_port().connect(self.switch)
            self.switch.make_port().connect(self.device)
        else:
            self.rc.make_port().connect(self.device)
        self.settings: list[dict[str, int]] = [{} for _ in self.functions]
        self.host: Any = None
        self.hosts: list[Any] = []
        self.damage: set[int] = set()  # numbers of TLPs with data to the module whose data comes damaged
        self.sent: list[Tlp] = []  # what the module has sent
        self._with_data = 0
        self._arrived: deque[Tlp] = deque()
        self._work = Event()
        self.hold = False  # nothing is given to the module
        self.used = {name: [0, 0] for name in (POSTED, NON_POSTED, COMPLETION)}  # headers and units of data
        self.granted = {name: list(values) for name, values in (credits or {}).items()}
        if hasattr(dut, "flr_request"):
            dut.flr_request.value = 0
        self._off_since = [0 for _ in self.functions]
        self.tx_header = StreamSink(dut, "tx_header", HEADER, stall)
        self.tx_data = AxisSink(dut, "tx_data", stall)
        self.configured()
        self._show_credits()
        cocotb.start_soon(self._to_module())
        cocotb.start_soon(self._from_module())

    # ---- configuration ----

    def configured(self) -> None:
        """Shows the module its settings."""
        word, kind = 0, struct("pcie_pkg::pcie_config_t")
        for number, function in enumerate(self.functions):
            cap = function.pcie_cap
            if self.settings[number].get("bus_master") and not function.bus_master_enable:
                self._off_since[number] = self.tx_header.cycle
            self.settings[number] = {
                "mps": int(cap.max_payload_size),
                "mrrs": int(cap.max_read_request_size),
                "rcb_128": int(cap.read_completion_boundary),
                "extended_tags": int(cap.extended_tag_field_enable),
                "memory_space": int(function.memory_space_enable),
                "bus_master": int(function.bus_master_enable),
                "msix_enable": int(function.msix_cap.msix_enable),
                "msix_mask": int(function.msix_cap.msix_function_mask),
            }
            word |= kind.pack({**self.settings[number], "id": _id_fields(int(function.pcie_id))}) << number * kind.width
        if hasattr(self.dut, "settings"):
            self.dut.settings.value = word

    async def enumerate(self, master: bool = True) -> Any:
        """Lets the host find the device and switch it on, all functions; the host's view of the first one."""
        await self.device.upstream_port.fc_state[0].initialized.wait()
        await self.rc.enumerate()
        self.hosts = [self.rc.find_device(function.pcie_id) for function in self.functions]
        for host in self.hosts:
            await host.enable_device()
            if master:
                await host.set_master()
        self.host = self.hosts[0]
        return self.host

    # ---- credits ----

    def grant(self, **credits: tuple[int, int]) -> None:
        """Grants more headers and units of data of these classes."""
        for name, (headers, data) in credits.items():
            self.granted[name][0] += headers
            self.granted[name][1] += data
        self._show_credits()

    def _show_credits(self) -> None:
        if not hasattr(self.dut, "credits"):
            return
        endless = {"headers_endless": 1, "data_endless": 1}
        value: dict[str, Any] = dict.fromkeys((POSTED, NON_POSTED, COMPLETION), endless)
        for name, granted in self.granted.items():
            used = self.used[name]
            value[name] = {"headers": granted[0] & 0xFFF, "data": granted[1] & 0xFFFF}
            assert used[0] <= granted[0] and used[1] <= granted[1], f"{name}: {used} credits used of {granted}"
        self.dut.credits.value = struct("pcie_pkg::tlp_credits_t").pack(value)

    # ---- from the host ----

    def arrived(self, tlp: Tlp) -> None:
        """A TLP for the module."""
        self._arrived.append(tlp)
        self._work.set()

    def give(self, tlp: Tlp, bar: int | None = None) -> None:
        """Gives the module a TLP that the root complex would not send."""
        tlp.give_bar = bar
        self.arrived(tlp)

    async def taken(self) -> None:
        """Waits until the module has taken all that was given."""
        while self._arrived or self.rx_header.busy or self.rx_data.busy:
            await RisingEdge(self.dut.clk)

    async def _to_module(self) -> None:
        while True:
            while not self._arrived or self.hold:
                self._work.clear()
                await self._work.wait()
            tlp = self._arrived.popleft()
            self.rules.to_device(tlp)
            self._present(tlp)
            while len(self.rx_header._queue) > 4 or len(self.rx_data._queue) > 8:
                await RisingEdge(self.dut.clk)
            tlp.release_fc()

    def release(self) -> None:
        """Ends `hold`."""
        self.hold = False
        self._work.set()

    def _present(self, tlp: Tlp) -> None:
        kind = kind_of(tlp)
        fields: dict[str, Any] = {
            "kind": kind, "length": tlp.length, "requester_id": int(tlp.requester_id), "tag": tlp.tag, "tc": int(tlp.tc),
            "attr": int(tlp.attr), "poisoned": int(tlp.ep),
        }  # fmt: skip
        if kind in (KIND.COMPLETION, KIND.COMPLETION_DATA):
            fields |= {
                "completer_id": int(tlp.completer_id), "status": int(tlp.status), "byte_count": tlp.byte_count,
                "lower_addr": tlp.lower_address,
            }  # fmt: skip
        else:
            func, match = 0, None
            if kind not in (KIND.MESSAGE, KIND.MESSAGE_DATA):
                hits = [(number, function.match_bar(tlp.address)) for number, function in enumerate(self.functions)]
                func, match = next((hit for hit in hits if hit[1]), (0, None))
            bar = getattr(tlp, "give_bar", None)
            fields |= {"bar": bar if bar is not None else match[0] if match else NO_BAR, "addr": tlp.address}
            fields |= {"first_be": tlp.first_be, "last_be": tlp.last_be, "func": getattr(tlp, "give_func", func)}
        ids = {name: _id_fields(fields[name]) for name in ("requester_id", "completer_id") if name in fields}
        self.rx_header.send(**{**fields, **ids})
        if tlp.has_data():
            self._with_data += 1
            self.rx_data.send(bytes(tlp.data), bad=self._with_data in self.damage or getattr(tlp, "give_damaged", False))

    # ---- to the host ----

    async def _from_module(self) -> None:
        while True:
            await self.tx_header._wait(lambda: bool(self.tx_header.received), 1 << 40)
            header, cycle = self.tx_header.received.popleft(), self.tx_header.cycles.popleft()
            tlp = Tlp()
            far = header.addr >> 32 != 0
            types = {
                KIND.MEM_READ: TlpType.MEM_READ_64 if far else TlpType.MEM_READ,
                KIND.MEM_WRITE: TlpType.MEM_WRITE_64 if far else TlpType.MEM_WRITE,
                KIND.COMPLETION: TlpType.CPL, KIND.COMPLETION_DATA: TlpType.CPL_DATA,
            }  # fmt: skip
            tlp.fmt_type = types[header.kind]
            tlp.requester_id = _pcie_id(header.requester_id)
            tlp.completer_id = _pcie_id(header.completer_id)
            tlp.tag, tlp.length, tlp.ep = header.tag, header.length, bool(header.poisoned)
            tlp.tc, tlp.attr = TlpTc(header.tc), TlpAttr(header.attr)
            tlp.address, tlp.first_be, tlp.last_be = header.addr, header.first_be, header.last_be
            tlp.status, tlp.byte_count, tlp.lower_address = CplStatus(header.status), header.byte_count, header.lower_addr
            if tlp.has_data():
                tlp.data = bytearray(await self.tx_data.recv(20_000))
                assert len(tlp.data) == 4 * tlp.length, f"{len(tlp.data)} bytes of payload: {tlp!r}"
            self.rules.from_device(tlp, self.settings, [cycle - since for since in self._off_since])
            self.sent.append(tlp)
            used = self.used[class_of(tlp)]
            used[0] += 1
            used[1] += tlp.get_data_credits()
            self._show_credits()
            stop = len(self.tx_header.received) > 4
            self.tx_header.stall = 1.0 if stop else self.stall
            await self.device.upstream_send(tlp)
            self.tx_header.stall = self.stall


def _id_fields(number: int) -> dict[str, int]:
    return {"bus": number >> 8, "device": number >> 3 & 31, "func": number & 7}


def _pcie_id(fields: Any) -> PcieId:
    return PcieId(fields.bus, fields.device, fields.func)


def _bits(kind: Struct, prefix: str = "", base: int = 0) -> Iterator[tuple[str, int]]:
    """Names and places of the bits of a struct, also of those in it."""
    for name, (offset, field) in kind.fields.items():
        if field.fields:
            yield from _bits(field, f"{name}_", base + offset)
        else:
            yield prefix + name, base + offset


class Counts:
    """Counts the pulses of a struct of events, one bit each: of a struct in it by `struct_event`."""

    def __init__(self, dut: SimHandleBase, name: str, type_: str) -> None:
        self._signal = getattr(dut, name)
        self._struct = struct(type_)
        self._clk = dut.clk
        self._bits = dict(_bits(self._struct))
        self.totals: dict[str, int] = dict.fromkeys(self._bits, 0)
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        while True:
            word = int(self._signal.value)
            if not word:
                await ValueChange(self._signal)
                await RisingEdge(self._clk)
                continue
            for field, offset in self._bits.items():
                self.totals[field] += word >> offset & 1
            await RisingEdge(self._clk)

    def __getattr__(self, name: str) -> int:
        return int(self.totals[name])


class Host:
    """Host memory that answers reads as a hard one does: each after its own time, in pieces of any size, those of different reads
    mixed.

    `fate` says what becomes of a read: called with the request, gives one of
    "good", "ur", "ca", "crs", "poisoned", "damaged" (its last piece), "lost", "cut" (the first piece alone).
    Writes are the root complex's business.
    """

    def __init__(
        self,
        slot: Slot,
        size: int = 1 << 16,
        latency: tuple[int, int] = (0, 0),
        seed: int = 1,
        fate: Any = lambda tlp: "good",
        rcb: int = 64,
    ) -> None:
        self.slot = slot
        self.memory = slot.rc.mem_pool.alloc_region(size)
        self.base = self.memory.get_absolute_address(0)
        self.latency, self.fate, self.rcb = latency, fate, rcb
        self.lost: list[Tlp] = []
        self.reads = 0
        self._rng = random.Random(seed)
        self._pieces: dict[int, deque[Tlp]] = {}  # of reads that are due
        self._due = Event()
        for kind in READS:
            slot.rc.register_rx_tlp_handler(kind, self._asked)
        cocotb.start_soon(self._answer())

    def read(self, offset: int, length: int) -> bytes:
        return bytes(self.memory[offset : offset + length])

    def write(self, offset: int, data: bytes) -> None:
        self.memory[offset : offset + len(data)] = data

    def answers(self, tlp: Tlp, status: CplStatus = CplStatus.SC) -> list[Tlp]:
        """The completions of a read."""
        if status != CplStatus.SC:
            answer = Tlp.create_completion_for_tlp(tlp, PcieId(0, 0, 0), False, status)
            answer.byte_count, answer.lower_address = 4 * tlp.length, tlp.address & 0x7F
            return [answer]
        at, end = tlp.address, tlp.address + 4 * tlp.length
        mps = self.slot.rules.mps
        pieces = []
        while at < end:
            most = min(end, (at & -self.rcb) + mps)
            cuts = [*range((at & -self.rcb) + self.rcb, most, self.rcb), most]
            stop = self._rng.choice(cuts)
            answer = Tlp.create_completion_data_for_tlp(tlp, PcieId(0, 0, 0))
            answer.byte_count, answer.lower_address = end - at, at & 0x7F
            answer.set_data(self.read(at - self.base, stop - at))
            pieces.append(answer)
            at = stop
        return pieces

    async def _asked(self, tlp: Tlp) -> None:
        self.reads += 1
        cocotb.start_soon(self._later(tlp))

    async def _later(self, tlp: Tlp) -> None:
        fate = self.fate(tlp)
        await wait_cycles(self.slot.dut, self._rng.randint(*self.latency))
        statuses = {"ur": CplStatus.UR, "ca": CplStatus.CA, "crs": CplStatus.CRS}
        pieces = self.answers(tlp, statuses.get(fate, CplStatus.SC))
        if fate == "poisoned":
            self._rng.choice(pieces).ep = True
        if fate == "damaged":
            for piece in pieces:
                piece.give_damaged = piece is pieces[-1]
        if fate in ("lost", "cut"):
            kept = 1 if fate == "cut" and len(pieces) > 1 else 0
            self.lost += pieces[kept:]
            pieces = pieces[:kept]
        if pieces:
            self._pieces[id(tlp)] = deque(pieces)
            self._due.set()

    async def _answer(self) -> None:
        while True:
            while not self._pieces:
                self._due.clear()
                await self._due.wait()
            key = self._rng.choice(list(self._pieces)) if self.latency[1] else next(iter(self._pieces))
            piece = self._pieces[key].popleft()
            if not self._pieces[key]:
                del self._pieces[key]
            if hasattr(piece, "give_damaged"):  # a link of the model would not carry that
                self.slot.arrived(piece)
            else:
                await self.slot.rc.send(piece)


class Iommu(Host):
    """Host memory as each function sees it: `size` bytes of its own from the same address on. What is elsewhere is a fault: a read
    is refused, a write is lost."""

    def __init__(self, slot: Slot, size: int = 1 << 16, **options: Any) -> None:
        super().__init__(slot, size, **options)
        self.spaces = [bytearray(size) for _ in slot.functions]
        self.faults: list[Tlp] = []
        self._fate = self.fate
        self.fate = lambda tlp: self._fate(tlp) if self._inside(tlp) else "ur"
        for kind in WRITES:
            slot.rc.register_rx_tlp_handler(kind, self._written)

    def _inside(self, tlp: Tlp) -> bool:
        inside = self.base <= tlp.address and tlp.address + 4 * tlp.length <= self.base + len(self.spaces[0])
        if not inside:
            self.faults.append(tlp)
        return inside

    def answers(self, tlp: Tlp, status: CplStatus = CplStatus.SC) -> list[Tlp]:
        self.memory = self.spaces[tlp.requester_id.function]
        return super().answers(tlp, status)

    async def _written(self, tlp: Tlp) -> None:
        interrupts = self.slot.rc.msi_region
        if any(found[-1] is interrupts for found in self.slot.rc.mem_address_space.find_regions(tlp.address, 4)):
            await self.slot.rc.handle_mem_write_tlp(tlp)
            return
        if not self._inside(tlp):
            return
        space, at = self.spaces[tlp.requester_id.function], tlp.address - self.base
        enables = [tlp.first_be, *[0xF] * (tlp.length - 2), *([tlp.last_be] if tlp.length > 1 else [])]
        for i, byte in enumerate(tlp.get_data()):
            if enables[i // 4] >> i % 4 & 1:
                space[at + i] = byte
