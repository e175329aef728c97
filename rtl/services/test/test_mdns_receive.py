# SPDX-License-Identifier: Apache-2.0
"""mdns_receive: queries, well formed and not, against a model; no message keeps it busy for ever."""

from __future__ import annotations

import random

import cocotb
import mdns_model as model
from mdns_model import AAAA, ANY, IN, MAC, PTR, QU, SERVICE, SRV, TXT, TYPES, A, encoded, host, instance, known, query, question
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import StreamSink, StreamSource, pulses, start, wait_cycles
from scapy.layers.dns import DNS, DNSQR, DNSRR

RX, WORD, QUERY = "services_pkg::service_rx_t", "services_pkg::service_word_t", "mdns_pkg::mdns_query_t"
FROM, FROM_IP = 0x020000000001, 0x0A000009
LONGEST = 1472
LONGEST_WALK = 130_000


class Bench:
    """The module; each message comes to its end before the next."""

    def __init__(self, dut, stall: float = 0.0) -> None:
        self.dut = dut
        self.message = StreamSource(dut, "message", RX, stall)
        self.words = StreamSource(dut, "words", WORD, stall)
        self.query = StreamSink(dut, "query", QUERY, stall)
        self.malformed = 0
        self.walked = 0

    async def start(self) -> Bench:
        self.dut.mac.value = int(MAC.replace(":", ""), 16)
        await start(self.dut)
        cocotb.start_soon(self._count())
        return self

    async def _count(self) -> None:
        async for _ in pulses(self.dut.clk, self.dut.malformed):
            self.malformed += 1

    async def judge(self, packet: bytes) -> str:
        """What the module makes of a message; the same as the model: "malformed", "nothing", "group" or "unicast"."""
        before = self.malformed
        self.message.send(service=2, mac=FROM, ip=FROM_IP, port=5353, length=len(packet))
        padded = packet + random.randbytes(-len(packet) % 4)
        for at in range(0, len(padded), 4):
            self.words.send(last=at + 4 == len(padded), data=int.from_bytes(padded[at : at + 4], "big"))
        await self.words.drained()
        begin = self.query.cycle
        while not int(self.dut.idle.value):
            await wait_cycles(self.dut, 4)
            assert self.query.cycle - begin < LONGEST_WALK, packet.hex()
        self.walked = self.query.cycle - begin
        await wait_cycles(self.dut, 20)
        try:
            asked = model.understood(packet)
        except model.MalformedError:
            asked, verdict = None, "malformed"
        else:
            verdict = "nothing" if asked is None else "unicast" if asked.unicast else "group"
        assert self.malformed - before == (verdict == "malformed"), (packet.hex(), verdict)
        assert len(self.query.received) == (asked is not None), (packet.hex(), verdict)
        if asked:
            got = await self.query.recv()
            assert (got.unicast, got.mac, got.ip) == (asked.unicast, FROM, FROM_IP), packet.hex()
        return verdict


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def questions_for_each_record(dut, stall: float) -> None:
    bench = await Bench(dut, stall).start()
    right = {TYPES: {PTR, ANY}, SERVICE: {PTR, ANY}, instance(): {SRV, TXT, ANY}, host(): {A, ANY}}
    for name, kinds in right.items():
        for kind in (A, PTR, TXT, AAAA, SRV, ANY, 0, 0x0C00, 0x010C):
            for written in (name, name.upper(), name.title()):
                assert await bench.judge(query(question(written, kind))) == ("group" if kind in kinds else "nothing")
            for qclass, verdict in ((IN | QU, "unicast"), (ANY, "group"), (ANY | QU, "unicast"), (2, "nothing"), (0, "nothing")):
                assert await bench.judge(query(question(name, kind, qclass))) == (verdict if kind in kinds else "nothing")
    # As scapy writes them.
    for name, kind in ((SERVICE, "PTR"), (host(), "A"), (instance(), "SRV")):
        assert await bench.judge(bytes(DNS(rd=0, qd=DNSQR(qname=name, qtype=kind)))) == "group"


@cocotb.test()
async def other_names(dut) -> None:
    """Each letter counts, and so does the end."""
    bench = await Bench(dut).start()
    for name in (TYPES, SERVICE, instance(), host()):
        whole = encoded(name)
        for at in range(len(whole)):
            changed = bytearray(whole)
            changed[at] ^= 1 if whole[at] not in b"\x08\x09\x04\x05\x07\x14\0" else 0
            if bytes(changed) != whole:
                assert await bench.judge(query(question(bytes(changed), ANY))) == "nothing"
        for other in (
            f"x.{name}",
            f"{name}.x",
            name.rpartition(".")[0],
            name.partition(".")[2],
            name.replace("l", "l\0"),
            f"{name}." + "a" * 60,
        ):
            if other != SERVICE:
                assert await bench.judge(query(question(other, ANY))) == "nothing"
    for mac in ("02:4e:41:0a:be:9e", "12:4e:41:0a:be:9f"):
        assert await bench.judge(query(question(host(mac), A))) == "nothing"
    assert await bench.judge(query(question(b"\0", ANY))) == "nothing"


@cocotb.test()
async def several_questions(dut) -> None:
    bench = await Bench(dut).start()
    ours, other = question(SERVICE, PTR, IN | QU), question("_ipp._tcp.local", PTR)
    assert await bench.judge(query(other, other)) == "nothing"
    assert await bench.judge(query(other, ours)) == "unicast"
    assert await bench.judge(query(ours, other)) == "unicast", "only questions for the device count"
    assert await bench.judge(query(ours, question(host(), A))) == "group"
    assert await bench.judge(query(ours, question(host(), A, IN | QU))) == "unicast"
    assert await bench.judge(query(*[other] * 40, question(host(), A))) == "group"
    # What stands behind is not read.
    assert await bench.judge(query(ours, more=known(b"\xc0\xff", data=b""))) == "unicast"
    assert await bench.judge(query(ours) + b"\xff" * 100) == "unicast"
    assert await bench.judge(query()) == "nothing"


@cocotb.test()
async def compressed_names(dut) -> None:
    bench = await Bench(dut).start()
    first = question("_ipp._udp.local", PTR)  # at 12: `_udp` is at 17, `local` at 22
    for name, kind in (
        (b"\x08_nacelle\xc0\x11", PTR),
        (b"\x09_services\x07_dns-sd\xc0\x11", PTR),
        (encoded(host())[:21] + b"\xc0\x16", A),
    ):
        assert await bench.judge(query(first, question(name, kind))) == "group"
    second = question(b"\x08_nacelle\xc0\x11", 1)  # at 33
    label = encoded(instance())[:21]
    assert await bench.judge(query(first, second, question(label + b"\xc0\x21", SRV))) == "group"
    assert await bench.judge(query(first, second, question(b"\xc0\x21", PTR))) == "group"
    third = question(b"\xc0\x21", TXT)  # a pointer to a name with a pointer, at 48
    assert await bench.judge(query(first, second, third, question(b"\xc0\x30", PTR))) == "group"
    # scapy compresses the same way.
    packet = DNS(rd=0, qd=[DNSQR(qname=SERVICE, qtype="PTR")], an=[DNSRR(rrname=SERVICE, type="PTR", ttl=4500, rdata=instance())])
    assert await bench.judge(bytes(packet.compress())) == "nothing"
    assert await bench.judge(bytes(packet)) == "nothing"


@cocotb.test()
async def malformed_queries(dut) -> None:
    bench = await Bench(dut).start()
    good = query(question(SERVICE), question(instance(), SRV))
    assert await bench.judge(good) == "group"
    for length in range(1, len(good)):
        assert await bench.judge(good[:length]) == "malformed", length
    start = len(query(question(SERVICE)))
    for name in (
        b"\xc0\x0b", b"\xc0\x00",  # into the header
        bytes([0xC0, start]), bytes([0xC0, start + 1]), bytes([0xC0, start + 2]), b"\xc1\x00", b"\xff\xff",  # to itself, forwards
        bytes([1, 97, 0xC0, start]),  # a loop over a label
        b"\x40" + b"a" * 64 + b"\0", b"\x80\0",  # other kinds of labels
        b"\x3f" + b"a" * 63 + (b"\x3f" + b"b" * 63) * 3 + b"\0",  # 257 bytes
    ):  # fmt: skip
        assert await bench.judge(query(question(SERVICE), question(name))) == "malformed", name
        assert await bench.judge(good) == "group"
    longest = b"\x3f" + b"a" * 63 + (b"\x3f" + b"b" * 63) * 2 + b"\x3d" + b"c" * 61 + b"\0"
    assert len(longest) == 255
    assert await bench.judge(query(question(longest), question(SERVICE))) == "group"
    # A pointer down to a loop: the second part of the name must lie before the first.
    trap = bytes([1, 97, 0xC0, 12])
    assert await bench.judge(query(question(trap), question(SERVICE))) == "malformed"
    # The header announces more than there is.
    assert await bench.judge(good[:4] + b"\xff\xff" + good[6:]) == "malformed"
    assert await bench.judge(good[:6] + b"\xff\xff" + good[8:]) == "malformed"


@cocotb.test()
async def known_answers(dut) -> None:
    bench = await Bench(dut).start()
    browse = question(SERVICE)
    other = known(data=instance("02:4e:41:0a:be:9e"))
    for answers, verdict in (
        ((known(),), "nothing"),
        ((known(ttl=model.HALF_TTL),), "nothing"),
        ((known(ttl=model.HALF_TTL - 1),), "group"),
        ((known(ttl=0),), "group"),
        ((known(ttl=2**32 - 1),), "nothing"),
        ((other,), "group"),
        ((other, known(), other), "nothing"),
        ((known(b"\xc0\x0c", data=encoded(instance())[:21] + b"\xc0\x0c"),), "nothing"),
        ((known(name="_ipp._udp.local"),), "group"),
        ((known(kind=TXT),), "group"),
        ((known(kind=TXT, data=b"\xff" * 100),), "group"),  # data of others is not read
        ((known(size=len(encoded(instance())) + 1),), "malformed"),
        ((known(size=len(encoded(instance())) - 1),), "malformed"),
        ((known(kind=TXT, size=1400),), "malformed"),
        ((known(kind=TXT, size=0xFFFF),), "malformed"),
        ((known(data=b"\xc0\xff"),), "malformed"),
    ):
        assert await bench.judge(query(browse, answers=answers)) == verdict, answers
    # Only if it is all that was asked for.
    assert await bench.judge(query(browse, question(host(), A), answers=(known(),))) == "group"
    assert await bench.judge(query(question(instance(), SRV), answers=(known(),))) == "group"


@cocotb.test()
async def the_longest_walk(dut) -> None:
    """As many names as there is room for, each as long as it can be by way of pointers: it ends, and the next query is answered."""
    bench = await Bench(dut).start()
    chain = (b"\x3f" + b"a" * 63) * 3 + b"\x38" + b"b" * 56 + b"\0"
    first = question(chain)
    names = [question(b"\xc0\x0c") for _ in range((LONGEST - 12 - len(first)) // 6)]
    assert await bench.judge(query(first, *names)) == "nothing"
    walked = bench.walked
    # Pointers to pointers, hidden in a label.
    hidden = b"\x3f\0" + b"".join((0xC00D + 2 * max(i - 1, 0) + (i > 0)).to_bytes(2, "big") for i in range(31))
    far = question((0xC00E + 2 * 30).to_bytes(2, "big"))
    assert await bench.judge(query(question(hidden + b"\0"), *[far] * 200)) == "nothing"
    assert bench.walked > 200 * 31 * 4
    dut._log.info(f"the longest walk takes {walked} cycles")
    assert 90_000 < walked < LONGEST_WALK
    assert await bench.judge(query(question(SERVICE))) == "group"


def mangled(rng: random.Random) -> bytes:
    """A query with faults, or none."""
    names = [SERVICE, TYPES, instance(), host(), "_ipp._tcp.local", "x.local"]
    parts: list[bytes] = []
    at = 12
    places: list[int] = []
    questions, answers = rng.choice([0, 1, 1, 2, 3]), rng.choice([0, 0, 1, 2])
    for i in range(questions + answers):
        name = encoded(rng.choice(names))
        places += [at + n for n in range(len(name)) if rng.random() < 0.3]
        if places and rng.random() < 0.2:
            cut = rng.choice([0, 0, 9, 18, 21, 26])
            name = name[:cut] + (0xC000 | rng.choice(places)).to_bytes(2, "big")
        kind, qclass = (
            rng.choice([A, PTR, PTR, TXT, SRV, ANY]),
            IN | QU if rng.random() < 0.6 else ANY if rng.random() < 0.3 else IN,
        )
        part = question(name, kind, qclass)
        if i >= questions:
            data = encoded(instance()) if rng.random() < 0.6 else rng.randbytes(rng.randrange(30))
            part = known(name, data, rng.choice([0, 120, 2250, 4500]), rng.choice([PTR, PTR, TXT]))
        parts.append(part)
        at += len(part)
    packet = bytearray(query(*parts[:questions], answers=tuple(parts[questions:])))
    if rng.random() < 0.2:
        packet[rng.randrange(4, len(packet))] ^= 1 << rng.randrange(8)
    if rng.random() < 0.1:
        del packet[rng.randrange(1, len(packet)) :]
    if rng.random() < 0.05:
        packet[12:] = rng.randbytes(rng.randrange(1400))
    return bytes(packet[:LONGEST])


@cocotb.test()
@cocotb.parametrize(seed=[1, 2, 3])
async def random_queries(dut, seed: int) -> None:
    bench = await Bench(dut).start()
    rng = random.Random(seed)
    verdicts = [await bench.judge(mangled(rng)) for _ in range(400)]
    for verdict in ("malformed", "nothing", "group", "unicast"):
        assert verdicts.count(verdict) > 15, (verdict, verdicts.count(verdict))


def test_mdns_receive() -> None:
    run(
        "mdns_receive",
        __file__,
        ports={
            "mac": Plain("input", "packet_pkg::mac_t"),
            "message": Sink(RX),
            "words": Sink(WORD),
            "query": Source(QUERY),
            "malformed": Plain("output", "logic"),
            "idle": Plain("output", "logic"),
        },
    )
