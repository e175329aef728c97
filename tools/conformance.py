#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges devices by the conformance suite: starts each on a wire of its own and tries every rule of the transport on it, and then
compares what the devices answer to odd requests.

    python tools/conformance.py [rtl] [soft] [--cases N] [--seed S]            (default: both, 200 cases)
    python tools/conformance.py --compare [--cases N] [--first K] [--seed S]   the comparison alone

Writes build/conformance.json: device -> rule -> {outcome, detail, ...}; the comparison is a rule of both devices. Needs
nacelle and nacelle-conformance in host/target/release, or in $NACELLE_PROGRAMS, and for `rtl` the simulated device (make host sim).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = Path(os.environ.get("NACELLE_PROGRAMS", ROOT / "host" / "target" / "release"))
CONFORMANCE = PROGRAMS / "nacelle-conformance"
RESULTS = ROOT / "build" / "conformance.json"
SHARES = 2  # of the work on each device
ADDRESS = "10.77.0.2"
DEVICES = {"rtl": [], "soft": ["--soft"]}
DIFFERENTIAL = "differential.devices_answer_alike"
START_S = 30
SUITE_S = 600
CASE_S = 2


@contextmanager
def running(device: str) -> Iterator[Path]:
    """The wire of a device that this function starts and ends."""
    with tempfile.TemporaryDirectory(prefix="nc", dir="/tmp") as folder:
        environment = {**os.environ, "NACELLE_WIRE": folder, "NO_COLOR": "1"}
        log = Path(folder) / "device.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [PROGRAMS / "nacelle", "device", "--ip", f"{ADDRESS}/16", *DEVICES[device]],
                cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        try:
            end = time.monotonic() + START_S
            while not list(Path(folder).glob("*.device.json")):
                if process.poll() is not None or time.monotonic() > end:
                    sys.exit(f"the {device} device does not start:\n{log.read_text()}")
                time.sleep(0.1)
            yield Path(folder)
        finally:
            process.terminate()
            process.wait(10)


def suite(wire: Path, *arguments: str, seconds: float = SUITE_S) -> subprocess.CompletedProcess[str]:
    """Runs the suite against the device on this wire."""
    command = [CONFORMANCE, ADDRESS, "--wire", wire, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=seconds)


def at_once(do: Callable[[str, int], list[dict[str, Any]]], devices: list[str]) -> list[list[dict[str, Any]]]:
    """What `do` returns for each device, from all shares of the work. A device, or the suite, waits most of the time, and a
    simulation uses one core: so all shares run at the same time, each on a device of its own."""
    jobs = [(device, share) for device in devices for share in range(SHARES)]
    with ThreadPoolExecutor(max(1, len(jobs))) as pool:
        parts = list(pool.map(lambda job: do(*job), jobs))
    return [[row for part in parts[i : i + SHARES] for row in part] for i in range(0, len(parts), SHARES)]


def judge(device: str, share: int) -> list[dict[str, Any]]:
    """The verdict of every rule of a share on a device."""
    rules = [line.split()[0] for line in subprocess.check_output([CONFORMANCE, "--list"], text=True).splitlines()]
    return tried(device, rules[share::SHARES])


def tried(device: str, rules: list[str]) -> list[dict[str, Any]]:
    """The verdicts of some rules on a device of their own."""
    with running(device) as wire:
        result = suite(wire, "--json", *(f"--only={rule}" for rule in rules))
    if result.returncode not in (0, 1):
        sys.exit(f"the suite could not judge the {device} device")
    return json.loads(result.stdout)


def confirm(device: str, verdicts: list[dict[str, Any]]) -> None:
    """Tries each rule that failed once more, with nothing else running: a wire drops frames, and an answer comes late, on a machine
    that has no time for them. What was seen the first time is printed in any case."""
    for verdict in verdicts:
        if verdict["outcome"] == "fail":
            print(f"  {verdict['rule']} is tried again: {verdict['detail']}")
            rule = verdict["rule"]
            verdict.clear()
            verdict |= next(one for one in tried(device, [rule]) if one["rule"] == rule)


def record(device: str, share: int, seed: int, first: int, end: int) -> list[dict[str, Any]]:
    """What a device answers to a share of the cases from `first` to before `end`. If the suite ends early, it goes on once, with
    another device."""
    begin, end = (first + (end - first) * edge // SHARES for edge in (share, share + 1))
    if begin == end:
        return []
    cases: list[dict[str, Any]] = []
    for _ in range(2):
        start, count = begin + len(cases), end - begin - len(cases)
        with running(device) as wire:
            file = wire / "record.jsonl"
            options = (f"--record={file}", f"--cases={count}", f"--first={start}", f"--seed={seed}")
            result = suite(wire, *options, seconds=60 + CASE_S * count)
            cases += [json.loads(line) for line in file.read_text().splitlines()]
        if result.returncode == 0:
            break
        print(f"{device}: the suite ended after {len(cases)} of {end - begin} cases")
    return cases


def difference(one: dict[str, Any], other: dict[str, Any]) -> str | None:
    """The first step of a case that two devices answer in different ways, as text."""
    for a, b in zip_longest(one["steps"], other["steps"], fillvalue={"sent": "nothing", "answered": []}):
        if a["answered"] != b["answered"]:
            mine = [word for word in a["answered"] if word not in b["answered"]]
            theirs = [word for word in b["answered"] if word not in a["answered"]]
            return f"{a['sent']}\n      {{one}}: {mine or 'nothing more'}\n      {{other}}: {theirs or 'nothing more'}"
        if a["sent"] != b["sent"]:
            return f"another request follows, though the answers were the same: {a['sent']} and {b['sent']}"
    return None


def compare(devices: list[str], arguments: argparse.Namespace) -> list[str]:
    """Every difference between two devices, with the seed and the number of its case. A case that differs is tried once more,
    alone, for the reason of `confirm`; what was seen the first time is printed in any case."""
    first, end = arguments.first, arguments.first + arguments.cases
    found = []
    for number, text in differences(devices, arguments.seed, first, end).items():
        print(f"  seed {arguments.seed} case {number} is tried again: {text}")
        found += [f"{number}: {text}" for text in differences(devices, arguments.seed, number, number + 1).values()]
    for text in found:
        print(f"  seed {arguments.seed} case {text}")
    return found


def differences(devices: list[str], seed: int, first: int, end: int) -> dict[int, str]:
    """The cases from `first` to before `end` that two devices answer in different ways: number -> what differs."""
    one, other = ({case["case"]: case for case in cases} for cases in at_once(lambda *job: record(*job, seed, first, end), devices))
    found = {}
    for number in range(first, end):
        a, b = one.get(number), other.get(number)
        text = difference(a, b) if a and b else "a device did not answer"
        if text:
            found[number] = text.replace("{one}", devices[0]).replace("{other}", devices[1])
    return found


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("devices", nargs="*", choices=[*DEVICES, []], help="which devices")
    parser.add_argument("--compare", action="store_true", help="try no rules")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    devices = arguments.devices or list(DEVICES)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    broken = 0
    judged = [] if arguments.compare else devices
    for device, verdicts in zip(judged, at_once(judge, judged), strict=True):
        confirm(device, verdicts)
        results[device] = {verdict["rule"]: verdict for verdict in verdicts}
        failed = [v for v in verdicts if v["outcome"] == "fail"]
        broken += len(failed)
        print(f"{device}: {sum(v['outcome'] == 'ok' for v in verdicts)} rules kept, {len(failed)} broken")
        for verdict in failed:
            print(f"  {verdict['rule']}: {verdict['detail']}")
    if len(devices) == 2 and arguments.cases:
        found = compare(devices, arguments)
        broken += len(found)
        print(f"{devices[0]} and {devices[1]}: {len(found)} of {arguments.cases} cases are answered in different ways")
        outcome = {"rule": DIFFERENTIAL, "outcome": "fail" if found else "ok", "detail": f"{len(found)} cases"}
        for device in devices:
            results.setdefault(device, {})[DIFFERENTIAL] = outcome
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1))
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
