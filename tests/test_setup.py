# SPDX-License-Identifier: Apache-2.0
"""tools/setup.sh on machines that lack things, and after it was interrupted: with stand-ins for Python and the package managers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BASICS = "sh awk cat cmp cp dirname env flock grep id ln mkdir printf rm sed".split()
LOCK = "requirements-demo.lock"

# Stands in for Python: carries out the script's commands, and records them. `pip install` ends as the file `pip-ends` says.
PYTHON = """#!/bin/sh
here=$(dirname "$0")
case "$*" in
*"-m venv"*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; echo "venv" >>"$LOG" ;;
*"-m pip --version") ;;
*"-m pip install"*) echo "pip $*" >>"$LOG"; exit "$(cat "$PIP_ENDS" 2>/dev/null || echo 0)" ;;
*sys.version_info\\[*) echo 3.11 ;;
esac
"""


class Machine:
    """A copy of the set-up's files, and a PATH with some tools only."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.bin, self.log = folder / "tree", folder / "bin", folder / "log"
        self.pip_ends = folder / "pip-ends"
        (self.tree / "tools").mkdir(parents=True)
        self.bin.mkdir()
        for name in ("setup.sh", LOCK):
            shutil.copy(ROOT / "tools" / name, self.tree / "tools")
        (self.tree / "tools" / "repair_verilator.sh").write_text("")
        for name in BASICS:
            (self.bin / name).symlink_to(shutil.which(name) or f"/bin/{name}")
        self.tool("python3", PYTHON)

    def tool(self, name: str, text: str = "#!/bin/sh\n") -> None:
        """Puts a stand-in on the path."""
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def complete(self) -> None:
        """Everything that `demo` needs is there."""
        for name in "g++ make perl ccache git".split():
            self.tool(name)
        self.tool("cargo", "#!/bin/sh\necho cargo 1.95.0\n")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs the set-up."""
        environment = {
            "PATH": str(self.bin),
            "LOG": str(self.log),
            "PIP_ENDS": str(self.pip_ends),
            "HOME": os.environ.get("HOME", "/"),
        }
        command = ["sh", str(self.tree / "tools" / "setup.sh"), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    def done(self) -> list[str]:
        """The commands for Python since the last call."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return [line.split()[0] for line in lines]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("manager", "command", "packages"),
    [
        ("apt-get", "apt-get install", ("g++", "zlib1g-dev", "liblz4-dev")),
        ("dnf", "dnf install", ("gcc-c++", "zlib-devel", "lz4-devel", "rustup")),
        ("pacman", "pacman -S", ("gcc", "zlib", "lz4", "rustup")),
    ],
)
def test_missing_tools_are_named_with_the_command(machine: Machine, manager: str, command: str, packages: tuple[str, ...]) -> None:
    machine.tool(manager)
    result = machine.run("check", "demo")
    assert result.returncode == 1
    assert "C++ compiler" in result.stderr
    assert "Rust 1.95" in result.stderr
    line = next(line for line in result.stderr.splitlines() if command in line)
    assert set(packages) <= set(line.split())


@pytest.mark.parametrize(("manager", "package"), [("dnf", "golang-github-prometheus"), ("pacman", "prometheus")])
def test_the_checker_of_metrics_is_asked_for_by_its_package(machine: Machine, manager: str, package: str) -> None:
    machine.tool(manager)
    assert f"(promtool): package {package}\n" in machine.run("check", "test").stderr
    machine.tool("promtool")
    assert "promtool" not in machine.run("check", "test").stderr


def test_what_is_there_is_not_asked_for(machine: Machine) -> None:
    machine.complete()
    machine.tool("dnf")
    assert "Missing: the Python packages" in machine.run("check", "demo").stderr


def test_an_old_cargo_is_named(machine: Machine) -> None:
    machine.complete()
    machine.tool("rustup")
    machine.tool("cargo", "#!/bin/sh\necho cargo 1.75.0\n")
    result = machine.run("check", "demo")
    assert result.returncode == 1
    assert "1.75.0 was found" in result.stderr
    assert "rustup update stable" in result.stderr


def test_packages_are_installed_once_by_their_hashes(machine: Machine) -> None:
    machine.complete()
    assert machine.run("demo").returncode == 0
    assert "--require-hashes" in machine.log.read_text()
    assert machine.done() == ["venv", "pip"]
    assert machine.run("demo").returncode == 0
    assert machine.done() == []


def test_an_interrupted_installation_begins_anew(machine: Machine) -> None:
    machine.complete()
    machine.pip_ends.write_text("137")
    assert machine.run("demo").returncode != 0
    half = machine.tree / ".venv" / "half-installed"
    half.write_text("")
    machine.done()
    machine.pip_ends.unlink()
    assert machine.run("demo").returncode == 0
    assert machine.done() == ["venv", "pip"]
    assert not half.exists()


def test_an_environment_whose_python_is_gone_is_made_anew(machine: Machine) -> None:
    machine.complete()
    assert machine.run("demo").returncode == 0
    machine.done()
    (machine.tree / ".venv" / "bin" / "python").unlink()
    assert machine.run("demo").returncode == 0
    assert machine.done() == ["venv", "pip"]


def test_another_lock_file_is_installed(machine: Machine) -> None:
    machine.complete()
    assert machine.run("demo").returncode == 0
    machine.done()
    with (machine.tree / "tools" / LOCK).open("a") as lock:
        lock.write("# changed\n")
    assert machine.run("demo").returncode == 0
    assert machine.done() == ["pip"]


@pytest.mark.parametrize("name", ["demo", "test", "board"])
def test_every_locked_package_has_a_hash_and_is_what_was_asked_for(name: str) -> None:
    lock = (ROOT / "tools" / f"requirements-{name}.lock").read_text()
    entries = lock.replace("\\\n", " ").strip().splitlines()
    assert all("--hash=sha256:" in entry for entry in entries)
    # With the machines that it is for, where there are only some.
    locked = {entry.partition("--hash")[0].strip().lower() for entry in entries}
    asked = [line for line in (ROOT / "tools" / f"requirements-{name}.txt").read_text().splitlines() if "==" in line]
    assert asked
    assert {line.strip().lower() for line in asked} <= locked


def test_the_repair_is_for_the_verilator_that_is_installed() -> None:
    version = next(
        line.partition("==")[2]
        for line in (ROOT / "tools" / "requirements-demo.txt").read_text().splitlines()
        if line.startswith("verilator")
    )
    assert f"\nsupported={version}\n" in (ROOT / "tools" / "repair_verilator.sh").read_text()
