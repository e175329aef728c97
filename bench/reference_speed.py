# SPDX-License-Identifier: Apache-2.0
"""How fast this machine runs a fixed program of the simulator's kind (bench/reference/reference.cpp): what the simulator's speed is
quoted beside."""

from __future__ import annotations

import ctypes
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "bench" / "reference" / "reference.cpp"
LIBRARY = ROOT / "build" / "bench" / "libreference.so"
ROUNDS = 3000
RESULT = 3_041_051_964  # of so many rounds: it is the same program


class Reference:
    """The program, built if it is not yet."""

    def __init__(self) -> None:
        if not LIBRARY.exists() or LIBRARY.stat().st_mtime < SOURCE.stat().st_mtime:
            LIBRARY.parent.mkdir(parents=True, exist_ok=True)
            partial = LIBRARY.with_suffix(".partial")
            subprocess.run(["g++", "-std=gnu++20", "-O1", "-fPIC", "-shared", "-o", str(partial), str(SOURCE)], check=True)
            partial.rename(LIBRARY)
        self._run = ctypes.CDLL(str(LIBRARY)).reference_run
        self._run.restype = ctypes.c_uint32

    def speed(self) -> float:
        """Rounds a second of processor time."""
        begin = time.process_time()
        result = self._run(ROUNDS)
        seconds = time.process_time() - begin
        if result != RESULT:
            raise RuntimeError(f"the reference program gave {result}, not {RESULT}: it has been changed, or the compiler is wrong")
        return ROUNDS / seconds
