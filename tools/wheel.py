# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel of the Python package `nacelle` into a folder and prints its path.

python tools/wheel.py [--profile dev|release] [--out FOLDER]    release, build/wheel

It shares host/target with every other build of the host software.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CRATE = ROOT / "host" / "nacelle-python"


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Two builds at once would get in each other's way in host/target/maturin: the second waits."""
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / ".wheel-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(out: Path, profile: str) -> Path:
    """Builds the wheel; what else is in the folder goes."""
    shutil.rmtree(out, ignore_errors=True)
    maturin = Path(sysconfig.get_path("scripts")) / "maturin"
    # The tag of the wheel says the oldest glibc that it runs with, as maturin finds it.
    command = [str(maturin), "build", "--quiet", "--locked", "--profile", profile, "--out", str(out)]
    command += ["--manifest-path", str(CRATE / "Cargo.toml")]
    environment = {key: value for key, value in os.environ.items() if key != "CARGO_TARGET_DIR"}
    with alone():
        subprocess.run(command, check=True, env=environment)
    (wheel,) = out.glob("*.whl")
    return wheel


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", choices=["dev", "release"], default="release")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "wheel")
    arguments = parser.parse_args()
    wheel = build(arguments.out, arguments.profile)
    print(wheel.relative_to(Path.cwd()) if wheel.is_relative_to(Path.cwd()) else wheel)
    print(f"{wheel.stat().st_size / 1e6:.1f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
