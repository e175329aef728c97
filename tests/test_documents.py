# SPDX-License-Identifier: Apache-2.0
"""Every command in the book works: the lines after `$ ` and `# ` in its console blocks are run, page by page, in order.

A command that ends must succeed; one that runs on (a device, a switch) must still be running when the page ends.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import NACELLE, ROOT, Wire

# One worker runs them: a page may say what the machine has, beside which another page would start more.
pytestmark = pytest.mark.xdist_group("documents")

DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "```console" in page.read_text() and "book" not in page.parts)

# Not run here, and why.
ELSEWHERE = {
    "make ": "the tests are started by make, and run what make demo runs",
    "qemu-system-x86_64": "needs an image of a guest",
    ".venv/bin/python": "is a test itself",
    "python3 -m venv": "tests/test_python_examples.py runs it, and what follows",
    "venv/bin/": "the same",
    "nacelle nic": "needs the library of devices/nic.toml; tests/test_guest_card.py runs it",
    "nacelle filter": "needs the library of devices/nic.toml; tests/test_filter.py runs it, and the rules of its page",
    "nacelle config set rtl0 nat.": "needs the library of devices/nic.toml; tests/test_streams.py runs it",
    "nacelle config list rtl0 stream": "likewise",
    "nacelle guest-time": "needs a kernel of its own; tests/test_guest_time.py runs it",
    "nacelle device --wave": "needs the library with waveforms, which is tested at 64 bits",
}
# These run on until they are stopped: seconds after which they must still be there. The others must end.
RUNS_ON = {
    "nacelle device": 1.5,
    "nacelle wire": 1.5,
    "nacelle capture": 3.0,
    "nacelle export --listen": 1.5,
    "nacelle log rtl0 --follow": 1.5,
}
ENDS_WITHIN = 60.0


def commands(page: Path) -> list[tuple[str, str]]:
    """Prompt and command of each line of a page that has one."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            prompt, _, command = line.partition(" ")
            if prompt in ("$", "#"):
                found.append((prompt, re.sub(r"\s{2,}# .*", "", command).strip()))
    return [(prompt, command) for prompt, command in found if not any(command.startswith(known) for known in ELSEWHERE)]


@pytest.fixture
def as_root(request: pytest.FixtureRequest) -> list[str] | None:
    """What goes before the commands at a root prompt; None if this is not root, and they are left out."""
    return request.getfixturevalue("namespace") if os.geteuid() == 0 else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_commands_of(wire: Wire, as_root: list[str] | None, page: Path) -> None:
    environment = {**wire.environment, "PATH": f"{NACELLE.parent}{os.pathsep}{ROOT / '.venv/bin'}{os.pathsep}{os.environ['PATH']}"}
    environment["NACELLE_SIM_LIBRARY"] = str(ROOT / "build/sim/libnacelle_sim_512.so")
    rng = np.random.default_rng(1)
    for name in ("a", "b"):
        np.save(wire.folder / f"{name}.npy", rng.standard_normal((20, 20)).astype(np.float32))
    for name in ("in.bin", "data.bin", "input.bin"):
        (wire.folder / name).write_bytes(os.urandom(1000))
    (wire.folder / "build").mkdir()  # commands are given in the project's folder
    (wire.folder / "build/sim").symlink_to(ROOT / "build/sim")
    if any("10.77.0.2" in command or "rtl0" in command for _, command in commands(page)):
        wire.device("--name", "rtl0")
    for prompt, command in commands(page):
        if prompt == "#" and as_root is None:
            continue
        said = wire.folder / "said.txt"  # not a pipe, which a command could fill
        with said.open("w") as output:
            child = subprocess.Popen(
                [*(as_root or [] if prompt == "#" else []), "bash", "-c", command],
                cwd=wire.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        runs_on = next((seconds for known, seconds in RUNS_ON.items() if command.startswith(known)), None)
        end = time.monotonic() + (runs_on or ENDS_WITHIN)
        while child.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        if child.poll() is None:
            wire.children.append(child)
            assert runs_on, f"{page.name}: `{command}` did not end within {ENDS_WITHIN} s"
        else:
            assert child.returncode == 0, f"{page.name}: `{command}` returned {child.returncode}:\n{said.read_text()}"


def test_the_threat_model_names_tests_that_are_there() -> None:
    """A claim of the threat model stands on the tests that it names; one that was renamed would leave it without."""
    page = (ROOT / "docs" / "explanation" / "threat-model.md").read_text()
    paths = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    code = "\n".join((ROOT / path).read_text() for path in paths if path.endswith((".py", ".rs")))
    tests = set(re.findall(r"\b(?:def|fn) (\w+)", code)) | set(re.findall(r'"(\w+\.\w+)"', code))
    named = set(re.findall(r"`([a-z][\w./…]*)`", page))
    files = {name for name in named if "/" in name or name.endswith(".py")}
    rules = {name for name in named - files if name.count("_") >= 2}
    assert len(files) > 15 and len(rules) > 80
    for name in files:
        assert any(f"/{path}".endswith(f"/{name}") or path.startswith(f"{name}/") for path in paths), f"{name} is not there"
    for name in rules:
        pattern = re.compile(re.escape(name).replace("…", r"\w*"))
        assert any(pattern.fullmatch(test) for test in tests), f"there is no test {name}"
