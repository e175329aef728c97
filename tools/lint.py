# SPDX-License-Identifier: Apache-2.0
"""Lints the whole RTL at every DATA_W, and with several memories or ECC, and the planes that no device has: with Verilator -Wall
(waivers with their reasons are in rtl/lint.vlt), and with slang, which reads it for synthesis and takes the standard more
strictly. Only its errors count.

    python tools/lint.py [--device DEVICE ...]

With --device only these devices, at 64 and at 512 bits: description files, or names in devices/.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tomllib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "rtl" / "testing"))
from nacelle_tb.device import STANDARD, WIDTHS, DescriptionError, load, named  # noqa: E402
from nacelle_tb.device_rtl import generate  # noqa: E402
from nacelle_tb.planes import ALONE  # noqa: E402
from nacelle_tb.sources import GENERATED, module_dirs, packages  # noqa: E402

BUILDS = [
    ("standard", 256),
    ("standard", 128),
    ("test", 64),
    ("ecc", 512),
    ("slot", 64),
    ("nic", 512),
    ("telemetry", 64),
]
BOARDS = sorted(path.parent.name for path in (ROOT / "boards").glob("*/board.toml"))


@dataclass(frozen=True)
class Top:
    """What is around the device: by default the module of the simulation."""

    module: str = "nacelle_sim_top"
    files: tuple[Path, ...] = (ROOT / "sim" / "nacelle_sim_top.sv",)
    folders: tuple[Path, ...] = ()


def on_board(name: str) -> tuple[str, int, Top]:
    """The device of a board, and what is around it there."""
    folder = ROOT / "boards" / name
    description = tomllib.loads((folder / "board.toml").read_text())
    family = folder.parent / description["family"]
    device = folder / description["device"]
    files = (*sorted(family.glob("*_cells.sv")), folder / f"{name}.sv")
    return str(device), load(device).data_w, Top(name, files, (family, folder.parent / "common"))


def alone(name: str, data_w: int) -> tuple[str, int, Top]:
    """A plane that is not in the shell."""
    source, module = ALONE[name]
    file = ROOT / "build" / "lint" / f"{name}-{data_w}" / f"tb_{module}.sv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source(data_w))
    return STANDARD, data_w, Top(f"tb_{module}", (file,))


def lint(name: str, data_w: int, top: Top = Top()) -> int:
    """Verilator's exit status."""
    device = generate(named(name).with_sizes(data_w))
    return subprocess.run(
        [
            str(Path(sys.executable).parent / "verilator"), "--lint-only", "-Wall", "--timescale", "1ns/1ps",
            "--top-module", top.module, str(ROOT / "rtl" / "lint.vlt"),
            *[arg for path in [*module_dirs(device), GENERATED, *top.folders] if path.exists() for arg in ("-y", str(path))],
            *map(str, [*packages(device), *top.files]),
        ],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
    ).returncode  # fmt: skip


def elaborate(name: str, data_w: int, top: Top = Top()) -> Any:
    """The elaborated design (slang)."""
    import pyslang
    from pyslang import ast, syntax

    options = ast.CompilationOptions()
    options.topModules = {top.module}
    description = named(name).with_sizes(data_w)
    device = generate(description)
    compilation = ast.Compilation(pyslang.Bag([options]))
    files = [*packages(device), *top.files]
    # A kernel that this device does not have has no package here.
    others = {path.stem for folder in device.kernel_folders for path in folder.glob("*_*.toml")}
    others -= {kernel.module for kernel in [*description.kernels, *([description.stream] if description.stream else [])]}
    for folder in [*module_dirs(device), GENERATED, *top.folders]:
        files += [path for path in sorted(folder.glob("*.sv")) if path not in files and path.stem not in others]
    for path in sorted(files, key=lambda p: not p.name.endswith("_pkg.sv")):
        compilation.addSyntaxTree(syntax.SyntaxTree.fromFile(str(path)))
    return compilation


def read_for_synthesis(name: str, data_w: int, top: Top = Top()) -> int:
    """1 if slang finds an error, 0 otherwise."""
    import pyslang

    compilation = elaborate(name, data_w, top)
    errors = [diagnostic for diagnostic in compilation.getAllDiagnostics() if diagnostic.isError()]
    print(pyslang.DiagnosticEngine.reportAll(compilation.sourceManager, errors), end="")
    return int(bool(errors))


def main() -> int:
    """Every check of every build, on all cores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", nargs="+", default=[], help="description files, or names in devices/")
    devices = parser.parse_args().device
    try:
        for name in devices:
            named(name)
    except DescriptionError as error:
        sys.exit(f"error: {error}")
    subprocess.run([sys.executable, str(ROOT / "rtl" / "control" / "generate.py")], check=True)
    plain = [(name, data_w) for name in devices for data_w in (512, 64)] or BUILDS
    builds = [*((name, data_w, Top()) for name, data_w in plain), *(on_board(board) for board in BOARDS if not devices)]
    if not devices:
        builds += [alone(name, data_w) for name in ALONE for data_w in WIDTHS]
    with ProcessPoolExecutor() as pool:
        running = [pool.submit(check, name, data_w, top) for name, data_w, top in builds for check in (read_for_synthesis, lint)]
        return max(job.result() for job in running)


if __name__ == "__main__":
    sys.exit(main())
