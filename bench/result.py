# SPDX-License-Identifier: Apache-2.0
"""One measured figure, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Result:
    """A figure, its goal (None: none is set) and where both come from. Names are stable. A figure that could not be measured has no
    value, but the reason."""

    name: str
    value: float | None
    unit: str
    goal: float | None
    better: str  # "higher" or "lower"
    source: str  # where the goal comes from
    how: str  # the command
    peer: tuple[str, float] | None = None
    reason: str | None = None  # why it is not measured

    @property
    def area(self) -> str:
        """rtl, host or synth."""
        return self.name.split(".")[0]

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached."""
        if self.goal is None or self.value is None:
            return None
        return self.value >= self.goal if self.better == "higher" else self.value <= self.goal

    def line(self) -> str:
        """For the table."""
        if self.value is None:
            return f"{self.name:44}not measured: {self.reason}"
        goal = "" if self.goal is None else f"{'>=' if self.better == 'higher' else '<='} {_number(self.goal)}"
        met = {True: "yes", False: "NO ", None: "   "}[self.met]
        peer = f"{self.peer[0]}: {_number(self.peer[1])}" if self.peer else ""
        return f"{self.name:44}{_number(self.value):>12} {self.unit:14}{goal:>12}  {met}  {peer}"

    def record(self) -> dict[str, Any]:
        """For the results file."""
        return {
            "name": self.name,
            "area": self.area,
            "value": self.value,
            "unit": self.unit,
            "goal": self.goal,
            "better": self.better,
            "met": self.met,
            "peer": {"name": self.peer[0], "value": self.peer[1]} if self.peer else None,
            "source": self.source,
            "how": self.how,
            "reason": self.reason,
        }


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"
