# SPDX-License-Identifier: Apache-2.0
"""roce_receive: READ, atomics and SEND with invalidate; what is wrong with one, duplicates, and how many at once."""

from __future__ import annotations

import random

import cocotb
from nacelle_tb.long import alternately
from nacelle_tb.roce import Frame, atomiceth, op, reth
from receive_bench import BASE, RQ_DEPTH, Bench, build_and_run, one_qp, refused, write
from receive_model import ALL, RIGHTS, acknowledgement


def read(qpn: int, psn: int, va: int, rkey: int, length: int, **more: object) -> Frame:
    """A READ request."""
    return Frame(op("RC_RDMA_READ_REQUEST"), qpn, psn, b"", reth(va, rkey, length), **more)


def atomic(qpn: int, psn: int, va: int, rkey: int, name: str = "FETCH_ADD", **more: object) -> Frame:
    """An atomic with any operands."""
    return Frame(op(f"RC_{name}"), qpn, psn, b"", atomiceth(va, rkey, random.getrandbits(64), random.getrandbits(64)), **more)


def invalidate(qpn: int, psn: int, key: int, data: bytes = b"done", form: str = "ONLY") -> Frame:
    """The last packet of a SEND with invalidate."""
    return Frame(op(f"RC_SEND_{form}_WITH_INVALIDATE"), qpn, psn, data, key.to_bytes(4, "big"), ackreq=True, solicited=True)


@cocotb.test()
@cocotb.parametrize(code=[1, 2, 3, 4, 5])
async def a_read_takes_a_psn_for_each_packet_of_its_response(dut, code: int) -> None:
    bench, _ = await one_qp(dut, 0.2, 0xFFFFFA, code)
    rkey = await bench.register(2, 0, (1 << 32) - 1)
    mtu = 128 << code
    for length in (0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu, 7 * mtu + 5, 1 << 20, (1 << 31) - 1, 1 << 31):
        psn = bench.model.qps[2].epsn
        bench.send(read(2, psn, BASE, rkey, length, ackreq=random.random() < 0.5))
        assert (bench.model.qps[2].epsn - psn) % (1 << 24) == max(1, -(-length // mtu))
        bench.send(*write(2, bench.model.qps[2].epsn, mtu, BASE, rkey, b"next"))
        await bench.compare()
        bench.answer_reads(2)
    assert bench.counts["rx_read_requests"] == 10


@cocotb.test()
async def atomics_go_to_the_response_unit(dut) -> None:
    bench, rkey = await one_qp(dut, 0.2)
    psn = 100
    for i in range(20):
        bench.send(atomic(2, psn + i, BASE + 8 * random.randrange(64), rkey, random.choice(("FETCH_ADD", "COMPARE_SWAP"))))
        await bench.compare()
        bench.answer_reads(2)
    assert bench.counts["rx_atomic_requests"] == 20


@cocotb.test()
async def what_is_wrong_with_a_read_or_atomic_is_refused(dut) -> None:
    bench, rkey = await one_qp(dut)
    size = 0x10000
    first = Frame(op("RC_SEND_FIRST"), 2, 100, bytes(256))
    for bad in (
        [Frame(op("RC_RDMA_READ_REQUEST"), 2, 100, b"x", reth(BASE, rkey, 1))], [read(2, 100, BASE, rkey, (1 << 31) + 1)],
        [Frame(op("RC_FETCH_ADD"), 2, 100, b"x", atomiceth(BASE, rkey, 0, 0))],
        *([atomic(2, 100, BASE + i, rkey)] for i in range(1, 8)),
        [first, read(2, 101, BASE, rkey, 8)], [first, atomic(2, 101, BASE, rkey)],
    ):  # fmt: skip
        await bench.receive(2, BASE, 4096, 1)
        await refused(bench, bad, "SYNDROME_NAK_INVALID_REQ")
    for bad in (
        read(2, 100, BASE - 1, rkey, 1), read(2, 100, BASE + size - 1, rkey, 2), read(2, 100, BASE, rkey ^ 1 << 31, 1),
        read(2, 100, BASE + (1 << 40), rkey, 1), read(2, 100, BASE, rkey, 1 << 31),
        atomic(2, 100, BASE - 8, rkey), atomic(2, 100, BASE + size, rkey), atomic(2, 100, BASE, rkey ^ 1 << 20),
    ):  # fmt: skip
        await refused(bench, [bad], "SYNDROME_NAK_REM_ACCESS")
    bench.send(read(2, 100, 0xDEAD << 40, 0, 0), atomic(2, 101, BASE + size - 8, rkey), read(2, 102, BASE + size - 1, rkey, 1))
    await bench.compare()


@cocotb.test()
async def rights_of_the_region_the_queue_pair_and_the_domain(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    for right in RIGHTS:

        async def request(key: int, right: str = right) -> Frame:
            if right == "remote_invalidate":
                await bench.receive(2, BASE, 64, 3)
                return invalidate(2, 100, key)
            if right == "remote_write":
                return next(write(2, 100, 256, BASE, key, b"12345678"))
            return read(2, 100, BASE, key, 8) if right == "remote_read" else atomic(2, 100, BASE, key)

        for qpn, pd, rights, allowed in (
            (2, 1, ALL, True), (0, 1, ALL, True), (0, 1, frozenset({right}), True), (2, 1, ALL - {right}, False),
            (3, 1, ALL, False), (2, 2, ALL, False), (0, 2, ALL, False),
        ):  # fmt: skip
            await bench.setup(2, 100, 1)
            key = await bench.register(qpn, BASE, 64, rights, pd)
            frame = await request(key)
            if allowed:
                bench.send(frame)
                assert not bench.model.qps[2].error
                await bench.compare()
                bench.answer_reads(2)
            else:
                await refused(bench, [frame], "SYNDROME_NAK_REM_ACCESS")
        if right != "remote_invalidate":  # the queue pair's own flags, each for its own operation
            await bench.setup(2, 100, 1, rights=ALL - {right})
            key = await bench.register(2, BASE, 64)
            await refused(bench, [await request(key)], "SYNDROME_NAK_INVALID_REQ")
            for other in sorted(ALL - {right}):
                await bench.setup(2, 100, 1, rights=ALL - {right})
                bench.send(await request(await bench.register(2, BASE, 64), other))
                assert not bench.model.qps[2].error
                await bench.compare()
                bench.answer_reads(2)


@cocotb.test()
async def more_reads_and_atomics_at_once_than_agreed_are_refused(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    rkey = await bench.register(0, BASE, 64)
    for most in (0, 1, 4, 8):
        for times in range(3):
            await bench.setup(2, 100, 1, max_rd=most)
            for _ in range(times):  # as many again and again, if they are answered in between
                for _ in range(most):
                    make = random.choice((lambda psn: read(2, psn, BASE, rkey, 8), lambda psn: atomic(2, psn, BASE, rkey)))
                    bench.send(make(bench.model.qps[2].epsn))
                await bench.compare()
                if most:
                    bench.send(read(2, 100, BASE, rkey, 8))  # a duplicate does not count
                await bench.compare()
                bench.answer_reads(2)
            psn = bench.model.qps[2].epsn
            await refused(bench, [read(2, psn + i, BASE, rkey, 8) for i in range(most + 1)], "SYNDROME_NAK_INVALID_REQ")
            bench.answered[2] = random.randrange(256)  # whatever it was before


@cocotb.test()
async def a_duplicate_read_is_checked_and_carried_out_again(dut) -> None:
    bench, rkey = await one_qp(dut, 0.1)
    bench.send(read(2, 100, BASE, rkey, 1000), *write(2, 104, 256, BASE, rkey, b"w"), atomic(2, 105, BASE, rkey))
    bench.send(read(2, 100, BASE, rkey, 1000), read(2, 102, BASE + 512, rkey, 488), atomic(2, 105, BASE, rkey))
    bench.send(*write(2, 104, 256, BASE, rkey, b"lost"))  # ACK with the newest PSN, behind the READs
    assert [r[0] for r in bench.model.responds] == ["READ", "ACK", "ATOMIC", "READ", "READ", "ATOMIC", "ACK"]
    assert bench.model.responds[-1] == acknowledgement(2, 105, 3)
    await bench.compare()
    for bad in (
        read(2, 105, BASE, rkey, 257), read(2, 100, BASE, rkey, 7 * 256), read(2, 100, BASE, rkey ^ 1 << 30, 8),
        read(2, 100, BASE - 1, rkey, 8), read(2, 100, BASE, rkey, (1 << 31) + 1), atomic(2, 105, BASE + 1, rkey),
        Frame(op("RC_RDMA_READ_REQUEST"), 2, 100, b"payload", reth(BASE, rkey, 8)),
    ):  # fmt: skip
        bench.send(bad)
    assert not bench.model.responds and bench.model.counts["drop_duplicate_forgotten"] == 7
    await bench.compare()
    await bench.deregister(rkey)
    bench.send(read(2, 100, BASE, rkey, 1000), atomic(2, 105, BASE, rkey), read(2, 100, 0, 0, 0))
    assert [r[0] for r in bench.model.responds] == ["ATOMIC", "READ"]
    await bench.compare()


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def an_invalidated_key_is_gone_from_the_next_packet_on(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await bench.start()
    for _ in range(10):
        await bench.setup(2, 100, 1)
        keys = [await bench.register(random.choice((0, 2)), BASE, 4096) for _ in range(3)]
        for i in range(3):
            await bench.receive(2, BASE + 0x8000, 1024, i)
        data = random.randbytes(300)
        bench.send(*write(2, 100, 256, BASE, keys[0], b"before"))
        bench.send(invalidate(2, 101, keys[0]), *write(2, 102, 256, BASE, keys[1], b"other key"))
        bench.send(Frame(op("RC_SEND_FIRST"), 2, 103, data[:256]), invalidate(2, 104, keys[1], data[256:], "LAST"))
        bench.send(invalidate(2, 101, keys[2]), read(2, 105, BASE, keys[2], 9))  # a duplicate invalidates nothing
        assert len(bench.model.responds) == 6 and len(bench.model.regions) == 1
        bench.send(random.choice((next(write(2, 106, 256, BASE, keys[1], b"x")), read(2, 106, BASE, keys[1], 1),
                                  invalidate(2, 106, keys[1]))))  # fmt: skip
        assert bench.model.qps[2].error
        await bench.compare()
        await bench.deregister(keys[2])


@cocotb.test()
async def a_stream_of_invalidations_lets_commands_through(dut) -> None:
    bench, _ = await one_qp(dut)
    keys = []
    for i in range(RQ_DEPTH):
        keys.append(await bench.register(0, BASE, 64))
        await bench.receive(2, BASE, 64, i)
    frames = [invalidate(2, 100 + i, key) for i, key in enumerate(keys)]
    duplicates = [invalidate(2, 100, 0)] * 60  # these hold the pipeline as well
    bench.send(*frames, *duplicates)
    for _ in range(6):
        await bench.deregister(await bench.register(2, BASE, 64))
    assert bench.frame.busy, "the commands did not run beside the packets"
    await bench.compare()


def test_roce_receive_rd() -> None:
    build_and_run(__file__)
