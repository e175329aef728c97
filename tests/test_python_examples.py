# SPDX-License-Identifier: Apache-2.0
"""The examples in Python, and the commands and programs in the pages about the package, as they are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ADDRESS, NACELLE, ROOT, Wire
from python_package import PATIENCE, Package

pytestmark = pytest.mark.xdist_group("python")

HOW_TO = ROOT / "docs" / "how-to" / "use-python.md"
REFERENCE = ROOT / "docs" / "reference" / "python-api.md"
PNG = b"\x89PNG"
SAID = ["HelloWorld", "[[7.0, 10.0], [15.0, 22.0]]", "one two three"]


def run(package: Package, wire: Wire, example: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs an example."""
    command = [sys.executable, str(ROOT / "examples" / example), *arguments]
    environment = {**wire.environment, **package.environment(wire.folder / "wire")}
    return subprocess.run(command, env=environment, cwd=wire.folder, capture_output=True, text=True, timeout=PATIENCE)


def test_python_example(package: Package, wire: Wire) -> None:
    """Against the simulated device; the commands of its page are against the software device."""
    wire.device()
    result = run(package, wire, "05_python/main.py", ADDRESS)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == SAID
    result = run(package, wire, "05_python/main.py", "nobody0")
    assert result.returncode == 1 and "no device named nobody0" in result.stderr and "; try: " in result.stderr


def test_python_notebook_has_cells() -> None:
    text = (ROOT / "examples" / "06_python_notebook" / "kernel.py").read_text()
    assert text.count("\n# %%\n") >= 7 and text.count("\n# %% [markdown]\n") >= 4


def commands(page: Path) -> list[str]:
    """Of a page of the book those at a prompt; of an example those that are indented."""
    text = page.read_text()
    lines = re.findall(r"^\$ (.+)$" if "```console" in text else r"^ {4}(\S.+)$", text, re.MULTILINE)
    return [re.sub(r"\s{2,}# .*", "", line) for line in lines]


@pytest.mark.parametrize(
    "page", [HOW_TO, *sorted((ROOT / "examples").glob("*_python*/README.md"))], ids=lambda page: page.parent.name
)
def test_python_commands(package: Package, wire: Wire, page: Path) -> None:
    """In an environment of its own; without the build of the wheel, which is there, and without what comes from PyPI."""
    (wire.folder / "build").mkdir()
    (wire.folder / "build" / "wheel").symlink_to(package.wheel.parent)
    (wire.folder / "examples").symlink_to(ROOT / "examples")
    found = commands(page)
    assert found.pop(0) == "make wheel" and any("pip install" in command for command in found)
    script = []
    for command in found:
        if "-m venv" in command:
            # NumPy and matplotlib are those of the tests, and pip finds them there.
            place = "$(venv/bin/python -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))')"
            command = f"{command} --without-pip; echo {site_packages()} > {place}/tests.pth"
        pip = f"{sys.executable} -m pip --python venv/bin/python"
        command = re.sub(r"^venv/bin/pip install", f"{pip} install -q --no-index", command)
        script.append(re.sub(r"^(nacelle device .*?)( &)?$", r"\1 & sleep 1", command))
    environment = {**wire.environment, "PATH": f"{NACELLE.parent}:{os.environ['PATH']}"}
    text = "\n".join(["set -e", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT", *script])
    result = subprocess.run(
        ["bash", "-c", text], cwd=wire.folder, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert result.returncode == 0, f"{text}\n{result.stdout}{result.stderr}"
    if "notebook" in page.parent.name:
        assert "mandelbrot(parameters, out=image)" in result.stdout
        assert (wire.folder / "kernel.png").read_bytes().startswith(PNG)
    else:
        assert result.stdout.splitlines()[-3:] == SAID


def site_packages() -> Path:
    """Where the packages of the tests are."""
    import numpy

    return Path(numpy.__file__).parents[1]


@pytest.mark.parametrize("page", [HOW_TO, REFERENCE], ids=lambda page: page.stem)
def test_python_programs_of(package: Package, wire: Wire, page: Path) -> None:
    """Each is run after those before it, in one process."""
    wire.device("--soft", "--name", "soft0")
    programs = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert programs
    text = "\n".join(programs)
    environment = {**wire.environment, **package.environment(wire.folder / "wire")}
    result = subprocess.run(
        [sys.executable, "-c", text], cwd=wire.folder, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert result.returncode == 0, result.stderr
