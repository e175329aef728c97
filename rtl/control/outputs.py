# SPDX-License-Identifier: Apache-2.0
"""What programs and people get from the register blocks: a Rust module, a C header, a listing in JSON, tables in Markdown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nacelle_tb.rdl import HEADER, Block, Level, Register

COLUMNS = ("address", "name", "bits", "access", "network", "kernel", "reset", "what")
TABLE_HEAD = f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}"
LEVELS = ("anybody", "authorised", "no")  # by Level


@dataclass(frozen=True)
class MapEntry:
    """A block and its places on the bus: `count` of them, `stride` bytes from one to the next."""

    block: Block
    base: int
    count: int
    stride: int


# ---- Markdown ----


def table(block: Block) -> str:
    """The registers of a block, those of each register file under a heading of their own."""
    parts = [_rows([register for register in block.registers if not register.group])]
    for name, title, text in block.groups:
        parts += [f"## {title}", text, _rows([register for register in block.registers if register.group == name])]
    return "\n\n".join(parts) + "\n"


def _rows(registers: Sequence[Register]) -> str:
    return "\n".join([TABLE_HEAD, *(row for register in registers for row in _rows_of(register))])


def _rows_of(register: Register) -> list[str]:
    rows = []
    for field in register.fields:
        whole = field.name == "value"
        name = register.name + (f"[{register.count}]" if register.count else "") + ("" if whole else f".{field.name}")
        bits = str(field.low) if field.width == 1 else f"{field.low + field.width - 1}:{field.low}"
        reset = "" if register.reset is None else str((register.reset & field.mask) >> field.low)
        if register.name in HEADER:
            reset = ""  # constants, which their text has
        first = field == register.fields[0]
        text = " ".join(part for part in ((register.doc if first else ""), ("" if register.group and whole else field.doc)) if part)
        cells = [f"`{register.offset:#05x}`", f"`{name}`", bits, register.access, network(register), kernel(register), reset, text]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def network(register: Register) -> str:
    """Who on the network may access a register."""
    read, write = LEVELS[register.read_level], LEVELS[register.write_level]
    if not (register.readable and register.writable) or read == write:
        return read if register.readable else write
    return f"r: {read}, w: {write}"


def kernel(register: Register) -> str:
    """What a kernel needs to access a register: `yes` is nothing, and reading it is all that it may."""
    if register.kernel_writes:
        return "`write`"
    if register.readable and register.read_level == Level.PUBLIC:
        return "yes"
    return "`read`" if register.kernel_reads else "no"


def overview(entries: Sequence[MapEntry]) -> str:
    """The blocks on the bus."""
    lines = ["| address | block | TYPE | VERSION | what |", "| --- | --- | --- | --- | --- |"]
    for entry in entries:
        block = entry.block
        place = f"`{entry.base:#07x}`" + (f" + {entry.stride:#x} * i, i < {entry.count}" if entry.count > 1 else "")
        version = f"{block.version >> 16}.{block.version & 0xFFFF}"
        lines.append(f"| {place} | `{block.name}` | `{block.four_characters}` | {version} | {block.title}. {block.doc} |")
    return "\n".join(lines) + "\n"


# ---- JSON ----


def listing(entries: Sequence[MapEntry]) -> list[dict[str, Any]]:
    """Everything, as plain data."""
    return [
        {
            "name": entry.block.name,
            "type": entry.block.kind,
            "version": entry.block.version,
            "base": entry.base,
            "count": entry.count,
            "stride": entry.stride,
            "registers": [
                {
                    "name": register.name,
                    "offset": register.offset,
                    "count": register.count,
                    "group": register.group,
                    "access": register.access,
                    "read": register.read_level.name.lower(),
                    "write": register.write_level.name.lower(),
                    "kernel": kernel(register).strip("`"),
                    "reset": register.reset,
                    "description": register.doc,
                    "fields": [{"name": f.name, "low": f.low, "width": f.width, "description": f.doc} for f in register.fields],
                }
                for register in entry.block.registers
            ],
        }
        for entry in entries
    ]


# ---- Rust ----


def _text(text: str) -> str:
    """A string literal, the same in Rust and in C for printable ASCII."""
    return json.dumps(text)


def rust(entries: Sequence[MapEntry], comment: str) -> str:
    """The module of the blocks."""
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        f"// {comment}",
        "//! Every register block that is known here.",
        "",
        "use super::{Block, Field, Mode, Register, Who};",
        "",
        "/// All blocks.",
        f"pub const BLOCKS: &[Block] = &[{', '.join(f'{entry.block.name}::BLOCK' for entry in entries)}];",
    ]
    for entry in entries:
        lines += _rust_block(entry)
    return "\n".join(lines) + "\n"


def _rust_block(entry: MapEntry) -> list[str]:
    block = entry.block
    lines = [
        "",
        f"/// {block.title}.",
        f"pub mod {block.name} {{",
        "    use super::*;",
        "",
        f"    /// Byte address of the {'first' if entry.count > 1 else 'block'}.",
        f"    pub const BASE: u32 = {entry.base:#x};",
    ]
    if entry.count > 1:
        lines += [
            "    /// How many there can be.",
            f"    pub const BLOCK_COUNT: u32 = {entry.count};",
            "    /// Bytes from one to the next.",
            f"    pub const BLOCK_STRIDE: u32 = {entry.stride:#x};",
        ]
    lines += [
        "    /// The block.",
        "    pub const BLOCK: Block = Block {",
        f"        name: {_text(block.name)},",
        f'        kind: *b"{block.four_characters}",',
        f"        version: {block.version:#010x},",
        "        registers: &[",
        *(f"            {register.name.upper()}," for register in block.registers),
        "        ],",
        "    };",
    ]
    for register in block.registers:
        fields = [field for field in register.fields if field.name != "value"]
        for field in fields:
            lines += [
                f"    /// `{register.name}.{field.name}`: {field.doc}",
                f"    pub const {register.name.upper()}_{field.name.upper()}: Field ="
                f" Field {{ name: {_text(field.name)}, low: {field.low}, width: {field.width}, doc: {_text(field.doc)} }};",
            ]
        members = ", ".join(f"{register.name.upper()}_{field.name.upper()}" for field in fields)
        count = f"Some({register.count})" if register.count else "None"
        lines += [
            f"    /// {register.doc}",
            f"    pub const {register.name.upper()}: Register = Register {{ name: {_text(register.name)},"
            f" offset: {register.offset:#x}, count: {count}, mode: Mode::{_RUST_ACCESS[register.access]}, mask: {register.mask:#x},"
            f" counter: {'true' if register.group else 'false'}, reader: Who::{_RUST_WHO[register.read_level]},"
            f" writer: Who::{_RUST_WHO[register.write_level]}, fields: &[{members}], doc: {_text(register.doc)} }};",
        ]
    return [*lines, "}"]


_RUST_WHO = ("Anybody", "Authorised", "Nobody")  # by Level
_RUST_ACCESS = {"r": "Read", "w": "Write", "rw": "ReadWrite"}


# ---- C ----


def c_header(entries: Sequence[MapEntry], comment: str) -> str:
    """Macros: of a block its places, type and version; of a register its offset in the block; of a field its place and mask."""
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0",
        f" * {comment}",
        " *",
        " * The registers of a device on its control bus: byte addresses. NACELLE_<BLOCK>_BASE is the address of a block; if there",
        " * are several, number i is NACELLE_<BLOCK>_BLOCK_STRIDE * i behind it. NACELLE_<BLOCK>_<REGISTER> is the offset of a",
        " * register in its block. A block begins with TYPE, VERSION and NEXT, the address of the next one; the first is at 0.",
        " */",
        "#ifndef NACELLE_REGISTERS_H",
        "#define NACELLE_REGISTERS_H",
    ]
    for entry in entries:
        lines += _c_block(entry)
    return "\n".join([*lines, "", "#endif", ""])


def _c_block(entry: MapEntry) -> list[str]:
    block = entry.block
    prefix = f"NACELLE_{block.name.upper()}"
    lines = [
        "",
        f"/* ---- {block.title} ---- */",
        "",
        f"#define {prefix}_BASE {entry.base:#07x}u",
        *(
            [f"#define {prefix}_BLOCK_STRIDE {entry.stride:#x}u", f"#define {prefix}_BLOCK_COUNT {entry.count}u"]
            if entry.count > 1
            else []
        ),
        f"#define {prefix}_BLOCK_TYPE {block.kind:#010x}u /* {block.four_characters} */",
        f"#define {prefix}_BLOCK_VERSION {block.version:#010x}u",
        "",
    ]
    for register in block.registers:
        name = f"{prefix}_{register.name.upper()}"
        lines.append(f"#define {name} {register.offset:#05x}u /* {register.access}: {register.doc} */")
        if register.count:
            lines.append(f"#define {name}_WORDS {register.count}u")
        for field in register.fields:
            if field.name != "value":
                place = f"{name}_{field.name.upper()}"
                lines.append(f"#define {place}_SHIFT {field.low} /* {field.doc} */")
                lines.append(f"#define {place}_MASK {field.mask:#010x}u")
    return lines
