# SPDX-License-Identifier: Apache-2.0
"""A device in a slot: the host's accesses by its BARs, interrupts, and peers that write and read host memory, also when the slot is
slow, loses completions, is switched off or reset. The model of the slot watches the rules of PCI Express."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator

import pytest
from nacelle_sim import ABORT, HOST_MEMORY, NO_RATE_LIMIT, READ, UNSUPPORTED, Sent, SlotError
from nacelle_tb.cci import address
from nacelle_tb.event_log import logged
from nacelle_tb.load import Flow, Load, figures
from nacelle_tb.long import some
from nacelle_tb.peer import INPUT, OUTPUT, Peer, Region, ip_bytes
from nacelle_tb.session import Network, SimDevice, configure, outputs
from nacelle_tb.svtypes import constant

IOVA = 0x12_3456_0000_0000
HOST = HOST_MEMORY | IOVA
SIZE = 1 << 20
NEAR = 0x1000_0000
MSIX, TRIGGER = 0x10_0000, 0x10_1000
REMOTE_OPERATIONAL_ERROR = "NAK 0x63"
SLOW = {
    **{"jitter_ns": 2000, "reorder": 1, "split": 2, "tail_ppm": 20_000, "tail_ns": 20_000},
    **{"credit_stall_ns": 20_000, "credit_stall_every_ns": 60_000},
}
"""A slot at its worst"""


def start(data_w: int = 64, **settings: int) -> SimDevice:
    """A device in a slot, with host memory; not configured yet."""
    device = SimDevice(data_w, device="nic", line_rate_mbps=NO_RATE_LIMIT)
    device.slot.set(**settings)
    device.slot.enable()
    device.slot.map(IOVA, SIZE)
    return device


@pytest.fixture
def device() -> Iterator[SimDevice]:
    """One in a slot with the default parameters. It has broken no rule at the end."""
    with start() as device:
        yield device
        device.slot.check()


def flow(kind: str, size: int = 256, base: int = HOST, qpn: int = 2, depth: int = 4) -> Flow:
    return Flow(qpn, kind, size, depth, (base,))


def run(device: SimDevice, flows: list[Flow], cycles: int = 20_000) -> None:
    """Load without an error, and all data where it belongs."""
    load = Load(device, flows)
    load.run(cycles)
    device.step(500)  # the last write is on its way
    load.check()
    assert all(flow.done > 5 for flow in flows)


# ---- the host ----


def test_registers_by_bar_0(device: SimDevice) -> None:
    """Also before the device is enabled; an access that no register has is aborted."""
    slot = device.slot
    answer = slot.wait(slot.post_read(0, address("TYPE"), 4))
    assert bytes(answer.data[:4]) == device.read(address("TYPE")).to_bytes(4, "little")
    print(f"{slot}\na register read takes {answer.finished - answer.issued} cycles")
    assert 225 < answer.finished - answer.issued < 250
    slot.set_register(address("KEEPALIVE_MS"), 1234)
    assert slot.register(address("KEEPALIVE_MS")) == 1234 == device.read(address("KEEPALIVE_MS"))
    for offset in (0x0F000, 0xFF000, TRIGGER, MSIX + 0x2000):
        with pytest.raises(SlotError) as error:
            slot.read(0, offset, 4)
        assert error.value.status == ABORT
    facts = slot.facts
    assert list(facts.bar_bytes) == [2 << 20, 0, 0, 0, device.info.dram_bytes, 0]
    assert (facts.msix_table, facts.msix_pending, facts.vectors) == (MSIX, MSIX + 0x800, 32)
    for bar, offset in ((0, 2 << 20), (2, 0), (4, device.info.dram_bytes)):
        with pytest.raises(ValueError, match="no such access"):
            slot.read(bar, offset, 4)
    slot.space(memory_space=0)
    with pytest.raises(SlotError) as error:
        slot.register(0)
    assert error.value.status == UNSUPPORTED
    slot.space(memory_space=1)
    assert slot.register(address("TYPE")) == device.read(address("TYPE"))
    assert device.counter("pcie_completer_read_errors") == 4
    assert device.counter("pcie_completer_refused_reads") == 1


def test_memory_by_bar_4(device: SimDevice) -> None:
    """Any bytes of the first memory, from when the device is enabled; before, reads are aborted."""
    slot = device.slot
    slot.write(4, 0x100, b"lost")
    with pytest.raises(SlotError) as error:
        slot.read(4, 0x100, 4)
    assert error.value.status == ABORT
    configure(device)
    numbers = random.Random(1)
    for _ in range(60):
        length = numbers.choice((1, 3, 4, 64, 100, 257, 1000, 4096))
        at = NEAR + numbers.randrange(8192)
        data = numbers.randbytes(length)
        slot.write(4, at, data)
        part = min(length, 64)
        if at % 4096 + part <= 4096:
            assert slot.read(4, at, part) == data[:part], "a read does not pass the write before it"
        device.step(300)
        assert device.dram_read(at, length) == data
    size = device.info.dram_bytes
    slot.write(4, size - 4, b"last")
    assert slot.read(4, size - 4, 4) == b"last"


def test_an_interrupt(device: SimDevice) -> None:
    """The vector's message as the table has it; none while it is masked, and then it is pending."""
    slot = device.slot
    for word, value in enumerate((0xFEE0_1000, 0, 0x4321, 0)):
        slot.set_register(MSIX + 16 * 5 + 4 * word, value)
    slot.set_register(TRIGGER, 5)
    device.step(1000, stop_on_slot=True)
    interrupt = slot.pull_interrupt()
    assert interrupt is not None and (interrupt.address, interrupt.data) == (0xFEE0_1000, 0x4321)
    slot.space(msix_mask=1)
    slot.set_register(TRIGGER, 5)
    device.step(1000)
    assert slot.pull_interrupt() is None
    assert slot.register(MSIX + 0x800) == 1 << 5
    slot.space(msix_mask=0)
    device.step(1000)
    assert slot.pull_interrupt() is not None
    slot.set_register(TRIGGER, 99)
    device.step(1000)
    assert slot.pull_interrupt() is None
    assert device.counter("pcie_msix_sent") == 2


# ---- peers in host memory ----


@pytest.mark.parametrize("kind", ["write", "read"])
@pytest.mark.parametrize("size", [1, 64, 1000])
def test_a_peer_in_host_memory(device: SimDevice, kind: str, size: int) -> None:
    configure(device)
    run(device, [flow(kind, size), flow(kind, size, NEAR, 3), Flow(4, kind, size, 4, (HOST + 0x40000, NEAR + 0x40000))])
    stats = device.slot.stats
    assert stats.faults == 0 and (stats.writes if kind == "write" else stats.reads) > 10


def test_small_reads_of_a_far_host() -> None:
    """As many are under way as a lane takes but for a quantum: 48."""
    with start(read_ns=2400) as device:
        configure(device)
        flows = [flow("read", 1, HOST + (i << 16), 2 + i, 8) for i in range(8)]
        load, begin = Load(device, flows), device.stats.cycles
        load.run(20_000)
        taken, done = device.stats.cycles - begin, sum(flow.done for flow in flows)
        print(f"{device.slot}\na READ of a byte each {taken / done:.1f} cycles")
        assert taken / done < 1.15 * 625 / 48
        device.slot.check()


def test_an_atomic_in_host_memory(device: SimDevice) -> None:
    """Each adds to what the one before has left, and gives back what it found."""
    configure(device)
    load = Load(device, [flow("read", base=HOST)])
    (mine,) = load.flows.values()
    device.slot.host_write(IOVA + 8, (1 << 63).to_bytes(8, "little"))
    found = []
    for i in range(3):
        atomic = struct.pack("!QIQQ", HOST + 8, mine.keys[0], 5, 0)
        device.send(load.peer.roce(constant("roce_wire_pkg::RC_FETCH_ADD"), mine.qpn, (mine.psn + i) % (1 << 24), atomic, b""))
        answer = device.recv()
        assert answer is not None
        found.append(int.from_bytes(answer.frame[-12:-4], "big"))
    device.step(500)
    assert found == [(1 << 63) + 5 * i for i in range(3)]
    assert int.from_bytes(device.slot.host_read(IOVA + 8, 8), "little") == (1 << 63) + 15


@pytest.mark.parametrize("kind", ["write", "read"])
def test_a_slot_at_its_worst(kind: str) -> None:
    """Completions split and out of order, times without credits, few credits, an IOMMU that knows little."""
    with start(**SLOW, posted_headers=2, non_posted_headers=2, iommu_entries=2, rcb=128, mps=128) as device:
        configure(device)
        run(device, [flow(kind, 1000), flow(kind, 3000 if kind == "read" else 500, HOST + 0x20000, 3)], 60_000)
        assert device.slot.stats.tlb_misses > 10
        device.slot.check()


@pytest.mark.parametrize("kind", ["write", "read"])
def test_a_slow_slot_costs_others_nothing(kind: str) -> None:
    """Queue pairs of device memory are served as beside others of device memory."""

    def beside(base: int) -> list[Flow]:
        with start(**SLOW) as device:
            configure(device)
            near = [flow(kind, 256, NEAR + (i << 20), 2 + i) for i in range(3)]
            run(device, [*near, *(flow(kind, 256, base + (i << 17), 20 + i) for i in range(3))], 40_000)
            device.slot.check()
            return near

    fair, mine = figures(beside(NEAR + (8 << 20))), figures(beside(HOST))
    print(f"{kind}: beside others of device memory {fair}; beside those of host memory {mine}")
    assert mine.done >= 0.98 * fair.done
    assert mine.mean <= 1.02 * fair.mean + 4
    assert mine.p99 <= 1.1 * fair.p99 + 16


def test_a_host_that_floods_bar_4_costs_others_little() -> None:
    """Reads and writes of the host, by a link that is too slow for the answers: memory never waits for the link."""

    def beside(flood: bool) -> Flow:
        with start(generation=1, lanes=1, register_write_ns=4000, register_read_ns=8000, read_ns=4000, write_ns=2000) as device:
            configure(device)
            near, step = flow("write", 256, NEAR + (1 << 20)), device.step

            def flooded(*arguments: int, **words: bool) -> int:
                while device.slot.pull_answer():
                    posted.pop()
                while flood and len(posted) < 200:
                    at = NEAR + 64 * len(posted)
                    posted.append(device.slot.post_read(4, at, 64) if len(posted) % 2 else device.slot.post_write(4, at, bytes(64)))
                return step(*arguments, **words)

            posted: list[int] = []
            device.step = flooded
            run(device, [near], 30_000)
            if flood:
                assert device.counter("pcie_completer_reads") > 50
            device.slot.check()
            return near

    fair, mine = figures([beside(False)]), figures([beside(True)])
    print(f"alone {fair}; beside the host {mine}")
    assert mine.done >= 0.95 * fair.done
    assert mine.most <= fair.most + 100


def test_a_call_beside_host_memory(device: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call takes as long as alone while peers wait for host memory, which answers late."""
    data = bytes(random.Random(1).randbytes(3000))
    flows = [flow("read", 64, HOST, 20, 1), flow("write", 64, HOST + 0x40000, 21, 1)]

    class Beside(Network):
        busy = 0

        def step(self, cycles: int) -> None:
            for other in load.flows.values():
                load._fill(other, device.stats.cycles, bool(self.busy))
            super().step(min(cycles, 50))

        def _deliver(self, sent: Sent) -> None:
            if sent.frame[30:34] == ip_bytes(load.peer.ip):
                load._take(sent)
            else:
                super()._deliver(sent)

    device.slot.set(read_ns=20_000)
    device.slot.enable()
    device.slot.map(IOVA, SIZE)
    configure(device)
    load = Load(device, flows)
    peers = [Peer(ip=f"10.77.0.{50 + i}", mac=f"02:00:00:00:00:{50 + i}", qpn=0x700 + i, comm_id=0x5000 + i) for i in range(2)]
    monkeypatch.setattr(device, "rx_stamp", lambda: None)  # of both kinds of frames
    net = Beside(device, peers)
    times = []
    for net.busy, peer in enumerate(peers):
        net.connect(peer)
        net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(data))])
        begin = device.stats.cycles
        assert net.call(peer, 1) == 0
        times.append(device.stats.cycles - begin)
        assert outputs(peer)[0] == bytes(byte + 1 & 0xFF for byte in data)
        net.disconnect(peer)
    print(f"a call of 3000 bytes takes {times[0]} cycles, beside peers of host memory {times[1]}")
    assert all(other.done > 1 for other in flows)
    assert times[1] <= 1.05 * times[0] + 50


# ---- what goes wrong ----


def later(device: SimDevice, cycles: int, action: Callable[[], object]) -> None:
    """Does this once, so many cycles from now."""
    when, step = device.stats.cycles + cycles, device.step

    def stepped(*arguments: int, **words: bool) -> int:
        if device.stats.cycles >= when:
            device.step = step
            action()
        return step(*arguments, **words)

    device.step = stepped


def fails(device: SimDevice, flows: list[Flow], disturb: Callable[[], object] = lambda: None) -> None:
    """Under load something happens, and the peer gets a NAK, remote operational error."""
    load = Load(device, flows)
    later(device, 2000, disturb)
    with pytest.raises(AssertionError, match=REMOTE_OPERATIONAL_ERROR):
        load.run(50_000)
    forget(device)


def forget(device: SimDevice) -> None:
    """What the device still sends."""
    while device.step(2000, stop_on_frame=True) < 2000:
        device.pull()
    while device.rx_stamp():
        pass


def serves(device: SimDevice) -> None:
    """As if nothing had been."""
    places = [("write", HOST + 0x80000), ("read", HOST + 0xA0000), ("read", NEAR)]
    run(device, [flow(kind, base=base, qpn=30 + i) for i, (kind, base) in enumerate(places)])


def test_memory_that_is_not_mapped(device: SimDevice) -> None:
    """A READ ends in a NAK. A WRITE is posted, so that nobody is told but the host: the IOMMU has a fault."""
    configure(device)
    fails(device, [flow("read", qpn=5)], lambda: device.slot.unmap(IOVA, SIZE))
    fault = device.slot.pull_fault()
    assert fault is not None and fault.address >> 32 == IOVA >> 32 and not fault.write
    device.slot.map(IOVA, SIZE, READ)
    load = Load(device, [flow("write", qpn=6)])
    load.run(2000)
    faults = [fault for fault in iter(device.slot.pull_fault, None) if fault.write]
    assert faults and device.slot.host_read(IOVA, 4096) != bytes(4096)
    device.slot.unmap(IOVA, SIZE)
    device.slot.map(IOVA, SIZE)
    serves(device)
    assert device.counter("pcie_requester_unsupported") > 0


@pytest.mark.parametrize("kind", ["write", "read"])
def test_bus_mastering_off_under_load(device: SimDevice, kind: str) -> None:
    configure(device)
    fails(device, [flow(kind, qpn=5)], lambda: device.slot.space(bus_master=0))
    run(device, [flow(kind, base=NEAR, qpn=6)])
    assert address(f"pcie_requester_{kind}s_off") in [counter for counter, _ in logged(device, "MEMORY_ERROR")]
    before = device.slot.stats.reads + device.slot.stats.writes
    device.step(5000)
    assert device.slot.stats.reads + device.slot.stats.writes == before
    device.slot.space(bus_master=1)
    serves(device)


@pytest.mark.parametrize("kind", ["write", "read"])
def test_a_reset_under_load(device: SimDevice, kind: str) -> None:
    """The function gets quiet; its queue pairs of host memory fail, the device lives."""
    configure(device)

    def reset() -> None:
        print(f"the reset takes {device.slot.reset()} cycles")
        device.slot.space(bus_master=0, memory_space=0, msix_enable=0)  # as a reset leaves configuration space

    fails(device, [flow(kind, qpn=5, depth=16)], reset)
    assert device.counter("pcie_resets") == 1
    device.slot.enable()
    serves(device)


@pytest.mark.parametrize("kind", ["write", "read"])
def test_a_reset_clears_bus_mastering(device: SimDevice, kind: str) -> None:
    """Nothing is sent until the host allows it again, though it has not written to configuration space."""
    configure(device)
    device.slot.reset()
    fails(device, [flow(kind, qpn=5)])
    assert device.counter(f"pcie_requester_{kind}s_off") > 0
    assert device.slot.stats.reads + device.slot.stats.writes == 0
    device.slot.enable()
    serves(device)


@pytest.mark.parametrize("what", some(["unsupported_ppm", "abort_ppm", "poison_ppm", "loss_ppm"], 3))
def test_reads_that_go_wrong(what: str) -> None:
    """UR, CA, a poisoned completion or none: the READ ends in a NAK, and the next queue pair is served."""
    with start(**{what: 1_000_000 if what == "loss_ppm" else 300_000}) as device:  # a READ that is repeated would get over a loss
        configure(device)
        fails(device, [flow("read", qpn=5)])
        cause = {"unsupported_ppm": "unsupported", "abort_ppm": "aborts", "poison_ppm": "poisoned", "loss_ppm": "timeouts"}[what]
        counter = f"pcie_requester_{cause}"
        told = [value for place, value in logged(device, "MEMORY_ERROR") if place == address(counter)]
        digits = device.counter(counter).bit_length()
        assert 0 < len(told) <= digits == told[-1].bit_length(), "at most once for each binary digit"
        if what == "loss_ppm":
            device.step(300_000)  # what else is lost is given up
        run(device, [flow("write", qpn=30), flow("read", base=NEAR, qpn=31)])
        device.slot.check()


# ---- others ----


def test_memory_that_is_there_by_messages(device: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each access is answered by the program, in device time that passes meanwhile."""
    slot, step = device.slot, device.step
    base = IOVA + SIZE
    slot.map(base, SIZE, by_message=True)
    memory = bytearray(SIZE)
    monkeypatch.setattr(slot, "host_read", lambda address, length: bytes(memory[address - base : address - base + length]))

    def host_write(address: int, data: bytes) -> None:
        memory[address - base : address - base + len(data)] = data

    def served(cycles: int, stop_on_frame: bool = False, stop_on_slot: bool = False) -> int:
        passed = step(cycles, stop_on_frame, True)
        while (message := slot.pull_message()) is not None:
            data = bytes(message.data[: message.length])
            if message.write:
                host_write(message.address, data)
            slot.answer_message(message.token, None if message.write else slot.host_read(message.address, message.length))
        return passed

    monkeypatch.setattr(slot, "host_write", host_write)
    monkeypatch.setattr(device, "step", served)
    configure(device)
    run(device, [flow("write", 300, HOST_MEMORY | base), flow("read", 700, HOST_MEMORY | base + 0x40000, 3)])
    assert slot.stats.messages > 20
    assert slot.unmap(base, SIZE)


def test_devices_beside_each_other(device: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer of one device writes and reads the memory of another, through its BAR."""
    with start() as other:
        other.slot.space(id=0x200)
        bar, step = 1 << 40, device.step
        other.slot.set_bar(4, bar)
        device.slot.join(other.slot, 150)

        def together(cycles: int, stop_on_frame: bool = False, stop_on_slot: bool = False) -> int:
            for passed in range(cycles):
                if not step(1, stop_on_frame):
                    return passed
                other.step(device.stats.cycles - other.stats.cycles)  # register accesses step one of them only
            return cycles

        configure(device)
        configure(other)
        monkeypatch.setattr(device, "step", together)
        monkeypatch.setattr(device.slot, "host_read", lambda address, length: other.dram_read(address - bar, length))
        monkeypatch.setattr(device.slot, "host_write", lambda address, data: other.dram_write(address - bar, data))
        run(device, [flow("write", 200, HOST_MEMORY | bar + NEAR), flow("read", 200, HOST_MEMORY | bar + NEAR + 0x20000, 3)], 3000)
        assert device.slot.stats.peer_tlps > 10
        other.slot.check()
