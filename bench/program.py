# SPDX-License-Identifier: Apache-2.0
"""Runs a benchmark program of the host software and takes its samples."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HOST = Path(__file__).resolve().parents[1] / "host"
SECONDS = 300


def samples(example: str) -> dict[str, Any]:
    """What this example of `nacelle-device` prints."""
    program = ["--locked", "--release", "--quiet", "-p", "nacelle-device", "--example", example]
    if subprocess.run(["cargo", "build", *program], cwd=HOST).returncode:
        sys.exit(f"the benchmark {example} could not be built: see above")
    try:
        done = subprocess.run(["cargo", "run", *program], cwd=HOST, stdout=subprocess.PIPE, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        sys.exit(f"the benchmark {example} did not end within {SECONDS} s")
    if done.returncode:
        sys.exit(f"the benchmark {example} failed with status {done.returncode}: see above")
    return json.loads(done.stdout)
