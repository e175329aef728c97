# SPDX-License-Identifier: Apache-2.0
"""A device with three memories: peers write and read each, and one queue pair all of them in turn, also when the last is slow."""

from __future__ import annotations

import pytest
from nacelle_tb.device import MEMORY_STRIDE_W
from nacelle_tb.load import SLOW, Flow, Load
from nacelle_tb.long import LONG
from nacelle_tb.session import SimDevice, configure

BASES = tuple((memory << MEMORY_STRIDE_W) + 0x1000_0000 for memory in range(3))


@pytest.mark.parametrize("kind", ["write", "read"])
@pytest.mark.parametrize("slow", [False, True])
def test_every_memory_is_written_and_read(kind: str, slow: bool) -> None:
    with SimDevice(64, device="test", line_rate_mbps=0xFFFF_FFFF) as device:
        configure(device)
        if slow:
            device.set_memory(2, **SLOW)
        flows = [Flow(2 + i, kind, 256, 4, (base,)) for i, base in enumerate(BASES)]
        flows.append(Flow(5, kind, 256, 4, tuple(base + (1 << 20) for base in BASES)))
        load = Load(device, flows)
        load.run(200_000 if LONG else 60_000)  # so long that every queue on the way goes round
        load.check()
        for flow in flows:
            print(f"queue pair {flow.qpn}: {flow.done} done, {flow.refused} RNR NAKs, {max(flow.latencies)} cycles at most")
            assert flow.done > 5


def test_responses_leave_in_another_order() -> None:
    """Those of one queue pair wait for the slow memory, and those of another one, which were handed over later, leave before them.
    The acknowledgements of the first go out all the same, so nothing is sent again."""
    with SimDevice(64, device="test", line_rate_mbps=0xFFFF_FFFF) as device:
        configure(device)
        device.set_memory(2, **SLOW)
        slow, fast = Flow(2, "both", 256, 1, (BASES[2],)), Flow(3, "read", 256, 4, (BASES[0],))
        load = Load(device, [slow, fast])
        load.run(60_000)
        load.check()
        assert slow.done > 10 and fast.done > 100
        assert slow.repeated == fast.repeated == 0


def test_nothing_lies_behind_the_last_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A WRITE beyond the third memory is answered with a NAK, remote operational error."""
    with SimDevice(64, device="test", line_rate_mbps=0xFFFF_FFFF) as device:
        configure(device)
        monkeypatch.setattr(device, "dram_write", lambda address, data: None)  # there is nothing to fill
        load = Load(device, [Flow(2, "write", 64, 1, ((2 << MEMORY_STRIDE_W) + (1 << 30),))])
        with pytest.raises(AssertionError, match="NAK 0x63"):
            load.run(1000)
