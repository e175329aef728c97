# SPDX-License-Identifier: Apache-2.0
"""packet_rx: every frame is judged as the model judges it, at every width; no frame size makes it stall."""

import os
import random

import cocotb
import packet_frames as frames
import pytest
from cocotb.triggers import RisingEdge
from cocotb.utils import get_sim_time
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Plain, Source, run
from nacelle_tb.long import alternately
from nacelle_tb.record import FRAME_RX, headers, says
from nacelle_tb.streams import CLOCK_NS, AxisSink, AxisSource, StreamSink, pulses, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from nacelle_tb.widths import WIDTHS, at_width

EVENTS = "packet_pkg::packet_events_t"
LOCAL = "packet_pkg::local_addr_t"
WIDTH = int(os.environ.get("WIDTH", "512"))
MAX_FRAME = 4224
CLASSES = ("ARP", "ICMP", "ROCE", "UDP", "TCP", "IP", "IPV6", "VLAN", "GROUP", "OTHER", "ND", "RA")


class Bench:
    """The module with drivers; counts its events."""

    def __init__(self, dut, stall_in: float = 0.0, stall_frame: float = 0.0, stall_payload: float = 0.0, **local: object) -> None:
        self.dut = dut
        self.rx = AxisSource(dut, "rx", stall_in)
        self.frame = StreamSink(dut, "frame", FRAME_RX, stall_frame)
        self.payload = AxisSink(dut, "payload", stall_payload)
        self.counts: dict[str, int] = {}
        self.local = local
        self._events = struct(EVENTS)

    async def start(self) -> "Bench":
        self.dut.foreign.value = self.dut.tag.value = 0
        self.dut.service_ports.value = self.dut.datagram_ports.value = self.dut.card.value = 0
        self.dut.decision.value = 0
        self.dut.local_addr.value = struct(LOCAL).pack(frames.local_addr(**self.local))
        await start(self.dut)
        await wait_cycles(self.dut, 3)
        cocotb.start_soon(self._count())
        return self

    async def _count(self) -> None:
        async for word in pulses(self.dut.clk, self.dut.events):
            for name, value in vars(self._events.unpack(word)).items():
                self.counts[name] = self.counts.get(name, 0) + value

    async def expect(self, judgements: list[frames.Judgement], overflow: bool | None = False) -> None:
        """Everything handed on and every event counted is as judged, and nothing more. With `overflow` frames are missing,
        each as a whole and each counted; None: perhaps."""
        await self.rx.drained()
        for _ in range(100_000):
            await wait_cycles(self.dut, 1)
            if int(self.dut.idle.value):
                break
        await wait_cycles(self.dut, 1)
        assert int(self.dut.idle.value) == 1
        expected: dict[str, int] = {}
        handed_on = 0
        for judgement in judgements:
            if judgement.good:
                if overflow is False or (self.frame.received and self._is_next(judgement)):
                    assert self._is_next(judgement)
                    handed_on += 1
                    self.frame.received.popleft()
                    if judgement.payload:
                        assert self.payload.packets.popleft() == (judgement.payload, 0)
                else:
                    continue  # dropped
            if judgement.event:
                expected[judgement.event] = expected.get(judgement.event, 0) + 1
        assert not self.frame.received
        assert not self.payload.packets
        counts = {name: count for name, count in self.counts.items() if count}
        dropped = counts.pop("drop_overflow", 0)
        assert overflow is None or (dropped > 0) == overflow
        assert counts.pop("rx_frame", 0) == handed_on
        if dropped:  # a frame that was dropped was not judged, good or bad
            assert all(count <= expected.get(name, 0) for name, count in counts.items())
            bad = sum(count for name, count in counts.items() if name.startswith("drop"))
            assert handed_on + bad + dropped == len(judgements)
        else:
            assert counts == expected

    def _is_next(self, judgement: frames.Judgement) -> bool:
        """The frame handed on first is this one."""
        got = self.frame.received[0]
        return (
            got.cls == constant(f"frame_pkg::CLASS_{judgement.cls}")
            and got.payload_length == len(judgement.payload)
            and says(got.headers, headers(judgement.cls, judgement.frame))
            and (not judgement.payload or self.payload.packets[0] == (judgement.payload, 0))
        )

    async def judge_all(
        self, items: list[tuple[bytes, bool]], overflow: bool | None = False, **local: object
    ) -> list[frames.Judgement]:
        for frame, bad in items:
            self.rx.send(frame, bad)
        judgements = [frames.judge(frame, bad, **local) for frame, bad in items]
        await self.expect(judgements, overflow)
        return judgements


def good_frames() -> list[bytes]:
    """One of everything, with and without Ethernet padding, all payload alignments."""
    result = [frames.arp(), frames.arp(op=2, dst=frames.MAC), frames.ping(b""), frames.ping(random.randbytes(999))]
    result += [frames.udp(b"", checksum=False), frames.udp(random.randbytes(77))]
    for opcode in frames.EXTENSION:
        for size in (0, 1, 4, 7, random.randrange(400)):
            result.append(frames.roce(random.randbytes(size), opcode, udp_checksum=random.random() < 0.3))
    return [frames.ethernet_padded(frame) if random.random() < 0.5 else frame for frame in result]


def with_udp_length(frame: bytes, length: int) -> bytes:
    return frame[:38] + length.to_bytes(2, "big") + frame[40:]


def bad_frames() -> dict[str, list[tuple[bytes, bool]]]:
    """For each reason to drop, frames that have it."""
    flip = bytearray(frames.roce(b"x" * 100))
    flip[random.randrange(54, len(flip) - 4)] ^= 1 << random.randrange(8)
    udp = bytearray(frames.udp(b"abcdefg"))
    udp[45] ^= 4
    roce_checksum = bytearray(frames.roce(b"12345678", udp_checksum=True))
    roce_checksum[40] ^= 1
    echo = bytearray(frames.ping(b"abcdefg"))
    echo[-1] ^= 0x10
    arp = bytearray(frames.arp())
    arp[15] = 6
    long_frame = frames.roce(random.randbytes(4300))
    trailing = frames.roce(b"q" * 30) + random.randbytes(5000)
    return {
        "drop_fcs": [(frames.roce(b"abc"), True), (frames.arp(), True), (b"x", True), (long_frame, True)],
        "drop_runt": [
            (frames.roce(b"abcd" * 40)[:-1], False),
            (frames.roce(b"abcd" * 40)[:120], False),
            (b"x", False),
            (frames.ping(b"")[:41], False),
            (frames.arp()[:41], False),
            (frames.udp(b"")[:41], False),
            (frames.ping(b"abcd", len=25), False),
            (frames.tcp(b"abcd" * 40)[:-1], False),
            *((items[0][:41], False) for items in frames.frames_without_route().values()),
            (frames.roce(b"", 0x0A, extension=b"")[:-4], False),
        ],
        "drop_oversize": [(long_frame, False), (trailing, False)],
        "drop_not_ours": [
            (frames.roce(b"abc", dst="10.0.0.9"), False),
            *(
                (frames.to("02:00:00:00:00:09", frame), False)
                for frame in (frames.roce(b"abc"), frames.ping(b"abc"), frames.udp(b"abc"), frames.arp())
            ),
            *(
                (frames.to("02:00:00:00:00:09", frame), False)
                for name, items in frames.frames_without_route().items() if name != "GROUP" for frame in items
            ),
            (frames.roce(b"abc", proto=6, dst="10.0.0.9"), False),
        ],
        "drop_ipv4_header": [
            (frames.roce(b"abc", chksum=0x1234), False),
            (frames.roce(b"abc", ihl=6), False),
            (frames.roce(b"abc", version=6), False),
            (frames.udp(b"abc", len=19), False),
            (frames.tcp(b"abc", chksum=0x1234), False),
            (frames.roce(b"abc", proto=47, chksum=0x1234), False),
        ],
        "drop_ipv4_fragment": [
            (frames.roce(b"abc", flags="MF"), False), (frames.roce(b"abc", frag=3), False), (frames.tcp(b"abc", frag=3), False),
        ],
        "drop_udp_length": [
            (with_udp_length(frames.udp(b"abc", checksum=False), length), False)
            for length in (0, 7, 10, 12)
        ],
        "drop_udp_checksum": [(bytes(udp), False), (bytes(roce_checksum), False)],
        "drop_icmp": [(bytes(echo), False), (frames.ping(b"abc", type=0), False), (frames.ping(b"abc", type=13), False)],
        "drop_icmp_unreachable": [(frames.unreachable(code), False) for code in (0, 1, 2, 3, 5, 13)],
        "drop_icmp_too_big": [(frames.unreachable(4), False)],
        "drop_arp": [(bytes(arp), False), (frames.arp(op=3), False), (frames.arp(hwsrc="ff:ff:ff:ff:ff:ff"), False)],
        "drop_icrc": [(bytes(flip), False), (frames.roce(b"abc")[:-4] + bytes(4), False)],
        "drop_roce_opcode": [(frames.roce(b"abc", 0x60, extension=b""), False)],
    }  # fmt: skip


@cocotb.test()
async def every_kind_of_good_frame(dut) -> None:
    bench = await Bench(dut).start()
    judgements = await bench.judge_all([(frame, False) for frame in good_frames()])
    assert all(judgement.good for judgement in judgements)
    assert {judgement.cls for judgement in judgements} == {"ARP", "ICMP", "ROCE", "UDP"}


def dhcp_frames() -> list[bytes]:
    """Answers of DHCP servers to all hosts, and frames that are nearly that."""
    data = random.randbytes(300)
    wrong = [{"dport": 67}, {"dport": 69}, {"dport": 4791}, {"dst": "255.255.255.254"}, {"dst": "224.0.0.1"}, {"dst": "0.0.0.0"}]
    wrong += [{"dst": frames.IP_ADDRESS}, {"eth": frames.MAC}, {"eth": "01:00:5e:00:00:01"}, {"eth": "ff:ff:ff:ff:ff:fe"}]
    wrong += [{"proto": 6}, {"proto": 1}, {"flags": "MF"}, {"dport": 68 + 256}]
    damaged = bytearray(frames.dhcp(data))
    damaged[100] ^= 1
    others = [frames.dhcp(data, **one) for one in wrong]
    return [frames.dhcp(data), frames.dhcp(b""), *others, bytes(damaged), frames.tagged(frames.dhcp(data)), frames.dhcp(data)]


@cocotb.test()
@cocotb.parametrize(ip=[frames.IP_ADDRESS, "0.0.0.0"], expected=[False, True])
async def dhcp_answers_to_all_hosts(dut, ip: str, expected: bool) -> None:
    """Are taken while one is expected, with and without an address; nothing else to all hosts is. Without an address no other
    IPv4 packet is taken, not even to 0.0.0.0."""
    local = {"ip": ip, "dhcp": expected}
    bench = await Bench(dut, **local).start()
    packets = [frame for frame in [*dhcp_frames(), *good_frames(), frames.udp(b"a", dst="0.0.0.0")] if frame[12:14] == b"\x08\0"]
    random.shuffle(packets)
    judgements = await bench.judge_all([(frame, False) for frame in packets], **local)
    taken = [judgement for judgement in judgements if judgement.cls == "UDP" and judgement.frame[:6] == b"\xff" * 6]
    assert len(taken) == (3 if expected else 0)
    own = [judgement for judgement in judgements if judgement.event in ("rx_roce", "rx_icmp")]
    assert bool(own) == (ip != "0.0.0.0")


def mdns_frames() -> list[bytes]:
    """Messages to the group of mDNS, and frames that are nearly that."""
    data = random.randbytes(300)
    wrong = [{"dport": 5352}, {"dport": 5355}, {"dport": 4791}, {"dport": 68}, {"dst": "224.0.0.250"}, {"dst": "225.0.0.251"}]
    wrong += [{"dst": frames.IP_ADDRESS}, {"dst": "255.255.255.255"}, {"eth": frames.MAC}, {"eth": "ff:ff:ff:ff:ff:ff"}]
    wrong += [{"eth": "01:00:5e:00:00:fa"}, {"eth": "33:33:00:00:00:fb"}, {"proto": 6}, {"proto": 1}, {"flags": "MF"}]
    damaged = bytearray(frames.mdns(data))
    damaged[100] ^= 1
    others = [frames.mdns(data, **one) for one in wrong]
    return [frames.mdns(data), frames.mdns(b""), *others, bytes(damaged), frames.tagged(frames.mdns(data)), frames.mdns(data)]


@cocotb.test()
@cocotb.parametrize(mdns=[False, True], dhcp=[False, True])
async def messages_to_the_group_of_mdns(dut, mdns: bool, dhcp: bool) -> None:
    """Are taken while the responder works; nothing else to a group is."""
    local = {"mdns": mdns, "dhcp": dhcp}
    bench = await Bench(dut, **local).start()
    packets = [frame for frame in [*mdns_frames(), *dhcp_frames(), *good_frames()] if frame[12:14] == b"\x08\0"]
    random.shuffle(packets)
    judgements = await bench.judge_all([(frame, False) for frame in packets], **local)
    taken = [judgement for judgement in judgements if judgement.cls == "UDP" and judgement.frame[0] == 1]
    assert len(taken) == (3 if mdns else 0)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def frames_of_other_classes_come_whole(dut, stall: float) -> None:
    """VLAN tags, IPv6, TCP, groups, what is unknown: the record and the whole frame, and a good RoCE frame behind each."""
    bench = await Bench(dut, 0.9 if stall else 0.0, stall, stall).start()
    items = []
    for cls, several in frames.frames_without_route().items():
        assert [frames.judge(frame).cls for frame in several] == [cls] * len(several)
        items += several
    random.shuffle(items)
    await bench.judge_all([(item, False) for frame in items for item in (frame, frames.roce(random.randbytes(len(frame) % 97)))])


def good_ipv6_frames() -> list[bytes]:
    """One of everything over IPv6, to both addresses and to the groups."""
    result = [frames.ping6(b""), frames.ping6(random.randbytes(999)), frames.ping6(b"abc", dst=frames.LINK_LOCAL)]
    result += [frames.udp6(b"", src=frames.PEER_LINK_LOCAL, dst=frames.LINK_LOCAL), frames.udp6(random.randbytes(77))]
    result += [frames.solicitation(), frames.solicitation(frames.LINK_LOCAL), frames.solicitation(lla=None, src="::")]
    result += [frames.solicitation(dst=frames.GLOBAL), frames.solicitation(options=random.randbytes(16))]
    result += [frames.advertisement(), frames.advertisement(lla=None), frames.advertisement(dst=frames.ALL_NODES, solicited=0)]
    result += [frames.router_advertisement(), frames.router_advertisement([("2001:db8::", 100, 50)] * 3)]
    result += [frames.router_advertisement(lla=None, dst=frames.LINK_LOCAL, eth=frames.MAC)]
    for opcode in frames.EXTENSION:
        for size in (0, 1, 4, 7, random.randrange(400)):
            result.append(frames.roce6(random.randbytes(size), opcode, udp=random.choice([{}, {"chksum": 0}])))
    return [frame + random.randbytes(random.choice([0, 0, 9])) for frame in result]


def bad_ipv6_frames() -> dict[str, list[tuple[bytes, bool]]]:
    """For each reason to drop, frames over IPv6 that have it."""

    def changed(frame: bytes, at: int, value: int) -> bytes:
        return frame[:at] + bytes([value]) + frame[at + 1 :]

    roce = frames.roce6(b"x" * 100)
    as_linux = frames.roce6(b"abc", udp={"chksum": 0})
    flow = bytearray(frames.roce6(b"abc"))
    flow[22] ^= 1  # source: in the checksum of UDP and in the ICRC
    echo, nd = frames.ping6(b"abcdefg"), frames.solicitation()
    extensions = (frames.IPv6ExtHdrHopByHop, frames.IPv6ExtHdrRouting, frames.IPv6ExtHdrDestOpt)
    bad = {
        "drop_fcs": [],
        "drop_runt": [
            roce[:-1], roce[:61], frames.ping6(b"")[:61], frames.udp6(b"")[:60], changed(frames.ping6(b""), 19, 7),
            frames.roce6(b"", 0x0A, extension=b"")[:-4], frames.solicitation()[:70], frames.router_advertisement()[:68],
            frames.tcp6(b"abcd" * 40)[:-1], changed(nd, 18, 3), changed(frames.tcp6(b""), 19, 200),
        ],
        "drop_not_ours": [
            frames.roce6(b"abc", dst="2001:db8::a:b:d"), frames.ping6(b"abc", dst="fe80::1"), frames.ping6(b"a", dst="::"),
            frames.udp6(b"a", dst=frames.ALL_NODES), frames.to("02:00:00:00:00:09", frames.ping6(b"a")),
            frames.solicitation(dst=frames.solicited_node(frames.GLOBAL), eth=frames.MAC),
            frames.tcp6(b"a", dst="::ffff:10.0.0.1"),
        ],
        "drop_ipv6_header": [
            changed(roce, 14, 0x45), changed(roce, 14, 0x50), frames.ping6(b"a", src="ff02::1"), frames.ping6(b"a", src="::"),
            frames.roce6(b"a", src="::ffff:10.0.0.2"), frames.udp6(b"a", src="::1"), frames.solicitation(src="ff02::5"),
            frames.solicitation(src="::10.0.0.2"), frames.udp6(b"a", src="::"),
        ],
        "drop_ipv6_fragment": [
            frames.with_extension(frame, frames.IPv6ExtHdrFragment)
            for frame in (roce, echo, frames.solicitation(dst=frames.GLOBAL))
        ],
        "drop_ipv6_extension": [frames.with_extension(frame, header) for frame in (roce, echo) for header in extensions]
        + [changed(roce, 20, number) for number in (51, 135, 139, 140)],
        "drop_udp_length": [frames.udp6(b"abc", udp={"len": length, "chksum": 1}) for length in (0, 7, 10, 12)],
        "drop_udp_checksum": [
            bytes(flow), frames.roce6(b"abc", udp={"chksum": 1}), frames.udp6(b"abc", udp={"chksum": 0}),
            frames.udp6(b"abc", udp={"chksum": 1}), changed(frames.udp6(b"abcdefg"), 64, 0xFE), changed(frames.udp6(b"abc"), 23, 9),
        ],
        "drop_icmp": [
            changed(echo, len(echo) - 1, echo[-1] ^ 0x10), frames.icmp6(129, b"abcdefgh"), frames.icmp6(128, b"abcd", code=1),
            frames.icmp6(137, bytes(36)), frames.icmp6(133, bytes(4)), frames.icmp6(3, bytes(48)), changed(echo, 37, echo[37] ^ 1),
        ],
        "drop_icmp_unreachable": [frames.icmp6(1, bytes(48), code=code) for code in (0, 1, 3, 4)],
        "drop_icmp_too_big": [frames.icmp6(2, bytes(48))],
        "drop_icrc": [changed(as_linux, len(as_linux) - 1, as_linux[-1] ^ 1)],
        "drop_roce_opcode": [frames.roce6(b"abc", 0x60, extension=b"")],
        "drop_nd": [
            frames.solicitation(hlim=254), frames.advertisement(hlim=64), frames.router_advertisement(hlim=254),
            frames.solicitation("ff02::1:ff00:1"), frames.advertisement("ff02::1", src=frames.PEER_GLOBAL),
            frames.router_advertisement(src=frames.PEER_GLOBAL), changed(nd, 70, nd[70] ^ 1), frames.icmp6(135, bytes(8)),
            frames.icmp6(136, bytes(16)), frames.icmp6(135, bytes(20), code=1), frames.icmp6(134, bytes(8)),
            frames.icmp6(134, bytes(12), src=frames.PEER_GLOBAL), frames.icmp6(134, bytes(12), code=2),
        ],
    }  # fmt: skip
    # The checksum, if there is one, has to be right for the ICRC to be looked at.
    broken = bytearray(frames.roce6(b"abcd", 0x04, udp={"chksum": 0}))
    broken[-1] ^= 1
    length, pseudo = struct_pack(broken), bytes(broken[22:54])
    broken[60:62] = (0xFFFF ^ frames.ones_sum(pseudo + length + bytes(broken[54:]))).to_bytes(2, "big")
    bad["drop_icrc"].append(bytes(broken))
    return {name: [(frame, False) for frame in several] for name, several in bad.items() if several}


def struct_pack(frame: bytes | bytearray) -> bytes:
    """The end of the pseudo-header of IPv6."""
    return bytes(2) + bytes(frame[18:20]) + bytes([0, 0, 0, frame[20]])


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def every_kind_of_good_ipv6_frame(dut, stall: float) -> None:
    bench = await Bench(dut, 0.9 if stall else 0.0, stall, stall, ipv6=True).start()
    packets = good_ipv6_frames() + good_frames()
    random.shuffle(packets)
    judgements = await bench.judge_all([(frame, False) for frame in packets], ipv6=True)
    assert all(judgement.good for judgement in judgements)
    assert {judgement.cls for judgement in judgements} == {"ARP", "ICMP", "ROCE", "UDP", "ND", "RA"}


@cocotb.test()
async def every_reason_to_drop_over_ipv6(dut) -> None:
    bench = await Bench(dut, ipv6=True).start()
    items = []
    for event, bad in bad_ipv6_frames().items():
        assert [frames.judge(*item, ipv6=True).event for item in bad] == [event] * len(bad), event
        items += bad
    mixed = [item for bad in items for item in (bad, (frames.roce6(random.randbytes(random.randrange(200))), False))]
    judgements = await bench.judge_all(mixed, ipv6=True)
    assert sum(judgement.good for judgement in judgements) == len(items)


@cocotb.test()
@cocotb.parametrize(link_local=["::", frames.LINK_LOCAL], global_=["::", frames.GLOBAL])
async def ipv6_addresses_that_the_device_has_not(dut, link_local: str, global_: str) -> None:
    """Receive nothing; while it looks for its addresses neighbour discovery to its groups still comes."""
    local = {"ipv6": True, "link_local": link_local, "global_": global_}
    bench = await Bench(dut, **local).start()
    packets = [*good_ipv6_frames(), frames.ping6(b"a", dst="::"), frames.tcp6(b"a"), frames.tcp6(b"a", dst=frames.LINK_LOCAL)]
    packets += [frames.to(group, frame) for frame in packets[:6] for group in ("33:33:00:00:00:01", "ff:ff:ff:ff:ff:ff")]
    packets += [
        frames.solicitation("2001:db8::a:b:d"),
        frames.solicitation(eth="33:33:ff:0b:00:0d"),
        frames.solicitation(eth="33:33:00:00:00:01"),
    ]
    judgements = await bench.judge_all([(frame, False) for frame in packets], **local)
    taken = {judgement.cls for judgement in judgements}
    assert {"ND", "RA", "GROUP"} <= taken
    assert ("ROCE" in taken) == (global_ != "::")


@cocotb.test()
async def every_reason_to_drop(dut) -> None:
    bench = await Bench(dut).start()
    items = []
    for event, bad in bad_frames().items():
        assert [frames.judge(*item).event for item in bad] == [event] * len(bad)
        items += bad
    # A good frame after each bad one, which must come through unharmed.
    mixed = [item for bad in items for item in (bad, (frames.roce(random.randbytes(random.randrange(200))), False))]
    judgements = await bench.judge_all(mixed)
    assert sum(judgement.good for judgement in judgements) == len(items)


@cocotb.test()
async def frames_of_linux(dut) -> None:
    local = {"mac": "52:54:00:63:00:01", "ip": "10.99.0.1"}
    bench = await Bench(dut, **local).start()
    judgements = await bench.judge_all([(frame, False) for frame in frames.linux_frames()], **local)
    assert sum(judgement.event == "rx_roce" for judgement in judgements) > 10


@cocotb.test()
@cocotb.parametrize(stalls=alternately([(0.0, 0.0, 0.0), (0.9, 0.3, 0.3), (0.0, 0.97, 0.2), (0.0, 0.2, 0.97)]))
async def random_frames_and_mangled_ones(dut, stalls: tuple[float, float, float]) -> None:
    bench = await Bench(dut, *stalls, ipv6=True).start()
    items, pool = [], good_frames() + good_ipv6_frames()
    pool += [frame for several in bad_ipv6_frames().values() for frame, _ in several]
    pool += [frames.roce(random.randbytes(4096))] * 3
    pool += [frame for several in frames.frames_without_route().values() for frame in several]
    for _ in range(150):
        frame = bytearray(random.choice(pool))
        for _ in range(random.choice([0, 0, 0, 1, 1, 3])):
            frame[random.randrange(len(frame))] = random.getrandbits(8)
        if random.random() < 0.2:
            del frame[random.randrange(1, len(frame)) :]
        if random.random() < 0.2:
            frame += random.randbytes(random.randrange(1, 200))
        items.append((bytes(frame), random.random() < 0.05))
    await bench.judge_all(items, overflow=None if max(stalls[1:]) > 0.9 else False, ipv6=True)


@cocotb.test()
async def no_drop_for_any_size(dut) -> None:
    bench = await Bench(dut).start()
    items = [frames.ethernet_padded(frames.roce(b""))] * 100  # 60 bytes: one beat each at 512 bits
    items += [frames.ethernet_padded(frames.arp()), frames.ping(b"")] * 20
    items += [frames.roce(random.randbytes(size)) for size in range(0, 4097, 64 if WIDTH == 512 else 256)]
    items += [frames.roce(random.randbytes(size), 0x0B) for size in range(1, 300, 4)]
    items += [frames.ethertype(0x88CC, random.randbytes(46 + n % 90)) for n in range(150)]  # handed on whole
    items += [frame for n in range(80) for frame in (frames.roce(b"abcd")[:-1] + b"x", frames.roce(b"abcd"))]  # every other one bad
    await bench.judge_all([(frame, False) for frame in items])


@cocotb.test()
async def latency_is_as_documented(dut) -> None:
    bench = await Bench(dut).start()
    bench.rx.send(frames.roce(bytes(200)))
    await bench.rx.drained()  # the edge at which the last beat was taken
    seen = {}
    for cycle in range(1, 30):
        await RisingEdge(dut.clk)
        for name in ("frame_valid", "payload_tvalid"):
            if int(getattr(dut, name).value):
                seen.setdefault(name, cycle)
    assert seen == {"frame_valid": 11, "payload_tvalid": 12}


@cocotb.test()
async def stopped_consumers_cost_whole_frames_and_the_mac_does_not_wait(dut) -> None:
    bench = Bench(dut, 0.0, 1.0, 1.0)
    await bench.start()
    items = [frames.ethernet_padded(frames.roce(random.randbytes(size % 97))) for size in range(100)]
    items += [frames.roce(random.randbytes(4096)) for _ in range(10)]
    beats = sum(-(-len(frame) // (WIDTH // 8)) for frame in items)
    for frame in items:
        bench.rx.send(frame)
    begin = get_sim_time("ns")
    await bench.rx.drained()
    assert round((get_sim_time("ns") - begin) / CLOCK_NS) <= beats + 1
    bench.frame.stall = bench.payload.stall = 0.1
    await bench.expect([frames.judge(frame) for frame in items], overflow=True)
    records = 16 if WIDTH < 128 else 32
    assert bench.counts["drop_overflow"] <= len(items) - records + 4
    # Later ones come through.
    bench.counts.clear()
    for frame in items[-2:]:
        bench.rx.send(frame)
    await bench.expect([frames.judge(frame) for frame in items[-2:]])


@cocotb.test()
async def a_store_without_room_for_its_payload_drops_the_frame(dut) -> None:
    """Only `payload` stops: the payload store fills, and every frame that is handed on has all of its payload."""
    bench = Bench(dut, 0.0, 0.0, 1.0)
    await bench.start()
    items = [frames.roce(random.randbytes(random.choice([0, 1, 700, 4096]))) for _ in range(60)]
    for frame in items:
        bench.rx.send(frame)
    await bench.rx.drained()
    bench.payload.stall = 0.0
    await bench.expect([frames.judge(frame) for frame in items], overflow=True)


@cocotb.test()
async def frames_of_another_vlan(dut) -> None:
    """A frame that is not of the device's VLAN has the class of tagged ones; the tag that was removed is in the record."""
    bench = await Bench(dut).start()
    layout = struct("frame_pkg::vlan_t")
    for foreign in (1, 0, 1, 0):
        dut.foreign.value = foreign
        dut.tag.value = 0 if foreign else layout.pack(present=1, service=0, pcp=5, dei=1, vid=0x123)
        sent = [frames.roce(b"x" * 40, 0x0A), frames.ethernet_padded(frames.ping(b"abc")), frames.ethernet_padded(frames.arp())]
        for frame in sent:
            bench.rx.send(frame)
        await bench.rx.drained()
        await wait_cycles(dut, 60)
        assert len(bench.frame.received) == len(sent)
        for cls in ("ROCE", "ICMP", "ARP"):
            got = bench.frame.received.popleft()
            assert got.cls == constant(f"frame_pkg::CLASS_{'VLAN' if foreign else cls}")
            vlan = got.headers.l2.vlan
            if not foreign:
                assert (vlan.present, vlan.service, vlan.pcp, vlan.dei, vlan.vid) == (1, 0, 5, 1, 0x123)
        bench.payload.packets.clear()


@cocotb.test()
async def a_frame_that_began_in_reset_is_no_frame(dut) -> None:
    """The end of a frame whose beginning was not taken must not be parsed, even if it looks like a good one."""
    bench = await Bench(dut).start()
    dut.rst.value = 1
    bench.rx.send(frames.roce(b"the end"))
    await wait_cycles(dut, 1)
    # The driver waits for the end of reset: the test drives the first beat itself.
    dut.rx_tvalid.value = 1
    dut.rx_tlast.value = 0
    await wait_cycles(dut, 1)
    dut.rx_tvalid.value = 0
    dut.rst.value = 0
    await bench.rx.drained()
    bench.rx.send(frames.roce(b"next"))
    await bench.rx.drained()
    await wait_cycles(dut, 40)
    assert [got.payload_length for got in bench.frame.received] == [4]


@pytest.mark.parametrize("width", WIDTHS)
def test_packet_rx(width: int) -> None:
    run(
        "packet_rx",
        __file__,
        params={"DATA_W": width, "MAX_FRAME": MAX_FRAME},
        ports={
            "local_addr": Plain("input", LOCAL),
            "service_ports": Plain("input", "services_pkg::service_ports_t"),
            "datagram_ports": Plain("input", "logic [15:0]"),
            "card": Plain("input", "card_pkg::card_settings_t"),
            "rx": AxisSinkPort(width),
            "foreign": Plain("input", "logic"),
            "tag": Plain("input", "frame_pkg::vlan_t"),
            "frame": Source(FRAME_RX),
            "payload": AxisSourcePort(width),
            "card_verdict_valid": Plain("output", "logic"),
            "card_verdict": Plain("output", "card_pkg::card_verdict_t"),
            "decision": Plain("input", "classify_pkg::decision_t"),
            "decided": Plain("output", "logic"),
            "events": Plain("output", EVENTS),
            "idle": Plain("output", "logic"),
        },
        env={"WIDTH": str(width), **at_width(width, "good|reason_to_drop$|random|no_drop|latency|stopped|without_room|come_whole")},
    )
