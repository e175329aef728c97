# SPDX-License-Identifier: Apache-2.0
"""Two devices on a line, queue pairs made by hand, work requests of software with L_Keys of its own: a work request touches the
memory of its region and no other, and a wrong key ends its queue pair, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from nacelle_tb.long import some
from nacelle_tb.management import State
from nacelle_tb.programs import LOCAL, OTHER, REMOTE, SIZE, Programs
from nacelle_tb.roce import op
from nacelle_tb.widths import WIDTHS

LOCAL_WRITE = 0x10
WRITE, SEND, READ, RECV, CAS = (op(f"WR_{n}") for n in ("RDMA_WRITE", "SEND", "RDMA_READ", "RECV", "ATOMIC_CMP_AND_SWP"))
SUCCESS, PROTECTION, FLUSHED, REMOTE_OPERATIONAL = (
    op(f"WC_{n}") for n in ("SUCCESS", "LOC_PROT_ERR", "WR_FLUSH_ERR", "REM_OP_ERR")
)


@pytest.fixture(params=some(WIDTHS))
def programs(request: pytest.FixtureRequest) -> Iterator[Programs]:
    pair = Programs(request.param)
    yield pair
    pair.close()


def test_a_key_serves_its_region(programs: Programs) -> None:
    p = programs
    for access, lkey in ((0, None), (LOCAL_WRITE, None), (0, 0)):  # the last is the reserved one, which software may use
        key = p.managers[0].register(LOCAL, SIZE, access=access) if lkey is None else lkey
        p.remote(bytes(3 * SIZE))
        p.post(0, WRITE, key)
        assert p.completion(0) == (0, SUCCESS)
        assert p.remote() == bytes(SIZE) + p.mine[SIZE : 2 * SIZE] + bytes(SIZE)
        if access or lkey is not None:
            p.remote(b"\x5a" * 3 * SIZE)
            p.post(0, READ, key)
            assert p.completion(0) == (0, SUCCESS)
            assert p.local() == p.mine[:SIZE] + b"\x5a" * SIZE + p.mine[2 * SIZE :]
            p.devices[0].dram_write(LOCAL - SIZE, p.mine)


def test_a_wrong_key_costs_its_queue_pair_and_changes_nothing(programs: Programs) -> None:
    p = programs
    good = p.managers[0].register(LOCAL, SIZE, access=LOCAL_WRITE)
    bare = p.managers[0].register(LOCAL, SIZE, access=0)
    foreign = p.managers[0].register(LOCAL, SIZE, access=LOCAL_WRITE, pd=7)
    others = p.managers[0].register(LOCAL, SIZE, access=LOCAL_WRITE, qpn=OTHER)
    gone = p.managers[0].register(LOCAL, SIZE, access=LOCAL_WRITE)
    p.managers[0].run("MR_DEREGISTER", {0: gone})
    p.remote(b"\xcc" * 3 * SIZE)
    before = p.local(), p.remote()
    wrong = [
        (WRITE, good ^ 1 << 20, LOCAL), (WRITE, good, LOCAL + 1), (WRITE, good, LOCAL - 1), (WRITE, foreign, LOCAL),
        (SEND, others, LOCAL), (READ, bare, LOCAL), (CAS, bare, LOCAL), (READ, good, LOCAL - 1), (CAS, good, LOCAL + SIZE - 7),
        (WRITE, gone, LOCAL), (READ, gone, LOCAL), (SEND, 1, LOCAL),
    ]  # fmt: skip
    for i, (opcode, lkey, addr) in enumerate(wrong):
        p.post(0, opcode, lkey, addr, wr_id=i)
        p.post(0, WRITE, good, wr_id=100)
        assert p.completion(0) == (i, PROTECTION), f"{opcode} {lkey:x} {addr:x}"
        assert p.completion(0) == (100, FLUSHED)
        assert p.state(0) == State.ERR and p.state(0, OTHER) == State.RTS
        assert (p.local(), p.remote()) == before
        p.again()
    p.post(0, WRITE, others, qpn=OTHER)
    assert p.completion(0) == (0, SUCCESS)


def test_a_receive_with_a_wrong_key_takes_nothing(programs: Programs) -> None:
    p = programs
    good = p.managers[1].register(REMOTE, SIZE, access=LOCAL_WRITE)
    bare = p.managers[1].register(REMOTE, SIZE, access=0)
    gone = p.managers[1].register(REMOTE, SIZE, access=LOCAL_WRITE)
    p.remote(b"\xcc" * 3 * SIZE)
    before = p.remote()
    for lkey, addr in ((bare, REMOTE), (good, REMOTE + 1), (good ^ 1 << 20, REMOTE), (gone, REMOTE)):
        p.post(1, RECV, lkey, addr, wr_id=5)
        p.post(1, RECV, good, REMOTE, wr_id=6)
        if lkey == gone:  # between posting and use
            p.managers[1].run("MR_DEREGISTER", {0: gone})
        p.post(0, SEND, 0, length=100)
        assert p.completion(0) == (0, REMOTE_OPERATIONAL)
        assert [p.completion(1) for _ in range(2)] == [(5, PROTECTION), (6, FLUSHED)]
        assert p.state(1) == State.ERR and p.remote() == before
        p.again()
    p.post(1, RECV, good, REMOTE, wr_id=7)
    p.post(0, SEND, 0, length=100)
    assert (p.completion(0), p.completion(1)) == ((0, SUCCESS), (7, SUCCESS))
    assert p.remote() == before[:SIZE] + p.mine[SIZE : SIZE + 100] + before[SIZE + 100 :]


def test_a_key_that_goes_stops_what_was_posted_under_it(programs: Programs) -> None:
    """When the deregistration is answered nothing is read or written under it: the memory may be another's."""
    p = programs
    length = 1 << 20
    for opcode in (WRITE, READ):
        key = p.managers[0].register(LOCAL, length, access=LOCAL_WRITE)
        p.rkey = p.managers[1].register(REMOTE, length)
        p.devices[0].dram_write(LOCAL, b"\x11" * length)
        p.devices[1].dram_write(REMOTE, b"\x22" * length)
        p.post(0, opcode, key, length=length)
        p.line.step(6000)
        p.managers[0].run("MR_DEREGISTER", {0: key})
        p.devices[0].dram_write(LOCAL, b"\x33" * length)
        assert p.completion(0) == (0, PROTECTION)
        p.line.step(100_000)
        assert p.devices[0].dram_read(LOCAL, length) == b"\x33" * length, "written behind the answer"
        far = p.devices[1].dram_read(REMOTE, length)
        assert b"\x33" not in far, "read behind the answer"
        assert opcode == READ or (b"\x11" in far and b"\x22" in far), "in the middle of the message"
        p.again()
