# SPDX-License-Identifier: Apache-2.0
"""What is still open when the program ends is closed, before the interpreter is taken down."""

from __future__ import annotations

import atexit
import contextlib
import weakref
from typing import Protocol

from ._errors import Error


class _Closes(Protocol):
    def close(self) -> None: ...


_open: weakref.WeakSet[_Closes] = weakref.WeakSet()


def close_at_exit(value: _Closes) -> None:
    """Closes it when the program ends, if it is still there."""
    _open.add(value)


@atexit.register
def _close_all() -> None:
    for value in list(_open):
        # Nobody is left to be told; in a forked process it is another's.
        with contextlib.suppress(Error):
            value.close()
