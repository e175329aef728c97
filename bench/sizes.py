# SPDX-License-Identifier: Apache-2.0
"""Sizes in names of figures."""


def size_name(size: int) -> str:
    """64B, 4KiB, 1MiB."""
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size // factor}{unit}"
    return f"{size}B"
