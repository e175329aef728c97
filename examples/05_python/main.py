# SPDX-License-Identifier: Apache-2.0
"""Calls a device from Python: a buffer that is changed in place, a product of matrices, and calls side by side.

python main.py [ADDRESS or name]
"""

from __future__ import annotations

import asyncio
import sys
from array import array

import nacelle


async def count_up(device: nacelle.Device, texts: list[bytearray]) -> None:
    """Adds one to each byte of each text, all at the same time."""
    await asyncio.gather(*(device.call_async("increment", text) for text in texts))


def main() -> None:
    """Command line."""
    with nacelle.connect(sys.argv[1] if len(sys.argv) > 1 else "10.77.0.2") as device:
        text = bytearray(b"GdkknVnqkc")
        device.increment(text)
        print(text.decode())

        # Any buffer will do; with NumPy the product is an ndarray.
        a = memoryview(array("f", [1, 2, 3, 4])).cast("B").cast("f", [2, 2])
        print(memoryview(device.matmul(a, a)).tolist())

        texts = [bytearray(b"nmd"), bytearray(b"svn"), bytearray(b"sgqdd")]
        asyncio.run(count_up(device, texts))
        print(*(text.decode() for text in texts))


if __name__ == "__main__":
    try:
        main()
    except nacelle.Error as error:
        sys.exit(f"{error}; try: {error.hint}")
