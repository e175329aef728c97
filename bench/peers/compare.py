# SPDX-License-Identifier: Apache-2.0
"""Ours beside a peer's, in turns: what else the machine does falls on both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from peers.peer import NotMeasured, Peer

ROUNDS = 5


@dataclass(frozen=True)
class Comparison:
    """The median of the ratios of each round, and the median of each side."""

    ratio: float  # ours over the peer's
    ours: float
    peer: float
    title: str


def compare(ours: Callable[[], float], peer: Peer, rounds: int = ROUNDS) -> Comparison:
    """Measures both in turn. Raises NotMeasured if the peer cannot be."""
    title = peer.title()
    pairs = []
    for number in range(rounds):
        # Who is first changes.
        if number % 2:
            pairs.append((ours(), peer.run()))
        else:
            other = peer.run()
            pairs.append((ours(), other))
    if any(there <= 0 for _, there in pairs):
        raise NotMeasured(f"{peer.name} gives no figure above 0")
    ratios = [here / there for here, there in pairs]
    return Comparison(median(ratios), median(here for here, _ in pairs), median(there for _, there in pairs), title)
