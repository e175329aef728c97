# SPDX-License-Identifier: Apache-2.0
"""The widths of the data path, in bits, at which tests run: by default the narrowest and the reference, to save builds.

$NACELLE_WIDTHS names others, separated by spaces. `make test-long` adds 128 and 256.
"""

from __future__ import annotations

import os

WIDTHS = [int(width) for width in os.environ.get("NACELLE_WIDTHS", "64 512").split()]
