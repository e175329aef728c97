# SPDX-License-Identifier: Apache-2.0
"""The command as it is installed: manual pages that render, and completions that shells load."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import NACELLE, ROOT

sys.path.insert(0, str(ROOT / "tools"))

import install_cli


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command, installed."""
    tree = tmp_path_factory.mktemp("installed")
    install_cli.install(tree, NACELLE)
    return tree


def rendered(page: Path) -> str:
    """A manual page as `man` or `mandoc` shows it; neither may warn."""
    if mandoc := shutil.which("mandoc"):
        command = [mandoc, "-T", "utf8", "-W", "error", str(page)]
    elif shutil.which("man") and shutil.which("groff"):
        command = ["man", "--warnings", "-E", "UTF-8", "-l", str(page)]
    else:
        pytest.skip("neither mandoc nor man with groff is here")
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "100"})
    assert result.returncode == 0 and not result.stderr, result.stderr
    return re.sub(".\b|\x1b\\[[0-9;]*m", "", result.stdout)


def test_manual_pages_render(tree: Path) -> None:
    pages = {page.name: page for page in (tree / "share/man/man1").iterdir()}
    assert {"nacelle.1", "nacelle-doctor.1", "nacelle-run.1", "nacelle-run-matmul.1"} <= pages.keys()
    text = rendered(pages["nacelle.1"])
    for words in ("EXIT STATUS", "NACELLE_WIRE", "nacelle-doctor(1)", "--trust-owner"):
        assert words in text, text
    assert "--ack-timeout" in rendered(pages["nacelle-run-matmul.1"])


def test_bash_completes_commands_and_options(tree: Path) -> None:
    if not shutil.which("bash"):
        pytest.skip("there is no bash here")
    script = tree / "share/bash-completion/completions/nacelle"

    def completed(line: str) -> list[str]:
        words = line.split(" ")
        code = (
            f"source {script}; COMP_WORDS=({' '.join(words[:-1])} '{words[-1]}'); COMP_CWORD={len(words) - 1}; "
            f"COMP_LINE='{line}'; _nacelle nacelle '{words[-1]}' '{words[-2]}'; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        )
        result = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True)
        assert result.returncode == 0 and not result.stderr, result.stderr
        return result.stdout.split()

    assert completed("nacelle d") == ["device", "devices", "describe", "doctor", "demo"]
    assert "--no-progress" in completed("nacelle run increment --no")
    assert completed("nacelle n") == ["nic"]
    assert completed("nacelle demo --dtype ") == ["int32", "float32"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_take_the_script(tree: Path, shell: str) -> None:
    script = tree / install_cli.COMPLETIONS[shell]
    assert "doctor" in script.read_text()
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell} here")
    subprocess.run([shell, "-n", script], check=True)


def test_the_installed_command_runs(tree: Path) -> None:
    said = subprocess.run([tree / "bin/nacelle", "--version"], check=True, capture_output=True, text=True).stdout
    assert said.startswith("nacelle ")
