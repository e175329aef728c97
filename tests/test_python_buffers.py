# SPDX-License-Identifier: Apache-2.0
"""Memory of Python programs as regions: in place, kept while it is used, given back afterwards."""

from __future__ import annotations

import array
import gc
import mmap
import weakref
from typing import Any

import numpy as np
import pytest
from python_package import Package, Served

pytestmark = pytest.mark.xdist_group("python")


class Tensor:
    """An object with DLPack only, as a tensor of another library; by the old protocol or with a version."""

    def __init__(self, data: np.ndarray, versioned: bool = True, kind: int = 1) -> None:
        self.data, self.versioned, self.kind = data, versioned, kind

    def __dlpack__(self, **options: Any) -> Any:
        if not self.versioned and options:
            raise TypeError("unexpected keyword")
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0


@pytest.fixture
def device(served: Served) -> Any:
    with served.connect() as device:
        yield device


def test_everything_with_the_buffer_protocol_is_used_in_place(device: Any) -> None:
    mapped = mmap.mmap(-1, 4096)
    backing = bytearray(64)
    for buffer in (
        bytearray(64),
        array.array("d", [0.0] * 8),
        memoryview(backing)[8:40],
        np.zeros((4, 4), np.complex64),
        np.zeros(8, [("a", "i4"), ("b", "f4")]),
        mapped,
    ):
        assert device.increment(buffer) is buffer
        assert bytes(buffer) == b"\1" * memoryview(buffer).nbytes
    assert backing == bytes(8) + b"\1" * 32 + bytes(24)
    mapped.close()
    out = np.ones(3, np.int16)
    assert device.hold(b"\0", out=out) is out and not out.any()


@pytest.mark.parametrize("versioned", [True, False])
def test_tensors_are_used_in_place(device: Any, versioned: bool) -> None:
    data = np.zeros((3, 5), np.float32)
    tensor = Tensor(data, versioned)
    assert device.increment(tensor) is tensor and data.tobytes() == b"\1" * 60
    part = Tensor(data[1:, :], versioned)
    device.increment(part)
    assert data[0].tobytes() == b"\1" * 20 and data[1:].tobytes() == b"\2" * 40
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    out = Tensor(np.empty((2, 2), np.float32), versioned)
    assert device.matmul(Tensor(a, versioned), Tensor(a.T.copy(), versioned), out=out) is out
    assert out.data.tolist() == (a @ a.T).tolist()
    assert device.reduce("sum", Tensor(np.arange(10), versioned)) == 45


def test_tensors_that_cannot_be_regions_are_refused(device: Any, served: Served) -> None:
    nacelle = served.nacelle
    data = np.zeros((4, 4), np.float32)
    for tensor, said in (
        (Tensor(data, kind=2), "DLPack's kind 2, not in the memory of the CPU"),
        (Tensor(data[:, ::2]), "not C-contiguous"),
        (Tensor(data.T), "not C-contiguous"),
    ):
        with pytest.raises(nacelle.InvalidArgument, match=said):
            device.increment(tensor)
    data.flags.writeable = False
    with pytest.raises(nacelle.InvalidArgument, match="read-only"):
        device.increment(Tensor(data))
    with pytest.raises(BufferError):
        device.increment(Tensor(data, versioned=False))

    class Used(Tensor):
        def __dlpack__(self, **options: Any) -> Any:
            capsule = self.data.__dlpack__()
            np.from_dlpack(type("Taken", (), {"__dlpack__": lambda _, **__: capsule, "__dlpack_device__": lambda _: (1, 0)})())
            return capsule

    with pytest.raises(TypeError, match="no capsule with a tensor, or one that was used"):
        device.increment(Used(np.zeros(3)))
    assert device.hold(Tensor(np.zeros(3, np.uint8)), out=1) == b"\0"


def test_a_tensor_is_given_back_once(device: Any) -> None:
    data = np.zeros(100, np.uint8)
    alive = weakref.ref(data)
    device.increment(Tensor(data))
    del data
    gc.collect()
    assert alive() is None


def test_buffers_that_cannot_be_regions_are_refused(device: Any, served: Served) -> None:
    nacelle = served.nacelle
    shared = bytearray(100)
    for call, said in (
        (lambda: device.increment(b"bytes"), r"region 0 \(data\): the device writes it, and the bytes is read-only"),
        (lambda: device.hold(b"\0", out=memoryview(b"bytes")), r"region 1 \(result\).*read-only"),
        (lambda: device.increment(np.zeros((4, 4))[:, ::2]), "the ndarray is not C-contiguous"),
        (lambda: device.increment(np.zeros((4, 4)).T), "the ndarray is not C-contiguous"),
        (lambda: device.hold(shared, out=shared), r"region 0 \(tenths\) and region 1 \(result\) overlap"),
        (lambda: device.increment(memoryview(shared)[:60], memoryview(shared)[59:]), "region 0 .* and region 1 .* overlap"),
    ):
        with pytest.raises(nacelle.InvalidArgument, match=said):
            call()
        gc.collect()
        shared.append(0)  # nothing is in use any more
    # Two that are only read may be the same.
    assert device.dot(np.ones(4), np.ones(4)) == 4 and device.dot(x := np.ones(4), x) == 4


def test_a_buffer_stays_while_a_call_has_it(device: Any) -> None:
    """It can neither be resized nor freed, and is free when the call is closed."""
    out, mapped = bytearray(4), mmap.mmap(-1, 4096)
    with device.create("hold", b"\2", out=out) as call:
        call.invoke()
        with pytest.raises(BufferError):
            out.append(0)
        with pytest.raises(BufferError):
            del out[:]
        call.wait()
    out.append(0)
    with device.create("increment", mapped):
        with pytest.raises(BufferError):
            mapped.close()
    mapped.close()
    call = device.create("increment", out)
    with pytest.raises(BufferError):
        out.append(0)
    del call
    out.append(0)
    # The last reference of the program goes while the device writes.
    owned = np.zeros(1 << 16, np.uint8)
    alive = weakref.ref(owned)
    call = device.create("hold", b"\2", out=owned)
    call.invoke()
    del owned
    gc.collect()
    assert alive() is not None and call.wait() and set(call.result.tolist()) == {2}
    call.close()
    del call
    gc.collect()
    assert alive() is None


def test_nothing_is_copied(device: Any, served: Served) -> None:
    """A call of 64 MiB does not need as much memory again."""
    script = """
import resource, nacelle
device = nacelle.connect("kernels0")
data = bytearray(64 << 20)
device.increment(bytearray(1000))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
device.increment(data)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024, data.count(1) == len(data))
"""
    grown, right = served.package.run(served.wire, script).stdout.split()
    assert int(grown) < 32 and right == "True"


def test_results_without_numpy(served: Served, package: Package) -> None:
    script = """
import sys
sys.modules["numpy"] = None
import array, nacelle
with nacelle.connect("kernels0") as device:
    a = memoryview(array.array("f", [1, 2, 3, 4])).cast("B").cast("f", [2, 2])
    c = device.matmul(a, a)
    assert type(c) is memoryview and c.tolist() == [[7, 10], [15, 22]]
    x = array.array("q", [1, -2, 3])
    assert device.binary("mul", x, x).tolist() == [1, 4, 9] and device.reduce("argmin", x) == 1
    print(device.reduce("sum", x))
"""
    assert package.run(served.wire, script).stdout == "2\n"
