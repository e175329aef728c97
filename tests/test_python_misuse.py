# SPDX-License-Identifier: Apache-2.0
"""What programs must not do gives an error that says so, and never a crash or a wait for ever."""

from __future__ import annotations

import pickle
import re
import subprocess
import threading
import time
from typing import Any

import pytest
from conftest import ROOT
from python_package import Package, Served

pytestmark = pytest.mark.xdist_group("python")


def test_every_error_of_the_library_has_a_class(package: Package) -> None:
    nacelle = package.load()
    from nacelle import _native

    classes = {
        kind.__name__: kind.code for kind in vars(nacelle).values() if isinstance(kind, type) and issubclass(kind, nacelle.Error)
    }
    edge = {"ClosedHandle": 1003, "Busy": 1004, "Forked": 1005}
    assert classes == {"Error": 0, **_native.ERROR_CODES, **edge}
    page = (ROOT / "docs" / "reference" / "errors.md").read_text()
    part = page.partition("## Errors of the client library")[2].partition("\n## ")[0]
    table = re.findall(r"^\| (\d+) \| `(\w+)`", part, re.MULTILINE)
    assert {name: int(code) for code, name in table} == _native.ERROR_CODES
    for kind in (nacelle.Lost, nacelle.Timeout, nacelle.Link, nacelle.InvalidArgument, nacelle.Kernel):
        error = kind("what happened", "what to try")
        assert str(error) == "what happened" and error.hint == "what to try" and getattr(error, "errno", None) is None
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind and (str(again), again.hint, again.__notes__) == (str(error), error.hint, error.__notes__)


def test_what_was_closed_says_so(served: Served) -> None:
    nacelle = served.nacelle
    device = served.connect()
    connection, call = device.open(), device.create("hold", b"\xff", out=1)
    shared = connection.create("hold", b"\xff", out=1)
    call.invoke()
    shared.invoke()
    begin = time.monotonic()
    device.close()
    assert time.monotonic() - begin < 4
    for use in (
        lambda: device.hold(b"\0", out=1),
        lambda: device.call(90, nacelle.inout(bytearray(1))),
        lambda: device.open(),
        lambda: device.ping(),
        lambda: device.fileno(),
        lambda: device.progress(),
        lambda: connection.contexts,
        lambda: connection.call(90, nacelle.inout(bytearray(1))),
        lambda: call.invoke(),
        lambda: call.wait(),
        lambda: call.test(),
        lambda: call.cancel(),
        lambda: call.running,
        lambda: call.report(),
        lambda: shared.wait(),
    ):
        with pytest.raises(nacelle.ClosedHandle, match="was closed"):
            use()
    for closed in (device, connection, call, shared):
        closed.close()
    # Closed or not, what is dropped ends.
    other = served.connect()
    dropped = other.create("hold", b"\xff", out=1)
    dropped.invoke()
    del dropped, other


def test_wrong_order_says_so(served: Served) -> None:
    nacelle = served.nacelle
    with served.connect() as device, device.create("hold", b"\1", out=1) as call:
        assert call.test() and call.wait()  # nothing runs
        call.cancel()
        call.invoke()
        with pytest.raises(nacelle.InvalidArgument, match="runs already"):
            call.invoke()
        with pytest.raises(nacelle.InvalidArgument, match="the call runs"):
            call.set_function(1)
        call.wait()
        with pytest.raises(nacelle.InvalidArgument, match="not 1 to 127"):
            call.set_function(0)
    for wrong in (None, 7, object()):
        with pytest.raises((nacelle.Error, TypeError)):
            nacelle.connect(wrong, wire=served.wire)
    for kind in (nacelle._native.Call, nacelle._native.Device, nacelle._native.Connection, nacelle._native.Lent):
        with pytest.raises(TypeError):
            kind()


def test_a_call_is_of_one_thread_at_a_time(served: Served) -> None:
    nacelle = served.nacelle
    with served.connect() as device, device.create("hold", b"\xff", out=1) as call:
        call.invoke()
        ended = threading.Event()

        def wait() -> None:
            with pytest.raises(nacelle.Cancelled):
                call.wait()
            ended.set()

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.2)
        for use in (call.test, call.wait, call.invoke, call.close, call.report):
            with pytest.raises(nacelle.Busy, match="another thread uses the call"):
                use()
        call.cancel()
        thread.join(10)
        assert ended.is_set()
        call.close()


def test_threads_with_calls_of_their_own(served: Served) -> None:
    with served.connect() as device:
        wrong: list[Any] = []

        def work(number: int) -> None:
            for turn in range(20):
                data = bytearray([number, turn])
                if device.increment(data) != bytes([number + 1, turn + 1]):
                    wrong.append(data)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not wrong and not any(thread.is_alive() for thread in threads)


FORKS = """
import os, sys, warnings
import nacelle
warnings.simplefilter("ignore")
device = nacelle.connect("kernels0", progress_thread=sys.argv[1] == "thread")
connection = device.open()
data = bytearray(1)
call = device.create("hold", b"\\3", out=data)
call.invoke()
shared = connection.create("increment", bytearray(1))
child = os.fork()
if child == 0:
    uses = [call.wait, call.cancel, call.close, device.ping, connection.close, shared.invoke, device.close, lambda: device.open()]
    for use in uses:
        try:
            use()
            os._exit(1)
        except nacelle.Forked:
            pass
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(2)
    # What the child drops stays as it is for its parent; and it may connect by itself.
    del use, uses, call, shared, connection, device
    with nacelle.connect("kernels0") as own:
        right = own.increment(bytearray(b"a")) == b"b"
    sys.exit(0 if right else 3)
assert os.waitpid(child, 0)[1] == 0, "the child failed"
call.wait()
assert data == b"\\3"
shared.invoke()
shared.wait()
assert shared.result == b"\\1"
print("right")
"""


@pytest.mark.parametrize("progress", ["none", "thread"])
def test_a_forked_process_is_told_so_and_disturbs_nobody(served: Served, progress: str) -> None:
    assert served.package.run(served.wire, FORKS, progress).stdout == "right\n"


EXITS = """
import asyncio, sys, threading, time
import nacelle
how = sys.argv[1]
device = nacelle.connect("kernels0", progress_thread=how == "thread")
connection = device.open()
calls = [device.create("hold", b"\\xff", out=bytearray(1000)), connection.create("hold", b"\\xff", out=1)]
for call in calls:
    call.invoke()
if how == "waiting":
    threading.Thread(target=calls[0].wait, daemon=True).start()
    time.sleep(0.2)
if how == "cycle":
    calls.append(calls)
    del device, connection, call
if how == "task":
    async def main():
        asyncio.create_task(device.call_async("hold", b"\\xff", out=1))
        await asyncio.sleep(0.3)
    asyncio.run(main())
if how == "error":
    raise SystemError("on purpose")
print("ends")
"""


@pytest.mark.parametrize("how", ["plain", "thread", "waiting", "cycle", "task", "error"])
def test_a_program_may_exit_with_calls_under_way(served: Served, how: str) -> None:
    begin = time.monotonic()
    said = served.package.run(served.wire, EXITS, how, expect=how == "error")
    assert time.monotonic() - begin < 10
    if how == "error":
        assert "on purpose" in said.stderr
    else:
        # The thread that waits is told, if there is time for that.
        assert said.stdout == "ends\n" and "Fatal" not in said.stderr and (how == "waiting" or not said.stderr), said.stderr
    # Its calls are no longer under way.
    with served.connect() as device:
        assert device.hold(b"\0", out=1) == b"\0"


def test_a_program_that_is_killed_leaves_the_device_as_it_was(served: Served) -> None:
    process = served.package.start(
        served.wire, EXITS.replace('print("ends")', 'print("runs", flush=True); time.sleep(60)'), "plain"
    )
    assert process.stdout and process.stdout.readline() == "runs\n"
    process.kill()
    process.communicate()
    with served.connect() as device:
        assert device.hold(b"\0", out=1) == b"\0"


def test_the_wire_goes_away(package: Package) -> None:
    served = Served(package)
    nacelle = served.nacelle
    device = served.connect(acknowledge_timeout=0.1, timeout=2)
    served.close()
    begin = time.monotonic()
    with pytest.raises(nacelle.Error):
        device.increment(bytearray(1))
    device.close()
    with pytest.raises(nacelle.Error):
        served.connect()
    assert time.monotonic() - begin < 20


def test_nothing_is_printed_on_the_way(served: Served) -> None:
    """A program that does everything right says nothing, with every warning of Python on."""
    script = """
import nacelle
with nacelle.connect("kernels0") as device:
    device.increment(bytearray(1))
"""
    said: subprocess.CompletedProcess[str] = served.package.run(served.wire, script)
    assert said.stdout == said.stderr == ""
