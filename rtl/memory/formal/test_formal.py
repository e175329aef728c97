# SPDX-License-Identifier: Apache-2.0
"""Proofs about the memory plane: see nacelle_tb.formal."""

from pathlib import Path

import pytest
from nacelle_tb.formal import prove

HERE = Path(__file__).parent


@pytest.mark.parametrize("page", [5, 0xFFF_FFFF])
def test_axi_window(page: int) -> None:
    prove(HERE / "axi_window_formal.sv", {"FORBIDDEN": page})
