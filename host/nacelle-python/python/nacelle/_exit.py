# SPDX-License-Identifier: Apache-2.0
"""What is still open when the program ends is closed, before the interpreter is taken down."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import weakref
from typing import Protocol

from ._errors import Error


class _Closes(Protocol):
    def close(self) -> None: ...


_count = itertools.count()
_open: weakref.WeakValueDictionary[int, _Closes] = weakref.WeakValueDictionary()


def close_at_exit(value: _Closes) -> None:
    """Closes it when the program ends, if it is still there."""
    _open[next(_count)] = value


@atexit.register
def _close_all() -> None:
    # What was opened last may use what was opened before.
    for value in reversed(list(_open.values())):
        # Nobody is left to be told; in a forked process it is another's.
        with contextlib.suppress(Error):
            value.close()
