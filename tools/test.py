# SPDX-License-Identifier: Apache-2.0
"""Runs every test of the project, or the named steps, and writes build/test-results.json.

    python tools/test.py [--list] [STEP ...]

A step is a command; a step that finds nothing to run has failed. The end of the output is a line `N passed, N failed`, counting
single tests. The status table (tools/status.py) is made from the results file.

Steps run in stages: first what is built, then what is run. In each stage two lanes of steps run side by side. The lane of the RTL
needs the processors and no time of the day: its tests give way to those of the other lane, which wait for real time most of theirs.
What it prints comes when a step has ended.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steps import asked_for

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "rtl" / "testing"))
from nacelle_tb.long import LONG  # noqa: E402
from nacelle_tb.widths import WIDTHS  # noqa: E402

BUILD = ROOT / "build"
HOST = ROOT / "host"
PYTHON = sys.executable
CARGO = ["cargo"]


@dataclass
class Outcome:
    """Single tests of a step, by name."""

    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    """A line for each failed test of which it is known why it failed"""


class Lane:
    """Runs the commands of steps, one after the other. One behind another lane shows nothing until it is asked to, and gives way if
    it is `patient`."""

    def __init__(self, behind: bool = False, patient: bool = False) -> None:
        self.before = ["nice", "-n", "10"] if patient else []
        self.behind = behind
        self.said: list[str] = []
        self.processor_seconds = 0.0
        """Of the commands so far, with the processes that they started"""

    def execute(self, command: list[str], cwd: Path = ROOT, **variables: str) -> tuple[int, str]:
        """Runs a command with its output shown; its exit status and the output."""
        process = subprocess.Popen(
            [*self.before, *command],
            cwd=cwd,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        lines = []
        assert process.stdout
        for line in process.stdout:
            lines.append(line)
            self.say(line)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.processor_seconds += usage.ru_utime + usage.ru_stime
        return process.returncode, "".join(lines)

    def say(self, text: str) -> None:
        """Shows it, now or later."""
        if self.behind:
            self.said.append(text)
        else:
            sys.stdout.write(text)
            sys.stdout.flush()

    def show(self) -> None:
        """What was not shown so far."""
        print("".join(self.said), end="", flush=True)
        self.said.clear()


# More failures than this are no matter of a busy machine.
FEW = 5

Step = Callable[[Lane], Outcome]


def command(*names: str, run: list[str], cwd: Path = ROOT) -> Step:
    """A step that is one test, or some at once: the command succeeds."""

    def step(lane: Lane) -> Outcome:
        code, _ = lane.execute(run, cwd)
        return Outcome(passed=[*names]) if code == 0 else Outcome(failed=[*names])

    return step


def simulators(lane: Lane) -> Outcome:
    """Builds every simulated device. Verilator and the linker use one core: as many builds at a time as there are cores."""
    # The one that takes longest comes first.
    devices = ("test", "nic", "slot", "ecc", "ecp5")
    kinds: dict[str, tuple[str, ...]] = {name: ("--device", name, "--data-w", "64") for name in devices}
    kinds |= {str(width): ("--data-w", str(width)) for width in sorted(WIDTHS, reverse=True)}
    kinds |= {"64_waves": ("--data-w", "64", "--waves")} if LONG else {}
    names = {f"sim::build_{kind}": arguments for kind, arguments in kinds.items()}

    def build(arguments: tuple[str, ...]) -> int:
        return lane.execute([PYTHON, "sim/build.py", *arguments], NACELLE_JOBS="1")[0]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        codes = dict(zip(names, pool.map(build, names.values()), strict=True))
    return Outcome([name for name, code in codes.items() if code == 0], [name for name, code in codes.items() if code != 0])


def cocotb_tests(since: float) -> dict[str, dict[str, str]]:
    """The verdicts of the cocotb tests that ran since then, by the pytest test that ran them, as its JUnit report names it."""
    reports = [path for path in (BUILD / "reports" / "cocotb").glob("*.json") if path.stat().st_mtime >= since]
    found = (json.loads(path.read_text()) for path in reports)
    return {report["test"].replace(".py::", "::").replace("/", "."): report["verdicts"] for report in found}


def first_line(text: str) -> str:
    """As much of a message as the end of a log has room for."""
    return text.strip().partition("\n")[0][:200]


def pytest(name: str, *paths: str, distribute: str = "worksteal", real_time: bool = False) -> Step:
    """Python tests, counted from their JUnit report; the cocotb tests that one of them runs take its place. `distribute`: how they
    are shared between the cores (pytest-xdist's --dist). `real_time`: of programs that wait for each other by the clock of the
    machine. If a few of these fail they are tried once more, one after the other, and said to have failed before."""
    workers = max(2, os.cpu_count() or 1)

    def tried(lane: Lane, report_name: str, *options: str) -> Outcome:
        report = BUILD / "reports" / f"{report_name}.xml"
        report.unlink(missing_ok=True)
        begin = time.time()
        code, _ = lane.execute([PYTHON, "-m", "pytest", "-q", *options, "--junitxml", str(report), *paths])
        outcome = Outcome()
        parts = cocotb_tests(begin)
        if report.exists():
            for case in ElementTree.parse(report).getroot().iter("testcase"):
                test = f"{case.get('classname')}::{case.get('name')}"
                why = next((case.find(kind) for kind in ("failure", "error") if case.find(kind) is not None), None)
                bad = why is not None
                if why is not None:
                    outcome.reasons[test] = first_line(why.get("message", ""))
                if case.find("skipped") is not None:
                    outcome.skipped.append(test)
                elif bad or test not in parts:
                    (outcome.failed if bad else outcome.passed).append(test)
                else:
                    outcome.passed += [f"{test}::{part}" for part in parts[test]]
        if code != 0 and not outcome.failed:
            outcome.failed.append(f"{name}: pytest returned {code}")
        return outcome

    def step(lane: Lane) -> Outcome:
        outcome = tried(lane, name, "-n", str(workers), "--dist", distribute)
        if real_time and 0 < len(outcome.failed) <= FEW:
            for test in outcome.failed:
                lane.say(f"    tried again: {test}: {outcome.reasons.get(test, '')}\n")
            second = tried(lane, f"{name}-again", "--last-failed")
            outcome.passed += second.passed
            outcome.failed, outcome.reasons = second.failed, second.reasons
        return outcome

    return step


def verdicts(text: str) -> Outcome:
    """Single tests in what `cargo test` prints; those of the fuzz targets under their own name."""
    outcome = Outcome()
    lists = {"ok": outcome.passed, "FAILED": outcome.failed, "ignored": outcome.skipped}
    prefix = "host"
    for line in text.splitlines():
        if re.match(r" +(Running|Doc-tests) ", line):
            prefix = "fuzz" if "nacelle_fuzz" in line else "host"
        elif test := re.match(r"test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", line):
            lists[test[2]].append(f"{prefix}::{test[1]}")
    return outcome


def host(lane: Lane) -> Outcome:
    """Unit, integration and documentation tests of the workspace."""
    nic = str(BUILD / "sim" / "libnacelle_sim_64_nic.so")
    command = [*CARGO, "test", "--locked", "--no-fail-fast", "--workspace"]
    code, text = lane.execute(command, HOST, NACELLE_TEST_NIC=nic)
    outcome = verdicts(text)
    if code != 0 and not outcome.failed:
        outcome.failed.append(f"host: cargo test returned {code}")
    return outcome


def host_style(lane: Lane) -> Outcome:
    """Format, clippy and documentation without a warning."""
    outcome = Outcome()
    for name, arguments in {
        "host::fmt": ["fmt", "--all", "--check"],
        "host::clippy": ["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"],
        "host::doc": ["doc", "--locked", "--workspace", "--no-deps", "--document-private-items"],
    }.items():
        # Debian's packages of Rust have no clippy.
        if arguments[0] == "clippy" and subprocess.run([*CARGO, "clippy", "--version"], capture_output=True).returncode != 0:
            lane.say("host::clippy skipped: cargo has no clippy here\n")
            outcome.skipped.append(name)
            continue
        code, _ = lane.execute([*CARGO, *arguments], HOST, RUSTDOCFLAGS="-D warnings")
        (outcome.failed if code else outcome.passed).append(name)
    return outcome


def conformance(lane: Lane) -> Outcome:
    """The conformance suite on every device: one test a rule."""
    file = BUILD / "conformance.json"
    file.unlink(missing_ok=True)
    code, _ = lane.execute([PYTHON, "tools/conformance.py"])
    outcome = Outcome()
    for device, rules in json.loads(file.read_text()).items() if file.exists() else ():
        lists = {"ok": outcome.passed, "skip": outcome.skipped}
        for rule, verdict in rules.items():
            test = f"conformance::{device}::{rule}"
            lists.get(verdict["outcome"], outcome.failed).append(test)
            if test in outcome.failed:
                outcome.reasons[test] = first_line(verdict.get("detail", ""))
    if code != 0 and not outcome.failed:
        outcome.failed.append(f"conformance: returned {code}")
    return outcome


# Without bytecode each simulator compiles all that its tests import: if none may lie beside the sources, it lies in build.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    os.environ["PYTHONPYCACHEPREFIX"] = str(BUILD / "bytecode")
# The programs that the tests of whole devices run: as built with the tests, so that an overflow is an error in them.
os.environ["NACELLE_PROGRAMS"] = str(ROOT / "host" / "target" / "debug")

STEPS: dict[str, Step] = {
    "registers": command("registers::generate", run=[PYTHON, "rtl/control/generate.py", "--check"]),
    "python-style": command("python::ruff", run=[PYTHON, "-m", "ruff", "check", "--quiet", "."]),
    "lint": command("rtl::lint", run=[PYTHON, "tools/lint.py"]),
    "simulators": simulators,
    "host-style": host_style,
    # All at once, since each selection of packages has its own features, with which it would compile what it depends on again.
    "programs": command(
        "host::programs", "host::c_library", run=[*CARGO, "build", "--locked", "--workspace", "--all-targets"], cwd=HOST
    ),
    "python-package": command(
        "host::python_package", run=[PYTHON, "tools/wheel.py", "--profile", "dev", "--out", "build/wheel-dev"]
    ),
    "host": host,
    "rtl": pytest("rtl", "rtl", "--ignore=rtl/shell", "--ignore-glob=*/formal/*"),
    "formal": pytest("formal", "rtl/stream/formal", "rtl/roce/formal", "rtl/memory/formal", "rtl/pcie/formal"),
    "shell": pytest("shell", "rtl/shell"),
    "conformance": conformance,
    "end-to-end": pytest("end-to-end", "tests", distribute="loadgroup", real_time=True),  # those that share a guest together
    "docs": command("docs::build", run=[PYTHON, "tools/docs.py"]),
}


@dataclass(frozen=True)
class Stage:
    """Steps that run after those of the stage before: `front` and `behind` side by side, each lane in its order."""

    front: tuple[str, ...]
    behind: tuple[str, ...] = ()
    patient: bool = False  # what is behind gives way


STAGES = [
    Stage(("registers", "python-style")),
    Stage(("host-style", "programs", "python-package"), behind=("lint", "simulators")),
    Stage(("host", "conformance", "end-to-end", "docs"), behind=("rtl", "formal", "shell"), patient=True),
]


def run_step(lane: Lane, name: str) -> dict[str, Any]:
    """The results of a step, with the time that it took."""
    lane.say(f"\n==> {name}\n")
    begin, used = time.monotonic(), lane.processor_seconds
    outcome = STEPS[name](lane)
    if not outcome.passed and not outcome.failed:
        outcome.failed.append(f"{name}: no test ran")
    seconds = time.monotonic() - begin
    counts = ", ".join(f"{len(getattr(outcome, kind))} {kind}" for kind in ("passed", "failed", "skipped"))
    used = lane.processor_seconds - used
    lane.say(f"    {name}: {counts} in {seconds:.0f} s, {used:.0f} s of processors\n")
    lane.show()
    return {**vars(outcome), "seconds": round(seconds, 1), "processor_seconds": round(used, 1)}


def run_stages(asked: Collection[str]) -> dict[str, Any]:
    """The results of these steps. None begins after one that could not run at all, or after Ctrl-C."""
    results: dict[str, Any] = {}
    stopped = threading.Event()

    def run_lane(lane: Lane, names: list[str]) -> None:
        try:
            for name in names:
                if not stopped.is_set():
                    results[name] = run_step(lane, name)
        except BaseException:
            stopped.set()
            raise

    for stage in STAGES:
        front, behind = ([name for name in names if name in asked] for names in (stage.front, stage.behind))
        if not front:
            front, behind = behind, front
        with ThreadPoolExecutor() as pool:
            later = pool.submit(run_lane, Lane(behind=True, patient=stage.patient), behind)
            run_lane(Lane(), front)
            later.result()
    return {name: results[name] for name in STEPS if name in results}


def failures(results: dict[str, Any]) -> list[str]:
    """Each failed test, and why if that is known."""
    tests = [(test, result["reasons"].get(test)) for result in results.values() for test in result["failed"]]
    return [f"{test}: {reason}" if reason else test for test, reason in tests]


def main() -> None:
    """Command line."""
    asked = asked_for(__doc__, STEPS)

    (BUILD / "reports").mkdir(parents=True, exist_ok=True)
    file = BUILD / "test-results.json"
    # Named steps replace their own results only.
    earlier = json.loads(file.read_text()) if asked and file.exists() else {}
    begin = time.monotonic()
    results = run_stages(asked or STEPS)
    seconds = time.monotonic() - begin

    file.write_text(json.dumps({**earlier, **results}, indent=1))
    if not asked and subprocess.run([PYTHON, "tools/status.py", "--check"], cwd=ROOT).returncode != 0:
        results["status"] = {**vars(Outcome(failed=["docs::status"])), "seconds": 0, "processor_seconds": 0}
    failed = failures(results)
    for test in failed:
        print(f"FAILED {test}")
    print("\nSeconds of processors: " + ", ".join(f"{name} {result['processor_seconds']:.0f}" for name, result in results.items()))
    print(f"together {sum(result['processor_seconds'] for result in results.values()):.0f}, in {seconds:.0f} s")
    passed, skipped = (sum(len(result[kind]) for result in results.values()) for kind in ("passed", "skipped"))
    print(f"{passed} passed, {len(failed)} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
