# SPDX-License-Identifier: Apache-2.0
"""Builds User-mode Linux that can live in device time: Debian's kernel sources with CONFIG_UML_TIME_TRAVEL_SUPPORT.

    python interop/guest_kernel.py

Debian's own package of User-mode Linux lacks that option. The sources are one package of Debian, of a fixed version and hash; the
tools that the build needs and this machine may lack come from packages, too, and are unpacked beside it. All of it is in
build/guest (1.5 GB while it is built, 20 MB then); nothing else on the machine changes. It takes 8 minutes of one core, once.

SEEDED is a library for that kernel: preloaded, it gives it random numbers by a seed, so that a run can be repeated.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from image import HERE, MIRROR, ROOT, Apt, ImageError, digest, run, say

FOLDER = ROOT / "build" / "guest"
KERNEL = FOLDER / "linux"
SEEDED = FOLDER / "seeded_random.so"
STAMP = FOLDER / "stamp"
CONFIG = HERE / "guest_kernel.config"
RANDOM = HERE / "seeded_random.c"

VERSION = "6.1.176-1"
SHA256 = "9305d1a151b8e83dcb88aa11361e7b9513f0c252bdf7f5647e4542762d99c094"
SHA1 = "88a9623d7b92776fbdae70dba1510eeca618a7fa"
# Where the package is while it is Debian's current one, and where Debian keeps all that ever were, by their SHA-1.
SOURCES = (
    f"{MIRROR}/pool/main/l/linux/linux-source-6.1_{VERSION}_all.deb",
    f"https://snapshot.debian.org/file/{SHA1}",
)
TOOLS = "flex bison m4 libsigsegv2 bc libreadline8 libtinfo6".split()
# What the build does not need of the sources: most of them.
LEFT_OUT = [
    f"--exclude={pattern}"
    for pattern in (
        "*/drivers/gpu/*.[ch]",
        "*/drivers/media/*.[ch]",
        "*/drivers/net/ethernet/*.[ch]",
        "*/drivers/net/wireless/*.[ch]",
        "*/sound/*.[ch]",
        "*.dts*",
    )
]
# The options without which it is of no use here: one that depends on what is missing is left out silently.
NEEDED = "UML_TIME_TRAVEL_SUPPORT VIRTIO_UML VIRTIO_NET INET HOSTFS TMPFS PROC_FS SYSFS MAGIC_SYSRQ PACKET".split()


def wanted() -> str:
    """What the stamp says of a kernel that is up to date."""
    return digest(SHA256, CONFIG, RANDOM)


def ready() -> bool:
    """Whether the kernel is there and up to date."""
    return KERNEL.exists() and SEEDED.exists() and STAMP.exists() and STAMP.read_text() == wanted()


def fetch(into: Path) -> None:
    """Fetches the sources' package, and checks its hash."""
    if into.exists() and hashlib.sha256(into.read_bytes()).hexdigest() == SHA256:
        return
    failures = []
    for address in SOURCES:
        say(f"fetching the kernel's sources, 139 MB, from {address}")
        try:
            with urllib.request.urlopen(address, timeout=60) as answer, into.open("wb") as file:
                shutil.copyfileobj(answer, file)
        except (OSError, urllib.error.URLError) as error:
            failures.append(f"{address}: {error}")
            continue
        found = hashlib.sha256(into.read_bytes()).hexdigest()
        if found == SHA256:
            return
        failures.append(f"{address}: its SHA-256 is {found}, not {SHA256}")
    raise ImageError("the kernel's sources cannot be fetched:\n" + "\n".join(failures))


def tools() -> dict[str, str]:
    """Fetches the tools; the environment in which they are found."""
    root, debs = FOLDER / "tools", FOLDER / "debs"
    if not (root / "usr/bin/bison").exists():
        debs.mkdir(parents=True, exist_ok=True)
        apt = Apt(FOLDER / "apt")
        apt.update()
        apt.download(TOOLS, debs)
        for deb in sorted(debs.glob("*.deb")):
            run("dpkg-deb", "-x", deb, root)
    libraries = [str(root / folder) for folder in ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")]
    return os.environ | {
        "PATH": f"{root}/usr/bin:{os.environ['PATH']}",
        "BISON_PKGDATADIR": f"{root}/usr/share/bison",
        "M4": f"{root}/usr/bin/m4",
        "LD_LIBRARY_PATH": ":".join(libraries),
    }


def unpack(package: Path, into: Path) -> None:
    """Unpacks the sources out of their package."""
    into.mkdir(parents=True)
    steps = [
        ["dpkg-deb", "--fsys-tarfile", str(package)],
        ["tar", "-xO", "./usr/src/linux-source-6.1.tar.xz"],
        ["tar", "-xJ", "-C", str(into), "--strip-components=1", *LEFT_OUT],
    ]
    running: list[subprocess.Popen[bytes]] = []
    for step in steps:
        stdin = running[-1].stdout if running else subprocess.DEVNULL
        running.append(subprocess.Popen(step, stdin=stdin, stdout=subprocess.PIPE))
    if any(process.wait() for process in reversed(running)):
        raise ImageError(f"{package} cannot be unpacked")


def compile_kernel(source: Path, objects: Path, environment: dict[str, str]) -> None:
    """Configures and compiles the kernel, on one core at low priority unless JOBS says more."""
    objects.mkdir(parents=True, exist_ok=True)
    make = ["nice", "-n", "19", "make", "-C", str(source), f"O={objects}", "ARCH=um"]
    run(*make, "allnoconfig", env=environment | {"KCONFIG_ALLCONFIG": str(CONFIG)})
    config = (objects / ".config").read_text()
    missing = [option for option in NEEDED if f"CONFIG_{option}=y" not in config]
    if missing:
        raise ImageError(f"the kernel's configuration has no {', '.join(missing)}")
    say("compiling the kernel: 8 minutes of one core")
    run(*make, f"-j{os.environ.get('JOBS', '1')}", "linux", env=environment)
    run("strip", "-o", KERNEL, objects / "linux")


def build() -> Path:
    """Builds what is missing. Two processes that want it build it once. Raises ImageError if that fails."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready():
            STAMP.unlink(missing_ok=True)
            package, source, objects = FOLDER / "source.deb", FOLDER / "source", FOLDER / "objects"
            fetch(package)
            environment = tools()
            if not (source / "Makefile").exists():
                shutil.rmtree(source, ignore_errors=True)
                unpack(package, source)
            compile_kernel(source, objects, environment)
            run("gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", SEEDED, RANDOM)
            for folder in (source, objects):
                shutil.rmtree(folder)
            package.unlink()
            STAMP.write_text(wanted())
    return KERNEL


if __name__ == "__main__":
    try:
        print(build())
    except ImageError as error:
        sys.exit(f"cannot build the guest's kernel: {error}")
