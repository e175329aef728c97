#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs random traffic beside attacks against devices: starts each on a wire of its own, and `nacelle-soak --restarts` against it.

    python tools/soak.py [rtl] [soft] [OPTION ...]     default: both devices, 3 minutes each
    python tools/soak.py rtl --first 42 --seeds 1      the run of a seed again

Options are those of nacelle-soak. Exit status 1 if a device failed: the last lines say with which seed, and how to run it again.
Needs nacelle and nacelle-soak in host/target/release, or in $NACELLE_PROGRAMS, and for `rtl` the simulated device (make host sim).
"""

from __future__ import annotations

import re
import subprocess
import sys

from conformance import ADDRESS, DEVICES, PROGRAMS, ROOT, running

DEFAULT = ["--minutes", "3"]
LOG = ROOT / "build" / "soak"
# Of the device's own messages, so many lines are shown if it failed.
LAST_LINES = 20


def soak(device: str, options: list[str]) -> int:
    """Runs it against one device; the output is shown and kept."""
    print(f"== {device}: nacelle-soak {' '.join(options)}", flush=True)
    lines = []
    with running(device) as wire, (LOG / f"{device}.log").open("w") as log:
        command = [PROGRAMS / "nacelle-soak", ADDRESS, "--wire", wire, *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert process.stdout
        for line in process.stdout:
            print(f"{device}: {line}", end="", flush=True)
            log.write(line)
            lines.append(line)
        code = process.wait()
        said = (wire / "device.log").read_text().splitlines()
    if code != 0:
        print(f"{device} said:", *said[-LAST_LINES:], sep="\n  ")
        again = [match[1] for line in lines if (match := re.match(rf"again: nacelle-soak {ADDRESS} (.*)", line))]
        print(*(f"{device} again: python tools/soak.py {device} {options}" for options in again), sep="\n")
    return code


def main() -> None:
    """Command line."""
    if {"-h", "--help"} & set(sys.argv):
        sys.exit(__doc__)
    devices = [argument for argument in sys.argv[1:] if argument in DEVICES] or list(DEVICES)
    options = [argument for argument in sys.argv[1:] if argument not in DEVICES]
    if not {"--minutes", "--seeds"} & {option.partition("=")[0] for option in options}:
        options = [*DEFAULT, *options]
    if "--restarts" not in options:
        options.append("--restarts")
    LOG.mkdir(parents=True, exist_ok=True)
    codes = [soak(device, options) for device in devices]
    sys.exit(1 if any(codes) else 0)


if __name__ == "__main__":
    main()
