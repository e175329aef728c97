# SPDX-License-Identifier: Apache-2.0
"""Lints the whole RTL at every DATA_W: with Verilator -Wall (waivers with their reasons are in rtl/lint.vlt), and with slang, which
reads it for synthesis and takes the standard more strictly. Only its errors count."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "rtl" / "testing"))
from nacelle_tb.sources import GENERATED, module_dirs, packages  # noqa: E402
from synth import elaborate  # noqa: E402


def lint(data_w: int) -> int:
    """Verilator's exit status."""
    return subprocess.run(
        [
            str(Path(sys.executable).parent / "verilator"), "--lint-only", "-Wall", "--timescale", "1ns/1ps",
            "--top-module", "nacelle_sim_top", f"-GDATA_W={data_w}", str(ROOT / "rtl" / "lint.vlt"),
            *[arg for path in [*module_dirs(), GENERATED] if path.exists() for arg in ("-y", str(path))],
            *map(str, packages()), str(ROOT / "sim" / "nacelle_sim_top.sv"),
        ],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
    ).returncode  # fmt: skip


def read_for_synthesis(data_w: int) -> int:
    """1 if slang finds an error, 0 otherwise."""
    import pyslang

    compilation = elaborate(data_w)
    errors = [diagnostic for diagnostic in compilation.getAllDiagnostics() if diagnostic.isError()]
    print(pyslang.DiagnosticEngine.reportAll(compilation.sourceManager, errors), end="")
    return int(bool(errors))


def main() -> int:
    """Every check at every width, on all cores."""
    with ProcessPoolExecutor() as pool:
        running = [pool.submit(check, data_w) for data_w in (512, 256, 128, 64) for check in (read_for_synthesis, lint)]
        return max(job.result() for job in running)


if __name__ == "__main__":
    sys.exit(main())
