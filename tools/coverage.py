# SPDX-License-Identifier: Apache-2.0
"""Which lines and branches of the RTL the unit tests execute, and which signals they see rise and fall.

    python tools/coverage.py [--report] [PYTEST ARGUMENTS]        default: all unit tests

Prints a table by file and the lines with something that no test reached, and writes them to build/coverage.md; with --report
also into docs/explanation/coverage.md. Simulators with coverage are built apart (build/cocotb_coverage); all of them take about an
hour.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import page

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "coverage"
OUTPUT = ROOT / "build" / "coverage.md"
PAGE = ROOT / "docs" / "explanation" / "coverage.md"
# Simulators that count take several times as long.
UNIT_TESTS = ["rtl", "--ignore=rtl/shell", "--ignore-glob=*/formal/*", "--timeout=1800"]

# Hits of each point: its line, and what is counted there.
Counts = dict[tuple[int, str], int]


def points(file: Path) -> Iterator[tuple[str, str, int, str, int]]:
    """File, kind (line or toggle), line, what, hits: the entries of a coverage.dat of Verilator."""
    for text in file.read_text(encoding="latin-1").splitlines():
        if match := re.fullmatch(r"C '(.*)' (\d+)", text):
            fields = dict(part.split("\x02", 1) for part in match[1].split("\x01") if "\x02" in part)
            kind = "toggle" if "toggle" in fields.get("page", "") else "line"
            yield fields["f"], kind, int(fields["l"]), fields.get("n", "") + fields.get("o", ""), int(match[2])


def main() -> None:
    """Command line."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    environment = {**os.environ, "NACELLE_COVERAGE": str(FOLDER)}
    arguments = [argument for argument in sys.argv[1:] if argument != "--report"]
    arguments = arguments or [*UNIT_TESTS, "-n", str(os.cpu_count() or 1)]
    status = subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments], cwd=ROOT, env=environment).returncode

    hits: dict[str, dict[str, Counts]] = defaultdict(lambda: {"line": defaultdict(int), "toggle": defaultdict(int)})
    for file in FOLDER.glob("*.dat"):
        for source, kind, line, what, count in points(file):
            path = Path(source)
            if path.is_relative_to(ROOT / "rtl") and not {"test", "formal"} & set(path.parts):
                hits[str(path.relative_to(ROOT))][kind][line, what] += count
    if not hits:
        sys.exit("no test has left anything: did they run?")

    rows, missed = [], []
    total = {"line": [0, 0], "toggle": [0, 0]}
    for name, kinds in sorted(hits.items()):
        cells = []
        for kind, found in kinds.items():
            reached = sum(count > 0 for count in found.values())
            total[kind] = [total[kind][0] + reached, total[kind][1] + len(found)]
            cells.append(f"{100 * reached / len(found):.0f} %" if found else "")
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
        lines = sorted({line for (line, _), count in kinds["line"].items() if count == 0})
        if lines:
            missed.append(f"* `{name}`: {', '.join(map(str, lines))}")
    sums = " | ".join(f"{100 * reached / max(1, count):.1f} %" for reached, count in total.values())
    table = ["| file | lines and branches | toggles |", "| --- | --- | --- |", *rows, f"| all | {sums} |"]
    text = "\n".join([*table, "", "Lines with a statement or a branch that no unit test reached:", "", *(missed or ["None."]), ""])
    OUTPUT.write_text(text)
    print(text)
    if "--report" in sys.argv[1:]:
        page.replace(PAGE, "coverage", text)
    sys.exit(status)


if __name__ == "__main__":
    main()
