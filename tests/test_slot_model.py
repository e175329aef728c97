# SPDX-License-Identifier: Apache-2.0
"""The model of a slot by itself (slot_model.cpp): rates by the formula of pcie-bench, latencies, order, data, errors, and the rules
that it watches."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from nacelle_tb.long import some

ROOT = Path(__file__).resolve().parents[1]
SEEDS = some([2, 1])


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model, compiled with a device of a few lines."""
    path = tmp_path_factory.mktemp("slot") / "slot_model"
    flags = ["-std=gnu++20", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", f"-I{ROOT / 'sim'}"]
    subprocess.run(["g++", *flags, "-o", str(path), str(ROOT / "tests" / "slot_model.cpp")], check=True)
    return path


@pytest.mark.parametrize("seed", SEEDS)
def test_slot_model(program: Path, seed: int) -> None:
    result = subprocess.run([str(program), str(seed)], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    assert not result.stderr, result.stderr[-2000:]
