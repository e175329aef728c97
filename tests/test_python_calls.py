# SPDX-License-Identifier: Apache-2.0
"""Calls from Python: how devices are named, described and called, on both kinds of device."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from conftest import ADDRESS, Wire
from nacelle_tb.long import LONG
from python_package import Package, Served

pytestmark = pytest.mark.xdist_group("python")


@pytest.fixture
def device(served: Served) -> Any:
    with served.connect() as device:
        yield device


@pytest.mark.parametrize("kind", ["--soft", "rtl"])
def test_the_product_of_matrices(wire: Wire, package: Package, kind: str) -> None:
    nacelle = package.load()
    wire.device(*([kind] if kind == "--soft" else []))
    rng = np.random.default_rng(5)
    with nacelle.connect(ADDRESS, wire=wire.folder / "wire") as device:
        for a, b in (
            (rng.standard_normal((7, 5)).astype(np.float32), rng.standard_normal((5, 9)).astype(np.float32)),
            (rng.integers(-(1 << 31), 1 << 31, (3, 4), np.int32), rng.integers(-9, 9, (4, 2), np.int32)),
        ):
            expected = np.zeros((a.shape[0], b.shape[1]), a.dtype)
            for k in range(a.shape[1]):
                expected = expected + a[:, k : k + 1] * b[k : k + 1, :]
            product = device.matmul(a, b)
            assert product.dtype == a.dtype and product.tobytes() == expected.tobytes()
            # Into an array of the caller, from one that is not in C order.
            out = np.empty_like(expected)
            assert device.matmul(np.asfortranarray(a), b, out=out) is out and out.tobytes() == expected.tobytes()
        assert device.describe().kind == ("soft" if kind == "--soft" else "rtl")
        load = device.load()
        assert load == nacelle.Load(load.connections, device.describe().memory_bytes, 0, 4, 0, 0)
        # The RTL counts a new connection some cycles after it has accepted it.
        assert load.connections >= (1 if kind == "--soft" else 0)
        with device.open() as connection, connection.remote(5000):
            # The RTL counts pages.
            assert device.load().memory_held == (5000 if kind == "--soft" else 8192)
        assert device.increment(bytearray(b"HAL")) == b"IBM"


def test_a_device_has_names(served: Served) -> None:
    nacelle, wire = served.nacelle, served.wire
    with nacelle.connect("kernels0", wire=wire) as device:
        address = device.address
        assert (device.name, device.by_udp) == ("kernels0", False)
    for target in (address, ["nobody0", "kernels0"], "nobody0,kernels0", [address]):
        with nacelle.connect(target, wire=wire) as device:
            assert device.address == address and device.ping() < 3
    with pytest.raises(nacelle.NoSuchDevice, match="nobody0"):
        nacelle.connect("nobody0", wire=wire)
    with pytest.raises(nacelle.NoTarget) as failed:
        nacelle.connect(["nobody0", "nobody1"], wire=wire)
    assert [(target, type(error).__name__) for target, error in failed.value.tried] == [
        ("nobody0", "NoSuchDevice"),
        ("nobody1", "NoSuchDevice"),
    ]


def test_a_host_has_a_name(served: Served) -> None:
    """One of the name service is tried when no device publishes it: localhost, by UDP."""
    nacelle = served.nacelle
    with nacelle.SoftDevice(wire=served.wire, udp=True, address="127.0.0.1", name="udp0") as soft:
        assert (soft.name, soft.address) == ("udp0", "127.0.0.1")
        with nacelle.connect("localhost", wire=served.wire) as device:
            assert device.by_udp and device.address == "127.0.0.1"
            assert device.increment(bytearray(b"HAL")) == b"IBM"


def test_functions_are_methods(device: Any, served: Served) -> None:
    nacelle = served.nacelle
    functions = device.functions
    assert set(functions) == {"increment", "empty", "matmul", "binary", "unary", "fill", "reduce", "dot", "hold", "count"}
    assert functions["hold"].info.code == 90 and functions["hold"].info.regions[1].access == "out"
    assert "hold(tenths, out=result)" in repr(functions["hold"]) and "Keeps its call" in device.hold.__doc__
    assert {"hold", "matmul", "call"} <= set(dir(device)) and not hasattr(device, "nothing")
    for result in (
        device.hold(b"\0", out=3),
        device.hold(tenths=b"\0", out=bytearray(3)),
        device.hold(b"\0", out=np.int64(3)),
        device.call("hold", b"\0", out=3),
        device.call(90, b"\0", out=3),
        device.call(90, nacelle.input(b"\0"), nacelle.output(3)),
    ):
        assert result == bytes(3)
    rest = [bytearray(4), bytearray(5)]
    assert device.count(b"x", *rest, immediate=0x123456) == tuple(rest)
    assert rest == [b"\x56\x34\x12\0", b"\x56\x34\x12\0\0"]
    assert device.count(b"x", rest=rest[:1], immediate=7) is rest[0] and rest[0][0] == 7


def test_wrong_arguments_are_named(device: Any, served: Served) -> None:
    nacelle = served.nacelle
    a = np.ones((2, 3), np.float32)
    wrong: list[tuple[type[Exception], str, Any]] = [
        (TypeError, r"hold takes 1 buffers, not 2: hold\(tenths, out=result\)", lambda: device.hold(b"1", b"2", out=1)),
        (TypeError, "hold needs out= for result", lambda: device.hold(b"1")),
        (TypeError, "count takes at least 1 buffers, not 0", lambda: device.count()),
        (TypeError, "hold has no region 'x'", lambda: device.hold(b"1", x=b"2", out=1)),
        (TypeError, r"region 0 \(tenths\): int has neither", lambda: device.hold(1, out=1)),
        (TypeError, "Region for each", lambda: device.call("hold", nacelle.input(b"1"), b"2")),
        (nacelle.InvalidArgument, "0 bytes", lambda: device.hold(b"1", out=0)),
        (nacelle.InvalidArgument, "-5 bytes", lambda: device.hold(b"1", out=np.int64(-5))),
        (nacelle.InvalidArgument, "no bytes", lambda: device.hold(b"", out=1)),
        (nacelle.InvalidArgument, "24 bits", lambda: device.hold(b"1", out=1, immediate=1 << 24)),
        (nacelle.InvalidArgument, "-1 s", lambda: device.hold(b"1", out=1, timeout=-1)),
        (nacelle.InvalidArgument, "not 1 to 127", lambda: device.call(128, nacelle.inout(bytearray(1)))),
        (nacelle.UnknownFunction, "describes no function 'nothing'", lambda: device.call("nothing")),
        (nacelle.UnknownFunction, "does not have function 99", lambda: device.call(99, nacelle.inout(bytearray(1)))),
        (nacelle.InvalidArgument, "cannot multiply float32", lambda: device.matmul(a, a)),
        (nacelle.InvalidArgument, "no elements of type float64", lambda: device.matmul(a.astype("f8"), a.T.astype("f8"))),
        (nacelle.InvalidArgument, "A has elements of float16", lambda: device.matmul(a.astype("f2"), a)),
        (nacelle.InvalidArgument, "A has elements of another type", lambda: device.matmul(a.astype(">f4"), a)),
        (nacelle.InvalidArgument, "the result float32 of shape", lambda: device.matmul(a, a.T, out=np.empty((2, 2)))),
        (nacelle.InvalidArgument, "no such operation", lambda: device.binary("divide", a, a)),
        (nacelle.InvalidArgument, "no int32", lambda: device.fill(1 << 40, out=np.empty(3, np.int32))),
        (nacelle.InvalidArgument, "no link 'tcp'", lambda: nacelle.connect("kernels0", wire=served.wire, link="tcp")),
        (nacelle.InvalidArgument, "'x' is not ADDRESS", lambda: nacelle.connect("kernels0", wire=served.wire, source="x")),
        (nacelle.Kernel, "the argument block is wrong", lambda: device.call("matmul", bytes(64), a, a, out=4)),
    ]
    for kind, said, call in wrong:
        with pytest.raises(kind, match=said) as failed:
            call()
        assert not isinstance(failed.value, nacelle.Error) or failed.value.hint
    assert failed.value.result == 0x10
    # And the device works as before.
    assert device.hold(b"\0", out=1) == b"\0"


def test_operations_on_vectors(device: Any) -> None:
    x, y = np.array([1.0, 5.0, -3.0]), np.array([2.0, 0.5, 1.0])
    assert device.binary("axpy", x, y, scalar=2.0).tolist() == [4.0, 10.5, -5.0]
    assert device.unary("prefix_sum", x.astype(np.int32)).tolist() == [1, 6, 3]
    assert device.unary("scale", x, scalar=-1).tolist() == [-1.0, -5.0, 3.0]
    assert (device.reduce("sum", x), device.reduce("argmin", x), device.dot(x, y)) == (3.0, 2, 1.5)
    out = np.empty((2, 2), np.int64)
    assert device.fill(-7, out=out) is out and (out == -7).all()


def test_a_call_is_made_again_and_again(device: Any, served: Served) -> None:
    data = bytearray(b"HAL")
    with device.create("increment", data, timeout=20) as call:
        for turn in range(5):
            call.invoke()
            assert call.running and call.wait() and not call.running
            assert call.result is data and data[0] == ord("H") + 1 + turn
        call.set_function("empty")
        call.invoke()
        while not call.test():
            pass
        assert data[0] == ord("H") + 5
        assert {"inputs", "compute", "outputs"} <= {step["step"] for step in call.report()["steps"]}
    with pytest.raises(served.nacelle.ClosedHandle):
        call.invoke()
    call.close()


def test_a_wait_ends_in_time_and_a_call_by_its_deadline(device: Any, served: Served) -> None:
    nacelle = served.nacelle
    begin = time.monotonic()
    with device.create("hold", b"\5", out=1) as call:
        call.invoke()
        assert not call.wait(0.1) and not call.wait(0)
        assert time.monotonic() - begin < 0.4
        assert call.wait() and call.result == b"\5"
    with pytest.raises(nacelle.DeadlineExceeded) as failed:
        device.hold(b"\xff", out=1, timeout=0.2)
    assert isinstance(failed.value, TimeoutError) and time.monotonic() - begin < 5


def test_calls_run_side_by_side_and_are_cancelled(device: Any, served: Served) -> None:
    begin = time.monotonic()
    with device.open(contexts=3) as connection:
        assert connection.contexts == 3 and connection.can_cancel and connection.has_chains
        calls = [connection.hold.create(bytes([tenths]), out=1) for tenths in (4, 4, 255)]
        assert connection.free_contexts == 0
        with pytest.raises(served.nacelle.NoFreeContext):
            connection.hold(b"\0", out=1)
        for call in calls:
            call.invoke()
        calls[2].cancel()
        with pytest.raises(served.nacelle.Cancelled):
            calls[2].wait()
        assert calls[0].wait() and calls[1].wait()
        assert time.monotonic() - begin < 3
        for call in calls:
            call.close()
        assert connection.increment(bytearray(b"HAL")) == b"IBM"
    with pytest.raises(served.nacelle.ClosedHandle):
        _ = connection.contexts


def test_chains(device: Any, served: Served) -> None:
    nacelle = served.nacelle
    first, second = bytearray(8), bytearray(8)
    with device.open() as connection:
        steps = [("increment", slice(0, 1), 0), (1, range(0, 2), 0)]
        with connection.chain(steps, nacelle.inout(first), nacelle.inout(second)) as call:
            call.invoke()
            call.wait()
            assert call.result == (first, second) == (bytearray([2] * 8), bytearray([1] * 8))


def test_another_thread_cancels_and_waits_release_the_lock(device: Any, served: Served) -> None:
    """The waiting thread has no lock of the interpreter: this one goes on."""
    outcome: list[BaseException] = []
    with device.create("hold", b"\xff", out=1) as call:
        call.invoke()

        def wait() -> None:
            try:
                call.wait()
            except served.nacelle.Cancelled as error:
                outcome.append(error)

        waiter = threading.Thread(target=wait)
        waiter.start()
        turns, end = 0, time.monotonic() + 0.3
        while time.monotonic() < end:
            turns += 1
        assert turns > 10_000 and waiter.is_alive()
        call.cancel()
        waiter.join(10)
        assert not waiter.is_alive() and outcome


INTERRUPTED = """
import os, signal, sys, threading, time
import nacelle

def handler(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGINT, handler)
step = sys.argv[1]
device = nacelle.connect("kernels0", timeout=50) if step != "connect" else None
threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begin = time.monotonic()
try:
    if step == "connect":
        nacelle.connect("10.77.200.200", resolve_timeout=30)
    elif step == "wait":
        device.hold(b"\\xff", out=1)
    else:
        with device.open() as connection:
            connection.hold(b"\\xff", out=1)
except KeyboardInterrupt:
    print(f"{time.monotonic() - begin:.2f}")
if device:
    assert device.increment(bytearray(b"a")) == b"b"
    device.close()
"""


@pytest.mark.parametrize("step", ["connect", "wait", "context"])
def test_ctrl_c_ends_every_wait(served: Served, step: str) -> None:
    said = served.package.run(served.wire, INTERRUPTED, step)
    assert 0.3 < float(said.stdout) < 3 and not said.stderr, said


def test_a_handler_of_a_signal_that_returns_ends_no_wait(device: Any) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))
    try:
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
        assert device.hold(b"\4", out=1) == b"\4" and seen == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.skipif(not LONG, reason="takes 15 s: NACELLE_LONG=1")
def test_the_loss_of_a_device(package: Package) -> None:
    served = Served(package)
    try:
        with served.connect(acknowledge_timeout=0.1) as device, device.create("hold", b"\xff", out=1) as call:
            call.invoke()
            served.process.kill()
            served.process.wait()
            with pytest.raises(served.nacelle.Error) as failed:
                call.wait()
            assert isinstance(failed.value, served.nacelle.Lost | served.nacelle.Link), failed.value
            with pytest.raises(served.nacelle.Error):
                call.invoke()
    finally:
        served.close()
