# SPDX-License-Identifier: Apache-2.0
"""Nacelle's own kernels with arrays in place of argument blocks (docs/reference/kernels.md)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from . import _native
from ._errors import InvalidArgument
from ._regions import Region, input, output

if TYPE_CHECKING:
    from ._description import FunctionInfo
    from ._regions import BufferLike

Prepared: TypeAlias = tuple[Sequence[Region], Callable[[Sequence[Region]], Any]]

# Elements as `struct` and memoryviews name them, in the byte order of devices.
FORMATS: dict[str, Any] = {"int32": "i", "int64": "q", "float32": "f", "float64": "d"}


class _Array:
    """An array that a function gets, in C order: in place if it is so."""

    def __init__(self, name: str, value: Any) -> None:
        self._lent = _native.Buffer(value)
        if self._lent.dtype not in FORMATS:
            kind = self._lent.dtype or "another type"
            raise InvalidArgument(f"{name} has elements of {kind}", f"convert them to {', '.join(FORMATS)}")
        self.dtype = str(self._lent.dtype)
        self.shape = tuple(self._lent.shape)
        self.region = input(value if self._lent.contiguous else _copy(value)).named(name)

    @property
    def count(self) -> int:
        """How many elements it has."""
        return self._lent.nbytes // struct.calcsize(FORMATS[self.dtype])


def _copy(value: Any) -> Any:
    """The elements in C order."""
    return memoryview(value).tobytes() if not hasattr(value, "contiguous") else value.contiguous()


def empty(shape: Sequence[int], dtype: str) -> Any:
    """A new array: of NumPy if it is installed, else a memoryview of that shape."""
    try:
        import numpy
    except ImportError:
        size = struct.calcsize(FORMATS[dtype])
        for side in shape:
            size *= side
        flat = memoryview(bytearray(size))
        return flat.cast(FORMATS[dtype], list(shape)) if len(shape) != 1 else flat.cast(FORMATS[dtype])
    return numpy.empty(shape, dtype)


def _result(name: str, out: BufferLike | None, shape: Sequence[int], dtype: str) -> Region:
    """Where an array goes: into `out`, which must be such a one, or into a new one."""
    if out is None:
        return output(empty(shape, dtype)).named(name)
    given = _native.Buffer(out)
    if (given.dtype, tuple(given.shape)) != (dtype, tuple(shape)):
        found = f"out is {given.dtype} of shape {tuple(given.shape)}"
        raise InvalidArgument(f"{found}, and the result {dtype} of shape {tuple(shape)}", "give an array like the result")
    return output(out).named(name)


def _same(name: str, *arrays: _Array) -> None:
    first = arrays[0]
    if any((other.dtype, other.shape) != (first.dtype, first.shape) for other in arrays):
        found = " and ".join(f"{array.dtype} of shape {array.shape}" for array in arrays)
        raise InvalidArgument(f"{name} of {found}", "give arrays of the same type and shape")


def _last(regions: Sequence[Region]) -> Any:
    return regions[-1].buffer


def matmul(a: BufferLike, b: BufferLike, *, out: BufferLike | None = None) -> Prepared:
    """matmul(a, b, *, out=None, timeout=None): the product of two matrices of int32 or float32.

    Integers wrap; the sums of floats run over ascending k, each rounded.
    """
    left, right = _Array("A", a), _Array("B", b)
    if len(left.shape) != 2 or len(right.shape) != 2 or left.shape[1] != right.shape[0] or left.dtype != right.dtype:
        what = f"{left.dtype} of shape {left.shape} by {right.dtype} of shape {right.shape}"
        raise InvalidArgument(f"cannot multiply {what}", "give matrices m x k and k x n of one type")
    (m, k), n = left.shape, right.shape[1]
    if not all(0 < side < 1 << 32 for side in (m, k, n)):
        raise InvalidArgument(f"cannot multiply {m} x {k} by {k} x {n}", "sides are 1 to 2**32 - 1")
    arguments = input(_native.matmul_arguments(left.dtype, m, n, k)).named("arguments")
    return (arguments, left.region, right.region, _result("C", out, (m, n), left.dtype)), _last


def _vector(function: str, dtype: str, operation: str | None, count: int, scalar: float | int | None) -> Region:
    try:
        packed = b"" if scalar is None else struct.pack(f"<{FORMATS[dtype]}", scalar)
    except (struct.error, KeyError, OverflowError) as error:
        raise InvalidArgument(f"{scalar!r} is no {dtype}: {error}", "give a number that the type has") from None
    return input(_native.vector_arguments(function, dtype, operation, count, packed)).named("arguments")


def binary(operation: str, x: BufferLike, y: BufferLike, *, scalar: float | None = None, out: BufferLike | None = None) -> Prepared:
    """binary(operation, x, y, *, scalar=None, out=None, timeout=None): element by element.

    "add", "sub", "mul", "min", "max", or "axpy": scalar times x plus y.
    """
    left, right = _Array("x", x), _Array("y", y)
    _same(operation, left, right)
    arguments = _vector("binary", left.dtype, operation, left.count, scalar)
    return (arguments, left.region, right.region, _result("z", out, left.shape, left.dtype)), _last


def unary(operation: str, x: BufferLike, *, scalar: float | None = None, out: BufferLike | None = None) -> Prepared:
    """unary(operation, x, *, scalar=None, out=None, timeout=None): "scale" by the scalar, or "prefix_sum"."""
    array = _Array("x", x)
    arguments = _vector("unary", array.dtype, operation, array.count, scalar)
    return (arguments, array.region, _result("z", out, array.shape, array.dtype)), _last


def fill(scalar: float, *, out: BufferLike) -> Prepared:
    """fill(scalar, *, out, timeout=None): sets every element of an array."""
    array = _Array("z", out)
    return (_vector("fill", array.dtype, None, array.count, scalar), output(out).named("z")), _last


def _number(dtype: str) -> tuple[Region, Callable[[Sequence[Region]], Any]]:
    form = f"<{FORMATS[dtype]}"
    return output(struct.calcsize(form)).named("result"), lambda regions: struct.unpack(form, regions[-1].buffer)[0]


def reduce(operation: str, x: BufferLike) -> Prepared:
    """reduce(operation, x, *, timeout=None): the "sum", "min" or "max" of all elements, or the index "argmin" or "argmax"."""
    array = _Array("x", x)
    result, finish = _number("int64" if operation.startswith("arg") else array.dtype)
    return (_vector("reduce", array.dtype, operation, array.count, None), array.region, result), finish


def dot(x: BufferLike, y: BufferLike) -> Prepared:
    """dot(x, y, *, timeout=None): the sum of all products of an element of x and one of y."""
    left, right = _Array("x", x), _Array("y", y)
    _same("dot", left, right)
    result, finish = _number(left.dtype)
    return (_vector("dot", left.dtype, None, left.count, None), left.region, right.region, result), finish


_HELPERS: dict[tuple[str, str, int], Callable[..., Prepared]] = {
    ("matmul", "matmul", 16): matmul,
    ("vector", "binary", 64): binary,
    ("vector", "unary", 65): unary,
    ("vector", "fill", 66): fill,
    ("vector", "reduce", 67): reduce,
    ("vector", "dot", 68): dot,
}


def helper(info: FunctionInfo) -> Callable[..., Prepared] | None:
    """What takes arrays for a function, if it is one of Nacelle's own in a version that is known here."""
    return _HELPERS.get((info.kernel, info.name, info.code)) if info.kernel_version[0] == 1 else None
