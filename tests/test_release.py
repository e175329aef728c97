# SPDX-License-Identifier: Apache-2.0
"""A release: its version is in one place, and its archives hold what runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from c_tree import Tree
from conftest import NACELLE

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import dist  # noqa: E402


def test_the_changelog_has_the_version() -> None:
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")]
    assert headings[0].split()[1] == dist.version(), "the newest part of CHANGELOG.md is not that of the version in host/Cargo.toml"


def test_the_command_says_the_version() -> None:
    said = subprocess.run([NACELLE, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.split()[1] == dist.version()


def test_archives(c_tree: Tree, tmp_path: Path) -> None:
    library = ROOT / "build" / "sim" / "libnacelle_sim_512.so"
    (wheel := tmp_path / "nacelle-cp311-abi3.whl").write_bytes(b"as it was built")
    sources, binaries, copied = dist.make(tmp_path / "dist", c_tree.prefix, NACELLE, library, wheel)
    assert copied.parent == sources.parent and copied.read_bytes() == wheel.read_bytes()
    check = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=tmp_path / "dist", capture_output=True, text=True)
    assert check.returncode == 0 and wheel.name in check.stdout, check.stdout
    with tarfile.open(sources) as archive:
        assert {"README.md", "Makefile", "rtl", "host"} <= {name.split("/")[1] for name in archive.getnames() if "/" in name}
    with tarfile.open(binaries) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / binaries.name.removesuffix(".tar.gz").rsplit("-", 2)[0]
    needs = (folder / "NEEDS").read_text()
    assert "glibc 2." in needs
    assert "libc.so.6" in needs
    assert subprocess.run([folder / "bin" / "nacelle", "--version"], capture_output=True, check=False).returncode == 0
    assert (folder / "build" / "sim" / library.name).stat().st_size == library.stat().st_size
    program = Tree(folder).compile(tmp_path / "increment", "gcc", str(ROOT / "examples" / "01_c" / "main.c"))
    assert str(folder) in subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    assert all((folder / "include" / name).is_file() for name in ("nacelle_kernel.h", "nacelle_registers.h"))


def test_archives_are_the_same_each_time(tmp_path: Path) -> None:
    small = Path("/bin/sh")
    (installed := tmp_path / "installed" / "lib").mkdir(parents=True)
    shutil.copyfile(small, installed / "libnacelle.so.0")
    (installed / "libnacelle.so").symlink_to("libnacelle.so.0")
    first, second = (tmp_path / name for name in ("first", "second"))
    for folder in (first, second):
        dist.make(folder, installed.parent, small, small)
    assert (first / "SHA256SUMS").read_text() == (second / "SHA256SUMS").read_text()
