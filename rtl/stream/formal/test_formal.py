# SPDX-License-Identifier: Apache-2.0
"""Proofs of the stream cells, for all time and all inputs: see nacelle_tb.formal."""

from pathlib import Path

import pytest
from nacelle_tb.formal import prove

HERE = Path(__file__).parent


@pytest.mark.parametrize(("block_ram", "bypass"), [(0, 1), (0, 0), (1, 0)])
@pytest.mark.parametrize("depth", [2, 4])
def test_stream_fifo(depth: int, block_ram: int, bypass: int) -> None:
    prove(HERE / "stream_fifo_formal.sv", {"DEPTH": depth, "BLOCK_RAM": block_ram, "BYPASS": bypass})


CELLS = ["stream_arbiter", "stream_fork", "stream_demux", "stream_share", "stream_skid", "axis_store", "time"]


@pytest.mark.parametrize("cell", CELLS)
def test_cell(cell: str) -> None:
    prove(HERE / f"{cell}_formal.sv")


@pytest.mark.parametrize("skid", [0, 1])
def test_stream_slice(skid: int) -> None:
    prove(HERE / "stream_slice_formal.sv", {"SKID": skid})


def test_cdc_fifo() -> None:
    prove(HERE / "cdc_fifo_formal.sv", clocks=2)


def test_cdc_reset() -> None:
    prove(HERE / "cdc_reset_formal.sv", clocks=2)
