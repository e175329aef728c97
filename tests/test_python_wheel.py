# SPDX-License-Identifier: Apache-2.0
"""The wheel: self-contained, quick to import, typed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import NACELLE, ROOT
from python_package import Package, Served, wheel

pytestmark = pytest.mark.xdist_group("python")

EXAMPLES = sorted((ROOT / "examples").glob("*_python*/*.py"))
IMPORT_WITHIN = 0.1


def test_the_wheel_is_installed_in_an_empty_environment(package: Package, served: Served, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", str(package.wheel)]
    subprocess.run(command, check=True)
    # Compiled at the installation, as pip does it; the best of a few, as others use the machine.
    script = """
import sys, time
begin = time.process_time()
import nacelle
took = time.process_time() - begin
assert not {"numpy", "asyncio", "logging"} & set(sys.modules), "it imports what few need"
with nacelle.connect("kernels0") as device:
    assert device.increment(bytearray(b"HAL")) == b"IBM"
print(took, nacelle.__version__)
"""
    said = [
        subprocess.run([python, "-I", "-c", script], env=package.environment(served.wire), capture_output=True, text=True)
        for _ in range(3)
    ]
    assert not any(one.returncode for one in said), said
    assert min(float(one.stdout.split()[0]) for one in said) < IMPORT_WITHIN
    version = (ROOT / "host" / "Cargo.toml").read_text().partition('version = "')[2].partition('"')[0]
    assert said[0].stdout.split()[1] == version


def test_the_wheel_is_one_for_every_python(package: Package) -> None:
    assert re.search(r"-cp311-abi3-manylinux_2_\d+_", package.wheel.name), package.wheel.name
    with zipfile.ZipFile(package.wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith("METADATA"))
        required = [line for line in archive.read(metadata).decode().splitlines() if line.startswith("Requires-Dist")]
    assert all("extra == 'numpy'" in line for line in required), required
    assert {"nacelle/_native.abi3.so", "nacelle/py.typed", "nacelle/_native.pyi"} <= set(names)
    said = subprocess.run(
        ["objdump", "-p", str(package.site / "nacelle" / "_native.abi3.so")], capture_output=True, text=True, check=True
    )
    needed = {line.split()[1] for line in said.stdout.splitlines() if "NEEDED" in line}
    assert needed <= {"libc.so.6", "libgcc_s.so.1", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, needed


def test_the_package_is_built_from_its_sources_by_pip(package: Package, tmp_path: Path) -> None:
    """As `pip install ./host/nacelle-python` does it, with the build of the tests and without PyPI."""
    profile = "--profile dev" if NACELLE.parent.name == "debug" else "--profile release"
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
    ]
    environment = {**os.environ, "MATURIN_PEP517_ARGS": profile, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("CARGO_TARGET_DIR", None)
    with wheel.alone():
        subprocess.run([*command, str(ROOT / "host" / "nacelle-python")], env=environment, check=True)
    (made,) = tmp_path.glob("nacelle-*-cp311-abi3-*.whl")
    with zipfile.ZipFile(made) as built, zipfile.ZipFile(package.wheel) as same:
        assert sorted(built.namelist()) == sorted(same.namelist())
    pinned = (ROOT / "tools" / "requirements-test.txt").read_text()
    backend = re.findall(r'"(maturin==[\d.]+)"', (ROOT / "host" / "nacelle-python" / "pyproject.toml").read_text())
    assert backend and backend[0] in pinned


RIGHT = """
import nacelle
async def run(device: nacelle.Device) -> bytes:
    with device.open(contexts=2) as connection, connection.create("increment", bytearray(3), timeout=1.5) as call:
        call.invoke(immediate=3)
        await call.finished()
        reveal_type(call.wait(0.5))
        reveal_type(device.describe())
    return bytes(device.matmul(b"", b""))
region = nacelle.output(10)
"""
WRONG = """import nacelle
nacelle.connect(5)
nacelle.output("x")
nacelle.connect("a").open("b")
nacelle.nothing
"""


def test_types(package: Package, tmp_path: Path) -> None:
    """The package, the examples and a program are right as `mypy --strict` sees them, and each line of another is refused."""
    assert len(EXAMPLES) >= 2
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    sources = [str(path) for path in (package.site / "nacelle").glob("*.py")]
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), *map(str, EXAMPLES), *sources]
    environment = {**os.environ, "MYPYPATH": str(package.site)}
    result = subprocess.run([*command, "right.py", "wrong.py"], env=environment, cwd=tmp_path, capture_output=True, text=True)
    errors = [line for line in result.stdout.splitlines() if ": error: " in line]
    assert sorted({line.split(": error")[0] for line in errors}) == [f"wrong.py:{line}" for line in range(2, 6)], result.stdout
    assert 'type is "bool"' in result.stdout and '"nacelle._description.Description | None"' in result.stdout


def test_the_stub_names_what_the_module_has(package: Package) -> None:
    package.load()
    from nacelle import _native

    stub = (package.site / "nacelle" / "_native.pyi").read_text()
    for name in vars(_native):
        if name.startswith("_"):
            continue
        assert f"class {name}:" in stub or f"def {name}(" in stub or f"\n{name}:" in stub, name
        if isinstance(vars(_native)[name], type):
            body = stub.partition(f"class {name}:")[2].partition("\nclass ")[0]
            for member in vars(vars(_native)[name]):
                assert member.startswith("_") or f"def {member}(" in body, f"{name}.{member}"
