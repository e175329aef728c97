# SPDX-License-Identifier: Apache-2.0
"""Builds the simulated device: the shell under Verilator, as build/sim/libnacelle_sim_<DATA_W>.so.

    python sim/build.py [--device DEVICE] [--data-w 64|128|256|512] [--qps N] [--waves] [--fast]

Does nothing if the library is newer than every source. DEVICE describes what the device consists of: a file, or the name of one in
devices/ (docs/reference/device-description.md). Any but the standard device has its name in that of the library:
libnacelle_sim_<DATA_W>_<DEVICE>.so. With --data-w it has another width than the description says; with --qps it takes N connections
at once, a power of two from 16 to 1024, and the library is libnacelle_sim_<DATA_W>_qps<N>.so. With --waves it is
libnacelle_sim_<DATA_W>_waves.so: it can write FST waveforms, and is slower.

With --fast the library has the same name and is faster: it is compiled twice, the second time with a profile of the load in
sim/train.py (gcc's -fprofile-use). That takes about three times as long, and the library stays until a source changes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "rtl" / "testing"))
from nacelle_tb.device import MEMORY_STRIDE_W, STANDARD, Device, add_options, from_options  # noqa: E402
from nacelle_tb.device_rtl import DeviceRtl, generate  # noqa: E402
from nacelle_tb.sources import GENERATED, module_dirs, packages  # noqa: E402

# More than one file for each of its cores only slows the compiler down: each has to read Verilator's headers.
JOBS = int(os.environ.get("NACELLE_JOBS", os.cpu_count() or 1))
FAST_FILES = 6
# A cycle is some very long functions. To look further back in them for the last write of a variable takes a third of the compiler's
# time, and the library is no faster.
QUICK = "-O1 --param=sccvn-max-alias-queries-per-access=32 --param=dse-max-alias-queries-per-store=16"
# Loops over the bytes of a header or a message: as straight code each byte has a constant place, in a loop it is searched for.
UNROLL = 256
# To precompile the header takes more than twice as long as to read it, and there is one file for each core to read it.
NO_PRECOMPILED_HEADER = [
    *(word for kind in ("fast", "slow") for word in ("-o", f"Vnacelle__pch.h.{kind}.gch")),
    "VK_PCH_I_FAST=",
    "VK_PCH_I_SLOW=",
]
WARNINGS = ["-Wno-fatal", "-Werror-USERFATAL", "-Wno-DECLFILENAME"]  # $fatal of a bad parameter ends the build


def say(text: str) -> None:
    """Progress goes to stderr."""
    print(f"==> {text}", file=sys.stderr, flush=True)


def run(command: list[str], what: str) -> None:
    """Runs a tool without output; on failure shows all of its output and stops."""
    environment = {**os.environ, "CCACHE_DEPEND": "1"}  # the compiler says what a file includes: it is not read before
    result = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        sys.exit(f"{result.stdout}\n{what} failed: {' '.join(command[:3])} ... returned {result.returncode}")


def sources(rtl: DeviceRtl) -> list[Path]:
    """Everything that the library is made from."""
    modules = [path for folder in [*module_dirs(rtl), GENERATED] for path in folder.glob("*.sv")]
    return [*modules, *(ROOT / "sim").glob("*.*")]


def verilate(work: Path, rtl: DeviceRtl, waves: bool, files: int) -> None:
    """Makes C++ of the device."""
    run(
        [
            "verilator", "--cc", "--prefix", "Vnacelle", "--Mdir", str(work), "--top-module", "nacelle_sim_top",
            "-O3", "--unroll-count", str(UNROLL),
            "--x-assign", "fast", "--x-initial", "unique", "--no-assert", *WARNINGS,
            "--timescale", "1ns/1ps", "--output-split", "20000", "--output-groups", str(files), "-CFLAGS", "-fPIC",
            *(["--trace-fst", "--trace-structs"] if waves else []),
            *[arg for path in [*module_dirs(rtl), GENERATED] if path.exists() for arg in ("-y", str(path))],
            *map(str, packages(rtl)), str(ROOT / "sim" / "nacelle_sim_top.sv"),
        ],
        "Verilator",
    )  # fmt: skip


def sensors(device: Device) -> str:
    """What the simulation gives for the sensors, as sim/sensors.h has it."""
    ranges = []
    for number, sensor in enumerate(device.sensors):
        if sensor.simulated:
            idle, busy = (round(value * 1000) for value in sensor.simulated)
            ranges.append(f"{{{number}, {int(sensor.kind == 'temperature')}, {idle}, {busy}}}")
    return ",".join(ranges)


def compile_model(work: Path, library: Path, device: Device, waves: bool, optimise: str, profile: Sequence[str] = ()) -> None:
    """Compiles the C++ in `work` and links `library`. `profile`: the compiler's options to collect or use a profile."""
    # A cached object is right only for the profile that it was made with.
    cache = "ccache" if shutil.which("ccache") and not profile else ""
    run(
        ["make", "-s", "-C", str(work), "-f", "Vnacelle.mk", f"-j{JOBS}", f"OPT_FAST={' '.join([optimise, *profile])}",
         "OPT_SLOW=-O0", "OPT_GLOBAL=-O1", f"OBJCACHE={cache}", *NO_PRECOMPILED_HEADER, "libVnacelle.a", "libverilated.a"],
        "The C++ compiler",
    )  # fmt: skip
    include = next(Path(p) for p in sys.path if (Path(p) / "verilator" / "include").exists()) / "verilator" / "include"
    shim = work / "nacelle_sim.o"
    run(
        [
            "g++", "-std=gnu++20", "-O2", *profile, "-fPIC", "-c", "-o", str(shim), str(ROOT / "sim" / "nacelle_sim.cpp"),
            f"-DNACELLE_DATA_W={device.data_w}", f"-DNACELLE_CLOCK_HZ={device.clock_hz}",
            f"-DNACELLE_MAX_FRAME={device.longest_frame}",
            f"-DNACELLE_DRAM_BYTES={device.memory_bytes}", f"-DNACELLE_MEMORIES={device.memories}",
            f"-DNACELLE_MEMORY_STRIDE_W={MEMORY_STRIDE_W}", f"-DNACELLE_ECC={int(device.ecc)}", f"-DVM_TRACE={int(waves)}",
            f"-DNACELLE_PCIE_VECTORS={device.pcie.vectors if device.pcie else 0}",
            f"-DNACELLE_NETWORK_VECTORS={device.pcie.network_vectors if device.pcie and device.pcie.network_card else 0}",
            f"-DNACELLE_SOCKETS={len(device.sockets)}", f"-DNACELLE_SENSORS={sensors(device)}",
            *([f"-DNACELLE_DRAM={','.join(str(value) for _, value in device.dram.values)}"] if device.dram else []),
            f"-I{work}", f"-I{include}", f"-I{include}/vltstd",
        ],
        "Compiling the interface",
    )  # fmt: skip
    partial = library.with_suffix(".partial")
    run(
        ["g++", *profile, "-shared", "-o", str(partial), str(shim), "-Wl,--whole-archive", str(work / "libVnacelle.a"),
         "-Wl,--no-whole-archive", str(work / "libverilated.a"), "-pthread", "-lz", "-llz4", "-latomic"],
        "Linking the library",
    )  # fmt: skip
    partial.rename(library)


def forget(work: Path) -> None:
    """Removes what was compiled with or for a profile. What runs once, and Verilator's own runtime, never is."""
    for path in [*work.glob("Vnacelle*.o"), work / "nacelle_sim.o", *work.glob("libVnacelle.a")]:
        if "Slow" not in path.name:
            path.unlink(missing_ok=True)


def train(work: Path, name: str, device: Device, waves: bool) -> None:
    """Leaves a profile of the load in sim/train.py where the objects will be, and none of these."""
    forget(work)
    for profile in work.glob("*.gcda"):
        profile.unlink()
    instrumented = work / f"lib{name}.so"
    compile_model(work, instrumented, device, waves, "-O2", ["-fprofile-generate", "-fprofile-update=single"])
    result = subprocess.run(
        [sys.executable, str(ROOT / "sim" / "train.py"), str(device.data_w)],
        env=os.environ | {"NACELLE_SIM_LIBRARIES": str(work)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if result.returncode != 0:
        sys.exit(f"{result.stdout}\nThe load to profile failed: sim/train.py returned {result.returncode}")
    forget(work)
    instrumented.unlink()


def build(device: Device, suffix: str, waves: bool, fast: bool) -> Path:
    """Builds one library and returns its path. `suffix`: what its name says besides the width."""
    data_w = device.data_w
    name = f"nacelle_sim_{data_w}{suffix}"
    out = ROOT / "build" / "sim"
    library = out / f"lib{name}.so"
    mark = library.with_suffix(".fast")  # there if the library is the fast one
    subprocess.run([sys.executable, str(ROOT / "rtl" / "control" / "generate.py")], check=True)
    rtl = generate(device)
    newest = max(path.stat().st_mtime for path in sources(rtl))
    if library.exists() and library.stat().st_mtime > newest and (mark.exists() or not fast):
        return library

    took = "five minutes or more" if fast else "a minute or two"
    say(f"building the simulated device {device.name}, {data_w} bits, {device.queue_pairs} queue pairs ({took})")
    begin, started = time.monotonic(), time.time()
    work = out / f"obj_{name}{'_fast' if fast else ''}"
    work.mkdir(parents=True, exist_ok=True)
    tools = Path(sys.executable).parent
    os.environ["PATH"] = f"{tools}{os.pathsep}{os.environ['PATH']}"
    # Without a profile, -O2 takes longer to compile and runs no faster.
    optimise, files = ("-O2", FAST_FILES) if fast else (QUICK, JOBS)
    verilate(work, rtl, waves, files)
    if fast:
        train(work, name, device, waves)
    mark.unlink(missing_ok=True)
    compile_model(work, library, device, waves, optimise, ["-fprofile-use", "-Wno-missing-profile"] if fast else [])
    # A source that was changed meanwhile is newer.
    os.utime(library, (started, started))
    if fast:
        mark.touch()
    say(f"{library.relative_to(ROOT)} ready after {time.monotonic() - begin:.0f} s")
    return library


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--waves", action="store_true", help="can write waveforms")
    parser.add_argument("--fast", action="store_true", help="compile with a profile: takes longer, runs faster")
    arguments = parser.parse_args()
    if arguments.fast and (arguments.qps or arguments.device != STANDARD):
        parser.error("--fast is for the standard device")
    device = from_options(arguments)
    suffix = f"_qps{arguments.qps}" if arguments.qps else ""
    suffix += f"_{device.name}" if device.name != STANDARD else ""
    suffix += "_waves" if arguments.waves else ""
    build(device, suffix, arguments.waves, arguments.fast)


if __name__ == "__main__":
    main()
