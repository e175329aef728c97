# SPDX-License-Identifier: Apache-2.0
"""Fetches DPDK's test program, whose driver net_virtio_user is a front end of vhost-user.

    python interop/dpdk.py

Packages of Debian are unpacked into build/interop/dpdk, with the C library that they need; nothing else on the machine changes.
"""

from __future__ import annotations

import fcntl
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from image import BUILD, Apt, ImageError, digest, say

FOLDER = BUILD / "dpdk"
SUITE = "bookworm"
PACKAGES = ["dpdk-dev", "librte-net-virtio23", "librte-mempool-ring23"]
LIBRARIES = "usr/lib/x86_64-linux-gnu"
DRIVERS = "dpdk/pmds-23.0"


@dataclass(frozen=True)
class Dpdk:
    """What was fetched."""

    root: Path

    def testpmd(self, *of_environment: str) -> list[str]:
        """What starts dpdk-testpmd with these options of its environment layer: by its own loader, since this machine's C library
        may be older. It needs no huge pages and no devices of this machine."""
        libraries = self.root / LIBRARIES
        paths = f"{libraries}:{self.root / 'lib/x86_64-linux-gnu'}"
        return [
            str(self.root / "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"), "--library-path", paths,
            str(self.root / "usr/bin/dpdk-testpmd"),
            "--no-huge", "-m", "256", "--no-pci", "--no-telemetry", "-d", str(libraries / DRIVERS), *of_environment,
        ]  # fmt: skip


def build() -> Dpdk:
    """Fetches what is missing. Two processes that want it fetch it once. Raises ImageError if that fails."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp, root = FOLDER / "stamp", FOLDER / "root"
        wanted = digest(SUITE, *PACKAGES)
        if not stamp.exists() or stamp.read_text() != wanted:
            say(f"fetching DPDK of Debian {SUITE}")
            for folder in (FOLDER / "apt", root):
                shutil.rmtree(folder, ignore_errors=True)
            root.mkdir()
            apt = Apt(FOLDER / "apt", SUITE)
            apt.update()
            apt.unpack(PACKAGES, root)
            stamp.write_text(wanted)
        return Dpdk(root)


if __name__ == "__main__":
    try:
        print(*build().testpmd())
    except ImageError as error:
        sys.exit(f"cannot fetch DPDK: {error}")
