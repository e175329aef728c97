# SPDX-License-Identifier: Apache-2.0
"""What a release consists of, in build/dist: the sources, the programs, and their SHA-256 sums.

    python tools/dist.py

Programs are the command with the simulated device, and the C library with its headers as `make install-c` installs it. The wheel
of the Python package stands beside the archives.

The version is that of host/Cargo.toml; a tree that is not the commit tagged v<version> gets the commit's name behind it. The
archive with programs holds a file NEEDS that says for each which libraries and which version of glibc it needs.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
import tomllib
from pathlib import Path

import install_c

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "dist"
NACELLE = ROOT / "host" / "target" / "release" / "nacelle"
LIBRARY = ROOT / "build" / "sim" / "libnacelle_sim_512.so"
WHEELS = ROOT / "build" / "wheel"


def version() -> str:
    """The one place that has it."""
    return tomllib.loads((ROOT / "host" / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def git(*arguments: str) -> bytes:
    """What git prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def name() -> str:
    """nacelle-0.1.0, or nacelle-0.1.0-dev-1a2b3c4 if that is not the release."""
    tags = git("tag", "--points-at", "HEAD").decode().split()
    released = f"v{version()}" in tags and not git("status", "--porcelain", "--untracked-files=no").strip()
    return f"nacelle-{version()}" if released else f"nacelle-{version()}-dev-{git('rev-parse', '--short', 'HEAD').decode().strip()}"


def needs(program: Path) -> list[str]:
    """Shared libraries of a program, and the newest version of glibc that it needs."""
    said = subprocess.run(["objdump", "-p", str(program)], check=True, capture_output=True, text=True).stdout
    glibc = {tuple(map(int, number.split("."))) for number in re.findall(r"GLIBC_(\d[\d.]*)", said)}
    newest = f"glibc {'.'.join(map(str, max(glibc)))} or newer" if glibc else "no glibc"
    return [newest, *sorted(re.findall(r"NEEDED\s+(\S+)", said))]


def write_archive(path: Path, files: dict[str, bytes | Path], when: int) -> None:
    """A .tar.gz that is the same whenever its files are."""
    with path.open("wb") as raw, gzip.GzipFile("", "wb", mtime=when, fileobj=raw) as packed:
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for target, content in sorted(files.items()):
                entry = tarfile.TarInfo(target)
                entry.mtime = when
                if isinstance(content, Path) and content.is_symlink():
                    entry.type, entry.linkname = tarfile.SYMTYPE, str(content.readlink())
                    archive.addfile(entry)
                    continue
                data = content.read_bytes() if isinstance(content, Path) else content
                entry.size = len(data)
                entry.mode = 0o755 if isinstance(content, Path) and content.stat().st_mode & 0o100 else 0o644
                archive.addfile(entry, io.BytesIO(data))


def make(out: Path, installed: Path, nacelle: Path = NACELLE, library: Path = LIBRARY, wheel: Path | None = None) -> list[Path]:
    """Makes everything in `out` and returns the archives. `installed` is the tree of the C library (tools/install_c.py), `wheel`
    the Python package (tools/wheel.py)."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    release, when = name(), int(git("log", "-1", "--format=%ct"))
    sources = out / f"{release}.tar.gz"
    sources.write_bytes(gzip.compress(git("archive", f"--prefix={release}/", "HEAD"), mtime=when))

    # Where `nacelle device` looks for the library: in build/sim of a folder above the program.
    programs = {
        "bin/nacelle": nacelle.resolve(),
        "build/sim/libnacelle_sim_512.so": library.resolve(),
        "lib/libnacelle.so": installed / "lib/libnacelle.so",
    }
    said = [f"{target}:\n" + "".join(f"    {need}\n" for need in needs(path)) for target, path in programs.items()]
    text = f"Built on {platform.machine()} Linux, {release}. Start with: bin/nacelle demo\n\n" + "\n".join(said)
    files: dict[str, bytes | Path] = {f"{release}/{target}": path for target, path in programs.items()}
    files |= {f"{release}/{path.relative_to(installed)}": path for path in installed.rglob("*") if not path.is_dir()}
    files |= {
        f"{release}/NEEDS": text.encode(),
        f"{release}/LICENSE": ROOT / "LICENSE",
        f"{release}/CHANGELOG.md": ROOT / "CHANGELOG.md",
    }
    binaries = out / f"{release}-{platform.machine()}-linux.tar.gz"
    write_archive(binaries, files, when)

    archives = [sources, binaries]
    if wheel is not None:
        archives.append(out / wheel.name)
        shutil.copyfile(wheel, archives[-1])
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in archives]
    (out / "SHA256SUMS").write_text("".join(sums))
    return archives


def main() -> None:
    """Command line."""
    with tempfile.TemporaryDirectory() as installed:
        install_c.install(Path(installed))
        (wheel,) = WHEELS.glob("*.whl")
        archives = make(OUT, Path(installed), wheel=wheel)
    for path in archives:
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1e6:.1f} MB")
    print((OUT / "SHA256SUMS").read_text(), end="")


if __name__ == "__main__":
    main()
