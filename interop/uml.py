# SPDX-License-Identifier: Apache-2.0
"""Fetches User-mode Linux and what a guest of it runs: a kernel that is an ordinary program, without KVM and without root.

    python interop/uml.py

Packages of one Debian suite are unpacked into build/interop/uml; nothing else on the machine changes. A guest needs no image: its
root is this machine's, which `nacelle nic` arranges.
"""

from __future__ import annotations

import fcntl
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from image import BUILD, SUITE, Apt, ImageError, digest, run, say

FOLDER = BUILD / "uml"
# The kernel with its modules; insmod of busybox; programs, with the libraries that no machine needs to have.
PACKAGES = "user-mode-linux busybox-static iperf3 libiperf0 libsctp1 libssl3 ethtool libmnl0".split()
# Programs that go before those of the machine, and where they find their libraries.
PROGRAMS = ("usr/bin", "usr/sbin", "sbin", "bin")
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")


@dataclass(frozen=True)
class UserModeLinux:
    """What was fetched."""

    root: Path

    @property
    def kernel(self) -> Path:
        """The kernel, as `nacelle nic --linux` takes it."""
        return self.root / "usr/bin/linux.uml"

    def script(self, *lines: str) -> str:
        """A shell script for the guest, which finds the programs."""
        programs = ":".join(str(self.root / folder) for folder in PROGRAMS)
        libraries = ":".join(str(self.root / folder) for folder in LIBRARIES)
        return "\n".join([f"export PATH=$PATH:{programs} LD_LIBRARY_PATH={libraries}", *lines, ""])


def build() -> UserModeLinux:
    """Fetches what is missing. Two processes that want it fetch it once. Raises ImageError if that fails."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp, root = FOLDER / "stamp", FOLDER / "root"
        wanted = digest(SUITE, *PACKAGES)
        if not stamp.exists() or stamp.read_text() != wanted:
            say(f"fetching User-mode Linux of Debian {SUITE}")
            debs = FOLDER / "debs"
            for folder in (debs, root):
                shutil.rmtree(folder, ignore_errors=True)
            debs.mkdir()
            apt = Apt(BUILD / "apt")
            apt.update()
            apt.download(PACKAGES, debs)
            for deb in sorted(debs.glob("*.deb")):
                run("dpkg-deb", "-x", deb, root)
            stamp.write_text(wanted)
        return UserModeLinux(root)


if __name__ == "__main__":
    try:
        print(build().kernel)
    except ImageError as error:
        sys.exit(f"cannot fetch User-mode Linux: {error}")
