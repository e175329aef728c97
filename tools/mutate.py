# SPDX-License-Identifier: Apache-2.0
"""Changes the RTL in many small ways and checks whether the tests fail: mutation testing (docs/explanation/mutation.md).

    python tools/mutate.py [--count N] [--seed S] [--seconds T] FILE ...     FILE: modules under rtl/, or folders of them
    python tools/mutate.py --report                                          puts the scores into docs/explanation/mutation.md

A mutant is one change of one expression. rtl/mutants.toml names some besides those chosen by chance, and says which survivors
are equivalent and why. All mutants of a folder, or of all single files, are compiled into the simulators of the unit tests that
contain a changed module (mutant schemata, R. Untch et al., 1993), so a mutant costs no compilation. A simulator loads its tests
once and forks for each run, so that a run costs no start. A first run of each test without a change notes which changed expressions
ever have another value than the original: only those mutants are run with it. A mutant is killed if a test fails, or takes twice
its time. Tests that killed many in little time are tried first, up to T seconds of CPU time a mutant.

Results are kept in build/mutation/results.json; a mutant that was killed is not tried again while its file is as it was.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cocotb_tools.config
import find_libpython
import page
from pyslang import syntax

ROOT = Path(__file__).resolve().parents[1]
RTL = ROOT / "rtl"
WORK = ROOT / "build" / "mutation"
RESULTS = WORK / "results.json"
NOTES = RTL / "mutants.toml"
PAGE = ROOT / "docs" / "explanation" / "mutation.md"
sys.path.insert(0, str(RTL / "testing"))
from nacelle_tb.bench import compile_bench, write_new  # noqa: E402

# What an operator becomes.
SWAPS = {
    "LogicalAnd": ("&&", "||"), "LogicalOr": ("||", "&&"), "Equality": ("==", "!="), "Inequality": ("!=", "=="),
    "LessThan": ("<", "<="), "LessThanEqual": ("<=", "<"), "GreaterThan": (">", ">="), "GreaterThanEqual": (">=", ">"),
    "Add": ("+", "-"), "Subtract": ("-", "+"), "BinaryAnd": ("&", "|"), "BinaryOr": ("|", "&"), "BinaryXor": ("^", "|"),
}  # fmt: skip
# Where an expression must be constant, or is none of the device's behaviour.
OUTSIDE = {
    "ParameterDeclarationStatement", "ParameterDeclaration", "ParameterPortList", "ParameterValueAssignment", "TypedefDeclaration",
    "VariableDimension", "SimpleRangeSelect", "AscendingRangeSelect", "DescendingRangeSelect", "IfGenerate", "CaseGenerate",
    "ImmediateAssertStatement", "ImmediateAssumeStatement", "ImmediateAssertionMember", "ConcurrentAssertionMember",
    "ForLoopStatement", "StreamingConcatenationExpression", "MultipleConcatenationExpression", "InvocationExpression",
    "GenvarDeclaration",
    "EventControlWithExpression", "AttributeInstance", "EnumType", "StructType", "ForVariableDeclaration",
}  # fmt: skip
# Of these the body counts, the rest is constant.
HEADED = {"LoopGenerate": "GenerateBlock"}
TRACE = 2**32 - 1  # the number of no mutant: notes which would make a difference
SHOWN_VARIANTS = 2  # of a test that is parametrised: so many simulators are built


@dataclass(frozen=True)
class Site:
    """One change: bytes [begin, end) of the file become `text`."""

    begin: int
    end: int
    text: str
    in_function: bool = False
    checks: bool = False  # it belongs to assertions


def kind(node: Any) -> str:
    """Its name in slang's syntax."""
    return str(node.kind).removeprefix("SyntaxKind.")


def children(node: Any) -> list[Any]:
    """The nodes below it, without tokens."""
    return [child for child in node if isinstance(child, syntax.SyntaxNode)]


def changes(node: Any, name: str, text: str, source: str) -> Iterator[str]:
    """What the expression may become."""
    below = children(node)

    def part(child: Any) -> str:
        return source[child.sourceRange.start.offset : child.sourceRange.end.offset]

    if name.endswith("Expression") and name.removesuffix("Expression") in SWAPS and len(below) == 2:
        operator, other = SWAPS[name.removesuffix("Expression")]
        between = source[below[0].sourceRange.end.offset : below[1].sourceRange.start.offset]
        if between.count(operator) == 1:
            yield part(below[0]) + between.replace(operator, other) + part(below[1])
        if name in ("LogicalAndExpression", "LogicalOrExpression"):
            yield part(below[0])
            yield part(below[1])
    elif name in ("UnaryLogicalNotExpression", "UnaryBitwiseNotExpression"):
        yield part(below[0])
    elif name == "ConditionalExpression" and len(below) == 3:
        yield f"({part(below[0])}) ? ({part(below[2])}) : ({part(below[1])})"
    elif name == "ConditionalPredicate":
        yield "1'b1"
        yield "1'b0"
    elif name == "IntegerVectorExpression" and (match := re.fullmatch(r"(\d+)'([bdh])([0-9a-f_]+)", text)):
        width, base = int(match[1]), {"b": 2, "d": 10, "h": 16}[match[2]]
        yield f"{width}'d{(int(match[3].replace('_', ''), base) + 1) % 2**width}"
    elif name == "UnbasedUnsizedLiteralExpression" and text in ("'0", "'1"):
        yield "'1" if text == "'0" else "'0"


def only_asserts(node: Any) -> bool:
    """Whether the statement does nothing but check."""
    names, left = set(), [node]
    while left:
        at = left.pop()
        names.add(kind(at))
        left += children(at)
    return "ImmediateAssertStatement" in names and not names & {"AssignmentExpression", "NonblockingAssignmentExpression"}


def sites(file: Path) -> list[Site]:
    """Every change that can be made to a file."""
    source = file.read_text()
    tree = syntax.SyntaxTree.fromFile(str(file))
    found: list[Site] = []

    def span(node: Any) -> tuple[int, int]:
        return node.sourceRange.start.offset, node.sourceRange.end.offset

    def walk(node: Any, in_function: bool, checks: bool) -> None:
        name = kind(node)
        if name in OUTSIDE:
            return
        checks = checks or (name == "ConditionalStatement" and only_asserts(node))
        below = children(node)
        if name in HEADED:
            below = [child for child in below if kind(child) == HEADED[name]]
        if name in ("AssignmentExpression", "NonblockingAssignmentExpression", "CastExpression"):
            target, below = below[0], below[1:]  # the left side; the width
            if name == "NonblockingAssignmentExpression" and below and kind(target) != "ConcatenationExpression":
                found.append(Site(*span(below[-1]), source[slice(*span(target))], in_function, checks))
        if name == "StandardCaseItem":
            below = below[-1:]
        begin, end = span(node)
        text = source[begin:end]
        made = (change for change in changes(node, name, text, source) if change != text)
        found.extend(Site(begin, end, change, in_function, checks) for change in made)
        for child in below:
            walk(child, in_function or name == "FunctionDeclaration", checks)

    walk(tree.root, False, False)
    return found


def notes() -> dict[str, list[dict[str, str]]]:
    """rtl/mutants.toml."""
    return tomllib.loads(NOTES.read_text()) if NOTES.exists() else {}


def named(file: Path) -> list[Site]:
    """The changes of this file that rtl/mutants.toml names."""
    source, found = file.read_text(), []
    for change in notes().get("change", []):
        if ROOT / change["file"] == file:
            if source.count(change["from"]) != 1:
                sys.exit(f"{NOTES.name}: {change['from']!r} must be in {change['file']} once")
            begin = source.index(change["from"])
            found.append(Site(begin, begin + len(change["from"]), change["to"]))
    return found


def choose(file: Path, count: int, seed: int) -> list[Site]:
    """The changes that are named and `count` others at most that do not overlap, in the order of the file."""
    available = sites(file)
    random.Random(f"{seed} {file.name}").shuffle(available)
    chosen = named(file)
    count += len(chosen)
    for site in available:
        if len(chosen) < count and not site.checks and all(site.end <= other.begin or other.end <= site.begin for other in chosen):
            chosen.append(site)
    return sorted(chosen, key=lambda site: site.begin)


def one_line(text: str) -> str:
    """Without comments and line ends, so that a changed file has the lines of the original."""
    return " ".join(re.sub(r"//[^\n]*", "", text).split())


def changed_source(source: str, chosen: Iterable[tuple[int, Site]]) -> str:
    """A file in which mutation_pkg::id says which change is in effect. For TRACE it notes where the values differ; with 64 bits,
    since the expression around may use a carry. A value of unknown type, an assignment pattern, counts as different."""
    parts, at = [], 0
    for number, site in chosen:
        original, change = source[site.begin : site.end], one_line(site.text)
        differ = "1'b1" if "'{" in original + change else f"(64'd0 + ({change})) != (64'd0 + ({one_line(original)}))"
        condition = f"mutation_pkg::id == 32'd{number} || (mutation_pkg::id == '1 && mutation_pkg::note({number}, {differ}))"
        parts += [source[at : site.begin], f"(({condition}) ? ({change}) : ({original}))"]
        at = site.end
    return "".join([*parts, source[at:]])


PACKAGE = """\
package mutation_pkg;
  import "DPI-C" function int unsigned mutation_id();
  import "DPI-C" function bit mutation_note(input int number, input bit differs);
  int unsigned id = mutation_id();
  function automatic bit note(input int number, input bit differs);
    return mutation_note(number, differs);
  endfunction
endpackage
"""
NATIVE = """\
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "svdpi.h"
#include "verilated.h"
// Verilator calls the callback before it stops for an assertion: the way on from there leads through Python.
extern "C" unsigned int mutation_id() {
    Verilated::addFlushCb([](void*) { _exit(1); }, nullptr);
    const char* id = getenv("NACELLE_MUTANT");
    return id ? strtoul(id, nullptr, 10) : 0;
}
// Mutants that differ, a byte each, in a file: it lasts however the process ends. Always 0.
extern "C" svBit mutation_note(int number, svBit differs) {
    static const char* path = getenv("NACELLE_TRACE");
    static auto* seen = static_cast<volatile unsigned char*>(
        mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, open(path, O_RDWR), 0));
    if (differs) seen[number & 65535] = 1;
    return 0;
}
"""


@dataclass
class Mutant:
    """A change of a file, and what became of it."""

    file: Path
    site: Site
    number: int
    killed_by: str | None = None
    differs_in: int = 0  # tests
    tried: int = 0

    def describe(self) -> dict[str, Any]:
        """As it is kept."""
        source = self.file.read_text()
        line = source.count("\n", 0, self.site.begin)
        return {
            "line": line + 1, "in": source.split("\n")[line].strip(), "from": one_line(source[self.site.begin : self.site.end]),
            "to": one_line(self.site.text), "killed_by": self.killed_by, "differs_in": self.differs_in, "tried": self.tried,
        }  # fmt: skip


def plan() -> list[dict[str, Any]]:
    """Every simulation of the unit tests, as nacelle_tb.bench lists it."""
    tests = [path for path in RTL.rglob("*.py") if "shell" not in path.parts and "formal" not in path.parts]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(tests))).hexdigest()
    file, stamp = WORK / "plan.jsonl", WORK / "plan.digest"
    if not (file.exists() and stamp.exists() and stamp.read_text() == digest):
        file.unlink(missing_ok=True)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "rtl",
            "--ignore=rtl/shell",
            "--ignore-glob=*/formal/*",
        ]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "NACELLE_PLAN": str(file)}, stdout=subprocess.DEVNULL)
        stamp.write_text(digest)
    return [json.loads(line) for line in file.read_text().splitlines()]


def modules_below() -> dict[str, set[str]]:
    """The modules, interfaces and packages that each of them contains or uses, by name."""
    sources = {path.stem: path.read_text() for path in [*RTL.rglob("*.sv"), *(ROOT / "build" / "generated").glob("*.sv")]}
    return {name: set(re.findall(r"\w+", re.sub(r"//[^\n]*", "", text))) & sources.keys() for name, text in sources.items()}


def contains(bench: dict[str, Any], names: set[str], below: dict[str, set[str]]) -> bool:
    """Whether the simulator has one of these modules or packages."""
    seen: set[str] = set()
    left = {
        bench["module"],
        *(Path(path).stem for path in bench["sources"]),
        *(set(re.findall(r"\w+", bench["wrapper"])) & below.keys()),
    }
    while left:
        name = left.pop()
        seen.add(name)
        left |= below.get(name, set()) - seen
    return bool(seen & names)


@dataclass
class Server:
    """A simulator with its tests loaded: see nacelle_tb.mutation."""

    bench: dict[str, Any]
    process: subprocess.Popen
    requests: Any
    answers: Any
    tests: list[str] = field(default_factory=list)

    @staticmethod
    def start(bench: dict[str, Any], build: Path) -> Server:
        """Starts it and reads its tests."""
        (theirs, requests), (answers, back) = os.pipe(), os.pipe()
        environment = {
            **os.environ, **bench["env"], "NACELLE_REQUESTS": str(theirs), "NACELLE_ANSWERS": str(back),
            "PYTHONPATH": os.pathsep.join([str(Path(bench["file"]).parent), str(RTL / "testing"), str(ROOT / "tests"), *sys.path]),
            "PYGPI_PYTHON_BIN": sys.executable, "COCOTB_TOPLEVEL": f"tb_{bench['module']}", "TOPLEVEL_LANG": "verilog",
            "GPI_USERS": f"{find_libpython.find_libpython()};{cocotb_tools.config.pygpi_entry_point()}",
            "PYGPI_USERS": "cocotb.logging:_configure,cocotb._init:init_package_from_simulation,nacelle_tb.mutation:serve",
            "COCOTB_TEST_MODULES": Path(bench["file"]).stem, "COCOTB_RANDOM_SEED": str(bench["seed"]), "COCOTB_LOG_LEVEL": "ERROR",
            "COCOTB_TRUST_INERTIAL_WRITES": "1", "COCOTB_RESULTS_FILE": str(build / "results.xml"), "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        if bench["filter"]:
            cases = "|".join(".*" + re.escape(case.strip()) for case in bench["filter"].split(","))
            environment["COCOTB_TEST_FILTER"] = rf"\.({cases})$"
        log = (build / "runs.log").open("w")
        process = subprocess.Popen(
            [build / f"tb_{bench['module']}", *bench["plusargs"]],
            cwd=build,
            env=environment,
            pass_fds=(theirs, back),
            stdout=log,
            stderr=log,
        )
        os.close(theirs)
        os.close(back)
        server = Server(bench, process, os.fdopen(requests, "w", buffering=1), os.fdopen(answers))
        server.tests = server.ask({})
        return server

    def ask(self, request: dict[str, Any]) -> Any:
        """One request and its answer."""
        self.requests.write(json.dumps(request) + "\n")
        return json.loads(self.answers.readline())

    def stop(self) -> None:
        """No more requests."""
        self.requests.close()
        self.process.wait()


@dataclass
class Test:
    """A cocotb test of one simulator."""

    server: Server
    name: str
    seconds: float  # of CPU time, unchanged
    differ: frozenset[int]  # the numbers of the mutants that make a difference
    kills: int = 0
    tries: int = 0

    def title(self) -> str:
        """For people."""
        return f"{self.server.bench['test'].partition('::')[2]}::{self.name.rpartition('.')[2]}"

    def price(self) -> float:
        """Seconds of its runs for each mutant that it has killed so far."""
        return (self.seconds + 0.02) * (self.tries + 2) / (self.kills + 1)


def choose_benches(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Simulations that contain one of the files; some of each test that is parametrised, first those with all cocotb tests."""

    def partial(bench: dict[str, Any]) -> bool:
        chosen = bench["filter"] or bench["env"].get("COCOTB_TEST_FILTER", ".")
        return not chosen.rstrip(")").endswith(".")

    below, names = modules_below(), {file.stem for file in files}
    chosen, variants = [], {}
    for bench in sorted(plan(), key=partial):
        function = bench["test"].partition("[")[0]
        if contains(bench, names, below) and variants.setdefault(function, 0) < SHOWN_VARIANTS:
            variants[function] += 1
            chosen.append(bench)
    return chosen


def build(bench: dict[str, Any], overlay: Path) -> tuple[Path, str]:
    """The folder of its simulator, and what Verilator said if there is none."""
    named = "\n".join([bench["wrapper"], *bench["sources"]])
    folder = overlay / "cocotb" / bench["module"] / hashlib.sha256(named.encode()).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    wrapper = folder / f"tb_{bench['module']}.sv"
    write_new(wrapper, bench["wrapper"])
    with (folder / "build.log").open("w") as log:
        saved = os.dup(1), os.dup(2)
        sys.stdout.flush()
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        try:
            compile_bench(f"tb_{bench['module']}", wrapper, [Path(path) for path in bench["sources"]], folder)
            return folder, ""
        except subprocess.CalledProcessError:
            return folder, (folder / "build.log").read_text()
        finally:
            os.dup2(saved[0], 1)
            os.dup2(saved[1], 2)
            os.close(saved[0])
            os.close(saved[1])


def without(mutants: list[Mutant], output: str) -> list[Mutant]:
    """Those that do not stand where Verilator found errors: in a constant function, say."""
    lines = {(Path(name).name, int(line)) for name, line in re.findall(r"(\S+\.sv):(\d+):\d+", output)}
    good = []
    for mutant in mutants:
        source = mutant.file.read_text()
        first, last = (source.count("\n", 0, at) + 1 for at in (mutant.site.begin, mutant.site.end))
        if not any((mutant.file.name, line) in lines for line in range(first, last + 1)):
            good.append(mutant)
    return good if len(good) < len(mutants) else [mutant for mutant in mutants if not mutant.site.in_function]


def write_overlay(overlay: Path, mutants: list[Mutant]) -> None:
    """The changed files."""
    overlay.mkdir(parents=True, exist_ok=True)
    for file in {mutant.file for mutant in mutants}:
        mine = [(mutant.number, mutant.site) for mutant in mutants if mutant.file == file]
        write_new(overlay / file.name, changed_source(file.read_text(), mine))
    for path in overlay.glob("*.sv"):
        if path.name not in {mutant.file.name for mutant in mutants} | {"mutation_pkg.sv"}:
            path.unlink()
    write_new(overlay / "mutation_pkg.sv", PACKAGE)
    write_new(overlay / "mutation.cpp", NATIVE)


def baseline(server: Server, overlay: Path, folder: Path, longest: int) -> list[Test]:
    """The tests that pass alone and unchanged, with all mutants compiled in, in so much CPU time. They are not run again while
    simulator and tests are the same."""
    test_file = Path(server.bench["file"])
    inputs = [
        folder / f"tb_{server.bench['module']}",
        *sorted(test_file.parent.glob("*.py")),
        *sorted((RTL / "testing").rglob("*.py")),
    ]
    inputs = [path for path in inputs if path == test_file or not path.name.startswith("test_")]
    key = hashlib.sha256(b"".join(path.read_bytes() for path in inputs) + json.dumps([server.bench, longest]).encode()).hexdigest()
    trace, file = overlay / "trace", folder / f"baseline_{test_file.stem}.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    if known.get("key") != key:
        known = {"key": key, "tests": {}}
        for name in server.tests:
            trace.write_bytes(bytes(65536))
            verdict, seconds = server.ask({"test": name, "mutant": TRACE, "cpu": longest, "trace": str(trace)})
            if verdict == "pass":
                differ = trace.read_bytes()
                known["tests"][name] = [seconds, [number for number in range(65536) if differ[number]]]
            else:
                print(f"    {name}: {verdict} without a change after {seconds:.0f} s of CPU time, left out", flush=True)
        file.write_text(json.dumps(known))
    return [Test(server, name, seconds, frozenset(differ)) for name, (seconds, differ) in known["tests"].items()]


def try_mutant(mutant: Mutant, tests: list[Test], budget: float) -> None:
    """Runs tests in which it makes a difference until one fails."""
    able = sorted((test for test in tests if mutant.number in test.differ), key=Test.price)
    mutant.differs_in, mutant.tried, mutant.killed_by = len(able), 0, None
    for test in able:
        if mutant.tried and budget < test.seconds:
            continue
        verdict, seconds = test.server.ask({"test": test.name, "mutant": mutant.number, "cpu": 0.3 + 2 * test.seconds, "trace": ""})
        budget -= seconds
        mutant.tried += 1
        test.tries += 1
        if verdict != "pass":
            test.kills += 1
            mutant.killed_by = test.title() + (" (does not end)" if verdict == "slow" else "")
            return


def proofs_of(file: Path) -> list[str]:
    """The proofs whose harness is about this module, as names of pytest tests."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", *map(str, RTL.glob("*/formal"))]
    below = modules_below()
    names = {path.stem.removesuffix("_formal") for path in RTL.glob("*/formal/*_formal.sv") if file.stem in below[path.stem]}
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    return [line for line in output.splitlines() if "::" in line and any(name in line for name in names)]


def try_proofs(mutant: Mutant, overlay: Path, proofs: list[str]) -> None:
    """A proof that fails kills the mutant, too: alone in its file, since a proof has no plusargs."""
    folder = overlay / "plain"
    folder.mkdir(exist_ok=True)
    source = mutant.file.read_text()
    change = f"({one_line(mutant.site.text)})"
    (folder / mutant.file.name).write_text(source[: mutant.site.begin] + change + source[mutant.site.end :])
    environment = {**os.environ, "NACELLE_OVERLAY": str(folder)}
    for proof in proofs:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", proof]
        mutant.tried += 1
        if subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL).returncode != 0:
            mutant.killed_by = f"proof {proof.partition('::')[2]}"
            break
    (folder / mutant.file.name).unlink()


def mutate(files: list[Path], name: str, arguments: argparse.Namespace, results: dict[str, Any]) -> None:
    """Tries mutants of files, all in the same simulators."""
    begin = time.monotonic()
    overlay = WORK / name
    sites_of = {file: choose(file, arguments.count, arguments.seed) for file in files}
    mutants = [Mutant(file, site, 0) for file in files for site in sites_of[file]]
    for number, mutant in enumerate(mutants, 1):
        mutant.number = number
    os.environ |= {"NACELLE_OVERLAY": str(overlay), "OBJCACHE": "ccache" if shutil.which("ccache") else ""}
    servers: list[Server] = []
    tests: list[Test] = []
    benches = [bench for bench in choose_benches(files) if re.search(arguments.tests, bench["test"])]
    print(f"{name}: {len(mutants)} mutants of {len(files)} files; {len(benches)} simulations", flush=True)
    at = 0
    write_overlay(overlay, mutants)
    while at < len(benches):
        folder, errors = build(benches[at], overlay)
        if errors:
            fewer = without(mutants, errors)
            if len(fewer) == len(mutants):
                sys.exit(f"{benches[at]['test']}: cannot be built: see {folder}/build.log")
            print(f"  {len(mutants) - len(fewer)} mutants left out that cannot be compiled", flush=True)
            mutants = fewer
            write_overlay(overlay, mutants)
            at = 0  # what was built before has too many
            continue
        at += 1
    for bench in benches:
        folder, _ = build(bench, overlay)
        server = Server.start(bench, folder)
        servers.append(server)
        spent = time.monotonic()
        found = baseline(server, overlay, folder, arguments.longest)
        tests += found
        print(f"  {bench['test']}: {len(found)} tests, {sum(test.seconds for test in found):.1f} s CPU, "
              f"{time.monotonic() - spent:.0f} s", flush=True)  # fmt: skip
    prepared = time.monotonic()
    tried = 0
    for file in files:
        path = str(file.relative_to(ROOT))
        digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
        known = results.get(path, {})
        old = {(m["line"], m["from"], m["to"]): m for m in known.get("mutants", [])} if known.get("digest") == digest else {}
        described = []
        proofs = proofs_of(file) if arguments.proofs else []
        for mutant in (mutant for mutant in mutants if mutant.file == file):
            now = mutant.describe()
            before = old.get((now["line"], now["from"], now["to"]))
            if before and before["killed_by"] and not arguments.again:
                described.append(before)
                continue
            if reason(path, now):
                described.append(now)
                continue
            try_mutant(mutant, tests, arguments.seconds)
            if proofs and mutant.killed_by is None:
                try_proofs(mutant, overlay, proofs)
            tried += 1
            described.append(mutant.describe())
            if mutant.killed_by is None:
                print(
                    f"  {path}:{now['line']}: {now['from']} -> {now['to']}: SURVIVES {mutant.tried} of {mutant.differs_in}",
                    flush=True,
                )
        results[path] = {"digest": digest, "seed": arguments.seed, "commit": commit(), "mutants": described}
        RESULTS.write_text(json.dumps(results, indent=1))
    for server in servers:
        server.stop()
    print(f"{name}: {prepared - begin:.0f} s to build and to run unchanged, then {tried} mutants in "
          f"{time.monotonic() - prepared:.0f} s", flush=True)  # fmt: skip


def commit() -> str:
    """The commit of the tree, in short."""
    return subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def reason(path: str, mutant: dict[str, Any]) -> str | None:
    """Why rtl/mutants.toml says that no test can kill it."""
    for note in notes().get("equivalent", []):
        if (note["file"], note["from"], note["to"]) == (path, mutant["from"], mutant["to"]) and note.get(
            "in", mutant["in"]
        ) == mutant["in"]:
            return note["why"]
    return None


def report(results: dict[str, Any]) -> str:
    """Markdown: a table of scores, the open survivors and the equivalent mutants. The score leaves out what is equivalent."""
    lines = ["| folder | mutants | killed | equivalent | open | score |", "| --- | --- | --- | --- | --- | --- |"]
    open_, equivalent, rows = [], [], {}
    for path, result in sorted(results.items()):
        counts = rows.setdefault(str(Path(path).parent), [0, 0, 0])
        for mutant in result["mutants"]:
            counts[0] += 1
            if mutant["killed_by"]:
                counts[1] += 1
                continue
            where = f"* `{path}:{mutant['line']}`: `{mutant['from']}` → `{mutant['to']}`"
            if why := reason(path, mutant):
                counts[2] += 1
                equivalent.append(f"{where}: {why}")
            else:
                tried = f"{mutant['tried']} of {mutant['differs_in']} tests in which it could be seen were tried"
                seen = f": {tried}" if mutant["differs_in"] else ": no test gives it another value"
                open_.append(where + seen)
    rows["all"] = [sum(counts) for counts in zip(*rows.values(), strict=True)]
    for folder, (count, killed, same) in rows.items():
        title = folder if folder == "all" else f"`{folder}`"
        score = 100 * killed / max(1, count - same)
        lines.append(f"| {title} | {count} | {killed} | {same} | {count - killed - same} | {score:.1f} % |")
    commits = sorted({result["commit"] for result in results.values()})
    seeds = sorted({result["seed"] for result in results.values()})
    said = f"{datetime.date.today()}, seed {', '.join(map(str, seeds))}, commit {', '.join(commits)}; {len(results)} files."
    return "\n".join(
        [said, "", *lines, "", "### Open", "", *(open_ or ["None."]), "", "### Equivalent", "", *(equivalent or ["None."])]
    )


def modules(folder: Path) -> list[Path]:
    """The modules of a plane or of a part of it."""
    return sorted(path for path in folder.rglob("*.sv") if path.parent.name not in ("test", "formal"))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--count", type=int, default=8, help="mutants of a file, at most, besides those named [8]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10, help="of CPU time for one mutant, at most [10]")
    parser.add_argument("--longest", type=int, default=10, help="seconds of CPU time that a test may take to be used [10]")
    parser.add_argument("--tests", default="", help="only unit tests whose name this regular expression matches")
    parser.add_argument("--proofs", action="store_true", help="try the formal proofs of a module on what survives its tests")
    parser.add_argument("--again", action="store_true", help="also mutants that were killed before")
    parser.add_argument("--report", action="store_true", help="put the results so far into the page")
    arguments = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    groups = {path.name: modules(path) for path in arguments.files if path.is_dir()}
    if single := [path for path in arguments.files if not path.is_dir()]:
        groups[single[0].stem] = single
    for name, members in groups.items():
        files = [file.resolve() for file in members]
        mutate([file for file in files if choose(file, 1, arguments.seed)], name, arguments, results)
    if arguments.report:
        page.replace(PAGE, "scores", report(results))
    elif not arguments.files:
        parser.error("name files, or --report")


if __name__ == "__main__":
    main()
