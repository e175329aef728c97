# SPDX-License-Identifier: Apache-2.0
"""SystemVerilog types and constants of the RTL packages, as Python sees them.

The layout comes from the RTL itself (elaborated with slang), so a test never repeats a bit position.

    bth = struct("roce_wire_pkg::bth_t")
    word = bth.pack(opcode=constant("roce_wire_pkg::RC_SEND_ONLY"), psn=7)
    assert bth.unpack(word).psn == 7
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pyslang
from pyslang import ast, syntax

from .sources import packages


class Struct:
    """A packed struct or union (or a plain vector or enum: then values are integers). Of a union any member may be named."""

    def __init__(self, sv_type: Any) -> None:
        self.width: int = sv_type.bitWidth
        canonical = sv_type.canonicalType
        self.fields: dict[str, tuple[int, Struct]] = {}
        if isinstance(canonical, (ast.PackedStructType, ast.PackedUnionType)):
            for member in canonical:
                if isinstance(member, ast.FieldSymbol):
                    self.fields[member.name] = (member.bitOffset, Struct(member.type))

    def leaves(self, prefix: str = "") -> dict[str, int]:
        """The lowest bit of each field that has no fields itself, by the names on the way to it."""
        found: dict[str, int] = {}
        for name, (offset, kind) in self.fields.items():
            inner = kind.leaves(f"{prefix}{name}_") if kind.fields else {prefix + name: 0}
            found |= {leaf: offset + at for leaf, at in inner.items()}
        return found

    def pack(self, value: int | Mapping[str, Any] | SimpleNamespace | None = None, **fields: Any) -> int:
        """The integer that holds these field values; fields not named are zero. Nested structs take a mapping."""
        if isinstance(value, int):
            if value >> self.width or value < 0:
                raise ValueError(f"{value:#x} does not fit {self.width} bits")
            return value
        if isinstance(value, SimpleNamespace):
            value = vars(value)
        merged = {**(value or {}), **fields}
        word = 0
        for name, item in merged.items():
            if name not in self.fields:
                raise KeyError(f"no field {name!r}; there are {', '.join(self.fields)}")
            offset, kind = self.fields[name]
            word |= kind.pack(int(item) if isinstance(item, (int, bool)) else item) << offset
        return word

    def unpack(self, word: int) -> Any:
        """The fields of `word`, as attributes; an integer for a type without fields."""
        if not self.fields:
            return word & ((1 << self.width) - 1)
        return SimpleNamespace(
            **{name: kind.unpack((word >> offset) & ((1 << kind.width) - 1)) for name, (offset, kind) in self.fields.items()}
        )


@functools.cache
def _trees() -> list[syntax.SyntaxTree]:
    """The packages, read once."""
    return [syntax.SyntaxTree.fromFile(str(path)) for path in packages()]


def _elaborate(*more: syntax.SyntaxTree, top: str = "") -> ast.Compilation:
    """The packages and more, without an error."""
    options = ast.CompilationOptions()
    if top:
        options.topModules = {top}
    compilation = ast.Compilation(pyslang.Bag([options]))
    for tree in (*_trees(), *more):
        compilation.addSyntaxTree(tree)
    errors = [d for d in compilation.getAllDiagnostics() if d.isError()]
    if errors:
        raise ValueError(pyslang.DiagnosticEngine.reportAll(_trees()[0].sourceManager, errors))
    return compilation


@functools.cache
def _packages() -> ast.Compilation:
    return _elaborate()


def _member(name: str) -> Any:
    """What has this name, `package::NAME`, or None. To look it up costs nothing beside the elaboration of an expression."""
    if not (parts := re.fullmatch(r"(\w+)::(\w+)", name)):
        return None
    package = _packages().getPackage(parts[1])
    return package and package.find(parts[2])


def _probe(body: str) -> Any:
    """The symbol `value` of a module with this body."""
    probe = syntax.SyntaxTree.fromText(f"module probe; {body} endmodule")
    return _elaborate(probe, top="probe").getRoot().topInstances[0].body.find("value")


@functools.cache
def struct(name: str) -> Struct:
    """The type `package::name`, or any packed type expression such as `logic [31:0]`."""
    return Struct(_member(name) or _probe(f"{name} value;").type)


@functools.cache
def constant(name: str) -> int:
    """The value of a parameter or enum member, `package::NAME`, or of any constant expression."""
    found = _member(name) or _probe(f"localparam longint unsigned value = 64'({name});")
    return int(found.value.value) & ((1 << 64) - 1)
