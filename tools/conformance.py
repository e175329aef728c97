#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges devices by the conformance suite: starts each on a wire of its own and tries every rule of the transport on it.

    python tools/conformance.py [rtl] [soft]          (default: both)

Writes build/conformance.json: device -> rule -> {outcome, detail, ...}. Needs nacelle and nacelle-conformance in
host/target/release, or in $NACELLE_PROGRAMS, and for `rtl` the simulated device (make host sim).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = Path(os.environ.get("NACELLE_PROGRAMS", ROOT / "host" / "target" / "release"))
RESULTS = ROOT / "build" / "conformance.json"
ADDRESS = "10.77.0.2"
DEVICES = {"rtl": [], "soft": ["--soft"]}
START_S = 30
SUITE_S = 600


def judge(device: str) -> list[dict[str, Any]]:
    """The verdict of every rule on a device that this function starts and ends."""
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
            suite = subprocess.run(
                [PROGRAMS / "nacelle-conformance", ADDRESS, "--wire", folder, "--json"],
                stdout=subprocess.PIPE, text=True, timeout=SUITE_S,
            )  # fmt: skip
            if suite.returncode not in (0, 1):
                sys.exit(f"the suite could not judge the {device} device")
            return json.loads(suite.stdout)
        finally:
            process.terminate()
            process.wait(10)


def main() -> None:
    """Command line."""
    devices = sys.argv[1:] or list(DEVICES)
    unknown = set(devices) - set(DEVICES)
    if unknown:
        sys.exit(f"no such device: {', '.join(sorted(unknown))}; there are {', '.join(DEVICES)}")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    broken = 0
    for device in devices:
        verdicts = judge(device)
        results[device] = {verdict["rule"]: verdict for verdict in verdicts}
        failed = [v for v in verdicts if v["outcome"] == "fail"]
        broken += len(failed)
        print(f"{device}: {sum(v['outcome'] == 'ok' for v in verdicts)} rules kept, {len(failed)} broken")
        for verdict in failed:
            print(f"  {verdict['rule']}: {verdict['detail']}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1))
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
