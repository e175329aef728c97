# SPDX-License-Identifier: Apache-2.0
"""The frames that the tests build are those that scapy builds: a test of the device is not one of itself."""

import random

from nacelle_tb.peer import Peer
from nacelle_tb.roce import Headers
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


def test_the_icrc_is_scapys() -> None:
    peer = Peer(device_qpn=5)
    frames = [peer.req(), peer.rtu(), peer.ack(5), *peer.write_message(0x1000, 7, b"abcde", 0x81), *peer.send_message(bytes(3000))]
    for frame in frames:
        packet = Ether(frame)
        packet[BTH].icrc = None  # scapy computes it anew
        assert bytes(packet) == frame


def test_the_headers_are_scapys() -> None:
    rng = random.Random(1)
    for _ in range(200):
        behind = rng.randbytes(4 * rng.randrange(1025))
        macs = [rng.randbytes(6).hex(":") for _ in range(2)]
        ips = [".".join(map(str, rng.randbytes(4))) for _ in range(2)]
        flags = {name: rng.random() < 0.5 for name in ("solicited", "migreq", "ackreq", "becn")}
        tos, identification, pkey = rng.randrange(256), rng.randrange(1 << 16), rng.randrange(1 << 16)
        version, sport, padcount = rng.randrange(16), rng.randrange(1 << 16), rng.randrange(4)
        opcode, dqpn, psn = rng.randrange(256), rng.randrange(1 << 24), rng.randrange(1 << 24)
        frame = Ether(src=macs[0], dst=macs[1]) / IP(src=ips[0], dst=ips[1], flags="DF", id=identification, tos=tos)
        frame /= UDP(sport=sport, dport=4791, chksum=0)
        frame /= BTH(
            opcode=opcode, version=version, pkey=pkey, padcount=padcount, dqpn=dqpn, psn=psn,
            **{name: int(flag) for name, flag in flags.items()},
        )  # fmt: skip
        mine = Headers(
            *macs, *ips, sport, opcode, dqpn, psn, len(behind), padcount, version=version, pkey=pkey, tos=tos,
            identification=identification, **flags,
        )  # fmt: skip
        assert bytes(frame / behind)[:54] == bytes(mine)
