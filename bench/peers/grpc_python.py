# SPDX-License-Identifier: Apache-2.0
"""A unary call of gRPC in Python (programs/grpc_echo.py), in an environment of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import ClassVar

from peers.peer import BUILT, NotMeasured, Peer, output, server

SOURCE = str(Path(__file__).parent / "programs" / "grpc_echo.py")
PYTHON = BUILT / "venv" / "bin" / "python"
COUNT = "2000"


@dataclass(frozen=True)
class GrpcPython(Peer):
    """A call that returns its 8 bytes."""

    name: ClassVar[str] = "gRPC for Python"
    source: ClassVar[str] = "PyPI grpcio"

    def version(self) -> str:
        """Of grpcio."""
        if not PYTHON.exists():
            raise NotMeasured("grpcio is not installed: make setup-bench")
        return output([str(PYTHON), "-c", "import grpc; print(grpc.__version__)"]).strip()

    def run(self) -> float:
        """The median round trip."""
        if not PYTHON.exists():
            raise NotMeasured("grpcio is not installed: make setup-bench")
        with server([str(PYTHON), SOURCE, "server"]) as port:
            return median(json.loads(output([str(PYTHON), SOURCE, "client", str(port), COUNT], processor=0)))


CALL = GrpcPython("grpc_python", "unary call of 8 bytes over TCP")
