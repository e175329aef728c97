# SPDX-License-Identifier: Apache-2.0
"""Waveforms on request."""

from pathlib import Path

import pytest
from nacelle_tb.long import LONG
from nacelle_tb.peer import Peer
from nacelle_tb.session import SimDevice, configure


@pytest.mark.skipif(not LONG, reason="make test-long builds the library that writes waveforms")
def test_a_waveform_is_written(tmp_path: Path) -> None:
    file = tmp_path / "device.fst"
    with SimDevice(64, waves=file) as device:
        configure(device)
        device.send(Peer().arp_request())
        assert device.recv() is not None
    assert file.stat().st_size > 10_000
