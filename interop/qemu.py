# SPDX-License-Identifier: Apache-2.0
"""Fetches a QEMU that can be a client of vfio-user, which QEMU is from 10.1 on: newer than that of many distributions.

    python interop/qemu.py

Packages of a newer Debian are unpacked into build/interop/qemu, with the C library that they need; nothing else on the machine
changes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from image import BUILD, Apt, ImageError, digest, run, say

FOLDER = BUILD / "qemu"
SUITES = ("trixie", "trixie-backports")
PACKAGES = ["qemu-system-x86"]
LIBRARIES = "usr/lib/x86_64-linux-gnu"


@dataclass(frozen=True)
class Qemu:
    """What was fetched."""

    root: Path

    @property
    def command(self) -> list[str]:
        """What starts it: its own loader, since this machine's C library may be older."""
        libraries = self.root / LIBRARIES
        return [
            str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries),
            str(self.root / "usr/bin/qemu-system-x86_64"),
            "-L", str(self.root / "usr/share/qemu"), "-L", str(self.root / "usr/share/seabios"),
        ]  # fmt: skip

    @property
    def environment(self) -> dict[str, str]:
        """With where it finds its modules."""
        return {**os.environ, "QEMU_MODULE_DIR": str(self.root / LIBRARIES / "qemu")}


def build() -> Qemu:
    """Fetches what is missing. Two processes that want it fetch it once. Raises ImageError if that fails."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp, root = FOLDER / "stamp", FOLDER / "root"
        wanted = digest(*SUITES, *PACKAGES)
        if not stamp.exists() or stamp.read_text() != wanted:
            say(f"fetching QEMU of Debian {SUITES[-1]}")
            for folder in (FOLDER / "apt", root):
                shutil.rmtree(folder, ignore_errors=True)
            root.mkdir()
            apt = Apt(FOLDER / "apt", *SUITES)
            apt.update()
            apt.unpack(PACKAGES, root)
            stamp.write_text(wanted)
        qemu = Qemu(root)
        run(*qemu.command, "-device", "vfio-user-pci,help", env=qemu.environment)
        return qemu


if __name__ == "__main__":
    try:
        print(*build().command)
    except ImageError as error:
        sys.exit(f"cannot fetch QEMU: {error}")
