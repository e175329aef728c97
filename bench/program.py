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


def build(example: str) -> str:
    """Builds this example of `nacelle-device`, and gives its path."""
    command = ["cargo", "build", "--locked", "--release", "--quiet", "-p", "nacelle-device", "--example", example]
    if subprocess.run(command, cwd=HOST).returncode:
        sys.exit(f"the benchmark {example} could not be built: see above")
    return str(HOST / "target" / "release" / "examples" / example)


def samples(example: str) -> dict[str, Any]:
    """What this example prints."""
    try:
        done = subprocess.run([build(example)], stdout=subprocess.PIPE, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        sys.exit(f"the benchmark {example} did not end within {SECONDS} s")
    if done.returncode:
        sys.exit(f"the benchmark {example} failed with status {done.returncode}: see above")
    return json.loads(done.stdout)
