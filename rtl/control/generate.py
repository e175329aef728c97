#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes everything that follows from the register map, into build/generated:

  nacelle_regs_pkg.sv, nacelle_regs.sv   the registers (PeakRDL-regblock, AXI4-Lite)
  counters_pkg.sv                        all event structs as one, in the order of their counters
  counters.rdl, counters.json            the counters: one for each field of the event structs
  docs/registers.md                      the reference page's tables

The event structs in the RTL packages are the only list of events: a field added there is a counter here at the next build.
Does nothing if all of this is newer than what it is made from.
"""

from __future__ import annotations

import fcntl
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "build" / "generated"
sys.path.insert(0, str(ROOT / "rtl" / "testing"))

from nacelle_tb.sources import RTL, packages  # noqa: E402

COUNTERS_AT = 0x400
MAX_COUNTERS = 127  # event_counters.sv

# Struct, file, prefix of its counters' names, what it counts. In the order of addresses.
EVENT_STRUCTS = [
    ("packet_pkg::packet_events_t", "packet/packet_pkg.sv", "packet"),
    ("roce_events_pkg::roce_rx_events_t", "roce/roce_events_pkg.sv", "roce_rx"),
    ("roce_events_pkg::roce_tx_events_t", "roce/roce_events_pkg.sv", "roce_tx"),
    ("roce_events_pkg::cm_events_t", "roce/roce_events_pkg.sv", "cm"),
    ("compute_pkg::rpc_events_t", "compute/compute_pkg.sv", "rpc"),
]

LICENCE = "// SPDX-License-Identifier: Apache-2.0\n// Made by rtl/control/generate.py. Do not edit.\n\n"


@dataclass(frozen=True)
class Counter:
    """One counter."""

    name: str
    address: int
    description: str


def field_comments(file: Path, struct_name: str) -> dict[str, str]:
    """The comment behind each field of a struct."""
    body = re.search(r"typedef struct packed \{([^}]*)\}\s*" + struct_name + ";", file.read_text())
    assert body, f"{struct_name} is not in {file}"
    return {m[1]: m[2].strip() for m in re.finditer(r"^\s*logic\s+(\w+);\s*//\s*(.*)$", body[1], re.MULTILINE)}


def counters() -> list[Counter]:
    """Every counter, first field of the first struct first."""
    from nacelle_tb.svtypes import struct

    found = []
    for type_name, file, prefix in EVENT_STRUCTS:
        comments = field_comments(RTL / file, type_name.split("::")[1])
        layout = struct(type_name)
        names = sorted(layout.fields, key=lambda name: -layout.fields[name][0])
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
        LICENCE + "regfile event_counters {",
        '    name = "Event counters";',
        '    desc = "Each counts the pulses of one event since reset, modulo 2^32; up to 128 cycles late.";',
        "    reg counter {",
        "        default sw = r;",
        "        default hw = w;",
        '        field { desc = "How often."; } value[32];',
        "    };",
    ]
    for counter in found:
        text = counter.description.replace('"', "'")
        lines.append(f"    counter {counter.name} @ {counter.address - COUNTERS_AT:#x};")
        lines.append(f'    {counter.name}->name = "{counter.name}";')
        lines.append(f'    {counter.name}->desc = "{text}";')
    return "\n".join([*lines, "};", ""])


def counters_pkg(found: list[Counter]) -> str:
    """All events side by side, as the counters take them."""
    fields = "\n".join(f"    {type_name} {prefix};" for type_name, _, prefix in EVENT_STRUCTS)
    return f"""{LICENCE}// Everything that is counted.
package counters_pkg;
  localparam int unsigned COUNTERS = {len(found)};

  typedef struct packed {{
{fields}
  }} events_t;
endpackage
"""


def tables(top: object) -> str:
    """The registers as Markdown tables."""
    from systemrdl.node import AddrmapNode, RegNode

    assert isinstance(top, AddrmapNode)
    heading = "| address | name | bits | access | reset | what |\n| --- | --- | --- | --- | --- | --- |"
    lines = [heading]
    rows: dict[str, list[str]] = {"": []}
    for reg in top.descendants(unroll=True):
        if not isinstance(reg, RegNode):
            continue
        group = "" if reg.parent is top else reg.parent.inst_name
        for part in reg.fields():
            reset = part.get_property("reset")
            access = part.get_property("sw").name
            name = f"`{reg.inst_name}`" if part.inst_name == "value" else f"`{reg.inst_name}.{part.inst_name}`"
            bits = str(part.low) if part.width == 1 else f"{part.high}:{part.low}"
            note = part.get_property("desc")
            text = reg.get_property("desc") + (f" {note}" if not group and access == "rw" else "")
            value = "" if reset is None else str(reset)
            rows.setdefault(group, []).append(f"| `{reg.absolute_address:#05x}` | {name} | {bits} | {access} | {value} | {text} |")
    lines += rows.pop("")
    for group, its_rows in rows.items():
        node = top.get_child_by_name(group)
        lines += ["", f"## {node.get_property('name')}", "", node.get_property("desc"), "", heading, *its_rows]
    return "\n".join([*lines, ""])


def write(path: Path, text: str) -> None:
    """Writes a file, its folder made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def generate() -> None:
    """Writes everything."""
    from peakrdl_regblock import RegblockExporter
    from peakrdl_regblock.cpuif.axi4lite import AXI4Lite_Cpuif_flattened
    from peakrdl_regblock.udps import ALL_UDPS
    from systemrdl import RDLCompiler

    (OUT / "counters_pkg.sv").unlink(missing_ok=True)  # names structs that may be gone
    found = counters()
    write(OUT / "counters.rdl", counters_rdl(found))
    compiler = RDLCompiler()
    for property_ in ALL_UDPS:
        compiler.register_udp(property_)
    compiler.compile_file(str(HERE / "nacelle.rdl"), incl_search_paths=[str(OUT)])
    top = compiler.elaborate().top
    RegblockExporter().export(
        top, str(OUT), module_name="nacelle_regs", cpuif_cls=AXI4Lite_Cpuif_flattened, err_if_bad_addr=True, address_width=12
    )
    write(OUT / "counters_pkg.sv", counters_pkg(found))
    write(OUT / "docs" / "registers.md", tables(top))
    # Last: its time says that all of this is complete.
    write(OUT / "counters.json", json.dumps([vars(counter) for counter in found], indent=2) + "\n")


def up_to_date() -> bool:
    """Nothing that this is made from is newer than what was made."""
    made = OUT / "counters.json"
    sources = [Path(__file__), HERE / "nacelle.rdl", *packages()]
    return made.exists() and all(path.stat().st_mtime <= made.stat().st_mtime for path in sources)


if __name__ == "__main__":
    # Builds that run at the same time each start this.
    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not up_to_date():
            generate()
