# SPDX-License-Identifier: Apache-2.0
"""The copy engine in a device in a slot: host memory and device memory, any alignment, in slots at their best and worst;
and what happens when memory is not there, bus mastering goes off or the function is reset."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from nacelle_sim import HOST_MEMORY, NO_RATE_LIMIT
from nacelle_tb.cci import address
from nacelle_tb.copy import (
    COMPLETION,
    FETCH,
    INTERRUPT,
    OK,
    REPORT,
    RESET,
    SOURCE,
    CopyQueue,
)
from nacelle_tb.device import MESSAGES, named
from nacelle_tb.event_log import logged
from nacelle_tb.load import Flow, Load
from nacelle_tb.long import some
from nacelle_tb.peer import INPUT, OUTPUT, Peer, Region
from nacelle_tb.session import Network, SimDevice, configure
from nacelle_tb.svtypes import constant

DEVICE = named("nic")
NO_MEMORY = 2
IOVA = 0x12_3456_0000_0000
HOST = HOST_MEMORY | IOVA
SIZE = 16 << 20
NEAR = 0x1000_0000
RINGS = SIZE - (1 << 18)
"""Where the rings are, in host memory from HOST on, descriptors also in that of the device from NEAR on"""
MSIX = 0x10_0000
SLOW = {
    **{"jitter_ns": 2000, "reorder": 1, "split": 2, "tail_ppm": 20_000, "tail_ns": 20_000},
    **{"credit_stall_ns": 20_000, "credit_stall_every_ns": 60_000},
    **{"posted_headers": 2, "non_posted_headers": 2, "iommu_entries": 2, "rcb": 128, "mps": 128},
}
"""A slot at its worst"""


def start(data_w: int = 64, **settings: int) -> SimDevice:
    """A device in a slot, with host memory."""
    device = SimDevice(data_w, device="nic", line_rate_mbps=NO_RATE_LIMIT)
    device.slot.set(**settings)
    device.slot.enable()
    device.slot.map(IOVA, SIZE)
    configure(device)
    return device


def queue(device: SimDevice, descriptors: int = HOST + RINGS, log: int = 8) -> CopyQueue:
    """One that runs."""
    made = CopyQueue(device, descriptors, HOST + RINGS + (32 << log), log, 5)
    made.begin()
    return made


@pytest.fixture
def device() -> Iterator[SimDevice]:
    """One in a slot with the default parameters. It has broken no rule at the end."""
    with start() as device:
        yield device
        device.slot.check()


def copies_anything(device: SimDevice, copies: CopyQueue, count: int = 60) -> None:
    """From anywhere to anywhere, host and device, any length; nothing else is changed."""
    numbers = random.Random(count)
    for base in (HOST, NEAR):
        copies.set(base, numbers.randbytes(1 << 17))
    at = {HOST: HOST + (1 << 16), NEAR: NEAR + (1 << 16)}
    expected = {base: bytearray(copies.get(base, 1 << 17)) for base in at}
    for tag in range(count):
        source, destination = numbers.choice((HOST, NEAR)), numbers.choice((HOST, NEAR))
        length = numbers.choice((0, 1, 64, numbers.randrange(200), numbers.randrange(3000)))
        begin = numbers.randrange((1 << 16) - length)
        at[destination] += numbers.randrange(70)
        copies.put(source + begin, at[destination], length, REPORT if tag % 3 == 2 else 0, tag)
        where = at[destination] - destination
        expected[destination][where : where + length] = expected[source][begin : begin + length]
        at[destination] += length
    copies.ring()
    for tag in range(2, count, 3):
        completion = copies.completed(pause=7)
        assert (completion.tag, completion.status) == (tag, OK)
    for base, content in expected.items():
        assert copies.get(base, 1 << 17) == content


@pytest.mark.parametrize("descriptors", [HOST + RINGS, NEAR + RINGS], ids=["host", "device"])
def test_copies(device: SimDevice, descriptors: int) -> None:
    copies = queue(device, descriptors)
    copies_anything(device, copies)
    copies.end()
    assert copies.register("COPIES") == 60 and copies.register("ERRORS") == 0
    assert device.slot.stats.faults == 0
    assert not logged(device, "COPY_STOPPED")


def test_calls_get_nothing_of_the_hosts_memory(device: SimDevice) -> None:
    """It is where the registers say, and a caller is refused what begins to need it."""
    base, size = (device.read(address(f"copy.{name}_LO")) for name in ("MEMORY", "MEMORY_SIZE"))
    assert DEVICE.pcie and (base, size) == (DEVICE.memory_bytes - size, DEVICE.pcie.host_bytes)
    heap = base - constant("shell_pkg::CTRL_BASE") - DEVICE.queue_pairs * DEVICE.contexts * MESSAGES
    peer = Peer()
    net = Network(device, [peer])
    net.connect(peer)
    message, _, _ = net.exchange(peer, peer.advertise([Region(INPUT | OUTPUT, bytearray(heap + 1))]))
    assert message == bytes([0, NO_MEMORY, 0, 0])


def test_copies_in_a_slot_at_its_worst() -> None:
    with start(**SLOW) as device:
        copies_anything(device, queue(device), 90)
        device.slot.check()


def test_an_interrupt_is_behind_its_completion(device: SimDevice) -> None:
    slot, copies = device.slot, queue(device)
    for word, value in enumerate((0xFEE0_1000, 0, 0x4321, 0)):
        slot.set_register(MSIX + 16 * 5 + 4 * word, value)
    for i in range(20):
        copies.set(HOST, bytes([i + 1]) * 512)
        copies.put(HOST, NEAR, 512, 0)
        copies.put(NEAR, HOST + 4096, 512, REPORT | INTERRUPT, i)
        copies.ring()
        while not (interrupt := slot.pull_interrupt()):
            device.step(10_000, stop_on_slot=True)
        assert (interrupt.address, interrupt.data) == (0xFEE0_1000, 0x4321)
        completion = copies.completion()
        assert completion is not None and completion.tag == i
        assert copies.get(HOST + 4096, 512) == bytes([i + 1]) * 512
    assert device.counter("pcie_msix_sent") == 20


def test_copies_beside_peers(device: SimDevice) -> None:
    """Queue pairs of host and of device memory go on, and nothing is lost."""
    copies = queue(device)
    flows = [Flow(2 + i, kind, 256, 4, (base + (8 << 20) + (i << 17),)) for i, (kind, base) in enumerate(
        (kind, base) for kind in ("write", "read") for base in (HOST, NEAR)
    )]  # fmt: skip
    numbers = random.Random(1)
    data = numbers.randbytes(1 << 16)
    copies.set(HOST, data)
    for i in range(8):
        copies.put(HOST, NEAR + (i << 16), 1 << 16, 0)
        copies.put(NEAR + (i << 16), HOST + (1 << 20) + (i << 16), 1 << 16, REPORT, i)
    copies.ring()
    load = Load(device, flows)
    load.run(20_000)
    device.step(500)
    load.check()
    assert all(flow.done > 5 for flow in flows)
    for i in range(8):
        assert copies.completed(pause=100).tag == i
        assert copies.get(HOST + (1 << 20) + (i << 16), 1 << 16) == data


# ---- what goes wrong ----


def works(device: SimDevice) -> None:
    """As if nothing had been."""
    copies = queue(device)
    copies_anything(device, copies, 30)
    copies.end()


def stopped(device: SimDevice, copies: CopyQueue, reasons: set[int]) -> None:
    """It has stopped, and the event log has been told; nothing is under way, no completion comes any more."""
    for _ in range(300):
        if (state := copies.register("STATE")) >> 8:
            break
        device.step(100)
    assert state & 1 and state >> 8 in reasons
    reason, taken = logged(device, "COPY_STOPPED")[-1]
    assert reason == state >> 8 and taken <= copies.register("CONSUMER"), "what is given up leaves the ring as well"
    device.step(30_000)
    while copies.completion():
        pass
    before = device.slot.stats.reads, device.slot.stats.writes
    device.step(3000)
    assert before == (device.slot.stats.reads, device.slot.stats.writes)
    copies.end(100)
    assert copies.completion() is None


def busy(device: SimDevice, length: int = 40_000) -> CopyQueue:
    """Under load in both directions."""
    copies = queue(device)
    for i in range(100):
        copies.put(HOST, NEAR + i, length, REPORT, i)
        copies.put(NEAR + i, HOST + (4 << 20) + i, length, REPORT, i)
    copies.ring()
    assert copies.completed(pause=10).status == OK
    return copies


def test_host_memory_that_is_not_mapped(device: SimDevice) -> None:
    """A read of it fails and is reported. A write is posted, and only the host is told. Without its ring the queue stops."""
    slot, copies = device.slot, queue(device)
    slot.map(IOVA + SIZE, 1 << 16)
    slot.unmap(IOVA + SIZE, 1 << 16)
    before = copies.get(NEAR, 8192)
    copies.put(HOST + SIZE, NEAR, 5000, REPORT, 1)
    copies.put(NEAR, HOST + SIZE, 64, REPORT, 2)
    copies.put(HOST, NEAR + 8192, 64, REPORT, 3)
    copies.ring()
    assert [(c.tag, c.status) for c in (copies.completed() for _ in range(3))] == [(1, SOURCE), (2, OK), (3, OK)]
    assert copies.get(NEAR, 8192) == before
    faults = list(iter(slot.pull_fault, None))
    assert any(fault.write for fault in faults) and any(not fault.write for fault in faults)
    copies.end()
    lost = queue(device, HOST + RINGS)
    device.write(address("copy.CTRL"), 0)
    device.step(100)
    device.write(address("copy.DESCRIPTORS_LO"), (IOVA + SIZE) & 0xFFFF_FFFF)
    device.write(address("copy.CTRL"), 1)
    lost.posted = 1
    lost.ring()
    stopped(device, lost, {FETCH})
    works(device)


def test_bus_mastering_off_under_load(device: SimDevice) -> None:
    copies = busy(device)
    device.slot.space(bus_master=0)
    stopped(device, copies, {FETCH, COMPLETION})
    device.slot.space(bus_master=1)
    works(device)


def test_a_reset_under_load(device: SimDevice) -> None:
    """The function gets quiet, and the device lives."""
    copies = busy(device)
    print(f"the reset takes {device.slot.reset()} cycles")
    device.slot.space(bus_master=0, memory_space=0, msix_enable=0)  # as a reset leaves configuration space
    stopped(device, copies, {RESET})
    device.slot.enable()
    works(device)


@pytest.mark.parametrize("what", some(["unsupported_ppm", "abort_ppm", "poison_ppm", "loss_ppm"], 3))
def test_reads_that_go_wrong(what: str) -> None:
    """Copies end with an error, or the queue stops because its descriptors could not be read; descriptors in the device do not."""
    with start(**{what: 100_000}) as device:
        copies = queue(device, NEAR + RINGS)
        for i in range(40):
            copies.set(HOST + 512 * i, bytes([i]) * 512)
            copies.put(HOST + 512 * i, NEAR + 512 * i, 512, REPORT, i)
        before = copies.get(NEAR, 512 * 40)
        copies.ring()
        found = [copies.completed(2_000_000, 100).status for _ in range(40)]
        assert 0 < found.count(SOURCE) < 40 and found.count(OK) + found.count(SOURCE) == 40
        for i, status in enumerate(found):
            assert copies.get(NEAR + 512 * i, 512) == (bytes([i]) * 512 if status == OK else before[512 * i : 512 * i + 512])
        device.slot.check()
