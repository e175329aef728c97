# SPDX-License-Identifier: Apache-2.0
"""packet_plane with a driver on every port, for the tests of the whole plane."""

import random
from typing import Any

import cocotb
import packet_frames as frames
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Clock, Plain, Several, Sink, Source
from nacelle_tb.record import FRAME_RX
from nacelle_tb.streams import AxisSink, AxisSource, StreamSink, StreamSource, pulses, start, wait_cycles
from nacelle_tb.svtypes import struct
from scapy.layers.l2 import ARP, Ether

RX, TX = FRAME_RX, "packet_pkg::frame_tx_t"
QUERY, ANSWER = "packet_pkg::ip_addr_t", "packet_pkg::arp_answer_t"
LINK, UNWANTED = "link_pkg::link_settings_t", "packet_pkg::unwanted_t"
LOCAL, EVENTS = "packet_pkg::local_addr_t", "packet_pkg::packet_events_t"
CARD = "card_pkg::card_settings_t"
CLASSIFIED = "classify_pkg::classified_t"
USERS = 2
SERVICE_PORT = 50001
KERNEL_PORTS = (7000, 7001)


class Bench:
    """The plane with drivers on every port."""

    def __init__(self, dut: Any, stall: float = 0.0) -> None:
        self.dut = dut
        self.rx = AxisSource(dut, "rx", stall)
        self.tx = AxisSink(dut, "tx", stall)
        self.frame = StreamSink(dut, "frame", RX, stall)
        self.payload = AxisSink(dut, "payload", stall)
        state = random.getstate()  # their stalls are not drawn from the numbers that the frames come from
        self.service_frame = StreamSink(dut, "service_frame", RX)  # takes whatever comes
        self.service_payload = AxisSink(dut, "service_payload")
        self.datagram_frame = StreamSink(dut, "datagram_frame", RX)
        self.datagram_payload = AxisSink(dut, "datagram_payload")
        random.setstate(state)
        dut.service_ports.value = SERVICE_PORT
        dut.datagram_ports.value = sum(port << 16 * i for i, port in enumerate(KERNEL_PORTS))
        self.user = [StreamSource(dut, f"user_tx{i}", TX, stall) for i in range(USERS)]
        self.user_payload = [AxisSource(dut, f"user_tx_payload{i}", stall) for i in range(USERS)]
        self.query = StreamSource(dut, "arp_query", QUERY, stall)
        self.answer = StreamSink(dut, "arp_answer", ANSWER, stall)
        dut.card.value = 0
        dut.classified.value = 0
        dut.card_tx_tvalid.value = 0
        dut.card_rx_tready.value = 1
        dut.arp_claim_valid.value = 0
        dut.arp_watch.value = dut.nd_watch.value = 0
        self.counts: dict[str, int] = {}
        dut.now.value = 0

    async def start(self, **local: object) -> "Bench":
        self.dut.local_addr.value = struct(LOCAL).pack(frames.local_addr(**local))
        self.set_link()
        await start(self.dut)
        cocotb.start_soon(self._count())
        announcement = Ether(await self.tx.recv())
        assert announcement[ARP].pdst == frames.IP_ADDRESS
        return self

    def set_link(self, vlan: dict[str, int] | None = None, **flow: int) -> None:
        """Flow control and VLAN of the port."""
        self.dut.link.value = struct(LINK).pack(
            flow={"pause": 1, "pfc": 1, "quanta_per_cycle": 1 << 14, "limit_ms": 0} | flow,
            priorities={"roce": 3, "other": 0},
            vlan={"enable": 0, "untagged": 0, "vid": 1} | (vlan or {}),
        )

    async def _count(self) -> None:
        events = struct(EVENTS)
        async for word in pulses(self.dut.clk, self.dut.events):
            for name, value in vars(events.unpack(word)).items():
                self.counts[name] = self.counts.get(name, 0) + value

    async def quiet(self) -> None:
        await self.rx.drained()
        for _ in range(300):
            await wait_cycles(self.dut, 1)
            if int(self.dut.idle.value):
                break
        await wait_cycles(self.dut, 1)
        assert int(self.dut.idle.value) == 1
        assert not self.tx.packets
        assert not self.frame.received
        assert not self.payload.packets


def ports(width: int) -> dict[str, Any]:
    """The ports of packet_plane."""
    return {
        "now": Clock(),
        "local_addr": Plain("input", LOCAL),
        "link": Plain("input", LINK),
        "card": Plain("input", CARD),
        "rx": AxisSinkPort(width),
        "tx": AxisSourcePort(width),
        "frame": Source(RX),
        "payload": AxisSourcePort(width),
        "service_ports": Plain("input", "services_pkg::service_ports_t"),
        "service_frame": Source(RX),
        "service_payload": AxisSourcePort(width),
        "datagram_ports": Plain("input", f"logic [{16 * len(KERNEL_PORTS) - 1}:0]"),
        "datagram_frame": Source(RX),
        "datagram_payload": AxisSourcePort(width),
        "user_tx": Several(Sink(TX), USERS),
        "user_tx_payload": Several(AxisSinkPort(width), USERS),
        "card_rx": AxisSourcePort(width),
        "card_rx_verdict": Plain("output", "card_pkg::card_verdict_t"),
        "card_tx": AxisSinkPort(width),
        "classified": Plain("input", CLASSIFIED),
        "classified_next": Plain("output", "logic"),
        "classified_applied": Plain("output", "logic"),
        "arp_query": Sink(QUERY),
        "arp_answer": Source(ANSWER),
        "arp_claim": Sink("packet_pkg::arp_claim_t"),
        "arp_watch": Plain("input", "packet_pkg::arp_watch_t"),
        "arp_conflict": Plain("output", "logic"),
        "nd_watch": Plain("input", "packet_pkg::nd_watch_t"),
        "nd_conflict": Plain("output", "logic"),
        "unwanted_valid": Plain("output", "logic"),
        "unwanted": Plain("output", UNWANTED),
        "events": Plain("output", EVENTS),
        "idle": Plain("output", "logic"),
    }
