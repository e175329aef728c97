# SPDX-License-Identifier: Apache-2.0
"""The model of DRAM: single accesses, data, flipped bits (dram_model.cpp), and the shares of the peak that it gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("bench", "rtl/testing")]

import dram  # noqa: E402
from nacelle_tb.device import DRAMS, load_dram  # noqa: E402

KINDS = sorted(path.stem for path in DRAMS.glob("*.toml"))


@pytest.mark.parametrize("name", KINDS)
def test_model(name: str, tmp_path: Path) -> None:
    program = tmp_path / "dram_model"
    flags = ["-std=gnu++20", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", f"-I{ROOT / 'sim'}"]
    subprocess.run(["g++", *flags, "-o", str(program), str(ROOT / "tests" / "dram_model.cpp")], check=True)
    values = [str(value) for _, value in load_dram(DRAMS / f"{name}.toml").values]
    result = subprocess.run([str(program), *values], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]


def test_shares_of_the_peak() -> None:
    """Sequential traffic as it was measured on a board; random beats far less; both directions at once lose turns of the bus."""
    found = dram.shares()
    for way in ("read", "write"):
        assert dram.GOAL <= found[way, "sequential"] < 95.5, "refresh alone takes 4.5 %"
        assert 20 < found[way, "random"] < 40
    assert 65 < found["both", "sequential"] < 85
