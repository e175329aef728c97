# SPDX-License-Identifier: Apache-2.0
"""Proofs about the memory plane: see nacelle_tb.formal."""

from pathlib import Path

import pytest
from nacelle_tb.formal import prove
from nacelle_tb.long import some

HERE = Path(__file__).parent


def test_roce_atomic() -> None:
    prove(HERE / "roce_atomic_formal.sv")


@pytest.mark.parametrize(
    ("what", "frames", "cut"),
    some(
        [
            ("axi_dma_read", 13, ""),
            ("axi_dma_write", 12, ""),
            ("axi_crossbar", 9, ""),
            ("axi_mux", 11, ""),
            ("rpc_messages", 30, "t:$mem_v2"),  # whatever the store of beats gives
            ("axi_window", 12, ""),  # takes two minutes
        ],
        4,
    ),
)
def test_bounded(what: str, frames: int, cut: str) -> None:
    """These do not converge: no assertion can fail in so many cycles after reset."""
    prove(HERE / f"{what}_formal.sv", frames=frames, cut=cut)


@pytest.mark.parametrize(("width", "align"), some([(16, 1), (64, 1), (64, 4), (512, 4)], 3))
def test_byte_funnel(width: int, align: int) -> None:
    prove(HERE / "byte_funnel_formal.sv", {"DATA_W": width, "ALIGN": align})


def test_ecc() -> None:
    prove(HERE / "ecc_formal.sv")
