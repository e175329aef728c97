#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks for undefined behaviour and data races in the host software, by tools that see them.

    python tools/sanitize.py [--list] [STEP ...]

    miri     the unsafe code of nacelle-memory, and of the edge of the C library, interpreted
    loom     the parts that threads share, in every order of their threads
    threads  the client library's tests under ThreadSanitizer, with the standard library instrumented as well

`miri` and `threads` take a nightly toolchain with components of its own, which rustup installs beside the others.
Everything is built in build/sanitize. Exit status 1 if a step failed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from steps import asked_for

ROOT = Path(__file__).resolve().parents[1]
NIGHTLY = ["cargo", "+nightly", "--locked"]
TARGET = "x86_64-unknown-linux-gnu"

# Does nothing if all of it is there.
SET_UP = ["rustup", "toolchain", "install", "nightly", "--profile", "minimal", "--component", "miri,rust-src"]

Command = tuple[list[str], dict[str, str]]

STEPS: dict[str, list[Command]] = {
    "miri": [
        ([*NIGHTLY, "miri", "test", "-p", "nacelle-memory"], {}),
        # The edge does not drop what a panic has thrown, as that could panic again.
        ([*NIGHTLY, "miri", "test", "-p", "nacelle-capi", "--lib"], {"MIRIFLAGS": "-Zmiri-ignore-leaks"}),
    ],
    "loom": [
        (["cargo", "--locked", "test", "-p", package, "--lib", "loom_tests"], {"RUSTFLAGS": "--cfg loom"})
        for package in ("nacelle-memory", "nacelle")
    ],
    "threads": [
        (
            [*NIGHTLY, "test", "-Zbuild-std", "--target", TARGET, "-p", "nacelle", "--lib", "--tests"],
            {"RUSTFLAGS": "-Zsanitizer=thread"},
        ),
    ],
}


def run(step: str) -> bool:
    """One step; whether all of its commands succeed."""
    if any(command[: len(NIGHTLY)] == NIGHTLY for command, _ in STEPS[step]):
        if not shutil.which("rustup"):
            print(f"\n==> {step}: needs a nightly toolchain, and rustup (https://rustup.rs) to install it", flush=True)
            return False
        if subprocess.run(SET_UP).returncode != 0:
            return False
    for command, environment in STEPS[step]:
        print(
            f"\n==> {step}: {' '.join(f'{name}={value!r}' for name, value in environment.items())} {' '.join(command)}", flush=True
        )
        # Each step has flags of its own, and so a folder of its own.
        folder = ROOT / "build" / "sanitize" / step
        environment = {**os.environ, **environment, "CARGO_TARGET_DIR": str(folder)}
        if subprocess.run(command, cwd=ROOT / "host", env=environment).returncode != 0:
            return False
    return True


def main() -> None:
    """Command line."""
    asked = asked_for(__doc__, STEPS)
    failed = []
    for step in asked or STEPS:
        begin = time.monotonic()
        if not run(step):
            failed.append(step)
        print(f"    {step}: {'FAILED' if step in failed else 'ok'} in {time.monotonic() - begin:.0f} s", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
