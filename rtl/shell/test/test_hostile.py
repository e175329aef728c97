# SPDX-License-Identifier: Apache-2.0
"""A kernel that misbehaves, in a device that others use: they are served, at most at the share that the fabric gives each master;
the kernel is ended by its time limit or by its caller's leaving; and what it held is free again."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from nacelle_tb.cci import address, blocks
from nacelle_tb.device import named
from nacelle_tb.long import some
from nacelle_tb.management import Manager, QpAttributes, State
from nacelle_tb.pair import TRAFFIC_CLIENT, TRAFFIC_SOCKET
from nacelle_tb.peer import INPUT, OUTPUT, Peer, Region, ip_bytes, mac_bytes
from nacelle_tb.session import Network, SimDevice, configure, outputs
from nacelle_tb.svtypes import constant

INCREMENT, HOSTILE = 1, 2
TIMEOUT = constant("compute_pkg::RESULT_KERNEL_TIMEOUT")
MEMORY_ERROR = constant("compute_pkg::RESULT_MEMORY_ERROR")
PROTECTION = constant("roce_pkg::WC_LOC_PROT_ERR")
READS, WRITES, LONG, WITHHOLDS, DEAF, POSTS, OUTSIDE, EARLY = (1 << i for i in range(8))
RECEIVES = 1 << 23  # with POSTS
ASKS, SETS, COUNTER = 1 << 20, 1 << 21, 1 << 22  # registers of the device
LIMIT_MS_REGISTER, CYCLES_PER_MS = address("KERNEL_TIMEOUT_MS"), named("test").clock_hz // 1000
# Where the standard device has the traffic kernel.
STATUS, REFUSED = address("socket.STATUS", TRAFFIC_SOCKET), address("socket.REFUSED", TRAFFIC_SOCKET)
MET, LAST, REACHED = (address("socket.TYPE", TRAFFIC_SOCKET) + at for at in (0x110, 0x114, 0x118))  # kernel_hostile.rdl
BUS = address("socket.BUS", TRAFFIC_SOCKET)
QPN = 7
# What it does, and by how much it may slow others: a call of `increment`, a stream of WRITEs.
MODES = {
    "hangs": (0, 1.02, 1.02),
    "takes no data": (READS | LONG | DEAF, 1.02, 1.02),
    "takes no responses": (WRITES | DEAF, 1.02, 1.02),
    "promises data": (WRITES | LONG | WITHHOLDS, 1.02, 1.02),
    "withholds data and takes nothing": (READS | WRITES | WITHHOLDS | DEAF, 1.02, 1.02),
    "floods": (READS | WRITES, 1.15, 1.1),
    "floods by pages": (READS | WRITES | LONG, 2, 2),
    "reads outside": (READS | LONG | OUTSIDE, 1.02, 1.02),
    "posts outside": (POSTS | OUTSIDE, 1.02, 1.02),
    "floods registers": (ASKS | SETS, 1.02, 1.02),
}


@pytest.fixture
def device() -> Iterator[SimDevice]:
    """A device with a hostile kernel where the traffic kernel was."""
    with SimDevice(64, line_rate_mbps=0xFFFF_FFFF, device="test") as sim:
        configure(sim)
        yield sim


class Scene:
    """A caller of the hostile kernel, one of `increment`, and one that only writes."""

    def __init__(self, device: SimDevice) -> None:
        self.device = device
        self.bad, self.good, self.writer = peers = [
            Peer(ip=f"10.77.0.{9 + i}", mac=f"02:00:00:00:00:{9 + i:02x}", qpn=0x900 + i, comm_id=70 + i, tid=80 + i, mtu=mtu)
            for i, mtu in enumerate((1024, 1024, 4096))
        ]
        self.net = Network(device, peers)
        for peer, size in zip(peers, (8192, 16384, 65536), strict=True):
            self.net.connect(peer)
            self.net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(random.Random(1).randbytes(size)))])

    def call(self) -> int:
        """Cycles that a call of `increment` takes."""
        region = self.good.regions[0]
        want = bytes(b + 1 & 0xFF for b in region.data)
        begin = self.device.stats.cycles
        assert self.net.call(self.good, INCREMENT) == 0
        assert outputs(self.good) == [want]
        return self.device.stats.cycles - begin

    def write(self) -> int:
        """Cycles that 64 KiB of WRITEs take, to the last acknowledgement."""
        region = self.writer.regions[0]
        begin = self.device.stats.cycles
        # 8 KiB at a time: while memory is busy, more find no room in the receive stores and would have to be repeated.
        for at in range(0, len(region.data), 8192):
            self.net.send(self.writer.write_message(region.device_addr + at, region.device_rkey, bytes(8192)))
            last = self.writer.send_psn - 1 & 0xFFFFFF
            while self.net.caller(self.writer).acked != last:
                self.net.step(100)
                assert self.device.stats.cycles - begin < 1_000_000, "WRITEs are not acknowledged"
        return self.device.stats.cycles - begin

    def attack(self, mode: int) -> None:
        """Starts the hostile kernel."""
        self.net.send(self.bad.call(HOSTILE, QPN << 8 | mode))
        for _ in range(100):
            self.device.step(200)
            if self.device.read(STATUS) & 1:
                break
        self.device.step(2000)
        assert self.device.read(STATUS) & 1

    def recovered(self) -> None:
        """The socket serves whoever comes next, and memory is as quick as before."""
        fresh = Peer(ip="10.77.0.77", mac="02:00:00:00:00:77", qpn=0x977, comm_id=777, tid=778)
        net = Network(self.device, [fresh, *(caller.peer for caller in self.net.callers.values())])
        net.connect(fresh)
        net.set_up(fresh, [Region(INPUT | OUTPUT, bytearray(b"xyz"))])
        assert net.call(fresh, HOSTILE, EARLY) == 0
        assert net.call(fresh, INCREMENT) == 0
        net.disconnect(fresh)


@pytest.mark.parametrize("what", some([*MODES][::2] + [*MODES][1::2], len(MODES) // 2))
def test_others_are_served_and_the_limit_ends_it(device: SimDevice, what: str) -> None:
    """Its socket takes the next job, whose caller waits in the queue meanwhile, within 1 ms of device time."""
    mode, call_share, write_share = MODES[what]
    scene = Scene(device)
    device.write(LIMIT_MS_REGISTER, 1)
    scene.call(), scene.write()
    call, write = scene.call(), scene.write()
    begin = device.stats.cycles
    scene.attack(mode)
    slow_write, slow_call = scene.write(), scene.call()
    print(f"{what}: call {call} -> {slow_call} cycles, WRITEs {write} -> {slow_write}")
    assert device.read(STATUS) & 1 and device.stats.cycles - begin < CYCLES_PER_MS, "it was at work all the time"
    assert slow_call <= call_share * call + 20 and slow_write <= write_share * write + 20
    if mode & OUTSIDE:
        assert device.read(REFUSED) > 0
        if mode & POSTS:
            assert device.read(LAST) == PROTECTION
    scene.net.send(scene.good.call(HOSTILE, EARLY))
    assert scene.net.answer(scene.bad)[0] == TIMEOUT
    assert device.stats.cycles - begin < CYCLES_PER_MS + 5000
    assert scene.net.answer(scene.good)[0] == 0
    late = device.stats.cycles - begin - CYCLES_PER_MS
    print(f"{what}: the next job's answer {late} cycles after the limit")
    assert late < CYCLES_PER_MS
    assert scene.call() <= call * 1.02 + 20
    scene.recovered()


@pytest.mark.parametrize("what", some([*MODES][1::2] + [*MODES][::2], len(MODES) // 2))
def test_a_caller_that_leaves_ends_it(device: SimDevice, what: str) -> None:
    """With a limit of a minute: the connection closes, the call is cancelled, everything is free again."""
    scene = Scene(device)
    scene.attack(MODES[what][0])
    scene.net.disconnect(scene.bad)
    device.step(3000)
    assert device.read(STATUS) == 0
    scene.recovered()


@pytest.mark.parametrize(
    "mode", [WRITES | OUTSIDE, READS | WRITES | LONG | OUTSIDE, WRITES | EARLY], ids=["writes", "floods", "late"]
)
def test_a_kernel_that_writes_outside_of_its_window_is_cut_off(device: SimDevice, mode: int) -> None:
    """At once, with a limit of a minute; also one that writes when it has answered: then its window is closed."""
    scene = Scene(device)
    begin = device.stats.cycles
    assert scene.net.call(scene.bad, HOSTILE, mode) == MEMORY_ERROR
    assert device.stats.cycles - begin < 10_000
    scene.recovered()


def test_the_limit_is_a_minute() -> None:
    with SimDevice(64, device="test") as device:
        assert device.read(LIMIT_MS_REGISTER) == 60_000


@pytest.mark.parametrize(
    ("what", "how"),
    some([(POSTS, "limit"), (POSTS | RECEIVES, "leaving"), (POSTS | RECEIVES, "limit"), (POSTS, "leaving")], 2),
)
def test_work_requests_that_nobody_answers(device: SimDevice, what: int, how: str) -> None:
    """The kernel is cut off with SENDs under way to a vanished peer with unlimited retries, or with unused
    receives: its queue pair goes to ERR, they are flushed, and its job ends at once. Other queue pairs stay."""
    scene = Scene(device)
    manager = Manager(device)
    attributes = QpAttributes(
        dst_mac=int.from_bytes(mac_bytes("02:00:00:00:00:55"), "big"), dst_ip=int.from_bytes(ip_bytes("10.77.0.55"), "big"),
        dest_qp_num=5, pd=TRAFFIC_CLIENT, client=TRAFFIC_CLIENT, timeout=0,
    )  # fmt: skip
    manager.set_up(QPN, attributes)
    manager.set_up(QPN + 1, attributes)
    if how == "limit":
        device.write(LIMIT_MS_REGISTER, 1)
    scene.attack(what)
    assert device.read(STATUS) == 0b101
    if how == "limit":
        assert scene.net.answer(scene.bad)[0] == TIMEOUT
        device.write(LIMIT_MS_REGISTER, 60_000)
    else:
        scene.net.disconnect(scene.bad)
        device.step(50_000)  # what is queued for the wire leaves before the caller's queue pair is reset
    assert device.read(STATUS) == 0
    states = [manager.run("QP_QUERY", {0: qpn}, 1)[0] for qpn in (QPN, QPN + 1)]
    assert states == [State.ERR, State.RTS]
    scene.call()
    # Software takes it up again, and the next job begins with nothing of the old one.
    manager.reset(QPN)
    manager.set_up(QPN, attributes)
    scene.recovered()
    assert device.read(MET) == 0


# ---- registers of the device ----

COUNTER_AT = address("packet_rx_frame")
CONGESTION = set(range(address("RP_ENABLE"), address("MIN_TIME_BETWEEN_CNPS") + 4, 4))
WORDS = 16 * 1024  # that the kernel tries


def settings(device: SimDevice) -> dict[int, int]:
    """Every register that can be written and read, and its value."""
    found = {}
    for block in blocks().values():
        for number in range(block["count"]):
            for register in block["registers"]:
                for word in range(register["count"] or 1) if register["access"] == "rw" else ():
                    at = block["base"] + number * block["stride"] + register["offset"] + 4 * word
                    try:
                        found[at] = device.read(at)
                    except OSError:
                        continue
    return found


@pytest.mark.parametrize("permitted", [0, 1, 2, 3])
def test_a_kernel_writes_no_register_that_it_is_not_given(device: SimDevice, permitted: int) -> None:
    """It writes ones to every word of every block. What confines kernels, secrets and settings of others stay as they are, whatever
    is permitted."""
    scene = Scene(device)
    device.write(BUS, permitted)
    before = settings(device)
    assert len(before) > 60 and {BUS, LIMIT_MS_REGISTER, address("CTRL")} <= set(before)
    scene.attack(SETS)
    for _ in range(100):
        device.step(1000)
        if device.read(REFUSED) >= WORDS:
            break
    assert device.read(REFUSED) >= WORDS and device.read(STATUS) & 1, "it has tried every word"
    reached = device.read(REACHED) >> 16
    changed = {at for at, value in settings(device).items() if value != before[at]}
    if permitted & 2:
        assert reached and changed and changed <= CONGESTION
    else:
        assert reached == 0 and not changed
    for at in CONGESTION:
        device.write(at, before[at])
    scene.net.disconnect(scene.bad)
    device.step(3000)
    scene.recovered()


@pytest.mark.parametrize("mode", [ASKS, SETS, ASKS | COUNTER, ASKS | COUNTER | DEAF], ids=["reads", "writes", "counter", "deaf"])
def test_registers_are_read_and_written_beside_a_kernel_that_floods_them(device: SimDevice, mode: int) -> None:
    """Each access waits for one of the kernel at most, whatever it does."""
    scene = Scene(device)
    device.write(BUS, 3)

    def longest() -> list[int]:
        """Cycles of an access, as the shell's bus sees it: to a fact, to a counter, of a write."""
        accesses: list[Callable[[], object]] = [
            lambda: device.read(address("QPS")),
            lambda: device.read(COUNTER_AT),
            lambda: device.write(address("KEEPALIVE_MS"), 30_000),
        ]
        times = []
        for access in accesses:
            times.append(0)
            for _ in range(60):
                begin = device.stats.cycles
                access()
                times[-1] = max(times[-1], device.stats.cycles - begin)
        return times

    alone = longest()
    scene.attack(mode)
    beside = longest()
    print(f"{mode:#x}: {alone} cycles alone, {beside} beside the kernel")
    assert device.read(STATUS) & 1, "it was at work all the time"
    slowest = alone[1] + 6  # of the kernel's own
    assert all(now <= was + slowest for was, now in zip(alone, beside, strict=True))
    scene.net.disconnect(scene.bad)
    device.step(3000)
    scene.recovered()
