# SPDX-License-Identifier: Apache-2.0
"""roce_clients: each client gets its own completions, none can use another's objects, and one that stops delays no other."""

from __future__ import annotations

import random
from collections import deque

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import Plain, Several, Sink, Source, Type, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant

P = "roce_pkg::"
WQE, CQE, CONNECT, CONN, ANSWER = (P + t for t in ("rdma_wqe_t", "rdma_cqe_t", "connect_t", "conn_event_t", "conn_answer_t"))
QPN = "roce_wire_pkg::qpn_t"
CLOSE = "roce_pkg::close_t"
MR_CMD, MR_RSP = P + "mr_cmd_t", P + "mr_rsp_t"
QP_CMD = P + "qp_cmd_t"
INDEX = "roce_pkg::qp_index_t"
N, QPS, DEPTH, MARGIN = 3, 16, 32, 12
ADMIN = 1
PARAMS = {"N": N, "QPS": QPS, "CQ_DEPTH": Type(f"{{{N}{{16'd{DEPTH}}}}}")}
PORTS = {
    "client_wqe": Several(Sink(WQE), N),
    "client_cqe": Several(Source(CQE), N),
    "client_connect": Several(Sink(CONNECT), N),
    "client_conn": Several(Source(CONN), N),
    "client_conn_answer": Several(Sink(ANSWER), N),
    "client_close": Several(Sink(QPN), N),
    "client_mr_cmd": Several(Sink(MR_CMD), N),
    "client_mr_rsp": Several(Source(MR_RSP), N),
    "wqe": Source(WQE),
    "cqe": Sink(CQE),
    "connect": Source(CONNECT),
    "conn": Sink(CONN),
    "conn_answer": Source(ANSWER),
    "close": Source(CLOSE),
    "mr_cmd": Source(MR_CMD),
    "mr_rsp": Sink(MR_RSP),
    "made": Plain("input", "logic"),
    "gone": Plain("input", "logic"),
    "changed_qpn": Plain("input", QPN),
    "changed_client": Plain("input", P + "client_t"),
    "changed_pd": Plain("input", P + "pd_t"),
    "retired": Plain("input", "logic"),
    "retired_index": Plain("input", INDEX),
    "owner_qpn": Plain("input", QPN),
    "owner": Plain("output", P + "client_t"),
    "owner_pd": Plain("output", P + "pd_t"),
    "abandon": Plain("input", f"logic [{N - 1}:0]"),
    "fail": Source(QP_CMD),
    "failed": Sink("logic"),
    "refused": Plain("output", "logic"),
    "settled": Plain("output", f"logic [{N - 1}:0]"),
    "idle": Plain("output", "logic"),
}


class Bench:
    """Clients, makers, and an engine of a few lines that completes what it is given in any order."""

    def __init__(self, dut, stall: float = 0.0) -> None:
        self.dut = dut
        for name in ("retired", "retired_index", "owner_qpn", "made", "gone", "changed_qpn", "changed_client", "changed_pd"):
            getattr(dut, name).value = 0
        dut.abandon.value = 0
        sinks = {"client_cqe": CQE, "client_conn": CONN, "client_mr_rsp": MR_RSP}
        sources = {"client_wqe": WQE, "client_connect": CONNECT, "client_conn_answer": ANSWER, "client_close": QPN,
                   "client_mr_cmd": MR_CMD}  # fmt: skip
        for name, kind in sinks.items():
            setattr(self, name, [StreamSink(dut, f"{name}{i}", kind, stall) for i in range(N)])
        for name, kind in sources.items():
            setattr(self, name, [StreamSource(dut, f"{name}{i}", kind, stall) for i in range(N)])
        out = {"wqe": WQE, "connect": CONNECT, "conn_answer": ANSWER, "close": CLOSE, "mr_cmd": MR_CMD, "fail": QP_CMD}
        for name, kind in out.items():
            setattr(self, name, StreamSink(dut, name, kind, stall))
        for name, kind in {"cqe": CQE, "conn": CONN, "mr_rsp": MR_RSP, "failed": "logic"}.items():
            setattr(self, name, StreamSource(dut, name, kind, stall))

    async def start(self) -> None:
        await start(self.dut)
        await wait_cycles(self.dut, QPS + 6)

    async def change(self, what: str, qpn: int, client: int) -> None:
        """The QP is "made" or "gone"."""
        await FallingEdge(self.dut.clk)
        self.dut.changed_qpn.value, self.dut.changed_client.value, self.dut.changed_pd.value = qpn, client, qpn + 100
        getattr(self.dut, what).value = 1
        await FallingEdge(self.dut.clk)
        getattr(self.dut, what).value = 0
        await wait_cycles(self.dut, 8)

    async def retire(self, qpn: int) -> None:
        await FallingEdge(self.dut.clk)
        self.dut.retired.value, self.dut.retired_index.value = 1, qpn - 2
        await FallingEdge(self.dut.clk)
        self.dut.retired.value = 0


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def completions_find_their_client(dut, stall: float) -> None:
    """Random requests of all clients, for their own QPs and others': each completes once, at the client that posted it."""
    bench = Bench(dut, stall)
    await bench.start()
    owner = {qpn: random.randrange(N) for qpn in range(2, QPS)}  # two numbers stay without a QP
    for qpn, client in owner.items():
        await bench.change("made", qpn, client)
    engine: deque = deque()
    accepted = retired = 0
    expected: list[dict[int, int]] = [{} for _ in range(N)]  # wr_id -> status
    silent: set[tuple[int, int]] = set()
    for wr_id in range(600):
        client = random.randrange(N)
        qpn = random.choice((random.randrange(QPS + 4), *(q for q in owner if owner[q] == client)))
        mine = owner.get(qpn) == client
        expected[client][wr_id] = 0 if mine else constant(P + "WC_GENERAL_ERR")
        if mine and random.random() < 0.2:
            silent.add((client, wr_id))
            del expected[client][wr_id]
        bench.client_wqe[client].send(qpn=qpn, wr_id=wr_id, opcode=random.choice((0, 2, 4, 15)))
    while any(source.busy for source in bench.client_wqe) or bench.wqe.received or engine:
        await RisingEdge(dut.clk)
        while bench.wqe.received:
            engine.append(bench.wqe.received.popleft())
            bench.wqe.cycles.popleft()
            accepted += 1
        if engine and random.random() < 0.5:
            engine.rotate(random.randrange(len(engine)))
            request = engine.popleft()
            if (owner[request.qpn], request.wr_id) in silent:
                retired += 1
                await bench.retire(request.qpn)
            else:
                bench.cqe.send(qpn=request.qpn, wr_id=request.wr_id)
    await bench.cqe.drained()
    await wait_cycles(dut, 200)
    for client in range(N):
        got = {item.wr_id: item.status for item in bench.client_cqe[client].received}
        assert len(got) == len(bench.client_cqe[client].received)
        assert got == expected[client]
    assert accepted > 200 and retired == len(silent) > 20
    assert int(dut.idle.value)


@cocotb.test()
async def one_that_stops_stops_alone(dut) -> None:
    """Client 0 takes no completion: it gets in what its queue has room for and no more; client 1 goes on. Then nothing is lost."""
    bench = Bench(dut)
    await bench.start()
    for client in range(2):
        await bench.change("made", 2 + client, client)
    bench.client_cqe[0].stall = 1.0
    for wr_id in range(100):
        bench.client_wqe[0].send(qpn=2 if wr_id % 3 else 9, wr_id=wr_id)  # some refused
        bench.client_wqe[1].send(qpn=3, wr_id=wr_id)
    done = [0, 0]
    for _ in range(3000):
        await RisingEdge(dut.clk)
        while bench.wqe.received:
            request = bench.wqe.received.popleft()
            done[request.qpn - 2] += 1
            bench.cqe.send(qpn=request.qpn, wr_id=request.wr_id)
    assert len(bench.client_cqe[1].received) == 100
    assert bench.client_wqe[0].busy
    taken = bench.client_wqe[0].sent
    assert DEPTH - MARGIN <= taken <= DEPTH - 8
    bench.client_cqe[0].stall = 0.0
    for _ in range(3000):
        await RisingEdge(dut.clk)
        while bench.wqe.received:
            request = bench.wqe.received.popleft()
            bench.cqe.send(qpn=request.qpn, wr_id=request.wr_id)
    assert sorted(item.wr_id for item in bench.client_cqe[0].received) == list(range(100))


@cocotb.test()
async def a_reset_gives_back_what_its_qp_held(dut) -> None:
    """Over and over: fill the queue with requests that never complete, reset the QP, set it up for another client."""
    bench = Bench(dut)
    await bench.start()
    for round_ in range(8):
        client = round_ % 2
        await bench.change("made", 5, client)
        before = bench.client_wqe[client].sent
        for wr_id in range(DEPTH):
            bench.client_wqe[client].send(qpn=5, wr_id=wr_id)
        await wait_cycles(dut, 200)
        taken = bench.client_wqe[client].sent - before
        assert DEPTH - MARGIN <= taken < DEPTH
        await bench.change("gone", 5, client)
        if round_ == 3:  # one completion crosses the reset: it still arrives, and uses no other's room
            bench.cqe.send(qpn=5, wr_id=77)
        await wait_cycles(dut, 200)
        # The rest was for a QP that is gone.
        late = [item.status for item in bench.client_cqe[client].received]
        assert late.count(constant(P + "WC_GENERAL_ERR")) == DEPTH - taken
        assert len(late) == DEPTH - taken + (round_ == 3)
        bench.client_cqe[client].received.clear()
        assert not bench.client_wqe[client].busy
        bench.wqe.received.clear()
    assert int(dut.idle.value)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def settled_means_that_nothing_is_outstanding(dut, stall: float) -> None:
    """Requests of all kinds, and resets: `settled` falls in the cycle after a request was taken, and is high again when all that
    was posted is complete (also without a completion), refused or lost, and the client has its completions."""
    bench = Bench(dut, stall)
    await bench.start()
    for qpn in range(2, 5):
        await bench.change("made", qpn, qpn - 2)
    outstanding = [0] * N  # from the hand-shake of a request on, until its completion is taken

    async def watch() -> None:
        while True:
            await RisingEdge(dut.clk)
            settled = int(dut.settled.value)
            for i in range(N):
                assert not (outstanding[i] and settled >> i & 1), f"client {i} has {outstanding[i]} outstanding"
                taken = int(getattr(dut, f"client_wqe{i}_valid").value) and int(getattr(dut, f"client_wqe{i}_ready").value)
                done = int(getattr(dut, f"client_cqe{i}_valid").value) and int(getattr(dut, f"client_cqe{i}_ready").value)
                outstanding[i] += bool(taken) - bool(done)

    cocotb.start_soon(watch())
    for round_ in range(12):
        client = round_ % N
        for wr_id in range(20):
            bench.client_wqe[client].send(qpn=client + 2 if random.random() < 0.8 else 9, wr_id=wr_id)
            bench.client_wqe[(client + 1) % N].send(qpn=0, wr_id=wr_id)
        await bench.client_wqe[client].drained()
        await wait_cycles(dut, 60)
        requests = [request.qpn for request in bench.wqe.received]
        bench.wqe.received.clear()
        random.shuffle(requests)
        lost = random.randrange(len(requests))
        for i, qpn in enumerate(requests):
            if i >= lost:
                break
            if random.random() < 0.3:
                outstanding[client] -= 1
                await bench.retire(qpn)
            else:
                bench.cqe.send(qpn=qpn, wr_id=i)
        await bench.cqe.drained()
        await wait_cycles(dut, 30)
        assert outstanding[client] == len(requests) - lost > 0 and not int(dut.settled.value) >> client & 1
        outstanding[client] = 0 if round_ % 2 else outstanding[client]
        if round_ % 2:
            await bench.change("gone", client + 2, client)
            await bench.change("made", client + 2, client)
        else:
            for i in range(lost, len(requests)):
                bench.cqe.send(qpn=client + 2, wr_id=i)
            await bench.cqe.drained()
        await wait_cycles(dut, 40)
        assert int(dut.settled.value) == (1 << N) - 1 and not any(outstanding)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def what_a_client_gives_up_is_flushed(dut, stall: float) -> None:
    """Its queue pairs with something outstanding go to ERR, and no others; with queue pairs that are made and reset meanwhile."""
    bench = Bench(dut, stall)
    await bench.start()
    mine, quiet, others = (3, 5, 9, 17), (4, 10), (6, 11)
    for qpn in range(2, 18):
        await bench.change("made", qpn, 2 if qpn in (*mine, *quiet) else qpn % 2)
    for _ in range(4):
        for qpn in (*mine, *quiet):
            for wr_id in range(3):
                bench.client_wqe[2].send(qpn=qpn, wr_id=wr_id)
        for client, qpn in enumerate(others):
            bench.client_wqe[client].send(qpn=qpn, wr_id=9)
        await bench.client_wqe[2].drained()
        await wait_cycles(dut, 50)
        for qpn in quiet:  # all that they have is complete
            for wr_id in range(3):
                bench.cqe.send(qpn=qpn, wr_id=wr_id)
        await bench.cqe.drained()
        await wait_cycles(dut, 50)
        assert not bench.fail.received
        await FallingEdge(dut.clk)
        dut.abandon.value = 1 << 2
        hit = set()
        while len(hit) < len(mine):
            command = await bench.fail.recv()
            assert (command.op, command.state) == (constant(P + "QP_MODIFY"), constant(P + "QPS_ERR"))
            assert command.qpn in mine
            if command.qpn not in hit:  # it may be repeated until all is done
                hit.add(command.qpn)
                if command.qpn == mine[1]:
                    await bench.change("gone", command.qpn, 2)
                    await bench.change("made", command.qpn, 2)
                else:
                    for wr_id in range(3):
                        bench.cqe.send(qpn=command.qpn, wr_id=wr_id, status=constant(P + "WC_WR_FLUSH_ERR"))
                if command.qpn == mine[2]:
                    await bench.change("gone", 2, 0)
                    await bench.change("made", 2, 0)
            assert not int(dut.idle.value)
            bench.failed.send(1)
        await bench.cqe.drained()
        await wait_cycles(dut, 100)
        while bench.fail.received or bench.failed.busy:
            bench.fail.received.clear()
            bench.failed.send(1)
            await wait_cycles(dut, 50)
        assert int(dut.settled.value) == 0b100 and int(dut.idle.value)
        dut.abandon.value = 0
        for qpn in others:
            bench.cqe.send(qpn=qpn, wr_id=9)
        await bench.cqe.drained()
        await wait_cycles(dut, 100)
        assert not bench.fail.received and int(dut.settled.value) == 0b111


@cocotb.test()
async def one_that_goes_while_its_client_gives_up_fails_no_other(dut) -> None:
    """A queue pair with something outstanding goes so many cycles after its client gave up, while others are looked at."""
    bench = Bench(dut)
    await bench.start()
    for qpn in range(2, 17):
        await bench.change("made", qpn, 0)
    for delay in range(20):
        await bench.change("made", 17, 2)
        bench.client_wqe[2].send(qpn=17, wr_id=delay)
        await bench.client_wqe[2].drained()
        await wait_cycles(dut, 20)
        await FallingEdge(dut.clk)
        assert int(dut.settled.value) == 0b011
        dut.abandon.value = 1 << 2
        await wait_cycles(dut, delay)
        await bench.change("gone", 17, 2)
        await wait_cycles(dut, 20)
        while bench.fail.received:  # it was found before it went
            assert bench.fail.received.popleft().qpn == 17
            bench.failed.send(1)
            await wait_cycles(dut, 20)
        assert int(dut.settled.value) == 0b111
        dut.abandon.value = 0
        await wait_cycles(dut, 4)


@cocotb.test()
async def a_request_that_is_offered_stays(dut) -> None:
    """Its QP goes while the engine does not take it: the engine gets it all the same, and answers that the QP is in RESET."""
    bench = Bench(dut)
    await bench.start()
    await bench.change("made", 5, 1)
    bench.wqe.stall = 1.0
    await wait_cycles(dut, 4)
    bench.client_wqe[1].send(qpn=5, wr_id=7)
    await wait_cycles(dut, 4)
    assert int(dut.wqe_valid.value)
    offered = int(dut.wqe_data.value)
    await bench.change("gone", 5, 1)
    for _ in range(10):
        await FallingEdge(dut.clk)
        assert int(dut.wqe_valid.value) and int(dut.wqe_data.value) == offered
    bench.client_wqe[1].send(qpn=5, wr_id=8)
    bench.wqe.stall = 0.0
    assert (await bench.wqe.recv()).wr_id == 7
    bench.cqe.send(qpn=5, wr_id=7, status=constant(P + "WC_WR_FLUSH_ERR"))
    got = sorted([await bench.client_cqe[1].recv() for _ in range(2)], key=lambda cqe: cqe.wr_id)
    assert [(c.wr_id, c.status) for c in got] == [(7, constant(P + "WC_WR_FLUSH_ERR")), (8, constant(P + "WC_GENERAL_ERR"))]
    await wait_cycles(dut, 20)
    assert int(dut.idle.value) and not bench.wqe.received


@cocotb.test()
async def regions_and_connections_are_in_the_clients_own_domain(dut) -> None:
    """Each command says in which domain it is; the administrator's are in any."""
    bench = Bench(dut)
    await bench.start()
    for client in range(N):
        for pd in (client, 9):
            bench.client_mr_cmd[client].send(op=random.randrange(5), mr={"pd": pd}, domain=200, confined=0)
            command = await bench.mr_cmd.recv()
            assert (command.mr.pd, command.confined) == (pd, int(client != ADMIN))
            if client != ADMIN:
                assert command.domain == client
            bench.mr_rsp.send(ok=1)
            bench.client_connect[client].send(pd=pd)
            assert (await bench.connect.recv()).pd == (pd if client == ADMIN else client)


@cocotb.test()
async def owners_can_be_asked(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    bench.client_wqe[1].send(qpn=4, wr_id=9)
    item = await bench.client_cqe[1].recv()
    assert (item.status, item.wr_id) == (constant(P + "WC_GENERAL_ERR"), 9)
    await bench.change("made", 4, 2)
    dut.owner_qpn.value = 4
    await FallingEdge(dut.clk)
    assert (int(dut.owner.value), int(dut.owner_pd.value)) == (2, 104)


@cocotb.test()
async def commands_and_events_go_to_their_client(dut) -> None:
    bench = Bench(dut, 0.3)
    await bench.start()
    for qpn, client in ((2, 0), (3, 1), (4, 2)):
        await bench.change("made", qpn, client)
    asked = [[random.getrandbits(32) for _ in range(20)] for _ in range(N)]
    for client in range(N):
        for key in asked[client]:
            bench.client_mr_cmd[client].send(op=1, rkey=key)
    for _ in range(20 * N):
        command = await bench.mr_cmd.recv()
        bench.mr_rsp.send(ok=1, rkey=command.rkey ^ 1)
    await wait_cycles(dut, 100)
    for client in range(N):
        assert [rsp.rkey ^ 1 for rsp in bench.client_mr_rsp[client].received] == asked[client]
        bench.client_connect[client].send(client=3, tag=client + 50)
        bench.client_conn_answer[client].send(qpn=client + 2, accept=1)
        bench.conn.send(client=client, qpn=client + 2, tag=client)
    for _ in range(N):
        request = await bench.connect.recv()
        assert request.client == request.tag - 50
    assert {(await bench.conn_answer.recv()).qpn for _ in range(N)} == {2, 3, 4}
    for client in range(N):
        assert (await bench.client_conn[client].recv()).tag == client
    # Only its owner and the administrator, client 1, may close a QP.
    for client in range(N):
        for qpn in (0, 2, 3, 4, QPS + 2):
            bench.client_close[client].send(qpn)
    await wait_cycles(dut, 300)
    assert sorted(close.qpn for close in bench.close.received) == [2, 2, 3, 4, 4]
    assert not any(close.lost for close in bench.close.received)
    assert all(not source.busy for source in bench.client_close)


def test_roce_clients() -> None:
    run("roce_clients", __file__, params=PARAMS, ports=PORTS, random_state=True)
