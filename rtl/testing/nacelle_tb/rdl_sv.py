# SPDX-License-Identifier: Apache-2.0
"""What the RTL gets from the register blocks: names of addresses, and who may access them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from .rdl import WORD, Block, Level, Register

PAGE_W = 12  # bits of a page's addresses
PAGE_MASK = (1 << PAGE_W) - 1
KERNEL_AT = 0x100  # a kernel's block in the page of its socket


def ranges(words: Iterable[int]) -> str:
    """The word numbers as the set of SystemVerilog's `inside`, neighbours joined. Empty if there are none."""
    spans: list[list[int]] = []
    for word in sorted(words):
        if spans and spans[-1][1] == word - 1:
            spans[-1][1] = word
        else:
            spans.append([word, word])
    size = PAGE_W - 2
    return ", ".join(f"{size}'h{low:03x}" if low == high else f"[{size}'h{low:03x}:{size}'h{high:03x}]" for low, high in spans)


def _words(block: Block, base: int, wanted: Callable[[Register], bool]) -> list[int]:
    return [(base + offset) // WORD for offset, register in block.words() if wanted(register)]


def constants(block: Block, base: int = 0) -> str:
    """The items of a package: type, version and addresses in the page of a block that begins at `base`, and whether an address can
    be read and written."""
    lines = [
        f"  localparam logic [31:0] BLOCK_TYPE = 32'h{block.kind:08x};   // {block.four_characters}",
        f"  localparam logic [31:0] BLOCK_VERSION = 32'h{block.version:08x};",
        "",
    ]
    for register in block.registers:
        note = f"   // {register.count} words" if register.count else ""
        lines.append(f"  localparam logic [{PAGE_W - 1}:0] AT_{register.name} = {PAGE_W}'h{base + register.offset:03x};{note}")
        if register.count:
            lines.append(f"  localparam int unsigned {register.name}_WORDS = {register.count};")
    for name, words in (
        ("readable", _words(block, base, lambda register: register.readable)),
        ("writable", _words(block, base, lambda register: register.writable)),
    ):
        body = f"address[{PAGE_W - 1}:2] inside {{{ranges(words)}}}" if words else "1'b0"
        lines += [
            "",
            f"  function automatic logic {name}(logic [{PAGE_W - 1}:0] address);",
            f"    return {body};",
            "  endfunction",
        ]
    return "\n".join(lines)


def package(block: Block, name: str) -> str:
    """A package of its own for a block at the begin of its page."""
    return f"// {block.title}: addresses of the registers in their page.\npackage {name};\n{constants(block)}\nendpackage\n"


def bus(pages: Mapping[str, int]) -> str:
    """The package of the pages of the control bus, by the name of their first block."""
    lines = [f"  localparam logic [7:0] {name.upper()}_PAGE = 8'h{page:02x};" for name, page in pages.items()]
    body = "\n".join(lines)
    return f"""// The pages of the control bus, of 4 KiB each; of the sockets the first.
package cci_map_pkg;
{body}
  localparam logic [{PAGE_W - 1}:0] KERNEL_AT = {PAGE_W}'h{KERNEL_AT:03x};   // a kernel's block in the page of its socket
endpackage
"""


def policy(pages: Mapping[tuple[int, int], list[tuple[Block, int]]]) -> str:
    """The package that says who may access an address. `pages`: first and last page, and the blocks in each of these with their
    offsets."""
    cases, kernel_cases = [], []
    for (first, last), blocks in pages.items():
        kernel = [
            f"        if ({condition} && word inside {{{ranges(set(words))}}}) access |= {permission};"
            for condition, permission, wanted in (
                ("!write", "may_read", lambda register: register.kernel_reads),
                ("write", "may_write", lambda register: register.kernel_writes),
            )
            if (words := [word for block, base in blocks for word in _words(block, base, wanted)])
        ]
        if kernel:
            kernel_cases += [f"      [8'h{first:02x}:8'h{last:02x}]: begin", *kernel, "      end"]
        cases.append(f"      [8'h{first:02x}:8'h{last:02x}]: begin")
        for write in (False, True):
            for level in (Level.PUBLIC, Level.LOCAL):
                words = [
                    word
                    for block, base in blocks
                    for word in _words(block, base, lambda register, write=write, level=level: _level(register, write) == level)
                ]
                if words:
                    condition = f"{'' if write else '!'}write && word inside {{{ranges(set(words))}}}"
                    cases.append(f"        if ({condition}) access = CCI_{level.name};")
        cases.append("      end")
    body, kernel_body = "\n".join(cases), "\n".join(kernel_cases)
    return f"""// Who may access the registers on the control bus: cci_read, cci_write and cci_kernel of their descriptions.
// An access that is not named there takes authorisation.
package cci_policy_pkg;
  typedef enum logic [1:0] {{
    CCI_PUBLIC,       // anybody on the network
    CCI_AUTHORISED,   // a client that has been authorised
    CCI_LOCAL         // nobody on the network
  }} cci_access_e;

  function automatic cci_access_e cci_access(logic [19:0] address, logic write);
    cci_access_e access;
    logic [9:0]  word;
    access = CCI_AUTHORISED;
    word   = address[11:2];
    case (address[19:12]) inside
{body}
      default: access = CCI_AUTHORISED;
    endcase
    return access;
  endfunction

  // Whether a kernel may: it reads what anybody may read, and accesses what is named for kernels if it is permitted to.
  function automatic logic kernel_access(logic [19:0] address, logic write, logic may_read, logic may_write);
    logic       access;
    logic [9:0] word;
    access = !write && cci_access(address, 1'b0) == CCI_PUBLIC;
    word   = address[11:2];
    case (address[19:12]) inside
{kernel_body}
      default: ;
    endcase
    return access;
  endfunction
endpackage
"""


def _level(register: Register, write: bool) -> Level | None:
    """Who may do this; None: the register does not have it."""
    if write:
        return register.write_level if register.writable else None
    return register.read_level if register.readable else None
