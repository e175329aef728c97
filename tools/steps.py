# SPDX-License-Identifier: Apache-2.0
"""The command line of a program that consists of named steps: `[--list] [STEP ...]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection


def asked_for(description: str | None, steps: Collection[str]) -> list[str]:
    """The steps that the command line names; none means all. `--list` names those that there are, and ends the program; an unknown
    one is an error of usage."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", metavar="STEP", help="run these only")
    parser.add_argument("--list", action="store_true", help="name the steps and stop")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(steps))
        sys.exit()
    unknown = set(arguments.steps) - set(steps)
    if unknown:
        parser.error(f"no such step: {', '.join(sorted(unknown))}; --list names them")
    return list(arguments.steps)
