# SPDX-License-Identifier: Apache-2.0
"""Holds Nacelle against Linux' soft-RoCE in QEMU guests, and writes what works to docs/reference/interoperability.md.

    python interop/run.py            everything: some 40 minutes
    python interop/run.py --quick    a part of it in less than three minutes, without writing the page
    python interop/run.py --only tools    some steps, by their names; the page keeps what it says of the others

The steps with NAAICE's programs need its sources, in the folder that NACELLE_NAAICE_SOURCES names; without, they are left out.

Captures of all devices and what every program said are in build/interop/logs. Exit status: 0 if all has passed, 1 if not, 2 if
nothing could be run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import active
import checks
import ipv6
import naaice
import verbs_link
from guest import Guest, GuestError
from image import BUILD, ROOT, Image, ImageError, build
from outcome import Outcome, markdown_failures, markdown_table, unique
from wire import HOST, Programs, Wire, WireError

RESULTS = BUILD / "results.json"
PAGE = ROOT / "docs" / "reference" / "interoperability.md"
LOSS = 1.0
NAAICE = "naaice"
CONGESTION = """## Congestion notification

Soft-RoCE takes no part in it. What it sends is not ECN-capable (its IP packets have a type of service of 0), so no switch marks
it, and a device never has a reason to send it a congestion notification packet (CNP). It sends no CNP for a marked packet.
A CNP that is sent to it has no effect: `nacelle-conformance --target linux` checks that neither its responses nor its own
requests change (`congestion.cnp_leaves_the_connection_intact`, `requester.cnp_is_no_acknowledgement`)."""
QUICK = ["connect", "connect-refused-port", "disconnect-*", "regions-*", "call-*", "write-[01]", "write-mtu*", "write-imm-mtu*",
         "write-outstanding", "read-[01]", "read-mtu*", "read-outstanding", "read-fence", "fetch-add", "compare-swap",
         "atomics-outstanding", "error-*"]  # fmt: skip
QUICK_WITH_LOSS = ["write-outstanding", "read-outstanding", "atomics-outstanding", "call-*"]


def plan(wire: Wire, image: Image, small: Guest, large: Guest, quick: bool) -> Iterator[tuple[str, Iterator[Outcome]]]:
    """Every step by its name. `small` and `large` are guests of `image` with MTUs of 1500 and 4200."""
    guests = (small,) if quick else (small, large)
    patterns = QUICK if quick else ["*"]
    for kind in (checks.SOFT, checks.RTL):
        for guest in guests:
            for loss in (0, LOSS):
                # Loss costs seconds of waiting for each frame; a few cases show what the others would.
                chosen = QUICK_WITH_LOSS if quick and loss else patterns
                yield f"{kind.name}-mtu{guest.mtu}-loss{loss:g}", checks.device(wire, guest, kind, loss, chosen)
        for guest in guests:
            for loss in (0,) if quick else (0, LOSS):
                yield f"active-{kind.name}-mtu{guest.mtu}-loss{loss:g}", active.active(wire, guest, kind, loss)
    for guest in guests:
        for loss in (0,) if quick else (0, LOSS):
            yield f"{ipv6.STEP}-mtu{guest.mtu}-loss{loss:g}", ipv6.ipv6(wire, guest, loss, patterns)
    if not quick:
        yield "linux", checks.linux(small, large, patterns)
    for loss in (0, LOSS):
        sizes = (1, 100_000) if quick else (1, 1000, 100_000, 4 << 20)
        yield f"callers-loss{loss:g}", checks.callers(wire, small, loss, sizes, conformance=not quick and not loss)
    for guest in guests:
        for loss in (0, LOSS):
            yield f"tools-mtu{guest.mtu}-loss{loss:g}", checks.linux_programs(wire, guest, loss, quick)
    yield verbs_link.STEP, verbs_link.verbs_link(wire, image, None if quick else small)
    if not quick:
        for loss in naaice.SIZES:
            yield f"{NAAICE}-server-loss{loss}", naaice.calls(wire, small, loss)
        yield f"{NAAICE}-clients", naaice.clients(wire, small, large)


def versions(image: Image, guest: Guest) -> str:
    """What the guest is made of."""
    kernel = guest.run("uname -rv").output.strip()
    qemu = guest.qemu_version().split()[3]
    return (
        f"Linux {kernel} (rdma_rxe), rdma-core {image.versions['libibverbs1']}, perftest {image.versions['perftest']},"
        f" under QEMU {qemu}"
    )


def page(results: dict[str, dict[str, Any]]) -> str:
    """The whole Markdown page, from the results of all steps."""
    outcomes = [Outcome(**outcome) for result in results.values() for outcome in result["outcomes"]]
    passed = sum(outcome.passed for outcome in outcomes)
    dates = sorted({result["date"] for result in results.values()})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    parts = [
        "# Interoperability with Linux",
        "Tests of Nacelle with Linux' soft-RoCE. [How to](../how-to/interoperate-with-linux.md) runs it and adds to it.",
        f"`make interop` made this page, {when}: {passed} of {len(outcomes)} checks passed. With"
        f" {'; '.join(unique(result['made_with'] for result in results.values()))}.",
        "With loss, each frame is lost with the given probability in each direction at Nacelle's end of the wire.",
    ]
    for table, about in (
        checks.TABLES | {active.TABLE: active.ABOUT, naaice.TABLE: naaice.ABOUT, verbs_link.TABLE: verbs_link.ABOUT}
    ).items():
        own = [outcome for outcome in outcomes if outcome.table == table]
        if own:
            parts += [f"## {table}", about, markdown_table(own)]
            if failures := markdown_failures(own):
                parts += ["What failed:", failures]
    return "\n\n".join([*parts, CONGESTION]) + "\n"


def record(order: list[str], new: dict[str, dict[str, Any]]) -> None:
    """Puts the results of steps in the place of their earlier ones, and writes the page."""
    earlier = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    merged = earlier | new
    results = {name: merged[name] for name in order if name in merged}
    RESULTS.write_text(json.dumps(results, indent=1))
    PAGE.write_text(page(results))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a part of it, without writing the page")
    parser.add_argument("--only", metavar="TEXT", default="", help="steps with this in their name only")
    parser.add_argument("--programs", type=Path, default=HOST, metavar="FOLDER", help="where the host software is [%(default)s]")
    arguments = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    try:
        image = build()
        with (
            Wire(Programs(arguments.programs), BUILD / "logs") as wire,
            Guest(image, wire.folder, "small", "10.77.1.1/16", mtu=1500) as small,
            Guest(image, wire.folder, "large", "10.77.1.2/16", mtu=4200) as large,
        ):
            steps = dict(plan(wire, image, small, large, arguments.quick))
            facts = {"date": str(datetime.date.today()), "made_with": versions(image, small)}
            chosen = [name for name in steps if arguments.only in name]
            if naaice.missing() and (left_out := [name for name in chosen if name.startswith(NAAICE)]):
                print(f"==> {', '.join(left_out)}: left out, {naaice.missing()}", flush=True)
                chosen = [name for name in chosen if name not in left_out]
            for name in chosen:
                results[name] = {**facts, "outcomes": [asdict(outcome) for outcome in run(name, steps[name])]}
                if not arguments.quick:
                    record(list(steps), results)
    except (ImageError, GuestError, WireError) as error:
        print(f"interop: {error}", file=sys.stderr)
        sys.exit(2)
    passed = [outcome["passed"] for result in results.values() for outcome in result["outcomes"]]
    print(f"{sum(passed)} of {len(passed)} passed")
    sys.exit(0 if passed and all(passed) else 1)


def run(name: str, step: Iterator[Outcome]) -> list[Outcome]:
    """Runs a step, and says how it went."""
    begin = time.monotonic()
    outcomes = list(step)
    good = sum(outcome.passed for outcome in outcomes)
    print(f"==> {name}: {good} of {len(outcomes)} in {time.monotonic() - begin:.0f} s", flush=True)
    for outcome in outcomes:
        if not outcome.passed:
            print(f"    FAIL {outcome.row} ({outcome.column}): {outcome.detail}", flush=True)
    return outcomes


if __name__ == "__main__":
    main()
