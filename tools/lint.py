# SPDX-License-Identifier: Apache-2.0
"""Lints the whole RTL at every DATA_W, and with several memories or ECC: with Verilator -Wall (waivers with their reasons are in
rtl/lint.vlt), and with slang, which reads it for synthesis and takes the standard more strictly. Only its errors count.

    python tools/lint.py [--device DEVICE ...]

With --device only these devices, at 64 and at 512 bits: description files, or names in devices/.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "rtl" / "testing"))
from nacelle_tb.device import DescriptionError, named  # noqa: E402
from nacelle_tb.device_rtl import generate  # noqa: E402
from nacelle_tb.sources import GENERATED, module_dirs, packages  # noqa: E402

BUILDS = [("standard", 512), ("standard", 256), ("standard", 128), ("standard", 64), ("test", 64), ("ecc", 512)]


def lint(name: str, data_w: int) -> int:
    """Verilator's exit status."""
    device = generate(named(name).with_sizes(data_w))
    return subprocess.run(
        [
            str(Path(sys.executable).parent / "verilator"), "--lint-only", "-Wall", "--timescale", "1ns/1ps",
            "--top-module", "nacelle_sim_top", str(ROOT / "rtl" / "lint.vlt"),
            *[arg for path in [*module_dirs(device), GENERATED] if path.exists() for arg in ("-y", str(path))],
            *map(str, packages(device)), str(ROOT / "sim" / "nacelle_sim_top.sv"),
        ],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
    ).returncode  # fmt: skip


def elaborate(name: str, data_w: int) -> Any:
    """The elaborated design (slang)."""
    import pyslang
    from pyslang import ast, syntax

    options = ast.CompilationOptions()
    options.topModules = {"nacelle_sim_top"}
    description = named(name).with_sizes(data_w)
    device = generate(description)
    compilation = ast.Compilation(pyslang.Bag([options]))
    files = [*packages(device), ROOT / "sim" / "nacelle_sim_top.sv"]
    # A kernel that this device does not have has no package here.
    others = {path.stem for folder in device.kernel_folders for path in folder.glob("kernel_*.toml")}
    others -= {kernel.module for kernel in description.kernels}
    for folder in [*module_dirs(device), GENERATED]:
        files += [path for path in sorted(folder.glob("*.sv")) if path not in files and path.stem not in others]
    for path in sorted(files, key=lambda p: not p.name.endswith("_pkg.sv")):
        compilation.addSyntaxTree(syntax.SyntaxTree.fromFile(str(path)))
    return compilation


def read_for_synthesis(name: str, data_w: int) -> int:
    """1 if slang finds an error, 0 otherwise."""
    import pyslang

    compilation = elaborate(name, data_w)
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
    builds = [(name, data_w) for name in devices for data_w in (512, 64)] or BUILDS
    with ProcessPoolExecutor() as pool:
        running = [pool.submit(check, name, data_w) for name, data_w in builds for check in (read_for_synthesis, lint)]
        return max(job.result() for job in running)


if __name__ == "__main__":
    sys.exit(main())
