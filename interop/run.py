# SPDX-License-Identifier: Apache-2.0
"""Holds Nacelle against Linux' soft-RoCE in QEMU guests, and writes what works to docs/reference/interoperability.md.

    python interop/run.py            everything: some ten minutes
    python interop/run.py --quick    a part of it in less than three minutes, without writing the page
    python interop/run.py --only tools    some steps, by their names

Captures of all devices and what every program said are in build/interop/logs. Exit status: 0 if all has passed, 1 if not, 2 if
nothing could be run.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import checks
from guest import Guest, GuestError
from image import BUILD, ROOT, Image, ImageError, build
from outcome import Outcome, markdown_failures, markdown_table
from wire import Programs, Wire, WireError

PAGE = ROOT / "docs" / "reference" / "interoperability.md"
HOST = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "host" / "target")) / "release"
LOSS = 1.0
QUICK = ["connect", "connect-refused-port", "disconnect-*", "regions-*", "call-*", "write-[01]", "write-mtu*", "write-imm-mtu*",
         "write-outstanding", "read-[01]", "read-mtu*", "read-outstanding", "read-fence", "fetch-add", "compare-swap",
         "atomics-outstanding", "error-*"]  # fmt: skip
QUICK_WITH_LOSS = ["write-outstanding", "read-outstanding", "atomics-outstanding", "call-*"]


def plan(wire: Wire, small: Guest, large: Guest, quick: bool) -> Iterator[tuple[str, Iterator[Outcome]]]:
    """Every step by its name. `small` and `large` are guests with MTUs of 1500 and 4200."""
    guests = (small,) if quick else (small, large)
    patterns = QUICK if quick else ["*"]
    for kind in (checks.SOFT, checks.RTL):
        for guest in guests:
            for loss in (0, LOSS):
                # Loss costs seconds of waiting for each frame; a few cases show what the others would.
                chosen = QUICK_WITH_LOSS if quick and loss else patterns
                yield f"{kind.name}-mtu{guest.mtu}-loss{loss:g}", checks.device(wire, guest, kind, loss, chosen)
    if not quick:
        yield "linux", checks.linux(small, large, patterns)
    for loss in (0, LOSS):
        sizes = (1, 100_000) if quick else (1, 1000, 100_000, 4 << 20)
        yield f"callers-loss{loss:g}", checks.callers(wire, small, loss, sizes, conformance=not quick and not loss)
    for guest in guests:
        for loss in (0, LOSS):
            yield f"tools-mtu{guest.mtu}-loss{loss:g}", checks.linux_programs(wire, guest, loss, quick)


def versions(image: Image, guest: Guest) -> str:
    """What the guest is made of."""
    kernel = guest.run("uname -rv").output.strip()
    qemu = re.sub(r"^QEMU emulator version (\S+).*", r"\1", guest.qemu_version())
    tools = ", ".join(f"{name} {image.versions[package]}" for name, package in
                      {"rdma-core": "libibverbs1", "librdmacm": "librdmacm1", "perftest": "perftest"}.items())  # fmt: skip
    return f"Linux {kernel} (rdma_rxe), {tools}, under QEMU {qemu}"


def page(outcomes: list[Outcome], made_with: str, command: str) -> str:
    """The whole Markdown page."""
    passed = sum(outcome.passed for outcome in outcomes)
    parts = [
        "# Interoperability with Linux",
        "What Linux' soft-RoCE and Nacelle do together. [How to](../how-to/interoperate-with-linux.md) runs it and adds to it.",
        f"`{command}` made this page on {datetime.date.today()}: {passed} of {len(outcomes)} checks passed. {made_with}.",
        "With loss, each frame is lost with the given probability in each direction at Nacelle's end of the wire.",
    ]
    for table, about in checks.TABLES.items():
        own = [outcome for outcome in outcomes if outcome.table == table]
        if own:
            parts += [f"## {table}", about, markdown_table(own)]
            if failures := markdown_failures(own):
                parts += ["What failed:", failures]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a part of it, without writing the page")
    parser.add_argument("--only", metavar="TEXT", default="", help="steps with this in their name, without writing the page")
    parser.add_argument("--programs", type=Path, default=HOST, metavar="FOLDER", help="where the host software is [%(default)s]")
    arguments = parser.parse_args()
    outcomes: list[Outcome] = []
    try:
        image = build()
        with Wire(Programs(arguments.programs), BUILD / "logs") as wire:
            small = Guest(image, wire.folder, "small", "10.77.1.1/16", mtu=1500)
            large = Guest(image, wire.folder, "large", "10.77.1.2/16", mtu=4200)
            with small, large:
                made_with = versions(image, small)
                for name, step in plan(wire, small, large, arguments.quick):
                    if arguments.only in name:
                        begin = time.monotonic()
                        new = list(step)
                        outcomes += new
                        good = sum(outcome.passed for outcome in new)
                        print(f"==> {name}: {good} of {len(new)} in {time.monotonic() - begin:.0f} s", flush=True)
                        for outcome in new:
                            if not outcome.passed:
                                print(f"    FAIL {outcome.row} ({outcome.column}): {outcome.detail}", flush=True)
    except (ImageError, GuestError, WireError) as error:
        print(f"interop: {error}", file=sys.stderr)
        sys.exit(2)
    if not arguments.quick and not arguments.only:
        PAGE.write_text(page(outcomes, made_with, "make interop"))
    failed = sum(not outcome.passed for outcome in outcomes)
    print(f"{len(outcomes) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
