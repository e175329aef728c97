# SPDX-License-Identifier: Apache-2.0
"""Frames that nobody should send: mutations of good ones, by a seed. Most are made consistent again in their lengths and checksums,
so that they come as far as the unit that their damage is meant for."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

from .peer import icrc, internet_checksum

ETHERNET, IPV4, UDP, BTH = 14, 20, 8, 12
IPV4_AT, UDP_AT, BTH_AT = ETHERNET, ETHERNET + IPV4, ETHERNET + IPV4 + UDP
ROCE_PORT = 4791
LONGEST = 4224
INTERESTING = (0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF)
MOST_CHANGES = 4


def consistent(frame: bytes, lengths: bool = True) -> bytes:
    """An IPv4 frame with lengths and checksums that fit what is in it; other frames as they are. The UDP checksum is left out, as
    IPv4 permits."""
    if len(frame) < UDP_AT or frame[12:14] != b"\x08\x00" or frame[IPV4_AT] != 0x45:
        return frame
    out = bytearray(frame)
    total = min(len(out) - ETHERNET, 0xFFFF)
    if lengths:
        out[16:18] = struct.pack("!H", total)
    out[24:26] = bytes(2)
    out[24:26] = struct.pack("!H", internet_checksum(bytes(out[IPV4_AT:UDP_AT])))
    if out[23] == 17 and len(out) >= BTH_AT:
        if lengths:
            out[38:40] = struct.pack("!H", total - IPV4)
        out[40:42] = bytes(2)
        if out[36:38] == struct.pack("!H", ROCE_PORT) and len(out) >= BTH_AT + BTH + 4:
            out[-4:] = icrc(bytes(out[IPV4_AT:-4]))
    if out[23] == 1 and len(out) >= UDP_AT + 4:
        body = bytes(out[UDP_AT : ETHERNET + total])
        body = body[:2] + bytes(2) + body[4:]
        out[36:38] = struct.pack("!H", internet_checksum(body + bytes(len(body) % 2)))
    return bytes(out)


class Mutator:
    """Makes frames from good ones, which are in `frames`."""

    def __init__(self, seed: int, frames: Sequence[bytes] = ()) -> None:
        self.random = random.Random(seed)
        self.frames = list(frames)

    def frame(self) -> bytes:
        """The next one."""
        rng = self.random
        if rng.random() < 0.02:
            return rng.randbytes(rng.choice((1, 13, 14, 59, 60, 64, 1514, LONGEST)))
        frame = bytearray(rng.choice(self.frames))
        for _ in range(rng.randint(1, MOST_CHANGES)):
            self._change(frame)
        del frame[LONGEST:]
        if not frame:
            frame.append(0)
        if rng.random() < 0.8:
            return consistent(bytes(frame), lengths=rng.random() < 0.9)
        return bytes(frame)

    def _change(self, frame: bytearray) -> None:
        rng = self.random
        # Headers are where most is decided.
        at = rng.randrange(min(len(frame), 96) if rng.random() < 0.8 else len(frame)) if frame else 0
        match rng.randrange(9):
            case 0 if frame:
                frame[at] ^= 1 << rng.randrange(8)
            case 1 if frame:
                frame[at] = rng.choice(INTERESTING)
            case 2 if frame:
                frame[at : at + 4] = rng.choice((bytes(4), b"\xff" * 4, rng.randbytes(4)))
            case 3:
                del frame[rng.randrange(len(frame) + 1) :]
            case 4:
                frame += rng.randbytes(rng.randrange(64))
            case 5:
                del frame[at : at + rng.choice((1, 2, 4, 8, 16))]
            case 6:
                frame[at:at] = rng.randbytes(rng.choice((1, 2, 4, 8, 16)))
            case 7:  # the begin of one, the end of another
                frame[at:] = rng.choice(self.frames)[at:]
            case _ if len(frame) > BTH_AT:  # another operation
                frame[BTH_AT] = rng.randrange(0x20) if rng.random() < 0.8 else rng.randrange(256)
