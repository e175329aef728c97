# SPDX-License-Identifier: Apache-2.0
"""roce_receive: a key that goes while something goes on under it, and what the answer to the command that took it means."""

from __future__ import annotations

import random

import cocotb
from cocotb.triggers import RisingEdge
from nacelle_tb.long import alternately
from nacelle_tb.roce import Frame, op, reth
from nacelle_tb.streams import wait_cycles
from receive_bench import BASE, Bench, build_and_run, one_qp, write
from receive_model import acknowledgement
from test_roce_receive_rd import invalidate, read

SIZE = 0x10000
DEREGISTER = ("MR_DEREGISTER", "MR_DEREGISTER_QP", "MR_DEREGISTER_PD")


async def invalidated(bench: Bench, rkey: int) -> None:
    """QP 3's peer invalidates the key."""
    await bench.receive(3, BASE + 0x80000, 64, 9)
    bench.send(invalidate(3, bench.model.qps[3].epsn, rkey))
    while not any(c.qpn == 3 for c in bench.completion.received):
        await RisingEdge(bench.dut.clk)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def a_write_goes_on_only_under_its_key(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    bench.memory_delay = -1
    await bench.start()
    await bench.setup(3, 0, 1)
    for how in (*DEREGISTER, "invalidated", "registered again", "another one"):
        for begun in range(1, 5):
            await bench.setup(2, 100, 1)
            if how == "registered again":  # the same slot: all others are taken
                taken = [await bench.register(3, 0, 1) for _ in range(255)]
            qpn = 0 if how == "invalidated" else 2
            rkey = await bench.register(qpn, BASE, SIZE)
            frames = list(write(2, 100, 256, BASE + 3, rkey, random.randbytes(5 * 256), 7 if begun == 4 else None))
            if begun == 4:
                await bench.receive(2, 0, 0, 1)
            bench.send(*frames[:begun])
            await bench.quiet()
            if how == "invalidated":
                await invalidated(bench, rkey)
            elif how == "another one":
                await bench.deregister(await bench.register(2, BASE, SIZE))
            elif how == "registered again":
                await bench.deregister(rkey)
                again = await bench.register(2, BASE, SIZE)
                assert (again ^ rkey) & 0xFF == 0, "the same slot"
            else:
                await bench.deregister(rkey, how)
            responds = list(bench.model.responds)
            bench.send(*frames[begun:])
            refused = [acknowledgement(2, frames[begun].psn, 0, op("SYNDROME_NAK_REM_ACCESS"))]
            assert (bench.model.responds == responds + refused) == (how != "another one")
            await bench.compare()
            if how == "registered again":
                for key in (*taken, again):
                    await bench.deregister(key)
            elif how in ("invalidated", "another one"):
                await bench.deregister_all()
    assert bench.counts["resp_remote_access_errors"] == 5 * 4


@cocotb.test()
async def nothing_is_placed_ahead_under_a_key_that_is_gone(dut) -> None:
    bench = Bench(dut, 0.2)
    await bench.start()
    await bench.setup(2, 100, 1, selective=True)
    rkey, other = await bench.register(2, BASE, SIZE), await bench.register(2, BASE, SIZE)

    def only(psn: int, key: int) -> Frame:
        return Frame(op("RC_RDMA_WRITE_ONLY"), 2, psn, b"x" * 100, reth(BASE + psn, key, 100), ackreq=True)

    bench.send(only(102, rkey), only(103, rkey))
    await bench.quiet()
    await bench.deregister(rkey)
    bench.send(only(104, rkey), only(105, other))
    await bench.compare()
    assert bench.counts["out_of_order_placed"] == 3
    bench.send(only(100, other), only(101, other))  # up to 103
    assert bench.model.qps[2].epsn == 104
    bench.send(only(104, rkey))
    assert bench.model.qps[2].error
    await bench.compare()


@cocotb.test()
async def what_the_response_unit_denies_is_counted(dut) -> None:
    bench, rkey = await one_qp(dut, 0.3)
    bench.send(read(2, 100, BASE, rkey, 1000))
    await bench.quiet()
    bench.model.fail(2, denied=True)
    bench.failed.send(qpn=2, denied=1)
    bench.failed.send(qpn=2, denied=1)
    await bench.quiet()
    bench.send(*write(2, 104, 256, BASE, rkey, b"late"))
    await bench.compare()
    assert bench.counts["resp_remote_access_errors"] == 1


async def traffic(bench: Bench, qpns: list[int], keys: dict[int, int], size: int = 256) -> None:
    """WRITEs of one packet on these QPs in turn, as fast as they are taken; not compared."""
    psns = {qpn: bench.model.qps[qpn].epsn for qpn in qpns}
    while True:
        for qpn in qpns:
            for frame in write(qpn, psns[qpn], 256, BASE * qpn, keys[qpn], bytes(size)):
                bench.frame.send(frame.rx())
                bench.payload.send(frame.payload)
                psns[qpn] += 1
        while bench.frame.busy:
            await RisingEdge(bench.dut.clk)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]), how=[*DEREGISTER, "invalidated"])
async def nothing_is_under_way_when_a_command_is_answered(dut, stall: float, how: str) -> None:
    """Also in the middle of a message; and packets of others go on meanwhile."""
    bench = Bench(dut, stall)
    bench.memory_delay = -1
    bench.fence_delay = 30
    await bench.start()
    keys = {}
    for qpn in range(3, 8):
        await bench.setup(qpn, 0, 1, pd=2)
        keys[qpn] = await bench.register(qpn, BASE * qpn, SIZE, pd=2)
    others = cocotb.start_soon(traffic(bench, [4, 5, 6, 7], keys))
    for _ in range(6):
        await bench.setup(2, 100, 1, pd=1 if how == "MR_DEREGISTER_PD" else 2)
        rkey = await bench.register(0 if how == "invalidated" else 2, BASE, SIZE, pd=bench.model.qps[2].pd)
        for frame in write(2, 100, 256, BASE, rkey, bytes(50 * 256)):
            bench.frame.send(frame.rx())
            bench.payload.send(frame.payload)
        await wait_cycles(dut, random.randrange(300, 2000))
        done_before = len(bench.written)
        if how == "invalidated":
            await bench.receive(3, BASE * 3, 64, 9)
            bench.frame.send(invalidate(3, bench.model.qps[3].epsn, rkey).rx())
            bench.payload.send(b"done")
            bench.model.qps[3].epsn += 1
            while not any(c.qpn == 3 for c in bench.completion.received):
                await RisingEdge(dut.clk)
            answered = bench.completion.cycle
            bench.completion.received.clear()
            del bench.model.regions[rkey]
        else:
            await bench.deregister(rkey, how)
            answered = bench.mr_rsp.cycle
        for _ in range(50):
            await wait_cycles(dut, 100)
            if len(bench.written) > done_before + 5:
                break
        mine = [cycle for addr, _, cycle in bench.written if BASE <= addr < BASE + SIZE]
        assert mine and mine[-1] <= answered, f"a write was confirmed {mine[-1] - answered} cycles after the answer"
        assert len(bench.written) > done_before + 5, "others go on"
    others.cancel()


@cocotb.test()
async def a_command_is_answered_in_time_under_load(dut) -> None:
    """Its fence passes behind what is there, not behind what comes."""
    bench = Bench(dut)
    bench.memory_delay = 20
    await bench.start()
    keys = {}
    for qpn in range(2, 12):
        await bench.setup(qpn, 0, 1)
        keys[qpn] = await bench.register(qpn, BASE * qpn, SIZE)
    others = cocotb.start_soon(traffic(bench, list(range(2, 12)), keys))
    await wait_cycles(dut, 3000)
    spent = []
    for _ in range(20):
        rkey = await bench.register(2, 0, 1)
        begin = bench.mr_rsp.cycle
        await bench.deregister(rkey)
        spent.append(bench.mr_rsp.cycle - begin)
        await wait_cycles(dut, random.randrange(100))
    # A write of 256 bytes takes 32 + 20 cycles here, one at a time; 64 of them are ahead at most.
    dut._log.info(f"answered after {min(spent)} to {max(spent)} cycles")
    assert max(spent) <= 64 * 60
    count, begin = len(bench.written), bench.write.cycle
    await wait_cycles(dut, 2000)
    alone = (len(bench.written) - count) / (bench.write.cycle - begin)
    count, begin = len(bench.written), bench.write.cycle
    while bench.write.cycle - begin < 6000:
        await bench.deregister(await bench.register(2, 0, 1))
    loaded = (len(bench.written) - count) / (bench.write.cycle - begin)
    assert loaded >= 0.98 * alone, f"{loaded} writes a cycle while keys go, {alone} while not"
    others.cancel()


@cocotb.test()
async def a_completion_waits_for_the_fence_and_nothing_else_does(dut) -> None:
    bench = Bench(dut)
    bench.fence_delay = 500
    await bench.start()
    for qpn in (2, 3, 4):
        await bench.setup(qpn, 100, 1)
        await bench.receive(qpn, BASE * qpn, 64, qpn)
    keys = [await bench.register(0, BASE, SIZE) for _ in range(3)]
    begin = bench.respond.cycle
    for i, key in enumerate(keys[:2]):  # one fence is under way when the second comes: it does not do for that
        bench.send(invalidate(2 + i, 100, key))
        await wait_cycles(dut, 100)
    for i in range(40):
        bench.send(*write(4, 100 + i, 256, BASE, keys[2], b"x"))
    await wait_cycles(dut, 200)
    assert len([r for r in bench.respond.received if r.qpn == 4 and r.kind == op("RESPOND_ACK")]) >= 40
    assert not bench.completion.received
    while len(bench.completion.received) < 2:
        await RisingEdge(dut.clk)
    cycles = [cycle - begin for cycle in bench.completion.cycles]
    assert 500 <= cycles[0] <= 600 and 1000 <= cycles[1] <= 1100, cycles


def test_roce_receive_keys() -> None:
    build_and_run(__file__)
