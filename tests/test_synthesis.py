# SPDX-License-Identifier: Apache-2.0
"""The rules by which tools/synth.py counts, on netlists small enough to count by eye."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nacelle_tb.long import some

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import primitives  # noqa: E402
from lut_depth import depth  # noqa: E402

INPUT, OUTPUT = "input", "output"


def netlist(*cells: tuple[str, dict[str, int | str], dict[str, int | str]], ports: dict[str, tuple[str, int]] | None = None) -> Any:
    """A module of cells given by type, inputs and outputs; nets are numbers."""
    module: dict[str, Any] = {"ports": {}, "cells": {}, "netnames": {}}
    for name, (direction, bit) in (ports or {}).items():
        module["ports"][name] = {"direction": direction, "bits": [bit]}
    for index, (kind, inputs, outputs) in enumerate(cells):
        module["cells"][f"u{index}"] = {
            "type": kind,
            "parameters": {},
            "connections": {port: [bit] for port, bit in {**inputs, **outputs}.items()},
            "port_directions": dict.fromkeys(inputs, INPUT) | dict.fromkeys(outputs, OUTPUT),
        }
    bits = {bit for cell in module["cells"].values() for wires in cell["connections"].values() for bit in wires}
    module["netnames"] = {f"n{bit}": {"bits": [bit], "hide_name": 0} for bit in bits}
    return module


def chain(first: int, length: int) -> list[tuple[str, dict[str, int | str], dict[str, int | str]]]:
    """LUTs one behind the other, from net `first` on."""
    return [("LUT6", {"I0": first + i}, {"O": first + i + 1}) for i in range(length)]


@pytest.mark.parametrize(
    ("kind", "luts"), [("RAM32M", 4), ("RAM32M16", 8), ("RAM64M8", 8), ("RAM64X1D", 2), ("RAM256X1D", 8), ("SRL16E", 1), ("INV", 1)]
)
def test_luts_of(kind: str, luts: int) -> None:
    sums = primitives.xilinx({kind: 3, "LUT6": 2})
    assert sums["lut"] == 3 * luts + 2
    assert sums["lut_ram"] == (0 if kind == "INV" else 3 * luts)


def test_lut4_of_ecp5() -> None:
    """As nextpnr counts: it places a carry cell as two LUT4, a distributed RAM as four and a write port that takes two more."""
    sums = primitives.ecp5({"LUT4": 2, "CCU2C": 3, "TRELLIS_DPR16X4": 5, "TRELLIS_FF": 7, "DP16KD": 11, "MULT18X18D": 13})
    assert sums == {"lut4": 2 + 6 + 30, "lut_ram": 30, "ff": 7, "ebr": 11, "dsp": 13}


def test_a_ram_of_unknown_size_is_an_error() -> None:
    with pytest.raises(ValueError, match="RAM1024X7"):
        primitives.xilinx({"RAM1024X7": 1})


@pytest.mark.parametrize(
    ("words", "bits", "bram36"),
    [(512, 36, 0.5), (512, 72, 1), (513, 36, 1), (4096, 72, 8), (4096, 73, 8.5), (256, 512, 7.5), (16384, 1, 0.5)],
)
def test_block_ram_of_a_shape(words: int, bits: int, bram36: float) -> None:
    assert primitives.bram36_of_shape(words, bits) == bram36


def test_register_to_register() -> None:
    found = depth(netlist(("FDRE", {"D": 9}, {"Q": 1}), *chain(1, 3), ("FDRE", {"D": 4, "C": 20}, {"Q": 5})))
    assert found.levels == found.kinds["register to register"] == 3
    assert found.worst[0].start == "n1"
    assert found.worst[0].end == "n5.D"
    assert found.worst[0].nets == ("n1", "n2", "n3", "n4")


@pytest.mark.parametrize("kind", ["RAMB36E2", "URAM288", "SRL16E", "RAM32M16"])
def test_clock_to_output_of_a_ram_is_a_level(kind: str) -> None:
    output = "Q" if kind == "SRL16E" else "DOA"
    assert depth(netlist((kind, {}, {output: 1}), *chain(1, 2), ("FDRE", {"D": 3}, {"Q": 4}))).levels == 3


def test_the_read_of_a_lut_ram_is_a_level_behind_its_address() -> None:
    cells = [
        ("FDRE", {"D": 9}, {"Q": 1}),
        *chain(1, 2),
        ("RAM32M16", {"ADDRA": 3, "DIA": 8}, {"DOA": 4}),
        ("FDRE", {"D": 4}, {"Q": 5}),
    ]
    assert depth(netlist(*cells)).levels == 3


def test_ports_are_ends() -> None:
    ports = {"a": (INPUT, 1), "b": (OUTPUT, 5), "c": (OUTPUT, 13)}
    found = depth(netlist(*chain(1, 4), ("FDRE", {"D": 3}, {"Q": 10}), *chain(10, 3), ports=ports))
    assert found.kinds == {"register to register": 0, "register to port": 3, "port to register": 2, "port to port": 4}
    assert found.levels == 4


def test_a_module_left_out_is_a_border() -> None:
    found = depth(netlist(("socket$top.socket", {"job": 2}, {"done": 10}), *chain(1, 1), *chain(10, 2), ports={"a": (INPUT, 1)}))
    assert found.kinds["port to port"] == 1


def test_a_multiplication_without_register_costs_four_levels() -> None:
    found = depth(
        netlist(("FDRE", {"D": 9}, {"Q": 1}), ("DSP48E2", {"A": 1}, {"P": 2}), *chain(2, 1), ("FDRE", {"D": 3}, {"Q": 4}))
    )
    assert found.levels == 5


def test_a_loop_is_an_error() -> None:
    with pytest.raises(ValueError, match="loop"):
        depth(netlist(("LUT2", {"I0": 1}, {"O": 2}), ("LUT2", {"I0": 2}, {"O": 1})))


def test_paths_end_at_different_registers() -> None:
    twice = [("FDRE", {"D": 4}, {"Q": 6}), ("FDRE", {"D": 3}, {"Q": 7})]
    assert [path.levels for path in depth(netlist(("FDRE", {"D": 9}, {"Q": 1}), *chain(1, 3), *twice), 5).worst] == [3, 2]


def test_intel_pairs_small_functions() -> None:
    sums = primitives.intel({"MISTRAL_ALUT6": 3, "MISTRAL_ALUT4": 4, "MISTRAL_NOT": 2, "MISTRAL_MLAB": 20, "MISTRAL_FF": 5})
    assert (sums["alm"], sums["alm_apart"], sums["mlab_alm"]) == (3 + 3 + 10, 3 + 6 + 10, 10)


@pytest.mark.parametrize(("family", "size"), some([("ultrascale+", "lut"), ("intel", "alm")]))
def test_parts_of_the_shell_map(family: str, size: str) -> None:
    """Small ones; the figures of all are those of `make synth`."""
    command = [sys.executable, "tools/synth.py", "glue", "hands", "--data-w", "64", "--family", family, "--by-instance", "1"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = json.loads((ROOT / "build" / f"synth-64{'-intel' if family == 'intel' else ''}.json").read_text())
    assert [row["plane"] for row in rows] == ["glue", "hands"]
    assert all(row[size] > 0 and row["ff"] > 0 for row in rows)
    # The instances inside are the whole of a part.
    top = rows[1]["instances"][0]
    assert top["with_inside"][size] >= sum(instance["own"][size] for instance in rows[1]["instances"]) > 0
