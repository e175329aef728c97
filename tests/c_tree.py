# SPDX-License-Identifier: Apache-2.0
"""The C library as it is installed, and programs that are built with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conftest import NACELLE, ROOT, Wire

sys.path.insert(0, str(ROOT / "tools"))
import install_c

CRATE = ROOT / "host" / "nacelle-capi"
EXAMPLES = ROOT / "examples"
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
# How long a program may run.
PATIENCE = 120


class Tree:
    """An installed library."""

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix

    @classmethod
    def build(cls, prefix: Path) -> Tree:
        """Builds the library and installs it."""
        # The build of the programs that the tests run: an overflow is an error in that of `make test`, which made the library, too.
        profile = NACELLE.parent.name
        if "NACELLE_PROGRAMS" in os.environ:
            install_c.install(prefix, profile)
            return cls(prefix)
        build = ["cargo", "build", "--locked", "-p", "nacelle-capi", *(["--release"] if profile == "release" else [])]
        environment = {key: value for key, value in os.environ.items() if key != "CARGO_TARGET_DIR"}
        subprocess.run(build, cwd=ROOT / "host", check=True, capture_output=True, env=environment)
        install_c.install(prefix, profile)
        return cls(prefix)

    @property
    def library(self) -> Path:
        """The shared library."""
        return self.prefix / "lib" / "libnacelle.so"

    def flags(self, package: str, *arguments: str) -> list[str]:
        """What pkg-config says, and where the program finds the library when it runs."""
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.prefix / "lib" / "pkgconfig")}
        command = ["pkg-config", *(arguments or ("--cflags", "--libs")), package]
        said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        return [*said.split(), f"-Wl,-rpath,{self.prefix / 'lib'}"]

    def compile(self, program: Path, *command: str, package: str = "nacelle") -> Path:
        """Builds a program by a compiler's command, without a warning."""
        result = subprocess.run(
            [*command, "-o", str(program), *self.flags(package)], capture_output=True, text=True, cwd=program.parent
        )
        assert result.returncode == 0, result.stderr
        return program

    def cmake(self, example: str, build: Path) -> Path:
        """Builds an example by CMake; its folder."""
        configure = ["cmake", "-S", str(EXAMPLES / example), "-B", str(build), f"-DCMAKE_PREFIX_PATH={self.prefix}"]
        for command in (configure, ["cmake", "--build", str(build)]):
            result = subprocess.run(command, capture_output=True, text=True)
            assert result.returncode == 0, result.stdout + result.stderr
        return build


def run(wire: Wire, program: Path, *arguments: str, expect: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a program on the wire; it must return what is expected."""
    environment = {**wire.environment, **variables}
    command = [str(program), *arguments]
    result = subprocess.run(command, env=environment, cwd=wire.folder, capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == expect, f"{program.name} returned {result.returncode}:\n{result.stdout}{result.stderr}"
    return result
