# SPDX-License-Identifier: Apache-2.0
"""Kernels in Python on a software device in the same process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import Wire
from python_package import Package, Served

pytestmark = pytest.mark.xdist_group("python")


@pytest.fixture
def nacelle(package: Package) -> Any:
    return package.load()


@pytest.fixture
def call(nacelle: Any, wire: Wire) -> Iterator[Any]:
    """Runs a kernel on a device of its own, and returns the method that calls it."""
    opened: list[Any] = []

    def run(kernel: Any, **options: Any) -> Any:
        soft = nacelle.SoftDevice([kernel], wire=wire.folder / "wire", standard_kernels=False, **options).start()
        device = nacelle.connect(soft.address, wire=wire.folder / "wire")
        opened[:0] = [device, soft]
        return device.functions[kernel.name]

    yield run
    for one in opened:
        one.close()


def test_a_kernel_works_on_the_memory_of_the_call(nacelle: Any, call: Any) -> None:
    seen: list[Any] = []

    @nacelle.kernel(
        code=80,
        name="scale",
        regions=[("factor", "in", "one byte"), ("data", "inout", "float32"), ("sum", "out"), ("room", "internal")],
        errors={0x20: "the factor is zero"},
        version=(2, 5),
    )
    def scale(factor: memoryview, data: memoryview, total: memoryview, call: Any, internal: list[memoryview]) -> None:
        """Multiplies all elements.

        More than one line.
        """
        seen.append((factor.readonly, data.readonly, len(internal), internal[0].nbytes, call.user, call.cancelled))
        if factor[0] == 0:
            raise nacelle.KernelFailure(0x20)
        elements = np.frombuffer(data, np.float32)
        elements *= factor[0]
        total.cast("f")[0] = elements.sum()

    method = call(scale)
    info = method.info
    assert (info.code, info.name, info.doc, info.kernel_version) == (80, "scale", "Multiplies all elements.", (2, 5))
    assert [(region.name, region.access) for region in info.regions] == [
        ("factor", "in"),
        ("data", "inout"),
        ("sum", "out"),
        ("room", "internal"),
    ]
    data, total = np.arange(4, dtype=np.float32), np.zeros(1, np.float32)
    changed, summed = method(b"\3", data, out=total, internal=64, immediate=9)
    assert changed is data and summed is total
    assert data.tolist() == [0, 3, 6, 9] and total[0] == 18
    assert seen == [(True, False, 1, 64, 9, False)]
    with pytest.raises(nacelle.Kernel, match="the factor is zero") as failed:
        method(b"\0", data, out=total, internal=64)
    assert failed.value.result == 0x20
    # Without a device it is a function.
    scale(
        memoryview(b"\2"),
        memoryview(bytearray(4)),
        memoryview(bytearray(4)),
        type("C", (), {"user": 0, "cancelled": False}),
        [memoryview(b"x")],
    )


def test_repeated_regions_and_wrong_numbers_of_them(nacelle: Any, call: Any) -> None:
    @nacelle.kernel(code=81, regions=[("first", "in"), nacelle.RegionInfo("rest", "inout", "", True)])
    def copy(first: memoryview, *rest: memoryview) -> None:
        for region in rest:
            region[: len(first)] = first

    method = call(copy)
    rest = [bytearray(3), bytearray(4)]
    method(b"abc", *rest)
    assert rest == [b"abc", b"abc\0"]

    @nacelle.kernel(code=82, regions=[("data", "inout")])
    def one(data: memoryview) -> None:
        data[0] = 1

    other = call(one)
    with pytest.raises(nacelle.Kernel, match="the number of regions is wrong"):
        other._target.call(82, nacelle.inout(bytearray(1)), nacelle.inout(bytearray(1)))


def test_exceptions_are_logged_and_fail_the_call(nacelle: Any, call: Any, caplog: pytest.LogCaptureFixture) -> None:
    @nacelle.kernel(code=83, regions=[("data", "inout")])
    def broken(data: memoryview) -> None:
        local = np.frombuffer(data, np.uint8)  # the traceback has it until it is gone
        raise ZeroDivisionError(f"on purpose, with {len(local)} bytes")

    method = call(broken)
    for _ in range(2):
        with pytest.raises(nacelle.Kernel, match="raised an exception") as failed:
            method(bytearray(7))
        assert failed.value.result == 0x7F
    assert "on purpose, with 7 bytes" in caplog.text and "kept a view" not in caplog.text


def test_memory_is_the_kernels_until_it_returns(nacelle: Any, call: Any, caplog: pytest.LogCaptureFixture) -> None:
    kept: list[memoryview] = []
    owners: list[Any] = []

    @nacelle.kernel(code=84, regions=[("data", "inout")])
    def keep(data: memoryview, call: Any) -> None:
        kept.append(data if call.user == 0 else data[1:])
        owners.append(data.obj)

    method = call(keep, kernel_time=0.3)
    assert method(data := bytearray(b"abc")) is data
    with pytest.raises(ValueError, match="released"):
        kept[0][0] = 1
    with pytest.raises(BufferError, match="which has ended"):
        memoryview(owners[0])
    # A part of it cannot be taken away: the caller gets an error, and the memory is not used for anything else until it is gone.
    begin = time.monotonic()
    with pytest.raises(nacelle.KernelTimeout):
        method(bytearray(b"abc"), immediate=1)
    assert time.monotonic() - begin < 10 and "kept a view of its memory" in caplog.text
    assert bytes(kept.pop()) == b"bc"
    kept.clear()
    assert method(bytearray(b"abc")) == b"abc"


def test_a_cancelled_kernel_returns(nacelle: Any, call: Any) -> None:
    ended: list[str] = []

    @nacelle.kernel(code=85, regions=[("data", "inout")])
    def endless(data: memoryview, call: Any) -> None:
        try:
            while True:
                call.check()
                time.sleep(0.001)
        except nacelle.KernelCancelled:
            ended.append("cancelled")
            raise

    method = call(endless)
    with pytest.raises(nacelle.DeadlineExceeded):
        method(bytearray(1), timeout=0.1)
    end = time.monotonic() + 5
    while not ended:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_kernels_run_at_the_same_time(nacelle: Any, call: Any) -> None:
    together = threading.Barrier(3)

    @nacelle.kernel(code=86, regions=[("data", "inout")])
    def meet(data: memoryview) -> None:
        together.wait(10)

    method = call(meet, workers=3)
    threads = [threading.Thread(target=method, args=(bytearray(1),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not together.broken and not any(thread.is_alive() for thread in threads)


def test_kernels_and_devices_that_cannot_be(nacelle: Any, wire: Wire) -> None:
    here = wire.folder / "wire"

    def kernel(**options: Any) -> Any:
        return nacelle.kernel(**{"code": 80, "name": "k", **options})(lambda: None)

    for kernels, said in (
        ([kernel(code=0)], "code 0 of a function"),
        ([kernel(code=300)], "300"),
        ([kernel(name="a name")], "1 to 16 letters"),
        ([kernel(doc="ünïcode")], "ASCII"),
        ([kernel(doc='"quoted" \\ text')], None),
        ([kernel(errors={0x05: "too low"})], "0x05"),
        ([kernel(regions=[("a region", "in")])], "name or text"),
        ([kernel(), kernel(name="other")], "both have function 80"),
        ([kernel(), kernel(code=81)], "two kernels k"),
        ([kernel(code=16)], "both have function 16"),
    ):
        soft = nacelle.SoftDevice(kernels, wire=here)
        if said is None:
            with soft, nacelle.connect(soft.name, wire=here) as device:
                assert device.functions["k"].info.doc == '"quoted" \\ text'
            continue
        with pytest.raises(nacelle.InvalidArgument, match=said) as refused:
            soft.start()
        assert type(refused.value) is nacelle.KernelRefused and refused.value.code == 25
    with pytest.raises(nacelle.InvalidArgument, match="access is"):
        kernel(regions=[("data", "both")])
    with pytest.raises(ValueError, match="0x10 to 0x7f"):
        nacelle.KernelFailure(1)
    for options, said in (
        ({"address": "10.77.0.2"}, "ADDRESS/PREFIX"),
        ({"address": "x/8"}, "ADDRESS/PREFIX"),
        ({"udp": True}, "needs an address"),
        ({"udp": True, "address": "10.0.0.1/8"}, "one of this machine"),
    ):
        with pytest.raises(nacelle.InvalidArgument, match=said):
            nacelle.SoftDevice(wire=here, **options).start()
    with nacelle.SoftDevice(wire=here, name="one") as soft:
        with pytest.raises(nacelle.AddressTaken, match="name one is used"):
            nacelle.SoftDevice(wire=here, name="one").start()
        with pytest.raises(nacelle.InvalidArgument, match="runs already"):
            soft.start()
        assert not soft.wait(0)
        # A client asks for its end.
        wire.control("one", "shutdown")
        assert soft.wait(10)
    with pytest.raises(nacelle.ClosedHandle, match="does not run"):
        _ = soft.address
    soft.close()


def test_the_command_line_calls_a_kernel_in_python(served: Served, wire: Wire) -> None:
    wire.environment["NACELLE_WIRE"] = str(served.wire)
    (wire.folder / "tenths").write_bytes(b"\1")
    (entry,) = (entry for entry in wire.json("ls") if entry["name"] == "kernels0")
    assert entry["alive"]
    result = wire.run("run", "function", "90", "--device", "kernels0", "--input", "tenths", "--output", "2", "-o", "out")
    assert result.returncode == 0, result.stderr
    assert (wire.folder / "out").read_bytes() == b"\1\1"


DEVICE_ENDS = """
import sys, threading, time
import nacelle

@nacelle.kernel(code=90, regions=[("data", "inout")])
def busy(data, call):
    while True:
        time.sleep(0.001) if sys.argv[1] != "spin" else None

soft = nacelle.SoftDevice([busy]).start()
device = nacelle.connect(soft.name)
call = device.create("busy", bytearray(100))
call.invoke()
time.sleep(0.3)
if sys.argv[1] == "closed":
    soft.close()
print("ends")
"""


@pytest.mark.parametrize("how", ["sleep", "spin", "closed"])
def test_a_program_may_end_while_its_kernel_runs(package: Package, wire: Wire, how: str) -> None:
    begin = time.monotonic()
    said = package.run(wire.folder / "wire", DEVICE_ENDS, how)
    assert said.stdout == "ends\n" and not said.stderr, said.stderr
    assert time.monotonic() - begin < 12


def test_a_device_that_serves_ends_by_ctrl_c(package: Package) -> None:
    import signal

    served = Served(package)
    served.process.send_signal(signal.SIGINT)
    out, err = served.process.communicate(timeout=20)
    assert served.process.returncode == 0 and not out and not err, err
    assert not list(served.wire.glob("*.device.json"))
    served.close()
