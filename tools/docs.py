# SPDX-License-Identifier: Apache-2.0
"""Builds the book into docs/book and checks it: every page is in the summary and every link between pages leads somewhere.

python tools/docs.py [--check]    with --check it builds nothing
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def broken_links() -> list[str]:
    """Links of a page to a file that is not there."""
    bad = []
    for page in [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]:
        if "book" in page.relative_to(ROOT).parts:
            continue
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
            if not re.match(r"^[a-z]+:", target) and not (page.parent / target).exists():
                bad.append(f"{page.relative_to(ROOT)}: {target}")
    return bad


def pages_left_out() -> list[str]:
    """Pages that the summary does not name."""
    summary = (DOCS / "SUMMARY.md").read_text()
    pages = [p.relative_to(DOCS) for p in DOCS.rglob("*.md") if "book" not in p.relative_to(DOCS).parts]
    return [f"docs/SUMMARY.md: {page} is not in it" for page in pages if page.name != "SUMMARY.md" and str(page) not in summary]


def main() -> None:
    """Command line."""
    subprocess.run([sys.executable, str(ROOT / "rtl" / "control" / "generate.py")], check=True)
    problems = [*broken_links(), *pages_left_out()]
    if problems:
        sys.exit("\n".join(problems))
    if "--check" in sys.argv[1:]:
        return
    mdbook = Path(sys.executable).parent / "mdbook"
    if not mdbook.exists() and not shutil.which("mdbook"):
        sys.exit("mdbook is missing: run `make setup-test`")
    subprocess.run([str(mdbook if mdbook.exists() else "mdbook"), "build", str(DOCS)], check=True)


if __name__ == "__main__":
    main()
