# SPDX-License-Identifier: Apache-2.0
"""roce_management: every command as software gives it, through the registers of docs/reference/management.md, which are written
down here once more; events that software does not fetch; bad commands."""

from __future__ import annotations

import random
from types import SimpleNamespace

import cocotb
from cocotb.triggers import RisingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp
from nacelle_tb.bench import AxilSlave, Plain, Sink, Source, run
from nacelle_tb.record import mapped
from nacelle_tb.streams import CLOCK_NS, StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from nacelle_tb.values import digits

digits()

P = "roce_pkg::"
QPS = 16
PARAMS = {"QPS": QPS}
PORTS = {
    "bus": AxilSlave(12),
    "hand_cmd": Source(P + "qp_cmd_t"),
    "hand_done": Sink("logic"),
    "qp_event": Sink(P + "qp_event_t"),
    "view_qpn": Plain("output", "roce_wire_pkg::qpn_t"),
    "view": Plain("input", "roce_requester_pkg::qp_view_t"),
    "owner": Plain("input", P + "client_t"),
    "owner_pd": Plain("input", P + "pd_t"),
    "rate_view": Source("roce_pkg::qp_index_t"),
    "rate_viewed": Sink("roce_cc_pkg::cc_view_t"),
    "counters_view": Source("roce_pkg::qp_index_t"),
    "counters_viewed": Sink("roce_counters_pkg::qp_counters_t"),
    "wqe": Source(P + "rdma_wqe_t"),
    "cqe": Sink(P + "rdma_cqe_t"),
    "mr_cmd": Source(P + "mr_cmd_t"),
    "mr_rsp": Sink(P + "mr_rsp_t"),
    "connect": Source(P + "connect_t"),
    "conn": Sink(P + "conn_event_t"),
    "conn_answer": Source(P + "conn_answer_t"),
    "close": Source("roce_wire_pkg::qpn_t"),
    "idle": Plain("output", "logic"),
}
COMMAND, STATUS, LOST, ARGUMENT, RESULT = 0x00C, 0x010, 0x014, 0x100, 0x200
SETUP, MODIFY, RESET, RESET_ALL, QUERY = 1, 2, 3, 4, 5
MR_REGISTER, MR_DEREGISTER, MR_DEREGISTER_QP, MR_DEREGISTER_PD, MR_QUERY = 8, 9, 10, 11, 12
CONNECT, ANSWER, CLOSE, POST, POLL_CQ, POLL_EVENT, COUNTERS = 16, 17, 18, 24, 25, 26, 27
OK, UNKNOWN, BAD_QPN, REFUSED, EMPTY, FULL = range(6)
EVENT_DEPTH = 32
WORDS, ADDRESS_AT = 23, 20
OWN_IPV4, OWN_GLOBAL, OWN_LINK_LOCAL = range(3)  # own_address_e
IPV6 = 0x20010DB8_11112222_33334444_0A000002
PEERS = 0x20010DB8_00000001_00000002_0A000000  # of the QPs, the number of each added


def address_of(words: list[int], at: int) -> int:
    """The address of which this word is the last 32 bits, as ip_addr_t."""
    return words[at] | sum(words[ADDRESS_AT + i] << 32 * (i + 1) for i in range(3))


class Bench:
    """Software on the bus, and the engine around."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "bus"), dut.clk, dut.rst)
        dut.owner.value, dut.owner_pd.value, dut.view.value = 0, 0, 0
        for name, port in PORTS.items():
            if type(port) is Source:
                setattr(self, name, StreamSink(dut, name, port.type))
            elif type(port) is Sink:
                setattr(self, name, StreamSource(dut, name, port.type))
        self.states = dict.fromkeys(range(2, QPS + 2), 0)  # of each QP, as the engine shows it

    async def start(self) -> None:
        await start(self.dut)
        cocotb.start_soon(self._view())

    async def _view(self) -> None:
        layout = struct("roce_requester_pkg::qp_view_t")
        while True:
            await RisingEdge(self.dut.clk)
            qpn = int(self.dut.view_qpn.value)
            shown = {
                "state": self.states.get(qpn, 0),
                "ip": PEERS + qpn,
                "dest_qp_num": qpn * 3 % 2**24,
                "next": (qpn + 9) % 2**24,
                "oldest": (qpn + 7) % 2**24,
            }
            self.dut.view.value = layout.pack(shown)
            self.dut.owner.value, self.dut.owner_pd.value = 1, (qpn + 40) & 0xFF

    async def read(self, address: int) -> int:
        answer = await with_timeout(self.master.read(address, 4), 300 * CLOCK_NS, "ns")
        assert answer.resp == AxiResp.OKAY
        return int.from_bytes(answer.data, "little")

    async def write(self, address: int, value: int) -> None:
        answer = await with_timeout(self.master.write(address, value.to_bytes(4, "little")), 300 * CLOCK_NS, "ns")
        assert answer.resp == AxiResp.OKAY

    async def begin(self, command: int, *words: int) -> None:
        for i, word in enumerate(words):
            await self.write(ARGUMENT + 4 * i, word)
        await self.write(COMMAND, command)

    async def end(self) -> int:
        """The error code, when the command is done."""
        for _ in range(300):
            status = await self.read(STATUS)
            if not status & 1:
                error = status >> 8 & 0xFF
                assert bool(status & 2) == (error == OK)
                return error
        raise AssertionError("busy for ever")

    async def do(self, command: int, *words: int) -> int:
        await self.begin(command, *words)
        return await self.end()

    async def result(self, count: int) -> list[int]:
        return [await self.read(RESULT + 4 * i) for i in range(count)]


def words_of(data: bytes) -> list[int]:
    return [int.from_bytes(data[i : i + 4], "big") for i in range(0, len(data), 4)]


@cocotb.test()
async def queue_pairs_by_hand(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    qpn = 7
    words = [qpn, 3, 0x33445566, 0x1122, 0x0A000009, 0xB8123456, 9 | 1 << 8 | 0xB << 12 | 4 << 16 | 1 << 19, 0xABCDEF, 14 | 6 << 8,
             0xFEDCBA, 17 | 5 << 8 | 3 << 12 | 4 << 16]  # fmt: skip
    await bench.begin(SETUP, *words)
    command = await bench.hand_cmd.recv()
    attr = command.attr
    assert (command.op, command.qpn, command.state) == (constant(P + "QP_SETUP"), qpn, 3)
    assert (attr.dst_mac, attr.dst_ip, attr.own, attr.dest_qp_num) == (0x112233445566, mapped("10.0.0.9"), OWN_IPV4, 0x123456)
    assert attr.traffic_class == 0xB8
    assert (attr.pd, attr.client, attr.path_mtu, attr.selective_repeat) == (9, 1, 4, 1)
    assert struct(P + "access_t").pack(attr.access) == 0xB
    assert (attr.rq_psn, attr.min_rnr_timer, attr.max_dest_rd_atomic) == (0xABCDEF, 14, 6)
    assert (attr.sq_psn, attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.max_rd_atomic) == (0xFEDCBA, 17, 5, 3, 4)
    # While it is under way neither command nor arguments change.
    await bench.write(ARGUMENT, 99)
    await bench.write(COMMAND, POST)
    assert await bench.read(ARGUMENT) == qpn and await bench.read(COMMAND) == SETUP
    assert await bench.read(STATUS) & 1 and not int(dut.idle.value)
    bench.hand_done.send(1)
    assert await bench.end() == OK
    bench.states[qpn] = 3

    await bench.begin(MODIFY, qpn, 6)
    command = await bench.hand_cmd.recv()
    assert (command.op, command.state) == (constant(P + "QP_MODIFY"), 6)
    bench.hand_done.send(0)
    assert await bench.end() == REFUSED

    bench.rate_viewed.send(limited=1, rate=777, target=888, alpha=65536)
    assert await bench.do(QUERY, qpn) == OK
    assert await bench.rate_view.recv() == qpn - 2
    assert await bench.result(9) == [
        3,
        1 << 16 | 1 << 8 | qpn + 40,
        (PEERS + qpn) & 0xFFFFFFFF,
        qpn * 3,
        qpn + 9,
        qpn + 7,
        1 << 31 | 65536,
        777,
        888,
    ]
    assert address_of(await bench.result(WORDS), 2) == PEERS + qpn

    bench.counters_viewed.send(sum((1000 + i) << 32 * i for i in range(18)))
    assert await bench.do(COUNTERS, qpn) == OK
    assert await bench.counters_view.recv() == qpn - 2
    assert await bench.result(20) == [*range(1000, 1018), 0, 0]

    # One that the connection manager made is closed, not reset; of one in RESET a call may be under way.
    bench.states[9] = 3
    assert await bench.do(MODIFY, 9, 6) == BAD_QPN
    assert await bench.do(RESET, 9) == OK
    assert await bench.result(1) == [1]
    assert await bench.close.recv() == 9
    assert await bench.do(RESET, 10) == OK and await bench.result(1) == [0]
    assert await bench.close.recv() == 10
    await bench.begin(RESET_ALL)
    command = await bench.hand_cmd.recv()
    assert (command.op, command.qpn) == (constant(P + "QP_RESET"), qpn)
    bench.hand_done.send(1)
    assert await bench.end() == OK
    await wait_cycles(dut, 20)
    assert list(bench.close.received) == [number for number in range(2, 2 + QPS) if number != qpn] and not bench.hand_cmd.received
    bench.close.received.clear()
    bench.close.cycles.clear()
    # Its number is the connection manager's again.
    assert await bench.do(MODIFY, qpn, 6) == BAD_QPN


@cocotb.test()
async def regions(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    ops = {MR_REGISTER: "MR_REGISTER", MR_DEREGISTER: "MR_DEREGISTER", MR_DEREGISTER_QP: "MR_DEREGISTER_QP",
           MR_DEREGISTER_PD: "MR_DEREGISTER_PD", MR_QUERY: "MR_QUERY"}  # fmt: skip
    for command, op in ops.items():
        ok = random.getrandbits(1)
        await bench.begin(command, 0xAABBCCDD, 3 | 0x15 << 8, 8, 0x11223344, 0x55, 4096)
        sent = await bench.mr_cmd.recv()
        mr = {"pd": 5, "qpn": 6, "addr": 0x71_2345_6789, "length": 0x12_0000_004D, "access": 0b11010}
        bench.mr_rsp.send(ok=ok, rkey=0x1234, mr=mr)
        assert await bench.end() == (OK if ok else REFUSED)
        assert (sent.op, sent.rkey) == (constant(P + op), 0xAABBCCDD)
        assert (sent.mr.pd, sent.mr.qpn, sent.mr.addr, sent.mr.length) == (3, 8, 0x5511223344, 4096)
        assert struct(P + "access_t").pack(sent.mr.access) == 0x15
        assert await bench.result(7) == [0x1234, 0b11010 << 8 | 5, 6, 0x23456789, 0x71, 77, 0x12]


@cocotb.test()
async def work_and_completions(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    assert await bench.do(POLL_CQ) == EMPTY
    words = [5, 6 | 0b111 << 4, 0xBEEF, 0x1000, 0x2, 64, 0x89ABCDEF, 0x01234567, 0x77, 0x99, 1, 2, 3, 4, 0x55]
    assert await bench.do(POST, *words) == OK
    wqe = await bench.wqe.recv()
    assert (wqe.qpn, wqe.opcode, wqe.signaled, wqe.solicited, wqe.fence, wqe.wr_id) == (5, 6, 1, 1, 1, 0xBEEF)
    assert (wqe.local_addr, wqe.length, wqe.remote_addr) == (0x200001000, 64, 0x0123456789ABCDEF)
    assert (wqe.rkey, wqe.imm_data, wqe.swap_add, wqe.compare) == (0x77, 0x99, 2 << 32 | 1, 4 << 32 | 3)
    assert wqe.lkey == 0x55
    # When the engine takes no more, software gets FULL, and nothing that was accepted is lost.
    bench.wqe.stall = 1.0
    await wait_cycles(dut, 4)
    accepted = 0
    while await bench.do(POST, 5, 0, accepted) == OK:
        accepted += 1
    assert 0 < accepted < 6 and (await bench.read(STATUS)) >> 8 & 0xFF == FULL
    bench.wqe.stall = 0.0
    assert [(await bench.wqe.recv()).wr_id for _ in range(accepted)] == list(range(accepted))

    for i in range(3):
        bench.cqe.send(status=i * 5, opcode=9, with_imm=1, solicited=1, qpn=4, wr_id=i, byte_len=100 + i, imm_data=0xCAFE)
    await wait_cycles(dut, 4)
    assert await bench.read(STATUS) & 4
    for i in range(3):
        assert await bench.do(POLL_CQ) == OK
        assert await bench.result(5) == [4, i * 5 | 9 << 8 | 1 << 12 | 1 << 14, i, 100 + i, 0xCAFE]
    assert await bench.do(POLL_CQ) == EMPTY


async def poll(bench: Bench) -> SimpleNamespace | None:
    error = await bench.do(POLL_EVENT)
    if error == EMPTY:
        return None
    assert error == OK
    r = await bench.result(WORDS)
    private = b"".join(word.to_bytes(4, "big") for word in r[8:20])
    return SimpleNamespace(kind=r[0], qpn=r[1], tag=r[2], reason=r[3], ip=address_of(r, 4), private=private)


@cocotb.test()
async def addresses_of_ipv6(dut) -> None:
    """The flag of an argument decides whether it has one, whatever the words for the rest of the address say."""
    bench = Bench(dut)
    await bench.start()
    for ip, kind in ((IPV6, OWN_GLOBAL), (0xFE80 << 112 | 0x9ABC, OWN_LINK_LOCAL), (mapped("10.0.0.9"), OWN_IPV4)):
        last, *rest = (ip >> 32 * i & 0xFFFFFFFF for i in range(4))
        for v6 in (1, 0):
            for i, word in enumerate(rest):
                await bench.write(ARGUMENT + 4 * (ADDRESS_AT + i), word)
            wanted, own = (ip, kind) if v6 else (0xFFFF << 32 | last, OWN_IPV4)
            await bench.begin(SETUP, 7, 3, 0, 0, last, 0, v6 << 20)
            attr = (await bench.hand_cmd.recv()).attr
            bench.hand_done.send(1)
            assert (attr.dst_ip, attr.own) == (wanted, own)
            assert await bench.end() == OK
            assert await bench.do(CONNECT, 1, last, 7471 | v6 << 16) == OK
            request = await bench.connect.recv()
            assert (request.ip, request.port) == (wanted, 7471)


@cocotb.test()
async def connections(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    private = random.randbytes(48)
    assert (
        await bench.do(
            CONNECT, 0x4321, 0x0A000002, 7471, 5 | 7 << 8 | 5 << 12, 18 | 6 << 8 | 7 << 12, 4 | 8 << 8, 0, 0, *words_of(private)
        )
        == OK
    )
    request = await bench.connect.recv()
    assert (request.tag, request.ip, request.port, request.pd, request.path_mtu) == (0x4321, mapped("10.0.0.2"), 7471, 5, 5)
    assert (request.timeout, request.retry_cnt, request.rnr_retry) == (18, 6, 7)
    assert (request.responder_resources, request.initiator_depth) == (4, 8)
    assert request.private_data.to_bytes(48, "big") == private
    kinds = {name: constant(P + name) for name in ("CONN_OPENED", "CONN_ESTABLISHED", "CONN_REFUSED", "CONN_CLOSED")}
    reply = random.randbytes(48)
    bench.conn.send(kind=kinds["CONN_ESTABLISHED"], qpn=4, tag=0x4321, ip=IPV6, private_data=int.from_bytes(reply, "big"))
    bench.conn.send(kind=kinds["CONN_OPENED"], qpn=5, ip=mapped("10.0.0.3"))
    await wait_cycles(dut, 10)
    assert await bench.read(STATUS) & 8
    event = await poll(bench)
    assert (event.kind, event.qpn, event.tag, event.ip, event.private) == (kinds["CONN_ESTABLISHED"], 4, 0x4321, IPV6, reply)
    event = await poll(bench)
    assert (event.qpn, event.ip) == (5, mapped("10.0.0.3"))
    assert not bench.conn_answer.received
    assert await bench.do(ANSWER, 5, 1, *([0] * 6), *words_of(private)) == OK
    answer = await bench.conn_answer.recv()
    assert (answer.qpn, answer.accept, answer.private_data.to_bytes(48, "big")) == (5, 1, private)
    assert await bench.do(CLOSE, 5) == OK
    assert await bench.close.recv() == 5
    # Closed: its regions go first, then the number is given back, whether software looks or not.
    bench.conn.send(kind=kinds["CONN_CLOSED"], qpn=5, reason=0xFFFF)
    command = await bench.mr_cmd.recv()
    assert (command.op, command.mr.qpn) == (constant(P + "MR_DEREGISTER_QP"), 5)
    await wait_cycles(dut, 20)
    assert not bench.conn_answer.received
    bench.mr_rsp.send(ok=1)
    assert (await bench.conn_answer.recv()).qpn == 5
    event = await poll(bench)
    assert (event.kind, event.qpn, event.reason) == (kinds["CONN_CLOSED"], 5, 0xFFFF)
    assert await poll(bench) is None


@cocotb.test()
async def software_that_sleeps_stops_nobody(dut) -> None:
    """Software fetches no events: connections are refused, losses counted, outcomes of our own requests kept."""
    bench = Bench(dut)
    await bench.start()
    opened, closed, established = (constant(P + name) for name in ("CONN_OPENED", "CONN_CLOSED", "CONN_ESTABLISHED"))
    for _ in range(3):
        assert await bench.do(CONNECT, 1, 2, 3) == OK
    for i in range(40):
        bench.conn.send(kind=opened, qpn=2 + i % QPS, tag=i)
    await bench.conn.drained()
    await wait_cycles(dut, 20)
    kept = EVENT_DEPTH - 3
    assert len(bench.conn_answer.received) == 40 - kept and not any(a.accept for a in bench.conn_answer.received)
    bench.conn_answer.received.clear()
    assert await bench.read(LOST) == (40 - kept) << 16
    assert await bench.do(CONNECT, 1, 2, 3) == FULL
    for i in range(3):
        bench.conn.send(kind=established, qpn=3, tag=100 + i)
    for _ in range(5):
        bench.conn.send(kind=closed, qpn=6)
        await bench.mr_cmd.recv()
        bench.mr_rsp.send(ok=1)
    await bench.conn.drained()
    await wait_cycles(dut, 40)
    assert len(bench.conn_answer.received) == 5
    assert await bench.read(LOST) == (40 - kept) << 16 | 5
    await wait_cycles(dut, 4)
    assert int(dut.idle.value)
    got = [await poll(bench) for _ in range(EVENT_DEPTH)]
    assert [event.tag for event in got] == [*range(kept), 100, 101, 102]
    assert await poll(bench) is None
    assert await bench.do(CONNECT, 1, 2, 3) == OK


@cocotb.test()
async def events_of_queue_pairs_by_hand(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    bench.hand_done.send(1)
    assert await bench.do(SETUP, 12, 3) == OK
    fatal = constant(P + "EVENT_QP_FATAL")
    bench.qp_event.send(kind=fatal, qpn=11, status=12)  # the connection manager's
    bench.qp_event.send(kind=fatal, qpn=12, status=12)
    await bench.qp_event.drained()
    event = await poll(bench)
    assert (event.kind, event.qpn, event.tag) == (16 | fatal, 12, 12)
    assert await poll(bench) is None
    for _ in range(EVENT_DEPTH + 4):
        bench.qp_event.send(kind=fatal, qpn=12, status=10)
    await bench.qp_event.drained()
    assert await bench.read(LOST) == 4


@cocotb.test()
async def events_that_come_while_regions_are_freed(dut) -> None:
    """A connection that closes waits for its regions; events of queue pairs pass meanwhile, or are lost if there is no room."""
    bench = Bench(dut)
    await bench.start()
    bench.hand_done.send(1)
    assert await bench.do(SETUP, 12, 3) == OK
    fatal, closed = constant(P + "EVENT_QP_FATAL"), constant(P + "CONN_CLOSED")

    async def close_with_events() -> None:
        bench.conn.send(kind=closed, qpn=5)
        await bench.mr_cmd.recv()
        bench.qp_event.send(kind=fatal, qpn=11, status=12)  # the connection manager's
        bench.qp_event.send(kind=fatal, qpn=12, status=12)
        await bench.qp_event.drained()
        assert not bench.conn_answer.received
        bench.mr_rsp.send(ok=1)
        assert (await bench.conn_answer.recv()).qpn == 5

    await close_with_events()
    assert [(event.kind, event.qpn) for event in [await poll(bench), await poll(bench)]] == [(closed, 5), (16 | fatal, 12)]
    assert await poll(bench) is None and await bench.read(LOST) == 0
    for _ in range(EVENT_DEPTH):
        bench.qp_event.send(kind=fatal, qpn=12, status=10)
    await bench.qp_event.drained()
    await close_with_events()
    assert await bench.read(LOST) == 2, "that it was closed, and that the queue pair made by software failed"


@cocotb.test()
async def connects_that_nobody_takes(dut) -> None:
    """When the connection manager takes no more, software gets FULL, and nothing that was accepted is lost."""
    bench = Bench(dut)
    await bench.start()
    bench.connect.stall = 1.0
    await wait_cycles(dut, 4)
    accepted = 0
    while await bench.do(CONNECT, accepted, 2, 3) == OK:
        accepted += 1
    assert 0 < accepted < 6 and (await bench.read(STATUS)) >> 8 & 0xFF == FULL
    bench.connect.stall = 0.0
    assert [(await bench.connect.recv()).tag for _ in range(accepted)] == list(range(accepted))


@cocotb.test()
async def bad_commands_and_addresses(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    for command in (0, 6, 7, 13, 200, 255):
        assert await bench.do(command) == UNKNOWN
    for command in (SETUP, MODIFY, RESET, QUERY, COUNTERS, ANSWER, CLOSE):
        for qpn in (0, 1, QPS + 2, 0xFFFFFF):
            assert await bench.do(command, qpn) == BAD_QPN
    finished = (await bench.read(STATUS)) >> 16
    assert finished == 6 + 28
    assert [await bench.read(address) for address in (0, 4, 8)] == [int.from_bytes(b"MGMT", "big"), 1 << 16 | 1, 0x2000]
    writable = {COMMAND, *range(ARGUMENT, ARGUMENT + 4 * WORDS, 4)}
    readable = writable | {*range(0, 0x18, 4), *range(RESULT, RESULT + 4 * WORDS, 4)}
    for address in range(0, 0x1000, 4):
        answer = await bench.master.read(address, 4)
        assert answer.resp == (AxiResp.OKAY if address in readable else AxiResp.DECERR), f"{address:#x}"
        assert address in readable or answer.data == bytes(4)
        if address not in writable:
            answer = await bench.master.write(address, bytes(4))
            assert answer.resp == AxiResp.DECERR, f"{address:#x}"
    answer = await bench.master.write(ARGUMENT, b"\x01")  # a byte of a register
    assert answer.resp == AxiResp.SLVERR and await bench.read(ARGUMENT) == 0xFFFFFF
    await wait_cycles(dut, 30)
    assert int(dut.idle.value)
    assert not bench.hand_cmd.received and not bench.close.received and not bench.conn_answer.received


def test_roce_management() -> None:
    run("roce_management", __file__, params=PARAMS, ports=PORTS, random_state=True)
