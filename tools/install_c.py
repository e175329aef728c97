# SPDX-License-Identifier: Apache-2.0
"""Installs the C library: libraries, headers (also that of kernels for the software device), pkg-config files, the CMake package
and the Fortran module's source.

    python tools/install_c.py --prefix /usr/local [--destdir STAGE] [--profile release]

The library must have been built (make install-c does both). Installed files find each other by their places, so the tree may be
moved as a whole.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOST = ROOT / "host"
CRATE = HOST / "nacelle-capi"

# Copied as they are.
FILES = {
    CRATE / "include/nacelle.h": "include/nacelle.h",
    CRATE / "include/nacelle_slot.h": "include/nacelle_slot.h",
    CRATE / "include/nacelle.hpp": "include/nacelle.hpp",
    CRATE / "include/nacelle_registers.h": "include/nacelle_registers.h",
    CRATE / "include/naaice/naaice.h": "include/nacelle-naaice/naaice.h",
    CRATE / "include/naaice/naaice_ap2.h": "include/nacelle-naaice/naaice_ap2.h",
    CRATE / "fortran/nacelle.f90": "share/nacelle/nacelle.f90",
    HOST / "nacelle-device/include/nacelle_kernel.h": "include/nacelle_kernel.h",
}
# With the version put in.
TEMPLATES = {
    "packaging/nacelle.pc.in": "lib/pkgconfig/nacelle.pc",
    "packaging/nacelle-naaice.pc.in": "lib/pkgconfig/nacelle-naaice.pc",
    "packaging/nacelle-config.cmake.in": "lib/cmake/nacelle/nacelle-config.cmake",
    "packaging/nacelle-config-version.cmake.in": "lib/cmake/nacelle/nacelle-config-version.cmake",
}


def version() -> str:
    """The one place that has it."""
    return tomllib.loads((ROOT / "host" / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def put(source: Path, target: Path, mode: int) -> None:
    """Copies a file in place of what is there, which a running program may have open."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.new")
    shutil.copyfile(source, beside)
    beside.chmod(mode)
    beside.replace(target)


def link(path: Path, to: str) -> None:
    """A symbolic link in place of what is there."""
    path.unlink(missing_ok=True)
    path.symlink_to(to)


def install(tree: Path, profile: str = "release") -> None:
    """Installs everything into a tree."""
    built = ROOT / "host" / "target" / profile
    number = version()
    major = number.partition(".")[0]
    shared = f"libnacelle.so.{number}"
    put(built / "libnacelle.so", tree / "lib" / shared, 0o755)
    link(tree / "lib" / f"libnacelle.so.{major}", shared)
    link(tree / "lib" / "libnacelle.so", f"libnacelle.so.{major}")
    put(built / "libnacelle.a", tree / "lib" / "libnacelle.a", 0o644)
    for source, target in FILES.items():
        put(source, tree / target, 0o644)
    for source, target in TEMPLATES.items():
        text = (CRATE / source).read_text().replace("@VERSION@", number).replace("@MAJOR@", major)
        (tree / target).parent.mkdir(parents=True, exist_ok=True)
        (tree / target).write_text(text)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, required=True, help="where it is installed, an absolute path")
    parser.add_argument("--destdir", default="", help="a folder to put before the prefix, for packages")
    parser.add_argument("--profile", default="release", choices=["release", "debug"], help="which build")
    arguments = parser.parse_args()
    if not arguments.prefix.is_absolute():
        parser.error(f"{arguments.prefix} is not an absolute path")
    tree = Path(f"{arguments.destdir}{arguments.prefix}")
    try:
        install(tree, arguments.profile)
    except OSError as error:
        sys.exit(f"error: {error}\ntry: make install-c PREFIX=/a/folder/that/you/may/write/to")
    print(f"installed in {tree}")


if __name__ == "__main__":
    main()
