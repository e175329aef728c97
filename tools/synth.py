# SPDX-License-Identifier: Apache-2.0
"""Size and logic depth of each plane by open synthesis (yosys with slang, UltraScale+ mapping), beside the goals.

    python tools/synth.py [--data-w 512] [PLANE ...]

Every plane is synthesised by itself, as it stands in the shell: same parameters, interfaces spread over ports. LUT levels are those
of the longest path between two registers. The numbers are written to build/synth-<DATA_W>.json.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lut_depth import depth

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "rtl" / "testing"))
from nacelle_tb.sources import GENERATED, module_dirs, packages  # noqa: E402

OUT = ROOT / "build" / "synth"


@dataclass(frozen=True)
class Goal:
    """At most this much; None: no goal."""

    lut: int | None = None
    ff: int | None = None
    bram36: float | None = None
    levels: float | None = 8


# Instance of each plane in the shell, and its goal.
PLANES: dict[str, tuple[str, Goal]] = {
    "packet": ("shell.packet", Goal()),
    "roce": ("shell.roce", Goal()),
    "rpc": ("shell.rpc", Goal()),
    "memory": ("shell.fabric", Goal()),
    "control": ("shell.control", Goal()),
    "socket-increment": ("shell.sockets[0].socket", Goal()),
    "socket-matmul": ("shell.sockets[1].socket", Goal()),
}
ENGINE = ("packet", "roce")
ENGINE_GOAL = Goal(lut=40_000, ff=50_000, bram36=90)


def elaborate(data_w: int) -> Any:
    """The elaborated design (slang)."""
    import pyslang
    from pyslang import ast, syntax

    options = ast.CompilationOptions()
    options.topModules = {"nacelle_sim_top"}
    options.paramOverrides = [f"DATA_W={data_w}"]
    compilation = ast.Compilation(pyslang.Bag([options]))
    files = [*packages(), ROOT / "sim" / "nacelle_sim_top.sv"]
    for folder in [*module_dirs(), GENERATED]:
        files += [path for path in sorted(folder.glob("*.sv")) if path not in files]
    for path in sorted(files, key=lambda p: not p.name.endswith("_pkg.sv")):
        compilation.addSyntaxTree(syntax.SyntaxTree.fromFile(str(path)))
    compilation.getAllDiagnostics()
    return compilation


def wrapper(instance: Any, name: str) -> str:
    """A module `name` with plain ports around a copy of this instance."""
    from pyslang import ast

    def value(parameter: Any) -> str:
        if isinstance(parameter, ast.TypeParameterSymbol):
            return str(parameter.targetType.type)
        text = str(parameter.value)
        return text

    def overrides(body: Any) -> str:
        items = [f".{p.name}({value(p)})" for p in body.parameters if p.isPortParam and not p.isLocalParam]
        return f" #({', '.join(items)})" if items else ""

    ports, body, connections = [], [], []
    for port in instance.body.portList:
        if not isinstance(port, ast.InterfacePortSymbol):
            direction = {"In": "input", "Out": "output"}[str(port.direction).split(".")[-1]]
            ports.append(f"{direction} logic [{port.type.bitWidth - 1}:0] {port.name}")
            connections.append(f".{port.name}({port.name})")
            continue
        connected, modport = port.connection
        array = isinstance(connected, ast.InstanceArraySymbol)
        count = len(list(connected.elements)) if array else 1
        element = connected.elements[0] if array else connected
        body.append(f"  {port.interfaceDef.name}{overrides(element.body)} {port.name}_if{f' [{count}]' if array else ''} ();")
        if modport is None:
            modport = element.body.find(port.modport)
        for member in modport:
            if not isinstance(member, ast.ModportPortSymbol):
                continue
            is_input = str(member.direction).split(".")[-1] == "In"
            width = member.type.bitWidth
            # The module's inputs are the wrapper's inputs.
            flat = f"{port.name}_{member.name}"
            ports.append(f"{'input' if is_input else 'output'} logic [{count - 1}:0][{width - 1}:0] {flat}")
            for index in range(count):
                inside = f"{port.name}_if{f'[{index}]' if array else ''}.{member.name}"
                left, right = (inside, f"{flat}[{index}]") if is_input else (f"{flat}[{index}]", inside)
                body.append(f"  assign {left} = {right};")
        connections.append(f".{port.name}({port.name}_if)")
    joined_ports = ",\n  ".join(ports)
    joined = ",\n      ".join(connections)
    lines = "\n".join(body)
    return (
        f"module {name} (\n  {joined_ports}\n);\n{lines}\n"
        f"  {instance.definition.name}{overrides(instance.body)} dut (\n      {joined}\n  );\nendmodule\n"
    )


def synthesise(plane: str, data_w: int) -> dict[str, Any]:
    """Maps one plane and measures it. Takes the process over: its standard output becomes the log."""
    from pyosys import libyosys as ys

    begin = time.monotonic()
    OUT.mkdir(parents=True, exist_ok=True)
    compilation = elaborate(data_w)
    instance = compilation.getRoot().lookupName(f"nacelle_sim_top.{PLANES[plane][0]}")
    if instance is None:
        raise SystemExit(f"{plane}: the shell has no {PLANES[plane][0]}")
    top = f"synth_{plane.replace('-', '_')}"
    source = OUT / f"{top}_{data_w}.sv"
    source.write_text(wrapper(instance, top))
    netlist = source.with_suffix(".json")
    log = source.with_suffix(".log")
    search = " ".join(f"-y {path}" for path in [*module_dirs(), GENERATED] if path.exists())
    files = " ".join(map(str, [*packages(), source]))
    design = ys.Design()
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)  # yosys says a lot
    for step in (
        f"read_slang --no-implicit-memories --ignore-assertions --best-effort-hierarchy {search} --top {top} {files}",
        f"synth_xilinx -family xcup -uram -flatten -noclkbuf -noiopad -top {top}",
        # What the source keeps apart in mapping counts like the rest.
        "setattr -mod -unset keep_hierarchy *",
        "flatten",
        "opt_clean",
        f"write_json {netlist}",
    ):
        ys.run_pass(step, design)
    module = json.loads(netlist.read_text())["modules"][top]
    kinds: dict[str, int] = {}
    for cell in module["cells"].values():
        kinds[cell["type"]] = kinds.get(cell["type"], 0) + 1

    def total(*prefixes: str) -> int:
        return sum(count for kind, count in kinds.items() if kind.startswith(prefixes))

    lut_ram = sum(
        count * (4 if "M" in kind else 1)
        for kind, count in kinds.items()
        if kind.startswith(("RAM32", "RAM64", "RAM128", "RAM256"))
    )
    path = depth(module)
    return {
        "plane": plane,
        "data_w": data_w,
        "lut": total("LUT") + lut_ram + total("SRL"),
        "ff": total("FD"),
        "bram36": total("RAMB36") + total("RAMB18") / 2,
        "uram": total("URAM"),
        "dsp": total("DSP"),
        "levels": path.levels,
        "longest_path": [path.start, path.end],
        "seconds": round(time.monotonic() - begin),
    }


def synthesise_apart(plane: str, data_w: int) -> dict[str, Any]:
    """The same in a process of its own: yosys never gives memory back."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(synthesise, (plane, data_w))


def show(row: dict[str, Any], goal: Goal) -> None:
    """One line of the table; what misses its goal is marked."""

    def cell(key: str, width: int) -> str:
        limit = getattr(goal, key)
        mark = "" if limit is None else (f" <={limit}" if row[key] <= limit else f" >{limit}!")
        return f"{row[key]:>{width}}{mark:<9}"

    print(f"{row['plane']:18}{cell('lut', 7)}{cell('ff', 7)}{cell('bram36', 6)}{row['uram']:>4}{row['dsp']:>5}  {cell('levels', 5)}"
          f"{row.get('seconds', ''):>5} s", flush=True)  # fmt: skip


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("planes", nargs="*", metavar="PLANE", help=f"of {', '.join(PLANES)}; all unless named")
    parser.add_argument("--data-w", type=int, choices=(64, 128, 256, 512), default=512)
    arguments = parser.parse_args()
    planes = arguments.planes or list(PLANES)
    unknown = set(planes) - set(PLANES)
    if unknown:
        parser.error(f"no such plane: {', '.join(sorted(unknown))}")

    head = f"{'DATA_W ' + str(arguments.data_w):18}{'LUT':>7}{'':9}{'FF':>7}{'':9}{'BRAM36':>6}{'':9}"
    print(f"{head}{'URAM':>4}{'DSP':>5}  {'levels':>5}")
    rows = []
    for plane in planes:
        row = synthesise_apart(plane, arguments.data_w)
        rows.append(row)
        show(row, PLANES[plane][1])
    engine = [row for row in rows if row["plane"] in ENGINE]
    if len(engine) == len(ENGINE):
        together = {key: sum(row[key] for row in engine) for key in ("lut", "ff", "bram36", "uram", "dsp")}
        show({"plane": "packet + roce", **together, "levels": max(row["levels"] for row in engine)}, ENGINE_GOAL)
    (ROOT / "build" / f"synth-{arguments.data_w}.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
