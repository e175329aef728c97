# SPDX-License-Identifier: Apache-2.0
"""dhcp_receive: messages of DHCP servers, well formed and not, against a model; no message keeps it busy for long."""

from __future__ import annotations

import random

import cocotb
import dhcp_model as model
from dhcp_model import MAC, OFFERED, ROUTER, SERVER, message, octets, option, raw
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import StreamSink, StreamSource, pulses, start, wait_cycles

RX, WORD, ANSWER = "services_pkg::service_rx_t", "services_pkg::service_word_t", "dhcp_pkg::dhcp_answer_t"
XID, FROM = 0x1234ABCD, 0x020000000001
LONGEST = 1472
ALL = [("server_id", SERVER), ("lease_time", 3600), ("renewal_time", 1000), ("rebinding_time", 2000)]


class Bench:
    """The module; each message comes to its end before the next."""

    def __init__(self, dut, stall: float = 0.0) -> None:
        self.dut = dut
        self.message = StreamSource(dut, "message", RX, stall)
        self.words = StreamSource(dut, "words", WORD, stall)
        self.answer = StreamSink(dut, "answer", ANSWER, stall)
        self.malformed = 0

    async def start(self) -> Bench:
        self.dut.mac.value = int(MAC.replace(":", ""), 16)
        self.dut.xid.value = XID
        await start(self.dut)
        cocotb.start_soon(self._count())
        return self

    async def _count(self) -> None:
        async for _ in pulses(self.dut.clk, self.dut.malformed):
            self.malformed += 1

    async def judge(self, packet: bytes) -> model.Answer | None:
        """What the module makes of a message; the same as the model."""
        before = self.malformed
        self.message.send(service=1, mac=FROM, ip=0, port=67, length=len(packet))
        padded = packet + bytes(-len(packet) % 4)
        for at in range(0, len(padded), 4):
            self.words.send(last=at + 4 == len(padded), data=int.from_bytes(padded[at : at + 4], "big"))
        await self.words.drained()
        for _ in range(2 * LONGEST + 100):
            await wait_cycles(self.dut, 1)
            if int(self.dut.idle.value) and not self.answer.stall:
                break
        await wait_cycles(self.dut, 20)
        assert int(self.dut.idle.value)
        expected = model.understood(packet, XID)
        assert self.malformed - before == (expected is None), (packet.hex(), expected)
        if expected is None:
            assert not self.answer.received
            return None
        got = await self.answer.recv()
        assert vars(expected) | {"mac": FROM} == vars(got), (packet.hex(), expected)
        return expected


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def answers_of_each_kind(dut, stall: float) -> None:
    bench = await Bench(dut, stall).start()
    for kind in ("offer", "ack", "nak"):
        answer = await bench.judge(message(kind, XID))
        assert answer is not None and answer.kind == model.KINDS[kind]
    answer = await bench.judge(
        message("ack", XID, options=[*ALL, ("subnet_mask", "255.255.252.0"), ("router", ROUTER, "10.0.0.253")])
    )
    assert answer is not None
    assert (answer.prefix_length, answer.router, answer.t1, answer.t2) == (22, model.number(ROUTER), 1000, 2000)


@cocotb.test()
async def what_is_not_for_the_client_is_not_taken(dut) -> None:
    bench = await Bench(dut).start()
    for packet in (
        message("ack", XID + 1),
        message("ack", XID, op=1),
        message("ack", XID, htype=6),
        message("ack", XID, hlen=8),
        message("ack", XID, mac="02:4e:41:0a:be:9e"),
        message("ack", XID, mac="02:4e:40:0a:be:9f"),
        message("discover", XID),
        message("ack", XID, yiaddr="0.0.0.0"),
        message("ack", XID, yiaddr="224.0.0.1"),
        message("ack", XID, yiaddr="255.255.255.255"),
        message("ack", XID, options=[("lease_time", 3600)]),
        message("ack", XID, options=[("server_id", SERVER)]),
        message("ack", XID, options=[("server_id", SERVER), ("lease_time", model.MIN_LEASE - 1)]),
        message("ack", XID, options=[*ALL, ("subnet_mask", "255.0.255.0")]),
        message("ack", XID)[:240],
        message("ack", XID)[:236] + b"\x63\x82\x53\x64" + message("ack", XID)[240:],
    ):
        assert await bench.judge(packet) is None
        assert await bench.judge(message("ack", XID)) is not None
    assert await bench.judge(message("ack", XID, options=[("server_id", SERVER), ("lease_time", model.MIN_LEASE)])) is not None


@cocotb.test()
async def every_mask(dut) -> None:
    """Its length; without one that of the address' class."""
    bench = await Bench(dut).start()
    for length in range(33):
        mask = (0xFFFFFFFF << (32 - length)) & 0xFFFFFFFF
        answer = await bench.judge(
            message("ack", XID, options=[*ALL, ("subnet_mask", ".".join(map(str, mask.to_bytes(4, "big"))))])
        )
        assert answer is not None and answer.prefix_length == length
    for address, length in (("10.1.2.3", 8), ("130.1.2.3", 16), ("192.168.1.1", 24)):
        answer = await bench.judge(message("ack", XID, yiaddr=address, options=ALL))
        assert answer is not None and answer.prefix_length == length


@cocotb.test()
async def options_in_other_fields(dut) -> None:
    """RFC 2132, 9.3: in `file`, in `sname`, in both, each with its own end."""
    bench = await Bench(dut).start()
    kind, server, lease = option(53, b"\x05"), option(54, octets(SERVER)), option(51, (7200).to_bytes(4, "big"))
    router, end = option(3, octets(ROUTER)), b"\xff"
    for overload, file, sname in (
        (1, server + lease + router + end, b""),
        (2, b"", b"\0\0" + server + lease + router + end),
        (3, server + router + end, lease + end),
        (3, server + b"\0" * 100 + router, lease),
    ):
        answer = await bench.judge(raw(XID, kind + option(52, bytes([overload])) + end, file=file, sname=sname))
        assert answer is not None and (answer.lease, answer.router) == (7200, model.number(ROUTER))
    # Without the option, or with one in the wrong place, these fields are names.
    assert await bench.judge(raw(XID, kind + end, file=server + lease + end)) is None
    hidden = raw(XID, kind + server + option(52, b"\x01") + end, file=option(52, b"\x02") + end, sname=lease + end)
    assert await bench.judge(hidden) is None
    # An option that runs into the next field is cut.
    assert await bench.judge(raw(XID, kind + server + lease + option(52, b"\x02") + end, sname=b"\x0c\x40" + b"n" * 62)) is None


@cocotb.test()
async def odd_options(dut) -> None:
    bench = await Bench(dut).start()
    kind, server, lease = option(53, b"\x05"), option(54, octets(SERVER)), option(51, (7200).to_bytes(4, "big"))
    good, end = kind + server + lease, b"\xff"
    for options in (
        good,  # no end
        b"\0" * 50 + good + b"\0\0" + end + b"\x01\x09",  # pads; what comes after the end counts for nothing
        option(43, bytes(255)) + option(43, b"") + option(254, b"x") + good + end,  # unknown ones, the longest and the shortest
        good + option(54, octets(ROUTER)) + option(3, octets(ROUTER) * 8) + end,  # the last one counts
        good + b"\0" * (LONGEST - 240 - len(good)),  # the longest message
    ):
        assert await bench.judge(raw(XID, options)) is not None
    for options in (
        good + b"\x0c",  # cut before the length
        good + b"\x0c\x05abcd",  # cut before the end
        good + option(3, octets(ROUTER) + b"\0") + end,
        good + option(3, b"") + end,
        *(
            good + option(code, bytes(length)) + end
            for code in model.LENGTHS
            for length in (0, model.LENGTHS[code] - 1, model.LENGTHS[code] + 1)
        ),
        end + good,
        server + lease + end,
    ):
        assert await bench.judge(raw(XID, options)) is None


def mangled(rng: random.Random) -> bytes:
    """A message with faults, or none."""
    codes = [0, 1, 3, 12, 43, 50, 51, 51, 52, 53, 54, 54, 58, 59, 61, 82, 255]
    parts = [
        option(53, bytes([rng.choice([2, 5, 5, 6, 1])])),
        option(54, octets(SERVER)),
        option(51, rng.choice([8, 60, 2**32 - 1]).to_bytes(4, "big")),
    ]
    for _ in range(rng.randrange(6)):
        code = rng.choice(codes)
        length = model.LENGTHS.get(code, 4 * rng.randrange(4)) if rng.random() < 0.9 else rng.randrange(256)
        value = rng.randbytes(length) if code != 1 else ((0xFFFFFFFF << rng.randrange(33)) & 0xFFFFFFFF).to_bytes(4, "big")
        parts.append(bytes([code]) if code in (0, 255) else bytes([code, length]) + value)
    if rng.random() < 0.8:
        rng.shuffle(parts)
    fields = {
        name: (option(58, bytes(3) + b"\x40") + option(3, octets(ROUTER)) + b"\xff").ljust(size, b"\0")
        for name, size in (("file", 128), ("sname", 64))
    }
    packet = bytearray(raw(XID, b"".join(parts) + b"\xff" * rng.randrange(2), yiaddr=OFFERED, **fields))
    if rng.random() < 0.3:
        packet[rng.randrange(len(packet))] ^= 1 << rng.randrange(8)
    if rng.random() < 0.1:
        del packet[rng.randrange(1, len(packet)) :]
    return bytes(packet[:LONGEST])


@cocotb.test()
@cocotb.parametrize(seed=[1, 2, 3])
async def random_messages(dut, seed: int) -> None:
    bench = await Bench(dut).start()
    rng = random.Random(seed)
    taken = 0
    for _ in range(250):
        taken += await bench.judge(mangled(rng)) is not None
    assert 50 < taken < 200


def test_dhcp_receive() -> None:
    run(
        "dhcp_receive",
        __file__,
        ports={
            "mac": Plain("input", "packet_pkg::mac_t"),
            "xid": Plain("input", "logic [31:0]"),
            "message": Sink(RX),
            "words": Sink(WORD),
            "answer": Source(ANSWER),
            "malformed": Plain("output", "logic"),
            "idle": Plain("output", "logic"),
        },
    )
