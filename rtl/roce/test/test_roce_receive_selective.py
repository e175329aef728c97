# SPDX-License-Identifier: Apache-2.0
"""roce_receive: selective repeat (docs/reference/extensions.md), with losses, reordering and repetitions, at full rate."""

from __future__ import annotations

import random

import cocotb
from nacelle_tb.long import alternately
from nacelle_tb.roce import Frame, op, reth
from receive_bench import BASE, Bench, build_and_run, respond, send
from receive_model import MAX_PSN, acknowledgement

MTU = 256


async def one_qp(dut, stall: float = 0.0, psn: int = 100) -> tuple[Bench, int]:
    """QP 2 with selective repeat, QP 3 without; a key for both."""
    bench = Bench(dut, stall)
    await bench.start()
    await bench.setup(2, psn, 1, selective=True)
    await bench.setup(3, psn, 1)
    return bench, await bench.register(0, BASE, 0x100000)


def only(psn: int, rkey: int, size: int = 64, qpn: int = 2, **more: object) -> Frame:
    """A packet of a WRITE that can be placed alone."""
    place = BASE + (psn % 1024) * 0x100
    return Frame(op("RC_RDMA_WRITE_ONLY"), qpn, psn % MAX_PSN, random.randbytes(size), reth(place, rkey, size), **more)


def gap(expected: int, cause: int) -> tuple[object, ...]:
    return acknowledgement(2, expected, cause % MAX_PSN, op("SYNDROME_NAK_PSN_SEQ"))


@cocotb.test()
async def what_is_ahead_is_placed_and_every_gap_is_told(dut) -> None:
    bench, rkey = await one_qp(dut)
    for start in (100, 0xFFFFF0, 0x7F, 0x80, 0xFF):
        await bench.setup(2, start, 1, selective=True)
        model = bench.model
        for psn in (start + 1, start + 3, start + 4, start + 3):
            bench.send(only(psn, rkey))
        assert model.responds == [gap(start, start + i) for i in (1, 3, 4, 3)]
        bench.send(only(start, rkey))
        assert model.responds[-1] == gap(start + 2, start)
        bench.send(only(start + 2, rkey))
        assert model.responds[-1] == acknowledgement(2, start + 4, 5)
        await bench.compare()
        # The far end of the window, and beyond it.
        bench.send(only(start + 5 + 127, rkey), only(start + 5 + 128, rkey), only(start + 5 + 5000, rkey))
        assert model.counts["out_of_order_placed"] % 4 == 0
        bench.send(*(only(start + 5 + i, rkey) for i in range(127)))
        assert model.responds[-1] == acknowledgement(2, start + 5 + 127, 133)
        await bench.compare()


@cocotb.test()
@cocotb.parametrize(start=[100, 0xFFFFFE])
async def the_msn_counts_up_to_the_psn_acknowledged(dut, start: int) -> None:
    """What was placed ahead of its turn counts when the expected PSN has passed it, in ACKs and NAKs alike."""
    bench, rkey = await one_qp(dut, psn=start)
    answers = bench.model.responds
    bench.send(
        only(start, rkey, ackreq=True), only(start + 2, rkey), only(start + 3, rkey), only(start + 6, rkey), only(start, rkey)
    )
    assert answers[-1] == acknowledgement(2, start, 1)
    bench.send(*send(2, start + 1, MTU, b"x"))
    assert answers[-1] == acknowledgement(2, start + 1, 1, op("SYNDROME_RNR_NAK") + 12)
    await bench.compare()
    await bench.receive(2, BASE, 64, 1)
    bench.send(*send(2, start + 1, MTU, b"x"), only(start, rkey))
    assert answers[-2:] == [gap(start + 4, start + 1), acknowledgement(2, start + 3, 4)]
    # A READ's response is of its own PSN, the ACK behind it of what follows too.
    bench.send(only(start + 4, rkey), Frame(op("RC_RDMA_READ_REQUEST"), 2, (start + 5) % MAX_PSN, b"", reth(BASE, rkey, 8)))
    assert answers[-2][:5] == ("READ", 0, 2, (start + 5) % MAX_PSN, op("SYNDROME_ACK")) and answers[-2][5] == 6
    assert answers[-1] == acknowledgement(2, start + 6, 7)
    await bench.compare()


@cocotb.test()
async def memory_that_refuses_the_packet_of_a_gap_has_counted_nothing_behind_it(dut) -> None:
    bench, rkey = await one_qp(dut)
    closing = only(101, rkey)
    bench.refuse.add(BASE + 101 * 0x100)
    bench.send(only(100, rkey), only(102, rkey), only(103, rkey), closing)
    await bench.quiet()
    nak = acknowledgement(2, 101, 1, op("SYNDROME_NAK_REM_OP"))
    assert [respond(r) for r in bench.respond.received] == [gap(101, 102), gap(101, 103), nak]


@cocotb.test()
async def only_a_write_of_its_own_is_placed_ahead(dut) -> None:
    bench, rkey = await one_qp(dut)
    await bench.receive(2, BASE, 1024, 1)
    for bad in (
        Frame(op("RC_SEND_ONLY"), 2, 101, b"send"), Frame(op("RC_RDMA_WRITE_FIRST"), 2, 101, bytes(256), reth(BASE, rkey, 300)),
        Frame(op("RC_RDMA_WRITE_ONLY_WITH_IMM"), 2, 101, b"data", reth(BASE, rkey, 4) + bytes(4)),
        Frame(op("RC_RDMA_READ_REQUEST"), 2, 101, b"", reth(BASE, rkey, 4)), Frame(op("RC_RDMA_WRITE_MIDDLE"), 2, 101, bytes(256)),
        only(101, rkey ^ 1 << 29), only(101, rkey, 257), Frame(op("RC_RDMA_WRITE_ONLY"), 2, 101, b"four", reth(BASE, rkey, 5)),
        Frame(op("RC_RDMA_WRITE_ONLY"), 2, 101, b"x", reth(BASE - 1, rkey, 1)), only(100 + 128, rkey), only(101, rkey, qpn=3),
    ):  # fmt: skip
        bench.send(bad)
        await bench.compare()
    assert not bench.counts["out_of_order_placed"] and not bench.memory
    bench.send(*send(2, 100, MTU, b"in order"))
    await bench.compare()


@cocotb.test()
async def an_immediate_reports_the_whole_write(dut) -> None:
    bench, rkey = await one_qp(dut)
    data = random.randbytes(700)
    psn = 100
    for tail in (188, 1, 256):
        head = len(data) - tail
        await bench.receive(2, 0, 0, tail)
        for at in range(0, head, MTU):
            part = data[at : at + min(MTU, head - at)]
            bench.send(Frame(op("RC_RDMA_WRITE_ONLY"), 2, psn, part, reth(BASE + at, rkey, len(part))))
            psn += 1
        ext = reth(BASE, rkey, len(data)) + (0xABCD).to_bytes(4, "big")
        bench.send(Frame(op("RC_RDMA_WRITE_ONLY_WITH_IMM"), 2, psn, data[head:], ext, ackreq=True))
        psn += 1
        assert bench.model.completions[2][-1][4] == 700
        await bench.compare()
        assert bench.content(BASE, 700) == data
    await bench.receive(2, 0, 0, 1)
    for payload, length in ((b"12345", 4), (b"", 4)):
        await bench.setup(2, 100, 1, selective=True)
        await bench.receive(2, 0, 0, 1)
        bench.send(Frame(op("RC_RDMA_WRITE_ONLY_WITH_IMM"), 2, 100, payload, reth(BASE, rkey, length) + bytes(4)))
        assert bench.model.qps[2].error
        await bench.compare()


@cocotb.test()
async def a_read_before_remembered_writes_is_answered_and_so_are_they(dut) -> None:
    bench, rkey = await one_qp(dut)
    read = Frame(op("RC_RDMA_READ_REQUEST"), 2, 100, b"", reth(BASE, rkey, 700))  # PSNs 100 to 102
    bench.send(only(103, rkey), only(104, rkey), only(106, rkey), read)
    assert [r[0] for r in bench.model.responds[-2:]] == ["READ", "ACK"] and bench.model.responds[-1] == gap(105, 100)
    bench.send(only(105, rkey), only(108, rkey))
    bench.send(Frame(op("RC_RDMA_READ_REQUEST"), 2, 107, b"", reth(BASE, rkey, 1), ackreq=True))
    assert bench.model.responds[-1] == acknowledgement(2, 108, 7)
    await bench.compare()


@cocotb.test()
async def a_missing_receive_silences_what_is_ahead(dut) -> None:
    bench, rkey = await one_qp(dut)
    bench.send(only(101, rkey), *send(2, 100, MTU, b"x"), only(102, rkey), only(103, rkey))
    assert bench.model.responds[-1][3] == op("SYNDROME_RNR_NAK") + 12 and bench.model.counts["out_of_order_placed"] == 1
    await bench.compare()
    await bench.receive(2, BASE, 64, 1)
    bench.send(*send(2, 100, MTU, b"x"), only(103, rkey), only(102, rkey))
    assert bench.model.responds[-1] == acknowledgement(2, 103, 4)
    await bench.compare()


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def losses_and_reordering_at_full_rate(dut, stall: float) -> None:
    bench, rkey = await one_qp(dut, stall, random.choice((0xFFFF80, 5)))
    for round_ in range(14):
        model = bench.model
        if round_ % 5 == 4 or model.qps[2].error:  # clears what is stored
            await bench.setup(2, random.choice((0xFFFFC0, random.getrandbits(24))), 1, selective=True)
            await bench.setup(3, 7, 1)
        first = model.qps[2].epsn
        count = random.choice((3, 10, 60, 127))
        frames = [only(first + i, rkey, random.choice((0, 1, 64, 256)), ackreq=random.random() < 0.2) for i in range(count)]
        if random.random() < 0.4:  # a SEND, or a READ, or an atomic at its place among them
            at = random.randrange(count)
            name, ext, payload = random.choice((
                ("SEND_ONLY", b"", b"send"), ("RDMA_READ_REQUEST", reth(BASE, rkey, 9), b""),
                ("FETCH_ADD", reth(BASE, rkey, 0) + bytes(12), b""),
            ))  # fmt: skip
            frames[at] = Frame(op(f"RC_{name}"), 2, (first + at) % MAX_PSN, payload, ext)
            await bench.receive(2, BASE, 64, at)
        loss = random.choice((0.0, 0.05, 0.3))
        sent = [f for f in frames if random.random() >= loss]
        for i in range(len(sent) - 1):
            if random.random() < 0.1:
                sent[i], sent[i + 1] = sent[i + 1], sent[i]
        sent += random.sample(sent, min(len(sent), 3))
        if random.random() < 0.2:
            random.shuffle(sent)
        bench.send(*sent)
        # Beside the other one, which goes back to what was lost.
        bench.send(*(only(model.qps[3].epsn + i, rkey, qpn=3) for i in (0, 2, 3, 0)))
        while not model.qps[2].error and (model.qps[2].epsn - first) % MAX_PSN < count:
            bench.send(frames[(model.qps[2].epsn - first) % MAX_PSN])  # the packet expected, alone
        await bench.compare()
        bench.answer_reads(2)
        while model.qps[2].receives:
            bench.send(*send(2, model.qps[2].epsn, MTU, b"rest"))
        await bench.compare()
    assert bench.counts["out_of_order_placed"] > 100


@cocotb.test()
async def a_packet_every_two_cycles_also_when_one_is_missing(dut) -> None:
    bench, rkey = await one_qp(dut)
    size = bench.payload.bytes_per_beat
    frames = [only(100 + i, rkey, size) for i in range(120)]
    bench.send(*frames[1:], frames[0])
    await bench.quiet()
    cycles = list(bench.respond.cycles)
    assert len(cycles) == 120 and cycles[-1] - cycles[0] <= 2 * 119 + 2, f"{cycles[-1] - cycles[0]} cycles for 120 packets"
    await bench.compare()


def test_roce_receive_selective() -> None:
    build_and_run(__file__)
