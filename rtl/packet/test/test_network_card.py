# SPDX-License-Identifier: Apache-2.0
"""The network card behind packet_plane: which frames it gets, as they came, which it may send, and that neither side starves the
other."""

import os
import random
from typing import Any, NamedTuple

import cocotb
import packet_frames as frames
import pytest
from cocotb.triggers import RisingEdge
from nacelle_tb import classifier as rules
from nacelle_tb.bench import run
from nacelle_tb.long import alternately, some
from nacelle_tb.streams import AxisSink, AxisSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from plane_bench import CARD, KERNEL_PORTS, LOCAL, SERVICE_PORT, USERS, Bench, ports
from scapy.layers.inet import ICMP, IP, UDP, IPOption_Router_Alert
from scapy.layers.inet6 import ICMPv6ND_NA
from scapy.layers.l2 import ARP, LLC, Ether
from scapy.packet import Raw

WIDTH = int(os.environ.get("WIDTH", "64"))
BYTES = WIDTH // 8
CARD_MAC, STRANGER = "06:00:00:00:00:01", "02:00:00:00:00:99"
HOST_IP = "10.0.0.77"
BROADCAST = "ff:ff:ff:ff:ff:ff"
PAUSE = "01:80:c2:00:00:01"
DEVICE, BOTH, HOST, NOBODY = "device", "both", "host", "nobody"
LONGEST = 9018
OURS = b"\x88\xb5"


class CardBench(Bench):
    """The plane with a card's driver: `got` has what the card was given, with whether it was checked."""

    def __init__(self, dut: Any, stall: float = 0.0) -> None:
        super().__init__(dut, stall)
        self.card_rx = AxisSink(dut, "card_rx")
        self.card_tx = AxisSource(dut, "card_tx", stall)
        self.got: list[tuple[bytes, bool]] = []
        self.seen = 0

    def set_card(self, **settings: int) -> None:
        """Which card there is; by default one with a MAC address of its own."""
        mac = frames.MAC if settings.get("shared") else CARD_MAC
        self.dut.card.value = struct(CARD).pack({"present": 1, "mac": int.from_bytes(frames.mac_bytes(mac), "big")} | settings)

    async def start(self, card: dict[str, int] | None = None, **local: object) -> "CardBench":
        self.set_card(**(card or {}))
        await super().start(**local)
        cocotb.start_soon(self._verdicts())
        await wait_cycles(self.dut, 8)  # the line is no longer kept for what might follow the announcement
        return self

    async def _verdicts(self) -> None:
        """Pairs each frame with what is said of it with its last beat."""
        verdict = struct("card_pkg::card_verdict_t")
        while True:
            await RisingEdge(self.dut.clk)
            if int(self.dut.card_rx_tvalid.value) and int(self.dut.card_rx_tlast.value):
                said = verdict.unpack(int(self.dut.card_rx_verdict.value))
                bad = int(self.dut.card_rx_tuser.value)
                await self.card_rx._wait(lambda: bool(self.card_rx.packets), 10)
                packet, _ = self.card_rx.packets.popleft()
                self.seen += 1
                if said.wanted:
                    assert not bad
                    self.got.append((packet, bool(said.checked)))

    async def settle(self) -> None:
        """Waits until the plane is idle; what it sent or handed on stays."""
        await self.rx.drained()
        for _ in range(20_000):
            await wait_cycles(self.dut, 1)
            if int(self.dut.idle.value):
                break
        await wait_cycles(self.dut, 2)
        assert int(self.dut.idle.value) == 1

    def counted(self) -> dict[str, int]:
        """What was counted since the last call."""
        counts, self.counts = self.counts, {}
        return {name: count for name, count in counts.items() if count}


class Case(NamedTuple):
    """A frame to the device's MAC address or to a group, and who gets it: from a card with an address of its own, and with the
    device's, where the device answers, and where the host does. `checked`: a right checksum covers it."""

    frame: bytes
    own: str
    shared: str
    host_answers: str
    checked: bool = False


def cases(ipv6: bool) -> dict[str, Case]:
    """One of each kind of frame. For a device without IPv6 all IPv6 is the host's."""
    data = random.randbytes(random.choice([46, 100, 700]))
    options = bytes(
        frames.ethernet() / IP(src=frames.PEER_IP, dst=frames.IP_ADDRESS, options=[IPOption_Router_Alert()]) / UDP(dport=9)
    )
    listener = frames.to("33:33:00:00:00:16", frames.ethertype(0x86DD, b"\x60" + data.ljust(60, b"x")))
    only_host = {
        "udp": Case(frames.udp(data, dport=9), NOBODY, HOST, HOST, True),
        "udp without checksum": Case(frames.udp(data, dport=9, checksum=False), NOBODY, HOST, HOST),
        "tcp": Case(frames.tcp(data), NOBODY, HOST, HOST, True),
        "tcp without data": Case(frames.tcp(b""), NOBODY, HOST, HOST, True),
        "another protocol": Case(frames.other_ip(data), NOBODY, HOST, HOST),
        "fragment": Case(frames.tcp(data, frag=3), NOBODY, HOST, HOST),
        "first fragment of RoCE": Case(frames.roce(data, flags="MF"), NOBODY, HOST, HOST),
        "options": Case(options.ljust(60, b"\0"), NOBODY, HOST, HOST),
        "another IP address": Case(frames.udp(data, dport=SERVICE_PORT, dst=HOST_IP), NOBODY, HOST, HOST, True),
        "RoCE to another IP address": Case(frames.roce(data, dst=HOST_IP, udp_checksum=True), NOBODY, HOST, HOST, True),
        "echo to another IP address": Case(frames.ping(data, dst=HOST_IP), NOBODY, HOST, HOST, True),
        "echo reply": Case(frames.ping(data, type=0), NOBODY, HOST, HOST, True),
        "unreachable": Case(frames.unreachable(3).ljust(60, b"\0"), NOBODY, HOST, HOST, True),
        "too big": Case(frames.unreachable(4).ljust(60, b"\0"), NOBODY, HOST, HOST, True),
        "tag": Case(frames.tagged(frames.roce(data)), NOBODY, HOST, HOST),
        "service tag": Case(frames.tagged(frames.tcp(data), service=True), NOBODY, HOST, HOST),
        "EtherType": Case(frames.ethertype(0x88B5, data), NOBODY, HOST, HOST),
        "LLC": Case(bytes(frames.ethernet())[:12] + b"\0\x2e" + data[:46], NOBODY, HOST, HOST),
        "wrong sum of a segment": Case(frames.tcp(data, chksum=0x1234), NOBODY, HOST, HOST),
        "segment that is cut": Case(frames.tcp(data * 2)[:-3], NOBODY, HOST, HOST),
        "source of no host": Case(frames.udp(data, dport=SERVICE_PORT, src="224.0.0.9"), NOBODY, HOST, HOST, True),
    }  # fmt: skip
    groups = {
        "broadcast": Case(frames.to(BROADCAST, frames.udp(data, dport=67, dst="255.255.255.255")), HOST, HOST, HOST, True),
        "multicast": Case(frames.to("01:00:5e:01:02:03", frames.udp(data, dst="224.1.2.3")), HOST, HOST, HOST, True),
        "IPv6 multicast": Case(listener, HOST, HOST, HOST),
        "tagged broadcast": Case(frames.tagged(frames.arp()), HOST, HOST, HOST),
        "LLDP": Case(frames.to("01:80:c2:00:00:0e", frames.ethertype(0x88CC, data)), HOST, HOST, HOST),
        "STP": Case(bytes(Ether(dst="01:80:c2:00:00:00", src=STRANGER, type=46) / LLC() / Raw(data))[:60], HOST, HOST, HOST),
        "pause": Case(frames.to(PAUSE, frames.ethertype(0x8808, b"\0\1\0\0".ljust(46, b"\0"))), NOBODY, NOBODY, NOBODY),
        "ARP for the host": Case(frames.arp(pdst=HOST_IP), BOTH, BOTH, BOTH),
        "ARP that is malformed": Case(frames.arp(op=9), HOST, HOST, HOST),
        "ARP for the device": Case(frames.arp(), DEVICE, DEVICE, BOTH),
        "multicast DNS": Case(frames.mdns(data), BOTH, BOTH, BOTH, True),
        "DHCP": Case(frames.dhcp(data), BOTH, BOTH, BOTH, True),
    }  # fmt: skip
    device = {
        "RoCE": Case(frames.roce(data, udp_checksum=True), DEVICE, DEVICE, DEVICE),
        "service": Case(frames.udp(data, dport=SERVICE_PORT), DEVICE, DEVICE, DEVICE),
        "kernel": Case(frames.udp(data, dport=KERNEL_PORTS[1]), DEVICE, DEVICE, DEVICE),
        "echo": Case(frames.ping(data), DEVICE, DEVICE, HOST, True),
        "ARP reply": Case(frames.arp(op=2, dst=frames.MAC, hwdst=frames.MAC), DEVICE, BOTH, BOTH),
        "ARP asked directly": Case(frames.arp(dst=frames.MAC), DEVICE, DEVICE, BOTH),
    }
    if ipv6:
        v6 = {
            "RoCE, IPv6": Case(frames.roce6(data), DEVICE, DEVICE, DEVICE),
            "echo, IPv6": Case(frames.ping6(data), DEVICE, DEVICE, HOST, True),
            "solicitation": Case(frames.solicitation(), DEVICE, DEVICE, BOTH, True),
            "solicitation of the host": Case(frames.solicitation("2001:db8::77", eth="33:33:ff:00:00:77"), HOST, HOST, HOST, True),
            "advertisement": Case(frames.advertisement(), DEVICE, BOTH, BOTH, True),
            "router": Case(frames.router_advertisement([("2001:db8::", 100, 50)]), BOTH, BOTH, BOTH, True),
            "advertisement from afar": Case(frames.advertisement(hlim=64), NOBODY, HOST, HOST, True),
            "tcp, IPv6": Case(frames.tcp6(data), NOBODY, HOST, HOST, True),
            "udp, IPv6": Case(frames.udp6(data, dport=SERVICE_PORT), NOBODY, HOST, HOST, True),
            "fragment, IPv6": Case(frames.with_extension(frames.udp6(data), frames.IPv6ExtHdrFragment), NOBODY, HOST, HOST),
            "extension, IPv6": Case(frames.with_extension(frames.tcp6(data), frames.IPv6ExtHdrHopByHop), NOBODY, HOST, HOST),
            "another IPv6 address": Case(frames.udp6(data, dst="2001:db8::77"), NOBODY, HOST, HOST, True),
        }
    else:
        v6 = {
            "IPv6": Case(frames.ipv6(data), NOBODY, HOST, HOST, True),
            "IPv6, RoCE": Case(frames.roce6(data), NOBODY, HOST, HOST, True),
        }
    return only_host | groups | device | v6


LOCAL_FLAGS = {"dhcp": True, "mdns": True}
MODES: dict[str, dict[str, int]] = {
    "own": {},
    "shared": {"shared": 1},
    "host_answers": {"shared": 1, "answers_arp": 1, "answers_echo": 1},
}


def takes_everything(bench: Bench) -> None:
    """Empties what the units of the device were given."""
    for queue in (bench.frame.received, bench.payload.packets, bench.service_frame.received, bench.service_payload.packets,
                  bench.datagram_frame.received, bench.datagram_payload.packets, bench.tx.packets):  # fmt: skip
        queue.clear()


def of_device(bench: Bench, counts: dict[str, int]) -> bool:
    """A unit of the device had the frame."""
    return counts.get("rx_frame", 0) == 1 and not any(name.startswith("drop") for name in counts)


@cocotb.test()
@cocotb.parametrize(mode=list(MODES), ipv6=[False, True])
async def each_kind_of_frame_gets_to_those_whom_it_is_for(dut, mode: str, ipv6: bool) -> None:
    """One frame after the other: what is the card's comes as it is, and is counted as nobody's loss."""
    bench = await CardBench(dut).start(MODES[mode], ipv6=ipv6, **LOCAL_FLAGS)
    dut.service_ports.value = SERVICE_PORT | 68 << 16 | 5353 << 32
    await bench.settle()
    bench.counted()
    for name, case in cases(ipv6).items():
        who = getattr(case, mode)
        frame = frames.ethernet_padded(case.frame)
        bench.rx.send(frame)
        await bench.settle()
        got, bench.got = bench.got, []
        counts = bench.counted()
        sent = [Ether(packet) for packet, _ in bench.tx.packets]
        takes_everything(bench)
        assert of_device(bench, counts) == (who in (DEVICE, BOTH)), (name, counts)
        assert got == ([(frame, case.checked)] if who in (HOST, BOTH) else []), (name, who, got, counts)
        assert counts.get("rx_card", 0) == len(got), (name, counts)
        dropped = [key for key in counts if key.startswith("drop")]
        assert len(dropped) == (who == NOBODY), (name, counts)
        # The device answers what is asked of it, unless the host does.
        asked = name in ("echo", "echo, IPv6", "ARP for the device", "ARP asked directly", "solicitation")
        answers = [p for p in sent if (ARP in p and p[ARP].op == 2) or ICMP in p or ICMPv6ND_NA in p or p.type == 0x86DD]
        assert len(answers) == (asked and mode != "host_answers"), (name, sent)


RULES: dict[str, int] = {
    "none": 0, "drop": rules.DROP, "host": rules.HOST, "mirror": rules.MIRROR, "device": rules.DEVICE
}  # fmt: skip


@cocotb.test()
@cocotb.parametrize(rule=list(RULES), mode=["own", "shared"])
async def a_rule_decides_over_the_class(dut, rule: str, mode: str) -> None:
    """Whatever the frame is: it can be kept from the units of the device, RoCE and services included, and given to the host or
    not. A wrong FCS and a frame that is too short are no matter of rules."""
    bench = await CardBench(dut).start(MODES[mode], ipv6=True, **LOCAL_FLAGS)
    dut.service_ports.value = SERVICE_PORT | 68 << 16 | 5353 << 32
    dut.classified.value = RULES[rule]  # the lowest bits are the decision
    await bench.settle()
    bench.counted()
    for name, case in cases(True).items():
        who = getattr(case, mode)
        by_device, by_host = who in (DEVICE, BOTH), who in (HOST, BOTH)
        by_device = by_device and rule not in ("drop", "host")
        by_host = {"drop": False, "device": False, "host": True, "mirror": True}.get(rule, by_host)
        frame = frames.ethernet_padded(case.frame)
        bench.rx.send(frame)
        await bench.settle()
        got, bench.got = bench.got, []
        counts = bench.counted()
        takes_everything(bench)
        assert of_device(bench, counts) == by_device, (name, counts)
        assert [packet for packet, _ in got] == ([frame] if by_host else []), (name, counts)
        assert counts.get("rx_card", 0) == by_host, (name, counts)
        if rule == "drop":  # it is counted by its entry
            assert not any(key.startswith(("drop", "rx_frame")) for key in counts), (name, counts)
        bench.rx.send(frame, bad=True)
        bench.rx.send(frame[:20])
        await bench.settle()
        counts = bench.counted()
        assert not bench.got and (counts["drop_fcs"], counts["drop_runt"]) == (1, 1), (name, counts)
        takes_everything(bench)


@cocotb.test()
async def a_rule_chooses_the_pair(dut) -> None:
    """And what is changed in the frame. What is no matter of rules is not changed."""
    bench = await CardBench(dut).start(MODES["shared"])
    verdict = struct("card_pkg::card_verdict_t")
    flows, edits = set(), set()

    async def watch() -> None:
        while True:
            await RisingEdge(dut.clk)
            if int(dut.card_rx_tvalid.value) and int(dut.card_rx_tlast.value):
                found = verdict.unpack(int(dut.card_rx_verdict.value))
                flows.add(int(found.flow))
                edits.add((found.edit.pcp_set and found.edit.pcp, found.edit.dscp_set and found.edit.dscp))

    cocotb.start_soon(watch())
    for number in range(4):
        flows.clear()
        edits.clear()
        dut.classified.value = rules.HOST | rules.pair(number) | rules.edit(pcp=number + 1, dscp=60 - number)
        for _ in range(8):
            bench.rx.send(frames.tcp(b"x" * 60))
        await bench.settle()
        assert flows == {number} and edits == {(number + 1, 60 - number)}
        assert len(bench.got) == 8 * (number + 1)


@cocotb.test()
@cocotb.parametrize(ipv6=[False, True])
async def all_to_its_own_address_is_the_cards(dut, ipv6: bool) -> None:
    """Whatever it is, RoCE and the ports of services too; and nothing to other stations, unless the card is promiscuous. Nobody has
    a frame with a wrong FCS."""
    bench = await CardBench(dut).start(ipv6=ipv6, **LOCAL_FLAGS)
    unicast = {name: case for name, case in cases(ipv6).items() if not case.frame[0] & 1}
    for promiscuous in (0, 1):
        bench.set_card(promiscuous=promiscuous)
        for destination in (CARD_MAC, STRANGER):
            wanted = []
            bench.counted()
            for case in unicast.values():
                frame = frames.ethernet_padded(frames.to(destination, case.frame))
                bench.rx.send(frame, bad=True)
                bench.rx.send(frame)
                wanted.append(frame)
            await bench.settle()
            counts = bench.counted()
            assert counts.pop("drop_fcs") == len(wanted)
            if destination == CARD_MAC or promiscuous:
                assert [packet for packet, _ in bench.got] == wanted
                assert counts == {"rx_card": len(wanted)}
            else:
                assert not bench.got
                assert counts == {"drop_not_ours": len(wanted)}
            bench.got.clear()
    # What a unit of the device takes is not shown to a promiscuous card, either; what none takes is.
    bench.rx.send(frames.roce(b"abcd"))
    bench.rx.send(segment := frames.tcp(b"abcd" * 8))
    await bench.settle()
    assert bench.got == [(segment, True)] and bench.frame.received
    takes_everything(bench)


@cocotb.test()
async def without_a_card_all_is_as_ever(dut) -> None:
    """A device that is built for a card, which is not there: frames are dropped and counted."""
    bench = await CardBench(dut).start()
    bench.set_card(present=0, shared=1, answers_arp=0)
    await wait_cycles(dut, 3)
    for case in cases(False).values():
        bench.rx.send(frames.ethernet_padded(case.frame))
        await bench.settle()
    assert bench.seen and not bench.got
    takes_everything(bench)
    assert "rx_card" not in bench.counted()


@cocotb.test()
async def a_device_that_is_no_other_station_answers(dut) -> None:
    """The host cannot be told to answer for a MAC address that is not its own: nobody would."""
    bench = await CardBench(dut).start({"answers_arp": 1, "answers_echo": 1})
    bench.rx.send(frames.ethernet_padded(frames.arp()))
    assert Ether(await bench.tx.recv())[ARP].op == 2
    bench.rx.send(frames.ping(b"x" * 60))
    assert ICMP in Ether(await bench.tx.recv())
    await bench.settle()
    assert not bench.got


@cocotb.test()
async def the_device_learns_though_the_host_answers(dut) -> None:
    """ARP requests that the host answers tell the device who asks."""
    bench = await CardBench(dut).start(MODES["host_answers"])
    bench.rx.send(frames.ethernet_padded(frames.arp()))
    await bench.settle()
    bench.query.send(frames.ip_number(frames.PEER_IP))
    answer = await bench.answer.recv()
    assert answer.found and answer.mac == int.from_bytes(frames.mac_bytes(frames.PEER_MAC), "big")
    await bench.settle()
    assert not bench.tx.packets and len(bench.got) == 1


@cocotb.test()
async def frames_of_the_devices_vlan_reach_the_card_with_their_tag(dut) -> None:
    """The device works in a VLAN; the card sees the line: tags and all, of every VLAN."""
    bench = CardBench(dut)
    vid, frame = 0x123, frames.tcp(random.randbytes(200))
    bench.set_card(shared=1)
    dut.local_addr.value = struct(LOCAL).pack(frames.local_addr())
    await start(dut)
    bench.set_link(vlan={"enable": 1, "vid": vid})
    cocotb.start_soon(bench._count())
    cocotb.start_soon(bench._verdicts())
    await bench.tx.recv()
    sent = []
    for size in [*range(4, 4 + 2 * BYTES), 1400]:
        sent += [
            frames.with_tag(frames.tcp(random.randbytes(size)), vid),
            frames.with_tag(frame, vid ^ 1),
            frames.tcp(random.randbytes(size)),
        ]
        sent += [frames.with_tag(frame, vid, service=True), frames.to(BROADCAST, frame)]
        bench.rx.send(frames.with_tag(frames.roce(bytes(size), 0x04), vid))
        for item in sent[-5:]:
            bench.rx.send(item)
    await bench.settle()
    assert [packet for packet, _ in bench.got] == sent
    assert [checked for _, checked in bench.got[:5]] == [True, False, False, False, False]
    assert bench.counts["rx_roce"] == 2 * BYTES + 1 and not any(name.startswith("drop") and n for name, n in bench.counts.items())
    takes_everything(bench)
    # What the card sends has the tags that the host gives it, and no other.
    bench.card_tx.send(out := frames.mac_bytes(BROADCAST) + frames.mac_bytes(frames.MAC) + frame[12:])
    assert await bench.tx.recv() == out


@cocotb.test()
async def every_length_arrives_as_it_came(dut) -> None:
    """From the shortest that a MAC gives to longer ones than the device itself takes, back to back, without a lost cycle."""
    bench = await CardBench(dut).start({"shared": 1})
    sizes = [*range(60, 60 + 2 * BYTES + 1), 4224, 4225, 4224 + BYTES, 8999, LONGEST]
    sent = []
    for size in sizes:
        raw = frames.ethertype(0x88B5, random.randbytes(size - 14))
        sent += [raw, frames.tcp(random.randbytes(max(size - 58, 0)))]
        bench.rx.send(raw)
        bench.rx.send(frames.ethernet_padded(sent[-1]))
        sent[-1] = sent[-1] if len(sent[-1]) >= 60 else None
    await bench.settle()
    got = [packet for packet, _ in bench.got]
    assert len(got) == len(sent)
    assert all(a == b for a, b in zip(got, sent, strict=True) if b)
    assert [checked for _, checked in bench.got] == [False, True] * len(sizes), "also in frames that are too long for the device"
    assert not [name for name, count in bench.counts.items() if name.startswith("drop") and count]


@cocotb.test()
async def frames_that_the_device_refuses_keep_the_order(dut) -> None:
    """The transport stands still and the stores are full: what does not fit is lost to both, the rest comes to the card whole, in
    order, and without a delay."""
    bench = await CardBench(dut).start({"shared": 1})
    bench.frame.stall = bench.payload.stall = 1.0
    sent = []
    for number in range(60):
        bench.rx.send(frames.roce(random.randbytes(random.choice([64, 1000, 4096])), 0x0A))
        sent.append(frames.ethertype(0x88B5, number.to_bytes(2, "big") + random.randbytes(random.choice([44, 500]))))
        bench.rx.send(sent[-1])
    await bench.rx.drained()
    await wait_cycles(dut, 40)
    got = [packet for packet, _ in bench.got]
    assert bench.seen == 120 and 0 < len(got) < len(sent)
    assert got == [frame for frame in sent if frame in got]
    assert bench.counts["drop_overflow"] + bench.counts["rx_card"] + bench.counts["rx_roce"] == 120
    bench.frame.stall = bench.payload.stall = 0.0
    await bench.settle()
    takes_everything(bench)


@cocotb.test()
async def a_flood_for_the_card_costs_the_device_nothing(dut) -> None:
    """Frames for the card at line rate: every RoCE frame among them comes through, with its payload, and no cycle is lost."""
    bench = await CardBench(dut).start({"shared": 1})
    roce, flood = [], 0
    for _ in range(60):
        for _ in range(random.randrange(1, 8)):
            bench.rx.send(frames.ethertype(0x88B5, random.randbytes(random.choice([46, 46, 1486]))))
            flood += 1
        wire = frames.roce(random.randbytes(random.choice([64, 1024])), 0x0A)
        roce.append(frames.judge(wire))
        bench.rx.send(wire)
    beats, begin = len(bench.rx._queue), bench.tx.cycle
    await bench.rx.drained()
    assert bench.tx.cycle - begin < beats + 20, "the line stopped"
    await bench.settle()
    assert len(bench.got) == flood
    assert [packet for packet, _ in bench.payload.packets] == [judged.payload for judged in roce]
    takes_everything(bench)


# ---- what the card sends ----


def of_card(size: int, dst: str = frames.PEER_MAC, src: str = CARD_MAC) -> bytes:
    return frames.mac_bytes(dst) + frames.mac_bytes(src) + b"\x88\xb5" + random.randbytes(size - 14)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def frames_are_sent_as_they_are(dut, stall: float) -> None:
    """Byte for byte, filled up to 60 bytes with zeros, among RoCE frames, and with no bubble."""
    bench = await CardBench(dut, stall).start()
    sizes = [*range(14, 63), *range(64, 64 + BYTES), 1514, 4300, LONGEST]
    sent = [of_card(size) for size in sizes]
    for frame in sent:
        bench.card_tx.send(frame)
    beats = bench.tx.beats
    spans = []
    for frame in sent:
        await bench.tx._wait(lambda: bool(bench.tx.packets), 20_000)
        spans.append(bench.tx.spans[0])
        assert await bench.tx.recv() == frame.ljust(60, b"\0")
    if not stall:
        assert spans[-1][1] - spans[0][0] + 1 == bench.tx.beats - beats
    await bench.settle()
    assert bench.counts["tx_card"] == len(sent) and not bench.counts.get("drop_card_source", 0)


@cocotb.test()
async def what_is_behind_the_end_of_a_short_frame_is_not_sent(dut) -> None:
    """The card's last beat has bytes of other frames behind its end: the pad is zero."""
    bench = await CardBench(dut).start()
    for size in (14, 20, 42, 59):
        frame = of_card(size)
        for at in range(0, size, BYTES):
            chunk = frame[at : at + BYTES]
            full = int.from_bytes(chunk + b"\xee" * (BYTES - len(chunk)), "little")
            bench.card_tx._enqueue((full, (1 << len(chunk)) - 1, int(at + BYTES >= size), 0))
        assert await bench.tx.recv() == frame.ljust(60, b"\0")


@cocotb.test()
async def a_card_sends_from_its_own_address_only(dut) -> None:
    """From others, also the device's, and to the address of MAC control, nothing leaves; with `any_source` all but these two."""
    bench = await CardBench(dut).start()
    pause = of_card(60, dst=PAUSE)
    spoofed = [of_card(size, src=src) for src in (frames.MAC, STRANGER, frames.PEER_MAC) for size in (14, 60, 700)]
    for frame in (*spoofed, pause, good := of_card(100)):
        bench.card_tx.send(frame)
    assert await bench.tx.recv() == good
    await bench.settle()
    assert not bench.tx.packets and bench.counted()["drop_card_source"] == len(spoofed) + 1
    bench.set_card(any_source=1)
    await wait_cycles(dut, 3)
    for frame in (*spoofed, pause, good):
        bench.card_tx.send(frame)
    for frame in (*spoofed[3:], good):
        assert await bench.tx.recv() == frame.ljust(60, b"\0")
    await bench.settle()
    assert bench.counted()["drop_card_source"] == 4
    # A card that shares the device's address uses it.
    bench.set_card(shared=1)
    await wait_cycles(dut, 3)
    for frame in (of_card(80), mine := of_card(80, src=frames.MAC)):
        bench.card_tx.send(frame)
    assert await bench.tx.recv() == mine
    await bench.settle()
    assert bench.counted() == {"tx_card": 1, "drop_card_source": 1}


@cocotb.test()
async def settings_that_change_under_load_hold_up_nobody(dut) -> None:
    """They change at any time, while the line is slow: a frame leaves as a whole or not at all, and all of RoCE does."""
    bench = await CardBench(dut).start()
    bench.tx.stall = 0.7
    sent, ours = [], []
    for _ in range(80):  # no further frame of the card follows, which would end what waits
        sent.append(of_card(random.choice([14, 60, 200]), src=random.choice([CARD_MAC, STRANGER, STRANGER])))
        bench.card_tx.send(sent[-1])
        ours.append(roce_to_send(bench, random.randbytes(64)))
        begin = bench.tx.cycle
        while bench.card_tx.busy or sum(packet[12:14] != OURS for packet, _ in bench.tx.packets) < len(ours):
            bench.set_card(any_source=random.getrandbits(1))
            await wait_cycles(dut, 1)
            assert bench.tx.cycle < begin + 2000, "RoCE waits for the card"
    await bench.settle()
    packets = [packet for packet, _ in bench.tx.packets]
    assert [packet for packet in packets if packet[12:14] != OURS] == ours
    passed = [packet for packet in packets if packet[12:14] == OURS]
    rest = iter(frame.ljust(60, b"\0") for frame in sent)
    assert all(frame in rest for frame in passed)
    counts = bench.counted()
    assert counts["tx_card"] == len(passed) and counts["tx_card"] + counts["drop_card_source"] == len(sent)
    assert sum(frame[6:12] == frames.mac_bytes(CARD_MAC) for frame in sent) <= len(passed) < len(sent)
    takes_everything(bench)


def roce_to_send(bench: Bench, payload: bytes) -> bytes:
    """Gives the first user, which is RoCE, a frame to send. Returns it as it must be on the line."""
    wire = frames.roce(payload, 0x0A)
    header = wire[: len(wire) - len(payload) - 4]
    bench.user[0].send(
        hdr_length=len(header), payload_length=len(payload), icrc=1,
        hdr=int.from_bytes(header.ljust(constant("packet_pkg::HDR_BYTES"), b"\0"), "big"),
    )  # fmt: skip
    bench.user_payload[0].send(payload)
    return wire


@cocotb.test()
@cocotb.parametrize(roce=some([1024, 64, 4096], 2), card=some([60, LONGEST, 1514], 2))
async def both_get_half_of_the_line(dut, roce: int, card: int) -> None:
    """RoCE and the card flood the line: whatever the size of their frames, each has half of the beats; all of it arrives, and there
    is no bubble."""
    bench = await CardBench(dut).start()
    total = 60_000 if WIDTH == 64 else 200_000
    ours = [roce_to_send(bench, random.randbytes(roce)) for _ in range(total // (roce + 74))]
    theirs = [of_card(card) for _ in range(total // card)]
    for frame in theirs:
        bench.card_tx.send(frame)
    begin = bench.tx.cycle
    half = total // 2 // BYTES
    while bench.tx.beats < 2 * half:
        await wait_cycles(dut, 50)
    first = [packet for packet, _ in bench.tx.packets]
    bytes_of_card = sum(len(packet) for packet in first if packet[12:14] == OURS)
    bytes_of_roce = sum(len(packet) for packet in first) - bytes_of_card
    beats_of_card = sum(-(-len(packet) // BYTES) for packet in first if packet[12:14] == OURS)
    beats = sum(-(-len(packet) // BYTES) for packet in first)
    assert abs(beats_of_card / beats - 0.5) < (LONGEST + 4200) / BYTES / beats, (bytes_of_card, bytes_of_roce)
    await bench.tx._wait(lambda: len(bench.tx.packets) == len(ours) + len(theirs), 40_000)
    span = bench.tx.spans[-1][1] - begin
    sent = [packet for packet, _ in bench.tx.packets]
    assert [packet for packet in sent if packet[12:14] == OURS] == theirs
    assert [packet for packet in sent if packet[12:14] != OURS] == ours
    assert span < sum(-(-len(packet) // BYTES) for packet in sent) + 40, "the line had bubbles"
    takes_everything(bench)


@cocotb.test()
async def a_card_that_has_waited_has_no_claim_to_all_of_the_line(dut) -> None:
    """After a long time without a frame the card has at most the longest frame in advance of RoCE, and the other way round."""
    bench = await CardBench(dut).start()
    for first, then in (("roce", "card"), ("card", "roce")):

        def send(who: str) -> None:
            if who == "roce":
                roce_to_send(bench, random.randbytes(1000))
            else:
                bench.card_tx.send(of_card(1000))

        for _ in range(40):
            send(first)
        await wait_cycles(dut, 30_000 // BYTES)
        bench.tx.packets.clear()
        for _ in range(20):
            send(then)
        await wait_cycles(dut, 20_000 // BYTES)
        kinds = ["card" if packet[12:14] == OURS else "roce" for packet, _ in bench.tx.packets]
        in_advance = kinds.index(first, kinds.index(then)) - kinds.index(then)
        assert in_advance <= 12, kinds
        await bench.settle()
        takes_everything(bench)


@cocotb.test()
async def the_card_obeys_flow_control(dut) -> None:
    """PFC for the priority of other frames stops the card and not RoCE, PAUSE stops both, PFC of RoCE does not stop the card."""
    bench = await CardBench(dut).start()
    quanta, cycles = 100, 400
    for stopped in ("roce", "other", "all"):
        classes = {"roce": 1 << 3, "other": 1 << 0, "all": 0}[stopped]
        times = b"".join((quanta if classes >> n & 1 else 0).to_bytes(2, "big") for n in range(8))
        body = b"\0\1" + quanta.to_bytes(2, "big") if stopped == "all" else b"\1\1" + classes.to_bytes(2, "big") + times
        bench.rx.send(frames.to(PAUSE, frames.ethertype(0x8808, body.ljust(46, b"\0"))))
        await bench.rx.drained()
        await wait_cycles(dut, 8)
        begin = bench.tx.cycle
        ours = roce_to_send(bench, b"r" * 64)
        bench.card_tx.send(theirs := of_card(200))
        times_of: dict[bytes, int] = {}
        for _ in range(2):
            await bench.tx._wait(lambda: bool(bench.tx.packets), 4 * cycles)
            packet, _ = bench.tx.packets.popleft()
            times_of[packet] = bench.tx.spans.popleft()[0] - begin
        assert (times_of[ours] > cycles // 2) == (stopped in ("roce", "all")), (stopped, times_of)
        assert (times_of[theirs] > cycles // 2) == (stopped in ("other", "all")), (stopped, times_of)
        await wait_cycles(dut, 2 * cycles)


@cocotb.test()
async def both_directions_under_load(dut) -> None:
    """Random frames of all kinds both ways with stalls on every port: nothing is mixed up."""
    bench = await CardBench(dut, 0.2).start({"shared": 1})
    bench.rx.stall = 0.3
    wanted, roce, sent, ours = [], [], [], []
    for _ in range(150):
        data = random.randbytes(random.choice([46, 64, 300, 1400]))
        kind = random.choice(["roce", "roce", "tcp", "other", "group", "bad"])
        frame = {"roce": frames.roce(data, 0x0A), "tcp": frames.tcp(data), "other": frames.ethertype(0x88B5, data),
                 "group": frames.to(BROADCAST, frames.udp(data)), "bad": frames.tcp(data)}[kind]  # fmt: skip
        bench.rx.send(frame, kind == "bad")
        if kind == "roce":
            roce.append(frames.judge(frame).payload)
        elif kind != "bad":
            wanted.append(frame)
        if random.random() < 0.5:
            sent.append(of_card(random.choice([14, 60, 61, 700]), src=frames.MAC))
            bench.card_tx.send(sent[-1])
        else:
            ours.append(roce_to_send(bench, random.randbytes(random.choice([4, 500]))))
        if random.random() < 0.3:
            await wait_cycles(dut, random.randrange(200))
    await bench.rx.drained()
    await bench.card_tx.drained()
    await bench.tx._wait(lambda: len(bench.tx.packets) == len(sent) + len(ours), 40_000)
    await bench.settle()
    assert [packet for packet, _ in bench.got] == wanted
    assert [packet for packet, _ in bench.payload.packets] == [payload for payload in roce if payload]
    packets = [packet for packet, _ in bench.tx.packets]
    assert [packet for packet in packets if packet[12:14] == OURS] == [frame.ljust(60, b"\0") for frame in sent]
    assert [packet for packet in packets if packet[12:14] != OURS] == ours
    takes_everything(bench)


@pytest.mark.parametrize("width", some([64, 512]))
def test_network_card(width: int) -> None:
    run(
        "packet_plane",
        __file__,
        params={"DATA_W": width, "USERS": USERS, "ROCE_USERS": 1, "DATAGRAM_PORTS": len(KERNEL_PORTS), "CARD": 1},
        ports=ports(width),
        env={"WIDTH": str(width)},
    )
