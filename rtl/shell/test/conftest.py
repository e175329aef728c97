# SPDX-License-Identifier: Apache-2.0
"""The whole device, simulated."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from nacelle_tb.session import SimDevice, configure
from nacelle_tb.widths import WIDTHS


@pytest.fixture(params=WIDTHS)
def device(request: pytest.FixtureRequest) -> Iterator[SimDevice]:
    """A configured device without a line rate limit."""
    with SimDevice(request.param, line_rate_mbps=0xFFFF_FFFF) as sim:
        configure(sim)
        yield sim


@pytest.fixture
def device512() -> Iterator[SimDevice]:
    """The reference width."""
    with SimDevice(512, line_rate_mbps=0xFFFF_FFFF) as sim:
        configure(sim)
        yield sim
