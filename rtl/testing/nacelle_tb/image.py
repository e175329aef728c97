# SPDX-License-Identifier: Apache-2.0
"""Files of images (docs/reference/images.md), as a device verifies them, and the commands and errors of its image store."""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass

MAGIC, VERSION = b"NIMG", 1
HEAD_BYTES, TAIL_BYTES = 96, 64
NAME_BYTES = 16
BEGIN, VERIFY, FORGET = 1, 2, 3
NOTHING, UPLOAD, VERIFYING = 0, 1, 2
ERRORS = (
    "OK", "BAD_COMMAND", "BAD_SLOT", "NO_KEY", "IN_USE", "NO_UPLOAD", "BAD_HEADER", "BAD_BUILD", "BAD_SOCKET", "BAD_LENGTH",
    "BAD_DIGEST", "BAD_SIGNATURE", "MEMORY",
)  # fmt: skip


@dataclass(frozen=True)
class Image:
    """An image: `build` is the digest of the device, `identity` the words 0 to 15 of the record."""

    build: int
    socket: int
    identity: tuple[int, ...]
    payload: bytes  # whole words

    @property
    def signed(self) -> bytes:
        """What its digest is of."""
        head = struct.pack("<4sIQII", MAGIC, VERSION, self.build, self.socket, len(self.payload))
        head += struct.pack("<16I", *self.identity)
        return head.ljust(HEAD_BYTES, b"\0") + self.payload

    @property
    def digest(self) -> bytes:
        """By which it is activated."""
        return hashlib.sha256(self.signed).digest()

    def file(self, key: bytes) -> bytes:
        """All of it, signed with a key of 32 bytes."""
        return self.signed + self.digest + hmac.new(key, self.digest, hashlib.sha256).digest()


def sealed(signed: bytes, key: bytes) -> bytes:
    """A file of these bytes with a right digest and signature, whatever they are."""
    digest = hashlib.sha256(signed).digest()
    return signed + digest + hmac.new(key, digest, hashlib.sha256).digest()


def words(data: bytes) -> list[int]:
    """As the registers take them."""
    return list(struct.unpack(f"<{len(data) // 4}I", data))


def simulated(name: str, padding: int = 0) -> bytes:
    """The bitstream of a kernel that the simulated device was built with: its name, and so many bytes."""
    return name.encode().ljust(NAME_BYTES, b"\0") + bytes(i & 255 for i in range(padding))
