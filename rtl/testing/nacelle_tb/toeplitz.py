# SPDX-License-Identifier: Apache-2.0
"""The Toeplitz hash of receive-side scaling, bit by bit, as virtio 1.2 (5.1.6.4.3) and Microsoft have it."""

# The key of Microsoft's vectors.
KEY = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")


def toeplitz(key: bytes, data: bytes) -> int:
    """For each bit of `data` that is 1, the 32 bits of the key that begin at its place."""
    value = int.from_bytes(key, "big")
    length = 8 * len(key)
    hash = 0
    for place in range(8 * len(data)):
        if data[place // 8] >> 7 - place % 8 & 1:
            hash ^= value >> length - 32 - place & 0xFFFFFFFF
    return hash
