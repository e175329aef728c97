# SPDX-License-Identifier: Apache-2.0
"""Registers by name, as rtl/control/generate.py lists them."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from typing import Any

from .sources import GENERATED, RTL

LISTING = GENERATED / "registers.json"


@functools.cache
def blocks() -> dict[str, dict[str, Any]]:
    """Every block by its name; its registers are a list."""
    if not LISTING.exists():
        subprocess.run([sys.executable, str(RTL / "control" / "generate.py")], check=True)
    return {block["name"]: block for block in json.loads(LISTING.read_text())}


@functools.cache
def _registers(block: str) -> dict[str, dict[str, Any]]:
    return {register["name"]: register for register in blocks()[block]["registers"]}


def address(name: str, number: int = 0) -> int:
    """The byte address of a register on the bus: REGISTER of the device, or BLOCK.REGISTER; of the block with this number."""
    block, _, register = name.rpartition(".")
    found = blocks()[block or "device"]
    return found["base"] + number * found["stride"] + _registers(found["name"])[register]["offset"]


def offset(name: str) -> int:
    """As address(), from the begin of the page."""
    return address(name) & 0xFFF


def counters() -> dict[str, int]:
    """Every counter of the device and its address."""
    return {register["name"]: register["offset"] for register in blocks()["device"]["registers"] if register["group"]}
