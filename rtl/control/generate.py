#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes everything that follows from the description of the registers (*.rdl). Into build/generated:

  nacelle_regs_pkg.sv, nacelle_regs.sv        the device's own registers (PeakRDL-regblock, AXI4-Lite)
  management_regs_pkg.sv, admission_regs_pkg.sv, event_log_regs_pkg.sv, trace_regs_pkg.sv, histograms_regs_pkg.sv,
  images_regs_pkg.sv, sensors_regs_pkg.sv, copy_regs_pkg.sv, stream_regs_pkg.sv, socket_regs_pkg.sv
                                              addresses for decoders that are written by hand
  cci_map_pkg.sv                              the pages of the control bus
  cci_policy_pkg.sv                           who may access which register
  counters_pkg.sv                             all event structs as one, in the order of their counters
  counters.rdl                                the counters: one for each field of the event structs
  registers.json                              every block and register, for programs
  docs/*.md                                   the tables of the reference pages

and into the source tree, for builds of the host software without Python:

  host/nacelle-manage/src/map/blocks.rs
  host/nacelle-capi/include/nacelle_registers.h

The event structs in the RTL packages are the only list of events: a field added there is a counter here at the next build.
Does nothing if all of this is newer than what it is made from. With --check it makes everything, and fails if the files in the
source tree were not what it makes.
"""

from __future__ import annotations

import fcntl
import json
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "build" / "generated"
sys.path.insert(0, str(ROOT / "rtl" / "testing"))

from nacelle_tb import rdl_sv  # noqa: E402
from nacelle_tb.rdl import Block, block_of, compile_file, read_block  # noqa: E402
from nacelle_tb.sources import RTL, overlay, packages  # noqa: E402
from nacelle_tb.svtypes import struct  # noqa: E402
from outputs import MapEntry, c_header, listing, overview, rust, table  # noqa: E402

COUNTERS_AT = 0x400
MAX_COUNTERS = 255  # event_counters.sv

# Struct, file, prefix of its counters' names, what it counts. In the order of addresses.
EVENT_STRUCTS = [
    ("packet_pkg::packet_events_t", "packet/packet_pkg.sv", "packet"),
    ("roce_events_pkg::roce_rx_events_t", "roce/roce_events_pkg.sv", "roce_rx"),
    ("roce_events_pkg::roce_tx_events_t", "roce/roce_events_pkg.sv", "roce_tx"),
    ("roce_events_pkg::cm_events_t", "roce/roce_events_pkg.sv", "cm"),
    ("compute_pkg::rpc_events_t", "compute/compute_pkg.sv", "rpc"),
    ("memory_pkg::memory_events_t", "memory/memory_pkg.sv", "memory"),
    ("services_pkg::service_events_t", "services/services_pkg.sv", "service"),
    ("address_pkg::address_events_t", "services/address_pkg.sv", "address"),
    ("pcie_pkg::pcie_events_t", "pcie/pcie_pkg.sv", "pcie"),  # the last: a device without a slot has none of these
]

# Memory answered with an error, or did not.
MEMORY_ERRORS = {
    "memory_uncorrectable",
    *(
        f"pcie_requester_{cause}"
        for cause in ("writes_off", "reads_off", "unsupported", "aborts", "poisoned", "malformed", "timeouts")
    ),
}

LICENCE = "// SPDX-License-Identifier: Apache-2.0\n// Made by rtl/control/generate.py. Do not edit.\n\n"


MANAGEMENT = RTL / "roce" / "clients" / "management.rdl"
ADMISSION = RTL / "roce" / "admission" / "admission.rdl"
TELEMETRY = RTL / "telemetry"
IMAGES = RTL / "compute" / "images" / "images.rdl"
COPY = RTL / "copy" / "copy.rdl"
CLASSIFIER = RTL / "classify" / "classifier.rdl"
STREAM = RTL / "compute" / "stream" / "stream.rdl"
SOCKET = RTL / "compute" / "socket" / "socket.rdl"
KERNELS = RTL / "compute" / "kernels"
RUST = ROOT / "host" / "nacelle-manage" / "src" / "map" / "blocks.rs"
C_HEADER = ROOT / "host" / "nacelle-capi" / "include" / "nacelle_registers.h"
COMMENT = "Made by rtl/control/generate.py from the descriptions of the registers. Do not edit."


@dataclass(frozen=True)
class Counter:
    """One counter."""

    name: str
    address: int
    description: str


def field_comments(file: Path, struct_name: str, prefix: str = "") -> dict[str, str]:
    """The comment behind each field of a struct, and of the structs in it."""
    body = re.search(r"typedef struct packed \{([^}]*)\}\s*" + struct_name + ";", file.read_text())
    assert body, f"{struct_name} is not in {file}"
    found = {prefix + m[1]: m[2].strip() for m in re.finditer(r"^\s*logic\s+(\w+);\s*//\s*(.*)$", body[1], re.MULTILINE)}
    for inner in re.finditer(r"^\s*(\w+_t)\s+(\w+);", body[1], re.MULTILINE):
        found |= field_comments(file, inner[1], f"{prefix}{inner[2]}_")
    return found


def counters() -> list[Counter]:
    """Every counter, first field of the first struct first."""
    found = []
    for type_name, file, prefix in EVENT_STRUCTS:
        comments = field_comments(RTL / file, type_name.split("::")[1])
        layout = struct(type_name)
        names = sorted(leaves := layout.leaves(), key=lambda name: -leaves[name])
        if len(names) != layout.width:
            raise SystemExit(f"{type_name}: every field must be one bit")
        for name in names:
            description = comments.get(name, name.replace("_", " "))
            found.append(Counter(f"{prefix}_{name}", COUNTERS_AT + 4 * len(found), description))
    if len(found) > MAX_COUNTERS:
        raise SystemExit(f"{len(found)} events, but event_counters takes {MAX_COUNTERS}")
    return found


def counters_rdl(found: list[Counter]) -> str:
    """The counters as a SystemRDL register file."""
    lines = [
        LICENCE + '`include "block.rdl"\n\nregfile event_counters {',
        '    name = "Event counters";',
        '    desc = "Each counts the pulses of one event since reset, modulo 2^32; up to 128 cycles late.";',
        "    reg counter {",
        "        default sw = r;",
        "        default hw = w;",
        "        cci_read = cci_level::PUBLIC;",
        '        field { desc = "How often."; } value[32];',
        "    };",
    ]
    for counter in found:
        text = counter.description.replace('"', "'")
        lines.append(f"    counter {counter.name} @ {counter.address - COUNTERS_AT:#x};")
        lines.append(f'    {counter.name}->desc = "{text}";')
    return "\n".join([*lines, "};", ""])


def counters_pkg(found: list[Counter]) -> str:
    """All events side by side, as the counters take them."""
    fields = "\n".join(f"    {type_name} {prefix};" for type_name, _, prefix in EVENT_STRUCTS)
    drops = "".join(str(int("_drop_" in counter.name)) for counter in found)
    memory = "".join(str(int(counter.name in MEMORY_ERRORS)) for counter in found)
    return f"""{LICENCE}// Everything that is counted.
package counters_pkg;
  localparam int unsigned COUNTERS = {len(found)};
  localparam logic [31:0] COUNTERS_AT = 32'h{COUNTERS_AT:x};   // address of the first

  // Those that the event log is told of, in the places of events_t.
  localparam logic [COUNTERS-1:0] DROPS = {len(found)}'b{drops};
  localparam logic [COUNTERS-1:0] MEMORY_ERRORS = {len(found)}'b{memory};

  typedef struct packed {{
{fields}
  }} events_t;
endpackage
"""


def write(path: Path, text: str) -> bool:
    """Writes a file, its folder made if need be. One that has this content keeps its time. Returns whether it changed."""
    if path.exists() and path.read_text() == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return True


def kernel_files() -> list[Path]:
    """Descriptions of the project's kernels' registers, those of kernels in sockets and in streaming sockets."""
    return sorted([*KERNELS.glob("kernel_*.rdl"), *KERNELS.glob("stream_*.rdl")])


def device_registers() -> Block:
    """Writes the device's own registers as RTL, and returns their block."""
    from peakrdl_regblock import RegblockExporter
    from peakrdl_regblock.cpuif.axi4lite import AXI4Lite_Cpuif_flattened
    from peakrdl_regblock.udps import ALL_UDPS

    top = compile_file(HERE / "nacelle.rdl", "nacelle_regs", include=[OUT], extra=ALL_UDPS)
    with tempfile.TemporaryDirectory() as folder:
        RegblockExporter().export(
            top,
            folder,
            module_name="nacelle_regs",
            cpuif_cls=AXI4Lite_Cpuif_flattened,
            err_if_bad_addr=True,
            err_if_bad_rw=True,
            address_width=12,
        )
        for path in Path(folder).glob("*.sv"):
            write(OUT / path.name, path.read_text())
    return block_of(top, "device")


def bus(blocks: dict[str, Block]) -> list[MapEntry]:
    """Where each block is on the bus, as cci.rdl has it."""
    folders = [OUT, TELEMETRY, *(path.parent for path in (MANAGEMENT, ADMISSION, IMAGES, COPY, CLASSIFIER, STREAM, SOCKET))]
    top = compile_file(HERE / "cci.rdl", "cci", include=folders)
    found = []
    for child in top.children(unroll=False):
        count, stride = (child.array_dimensions[0], child.array_stride) if child.is_array else (1, 0)
        found.append(MapEntry(blocks[child.inst_name], child.raw_absolute_address, count, stride))
    places = {name: next(entry for entry in found if entry.block.name == name) for name in ("socket", "stream")}
    for path in kernel_files():
        socket = places["stream" if path.stem.startswith("stream_") else "socket"]
        found.append(MapEntry(blocks[path.stem], socket.base + rdl_sv.KERNEL_AT, socket.count, socket.stride))
    if found[0].block["NEXT"].reset != found[1].base:
        raise SystemExit(f"{HERE / 'nacelle.rdl'}: NEXT is not where cci.rdl has the next block")
    return found


def generate() -> list[Path]:
    """Writes everything. Returns what has changed in the source tree."""
    # Packages first that others need: a decoder's constants have no counters in them.
    blocks = {
        "management": read_block(MANAGEMENT, "management_regs", "management"),
        "admission": read_block(ADMISSION, "admission_regs", "admission"),
        "event_log": read_block(HERE / "event_log.rdl", "event_log_regs", "event_log"),
        "trace": read_block(TELEMETRY / "trace.rdl", "trace_regs", "trace"),
        "histograms": read_block(TELEMETRY / "histograms.rdl", "histograms_regs", "histograms"),
        "images": read_block(IMAGES, "images_regs", "images"),
        "sensors": read_block(TELEMETRY / "sensors.rdl", "sensors_regs", "sensors"),
        "copy": read_block(COPY, "copy_regs", "copy"),
        "classifier": read_block(CLASSIFIER, "classifier_regs", "classifier"),
        "stream": read_block(STREAM, "stream_regs", "stream"),
        "socket": read_block(SOCKET, "socket_regs", "socket"),
        **{
            path.stem: read_block(path, f"{path.stem}_regs", path.stem.removeprefix("kernel_").removeprefix("stream_"))
            for path in kernel_files()
        },
    }
    for name in (block for block in blocks if not block.startswith(("kernel_", "stream_"))):
        write(OUT / f"{name}_regs_pkg.sv", LICENCE + rdl_sv.package(blocks[name], f"{name}_regs_pkg"))
    (OUT / "counters_pkg.sv").unlink(missing_ok=True)  # names structs that may be gone
    found = counters()
    write(OUT / "counters.rdl", counters_rdl(found))
    blocks["device"] = device_registers()
    write(OUT / "counters_pkg.sv", counters_pkg(found))

    entries = bus(blocks)
    first = {entry.block.name: entry.base >> rdl_sv.PAGE_W for entry in entries if not entry.base & rdl_sv.PAGE_MASK}
    write(OUT / "cci_map_pkg.sv", LICENCE + rdl_sv.bus(first))
    pages: dict[tuple[int, int], list[tuple[Block, int]]] = {}
    for entry in entries:
        page, offset = entry.base >> rdl_sv.PAGE_W, entry.base & rdl_sv.PAGE_MASK
        pages.setdefault((page, page + entry.count - 1), []).append((entry.block, offset))
    write(OUT / "cci_policy_pkg.sv", LICENCE + rdl_sv.policy(pages))
    for entry in entries:
        write(OUT / "docs" / f"{entry.block.name}.md", table(entry.block))
    write(OUT / "docs" / "bus.md", overview(entries))
    sources = {RUST: rust(entries, COMMENT), C_HEADER: c_header(entries, COMMENT)}
    # A mutant's registers are nobody's.
    changed = [] if overlay() else [path for path, text in sources.items() if write(path, text)]
    # Last: its time says that all of this is complete.
    (OUT / "registers.json").unlink(missing_ok=True)
    write(OUT / "registers.json", json.dumps(listing(entries), indent=1) + "\n")
    return changed


def up_to_date() -> bool:
    """Nothing that this is made from is newer than what was made."""
    made = OUT / "registers.json"
    tools = [*HERE.glob("*.py"), Path(rdl_sv.__file__), Path(rdl_sv.__file__).with_name("rdl.py")]
    sources = [
        *tools,
        *HERE.glob("*.rdl"),
        *TELEMETRY.glob("*.rdl"),
        MANAGEMENT,
        ADMISSION,
        IMAGES,
        COPY,
        CLASSIFIER,
        STREAM,
        SOCKET,
        *kernel_files(),
        *packages(),
    ]
    if not (RUST.exists() and C_HEADER.exists() and made.exists()):
        return False
    return all(path.stat().st_mtime <= made.stat().st_mtime for path in sources)


def main() -> None:
    """Command line."""
    # Builds that run at the same time each start this.
    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        check = "--check" in sys.argv[1:]
        if check or not up_to_date():
            changed = generate()
            if check and changed:
                names = ", ".join(str(path.relative_to(ROOT)) for path in changed)
                sys.exit(f"older than the description of the registers, now made again; commit it: {names}")


if __name__ == "__main__":
    main()
