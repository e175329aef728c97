# SPDX-License-Identifier: Apache-2.0
"""Regions of a call: a buffer of the program, and which side writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from operator import index
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, TypeAlias

from ._errors import InvalidArgument

if TYPE_CHECKING:
    from typing_extensions import Buffer

    class SupportsDLPack(Protocol):
        """A tensor."""

        def __dlpack__(self, *arguments: Any, **options: Any) -> Any: ...

        def __dlpack_device__(self) -> tuple[int, int]: ...

    BufferLike: TypeAlias = Buffer | SupportsDLPack


@dataclass(frozen=True)
class Region:
    """A region of a call; made by `input`, `output`, `inout` and `internal`."""

    role: str
    buffer: Any
    size: int = 0
    name: str = ""

    @property
    def comes_back(self) -> bool:
        """Whether the device writes it."""
        return self.role in ("out", "inout", "inout once")

    def named(self, name: str) -> Region:
        """The same under a name, which errors say."""
        return Region(self.role, self.buffer, self.size, name)


def input(buffer: BufferLike, *, once: bool = False) -> Region:
    """Goes to the device with each call, or with the first one only and stays there."""
    return Region("in once" if once else "in", buffer)


def output(buffer: BufferLike | int) -> Region:
    """Comes back with each call: into a buffer, or into a new bytearray of so many bytes."""
    return Region("out", bytearray(size_of(buffer)) if isinstance(buffer, Integral) else buffer)


def inout(buffer: BufferLike, *, once: bool = False) -> Region:
    """Goes to the device, and comes back changed."""
    return Region("inout once" if once else "inout", buffer)


def internal(size: int) -> Region:
    """Is device memory only: room for the kernel to work in, of so many bytes."""
    return Region("internal", None, size_of(size))


def size_of(size: SupportsIndex) -> int:
    """A size in bytes, checked."""
    bytes_ = index(size)
    if isinstance(size, bool) or bytes_ <= 0:
        raise InvalidArgument(f"a region of {size} bytes", "give a buffer, or a size of 1 byte or more")
    return bytes_


def results(regions: Sequence[Region]) -> Any:
    """What comes back: one buffer, a tuple of several, or None."""
    back = tuple(region.buffer for region in regions if region.comes_back)
    return back[0] if len(back) == 1 else back or None
