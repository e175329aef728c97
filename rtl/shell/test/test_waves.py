# SPDX-License-Identifier: Apache-2.0
"""Waveforms on request."""

from pathlib import Path

from nacelle_tb.peer import Peer
from nacelle_tb.session import SimDevice, configure


def test_a_waveform_is_written(tmp_path: Path) -> None:
    file = tmp_path / "device.fst"
    with SimDevice(64, device="test", waves=file) as device:
        configure(device)
        device.send(Peer().arp_request())
        assert device.recv() is not None
    assert file.stat().st_size > 10_000
