# SPDX-License-Identifier: Apache-2.0
"""SystemVerilog types and constants of the RTL packages, as Python sees them.

The layout comes from the RTL itself (elaborated with slang), so a test never repeats a bit position.

    bth = struct("roce_wire_pkg::bth_t")
    word = bth.pack(opcode=constant("roce_wire_pkg::RC_SEND_ONLY"), psn=7)
    assert bth.unpack(word).psn == 7
"""

from __future__ import annotations

import functools
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
def _evaluate(kind: str, expression: str) -> Any:
    tree = [syntax.SyntaxTree.fromFile(str(path)) for path in packages()]
    body = f"{expression} value;" if kind == "type" else f"localparam longint unsigned value = 64'({expression});"
    tree.append(syntax.SyntaxTree.fromText(f"module probe; {body} endmodule"))
    compilation = ast.Compilation(pyslang.Bag([_probe_options()]))
    for item in tree:
        compilation.addSyntaxTree(item)
    errors = [d for d in compilation.getAllDiagnostics() if d.isError()]
    if errors:
        raise ValueError(f"{expression}: {pyslang.DiagnosticEngine.reportAll(tree[0].sourceManager, errors)}")
    found = compilation.getRoot().topInstances[0].body.find("value")
    return Struct(found.type) if kind == "type" else int(found.value.value)


def _probe_options() -> ast.CompilationOptions:
    options = ast.CompilationOptions()
    options.topModules = {"probe"}
    return options


def struct(name: str) -> Struct:
    """The type `package::name`, or any packed type expression such as `logic [31:0]`."""
    return _evaluate("type", name)


def constant(name: str) -> int:
    """The value of a parameter or enum member, `package::NAME`."""
    return _evaluate("constant", name)
