# SPDX-License-Identifier: Apache-2.0
"""The tests of one unit, by its name: from an edit to a verdict in the time that one module takes to build.

    python tools/unit.py roce_cm [--test REGEX] [PYTEST-ARGUMENT ...]

A unit is a module of rtl/ with tests of its own (test_<unit>.py, or a test that builds it) or a part of tests/. At 64 bits unless
$NACELLE_WIDTHS says otherwise, or in the first of the builds that its test lists. --test runs only the cocotb tests whose names
match; a test file that builds several benches chooses tests for each itself, so name one of its pytest tests, too: -k roce_cm-64.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def tests() -> list[Path]:
    """Every test file."""
    return sorted([*(ROOT / "rtl").rglob("test_*.py"), *(ROOT / "tests").glob("test_*.py")])


def files_of(unit: str) -> list[Path]:
    """Those that test the unit: by their own name, or because they build a module of that name."""
    built = re.compile(rf"\brun\(\s*[\"']{re.escape(unit)}[\"']")
    return [path for path in tests() if path.stem == f"test_{unit}" or built.search(path.read_text())]


def known() -> list[str]:
    """Names that can be given."""
    names = {path.stem.removeprefix("test_") for path in tests()}
    for path in tests():
        names |= set(re.findall(r"\brun\(\s*[\"'](\w+)[\"']", path.read_text()))
    return sorted(names)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("unit", nargs="?", help="as in UNIT=roce_cm; without, the units are listed")
    parser.add_argument("--test", metavar="REGEX", help="these cocotb tests only")
    arguments, rest = parser.parse_known_args()
    if not arguments.unit:
        print("\n".join(known()))
        return
    files = files_of(arguments.unit)
    if not files:
        near = difflib.get_close_matches(arguments.unit, known())
        sys.exit(
            f"error: no test of a unit {arguments.unit}"
            + (f"; there are {', '.join(near)}" if near else "; `make unit` lists them")
        )
    os.environ.setdefault("NACELLE_WIDTHS", "64")
    os.environ.setdefault("NACELLE_UNIT", "1")
    if arguments.test:
        os.environ["COCOTB_TEST_FILTER"] = arguments.test
    # -s: a person watches.
    command = [sys.executable, "-m", "pytest", "-q", "-s", *map(str, files), *rest]
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
