# SPDX-License-Identifier: Apache-2.0
"""Proofs about the RoCE plane, for all time and all inputs: see nacelle_tb.formal."""

from pathlib import Path

import pytest
from nacelle_tb.formal import prove
from nacelle_tb.long import some

HERE = Path(__file__).parent


@pytest.mark.parametrize("what", some(["psn", "roce_requester_retire", "roce_qp_list"], 2))
def test_proof(what: str) -> None:
    prove(HERE / f"{what}_formal.sv")


def test_step_of_congestion_control() -> None:
    prove(HERE / "roce_cc_step_formal.sv", cut="t:$mul t:$mem_v2")
