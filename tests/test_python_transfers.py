# SPDX-License-Identifier: Apache-2.0
"""One-sided transfers from Python: between hosts, and to memory of a device."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from python_package import Package, Served

pytestmark = pytest.mark.xdist_group("python")


@pytest.fixture
def nacelle(served: Served) -> Any:
    return served.nacelle


@pytest.fixture
def host(served: Served) -> Iterator[Any]:
    with served.nacelle.Acceptor(wire=served.wire) as host:
        yield host


@pytest.fixture
def connection(served: Served, host: Any) -> Iterator[Any]:
    with served.nacelle.connect(host.address, wire=served.wire) as device, device.open() as connection:
        yield connection


def test_what_is_written_arrives_and_what_is_read_was_there(nacelle: Any, host: Any, connection: Any) -> None:
    told: list[tuple[str, int, int, bytes]] = []
    host.accept_incoming_write(7, 1 << 20, lambda write: told.append((write.peer, write.window, write.label, bytes(write.data))))
    table = np.arange(100_000, dtype=np.uint32)
    reads: list[Any] = []
    host.accept_incoming_read(7, table, reads.append)
    numbers = np.arange(50_000, dtype=np.float64)
    assert connection.write(7, numbers, label=0xABCD) is None
    (peer, window, label, data) = told[0]
    assert peer != host.address and (window, label) == (7, 0xABCD) and data == numbers.tobytes()
    assert connection.read(7, 8) == table[:2].tobytes()
    table[1] = 99
    into = np.zeros(2, dtype=np.uint32)
    assert connection.read(7, into) is into and into.tolist() == [0, 99]
    assert reads == []
    with connection.window_to_read(7, 100) as remote:
        assert remote.size == 100 and remote.read(96, 4).finish() == table[24:25].tobytes()
        remote.notify(5).wait()
    assert reads == [nacelle.Incoming(reads[0].peer, 7, 5, None)]


def test_the_first_peer_finds_windows_that_were_opened_before(served: Served, nacelle: Any, host: Any) -> None:
    told: list[Any] = []
    with nacelle.Acceptor(wire=served.wire, name="early0", listen=False) as early:
        early.accept_incoming_write(1, 8, lambda write: told.append((bytes(write.data), early.name)))
        early.accept_incoming_read(1, b"a table")
        assert repr(early) == "<acceptor that does not listen yet>"
        for name in ("address", "name"):
            with pytest.raises(nacelle.InvalidArgument, match="does not listen yet"):
                getattr(early, name)
        with pytest.raises(nacelle.NoSuchDevice):
            nacelle.connect("early0", wire=served.wire)
        early.listen()
        with pytest.raises(nacelle.InvalidArgument, match="listens already"):
            early.listen()
        with nacelle.connect("early0", wire=served.wire) as device, device.open() as connection:
            connection.write(1, b"abc")
            assert connection.read(1, 7) == b"a table" and told == [(b"abc", "early0")]
            assert repr(early) == f"<acceptor early0 at {device.address}>"
    # That an address is taken shows when it listens.
    second = nacelle.Acceptor(f"{host.address}/16", wire=served.wire, listen=False)
    for _ in range(2):
        with pytest.raises(nacelle.AddressTaken, match="used by another"):
            second.listen()
    second.close()
    with pytest.raises(nacelle.ClosedHandle):
        second.listen()


def test_many_transfers_on_one_remote(nacelle: Any, host: Any, connection: Any) -> None:
    seen: list[bytes] = []

    def note(write: Any) -> None:
        seen.append(bytes(write.data))
        write.data[0] = 77
        if write.label:
            raise nacelle.KernelFailure(write.label)

    host.accept_incoming_write(1, 1000, note)
    with connection.window_to_write(1, 1000) as remote:
        transfers = [remote.write(at, bytes([at // 100]) * 100) for at in range(0, 1000, 100)]
        assert transfers[-1].wait() and all(transfer.test() for transfer in transfers)
        assert remote.write_and_notify(900, b"x").finish() == b"x"
        assert seen[0][:900] == b"".join(bytes([at]) * 100 for at in range(9)) and seen[0][900:902] == b"x\t"
        failed = remote.notify(0x33)
        for _ in range(2):
            with pytest.raises(nacelle.Kernel) as caught:
                failed.wait()
            assert caught.value.result == 0x33
        back = bytearray(2)
        assert remote.read(0, back).finish() is back and back == b"\x4d\0"
        back += b"a buffer is free at the end of its transfer"
        # A transfer that nobody keeps goes on.
        remote.write(0, b"kept until it has ended")
        assert remote.read(0, 4).finish() == b"kept"


def test_memory_of_a_device_without_a_call(served: Served) -> None:
    with served.connect() as device, device.open() as connection, connection.remote(1 << 20) as remote:
        numbers = np.arange(1000)
        remote.write(4096, numbers)
        got = np.zeros_like(numbers)
        remote.read(4096, got).wait()
        assert (got == numbers).all() and connection.free_contexts == connection.contexts - 1


def test_transfers_are_awaited(served: Served, nacelle: Any, host: Any) -> None:
    go_on = threading.Event()

    def slow(write: Any) -> None:
        go_on.wait(20)

    host.accept_incoming_write(1, 100, slow)
    host.accept_incoming_read(2, b"something to read")

    async def main() -> None:
        with nacelle.connect(host.name, wire=served.wire) as device, device.open() as connection:
            with connection.window_to_write(1, 100) as remote:
                told = asyncio.ensure_future(remote.write_and_notify(0, b"abc"))
                assert await connection.read_async(2, 9) == b"something"
                assert not told.done()
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(asyncio.shield(told), 0.05)
                go_on.set()
                assert await told == b"abc"
            await connection.write_async(1, b"abc", 3)
            with pytest.raises(nacelle.RegionsRefused):
                await connection.write_async(9, b"abc")
            assert connection.free_contexts == connection.contexts

    asyncio.run(main())


def test_callbacks_that_fail_and_windows_that_close(
    nacelle: Any, host: Any, connection: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(write: Any) -> None:
        raise ValueError("it is broken")

    window = host.accept_incoming_write(1, 8, broken)
    with caplog.at_level(logging.ERROR, "nacelle"), pytest.raises(nacelle.Kernel) as caught:
        connection.write(1, b"abc")
    assert caught.value.result == 0x7F and "the callback of window 1" in caplog.text and "it is broken" in caplog.text
    with pytest.raises(nacelle.WindowOpen, match="window 1 is open already"):
        host.accept_incoming_write(1, 8, broken)
    remote = connection.window_to_write(1, 8)
    window.close()
    window.close()
    with pytest.raises(nacelle.RegionsRefused):
        connection.write(1, b"abc")
    with pytest.raises(nacelle.SocketUnavailable):
        remote.notify().wait()
    # It may close its own window.
    with host.accept_incoming_write(1, 8, lambda write: own.close()) as own:
        connection.write(1, b"abc")
    # A buffer is its owner's again when its window was closed.
    table = bytearray(100)
    shown = host.accept_incoming_read(2, table)
    part = connection.window_to_read(2, 100)
    with pytest.raises(BufferError):
        table += b"x"
    shown.close()
    table += b"x"
    with pytest.raises(nacelle.Transport):
        part.read(0, 1).wait()


def test_no_callback_runs_after_the_close(served: Served, nacelle: Any, host: Any) -> None:
    closed = False
    calls = []

    def note(write: Any) -> None:
        calls.append(closed)
        time.sleep(0.002)
        calls.append(closed)

    window = host.accept_incoming_write(1, 8, note)
    with nacelle.connect(host.address, wire=served.wire) as device, device.open() as connection:
        remote = connection.window_to_write(1, 8)

        def write() -> None:
            with pytest.raises(nacelle.SocketUnavailable):
                while True:
                    remote.write_and_notify(0, b"abc").wait()

        writer = threading.Thread(target=write)
        writer.start()
        while len(calls) < 10:
            time.sleep(0.001)
        window.close()
        closed = True
        writer.join(20)
        assert not writer.is_alive() and not any(calls) and len(calls) % 2 == 0


def test_misuse_gives_errors(served: Served, nacelle: Any, host: Any, connection: Any) -> None:
    host.accept_incoming_write(1, 8, print)
    for wrong in (0, -1, True):
        with pytest.raises(nacelle.InvalidArgument):
            connection.read(1, wrong)
    with pytest.raises(TypeError):
        connection.write(1, "text")
    with pytest.raises(OverflowError):
        connection.write(1, b"abc", label=1 << 16)
    with pytest.raises(nacelle.InvalidArgument):
        connection.read(1, b"read-only")
    with pytest.raises(nacelle.InvalidArgument, match="not C-contiguous"):
        connection.write(1, np.zeros(8, dtype=np.uint8)[::2])
    with pytest.raises(nacelle.RegionsRefused):
        connection.write(1, bytes(9))
    remote = connection.window_to_write(1, 8)
    with pytest.raises(nacelle.InvalidArgument, match="not within"):
        remote.write(1, bytes(8))
    remote.close()
    remote.close()
    with pytest.raises(nacelle.ClosedHandle):
        remote.write(0, b"abc")
    for wrong in ("here", "10.77.0.9/99"):
        with pytest.raises(nacelle.InvalidArgument):
            nacelle.Acceptor(wrong, wire=served.wire)
    with pytest.raises(nacelle.AddressTaken, match="used by another"):
        nacelle.Acceptor(f"{host.address}/16", wire=served.wire)
    host.close()
    host.close()
    with pytest.raises(nacelle.ClosedHandle):
        host.accept_incoming_write(1, 8, print)


PROGRAM = """
import os, sys
import nacelle

host = nacelle.Acceptor(wire=sys.argv[1])
host.accept_incoming_write(1, 100, lambda write: print(write.peer != "", bytes(write.data)))
device = nacelle.connect(host.address, wire=sys.argv[1])
connection = device.open()
remote = connection.window_to_write(1, 3)
connection.write(1, b"abc")
sys.stdout.flush()
child = os.fork()
if child == 0:
    for act in (lambda: remote.notify(), lambda: connection.write(1, b"abc"), lambda: host.accept_incoming_write(2, 1, print)):
        try:
            act()
        except nacelle.Forked:
            print("forked")
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
remote.write_and_notify(0, b"def")
"""


def test_a_program_may_fork_and_exit_with_transfers_under_way(package: Package) -> None:
    with tempfile.TemporaryDirectory(prefix="nw", dir="/tmp") as folder:
        said = package.run(Path(folder) / "wire", PROGRAM, os.path.join(folder, "wire")).stdout.splitlines()
    assert said[:4] == ["True b'abc'", "forked", "forked", "forked"], said
