# SPDX-License-Identifier: Apache-2.0
"""A ping-pong of two MPI processes (programs/mpi_ping_pong.c). Debian has no OSU benchmarks."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from peers.peer import BUILT, NotMeasured, Peer, output, program

SOURCE = Path(__file__).parent / "programs" / "mpi_ping_pong.c"
COUNT = 10_000
# The two processes are all there is here: no hosts, no user to ask.
LOCAL = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@dataclass(frozen=True)
class OpenMpi(Peer):
    """Messages of 8 bytes."""

    transport: tuple[str, ...]
    name: ClassVar[str] = "Open MPI"
    source: ClassVar[str] = "Debian libopenmpi-dev"

    def version(self) -> str:
        """Of mpirun."""
        found = re.search(r"\(Open MPI\) (\S+)", output([program("mpirun"), "--version"], LOCAL))
        if found is None:
            raise NotMeasured("mpirun is not that of Open MPI")
        return found[1]

    def run(self) -> float:
        """The median round trip."""
        built = BUILT / "mpi_ping_pong"
        if not built.exists() or built.stat().st_mtime < SOURCE.stat().st_mtime:
            BUILT.mkdir(parents=True, exist_ok=True)
            output([program("mpicc"), "-O2", "-o", str(built), str(SOURCE)])
        bind = ["--bind-to", "core" if (os.cpu_count() or 1) > 1 else "none", "--oversubscribe"]
        return float(output([program("mpirun"), "-np", "2", *bind, *self.transport, str(built), str(COUNT)], LOCAL))


def _by(*transports: str) -> tuple[str, ...]:
    return ("--mca", "pml", "ob1", "--mca", "btl", ",".join(("self", *transports)), "--mca", "btl_tcp_if_include", "lo")


TCP = OpenMpi("mpi_tcp", "MPI_Send and MPI_Recv of 8 bytes over TCP", _by("tcp"))
SHARED_MEMORY = OpenMpi("mpi_shared_memory", "the same by shared memory", _by("vader"))
