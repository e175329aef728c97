# SPDX-License-Identifier: Apache-2.0
"""Builds the simulated device: the shell under Verilator, as build/sim/libnacelle_sim_<DATA_W>.so.

    python sim/build.py [--data-w 64|128|256|512] [--qps N] [--hostile] [--waves]

Does nothing if the library is newer than every source. With --qps the device takes N connections at once, a power of two from 8
to 1024, and the library is libnacelle_sim_<DATA_W>_qps<N>.so. With --hostile, for tests, it has a kernel that misbehaves instead of
the traffic kernel: libnacelle_sim_<DATA_W>_hostile.so. With --waves it is libnacelle_sim_<DATA_W>_waves.so: it can write
FST waveforms, and is slower.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "rtl" / "testing"))
from nacelle_tb.sources import GENERATED, module_dirs, packages  # noqa: E402

CLOCK_HZ = 250_000_000
MAX_FRAME = 4096 + 128
DRAM_MIB = 1024
# The reference width is built to run fast, in a file for each core more than once; the others, mostly for tests, to be built fast:
# the compiler takes longer to read Verilator's headers than to compile a file.
REFERENCE_W = 512
HOSTILE = [ROOT / "rtl" / "compute" / "test" / name for name in ("kernel_hostile.sv", "socket_kernel_hostile.sv")]
WARNINGS = ["-Wno-fatal", "-Wno-DECLFILENAME"]


def say(text: str) -> None:
    """Progress goes to stderr."""
    print(f"==> {text}", file=sys.stderr, flush=True)


def run(command: list[str], what: str) -> None:
    """Runs a tool quietly; on failure shows everything it said and stops."""
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        sys.exit(f"{result.stdout}\n{what} failed: {' '.join(command[:3])} ... returned {result.returncode}")


def sources() -> list[Path]:
    """Everything that the library is made from."""
    rtl = [path for folder in [*module_dirs(), GENERATED] for path in folder.glob("*.sv")]
    return [*rtl, *HOSTILE, *(ROOT / "sim").glob("*.*"), ROOT / "rtl" / "control" / "nacelle.rdl"]


def build(data_w: int, qps: int | None, hostile: bool, waves: bool) -> Path:
    """Builds one library and returns its path."""
    name = f"nacelle_sim_{data_w}{f'_qps{qps}' if qps else ''}{'_hostile' if hostile else ''}{'_waves' if waves else ''}"
    out = ROOT / "build" / "sim"
    library = out / f"lib{name}.so"
    subprocess.run([sys.executable, str(ROOT / "rtl" / "control" / "generate.py")], check=True)
    if library.exists() and all(library.stat().st_mtime > path.stat().st_mtime for path in sources()):
        return library

    unusual = [f"{qps} queue pairs"] * bool(qps) + ["with a hostile kernel"] * hostile + ["with waveforms"] * waves
    kind = ", ".join([f"{data_w} bits", *unusual])
    say(f"building the simulated device, {kind} (a minute or two)")
    begin = time.monotonic()
    work = out / f"obj_{name}"
    work.mkdir(parents=True, exist_ok=True)
    tools = Path(sys.executable).parent
    os.environ["PATH"] = f"{tools}{os.pathsep}{os.environ['PATH']}"
    optimise, files = ("-O2", 6) if data_w == REFERENCE_W else ("-O1", 1)
    cache = ["OBJCACHE=ccache"] if shutil.which("ccache") else []
    run(
        [
            "verilator", "--cc", "--prefix", "Vnacelle", "--Mdir", str(work), "--top-module", "nacelle_sim_top",
            f"-GDATA_W={data_w}", *([f"-GQPS={qps}"] if qps else []), "-O3",
            "--x-assign", "fast", "--x-initial", "unique", "--no-assert", *WARNINGS,
            "--timescale", "1ns/1ps", "--output-split", "20000", "--output-groups", str(files), "-CFLAGS", "-fPIC",
            *(["--trace-fst", "--trace-structs"] if waves else []),
            *[arg for path in [*module_dirs(), GENERATED] if path.exists() for arg in ("-y", str(path))],
            *map(str, packages()), *map(str, HOSTILE if hostile else ()), str(ROOT / "sim" / "nacelle_sim_top.sv"),
        ],
        "Verilator",
    )  # fmt: skip
    jobs = os.environ.get("NACELLE_JOBS", str(os.cpu_count() or 1))
    run(
        ["make", "-s", "-C", str(work), "-f", "Vnacelle.mk", f"-j{jobs}", f"OPT_FAST={optimise}", "OPT_SLOW=-O0",
         "OPT_GLOBAL=-O1", *cache, "libVnacelle.a", "libverilated.a"],
        "The C++ compiler",
    )  # fmt: skip
    include = next(Path(p) for p in sys.path if (Path(p) / "verilator" / "include").exists()) / "verilator" / "include"
    partial = library.with_suffix(".partial")
    run(
        [
            "g++", "-std=gnu++20", "-O2", "-fPIC", "-shared", "-o", str(partial), str(ROOT / "sim" / "nacelle_sim.cpp"),
            f"-DNACELLE_DATA_W={data_w}", f"-DNACELLE_CLOCK_HZ={CLOCK_HZ}", f"-DNACELLE_MAX_FRAME={MAX_FRAME}",
            f"-DNACELLE_DRAM_MIB={DRAM_MIB}", f"-DVM_TRACE={int(waves)}", f"-I{work}", f"-I{include}", f"-I{include}/vltstd",
            "-Wl,--whole-archive", str(work / "libVnacelle.a"), "-Wl,--no-whole-archive", str(work / "libverilated.a"),
            "-pthread", "-lz", "-llz4", "-latomic",
        ],
        "Linking the library",
    )  # fmt: skip
    partial.rename(library)
    say(f"{library.relative_to(ROOT)} ready after {time.monotonic() - begin:.0f} s")
    return library


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-w", type=int, choices=(64, 128, 256, 512), default=512)
    parser.add_argument("--qps", type=int, choices=[2**n for n in range(3, 11)], help="connections at once [256]")
    parser.add_argument("--hostile", action="store_true", help="has a kernel that misbehaves")
    parser.add_argument("--waves", action="store_true", help="can write waveforms")
    arguments = parser.parse_args()
    build(arguments.data_w, arguments.qps, arguments.hostile, arguments.waves)


if __name__ == "__main__":
    main()
