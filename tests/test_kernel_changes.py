# SPDX-License-Identifier: Apache-2.0
"""A kernel takes another's place while calls run, by the command line; with both kinds of device the same requests have the same
answers."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import ADDRESS, ROOT, Wire

NAME = "own"
HEADER = ROOT / "host" / "nacelle-device" / "include"
LIBRARY = ROOT / "build" / "sim" / "libnacelle_sim_64_test.so"
REFUSED, USAGE, REMOTE, TIMEOUT = 4, 2, 6, 5

KERNEL = """
#include <unistd.h>
#include "nacelle_kernel.h"
static uint32_t add(const nacelle_kernel_call *call) {
    for (size_t i = 0; i < call->regions[0].length; i++) call->regions[0].bytes[i] += %(add)d;
    return NACELLE_KERNEL_SUCCESS;
}
static uint32_t hang(const nacelle_kernel_call *call) {
    while (!nacelle_kernel_is_cancelled(call)) usleep(1000);
    return NACELLE_KERNEL_CANCELLED;
}
static const nacelle_kernel_region region = {"data", NACELLE_KERNEL_INOUT, 0, "bytes"};
static const nacelle_kernel_function functions[] = {
    {%(code)d, 1, "%(name)s", "adds", &region, add},
    {92, 1, "hang", "ends when it is told to", &region, hang},
};
static const nacelle_kernel kernel = {
    NACELLE_KERNEL_ABI, sizeof(nacelle_kernel), "%(name)s", 1, %(add)d, %(count)d, 0, functions, 0,
};
const nacelle_kernel *nacelle_kernel_describe(void) { return &kernel; }
"""


@dataclass
class Scene:
    """A device whose socket `socket` holds image 0, with function `old`, and can hold image 1, with function `new`."""

    wire: Wire
    socket: int
    old: int
    new: int
    hangs: tuple[int, int]  # a socket whose function hangs, and the function

    def __post_init__(self) -> None:
        (self.wire.folder / "in").write_bytes(b"abc")

    def sockets(self) -> list[dict[str, Any]]:
        return self.wire.json("kernel", "list", NAME)

    def functions(self) -> set[int]:
        """What a caller reads."""
        return {function["code"] for function in self.wire.json("describe", ADDRESS)["description"]["functions"]}

    def call(self, function: int) -> subprocess.CompletedProcess[str]:
        return self.wire.run("--json", "run", "function", str(function), "--device", ADDRESS, "--inout", "in", "-o", "out")

    def change(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.wire.run("--json", "kernel", *arguments)


def soft_kernel(folder: Path, name: str, code: int, add: int, count: int = 2) -> Path:
    source, library = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text(KERNEL % {"name": name, "code": code, "add": add, "count": count})
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-I", str(HEADER), "-o", str(library), str(source)], check=True)
    return library


@pytest.fixture(params=["rtl", "soft"])
def scene(request: pytest.FixtureRequest, wire: Wire) -> Scene:
    if request.param == "rtl":
        wire.device("--name", NAME, "--library", str(LIBRARY))
        return Scene(wire, socket=1, old=16, new=1, hangs=(2, 2))
    first, second = soft_kernel(wire.folder, "one", 90, 1), soft_kernel(wire.folder, "two", 91, 2, count=1)
    wire.device("--name", NAME, "--soft", "--kernel", str(first), "--kernel-image", f"one={second}")
    return Scene(wire, socket=3, old=90, new=91, hangs=(3, 92))


def error(result: subprocess.CompletedProcess[str]) -> str:
    return json.loads(result.stderr.splitlines()[-1])["error"]["message"]


def until(done: Any, what: str) -> None:
    for _ in range(300):
        if done():
            return
        time.sleep(0.1)
    pytest.fail(what)


def test_one_takes_the_others_place(scene: Scene) -> None:
    socket = scene.sockets()[scene.socket]
    assert (socket["active"], socket["former"], socket["changing"], socket["error"]) == (0, None, False, None)
    assert [scene.old in image["functions"] for image in socket["images"]][:2] == [True, False]
    assert scene.old in scene.functions()
    digest = socket["images"][1]["digest"]
    result = scene.change("activate", NAME, str(scene.socket), "1", "--digest", digest)
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert (told["active"], told["former"], told["changing"]) == (1, 0, False)
    until(lambda: scene.old not in scene.functions() and scene.new in scene.functions(), "callers do not see it")
    assert scene.call(scene.new).returncode == 0
    assert scene.call(scene.old).returncode == REMOTE
    shown = scene.wire.run("kernel", "list", NAME)
    assert shown.returncode == 0 and socket["images"][1]["name"] in shown.stdout and digest[:12] in shown.stdout
    result = scene.change("rollback", NAME, str(scene.socket))
    assert result.returncode == 0, result.stderr
    until(lambda: scene.old in scene.functions(), "the former kernel is not there")
    result = scene.change("activate", NAME, str(scene.socket), socket["images"][1]["name"])
    assert result.returncode == 0 and json.loads(result.stdout)["active"] == 1, "by its name, with the digest that is listed"


def test_what_is_wrong_is_refused(scene: Scene) -> None:
    number = str(scene.socket)
    before = scene.sockets()
    wrong = "0" * 64
    for arguments, code, said in [
        (("rollback", NAME, number), REFUSED, "no former kernel"),
        (("activate", NAME, number, "1", "--digest", wrong), REFUSED, "digest is not that of the image"),
        (("activate", NAME, number, "7"), USAGE, "has no image 7"),
        (("activate", NAME, number, "nothing"), USAGE, "has no image nothing"),
        (("activate", NAME, "99", "0"), USAGE, "has no socket 99"),
        (("rollback", NAME, "99"), USAGE, "has no socket 99"),
        (("activate", NAME, "0", "0"), USAGE, "can hold one kernel only"),
        (("rollback", NAME, "0"), USAGE, "can hold one kernel only"),
        (("activate", NAME, number, "1", "--digest", "12"), USAGE, "64 hexadecimal digits"),
    ]:
        result = scene.change(*arguments)
        assert result.returncode == code and said in error(result), (arguments, result.stderr)
    after = scene.sockets()
    assert [socket["active"] for socket in after] == [socket["active"] for socket in before]
    assert after[scene.socket]["error"] == "bad-digest"
    assert scene.old in scene.functions()


def test_calls_go_on_while_kernels_change(scene: Scene) -> None:
    """Callers of another socket notice nothing; those of this one get a result, or a code by which they call again."""
    other = 1 if scene.new != 1 else 3  # `increment`, in socket 0 of both devices, has 1 and 3
    ended = []
    for image in (1, 0, 1, 0):
        calls = ("--json", "run", "function")
        rest = ("--device", ADDRESS, "--inout", "in")
        others = [scene.wire.start(*calls, str(other), *rest, "-o", f"out{i}") for i in range(3)]
        own = scene.wire.start(*calls, str(scene.new), *rest, "-o", "out3")
        result = scene.change("activate", NAME, str(scene.socket), str(image))
        assert result.returncode == 0, result.stderr
        for child in others:
            output = child.communicate(timeout=120)[0]
            assert child.returncode == 0, output
        own.communicate(timeout=120)
        ended.append(own.returncode)
    assert set(ended) <= {0, REMOTE}
    assert scene.sockets()[scene.socket]["active"] == 0


def test_a_call_that_hangs_is_waited_for_or_cut_off(scene: Scene) -> None:
    socket, function = scene.hangs
    child = scene.wire.start("--json", "run", "function", str(function), "--device", ADDRESS, "--inout", "in", "-o", "out")
    until(lambda: scene.wire.json("describe", ADDRESS)["load"]["running"] == 1, "the call does not run")
    late = scene.change("activate", NAME, str(socket), "1" if socket == scene.socket else "0", "--timeout", "1")
    assert late.returncode == TIMEOUT and "was not replaced within 1 s" in error(late)
    assert scene.sockets()[socket]["changing"]
    again = scene.wire.run("--json", "kernel", "activate", NAME, str(socket), "0")
    assert again.returncode not in (0, TIMEOUT) and "is being changed" in error(again)
    scene.wire.control(NAME, "cut-kernel", socket=socket)
    output = child.communicate(timeout=60)[0]
    assert child.returncode == REMOTE, output
    until(lambda: not scene.sockets()[socket]["changing"], "the change does not end")
    assert scene.sockets()[socket]["error"] is None
    assert scene.change("activate", NAME, str(socket), "0", "--cut").returncode == 0


def test_one_that_does_not_say_what_it_is_goes_again(wire: Wire) -> None:
    """By itself; the simulated RTL alone can have such a kernel."""
    wire.device("--name", NAME, "--library", str(LIBRARY))
    result = wire.run("--json", "kernel", "activate", NAME, "2", "mute")
    assert result.returncode == REFUSED and "did not say that it is there; it holds hostile" in error(result)
    socket = wire.json("kernel", "list", NAME)[2]
    assert (socket["active"], socket["error"]) == (0, "no-identity")
