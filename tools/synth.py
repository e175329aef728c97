# SPDX-License-Identifier: Apache-2.0
"""Size and logic depth of every part of the device by open synthesis (yosys with slang), beside the goals.

    python tools/synth.py [--data-w 512] [PART ...]     UltraScale+: each part of the shell, then all of them together
    python tools/synth.py --list                        names the parts
    python tools/synth.py roce.requester                an instance inside a part
    python tools/synth.py roce --by-instance 2          LUTs of the instances inside, two levels deep
    python tools/synth.py engine --paths 20             the longest paths, to different registers
    python tools/synth.py --no-uram roce                UltraRAM made of block RAM
    python tools/synth.py --family intel                ALM and M10K of Cyclone V instead
    python tools/synth.py --family ecp5 --device ecp5   LUT4 and EBR of ECP5, of the device that fits one
    python tools/synth.py --device one-socket total     another device than the standard one
    python tools/synth.py --plane pcie total            a plane that is not in the shell

A part is an instance of the shell, mapped by itself with the parameters that it has there. `glue` is what the shell has outside of
its instances, `engine` the packet plane and the RoCE engine mapped together, `device` all of it mapped at once. The numbers are
written to build/synth-<DATA_W>.json. docs/explanation/measurements.md says what is counted how.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import primitives
from ecp5 import map_ecp5
from lut_depth import depth

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "rtl" / "testing"))
from nacelle_tb.device import STANDARD, Device, add_options, from_options  # noqa: E402
from nacelle_tb.device_rtl import generate  # noqa: E402
from nacelle_tb.planes import ALONE  # noqa: E402
from nacelle_tb.sources import GENERATED, module_dirs, packages  # noqa: E402

OUT = ROOT / "build" / "synth"
TOP = "nacelle_sim_top"
ENGINE, GLUE, DEVICE, TOTAL = "engine", "glue", "device", "total"
TOGETHER = ("packet", "roce")  # what `engine` is made of
FAMILIES = ("ultrascale+", "intel", "ecp5")
SUMS = {
    "ultrascale+": ("lut", "lut_ram", "ff", "bram36", "uram", "bram36_with_uram", "dsp"),
    "intel": ("alm", "alm_apart", "mlab_alm", "ff", "m10k", "dsp"),
    "ecp5": ("lut4", "lut_ram", "ff", "ebr", "dsp"),
}
HEADS = {"lut_ram": "LUTRAM", "bram36_with_uram": "=BRAM36", "alm_apart": "unpaired", "mlab_alm": "MLAB"}


@dataclass(frozen=True)
class Goal:
    """At most this much; None: no goal."""

    lut: int | None = None
    ff: int | None = None
    bram36_with_uram: float | None = None
    levels: float | None = 8


GOALS = {ENGINE: Goal(lut=40_000, ff=50_000, bram36_with_uram=90)}


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """yosys says a lot."""
    before = [os.dup(1), os.dup(2)]
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        for kept, stream in zip(before, (1, 2), strict=True):
            os.dup2(kept, stream)
            os.close(kept)


class Shell:
    """The device as slang reads it, one module for each instance. yosys never gives memory back, so each part is mapped in a copy
    of the process."""

    def __init__(self, device: Device, family: str = FAMILIES[0], uram: bool = True, plane: str | None = None) -> None:
        from pyosys import libyosys as ys

        self.device, self.family, self.uram = device, family, uram
        self.folder = OUT / (f"{plane}-{device.data_w}" if plane else f"{device.name}-{device.data_w}-{device.queue_pairs}")
        self.folder.mkdir(parents=True, exist_ok=True)
        top, file = TOP, ROOT / "sim" / f"{TOP}.sv"
        self.shell = f"nacelle_shell${TOP}.shell"
        if plane:
            source, module = ALONE[plane]
            top = f"tb_{module}"
            file = self.folder / f"{top}.sv"
            file.write_text(source(device.data_w))
            self.shell = f"{module}${top}.dut"
        subprocess.run([sys.executable, str(ROOT / "rtl" / "control" / "generate.py")], check=True)
        rtl = generate(device)
        files = [*packages(rtl), file]
        search = " ".join(f"-y {path}" for path in [*module_dirs(rtl), GENERATED] if path.exists())
        self._ys, self._design = ys, ys.Design()
        listing = self.folder / "modules.txt"
        log = self.folder / "read.log"
        # yosys ends the process when it finds an error, without an exception.
        print(
            f"==> reading the device; if nothing follows, the end of {log.relative_to(ROOT)} says why", file=sys.stderr, flush=True
        )
        with _output_to(log):
            self._run(
                f"read_slang --no-implicit-memories --ignore-assertions --best-effort-hierarchy {search} --top {top} "
                f"{' '.join(map(str, files))}"
            )
            self._run(f"tee -o {listing} ls")
        self.modules = re.findall(r"^  (\S+\$\S+)$", listing.read_text(), re.MULTILINE)
        self._tops = {self._name(module): module for module in self.modules if self._parent(module) == self.shell}
        inside = f"{self.path(self.shell)}."
        deeper = [module for module in self.modules if self._parent(module) != self.shell]
        self._deeper = {self.path(module).removeprefix(inside): module for module in deeper}

    def _run(self, command: str) -> None:
        self._ys.run_pass(command, self._design)

    @staticmethod
    def path(module: str) -> str:
        """Where an instance is."""
        return module.partition("$")[2]

    def _parent(self, module: str) -> str | None:
        """The module around it."""
        around = [other for other in self.modules if self.path(module).startswith(f"{self.path(other)}.")]
        return max(around, key=lambda other: len(self.path(other)), default=None)

    def _name(self, module: str) -> str:
        """A part's name: its instance's, for a socket with the kernel that it holds."""
        path = self.path(module)
        if module.startswith("socket$"):
            kernel = self._kernel(module)
            same = [other for other in self.modules if other.startswith("socket$") and self._kernel(other) == kernel]
            return f"socket-{kernel}{f'-{same.index(module)}' if len(same) > 1 else ''}"
        inside = path.removeprefix(f"{self.path(self.shell)}.")
        return {"fabric": "memory"}.get(inside, re.sub(r"\bg_\w+\.", "", inside))

    def _kernel(self, socket: str) -> str:
        """Which kernel a socket holds, of several images the first."""
        inside = re.compile(re.escape(self.path(socket)) + r"\..*\.kernel")
        held = [m for m in self.modules if m.startswith("kernel_") and inside.fullmatch(self.path(m))]
        return min(held, key=self.path).partition("$")[0][7:]

    @property
    def parts(self) -> list[str]:
        """The instances of the shell and what is between them: together the device."""
        return [*sorted(self._tops), GLUE]

    @property
    def extras(self) -> list[str]:
        """Parts that are mapped together."""
        return [ENGINE, DEVICE]

    def knows(self, part: str) -> bool:
        """Whether there is such a part, or an instance inside one."""
        return part in (*self.parts, *self.extras, *self._deeper)

    def _top(self, part: str) -> str:
        return (self._deeper | self._tops).get(part, self.shell)

    def _inside(self, part: str, levels: int) -> list[str]:
        """The instances inside, so many levels deep."""
        ring = [self._top(part)]
        found: list[str] = []
        for _ in range(levels):
            ring = [module for module in self.modules if self._parent(module) in ring]
            found += ring
        return found

    def synthesise(self, part: str, by_instance: int = 0, paths: int = 1) -> dict[str, Any]:
        """Maps one part and measures it."""
        begin = time.monotonic()
        stem = self.folder / f"{part}{'' if self.uram else '_no_uram'}{'' if self.family == FAMILIES[0] else f'_{self.family}'}"
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with _output_to(Path(f"{stem}.log")):
                    self._map(part, stem, by_instance)
                code = 0
            finally:
                os._exit(code)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
            raise SystemExit(f"{part}: synthesis failed; {stem}.log says why")
        row = {"plane": part, "data_w": self.device.data_w, "family": self.family, **self._measure(stem, by_instance, paths)}
        return {**row, "seconds": round(time.monotonic() - begin)}

    def _map(self, part: str, stem: Path, by_instance: int) -> None:
        """Runs yosys."""
        top = self._top(part)
        kept = {GLUE: [], ENGINE: TOGETHER}.get(part)
        hidden = [] if kept is None else [module for name, module in self._tops.items() if name not in kept]
        for module in hidden:
            self._run(f"blackbox \\{module}")
        self._run(f"hierarchy -top \\{top}")
        for module in self._inside(part, by_instance):
            if module not in hidden:
                self._run(f"setattr -mod -set keep_hierarchy 1 \\{module}")
        if not self.uram:
            self._run('setattr -set ram_style "block" a:ram_style=ultra')
        if self.family == "intel":
            self._run(f"synth_intel_alm -family cyclonev -noiopad -noclkbuf -top \\{top}")
        elif self.family == "ecp5":
            map_ecp5(self._run, top)
        else:
            command = f"synth_xilinx -family xcup {'-uram ' * self.uram}-flatten -noclkbuf -noiopad -top \\{top}"
            self._run(f"{command} -run :map_memory")
            self._run("select t:$mem*")
            self._run(f"write_json -selected {stem}.memories.json")
            self._run("select -clear")
            self._run(f"{command} -run map_memory:")
        if by_instance:
            self._run(f"write_json {stem}.tree.json")
        # What the source keeps apart in mapping counts like the rest.
        for step in ("setattr -mod -unset keep_hierarchy *", "flatten", "opt_clean", f"write_json {stem}.json"):
            self._run(step)

    def _measure(self, stem: Path, by_instance: int, paths: int) -> dict[str, Any]:
        modules = json.loads(Path(f"{stem}.json").read_text())["modules"]
        module = next(module for module in modules.values() if int(module["attributes"].get("top", "0"), 2))
        sums = self._sums(module)
        if self.family != FAMILIES[0]:
            row: dict[str, Any] = sums
        else:
            memories = self._memories(Path(f"{stem}.memories.json"))
            ultra = sum(memory["bram36"] for memory in memories if memory["style"] == "ultra") if self.uram else 0
            found = depth(module, paths)
            row = {
                **sums,
                "bram36_with_uram": sums["bram36"] + ultra,
                "bram36_with_uram_by_bits": sums["bram36"] + primitives.URAM_BITS_IN_BRAM36 * sums["uram"],
                "levels": found.levels,
                "kinds": found.kinds,
                "paths": [vars(path) for path in found.worst],
                "memories": memories,
            }
        if by_instance:
            row["instances"] = self._instances(json.loads(Path(f"{stem}.tree.json").read_text())["modules"])
        return row

    def _sums(self, module: dict[str, Any]) -> dict[str, float]:
        kinds = Counter(cell["type"] for cell in module["cells"].values())
        return {"intel": primitives.intel, "ecp5": primitives.ecp5}.get(self.family, primitives.xilinx)(kinds)

    @staticmethod
    def _memories(file: Path) -> list[dict[str, Any]]:
        """Every memory of the source: its shape, and what it would take in block RAM."""
        found = []
        for module in json.loads(file.read_text())["modules"].values():
            for name, cell in module["cells"].items():
                words, bits = (int(cell["parameters"][key], 2) for key in ("SIZE", "WIDTH"))
                style, size = cell["attributes"].get("ram_style", ""), primitives.bram36_of_shape(words, bits)
                found.append({"name": name, "depth": words, "width": bits, "style": style, "bram36": size})
        return sorted(found, key=lambda memory: -memory["depth"] * memory["width"])

    def _instances(self, modules: dict[str, Any]) -> list[dict[str, Any]]:
        """What each instance has by itself, and with those inside it."""
        tree = {
            name: module
            for name, module in modules.items()
            if "$" in name and not int(module["attributes"].get("blackbox", "0"), 2)
        }
        own = {name: self._sums(module) for name, module in tree.items()}
        rows = []
        for name in sorted(tree, key=self.path):
            inside = [other for other in own if other == name or self.path(other).startswith(f"{self.path(name)}.")]
            together = {key: sum(own[other][key] for other in inside) for key in own[name]}
            rows.append({"path": self.path(name), "module": name.partition("$")[0], "own": own[name], "with_inside": together})
        return rows


def show(row: dict[str, Any], columns: tuple[str, ...]) -> None:
    """One line of the table; what misses its goal is marked."""
    goal = GOALS.get(row["plane"], Goal())
    cells = []
    for key in columns:
        limit = getattr(goal, key, None)
        mark = "" if limit is None else "!" if row[key] > limit else "."
        cells.append(f"{row[key]:>9,.{1 if row[key] % 1 else 0}f}{mark:1}" if key in row else " " * 10)
    print(f"{row['plane']:20}{''.join(cells)}{row.get('seconds', ''):>6}", flush=True)


def show_instances(row: dict[str, Any], family: str) -> None:
    """The tree of a part: own figures, then those with everything inside."""
    keys = {"intel": ("alm", "ff", "m10k"), "ecp5": ("lut4", "ff", "ebr")}.get(family, ("lut", "ff", "bram36"))
    print(f"\n{row['plane']} by instance; borders of instances kept while mapping\n{'':64}{'own':>24}{'with inside':>24}")
    print(f"{'':64}{''.join(f'{key:>8}' for key in keys) * 2}")
    base = min(instance["path"].count(".") for instance in row["instances"])
    for instance in row["instances"]:
        indent = "  " * (instance["path"].count(".") - base)
        name = f"{indent}{instance['path'].rpartition('.')[2]} ({instance['module']})"
        figures = "".join(f"{instance[which][key]:>8,.0f}" for which in ("own", "with_inside") for key in keys)
        print(f"{name:64}{figures}")


def show_memories(row: dict[str, Any]) -> None:
    """The memories of a part, the largest first."""
    print(f"\n{row['plane']} by memory\n{'':64}{'words':>8}{'bits':>8}{'BRAM36':>8}  ram_style")
    for memory in row["memories"]:
        print(f"{memory['name']:64}{memory['depth']:>8,}{memory['width']:>8,}{memory['bram36']:>8}  {memory['style']}")


def show_paths(row: dict[str, Any]) -> None:
    """The longest paths of a part."""
    print(f"\n{row['plane']}: longest paths, to different registers")
    for kind, levels in row["kinds"].items():
        print(f"  {levels:5.1f}  {kind}")
    for path in row["paths"]:
        print(f"  {path['levels']:5.1f}  {path['start']} -> {path['end']}")
        if len(path["nets"]) > 2:
            print(f"         by {', '.join(path['nets'][1:])}")


def total(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> dict[str, Any]:
    """The sum of the parts, and the deepest of them."""
    sums = {key: sum(row[key] for row in rows) for key in columns if key != "levels"}
    return {"plane": TOTAL, **sums, **({"levels": max(row["levels"] for row in rows)} if "levels" in columns else {})}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="all, then `engine`, unless named; `total` is all parts")
    parser.add_argument("--list", action="store_true", help="name the parts and stop")
    add_options(parser)
    parser.add_argument("--plane", choices=sorted(ALONE), help="a plane that is not in the shell, in its place")
    parser.add_argument("--family", choices=FAMILIES, default=FAMILIES[0])
    parser.add_argument("--no-uram", action="store_true", help="for a device without UltraRAM")
    parser.add_argument("--by-instance", type=int, default=0, metavar="LEVELS", help="sizes of the instances inside")
    parser.add_argument("--memories", action="store_true", help="shape of each memory")
    parser.add_argument("--paths", type=int, default=1, metavar="N", help="the N longest paths")
    arguments = parser.parse_args()

    device = from_options(arguments)
    shell = Shell(device, arguments.family, uram=not arguments.no_uram, plane=arguments.plane)
    if arguments.list:
        print("\n".join([*shell.parts, *shell.extras]))
        return
    wanted = arguments.parts or [TOTAL, *([ENGINE] if arguments.family == FAMILIES[0] and not arguments.plane else [])]
    parts = list(dict.fromkeys(part for name in wanted for part in (shell.parts if name == TOTAL else [name])))
    if unknown := [part for part in parts if not shell.knows(part)]:
        parser.error(f"no such part: {', '.join(unknown)}; --list names them, and instances inside are named like roce.requester")

    columns = (*SUMS[arguments.family], *(["levels"] if arguments.family == FAMILIES[0] else []))
    heads = (HEADS.get(key, key.upper() if len(key) < 6 else key) for key in columns)
    heading = f"{arguments.plane or device.name}, {device.data_w}"
    print(f"{heading[:19]:20}{''.join(f'{head:>9} ' for head in heads)}{'s':>6}")
    rows = []
    for part in parts:
        row = shell.synthesise(part, arguments.by_instance, arguments.paths)
        rows.append(row)
        show(row, columns)
    if TOTAL in wanted:
        rows.append(total([row for row in rows if row["plane"] in shell.parts], columns))
        show(rows[-1], columns)
    for row in rows:
        if "instances" in row:
            show_instances(row, arguments.family)
        if arguments.memories and "memories" in row:
            show_memories(row)
        if arguments.paths > 1 and "paths" in row:
            show_paths(row)
    suffix = f"-{arguments.plane}" if arguments.plane else "" if device.name == STANDARD else f"-{device.name}"
    suffix += f"-{arguments.qps}-qps" if arguments.qps else ""
    suffix += f"-{arguments.family}" * (arguments.family != FAMILIES[0]) + "-no-uram" * arguments.no_uram
    (ROOT / "build" / f"synth-{device.data_w}{suffix}.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
