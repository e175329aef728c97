# SPDX-License-Identifier: Apache-2.0
"""cci_policy_pkg: who may access which register, of every address in the pages that differ, against the descriptions; and what
must be so whatever they say."""

from __future__ import annotations

from typing import Any

import pyslang
import pytest
from nacelle_tb.cci import address, blocks
from nacelle_tb.sources import GENERATED
from pyslang import ast, syntax

WORDS = 1024  # of a page
PUBLIC, AUTHORISED, LOCAL = range(3)
LEVELS = {"public": PUBLIC, "authorised": AUTHORISED, "local": LOCAL}
PAGES = (0x00, 0x01, 0x02, 0x0F, 0x10, 0x1F, 0x20, 0xFF)


def levels(page: int, write: bool) -> list[int]:
    """What the function gives for each word of a page: evaluated by slang."""
    probe = f"""module probe;
  import cci_policy_pkg::*;
  function automatic logic [{2 * WORDS - 1}:0] every();
    for (int unsigned i = 0; i < {WORDS}; i++) every[2 * i +: 2] = cci_access({{8'h{page:02x}, 10'(i), 2'b00}}, 1'b{int(write)});
  endfunction
  localparam logic [{2 * WORDS - 1}:0] value = every();
endmodule"""
    options = ast.CompilationOptions()
    options.topModules = {"probe"}
    options.maxConstexprSteps = 1 << 20
    compilation = ast.Compilation(pyslang.Bag([options]))
    for tree in (syntax.SyntaxTree.fromFile(str(GENERATED / "cci_policy_pkg.sv")), syntax.SyntaxTree.fromText(probe)):
        compilation.addSyntaxTree(tree)
    assert not [diagnostic for diagnostic in compilation.getAllDiagnostics() if diagnostic.isError()]
    value = int(compilation.getRoot().topInstances[0].body.find("value").value.value)
    return [value >> 2 * i & 3 for i in range(WORDS)]


def described() -> dict[int, dict[str, Any]]:
    """Every word on the bus that can be a register, by its address. Of kernels only what each kernel's block begins with: what is
    behind it depends on the device."""
    found: dict[int, dict[str, Any]] = {}
    for block in blocks().values():
        header = 3 if block["base"] & 0xFFF else len(block["registers"])
        for number in range(block["count"]):
            for register in block["registers"][:header]:
                for i in range(register["count"] or 1):
                    found[block["base"] + number * block["stride"] + register["offset"] + 4 * i] = register
    return found


@pytest.mark.parametrize("write", [False, True])
def test_every_address_has_the_level_of_its_register(write: bool) -> None:
    words = described()
    for page in PAGES:
        for i, level in enumerate(levels(page, write)):
            register = words.get(page << 12 | i << 2)
            has_it = register is not None and "rw"[write] in register["access"]
            expected = LEVELS[register["write" if write else "read"]] if register and has_it else AUTHORISED
            assert level == expected, f"{page << 12 | i << 2:#07x} {'write' if write else 'read'}"


def test_nothing_is_written_without_authorisation_and_secrets_stay_local() -> None:
    """Not from the descriptions: what a device in a network must keep."""
    for page in PAGES:
        assert PUBLIC not in levels(page, write=True)
    assert all(level != PUBLIC for level in levels(0x01, write=False)[3:]), "of the management port only what it is"
    for name in ("RANDOM_SEED", "CTRL"):
        assert levels(0, write=True)[address(name) // 4] == LOCAL
    assert levels(0, write=False)[address("RANDOM_SEED") // 4] != PUBLIC
    public = [address(name) for name in ("TYPE", "QPS", "MAC_LO", "IP", "packet_rx_frame")]
    assert {levels(0, write=False)[at // 4] for at in public} == {PUBLIC}
    assert levels(0, write=False)[address("KEEPALIVE_MS") // 4] == AUTHORISED
    assert {levels(0x10, write=False)[i] for i in (0, 1, 2, 4, 0x40, 0x41, 0x42)} == {PUBLIC}
    assert levels(0x10, write=False)[address("socket.JOBS") % 4096 // 4] == AUTHORISED
