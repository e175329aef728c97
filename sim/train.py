# SPDX-License-Identifier: Apache-2.0
"""The load by which the fast simulated device is compiled (sim/build.py --fast): region set-up, calls of two kernels, and at the
reference width WRITEs and READs between two devices, small ones over many queue pairs and large ones over a line with loss.

python sim/train.py DATA_W
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "rtl" / "testing"), str(ROOT / "sim")]

from nacelle_tb.pair import Pair, Traffic  # noqa: E402
from nacelle_tb.peer import INPUT, OUTPUT, Peer, Region  # noqa: E402
from nacelle_tb.session import Network, SimDevice, configure  # noqa: E402

INCREMENT, EMPTY = 1, 3


def calls(data_w: int) -> None:
    """A caller that sets regions up, writes and calls."""
    with SimDevice(data_w, line_rate_mbps=0xFFFF_FFFF) as device:
        configure(device)
        peer = Peer(mtu=1024)
        net = Network(device, [peer])
        net.connect(peer)
        net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(1 << 16))])
        for kernel in (INCREMENT, EMPTY):
            net.send(peer.call(kernel))
            net.answer(peer)
        device.step(1000)


def transfers() -> None:
    """Two devices."""
    with Pair(16, mtu=1024, unlimited=True) as pair:
        pair.gbps(Traffic("WR_RDMA_WRITE", 64, qps=16), settle=3000, window=3000)
    for opcode in ("WR_RDMA_WRITE", "WR_RDMA_READ"):
        with Pair(mtu=4096, timeout=5, selective_repeat=True, loss_ppm=5000, random_seed=3) as pair:
            pair.gbps(Traffic(opcode, 1 << 16), both=True, settle=5000, window=5000)


def main() -> None:
    """Command line."""
    data_w = int(sys.argv[1])
    calls(data_w)
    if data_w == 512:
        transfers()


if __name__ == "__main__":
    main()
