# SPDX-License-Identifier: Apache-2.0
"""Proofs of the PCIe plane's cells, for all time and all inputs: see nacelle_tb.formal."""

from pathlib import Path

import pytest
from nacelle_tb.formal import prove
from nacelle_tb.long import LONG, some

HERE = Path(__file__).parent


def test_tlp_behind() -> None:
    prove(HERE / "tlp_behind_formal.sv")


def test_tlp_behind_fifo() -> None:
    prove(HERE / "tlp_behind_fifo_formal.sv", frames=12)


def test_pcie_credits() -> None:
    prove(HERE / "pcie_credits_formal.sv", frames=14 if LONG else 11)


@pytest.mark.parametrize("width", some([64, 128, 512], 2))
def test_dword_rotate(width: int) -> None:
    prove(HERE / "dword_rotate_formal.sv", {"DATA_W": width})
