# SPDX-License-Identifier: Apache-2.0
"""Builds the Linux guest: a kernel and an initramfs with soft-RoCE, from packages of one Debian suite.

    python interop/image.py

Packages are fetched by apt into build/interop (no root needed, nothing on the machine changes) and kept there. The image is made
again when the list of packages, this file, the guest's init or one of its programs changes.
"""

from __future__ import annotations

import fcntl
import hashlib
import lzma
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import naaice_upstream

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = ROOT / "build" / "interop"
SYSROOT = BUILD / "sysroot"
SUITE = "bookworm"
MIRROR = os.environ.get("NACELLE_DEBIAN_MIRROR", "http://deb.debian.org/debian")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
LIBRARY_DIRS = ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu")

# Debian's programs in the guest; busybox has the rest.
PROGRAMS = (
    "bin/busybox sbin/ip usr/bin/rdma usr/bin/ibv_devinfo usr/bin/ibv_rc_pingpong usr/bin/rping usr/bin/ucmatose usr/bin/cmtime"
    " usr/bin/ib_write_bw usr/bin/ib_write_lat usr/bin/ib_read_bw usr/bin/ib_read_lat usr/bin/ib_send_bw usr/bin/ib_send_lat"
    " usr/bin/ib_atomic_bw usr/bin/ib_atomic_lat"
).split()
# Files that no program names as needed: the provider that libibverbs loads, and what pthread_exit loads.
LOADED_AT_RUN_TIME = (
    "etc/libibverbs.d/rxe.driver",
    "usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so",
    "lib/x86_64-linux-gnu/libgcc_s.so.1",
)
# What rxe uses by name (crc32) and what the guest needs; the others follow from their dependencies.
MODULES = "virtio_pci virtio_net virtio_console 8021q crc32_generic crc32c_generic rdma_rxe ib_uverbs rdma_cm rdma_ucm".split()
OWN_PROGRAMS = ("nacelle_verbs_client", "nacelle_verbs_server", "nacelle_window_client")
CFLAGS = "-std=gnu11 -O2 -g -Wall -Wextra -Werror"


class ImageError(Exception):
    """The guest cannot be built; says why and what to try."""


@dataclass(frozen=True)
class Image:
    """A guest that can be started."""

    kernel: Path
    initramfs: Path
    versions: dict[str, str]
    """Package to version, of what the guest is made of."""


def say(text: str) -> None:
    """Progress goes to stderr."""
    print(f"==> {text}", file=sys.stderr, flush=True)


def run(*command: str | Path, **options: object) -> str:
    """Runs a tool and returns what it printed.

    Raises ImageError with all that it said if it fails.
    """
    try:
        result = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)  # type: ignore[call-overload]
    except FileNotFoundError as error:
        raise ImageError(f"{command[0]} is not installed. Try: sh tools/setup.sh interop") from error
    if result.returncode != 0:
        raise ImageError(f"{' '.join(map(str, command))}\n{result.stdout}{command[0]} returned {result.returncode}")
    return result.stdout


def packages() -> list[str]:
    """The names in packages.txt."""
    lines = (HERE / "packages.txt").read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def digest(*parts: str | Path) -> str:
    """A hash of strings and of files' contents."""
    total = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part.encode()
        total.update(len(data).to_bytes(8, "big") + data)
    return total.hexdigest()


class Apt:
    """apt with lists and a status of its own: what this machine has installed, or which Debian it is, makes no difference."""

    def __init__(self, folder: Path, *suites: str) -> None:
        """`suites`: of Debian, by default the guest's; packages are of the last that has them."""
        self.suites = suites or (SUITE,)
        for name in ("state/lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        if not KEYRING.exists():
            raise ImageError(f"{KEYRING} is missing. Try: sh tools/setup.sh interop")
        lines = (f"deb [signed-by={KEYRING}] {MIRROR} {suite} main\n" for suite in self.suites)
        (folder / "sources.list").write_text("".join(lines))
        self.archives = folder / "cache/archives"
        self.options = [
            f"-oDir::State={folder}/state",
            f"-oDir::State::status={folder}/status",
            f"-oDir::Cache={folder}/cache",
            f"-oDir::Etc::sourcelist={folder}/sources.list",
            "-oDir::Etc::sourceparts=-",
            "-oAPT::Architecture=amd64",
            "-oAPT::Sandbox::User=root",
            "-oAcquire::Languages=none",
        ]

    def update(self) -> None:
        """Fetches the suite's list of packages."""
        run("apt-get", *self.options, "-qq", "update")

    def kernel(self) -> str:
        """The package that linux-image-amd64 stands for."""
        text = run("apt-cache", *self.options, "depends", "linux-image-amd64")
        found = re.search(r"Depends: (linux-image-\S+)", text)
        if not found:
            raise ImageError(f"linux-image-amd64 names no kernel:\n{text}")
        return found[1]

    def download(self, names: list[str], folder: Path) -> None:
        """Fetches packages and checks their signatures."""
        run("apt-get", *self.options, "-qq", "download", *names, cwd=folder)

    def unpack(self, names: list[str], root: Path) -> None:
        """Fetches packages with all that they depend on, and unpacks them into a folder of their own."""
        options = [*self.options, "-qq", "-y", "--no-install-recommends", "-t", self.suites[-1]]
        run("apt-get", *options, "--download-only", "install", *names)
        for deb in sorted(self.archives.glob("*.deb")):
            run("dpkg-deb", "-x", deb, root)


def fetch() -> dict[str, str]:
    """Downloads and unpacks the packages, if their list has changed. Returns their versions."""
    stamp, wanted = BUILD / "packages.stamp", digest(SUITE, *MODULES, *packages())
    debs = BUILD / "debs"
    if not stamp.exists() or stamp.read_text() != wanted:
        say(f"fetching {len(packages())} packages of Debian {SUITE} for the guest")
        for folder in (debs, SYSROOT, BUILD / "kernel"):
            shutil.rmtree(folder, ignore_errors=True)
        debs.mkdir(parents=True)
        apt = Apt(BUILD / "apt")
        apt.update()
        kernel = apt.kernel()
        apt.download([kernel if name == "linux-image-amd64" else name for name in packages()], debs)
        for deb in sorted(debs.glob("*.deb")):
            if deb.name.startswith(kernel):
                unpack_kernel(deb)
            else:
                run("dpkg-deb", "-x", deb, SYSROOT)
        stamp.write_text(wanted)
    return dict(deb.name.split("_")[:2] for deb in sorted(debs.glob("*.deb")))


def unpack_kernel(deb: Path) -> None:
    """Takes the kernel and the modules that the guest needs out of their package."""
    target = BUILD / "kernel"
    target.mkdir()
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        folder = Path(name)
        run("dpkg-deb", "-x", deb, folder)
        (target / "vmlinux").write_bytes(unpacked(next(folder.glob("boot/vmlinuz-*")).read_bytes()))
        files = {path.stem.replace("-", "_"): path for path in folder.glob("lib/modules/**/*.ko")}
        order: list[str] = []
        for module in MODULES:
            if module in files:  # else it is part of this kernel
                visit(module, files, order)
        for module in order:
            shutil.copy(files[module], target / f"{module}.ko")
        (target / "order").write_text("\n".join(order) + "\n")


def unpacked(bzimage: bytes) -> bytes:
    """The kernel inside a bzImage. QEMU starts it as it is, so that no emulated processor has to unpack it: two seconds less."""
    at = -1
    while (at := bzimage.find(b"\xfd7zXZ\0", at + 1)) >= 0:
        try:
            kernel = lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(bzimage[at:])
        except lzma.LZMAError:
            continue
        if kernel.startswith(b"\x7fELF"):
            return kernel
    raise ImageError("the kernel is not packed with xz")


def visit(module: str, files: dict[str, Path], order: list[str]) -> None:
    """Appends a module to the order of loading, behind those that it depends on."""
    if module in order:
        return
    found = re.search(rb"\0depends=([^\0]*)\0", files[module].read_bytes())
    for needed in (found[1].decode() if found else "").split(","):
        if needed:
            visit(needed.replace("-", "_"), files, order)
    order.append(module)


def own_programs() -> list[str]:
    """The programs that are compiled for the guest."""
    return [*OWN_PROGRAMS, *(naaice_upstream.PROGRAMS if naaice_upstream.sources() else ())]


def compile_programs() -> None:
    """Compiles the project's programs against the guest's libraries, and NAAICE's if their sources are there."""
    sources = HERE / "guest"
    shared = sorted(path for path in sources.glob("*.c") if path.stem not in OWN_PROGRAMS)
    for name in OWN_PROGRAMS:
        compile_program(name, *CFLAGS.split(), sources / f"{name}.c", *shared)
    if folder := naaice_upstream.sources():
        headers = BUILD / "naaice"
        naaice_upstream.write_headers(headers)
        includes = [f"-I{path}" for path in (headers, folder / "lib", folder / "kernels")]
        for name, files in naaice_upstream.PROGRAMS.items():
            compile_program(name, *naaice_upstream.CFLAGS.split(), *includes, *(folder / file for file in files))


def compile_program(name: str, *arguments: str | Path) -> None:
    """Compiles one program against the guest's libraries."""
    (BUILD / "bin").mkdir(exist_ok=True)
    run(
        "gcc", f"--sysroot={SYSROOT}", *arguments, "-o", BUILD / "bin" / name,
        "-lrdmacm", "-libverbs", "-Wl,-rpath-link," + ":".join(str(SYSROOT / folder) for folder in LIBRARY_DIRS),
    )  # fmt: skip


def libraries(programs: list[Path]) -> Iterator[Path]:
    """The shared libraries that programs need, from the guest's packages, each once."""
    seen: set[str] = set()
    todo = list(programs)
    while todo:
        for name in re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", todo.pop())):
            if name in seen:
                continue
            seen.add(name)
            paths = [SYSROOT / folder / name for folder in LIBRARY_DIRS if (SYSROOT / folder / name).exists()]
            if not paths:
                raise ImageError(f"no package of interop/packages.txt has the library {name}")
            todo.append(paths[0])
            yield paths[0]


class Cpio:
    """An initramfs, in the format that Linux' Documentation/driver-api/early-userspace/buffer-format.rst calls newc."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.folders: set[str] = set()
        self.count = 0

    def _entry(self, name: str, mode: int, content: bytes) -> None:
        self.count += 1
        path = name.encode() + b"\0"
        fields = (self.count, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(path), 0)
        self.data += b"070701" + b"".join(b"%08x" % field for field in fields) + path
        self.data += bytes(-len(self.data) % 4) + content
        self.data += bytes(-len(self.data) % 4)

    def folder(self, name: str) -> None:
        """Adds a folder and those above it, unless they are there."""
        parent = name.rpartition("/")[0]
        if parent:
            self.folder(parent)
        if name and name not in self.folders:
            self.folders.add(name)
            self._entry(name, stat.S_IFDIR | 0o755, b"")

    def file(self, name: str, content: bytes, mode: int = 0o755) -> None:
        """Adds a file."""
        self.folder(name.rpartition("/")[0])
        self._entry(name, stat.S_IFREG | mode, content)

    def link(self, name: str, target: str) -> None:
        """Adds a symbolic link."""
        self.folder(name.rpartition("/")[0])
        self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def close(self) -> bytes:
        """The whole archive."""
        self._entry("TRAILER!!!", 0, b"")
        return bytes(self.data)


def pack() -> bytes:
    """The initramfs."""
    archive = Cpio()
    for folder in ("proc", "sys", "dev", "tmp", "run", "root", "var"):
        archive.folder(folder)
    archive.link("var/run", "../run")
    archive.file("init", (HERE / "guest" / "init").read_bytes())
    archive.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n", 0o644)
    archive.file("etc/hosts", b"127.0.0.1 localhost\n", 0o644)
    archive.file("etc/nsswitch.conf", b"hosts: files\n", 0o644)

    order = (BUILD / "kernel" / "order").read_text()
    archive.file("modules/order", order.encode(), 0o644)
    for module in order.split():
        archive.file(f"modules/{module}.ko", (BUILD / "kernel" / f"{module}.ko").read_bytes(), 0o644)

    own = [BUILD / "bin" / name for name in own_programs()]
    for program in own:
        archive.file(f"usr/local/bin/{program.name}", program.read_bytes())
    for name in (*PROGRAMS, *LOADED_AT_RUN_TIME):
        archive.file(name, (SYSROOT / name).read_bytes())
    for applet in run(SYSROOT / "bin/busybox", "--list").split():
        if applet not in ("busybox", "ip"):
            archive.link(f"bin/{applet}", "busybox")
    elves = [SYSROOT / name for name in (*PROGRAMS, *LOADED_AT_RUN_TIME) if not name.startswith(("etc/", "bin/busybox"))]
    loader = SYSROOT / "lib64/ld-linux-x86-64.so.2"
    packed = {SYSROOT / name for name in LOADED_AT_RUN_TIME}
    for path in libraries([*own, *elves]):
        if path not in packed and path.name != loader.name:
            archive.file(str(path.relative_to(SYSROOT)), path.read_bytes())
    archive.file("lib64/ld-linux-x86-64.so.2", loader.read_bytes())
    return archive.close()


def build() -> Image:
    """Builds what is missing or out of date. Two processes that want it build it once.

    Raises ImageError if a tool is missing or fails.
    """
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _build()


def _build() -> Image:
    versions = fetch()
    initramfs, stamp = BUILD / "initramfs.cpio", BUILD / "image.stamp"
    inputs = [Path(__file__), *sorted((HERE / "guest").iterdir()), BUILD / "packages.stamp"]
    if upstream := naaice_upstream.sources():
        inputs += [Path(naaice_upstream.__file__), *naaice_upstream.files(upstream)]
    wanted = digest(*inputs)
    if not initramfs.exists() or not stamp.exists() or stamp.read_text() != wanted:
        say("building the guest's image")
        compile_programs()
        initramfs.write_bytes(pack())
        stamp.write_text(wanted)
    return Image(BUILD / "kernel" / "vmlinux", initramfs, versions)


if __name__ == "__main__":
    try:
        image = build()
    except ImageError as error:
        sys.exit(f"cannot build the guest: {error}")
    print(image.kernel, image.initramfs, sep="\n")
