# SPDX-License-Identifier: Apache-2.0
"""Register blocks as their SystemRDL files describe them, in the few terms that everything generated from them needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
COMMON = ROOT / "rtl" / "control"  # block.rdl
WORD = 4  # bytes
HEADER = ("TYPE", "VERSION", "NEXT")  # the words that each block begins with


class Level(IntEnum):
    """Who may access a register: cci_level of block.rdl."""

    PUBLIC = 0
    AUTHORISED = 1
    LOCAL = 2


class KernelLevel(IntEnum):
    """What a kernel may do with a register, if its socket permits it: cci_kernel_level of block.rdl."""

    NONE = 0
    READ = 1
    WRITE = 2


class RegisterError(ValueError):
    """A register file that is no description of a block."""


@dataclass(frozen=True)
class Field:
    """Bits of a register. One that is the whole register is called `value`."""

    name: str
    low: int
    width: int
    doc: str

    @property
    def mask(self) -> int:
        """Its bits."""
        return ((1 << self.width) - 1) << self.low


@dataclass(frozen=True)
class Register:
    """A word, or an array of `count` words."""

    name: str
    offset: int  # from the begin of the block, in bytes
    count: int | None  # None: no array
    readable: bool
    writable: bool
    read_level: Level
    write_level: Level
    kernel_level: KernelLevel
    reset: int | None  # None: given by the hardware
    doc: str
    fields: tuple[Field, ...]
    group: str  # name of the register file that it is in; empty: none

    @property
    def access(self) -> str:
        """As the reference pages have it."""
        return ("r" if self.readable else "") + ("w" if self.writable else "")

    @property
    def kernel_reads(self) -> bool:
        """Whether a kernel may read it that is permitted to read more than everybody may."""
        return self.readable and self.read_level != Level.LOCAL and self.kernel_level >= KernelLevel.READ

    @property
    def kernel_writes(self) -> bool:
        """Whether a kernel may write it that is permitted to write."""
        return self.writable and self.write_level != Level.LOCAL and self.kernel_level == KernelLevel.WRITE

    @property
    def mask(self) -> int:
        """The bits that there are."""
        return sum(field.mask for field in self.fields)

    def offsets(self) -> range:
        """Of each of its words."""
        return range(self.offset, self.offset + WORD * (self.count or 1), WORD)


@dataclass(frozen=True)
class Block:
    """A register block."""

    name: str
    title: str
    doc: str
    kind: int  # TYPE
    version: int  # VERSION
    registers: tuple[Register, ...]  # by offset
    groups: tuple[tuple[str, str, str], ...]  # of its register files: name, title, text

    @property
    def four_characters(self) -> str:
        """TYPE as text."""
        return self.kind.to_bytes(4, "big").decode("ascii")

    def words(self) -> Iterator[tuple[int, Register]]:
        """Every word and the register that it belongs to, by offset."""
        return ((offset, register) for register in self.registers for offset in register.offsets())

    def __getitem__(self, name: str) -> Register:
        """The register of this name."""
        return next(register for register in self.registers if register.name == name)


def compile_file(path: Path, top: str, include: Sequence[Path] = (), extra: Sequence[Any] = ()) -> Any:
    """The elaborated address map `top` (systemrdl's AddrmapNode). `extra`: user-defined properties of exporters."""
    from systemrdl import RDLCompiler

    compiler = RDLCompiler()
    for property_ in extra:
        compiler.register_udp(property_)
    compiler.compile_file(str(path), incl_search_paths=[str(folder) for folder in (path.parent, COMMON, *include)])
    return compiler.elaborate(top_def_name=top).top


def block_of(node: Any, name: str) -> Block:
    """The block that an address map describes. Raises RegisterError if it is none."""
    from systemrdl.node import RegfileNode, RegNode

    registers, groups = [], []
    for child in node.children(unroll=False):
        if isinstance(child, RegfileNode):
            groups.append((child.inst_name, child.get_property("name"), child.get_property("desc")))
            registers += [_register(reg, child.raw_absolute_address, child.inst_name) for reg in child.registers(unroll=False)]
        elif isinstance(child, RegNode):
            registers.append(_register(child, 0, ""))
    base = node.raw_absolute_address
    if base:
        raise RegisterError(f"{name}: a block is compiled by itself")
    registers.sort(key=lambda register: register.offset)
    if [(register.name, register.offset) for register in registers[:3]] != [(n, WORD * i) for i, n in enumerate(HEADER)]:
        raise RegisterError(f"{name}: a block begins with {', '.join(HEADER)}")
    kind, version = registers[0].reset, registers[1].reset
    if kind is None or version is None or not all(0x20 < byte < 0x7F for byte in kind.to_bytes(4, "big")):
        raise RegisterError(f"{name}: TYPE is four printable characters, and VERSION is constant")
    if taken := [register.name for register in registers if register.name == "BASE" or register.name.startswith("BLOCK")]:
        raise RegisterError(f"{name}: {taken[0]} is the name of something else in what is generated")
    return Block(name, node.get_property("name"), node.get_property("desc"), kind, version, tuple(registers), tuple(groups))


def read_block(path: Path, top: str, name: str, include: Sequence[Path] = ()) -> Block:
    """The block that a file describes by the address map `top`."""
    return block_of(compile_file(path, top, include), name)


def _register(node: Any, base: int, group: str) -> Register:
    from systemrdl.node import FieldNode

    fields = [child for child in node.children() if isinstance(child, FieldNode)]
    resets = [field.get_property("reset") for field in fields]
    levels = [node.get_property(f"cci_{kind}") for kind in ("read", "write")]
    read, write = (Level.AUTHORISED if level is None else Level[level.name] for level in levels)
    kernel = node.get_property("cci_kernel")
    if node.is_array and (len(node.array_dimensions) != 1 or node.array_stride != WORD):
        raise RegisterError(f"{node.inst_name}: an array has one dimension, and its words follow each other")
    return Register(
        name=node.inst_name,
        offset=base + node.raw_address_offset,
        count=node.array_dimensions[0] if node.is_array else None,
        readable=node.has_sw_readable,
        writable=node.has_sw_writable,
        read_level=read,
        write_level=write,
        kernel_level=KernelLevel.NONE if kernel is None else KernelLevel[kernel.name],
        reset=None if None in resets else sum(value << f.low for value, f in zip(resets, fields, strict=True)),
        doc=node.get_property("desc"),
        fields=tuple(Field(f.inst_name, f.low, f.width, f.get_property("desc")) for f in fields),
        group=group,
    )
