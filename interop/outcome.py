# SPDX-License-Identifier: Apache-2.0
"""What the checks found, and its Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """One cell of a table."""

    table: str
    row: str
    column: str
    passed: bool
    detail: str = ""
    """Why it failed."""


def unique(names: Iterable[str]) -> list[str]:
    """Names in the order in which they first come."""
    return list(dict.fromkeys(names))


def markdown_table(outcomes: list[Outcome]) -> str:
    """Rows and columns in the order in which they first come; empty where nothing was checked."""
    columns = unique(outcome.column for outcome in outcomes)
    cells = {(outcome.row, outcome.column): "ok" if outcome.passed else "**FAIL**" for outcome in outcomes}
    lines = [f"| | {' | '.join(columns)} |", f"| --- |{' --- |' * len(columns)}"]
    for row in unique(outcome.row for outcome in outcomes):
        lines.append(f"| {row} | {' | '.join(cells.get((row, column), '') for column in columns)} |")
    return "\n".join(lines)


def markdown_failures(outcomes: list[Outcome]) -> str:
    """Why what failed: a line for each reason, with the rows and columns that failed for it."""
    columns: dict[tuple[str, str], list[str]] = {}
    for outcome in outcomes:
        if not outcome.passed:
            columns.setdefault((outcome.detail, outcome.row), []).append(outcome.column)
    rows: dict[tuple[str, str], list[str]] = {}
    for (detail, row), where in columns.items():
        rows.setdefault((detail, "; ".join(where)), []).append(row)
    return "\n".join(f"* {detail}: {', '.join(names)} ({where})" for (detail, where), names in rows.items())
