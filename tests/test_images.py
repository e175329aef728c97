# SPDX-License-Identifier: Apache-2.0
"""An image of a kernel is packed, loaded and activated by the command line; what is wrong with it is said, and changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import ADDRESS, ROOT, Wire
from ipbus_programs import TOKEN
from test_ipbus import Managed

NAME = "own"
LIBRARY = ROOT / "build" / "sim" / "libnacelle_sim_64_test.so"
KERNEL = ROOT / "rtl" / "compute" / "kernels" / "kernel_increment.toml"
REFUSED, USAGE, UNREACHABLE = 4, 2, 3
SOCKET, FIRST = 1, 2  # its first place: it has two images of the build
KEY = "6b" * 32


def secret(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text + "\n")
    path.chmod(0o600)
    return path


class Scene:
    def __init__(self, wire: Wire, key: str | None = KEY) -> None:
        self.wire = wire
        self.key = secret(wire.folder, "key", KEY)
        options = ["--image-key", str(self.key)] if key else []
        wire.device("--name", NAME, "--library", str(LIBRARY), *options)
        self.build = wire.json("describe", ADDRESS)["description"]["build"]

    def pack(self, *options: str, key: Path | None = None) -> Path:
        out = self.wire.folder / "image"
        options = options or ("--build", self.build, "--socket", str(SOCKET))
        result = self.wire.run("kernel", "pack", str(KERNEL), *options, "--key-file", str(key or self.key), "-o", str(out))
        assert result.returncode == 0, result.stderr
        return out

    def load(self, file: Path, *options: str) -> subprocess.CompletedProcess[str]:
        return self.wire.run("--json", "kernel", "load", NAME, str(file), *options)

    def images(self) -> list[dict[str, Any]]:
        return self.wire.json("kernel", "list", NAME)[SOCKET]["images"]


def error(result: subprocess.CompletedProcess[str]) -> str:
    return json.loads(result.stderr.splitlines()[-1])["error"]["message"]


def test_an_image_is_packed_loaded_and_activated(wire: Wire) -> None:
    scene = Scene(wire)
    assert [(image["name"], image["uploaded"]) for image in scene.images()] == [
        ("matmul", False), ("increment", False), ("", True), ("", True),
    ]  # fmt: skip
    result = scene.load(scene.pack())
    assert result.returncode == 0, result.stderr
    said = json.loads(result.stdout)
    assert (said["kernel"], said["socket"], said["slot"]) == ("increment", SOCKET, 0)
    image = scene.images()[FIRST]
    assert (image["name"], image["digest"], image["uploaded"]) == ("increment", said["digest"], True)
    shown = wire.run("kernel", "list", NAME).stdout
    assert "verified" in shown and "empty" in shown and said["digest"][:12] in shown
    result = wire.run("--json", "kernel", "activate", NAME, str(SOCKET), str(FIRST), "--digest", said["digest"])
    assert result.returncode == 0 and json.loads(result.stdout)["active"] == FIRST, result.stderr
    (wire.folder / "in").write_bytes(b"abc")
    called = wire.run("run", "function", "1", "--device", ADDRESS, "--inout", "in", "-o", "out")
    assert called.returncode == 0, called.stderr
    # Its place is in use; another one is found by itself.
    assert scene.load(scene.pack(), "--slot", "0").returncode == REFUSED
    assert json.loads(scene.load(scene.pack()).stdout)["slot"] == 1
    result = wire.run("--json", "kernel", "rollback", NAME, str(SOCKET))
    assert result.returncode == 0 and json.loads(result.stdout)["active"] == 0


def test_what_is_wrong_is_said_and_changes_nothing(wire: Wire) -> None:
    scene = Scene(wire)
    good = scene.pack().read_bytes()
    other = secret(wire.folder, "other", "5c" * 32)
    revision, digest = scene.build.split("-")
    wrong_build = f"{revision}-{int(digest, 16) ^ 1:016x}"
    cases = [
        (scene.pack(key=other).read_bytes(), REFUSED, "it is not signed with the key of this device"),
        (scene.pack("--build", wrong_build, "--socket", "1").read_bytes(), REFUSED, "made for another build of the device"),
        (scene.pack("--build", scene.build, "--socket", "0").read_bytes(), REFUSED, "a socket that does not exist, or holds one"),
        (good[:-1] + bytes([good[-1] ^ 1]), REFUSED, "it is not signed with the key of this device"),
        (good[:100] + bytes([good[100] ^ 1]) + good[101:], USAGE, "its digest is not that of what came"),
        (good[:-4], USAGE, "it is not as long as it says"),
        (b"no image at all" * 20, USAGE, "it is no image"),
    ]
    path = wire.folder / "wrong"
    for data, code, said in cases:
        path.write_bytes(data)
        result = scene.load(path)
        assert result.returncode == code and said in error(result), result.stderr
        assert all(not image["name"] for image in scene.images()[FIRST:]), "no image has come"
    result = wire.run("--json", "kernel", "activate", NAME, str(SOCKET), str(FIRST))
    assert result.returncode == USAGE and "no image that was verified" in error(result)
    os.chmod(scene.key, 0o644)
    result = wire.run("--json", "kernel", "pack", str(KERNEL), "--build", scene.build, "--socket", "1", "--key-file",
                      str(scene.key), "-o", str(path))  # fmt: skip
    assert result.returncode == USAGE and "other users can read" in error(result)


@pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun")
def test_an_image_comes_by_the_network(wire: Wire, namespace: list[str]) -> None:
    """From a host that reaches the device by IPbus only, with the token; not without it, nor where nothing answers."""
    key = secret(wire.folder, "key", KEY)
    device = Managed(wire, namespace, "rtl", "--image-key", str(key), library=LIBRARY)
    low, high = (row["value"] for row in wire.json("config", "get", "managed", "BUILD_DIGEST_LO", "BUILD_DIGEST_HI"))
    out = wire.folder / "image"
    packed = wire.run("kernel", "pack", str(KERNEL), "--build", f"{high << 32 | low:016x}", "--socket", str(SOCKET),
                      "--key-file", str(key), "-o", str(out))  # fmt: skip
    assert packed.returncode == 0, packed.stderr
    token = secret(wire.folder, "token", "".join(f"{word:08x}" for word in TOKEN))

    def load(address: str, *options: str) -> subprocess.CompletedProcess[str]:
        return device.command("--json", "kernel", "load", address, str(out), *options)

    def verified() -> list[bool]:
        return [bool(image["digest"]) for image in wire.json("kernel", "list", "managed")[SOCKET]["images"][FIRST:]]

    result = load(f"{ADDRESS}:50001")
    assert result.returncode == REFUSED and "without a token" in error(result) and not any(verified())
    result = load("10.77.0.99:50001", "--token-file", str(token), "--timeout", "2")
    assert result.returncode == UNREACHABLE and "10.77.0.99" in error(result)
    result = load(f"{ADDRESS}:50001", "--token-file", str(token))
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["slot"] == 0 and verified() == [True, False]


def test_a_device_without_a_key_takes_no_image(wire: Wire) -> None:
    scene = Scene(wire, key=None)
    result = scene.load(scene.pack())
    assert result.returncode == REFUSED and "no key is set" in error(result)


@pytest.mark.parametrize("options", [[], ["--soft"]], ids=["no store", "soft"])
def test_a_device_without_places_takes_no_image(wire: Wire, options: list[str]) -> None:
    if not options:
        library = ROOT / "build" / "sim" / "libnacelle_sim_64.so"
        if not library.exists():
            pytest.skip("the standard device of 64 bits is not built")
        options = ["--library", str(library)]
    wire.device("--name", NAME, *options)
    key = secret(wire.folder, "key", KEY)
    out = wire.folder / "image"
    packed = wire.run("kernel", "pack", str(KERNEL), "--build", "0" * 16, "--socket", "1", "--key-file", str(key), "-o", str(out))
    assert packed.returncode == 0, packed.stderr
    result = wire.run("--json", "kernel", "load", NAME, str(out))
    assert result.returncode == REFUSED and "takes no images" in error(result)
