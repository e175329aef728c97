# SPDX-License-Identifier: Apache-2.0
"""Runs every test of the project, or the named steps, and writes build/test-results.json.

    python tools/test.py [--list] [STEP ...]

A step is a command; a step that finds nothing to run has failed. The end of the output is a line `N passed, N failed`, counting
single tests. The status table (tools/status.py) is made from the results file.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from steps import asked_for

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "rtl" / "testing"))
from nacelle_tb.long import LONG  # noqa: E402
from nacelle_tb.widths import WIDTHS  # noqa: E402

BUILD = ROOT / "build"
PYTHON = sys.executable
CARGO = ["cargo"]


@dataclass
class Outcome:
    """Single tests of a step, by name."""

    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def execute(command: list[str], cwd: Path = ROOT, capture: bool = False) -> tuple[int, str]:
    """Runs a command with its output shown; also returned if `capture`."""
    if not capture:
        return subprocess.run(command, cwd=cwd).returncode, ""
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    assert process.stdout
    for line in process.stdout:
        sys.stdout.write(line)
        lines.append(line)
    return process.wait(), "".join(lines)


def command(name: str, *arguments: str, cwd: Path = ROOT) -> Callable[[], Outcome]:
    """A step that is one test: the command succeeds."""

    def run() -> Outcome:
        code, _ = execute(list(arguments), cwd)
        return Outcome(passed=[name]) if code == 0 else Outcome(failed=[name])

    return run


def simulators() -> Outcome:
    """Builds every simulated device. Verilator and the linker use one core: as many builds at a time as there are cores."""
    # The one that takes longest comes first.
    kinds: dict[str, tuple[str, ...]] = {name: ("--device", name, "--data-w", "64") for name in ("test", "ecc")}
    kinds |= {str(width): ("--data-w", str(width)) for width in sorted(WIDTHS, reverse=True)}
    kinds |= {"64_waves": ("--data-w", "64", "--waves")} if LONG else {}
    names = {f"sim::build_{kind}": arguments for kind, arguments in kinds.items()}

    def build(arguments: tuple[str, ...]) -> int:
        return subprocess.run([PYTHON, "sim/build.py", *arguments], cwd=ROOT, env={**os.environ, "NACELLE_JOBS": "1"}).returncode

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        codes = dict(zip(names, pool.map(build, names.values()), strict=True))
    return Outcome([name for name, code in codes.items() if code == 0], [name for name, code in codes.items() if code != 0])


def cocotb_tests(since: float) -> dict[str, dict[str, str]]:
    """The verdicts of the cocotb tests that ran since then, by the pytest test that ran them, as its JUnit report names it."""
    reports = [path for path in (BUILD / "reports" / "cocotb").glob("*.json") if path.stat().st_mtime >= since]
    found = (json.loads(path.read_text()) for path in reports)
    return {report["test"].replace(".py::", "::").replace("/", "."): report["verdicts"] for report in found}


def pytest(name: str, *paths: str, distribute: str = "worksteal") -> Callable[[], Outcome]:
    """Python tests, counted from their JUnit report; the cocotb tests that one of them runs take its place. `distribute`: how they
    are shared between the cores (pytest-xdist's --dist)."""
    workers = max(2, os.cpu_count() or 1)

    def run() -> Outcome:
        report = BUILD / "reports" / f"{name}.xml"
        report.unlink(missing_ok=True)
        begin = time.time()
        code, _ = execute(
            [PYTHON, "-m", "pytest", "-q", "-n", str(workers), "--dist", distribute, "--junitxml", str(report), *paths],
        )
        outcome = Outcome()
        parts = cocotb_tests(begin)
        if report.exists():
            for case in ElementTree.parse(report).getroot().iter("testcase"):
                test = f"{case.get('classname')}::{case.get('name')}"
                bad = case.find("failure") is not None or case.find("error") is not None
                if case.find("skipped") is not None:
                    outcome.skipped.append(test)
                elif bad or test not in parts:
                    (outcome.failed if bad else outcome.passed).append(test)
                else:
                    outcome.passed += [f"{test}::{part}" for part in parts[test]]
        if code != 0 and not outcome.failed:
            outcome.failed.append(f"{name}: pytest returned {code}")
        return outcome

    return run


def cargo_test(prefix: str, *arguments: str) -> Callable[[], Outcome]:
    """Unit, integration and documentation tests of a workspace, under names that begin with prefix."""

    def run() -> Outcome:
        code, text = execute([*CARGO, "test", "--locked", "--no-fail-fast", *arguments], ROOT / "host", capture=True)
        outcome = Outcome()
        lists = {"ok": outcome.passed, "FAILED": outcome.failed, "ignored": outcome.skipped}
        for name, verdict in re.findall(r"^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", text, re.MULTILINE):
            lists[verdict].append(f"{prefix}::{name}")
        if code != 0 and not outcome.failed:
            outcome.failed.append(f"{prefix}: cargo test returned {code}")
        return outcome

    return run


def host_style() -> Outcome:
    """Format, clippy and documentation without a warning."""
    outcome = Outcome()
    os.environ["RUSTDOCFLAGS"] = "-D warnings"
    for name, arguments in {
        "host::fmt": ["fmt", "--all", "--check"],
        "host::clippy": ["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"],
        "host::doc": ["doc", "--locked", "--workspace", "--no-deps", "--document-private-items"],
    }.items():
        # Debian's packages of Rust have no clippy.
        if arguments[0] == "clippy" and subprocess.run([*CARGO, "clippy", "--version"], capture_output=True).returncode != 0:
            print("host::clippy skipped: cargo has no clippy here")
            outcome.skipped.append(name)
            continue
        code, _ = execute([*CARGO, *arguments], ROOT / "host")
        (outcome.failed if code else outcome.passed).append(name)
    return outcome


def conformance() -> Outcome:
    """The conformance suite on every device: one test a rule."""
    file = BUILD / "conformance.json"
    file.unlink(missing_ok=True)
    code, _ = execute([PYTHON, "tools/conformance.py"])
    outcome = Outcome()
    for device, rules in json.loads(file.read_text()).items() if file.exists() else ():
        lists = {"ok": outcome.passed, "skip": outcome.skipped}
        for rule, verdict in rules.items():
            lists.get(verdict["outcome"], outcome.failed).append(f"conformance::{device}::{rule}")
    if code != 0 and not outcome.failed:
        outcome.failed.append(f"conformance: returned {code}")
    return outcome


# The programs that the tests of whole devices run: as built with the tests, so that an overflow is an error in them.
os.environ["NACELLE_PROGRAMS"] = str(ROOT / "host" / "target" / "debug")

STEPS: dict[str, Callable[[], Outcome]] = {
    "registers": command("registers::generate", PYTHON, "rtl/control/generate.py", "--check"),
    "python-style": command("python::ruff", PYTHON, "-m", "ruff", "check", "--quiet", "."),
    "lint": command("rtl::lint", PYTHON, "tools/lint.py"),
    "simulators": simulators,
    "host-style": host_style,
    "host": cargo_test("host", "--workspace"),
    "fuzz": cargo_test("fuzz", "--manifest-path", "fuzz/Cargo.toml", "--no-default-features", "--target-dir", "target"),
    "programs": command("host::programs", *CARGO, "test", "--locked", "--workspace", "--no-run", cwd=ROOT / "host"),
    "c-library": command("host::c_library", *CARGO, "build", "--locked", "-p", "nacelle-capi", cwd=ROOT / "host"),
    "python-package": command("host::python_package", PYTHON, "tools/wheel.py", "--profile", "dev", "--out", "build/wheel-dev"),
    "rtl": pytest("rtl", "rtl", "--ignore=rtl/shell", "--ignore-glob=*/formal/*"),
    "formal": pytest("formal", "rtl/stream/formal", "rtl/roce/formal", "rtl/memory/formal"),
    "shell": pytest("shell", "rtl/shell"),
    "conformance": conformance,
    "end-to-end": pytest("end-to-end", "tests", distribute="loadgroup"),  # those that share a guest together
    "docs": command("docs::build", PYTHON, "tools/docs.py"),
}


def main() -> None:
    """Command line."""
    asked = asked_for(__doc__, STEPS)

    (BUILD / "reports").mkdir(parents=True, exist_ok=True)
    file = BUILD / "test-results.json"
    # Named steps replace their own results only.
    earlier = json.loads(file.read_text()) if asked and file.exists() else {}
    results = {}
    for name in asked or STEPS:
        print(f"\n==> {name}", flush=True)
        begin = time.monotonic()
        outcome = STEPS[name]()
        if not outcome.passed and not outcome.failed:
            outcome.failed.append(f"{name}: no test ran")
        seconds = time.monotonic() - begin
        results[name] = {**vars(outcome), "seconds": round(seconds, 1)}
        counts = ", ".join(f"{len(tests)} {kind}" for kind, tests in vars(outcome).items())
        print(f"    {name}: {counts} in {seconds:.0f} s", flush=True)

    file.write_text(json.dumps({**earlier, **results}, indent=1))
    if not asked and execute([PYTHON, "tools/status.py", "--check"])[0] != 0:
        results["status"] = {**vars(Outcome(failed=["docs::status"])), "seconds": 0}
    failed = [test for result in results.values() for test in result["failed"]]
    for test in failed:
        print(f"FAILED {test}")
    print("\nSeconds: " + ", ".join(f"{name} {result['seconds']:.0f}" for name, result in results.items()), end="")
    print(f"; together {sum(result['seconds'] for result in results.values()):.0f}")
    passed, skipped = (sum(len(result[kind]) for result in results.values()) for kind in ("passed", "skipped"))
    print(f"{passed} passed, {len(failed)} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
