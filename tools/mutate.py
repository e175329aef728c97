# SPDX-License-Identifier: Apache-2.0
"""Changes the RTL in many small ways and sees whether the tests notice: mutation testing.

    python tools/mutate.py [--count N] [--seed S] [--seconds T] FILE ...     FILE: modules under rtl/, or folders
    python tools/mutate.py --report                                        the score, and the mutants that survived

A mutant is one change of one expression: an operator, a constant, a condition that is always or never true, two branches
exchanged. All mutants of a file are compiled into one simulator, which is told by a plusarg which of them is in effect (mutant
schemata, R. Untch et al., 1993), so that each costs a run of the tests and no compilation. A mutant is killed if a test fails, or
takes three times as long as without it. The tests are those unit tests whose simulator contains the module, quickest first, up to
T seconds together: run `make test`, or the tests of the plane, once before.

Results are kept in build/mutation/results.json; a mutant that is there is not tried again while its file is as it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyslang import syntax

ROOT = Path(__file__).resolve().parents[1]
RTL = ROOT / "rtl"
WORK = ROOT / "build" / "mutation"
RESULTS = WORK / "results.json"
sys.path.insert(0, str(RTL / "testing"))
from nacelle_tb.sources import packages  # noqa: E402

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


@dataclass(frozen=True)
class Site:
    """One change: bytes [begin, end) of the file become `text`; in a constant function it cannot be compiled."""

    begin: int
    end: int
    text: str
    in_function: bool


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


def sites(file: Path) -> list[Site]:
    """Every change that can be made to a file."""
    source = file.read_text()
    tree = syntax.SyntaxTree.fromFile(str(file))
    found: list[Site] = []

    def walk(node: Any, in_function: bool) -> None:
        name = kind(node)
        if name in OUTSIDE:
            return
        below = children(node)
        if name in HEADED:
            below = [child for child in below if kind(child) == HEADED[name]]
        if name in ("AssignmentExpression", "NonblockingAssignmentExpression", "CastExpression"):
            below = below[1:]  # the left side; the width
        if name == "StandardCaseItem":
            below = below[-1:]
        begin, end = node.sourceRange.start.offset, node.sourceRange.end.offset
        text = source[begin:end]
        found.extend(Site(begin, end, change, in_function) for change in changes(node, name, text, source) if change != text)
        for child in below:
            walk(child, in_function or name == "FunctionDeclaration")

    walk(tree.root, False)
    return found


def choose(file: Path, count: int, seed: int) -> list[Site]:
    """At most `count` changes that do not overlap, in the order of the file."""
    available = sites(file)
    random.Random(f"{seed} {file.name}").shuffle(available)
    chosen: list[Site] = []
    for site in available:
        if len(chosen) < count and all(site.end <= other.begin or other.end <= site.begin for other in chosen):
            chosen.append(site)
    return sorted(chosen, key=lambda site: site.begin)


def write_overlay(file: Path, chosen: list[Site]) -> Path:
    """A folder with the changed file, in which the package says which change is in effect (0: none)."""
    folder = WORK / file.stem
    folder.mkdir(parents=True, exist_ok=True)
    source = file.read_text()
    parts, at = [], 0
    for number, site in enumerate(chosen, 1):
        original = source[site.begin : site.end]
        parts += [source[at : site.begin], f"((mutation_pkg::id == 32'd{number}) ? ({site.text}) : ({original}))"]
        at = site.end
    (folder / file.name).write_text("".join([*parts, source[at:]]))
    (folder / "mutation_pkg.sv").write_text("package mutation_pkg;\n  int unsigned id /*verilator public*/;\nendpackage\n")
    return folder


@dataclass(frozen=True)
class Test:
    """A pytest test and how long it takes."""

    name: str
    seconds: float


def tests_of(file: Path, budget: float) -> list[Test]:
    """Tests whose simulator contains the file: those of the module itself first, then the quickest. One or two of each that is
    parametrised."""
    found: dict[str, tuple[bool, float]] = {}
    is_package = file in packages()
    for depends in (ROOT / "build" / "cocotb").glob("*/*/Vtop__ver.d"):
        if str(file) not in depends.read_text():
            continue
        own = depends.parents[1].name == file.stem
        for report in (depends.parent / "used_by").glob("*.json"):
            use = json.loads(report.read_text())
            found[use["test"]] = (own, use["seconds"])
    chosen: list[Test] = []
    total, times = 0.0, {}
    for name, (own, seconds) in sorted(found.items(), key=lambda item: (not item[1][0], item[1][1])):
        function = name.partition("[")[0]
        enough = times.get(function, 0) == (2 if own else 1) or (is_package and len(chosen) == 6)
        if enough or (chosen and total + seconds > budget):
            continue
        times[function] = times.get(function, 0) + 1
        total += seconds
        chosen.append(Test(name, seconds))
    return chosen


def run(test: Test, overlay: Path, mutant: int, limit: float) -> str:
    """pass, fail or slow."""
    environment = {
        **os.environ, "NACELLE_OVERLAY": str(overlay), "NACELLE_MUTANT": str(mutant), "COCOTB_MAX_FAILURES": "1", "OBJCACHE": "",
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test.name]
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return "slow"
    (overlay / "last.log").write_text(output)
    return "pass" if process.returncode == 0 else "fail"


def mutate(file: Path, count: int, seed: int, budget: float, results: dict[str, Any]) -> None:
    """Tries the mutants of one file."""
    name = str(file.relative_to(ROOT))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    tests = tests_of(file, budget)
    if not tests:
        print(f"{name}: no unit test contains it")
        return
    chosen = choose(file, count, seed)
    known = results.get(name, {})
    if known.get("digest") == digest and known.get("sites") == len(chosen):
        return

    # Changes in functions that are used for constants cannot be compiled: then without any.
    for attempt in (chosen, [site for site in chosen if not site.in_function]):
        overlay = write_overlay(file, attempt)
        limits = {}
        for test in tests:
            begin = time.monotonic()
            if run(test, overlay, 0, 1200) != "pass":
                break
            begin = time.monotonic()
            if run(test, overlay, 0, 1200) == "pass":  # compiled now: what a run takes
                limits[test] = 10 + 3 * (time.monotonic() - begin)
        if len(limits) == len(tests):
            chosen = attempt
            break
    else:
        print(f"{name}: its tests do not pass with all mutants compiled in and none in effect: see {overlay}/last.log")
        return

    source = file.read_text()
    verdicts = []
    for number, site in enumerate(chosen, 1):
        killer = next((test.name for test in tests if run(test, overlay, number, limits[test]) != "pass"), None)
        line = source.count("\n", 0, site.begin) + 1
        original = " ".join(source[site.begin : site.end].split())
        verdicts.append({"line": line, "from": original, "to": " ".join(site.text.split()), "killed_by": killer})
        print(f"{name}:{line}: {original} -> {verdicts[-1]['to']}: {'killed' if killer else 'SURVIVES'}", flush=True)
    results[name] = {"digest": digest, "sites": len(chosen), "tests": [test.name for test in tests], "mutants": verdicts}
    RESULTS.write_text(json.dumps(results, indent=1))


def report(results: dict[str, Any]) -> None:
    """A Markdown table of scores, and the survivors."""
    print("| file | mutants | killed | |\n| --- | --- | --- | --- |")
    total = killed = 0
    for name, result in sorted(results.items()):
        count, dead = len(result["mutants"]), sum(mutant["killed_by"] is not None for mutant in result["mutants"])
        total, killed = total + count, killed + dead
        print(f"| `{name}` | {count} | {dead} | {100 * dead / max(1, count):.0f} % |")
    print(f"| all | {total} | {killed} | {100 * killed / max(1, total):.1f} % |\n")
    for name, result in sorted(results.items()):
        for mutant in result["mutants"]:
            if mutant["killed_by"] is None:
                print(f"* `{name}:{mutant['line']}`: `{mutant['from']}` → `{mutant['to']}`")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--count", type=int, default=8, help="mutants of a file, at most [8]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=40, help="of tests for one mutant, at most [40]")
    parser.add_argument("--report", action="store_true", help="print the results so far")
    arguments = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    listed = (sorted(path.glob("*.sv")) if path.is_dir() else [path] for path in arguments.files)
    files = [file.resolve() for group in listed for file in group]
    for file in files:
        mutate(file, arguments.count, arguments.seed, arguments.seconds, results)
    if arguments.report or not files:
        report(results)


if __name__ == "__main__":
    main()
