# SPDX-License-Identifier: Apache-2.0
"""The examples, by the commands of their READMEs, as they are: devices are started, programs built and run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import time
import tomllib
from pathlib import Path

import pytest
from c_tree import EXAMPLES, Tree
from conftest import NACELLE, ROOT, Wire
from nacelle_tb.long import LONG

# What the program prints.
IN_C = {
    "01_c": r"HelloWorld, after \d+ looks\nAgain.....\n",
    "02_cpp": r"two products of 32x32: right\n",
    "03_fortran": r"the product of \d+x\d+ is right\n",
    "04_naaice": r"(call [123]: 1024 bytes, 0 wrong\n){3}",
    "07_transfers": r"7 \* 7 = 49 and 999 \* 999 = 998001 .*\n(round [123], 1000 .*: right\n){3}memory of the device: right\n",
    "09_overlap": r"call alone .*\nwork alone .*\nboth .* hidden\none look .* us, of \d+\n0 wrong\n",
    "12_copies": r"15 tiles of 32x32 there and back: 0 of 15360 numbers wrong\n",
    # Ranks print in any order.
    "11_mpi": r"(rank [0-3] used 10.77.0.[23]::16:3\n|32 rows by 4 ranks, 0 wrong\n){5}",
}
IN_RUST = {
    "08_rust": r"after \d+ looks\nHelloWorld\n",
    "10_many_devices": r"10.77.0.2: 128 rows in .*\n10.77.0.3: 128 rows in .*\n256 x 256 on 2 devices in .*, 0 wrong\n",
}
PATIENCE = 300


def follow(wire: Wire, folder: Path, environment: dict[str, str]) -> str:
    """Starts the devices of a README and runs its other commands; what they print."""
    # Of a device in a slot: sockets have short paths, and libraries are those of the tests.
    text = (folder / "README.md").read_text().replace("card.sock", str(wire.folder / "card.sock"))
    text = text.replace("build/sim/", f"{ROOT}/build/sim/")
    lines = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    devices = [shlex.split(line.removesuffix("&")) for line in lines if line.startswith("nacelle device")]
    for command in devices:
        wire.start(*command[1:])
    end = time.monotonic() + 30
    while sum(entry["alive"] for entry in wire.json("ls")) < len(devices):
        assert time.monotonic() < end, "the devices do not answer"
        time.sleep(0.1)
    commands = [line for line in lines if not line.startswith(("make ", "nacelle device"))]
    script = "\n".join(["set -e", *commands, *re.findall(r"`(cmake -B .*?)`", text)])
    result = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=wire.environment | environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("example", IN_C)
def test_example_in_c_and_fortran(wire: Wire, c_tree: Tree, tmp_path: Path, example: str) -> None:
    if example == "11_mpi" and shutil.which("mpicc") is None:
        pytest.skip("needs an MPI library, with mpicc")
    folder = tmp_path / example
    shutil.copytree(EXAMPLES / example, folder)
    (tmp_path / "nacelle").symlink_to(c_tree.prefix)
    mpi = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    said = follow(wire, folder, {"HOME": str(tmp_path), **mpi})
    assert re.match(IN_C[example], said), said


@pytest.mark.parametrize("example", IN_RUST)
def test_example_in_rust(wire: Wire, tmp_path: Path, example: str) -> None:
    text = (EXAMPLES / example / "README.md").read_text()
    assert "    cargo run --release -- " in text
    if "NACELLE_PROGRAMS" in os.environ and not LONG:
        # It was built with everything else. Alone it has other features of what it depends on, and all is compiled again.
        manifest = tomllib.loads((EXAMPLES / example / "Cargo.toml").read_text())
        text = text.replace("cargo run --release --", str(NACELLE.parent / manifest["bin"][0]["name"]))
    else:
        # The profile of the programs that the tests run: another would be built from the ground up.
        run = f"cargo run -q --manifest-path {EXAMPLES / example}/Cargo.toml"
        text = text.replace("cargo run --release", f"{run} --release" if NACELLE.parent.name == "release" else run)
    (folder := tmp_path / example).mkdir()
    (folder / "README.md").write_text(text)
    environment = {key: value for key, value in os.environ.items() if key != "CARGO_TARGET_DIR"}
    said = follow(wire, folder, environment)
    assert re.match(IN_RUST[example], said), said
