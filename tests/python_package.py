# SPDX-License-Identifier: Apache-2.0
"""The Python package as its wheel has it, and programs that use it."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

from conftest import NACELLE, ROOT

sys.path.insert(0, str(ROOT / "tools"))
import wheel

# How long a program may run.
PATIENCE = 60

# A device in a process of its own. `hold` keeps its call for so many tenths of a second, unless it is cancelled; then it fills its
# output with that number. `count` has the user bytes of its call as output.
SERVED = """
import sys, time
import nacelle

@nacelle.kernel(code=90, regions=[("tenths", "in", "one byte"), ("result", "out", "any bytes")])
def hold(tenths, result, call):
    '''Keeps its call for some time.'''
    end = time.monotonic() + tenths[0] / 10
    while time.monotonic() < end:
        call.check()
        time.sleep(0.001)
    result[:] = bytes(tenths[:1]) * len(result)

@nacelle.kernel(code=91, regions=[nacelle.RegionInfo("first", "in"), nacelle.RegionInfo("rest", "inout", "", True)])
def count(first, *rest, call):
    '''Tells its user bytes.'''
    for region in rest:
        region[:4] = call.user.to_bytes(4, "little")

nacelle.SoftDevice([hold, count], name=sys.argv[1], workers=8).serve()
"""


class Package:
    """The package, for this process and for others."""

    def __init__(self, folder: Path) -> None:
        # The build of the programs that the tests run: an overflow is an error in that of `make test`.
        profile = "dev" if NACELLE.parent.name == "debug" else "release"
        self.wheel = wheel.build(folder / "wheel", profile)
        self.site = folder / "site"
        with zipfile.ZipFile(self.wheel) as archive:
            archive.extractall(self.site)

    def load(self) -> ModuleType:
        """Imports it here."""
        if str(self.site) not in sys.path:
            sys.path.insert(0, str(self.site))
        return importlib.import_module("nacelle")

    def environment(self, wire: Path) -> dict[str, str]:
        """That of a program that imports it."""
        return {
            **os.environ,
            "PYTHONPATH": str(self.site),
            "NACELLE_WIRE": str(wire),
            "PYTHONWARNINGS": "default",
            "PYTHONMALLOC": "debug",
        }

    def start(self, wire: Path, code: str, *arguments: str) -> subprocess.Popen[str]:
        """Starts a program."""
        return subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            env=self.environment(wire),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, wire: Path, code: str, *arguments: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
        """Runs a program; it must return what is expected, in time."""
        process = self.start(wire, code, *arguments)
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"it did not end: {process.communicate()}") from None
        assert process.returncode == expect, f"it returned {process.returncode}:\n{out}{err}"
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


class Served:
    """A wire with a device that runs in a process of its own, with kernels in Python."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.nacelle: Any = package.load()
        self._folder = tempfile.TemporaryDirectory(prefix="nw", dir="/tmp")
        self.wire = Path(self._folder.name) / "wire"
        self.process = package.start(self.wire, SERVED, "kernels0")
        end = time.monotonic() + 20
        while not (self.wire / "kernels0.device.json").exists():
            assert time.monotonic() < end and self.process.poll() is None, self.process.communicate()
            time.sleep(0.02)

    def connect(self, **options: Any) -> Any:
        """A device for this process."""
        return self.nacelle.connect("kernels0", wire=self.wire, **options)

    def close(self) -> None:
        """Ends it."""
        self.process.terminate()
        self.process.wait(20)
        self._folder.cleanup()
