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

DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "```console" in page.read_text() and "book" not in page.parts)

# Not run here, and why.
ELSEWHERE = {
    "make ": "the tests are started by make, and run what make demo runs",
    "qemu-system-x86_64": "needs an image of a guest",
    ".venv/bin/python": "is a test itself",
    "nacelle device --wave": "needs the library with waveforms, which is tested at 64 bits",
}
# These run on until they are stopped: seconds after which they must still be there. The others must end.
RUNS_ON = {"nacelle device": 1.5, "nacelle wire": 1.5, "nacelle capture": 3.0}
ENDS_WITHIN = 60.0


def commands(page: Path) -> list[str]:
    """The commands of a page; a root prompt only if this is root."""
    found: list[str] = []
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            prompt, _, command = line.partition(" ")
            if prompt == "$" or (prompt == "#" and os.geteuid() == 0):
                found.append(re.sub(r"\s{2,}# .*", "", command).strip())
    return [command for command in found if not any(command.startswith(known) for known in ELSEWHERE)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_commands_of(wire: Wire, page: Path) -> None:
    environment = {**wire.environment, "PATH": f"{NACELLE.parent}{os.pathsep}{ROOT / '.venv/bin'}{os.pathsep}{os.environ['PATH']}"}
    environment["NACELLE_SIM_LIBRARY"] = str(ROOT / "build/sim/libnacelle_sim_512.so")
    rng = np.random.default_rng(1)
    for name in ("a", "b"):
        np.save(wire.folder / f"{name}.npy", rng.standard_normal((20, 20)).astype(np.float32))
    for name in ("in.bin", "data.bin", "input.bin"):
        (wire.folder / name).write_bytes(os.urandom(1000))
    first = commands(page)
    if any("10.77.0.2" in command or "rtl0" in command for command in first):
        wire.device("--name", "rtl0")
    for command in first:
        child = subprocess.Popen(
            ["bash", "-c", command],
            cwd=wire.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
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
            assert child.returncode == 0, f"{page.name}: `{command}` returned {child.returncode}:\n{child.communicate()[0]}"
