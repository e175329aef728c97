# SPDX-License-Identifier: Apache-2.0
"""The status table, from the results of the tests.

    python tools/status.py           write it into README.md and docs/status.md
    python tools/status.py --check   fail if what stands there is more than the tests say

docs/features.toml names the claims and, for each, the tests that show it. A claim holds ("works") if there are tests and all
passed; how many there are, and how many of them were skipped, stands beside it. Claims without tests are of what does not exist
yet.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

import page

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("passed", "failed", "skipped")


def verdict(patterns: list[str], results: dict[str, set[str]], name: str) -> str:
    """The row's last two columns: works, fails (which), skipped, or not yet; and the number of tests."""
    if not patterns:
        return "not yet | "
    found: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for pattern in patterns:
        expression = re.compile(pattern)
        matches = {kind: {test for test in results[kind] if expression.search(test)} for kind in KINDS}
        if not any(matches.values()):
            sys.exit(f"docs/features.toml: {name}: no test matches {pattern!r}")
        for kind in KINDS:
            found[kind] |= matches[kind]
    status = f"**fails**: {', '.join(sorted(found['failed']))}" if found["failed"] else "works" if found["passed"] else "skipped"
    skipped = f", {len(found['skipped'])} skipped" if found["skipped"] else ""
    return f"{status} | {len(found['passed']) + len(found['failed'])}{skipped}"


def table() -> str:
    """Markdown."""
    results = json.loads((ROOT / "build" / "test-results.json").read_text())
    by_kind = {kind: {test for step in results.values() for test in step[kind]} for kind in KINDS}
    lines = ["| claim | status | tests |", "| --- | --- | --- |"]
    for feature in tomllib.loads((ROOT / "docs" / "features.toml").read_text())["feature"]:
        lines.append(f"| {feature['name']} | {verdict(feature.get('tests', []), by_kind, feature['name'])} |")
    return "\n".join(lines)


def rows(text: str) -> list[tuple[str, str, int]]:
    """Claim, status and number of tests of each row of a table."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.strip().splitlines()[2:]]
    return [(claim, status, int(count.split(",")[0] or 0)) for claim, status, count in cells]


def holds(stated: str, found: str) -> bool:
    """The same claims with the same status, and no test less than stated."""
    pairs = zip(rows(stated), rows(found), strict=False)
    return len(rows(stated)) == len(rows(found)) and all(a[:2] == b[:2] and a[2] <= b[2] for a, b in pairs)


def main() -> None:
    """Command line."""
    text = table()
    for path in (ROOT / "README.md", ROOT / "docs" / "status.md"):
        if sys.argv[1:] != ["--check"]:
            page.replace(path, "status", text)
        elif not holds(page.section(path, "status"), text):
            sys.exit(f"{path.relative_to(ROOT)}: the status table is not what the tests say: run tools/status.py")


if __name__ == "__main__":
    main()
