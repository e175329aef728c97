# SPDX-License-Identifier: Apache-2.0
"""Peers in Rust: a call of tonic and a stream of quinn (the crate in rust/, which is in no workspace)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import median
from typing import ClassVar

from peers.peer import BUILT, NotMeasured, Peer, output, server

PROGRAM = BUILT / "peers" / "release" / "nacelle-bench-peers"
CALLS = "5000"
STREAM = 256 << 20


def _program() -> str:
    if not PROGRAM.exists():
        raise NotMeasured(f"{PROGRAM.name} is not built: make setup-bench")
    return str(PROGRAM)


def _version(crate: str) -> str:
    return json.loads(output([_program(), "version"]))[crate]


@dataclass(frozen=True)
class Tonic(Peer):
    """A unary call that returns its 8 bytes."""

    name: ClassVar[str] = "tonic (gRPC)"
    source: ClassVar[str] = "crates.io tonic"

    def version(self) -> str:
        """Of the crate."""
        return _version("tonic")

    def run(self) -> float:
        """The median round trip."""
        with server([_program(), "tonic-server"]) as port:
            return median(json.loads(output([_program(), "tonic-client", str(port), CALLS], processor=0)))


@dataclass(frozen=True)
class Quinn(Peer):
    """One stream."""

    name: ClassVar[str] = "quinn (QUIC)"
    source: ClassVar[str] = "crates.io quinn"

    def version(self) -> str:
        """Of the crate."""
        return _version("quinn")

    def run(self) -> float:
        """Bytes a second."""
        with server([_program(), "quinn-server"]) as port:
            return STREAM / float(output([_program(), "quinn-client", str(port), str(STREAM)], processor=0))


CALL = Tonic("tonic", "unary call of 8 bytes over TCP")
QUIC = Quinn("quinn", f"one stream of {STREAM >> 20} MiB, encrypted")
