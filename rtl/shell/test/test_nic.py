# SPDX-License-Identifier: Apache-2.0
"""A device with a network card for the driver of its host, through the slot: frames both ways beside WRITEs of RoCE, who answers
for a shared address, interrupts, resets, floods. The driver is written from the standard; scapy judges the frames."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from nacelle_sim import NO_RATE_LIMIT
from nacelle_tb.cci import address
from nacelle_tb.classifier import DROP, MIRROR, Rule, edit, edited
from nacelle_tb.load import Flow, Load
from nacelle_tb.long import rounds
from nacelle_tb.nic import IOVA, SIZE, Nic, now
from nacelle_tb.session import SimDevice, configure
from nacelle_tb.virtio import DATA_VALID, receive
from scapy.contrib.roce import BTH
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw

MSIX = 0x1000
DEVICE_AT = 0x80
SHARED, PROMISCUOUS, HOST_ARP, HOST_ECHO, ANY_SOURCE, LINK, BUILT = 1, 2, 4, 8, 16, 1 << 30, 1 << 31
LONG = 9014
"""Bytes of the longest frame without a tag"""


@pytest.fixture
def device() -> Iterator[SimDevice]:
    """In a slot, with host memory for the card's function. It has broken no rule of the slot at the end."""
    random.seed(1)
    with SimDevice(64, device="nic", line_rate_mbps=NO_RATE_LIMIT) as device:
        for function in (device.slot, device.slot.card):
            function.enable()
        device.slot.card.map(IOVA, SIZE)
        yield device
        device.slot.check()


@pytest.fixture
def nic(device: SimDevice) -> Nic:
    configure(device)
    return Nic(device).begin()


def kinds(nic: Nic, destination: str, own_ip: str) -> list[bytes]:
    """Frames that no unit of the device takes."""
    data = random.randbytes(random.choice([40, 300, 1400]))
    ether, ip = nic.ether(destination), IP(src=nic.peer.ip, dst=own_ip)
    return [
        bytes(ether / ip / TCP(dport=22) / Raw(data)),
        bytes(ether / ip / UDP(dport=9) / Raw(data)),
        bytes(ether / IP(src=nic.peer.ip, dst=own_ip, flags="MF") / UDP(dport=9) / Raw(data)),
        bytes(ether / Dot1Q(vlan=5) / ip / TCP(dport=22) / Raw(data)),
        bytes(ether / IPv6(src="fe80::1", dst="fe80::2") / TCP(dport=22) / Raw(data)),
        bytes(nic.ether("01:00:5e:01:02:03") / IP(src=nic.peer.ip, dst="224.1.2.3") / UDP(dport=9) / Raw(data)),
        bytes(nic.ether("33:33:00:00:00:fb") / IPv6(src="fe80::1", dst="ff02::fb") / UDP(dport=9) / Raw(data)),
        bytes(nic.ether("ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=nic.peer.mac, psrc=nic.peer.ip, pdst="10.0.0.99")).ljust(60, b"\0"),
        bytes(ether)[:12] + b"\x88\xb5" + random.randbytes(46),
    ]


@pytest.mark.parametrize("shared", [False, True])
def test_frames_both_ways_beside_writes(nic: Nic, shared: bool) -> None:
    """From an address of its own, and from the device's: all arrive as they came and leave as they are, while peers write to the
    memory of the device, which has the right data at the end."""
    device = nic.device
    nic.settings(SHARED * shared)
    mac = nic.device_mac if shared else nic.mac
    own_ip = nic.peer.device_ip if shared else "10.0.0.77"
    flow = Flow(2, "write", 1024, 4, (0x1000_0000,))
    load = Load(device, [flow])
    for turn in range(6):
        arriving = kinds(nic, mac, own_ip)
        if turn == 2:
            arriving.append(bytes(nic.ether(mac))[:12] + b"\x88\xb5" + random.randbytes(LONG - 14))
        leaving = [bytes(Ether(src=mac, dst=nic.peer.mac, type=0x88B5)) + random.randbytes(n) for n in (1, 46, 700, 1500)]
        if turn == 4:
            leaving.append(leaving[0][:14] + random.randbytes(LONG - 14))
        for frame in arriving:
            load.send_other(frame)
        nic.send(*leaving)
        load.run(4000)
        now(nic.driver.reap(1, len(leaving)))
        device.step(2000)
        load.run(1)
        assert [sent.frame for sent in load.others] == [frame.ljust(60, b"\0") for frame in leaving]
        load.others.clear()
        for frame in arriving:
            got = nic.received()
            assert got.frame == frame
            plain = frame[12:14] == b"\x08\0" and not frame[20] & 0x20
            assert bool(got.flags & DATA_VALID) == (plain and (Ether(frame)[IP].proto in (6, 17))), Ether(frame)
        nic.post(len(arriving) + 5 * (turn == 2))
    load.check()
    assert flow.done > 50
    assert nic.counter("RX") == device.counter("packet_rx_card") == 55
    assert nic.counter("TX") == device.counter("packet_tx_card") == 25
    assert not device.counter("packet_drop_tcp") + device.counter("packet_drop_group") + device.counter("packet_drop_vlan")


@pytest.mark.parametrize("host", [False, True])
def test_who_answers_for_a_shared_address(nic: Nic, host: bool) -> None:
    """ARP and echo requests come to the device or to the driver, never to both; the ports of the device are its own in either
    case."""
    device, peer = nic.device, nic.peer
    nic.settings(SHARED | (HOST_ARP | HOST_ECHO) * host)
    arp = bytes(nic.ether("ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=peer.mac, psrc=peer.ip, pdst=peer.device_ip)).ljust(60, b"\0")
    echo = bytes(nic.ether(nic.device_mac) / IP(src=peer.ip, dst=peer.device_ip) / ICMP(id=7, seq=1) / Raw(bytes(56)))
    while device.recv(2000):
        pass
    for question in (arp, echo):
        device.send(question)
        answer = device.recv(3000)
        assert (answer is None) == host
        if host:
            assert nic.received().frame == question
        else:
            read = Ether(answer.frame)
            assert read[ARP].op == 2 if ARP in read else read[ICMP].type == 0
    # Its ports: a register by the network is the device's.
    ipbus = nic.ether(nic.device_mac) / IP(src=peer.ip, dst=peer.device_ip) / UDP(sport=1, dport=50001) / Raw(bytes(8))
    device.send(bytes(ipbus))
    device.step(5000)
    assert receive(nic.driver.queues[0]) is None


def test_interrupts_come_by_the_function_of_the_card(device: SimDevice) -> None:
    """The link comes when the device is enabled; then a frame; each by the vector that the driver has set."""
    nic, card = Nic(device), device.slot.card
    for vector in range(3):
        for word, value in enumerate((0xFEE0_2000, 0, 0x100 + vector, 0)):
            card.set_register(MSIX + 16 * vector + 4 * word, value)

    def told() -> list[int]:
        device.step(3000)
        vectors = []
        while (interrupt := card.pull_interrupt()) is not None:
            assert interrupt.address == 0xFEE0_2000
            vectors.append(interrupt.data - 0x100)
        assert device.slot.pull_interrupt() is None
        return vectors

    nic.begin()
    assert not device.read(address("NETWORK_CARD")) & SHARED
    assert now(nic.driver.pci.load(DEVICE_AT + 6, 2)) == 0
    now(nic.driver.pci.set("config_msix_vector", 2))
    nic.driver.queues[0].want_interrupt()
    nic.driver.queues[1].want_interrupt(False)
    told()
    configure(device)
    assert told() == [2]
    assert device.read(address("NETWORK_CARD")) & (LINK | BUILT) == LINK | BUILT
    assert now(nic.driver.pci.load(DEVICE_AT, 8)) == 1 << 48 | int.from_bytes(bytes.fromhex(nic.mac.replace(":", "")), "little")
    device.send(frame := kinds(nic, nic.mac, "10.0.0.77")[0])
    assert told() == [0]
    assert nic.received().frame == frame
    nic.driver.queues[0].want_interrupt()
    device.set_link(False)
    assert told() == [2]
    assert now(nic.driver.pci.load(DEVICE_AT + 6, 2)) == 0
    device.set_link(True)
    assert told() == [2]


@pytest.mark.parametrize("by", ["driver", "function", "bus_master"])
def test_a_reset_under_load(nic: Nic, by: str) -> None:
    """The driver resets its card, the slot resets the function, or takes its bus mastering away before, in the middle of frames
    both ways: WRITEs go on with the right data, what is on the line is whole, and the card works afterwards."""
    device = nic.device
    flow = Flow(2, "write", 1024, 4, (0x1000_0000,))
    load = Load(device, [flow])
    leaving: list[bytes] = []
    for turn in range(rounds(4)):
        for _ in range(20):
            load.send_other(kinds(nic, nic.mac, "10.0.0.77")[0])
        for _ in range(20):
            leaving.append(bytes(Ether(src=nic.mac, dst=nic.peer.mac, type=0x88B5)) + random.randbytes(random.choice([46, 1500])))
            nic.driver.transmit(leaving[-1], 1)
        now(nic.driver.show(1))
        load.run(500 + 700 * turn)
        if by == "driver":
            now(nic.driver.pci.reset())
        else:
            if by == "bus_master":
                device.slot.card.space(bus_master=0)
                device.step(500)
            device.slot.card.reset()
            device.slot.card.enable()
        load.run(2000)
        now(nic.driver.initialize())
        nic.post(60)
        load.send_other(frame := kinds(nic, nic.mac, "10.0.0.77")[0])
        load.run(2000)
        assert nic.received().frame == frame
    load.check()
    assert flow.done > 25 * rounds(4) and not flow.repeated
    rest = iter(leaving)
    sent = [other.frame for other in load.others]
    assert sent and all(frame in rest for frame in sent), "frames are whole and in order"


def test_a_flood_for_a_driver_that_sleeps(nic: Nic) -> None:
    """No buffer is given back: what is for the card is counted, and WRITEs have their usual latency."""
    device = nic.device

    def latency(qpn: int, flood: bool) -> int:
        flow = Flow(qpn, "write", 512, 1, (0x1000_0000 + (qpn << 20),))
        load = Load(device, [flow])
        for _ in range(40):
            if flood:
                load.send_other(kinds(nic, nic.mac, "10.0.0.77")[0])
            load.run(400)
        load.check()
        return min(flow.latencies)

    while receive(nic.driver.queues[0]):
        pass
    quiet = latency(2, False)
    for _ in range(120):  # uses up all buffers
        nic.arrive(kinds(nic, nic.mac, "10.0.0.77")[0])
    loud = latency(3, True)
    assert loud == quiet, "a frame for the card costs a WRITE nothing that does not wait behind it on the line"
    assert nic.counter("RX_NO_BUFFER") > 40 and not device.counter("packet_drop_overflow")


def set_rules(device: SimDevice, table: dict[int, Rule]) -> None:
    """Makes these, narrow ones, the rules of the device. None of their positions is in use."""

    def ready() -> None:
        while device.read(address("classifier.STATUS")):
            device.step(100)

    for position, rule in table.items():
        device.write(address("classifier.ENTRY"), position)
        for number, word in enumerate(rule.words(position % 4)):
            device.write(address("classifier.WORDS") + 4 * number, word)
        device.write(address("classifier.LOAD"), position // 32)
        ready()
    for word in range(4):
        device.write(address("classifier.ENABLE") + 4 * word, sum(1 << position for position in table) >> 32 * word & 0xFFFFFFFF)
    device.write(address("classifier.COMMAND"), 1)
    ready()


def test_rules_for_rdma(nic: Nic) -> None:
    """One queue pair is cut off by a rule, another one is mirrored to the driver, with another DSCP, while a third knows nothing of
    it; when the rules are gone the first one goes on, with nothing lost."""
    device = nic.device
    flows = [Flow(qpn, "write", 256, 2, (0x1000_0000 + (qpn << 20),)) for qpn in (2, 3, 4)]
    cut, mirrored, other = flows
    load = Load(device, flows)
    load.run(2000)
    set_rules(device, {0: Rule(DROP, qpn=cut.qpn), 40: Rule(MIRROR | edit(dscp=46), qpn=mirrored.qpn)})
    done = [flow.done for flow in flows]
    load.go(6000)
    assert cut.done == done[0] and cut.under_way
    assert mirrored.done > done[1] + 5 and other.done > done[2] + 5
    device.write(address("classifier.ENTRY"), 40)
    mirrors = device.read(address("classifier.FRAMES"))
    assert mirrors >= mirrored.done - done[1]
    for _ in range(10):
        frame = Ether(nic.received().frame)
        assert frame[UDP].dport == 4791 and frame[BTH].dqpn == mirrored.qpn
        assert frame[IP].tos >> 2 == 46 and frame == Ether(edited(bytes(frame), dscp=46))
    set_rules(device, {})
    load.run(2000)
    load.check()
    assert cut.done > done[0] and cut.repeated and not other.repeated and not mirrored.repeated


def test_a_card_that_floods_leaves_half_of_the_line(nic: Nic) -> None:
    """The driver sends all that it can, while peers READ: both get on, and the driver's frames are all there."""
    device = nic.device
    flow = Flow(2, "read", 4096, 4, (0x1000_0000,))
    load = Load(device, [flow])
    leaving = [bytes(Ether(src=nic.mac, dst=nic.peer.mac, type=0x88B5)) + random.randbytes(1500) for _ in range(100)]
    for frame in leaving:
        nic.driver.transmit(frame, 1)
    now(nic.driver.show(1))
    load.run(30_000)
    now(nic.driver.reap(1, 100))
    device.step(5000)
    load.run(1)
    assert [other.frame for other in load.others] == leaving
    beats = sum(-(-len(frame) // 8) for frame in leaving)
    span = load.others[-1].last_beat - load.others[0].first_beat
    print(f"{beats} beats of the card in {span} cycles, {flow.done} READs of 4 KiB")
    assert span < 2.6 * beats, "the card has its half"
    assert flow.done > 30


def test_a_card_cannot_send_from_the_devices_address(nic: Nic) -> None:
    """Nor a PAUSE frame; both are counted."""
    device = nic.device
    while device.recv(2000):
        pass
    spoofed = bytes(Ether(src=nic.device_mac, dst=nic.peer.mac, type=0x88B5)) + bytes(60)
    pause = bytes(Ether(src=nic.mac, dst="01:80:c2:00:00:01", type=0x8808)) + b"\0\1\xff\xff" + bytes(42)
    nic.send(spoofed, pause)
    now(nic.driver.reap(1, 2))
    assert device.recv(5000) is None
    assert device.counter("packet_drop_card_source") == 2
    bridged = bytes(Ether(src="02:aa:aa:aa:aa:aa", dst=nic.peer.mac, type=0x88B5)) + bytes(60)
    nic.settings(ANY_SOURCE)
    nic.send(spoofed, bridged)
    sent = device.recv(5000)
    assert sent is not None and sent.frame == bridged


def test_without_a_driver_nothing_waits(device: SimDevice) -> None:
    """No driver has ever started: frames for the card are counted, and the device works."""
    configure(device)
    nic = Nic(device)
    for frame in kinds(nic, nic.mac, "10.0.0.77"):
        nic.arrive(frame)
    assert nic.counter("RX_NO_BUFFER") == 9
    load = Load(device, [Flow(2, "write", 512, 4, (0x1000_0000,))])
    load.run(3000)
    load.check()
