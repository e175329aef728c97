# SPDX-License-Identifier: Apache-2.0
"""packet_plane: the parts together, wire to wire. Replies are compared with scapy's idea of them."""

import os
import random
from typing import Any

import cocotb
import packet_frames as frames
import pytest
from cocotb.triggers import RisingEdge
from nacelle_tb.bench import run
from nacelle_tb.long import alternately, some
from nacelle_tb.record import headers, says
from nacelle_tb.streams import start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from plane_bench import KERNEL_PORTS, LOCAL, SERVICE_PORT, UNWANTED, USERS, Bench, ports
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether

WIDTH = int(os.environ.get("WIDTH", "512"))
ECHO_PAUSE = 8  # of hold_budget


def echo_reply(request: bytes) -> bytes:
    """What must come back, checksums by scapy."""
    asked = Ether(request)
    if IPv6 in asked:
        reply = Ether(dst=asked.src, src=frames.MAC) / asked[IPv6].copy()
        reply[IPv6].src, reply[IPv6].dst, reply[IPv6].hlim, reply[IPv6].fl = asked[IPv6].dst, asked[IPv6].src, 64, 0
        echo = asked[ICMPv6EchoRequest]
        reply[IPv6].remove_payload()
        return bytes(reply / ICMPv6EchoReply(id=echo.id, seq=echo.seq, data=echo.data)).ljust(60, b"\0")
    reply = Ether(dst=asked.src, src=frames.MAC) / asked[IP].copy()
    reply[IP].src, reply[IP].dst, reply[IP].ttl = asked[IP].dst, asked[IP].src, 64
    reply[ICMP].type = 0
    del reply[IP].chksum, reply[ICMP].chksum
    return bytes(reply).ljust(60, b"\0")


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def echo_requests_of_every_size_are_answered(dut, stall: float) -> None:
    bench = await Bench(dut, stall).start()
    sizes = [0, 1, 17, 18, 21, 22, 23, 56, 1472, 4182] + [random.randrange(3000) for _ in range(10)]
    requests = [frames.ping(random.randbytes(size), ttl=random.randrange(256), tos=random.randrange(256)) for size in sizes]
    requests += [frames.ping(value) for value in (b"\xff\xff" * 5, b"\0\0" * 5, b"\xff\xfe" * 4)]
    for request in requests:
        if stall:  # what they wait must be paid for
            await wait_cycles(dut, ECHO_PAUSE * len(request))
        bench.rx.send(frames.ethernet_padded(request))
    for request in requests:
        assert await bench.tx.recv() == echo_reply(request)
    await bench.quiet()
    assert bench.counts["rx_icmp"] == len(requests)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def ipv6_echo_requests_of_every_size_are_answered(dut, stall: float) -> None:
    """From the address that was asked, among echo requests of IPv4."""
    bench = await Bench(dut, stall).start(ipv6=True)
    sizes = [0, 1, 2, 3, 17, 18, 56, 1432, 4160] + [random.randrange(3000) for _ in range(8)]
    requests = [frames.ping6(random.randbytes(size), tc=random.randrange(256), fl=random.getrandbits(20)) for size in sizes]
    requests += [frames.ping6(value, src=frames.PEER_LINK_LOCAL, dst=frames.LINK_LOCAL) for value in (b"\xff\xff" * 5, b"\0\0" * 5)]
    requests += [frames.ping6(b"\xff\xfe" * 4, src=frames.PEER_LINK_LOCAL), frames.ping(b"abc"), frames.ping(random.randbytes(300))]
    random.shuffle(requests)
    for request in requests:
        await wait_cycles(dut, ECHO_PAUSE * len(request))  # what they wait must be paid for
        bench.rx.send(frames.ethernet_padded(request))
    for request in requests:
        assert await bench.tx.recv() == echo_reply(request)
    await bench.quiet()
    assert bench.counts["rx_icmp"] == len(requests)


@cocotb.test()
async def ipv6_goes_its_ways(dut) -> None:
    """RoCE to the transport, neighbour discovery to the cache, advertisements of routers to the services; others are counted,
    and no service listens."""
    bench = await Bench(dut).start(ipv6=True)
    peer = frames.ip_number(frames.PEER_GLOBAL)
    bench.query.send(peer)
    assert not (await bench.answer.recv()).found
    assert Ether(await bench.tx.recv())[ICMPv6ND_NS].tgt == frames.PEER_GLOBAL
    bench.rx.send(frames.advertisement())
    await bench.quiet()
    bench.query.send(peer)
    answer = await bench.answer.recv()
    assert answer.found and answer.mac == int.from_bytes(frames.mac_bytes(frames.PEER_MAC), "big")
    bench.rx.send(frames.solicitation())
    assert Ether(await bench.tx.recv())[ICMPv6ND_NA].tgt == frames.GLOBAL
    offered = frames.router_advertisement([("2001:db8::", 100, 50)])
    good = frames.roce6(random.randbytes(300), 0x0A)
    others = [frames.udp6(b"a" * 40, dport=SERVICE_PORT), frames.tcp6(b"a"), frames.udp6(b"a", src="ff02::1")]
    others += [frames.icmp6(128, b"abcd", src=frames.PEER_LINK_LOCAL, dst="fe80::5")]
    for frame in (offered, good, *others, frames.solicitation(options=bytes(8))):
        bench.rx.send(frame)
    got = await bench.service_frame.recv()
    judged = frames.judge(offered, ipv6=True)
    assert got.cls == constant("frame_pkg::CLASS_RA") and says(got.headers, headers("RA", offered))
    assert await bench.service_payload.recv() == judged.payload
    got, judged = await bench.frame.recv(), frames.judge(good, ipv6=True)
    assert says(got.headers, headers("ROCE", good)) and await bench.payload.recv() == judged.payload
    await bench.quiet()
    counts = {name: count for name, count in bench.counts.items() if count}
    assert counts == {
        "rx_frame": 7, "rx_roce": 1, "rx_nd": 4, "rx_udp": 1, "tx_frame": 3, "drop_udp_port": 1, "drop_tcp": 1,
        "drop_ipv6_header": 1, "drop_not_ours": 1, "drop_nd": 1,
    }  # fmt: skip


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def classes_do_not_disturb_each_other(dut, stall: float) -> None:
    bench = await Bench(dut, stall).start()
    roce, replies, udp, silent = [], 0, 0, 0
    for _ in range(200):
        kind = random.choice(["roce", "roce", "roce", "udp", "ping", "arp", "silent"])
        data = random.randbytes(random.choice([0, random.randrange(300)]))
        if kind == "roce":
            frame = frames.roce(data, random.choice(list(frames.EXTENSION)))
            roce.append(frames.judge(frame))
        elif kind == "udp":
            frame, udp = frames.udp(data), udp + 1
        elif kind == "ping":
            frame, replies = frames.ping(data), replies + 1
        elif kind == "arp":
            frame, replies = frames.arp(), replies + 1
        else:
            frame, silent = frames.ping(data, src=random.choice(["255.255.255.255", "224.0.0.1", "0.0.0.0"])), silent + 1
        bench.rx.send(frames.ethernet_padded(frame))
        if kind in ("ping", "arp", "silent"):  # as fast as these are answered
            await bench.rx.drained()
            await wait_cycles(dut, ECHO_PAUSE * 60)
    for judged in roce:
        got = await bench.frame.recv()
        assert got.cls == constant("frame_pkg::CLASS_ROCE")
        assert got.payload_length == len(judged.payload)
        assert says(got.headers, headers("ROCE", judged.frame))
        if judged.payload:
            assert await bench.payload.recv() == judged.payload
    for _ in range(replies):
        await bench.tx.recv()
    await bench.quiet()
    counts = {name: count for name, count in bench.counts.items() if count}
    assert counts == {
        "rx_frame": 200, "rx_roce": len(roce), "rx_udp": udp, "rx_icmp": 200 - len(roce) - udp - counts["rx_arp"],
        "rx_arp": counts["rx_arp"], "tx_frame": replies + 1, "drop_udp_port": udp, "drop_icmp": silent,
    }  # fmt: skip


DROPS = {
    "TCP": "drop_tcp", "IP": "drop_ip_protocol", "IPV6": "drop_ipv6", "VLAN": "drop_vlan", "GROUP": "drop_group",
    "OTHER": "drop_ethertype",
}  # fmt: skip


@cocotb.test()
async def classes_without_a_route_are_counted_once_and_disturb_nothing(dut) -> None:
    """Each kind of frame that the device has no protocol for raises its own counter by one, and the RoCE frame behind it passes."""
    bench = await Bench(dut).start()
    sent: dict[str, int] = {}
    for cls, several in frames.frames_without_route().items():
        for frame in several:
            good = frames.roce(random.randbytes(len(frame) % 131))
            bench.rx.send(frames.ethernet_padded(frame))
            bench.rx.send(frames.ethernet_padded(good))
            judged = frames.judge(good)
            got = await bench.frame.recv()
            assert got.payload_length == len(judged.payload) and says(got.headers, headers("ROCE", judged.frame))
            if judged.payload:
                assert await bench.payload.recv() == judged.payload
            sent[DROPS[cls]] = sent.get(DROPS[cls], 0) + 1
    await bench.quiet()
    total = sum(sent.values())
    counts = {name: count for name, count in bench.counts.items() if count}
    assert counts == sent | {"rx_frame": 2 * total, "rx_roce": total, "tx_frame": 1}


@cocotb.test()
async def messages_to_a_service(dut) -> None:
    """UDP to the port of a service goes there, whole; to any other, to port 0, or from a source that nobody can answer it does not;
    a bad checksum gets nowhere. RoCE between them passes."""
    bench = await Bench(dut).start()
    wanted: list[frames.Judgement] = []
    ports = dropped = bad = roce = 0
    for n in range(120):
        data = random.randbytes(random.choice([1, 4, 18, 64, 300, 1472]))
        kind = random.choice(["service", "service", "port", "zero", "source", "checksum", "roce"])
        if kind == "roce":
            roce += 1
            frame = frames.roce(data)
        elif kind == "service":
            frame = frames.udp(data, checksum=n % 2 == 0, dport=SERVICE_PORT, src=f"10.0.0.{n + 2}")
            wanted.append(frames.judge(frame))
        elif kind == "checksum":
            frame, bad = bytearray(frames.udp(data, dport=SERVICE_PORT)), bad + 1
            frame[42] ^= 1
        else:
            dport = {"port": random.choice([SERVICE_PORT + 1, SERVICE_PORT ^ 0x8000, 67]), "zero": 0}.get(kind, SERVICE_PORT)
            source = random.choice(["255.255.255.255", "224.0.0.1", "0.0.0.0"]) if kind == "source" else frames.PEER_IP
            frame, dropped = frames.udp(data, dport=dport, src=source), dropped + 1
        ports += kind in ("service", "port", "zero", "source")
        bench.rx.send(frames.ethernet_padded(bytes(frame)))
    for judged in wanted:
        got = await bench.service_frame.recv()
        assert got.cls == constant("frame_pkg::CLASS_UDP") and got.payload_length == len(judged.payload)
        assert says(got.headers, headers("UDP", judged.frame))
        assert await bench.service_payload.recv() == judged.payload
    for _ in range(roce):
        await bench.frame.recv()
        await bench.payload.recv()
    await bench.quiet()
    assert not bench.service_frame.received and not bench.service_payload.packets
    counts = {name: count for name, count in bench.counts.items() if count}
    expected = {"rx_frame": ports + roce, "rx_udp": ports, "rx_roce": roce, "tx_frame": 1, "drop_udp_port": dropped}
    assert counts == expected | {"drop_udp_checksum": bad}
    # Not even a service that is off takes what goes to port 0.
    dut.service_ports.value = 0
    bench.rx.send(frames.udp(b"a" * 40, dport=0))
    await bench.quiet()
    assert bench.counts["drop_udp_port"] == dropped + 1


@cocotb.test()
async def both_directions_at_line_rate(dut) -> None:
    """Received frames come through and sent ones leave without a lost cycle, at the same time."""
    bench = await Bench(dut).start()
    received = [frames.roce(random.randbytes(size), 0x0A) for size in range(0, 4097, 256)]
    sent = [frames.roce(random.randbytes(size), 0x0A) for size in range(4, 4097, 124)]
    for wire in received:
        bench.rx.send(wire)
    for wire in sent:
        judged = frames.judge(wire)
        header = wire[: len(wire) - len(judged.payload) - 4]
        bench.user[0].send(
            hdr_length=len(header), payload_length=len(judged.payload), icrc=1,
            hdr=int.from_bytes(header.ljust(constant("packet_pkg::HDR_BYTES"), b"\0"), "big"),
        )  # fmt: skip
        bench.user_payload[0].send(judged.payload)
    beats = bench.tx.beats
    spans = []
    for wire in sent:
        await bench.tx._wait(lambda: bool(bench.tx.packets), 2000)
        spans.append(bench.tx.spans[0])
        assert await bench.tx.recv() == wire
    assert spans[-1][1] - spans[0][0] + 1 == bench.tx.beats - beats
    for wire in received:
        await bench.frame.recv()
        judged = frames.judge(wire)
        if judged.payload:
            assert await bench.payload.recv() == judged.payload
    await bench.quiet()


@cocotb.test()
async def addresses_are_resolved(dut) -> None:
    bench = await Bench(dut).start()
    peer = frames.ip_number(frames.PEER_IP)
    bench.query.send(peer)
    assert not (await bench.answer.recv()).found
    request = Ether(await bench.tx.recv())
    assert request[ARP].pdst == frames.PEER_IP
    bench.rx.send(frames.arp(op=2, dst=frames.MAC, hwdst=frames.MAC))
    await bench.quiet()
    bench.query.send(peer)
    answer = await bench.answer.recv()
    assert answer.found
    assert answer.mac == int.from_bytes(frames.mac_bytes(frames.PEER_MAC), "big")
    await bench.quiet()


@cocotb.test()
async def an_arp_flood_does_not_hold_up_roce(dut) -> None:
    """ARP frames back to back, more than can be dealt with: the line never stops, and RoCE frames among them come in time."""
    bench = await Bench(dut).start()
    wanted, roce = 300, []
    for n in range(wanted):
        bench.rx.send(frames.ethernet_padded(frames.arp(psrc=f"10.0.0.{n % 200 + 20}")))
        if n % 10 == 9:
            roce.append(frames.judge(frames.roce(random.randbytes(64), 0x0A)))
            bench.rx.send(frames.ethernet_padded(frames.roce(roce[-1].payload, 0x0A)))
    beats = len(bench.rx._queue)
    begin = bench.tx.cycle
    await bench.rx.drained()
    assert bench.tx.cycle - begin < beats + 20, "the line stopped"
    for judged in roce:
        assert (await bench.frame.recv()).payload_length == len(judged.payload)
        assert await bench.payload.recv() == judged.payload
    await wait_cycles(dut, 2000)
    assert bench.counts["rx_arp"] == wanted and len(roce) == wanted // 10
    if WIDTH == 512:  # at 64 bits a frame takes about as long as its answer
        assert 0 < bench.counts["drop_arp_overflow"] < wanted - 16
    assert len(bench.tx.packets) == wanted - bench.counts.get("drop_arp_overflow", 0)
    bench.tx.packets.clear()
    await bench.quiet()


@cocotb.test()
async def an_echo_flood_does_not_hold_up_roce(dut) -> None:
    """Echo requests back to back, while the way out is half closed: those that are not answered at once are dropped and counted;
    RoCE frames among them all come through."""
    bench = await Bench(dut).start()
    bench.tx.stall = 0.5
    asked, roce = 100, []
    for _ in range(asked):
        bench.rx.send(frames.ping(random.randbytes(1000)))
        roce.append(frames.judge(frames.roce(random.randbytes(64), 0x0A)))
        bench.rx.send(frames.ethernet_padded(frames.roce(roce[-1].payload, 0x0A)))
    for judged in roce:
        assert (await bench.frame.recv()).payload_length == len(judged.payload)
        assert await bench.payload.recv() == judged.payload
    await bench.rx.drained()
    await wait_cycles(dut, 2000)
    assert bench.counts["rx_icmp"] == asked and "drop_overflow" not in {name for name, count in bench.counts.items() if count}
    answered = len(bench.tx.packets)
    assert 1 <= answered < asked / 2
    assert bench.counts["drop_icmp_rate"] == asked - answered
    bench.tx.packets.clear()
    await bench.quiet()


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
async def the_neighbour_stops_what_it_names(dut) -> None:
    """PFC stops RoCE and lets an echo through, or the reverse; PAUSE stops both; all is sent in the end."""
    bench = await Bench(dut).start()
    group, ping = "01:80:c2:00:00:01", frames.ping(b"e" * 100)
    quanta, cycles = 100, 400
    for stopped in ("roce", "other", "all", "nothing"):
        classes = {"roce": 1 << 3, "other": 1 << 0, "all": 0xFFFF, "nothing": 1 << 5}[stopped]
        times = b"".join((quanta if classes >> n & 1 else 0).to_bytes(2, "big") for n in range(8))
        body = b"\0\1" + quanta.to_bytes(2, "big") if stopped == "all" else b"\1\1" + classes.to_bytes(2, "big") + times
        bench.rx.send(frames.to(group, frames.ethertype(0x8808, body.ljust(46, b"\0"))))
        await bench.rx.drained()
        await wait_cycles(dut, 6)
        begin = bench.tx.cycle
        roce = roce_to_send(bench, random.randbytes(64))
        bench.rx.send(ping)
        came = {}
        for _ in range(2):
            frame = await bench.tx.recv()
            came["roce" if frame == roce else "other"] = bench.tx.cycle - begin
            assert frame in (roce, echo_reply(ping))
        for name, after in came.items():
            assert (after > cycles - 20) == (stopped in (name, "all")), (stopped, came)
            assert after < cycles + 150
        await bench.quiet()
        await wait_cycles(dut, ECHO_PAUSE * cycles)  # an echo request pays for its wait
    counts = bench.counts
    assert (counts["rx_pause"], counts["rx_pfc"], counts["drop_group"]) == (1, 3, 4)
    assert all(2 * (cycles - 8) <= counts[f"stopped_{name}"] <= 2 * cycles + 8 for name in ("roce", "other"))
    bench.set_link(pause=0, pfc=0)
    bench.rx.send(frames.to(group, frames.ethertype(0x8808, b"\0\1\xff\xff".ljust(46, b"\0"))))
    bench.rx.send(ping)
    assert await bench.tx.recv(500) == echo_reply(ping)


@cocotb.test()
async def a_device_in_a_vlan(dut) -> None:
    """Takes frames of its VLAN, and tags what it sends: RoCE by its priority, echo and ARP by the other."""
    bench = Bench(dut)
    vid = 0x123
    await start(dut)
    bench.set_link(vlan={"enable": 1, "vid": vid})
    dut.local_addr.value = struct(LOCAL).pack(frames.local_addr())
    cocotb.start_soon(bench._count())
    announcement = Ether(await bench.tx.recv())
    assert announcement[ARP].pdst == frames.IP_ADDRESS
    for untagged in (0, 1):
        bench.set_link(vlan={"enable": 1, "vid": vid, "untagged": untagged})
        await wait_cycles(dut, 4)
        before = dict(bench.counts)
        ping = frames.ping(random.randbytes(70))
        good = frames.roce(random.randbytes(100), 0x0A)
        for tagged in (frames.with_tag(ping, vid + 1), ping, frames.with_tag(ping, 0, 4), frames.with_tag(ping, vid, service=True)):
            bench.rx.send(tagged)
        bench.rx.send(frames.with_tag(frames.ethernet_padded(frames.arp()), vid))
        bench.rx.send(frames.with_tag(good, vid, 3))
        wanted = [frames.with_tag(echo_reply(ping), vid)] * 2 * untagged
        for frame in wanted:
            assert await bench.tx.recv() == frame
        reply = Ether(await bench.tx.recv())
        assert reply[Dot1Q].vlan == vid and reply[Dot1Q].prio == 0 and reply[ARP].op == 2
        got = await bench.frame.recv()
        assert got.headers.l2.vlan.vid == vid and says(got.headers.l3, headers("ROCE", good)["l3"])
        assert await bench.payload.recv() == frames.judge(good).payload
        sent = roce_to_send(bench, random.randbytes(200))
        assert await bench.tx.recv() == frames.with_tag(sent, vid, 3)
        await bench.quiet()
        assert bench.counts["drop_vlan"] - before.get("drop_vlan", 0) == 4 - 2 * untagged


async def watch_unwanted(dut, shown: list[Any]) -> None:
    """What the plane says of packets that nobody takes."""
    while True:
        await RisingEdge(dut.clk)
        if int(dut.unwanted_valid.value):
            shown.append(struct(UNWANTED).unpack(int(dut.unwanted.value)))


@cocotb.test()
async def whose_senders_may_be_told(dut) -> None:
    """What nobody takes is shown, with its header as it came; what is no single host's is not."""
    bench = await Bench(dut).start()
    shown: list[Any] = []
    cocotb.start_soon(watch_unwanted(dut, shown))
    told = [frames.udp(b"x" * 50, dport=9), frames.tcp(b"abc"), frames.other_ip(b"12345678"), frames.udp(b"", dport=7)]
    silent = [frames.udp(b"x", dport=9, src=source) for source in ("255.255.255.255", "224.0.0.1", "0.0.0.0")]
    silent += [frames.to("01:00:5e:00:00:01", told[0]), frames.to("ff:ff:ff:ff:ff:ff", told[1]), frames.ping(b"", type=3)]
    silent += [frames.ping(b"x"), frames.udp(b"x", dport=SERVICE_PORT), frames.roce(b"x" * 8), frames.ipv6(b"x")]
    for frame in [*told, *silent]:
        bench.rx.send(frames.ethernet_padded(frame))
    await bench.rx.drained()
    await wait_cycles(dut, 200)
    assert len(shown) == len(told)
    for frame, got in zip(told, shown, strict=True):
        assert got.mac == int.from_bytes(frame[6:12], "big")
        assert struct("packet_pkg::ipv4_hdr_t").pack(got.ipv4) == int.from_bytes(frame[14:34], "big")
        assert got.first == int.from_bytes(frame[34:42], "big")


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]))
async def datagrams_to_a_kernel_have_a_route_of_their_own(dut, stall: float) -> None:
    """Those from one host to the device alone, to a port that a kernel has and no service. RoCE frames among them come in each of
    their beats, and nobody is told that a port is unreachable."""
    bench = await Bench(dut, stall).start()
    bench.datagram_frame.stall = bench.datagram_payload.stall = 0.0
    shown: list[Any] = []
    cocotb.start_soon(watch_unwanted(dut, shown))
    wanted, roce, dropped, services = [], [], 0, 0
    for n in range(60):
        data = random.randbytes(random.choice([0, 1, 8, 100, 1400]))
        kind = random.choice(["kernel", "kernel", "kernel", "roce", "group", "source", "service", "off"])
        if kind == "roce":
            roce.append(data.ljust(8, b"r"))
            bench.rx.send(frames.roce(roce[-1]))
            continue
        if kind == "kernel":
            frame = frames.udp(data, checksum=n % 2 == 0, dport=random.choice(KERNEL_PORTS), src=f"10.0.0.{n + 2}")
            wanted.append(frames.judge(frame))
        elif kind == "service":
            frame, services = frames.udp(data or b"1", dport=SERVICE_PORT), services + 1
        else:
            source = random.choice(["255.255.255.255", "224.0.0.1", "0.0.0.0"]) if kind == "source" else frames.PEER_IP
            frame, dropped = (
                frames.udp(data, dport=KERNEL_PORTS[0] ^ 64 if kind == "off" else KERNEL_PORTS[0], src=source),
                dropped + 1,
            )
            if kind == "group":
                frame = frames.to("01:00:5e:00:00:01", frame)
        bench.rx.send(frames.ethernet_padded(frame))
    for judged in wanted:
        got = await bench.datagram_frame.recv()
        assert got.cls == constant("frame_pkg::CLASS_UDP") and got.payload_length == len(judged.payload)
        assert says(got.headers, headers("UDP", judged.frame))
        if judged.payload:
            assert await bench.datagram_payload.recv() == judged.payload
    for data in roce:
        await bench.frame.recv()
        assert await bench.payload.recv() == data
    for _ in range(services):
        await bench.service_frame.recv()
        await bench.service_payload.recv()
    await bench.quiet()
    assert not bench.datagram_frame.received and not bench.datagram_payload.packets
    assert bench.counts.get("drop_udp_port", 0) + bench.counts.get("drop_group", 0) == dropped
    assert all(got.first >> 32 & 0xFFFF not in KERNEL_PORTS for got in shown if got.ipv4.src >> 28 != 0xE)
    # A service comes first.
    dut.datagram_ports.value = SERVICE_PORT
    bench.rx.send(frames.udp(b"both", dport=SERVICE_PORT))
    await bench.service_frame.recv()
    await bench.quiet()
    assert not bench.datagram_frame.received


@pytest.mark.parametrize("width", some([64, 512]))
def test_packet_plane(width: int) -> None:
    run(
        "packet_plane",
        __file__,
        params={"DATA_W": width, "USERS": USERS, "ROCE_USERS": 1, "DATAGRAM_PORTS": len(KERNEL_PORTS)},
        ports=ports(width),
        env={"WIDTH": str(width)},
    )
