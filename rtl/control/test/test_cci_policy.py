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


def evaluated(function: str, page: int, *arguments: bool) -> list[int]:
    """What a function of an address and these arguments gives for each word of a page: evaluated by slang."""
    given = ", ".join(f"1'b{int(argument)}" for argument in arguments)
    probe = f"""module probe;
  import cci_policy_pkg::*;
  function automatic logic [{2 * WORDS - 1}:0] every();
    for (int unsigned i = 0; i < {WORDS}; i++) every[2 * i +: 2] = 2'({function}({{8'h{page:02x}, 10'(i), 2'b00}}, {given}));
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


def levels(page: int, write: bool) -> list[int]:
    """Who on the network may access each word of a page."""
    return evaluated("cci_access", page, write)


def for_kernels(page: int, write: bool, may_read: bool = True, may_write: bool = True) -> set[int]:
    """Addresses of the words of a page that a kernel with these permissions may access."""
    return {page << 12 | i << 2 for i, may in enumerate(evaluated("kernel_access", page, write, may_read, may_write)) if may}


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


@pytest.mark.parametrize("may_read", [False, True])
@pytest.mark.parametrize("may_write", [False, True])
def test_a_kernel_reads_what_anybody_reads_and_what_its_socket_permits(may_read: bool, may_write: bool) -> None:
    """Each permission alone; what no description marks is out of reach with both."""
    words = described()
    for page in PAGES:
        mine = {at: register for at, register in words.items() if at >> 12 == page}
        reads = {at for at, register in mine.items() if "r" in register["access"] and register["read"] == "public"}
        if may_read:
            reads |= {at for at, register in mine.items() if "r" in register["access"] and register["kernel"] in ("read", "write")}
        writes = {at for at, register in mine.items() if register["kernel"] == "write"} if may_write else set()
        assert for_kernels(page, False, may_read, may_write) == reads
        assert for_kernels(page, True, may_read, may_write) == writes


def test_no_permission_gives_a_kernel_secrets_or_what_confines_it() -> None:
    """Not from the descriptions. It writes settings of congestion control, and nothing else at all: no page of a socket, of
    admission, of images, of management. Of management, admission, log, trace, images and sensors it
    reads only what they are."""
    written = set().union(*(for_kernels(page, True) for page in range(0x100)))
    assert written == set(range(address("RP_ENABLE"), address("MIN_TIME_BETWEEN_CNPS") + 4, 4))
    for name in ("management", "admission", "event_log", "trace", "images", "sensors"):
        base = blocks()[name]["base"]
        assert for_kernels(base >> 12, False) == {base, base + 4, base + 8}
    device = for_kernels(0, False)
    secret = ("RANDOM_SEED", "CCI_PORT", "CCI_SOURCE", "CCI_SOURCE_PREFIX", *(f"CCI_TOKEN_{i}" for i in range(4)))
    assert not device & {address(name) for name in secret} and {address("KERNEL_TIMEOUT_MS"), address("IP")} <= device
    socket = blocks()["socket"]["base"]
    kernels_own = {at - socket for at in for_kernels(socket >> 12, False)} & set(range(0x100, 0x1000))
    assert kernels_own == {0x100, 0x104, 0x108}
    assert for_kernels(0x20, False) == for_kernels(0xFF, False) == set()
