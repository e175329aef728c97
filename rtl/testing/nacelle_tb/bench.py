# SPDX-License-Identifier: Apache-2.0
"""Builds a module for cocotb and runs its tests.

Verilator takes no interface at the top, so a wrapper is generated that spreads every interface over plain ports. A port is
described from the module's point of view:

    def test_fifo():
        run("stream_fifo", __file__, params={"T": Type("logic [31:0]"), "DEPTH": 8},
            ports={"in": Sink("logic [31:0]"), "out": Source("logic [31:0]")})

and the drivers in `streams` find it by its name.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cocotb_tools.config
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

from .sources import GENERATED, ROOT, module_dirs, overlay, packages
from .streams import CLOCK_NS
from .waves import show_failure


@dataclass(frozen=True)
class Type:
    """A parameter value that is not a number: a type, or any SystemVerilog expression."""

    sv: str


@dataclass(frozen=True)
class Plain:
    """A port that is not an interface: `direction` is "input" or "output"."""

    direction: str
    type: str

    def declare(self, name: str) -> list[str]:
        return [f"{self.direction} logic [$bits({self.type})-1:0] {name}"]

    def connect(self, name: str) -> tuple[str, str]:
        return "", name


@dataclass(frozen=True)
class Clock(Plain):
    """An input of the module that counts cycles on its own; what is put to the wrapper's port is added. No test need wake each
    cycle to advance it."""

    direction: str = "input"
    type: str = "logic [47:0]"

    def connect(self, name: str) -> tuple[str, str]:
        lines = f"  {self.type} {name}_cycles = '0;\n  always_ff @(posedge clk) {name}_cycles <= {name}_cycles + 1'b1;"
        return lines, f"{name} + {name}_cycles"


@dataclass(frozen=True)
class Reset(Plain):
    """A reset beside `rst`: like that one it is high until the clock runs, whatever the port begins with."""

    direction: str = "input"
    type: str = "logic"

    def connect(self, name: str) -> tuple[str, str]:
        return f"  logic {name}_begun = 1'b0;\n  always_ff @(posedge clk) {name}_begun <= 1'b1;", f"{name} || !{name}_begun"


@dataclass(frozen=True)
class _Interface:
    """An interface port, spread over one plain port a signal: `<name>_<signal>`."""

    def _kind(self) -> str:
        raise NotImplementedError

    def _signals(self) -> list[tuple[str, str, str]]:
        """(direction, type, signal)"""
        raise NotImplementedError

    def declare(self, name: str) -> list[str]:
        return [f"{d} logic [$bits({t})-1:0] {name}_{s}" for d, t, s in self._signals()]

    def connect(self, name: str) -> tuple[str, str]:
        lines = [f"  {self._kind()} {name}_if ();"]
        for direction, _, signal in self._signals():
            inside, outside = f"{name}_if.{signal}", f"{name}_{signal}"
            lines.append(f"  assign {inside} = {outside};" if direction == "input" else f"  assign {outside} = {inside};")
        return "\n".join(lines), f"{name}_if"


def _flip(signals: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return [("output" if d == "input" else "input", t, s) for d, t, s in signals]


@dataclass(frozen=True)
class Sink(_Interface):
    """`stream_if.sink`: the module takes values of `type`."""

    type: str

    def _kind(self) -> str:
        return f"stream_if #(.T({self.type}))"

    def _signals(self) -> list[tuple[str, str, str]]:
        return [("input", "logic", "valid"), ("output", "logic", "ready"), ("input", self.type, "data")]


@dataclass(frozen=True)
class Source(Sink):
    """`stream_if.source`: the module gives values of `type`."""

    def _signals(self) -> list[tuple[str, str, str]]:
        return _flip(super()._signals())


@dataclass(frozen=True)
class AxisSink(_Interface):
    """`axis_if.sink` of `width` bits."""

    width: int

    def _kind(self) -> str:
        return f"axis_if #(.DATA_W({self.width}))"

    def _signals(self) -> list[tuple[str, str, str]]:
        return [
            ("input", "logic", "tvalid"),
            ("output", "logic", "tready"),
            ("input", f"logic [{self.width - 1}:0]", "tdata"),
            ("input", f"logic [{self.width // 8 - 1}:0]", "tkeep"),
            ("input", "logic", "tlast"),
            ("input", "logic", "tuser"),
        ]


@dataclass(frozen=True)
class AxisSource(AxisSink):
    """`axis_if.source` of `width` bits."""

    def _signals(self) -> list[tuple[str, str, str]]:
        return _flip(super()._signals())


@dataclass(frozen=True)
class AxisMonitor(AxisSink):
    """`axis_if.monitor` of `width` bits."""

    def _signals(self) -> list[tuple[str, str, str]]:
        return [("input", type_, signal) for _, type_, signal in super()._signals()]


@dataclass(frozen=True)
class AxiMaster(_Interface):
    """`axi_if.master`: the module reads and writes memory. The signal names fit cocotbext-axi's AxiBus.from_prefix."""

    width: int
    addr_width: int = 64
    id_width: int = 4

    def _kind(self) -> str:
        return f"axi_if #(.ADDR_W({self.addr_width}), .DATA_W({self.width}), .ID_W({self.id_width}))"

    def _signals(self) -> list[tuple[str, str, str]]:
        addr, ident = f"logic [{self.addr_width - 1}:0]", f"logic [{self.id_width - 1}:0]"
        data, strb = f"logic [{self.width - 1}:0]", f"logic [{self.width // 8 - 1}:0]"
        out, back = "output", "input"
        return [
            (out, addr, "awaddr"), (out, ident, "awid"), (out, "logic [7:0]", "awlen"),
            (out, "logic", "awvalid"), (back, "logic", "awready"),
            (out, data, "wdata"), (out, strb, "wstrb"), (out, "logic", "wlast"),
            (out, "logic", "wvalid"), (back, "logic", "wready"),
            (back, ident, "bid"), (back, "logic [1:0]", "bresp"), (back, "logic", "bvalid"), (out, "logic", "bready"),
            (out, addr, "araddr"), (out, ident, "arid"), (out, "logic [7:0]", "arlen"),
            (out, "logic", "arvalid"), (back, "logic", "arready"),
            (back, data, "rdata"), (back, ident, "rid"), (back, "logic [1:0]", "rresp"), (back, "logic", "rlast"),
            (back, "logic", "rvalid"), (out, "logic", "rready"),
        ]  # fmt: skip


@dataclass(frozen=True)
class AxiSlave(AxiMaster):
    """`axi_if.slave`: the module is a memory."""

    def _signals(self) -> list[tuple[str, str, str]]:
        return _flip(super()._signals())


@dataclass(frozen=True)
class AxilSlave(_Interface):
    """`axil_if.slave`: the module has registers."""

    addr_width: int = 20

    def _kind(self) -> str:
        return f"axil_if #(.ADDR_W({self.addr_width}))"

    def _signals(self) -> list[tuple[str, str, str]]:
        addr = f"logic [{self.addr_width - 1}:0]"
        to, back = "input", "output"
        return [
            (to, addr, "awaddr"), (to, "logic", "awvalid"), (back, "logic", "awready"),
            (to, "logic [31:0]", "wdata"), (to, "logic [3:0]", "wstrb"), (to, "logic", "wvalid"), (back, "logic", "wready"),
            (back, "logic [1:0]", "bresp"), (back, "logic", "bvalid"), (to, "logic", "bready"),
            (to, addr, "araddr"), (to, "logic", "arvalid"), (back, "logic", "arready"),
            (back, "logic [31:0]", "rdata"), (back, "logic [1:0]", "rresp"), (back, "logic", "rvalid"), (to, "logic", "rready"),
        ]  # fmt: skip


@dataclass(frozen=True)
class AxilMaster(AxilSlave):
    """`axil_if.master`."""

    def _signals(self) -> list[tuple[str, str, str]]:
        return _flip(super()._signals())


@dataclass(frozen=True)
class Several:
    """An array of `count` interfaces: the drivers find them as `<name>0`, `<name>1` and so on."""

    port: _Interface
    count: int

    def declare(self, name: str) -> list[str]:
        return [line for i in range(self.count) for line in self.port.declare(f"{name}{i}")]

    def connect(self, name: str) -> tuple[str, str]:
        lines = [f"  {self.port._kind()} {name}_if[{self.count}] ();"]
        for i in range(self.count):
            for direction, _, signal in self.port._signals():
                inside, outside = f"{name}_if[{i}].{signal}", f"{name}{i}_{signal}"
                lines.append(f"  assign {inside} = {outside};" if direction == "input" else f"  assign {outside} = {inside};")
        return "\n".join(lines), f"{name}_if"


Port = Plain | _Interface | Several


def wrapper(module: str, params: Mapping[str, int | str | Type], ports: Mapping[str, Port], random_state: bool = False) -> str:
    """SystemVerilog source of `tb_<module>`. With `random_state` inputs begin at random, too: in reset until the clock runs."""
    declared = ["input logic clk", "input logic rst"]
    body, connections = [], [".clk(clk)", f".rst(rst{' || !begun' if random_state else ''})"]
    if random_state:
        body.append("  logic begun = 1'b0;\n  always_ff @(posedge clk) begun <= 1'b1;")
    for name, port in ports.items():
        declared += port.declare(name)
        lines, actual = port.connect(name)
        if lines:
            body.append(lines)
        connections.append(f".{name}({actual})")
    values = ", ".join(f".{name}({value.sv if isinstance(value, Type) else value})" for name, value in params.items())
    return (
        f"module tb_{module} (\n  " + ",\n  ".join(declared) + "\n);\n" + "\n".join(body)
        + f"\n  {module} #({values}) dut (\n      " + ",\n      ".join(connections) + "\n  );\nendmodule\n"
    )  # fmt: skip


def coverage() -> Path | None:
    """The folder into which each test leaves what it has covered, for tools/coverage.py."""
    return Path(os.environ["NACELLE_COVERAGE"]) if "NACELLE_COVERAGE" in os.environ else None


def precompiled(build: Path, options: Sequence[str], environment: Mapping[str, str]) -> Path:
    """Verilator's headers, precompiled: reading them takes longer than compiling most models, and every bench reads them. The
    objects of Verilator's runtime lie beside them, and are put into `build`. Made once for benches with these options, with those
    in the makefile of the bench in `build`."""
    key = hashlib.sha256("\n".join([*options, str(bool(coverage())), sys.prefix]).encode()).hexdigest()[:12]
    header = ROOT / "build" / "precompiled" / key / "bench.h"
    header.parent.mkdir(parents=True, exist_ok=True)
    with (header.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not header.exists():
            lines = [f"#include <{name}.h>" for name in ("verilated", "verilated_dpi", "verilated_vpi")]
            header.write_text("\n".join(["#ifndef NACELLE_BENCH_H", "#define NACELLE_BENCH_H", *lines, "#endif", ""]))
        rules = Path(__file__).with_name("precompiled.mk")
        make = ["make", "-s", "-C", str(build), "-f", str(rules), f"HEADER={header}", *options, "runtime"]
        subprocess.run(make, env=environment, check=True)
    newest = (build / "Vtop.mk").stat().st_mtime
    for made in header.parent.glob("*.o"):
        own = build / made.name
        if not own.exists() or own.stat().st_mtime < newest:  # make would compile it
            shutil.copy(made, own)
    return header


def write_new(path: Path, text: str) -> None:
    """Writes a file, unless it has this text: then what is made from it is not made again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def compile_bench(top: str, wrapper_file: Path, sources: Sequence[Path], build: Path, waves: bool = False) -> None:
    """Makes the simulator `build`/`top`; does next to nothing if it is newer than its sources.

    Only what the wrapper has can be seen from outside: what must stay visible, the constants of packages too, costs time in the
    compiler and in each cycle.
    The model and cocotb's main program are one C++ file, since parsing Verilator's headers takes longer than compiling most models.
    """
    tools = str(Path(sys.executable).parent)
    if tools not in os.environ["PATH"].split(os.pathsep):
        os.environ["PATH"] = tools + os.pathsep + os.environ["PATH"]
    visible = build / "visible.vlt"
    write_new(visible, f'`verilator_config\npublic_flat_rw -module "{top}" -var "*"\n')
    program = cocotb_tools.config.share_dir / "lib" / "verilator" / "verilator.cpp"
    write_new(build / "program.cpp", f'#include "{program}"\n')
    libraries = cocotb_tools.config.libs_dir
    search = [path for path in [*module_dirs(), GENERATED] if path.exists()]
    verilator = [
        "verilator", "--cc", "--exe", "--Mdir", build, "--top-module", top, "--prefix", "Vtop", "-o", top, "--vpi",
        "--assert", "-Wno-fatal", "-Werror-USERFATAL", "-Wno-DECLFILENAME", "--timescale", "1ns/1ps",
        "--output-split", "0", "-CFLAGS", "-O1 -fpch-preprocess",
        "-LDFLAGS", f"-Wl,-rpath,{libraries} -L{libraries} -lcocotbvpi_verilator",
        *(["--trace-fst", "--trace-structs"] if waves else []),
        *(["--coverage-line", "--coverage-toggle"] if coverage() else []), *[arg for path in search for arg in ("-y", path)],
        visible, *packages(), *sources, wrapper_file,
        *([changed / "mutation.cpp"] if (changed := overlay()) else []),
    ]  # fmt: skip
    subprocess.run([str(argument) for argument in verilator], cwd=build, check=True)
    options = [f"VM_TRACE={int(waves)}"]
    # ccache needs the first for precompiled headers; by the second the compiler says what a file includes: it is not read before.
    environment = {**os.environ, "CCACHE_SLOPPINESS": "pch_defines,time_macros", "CCACHE_DEPEND": "1"}
    environment["VM_SUPPORT_FAST"] = "program"  # to which the makefile adds
    header = precompiled(build, options, environment)
    # From some number of files on Verilator compiles them one by one, with a precompiled header of its own: only one can be used.
    one = "VM_PARALLEL_BUILDS=0"
    make = ["make", "-C", str(build), "-f", "Vtop.mk", *options, one, f"USER_CPPFLAGS=-include {header}"]
    subprocess.run(make, cwd=build, env=environment, check=True)


def _current_test() -> str:
    """The pytest test that is running."""
    return os.environ.get("PYTEST_CURRENT_TEST", "").removesuffix(" (call)")


def _record(build: Path, results: Path, seconds: float) -> None:
    """Leaves the verdicts of the single cocotb tests for tools/test.py."""
    test = _current_test()
    verdicts = {
        case.get("name", ""): "fail" if case.find("failure") is not None or case.find("error") is not None else "pass"
        for case in ElementTree.parse(results).getroot().iter("testcase")
    }
    report = json.dumps({"test": test, "seconds": seconds, "verdicts": verdicts})
    name = hashlib.sha256(test.encode()).hexdigest()[:16]
    if folder := coverage():
        (build / "coverage.dat").rename(folder / f"{name}.dat")
    folder = ROOT / "build" / "reports" / "cocotb"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(report)


def run(
    module: str,
    test_file: str,
    *,
    params: Mapping[str, int | str | Type] | None = None,
    ports: Mapping[str, Port],
    testcase: str | None = None,
    seed: int = 1,
    env: Mapping[str, str] | None = None,
    sources: Sequence[Path] = (),
    random_state: bool = False,
) -> None:
    """Builds `module` with Verilator (assertions on) and runs the cocotb tests of `test_file` on it.

    The pytest function that calls this and the cocotb tests live in the same file. NACELLE_WAVES=1 writes an FST.
    `sources`: modules that are not under `rtl/`. With `random_state` registers begin with random values.
    """
    params = dict(params or {})
    top = f"tb_{module}"
    source = wrapper(module, params, ports, random_state)
    plusargs = ["+verilator+rand+reset+2", f"+verilator+seed+{zlib.crc32(source.encode()) >> 1 | 1}"] if random_state else []
    if plan := os.environ.get("NACELLE_PLAN"):  # what would run, one JSON object a line, for tools/mutate.py
        what = {"test": _current_test(), "file": str(Path(test_file).resolve()), "module": module, "wrapper": source}
        what |= {"sources": [str(path) for path in sources], "filter": testcase, "seed": seed, "plusargs": plusargs}
        what["env"] = {name: value for name, value in (env or {}).items() if os.environ.get(name) != value}
        with Path(plan).open("a") as file:
            file.write(json.dumps(what) + "\n")
        return
    folder = ROOT / "build" / ("cocotb_coverage" if coverage() else "cocotb")
    named = "\n".join([source, *map(str, sources)])
    build = folder / module / hashlib.sha256(named.encode()).hexdigest()[:12]
    build.mkdir(parents=True, exist_ok=True)
    wrapper_file = build / f"{top}.sv"
    write_new(wrapper_file, source)
    waves = os.environ.get("NACELLE_WAVES") == "1"
    if shutil.which("ccache"):
        os.environ.setdefault("OBJCACHE", "ccache")
    test_folder = str(Path(test_file).resolve().parent)
    if test_folder not in sys.path:  # the runner hands sys.path on to the simulator's Python
        sys.path.insert(0, test_folder)
    # Tests of one module and one set of parameters share a simulator; it is built once.
    with (build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        compile_bench(top, wrapper_file, sources, build, waves)
    begin = time.monotonic()
    runner = get_runner("verilator")
    results = build / f"results_{os.getpid()}.xml"
    try:
        runner.test(
            plusargs=plusargs,
            hdl_toplevel=top,
            hdl_toplevel_lang="verilog",
            test_module=Path(test_file).stem,
            test_dir=build,
            build_dir=build,
            testcase=testcase,
            seed=seed,
            waves=waves,
            # Verilator puts values at the right time itself: so does cocotb not need to, and the clock costs no Python.
            # Of pytest it takes the messages of assertions, and no plugin.
            extra_env={"COCOTB_TRUST_INERTIAL_WRITES": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **(env or {})},
            results_xml=str(results),
        )
    except SystemExit:  # how the runner says that a test failed
        if waves:
            show_failure(results, build / "dump.fst", CLOCK_NS, top)
        raise
    _record(build, results, time.monotonic() - begin)
    total, failed = get_results(results)
    assert total > 0, f"no cocotb test ran in {test_file}"
    assert failed == 0, f"{failed} of {total} cocotb tests failed in {test_file}"
