# SPDX-License-Identifier: Apache-2.0
"""Programs in C, C++ and Fortran, built with the installed library by pkg-config and by CMake, and run against both devices."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from c_tree import CRATE, EXAMPLES, WARNINGS, Tree, run
from conftest import ADDRESS, Wire

DEVICES = {"soft": ("--soft",), "rtl": ()}
MATMUL_SPEC = f"{ADDRESS}::16:3"
SANITIZE = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, wire: Wire) -> Wire:
    """A wire with a device of each kind."""
    wire.device(*DEVICES[request.param])
    return wire


@pytest.fixture
def soft(wire: Wire) -> Wire:
    """A wire with a software device."""
    wire.device("--soft")
    return wire


def test_c(device: Wire, c_tree: Tree, tmp_path: Path) -> None:
    program = c_tree.compile(tmp_path / "increment", "gcc", "-std=c11", *WARNINGS, str(EXAMPLES / "01_c" / "main.c"))
    said = run(device, program, ADDRESS).stdout.splitlines()
    assert re.fullmatch(r"HelloWorld, after \d+ looks", said[0])
    assert said[1] == "Again....."


def test_c_by_cmake_and_with_the_static_library(soft: Wire, c_tree: Tree, tmp_path: Path) -> None:
    assert "HelloWorld" in run(soft, c_tree.cmake("01_c", tmp_path / "build") / "increment", ADDRESS).stdout
    flags = [flag for flag in c_tree.flags("nacelle", "--static", "--cflags", "--libs") if flag != "-lnacelle"]
    program = tmp_path / "static"
    archive = str(c_tree.prefix / "lib" / "libnacelle.a")
    subprocess.run(["gcc", str(EXAMPLES / "01_c" / "main.c"), "-o", str(program), archive, *flags], check=True)
    assert "libnacelle" not in subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    assert "HelloWorld" in run(soft, program, ADDRESS).stdout


@pytest.mark.parametrize("by", ["pkg-config", "cmake"])
def test_cpp(soft: Wire, c_tree: Tree, tmp_path: Path, by: str) -> None:
    command = ("g++", "-std=c++17", *WARNINGS, "-pthread", str(EXAMPLES / "02_cpp" / "main.cpp"))
    program = c_tree.compile(tmp_path / "matmul", *command) if by == "pkg-config" else c_tree.cmake("02_cpp", tmp_path) / "matmul"
    assert run(soft, program, ADDRESS).stdout == "two products of 32x32: right\n"
    assert "error 5: no host at 10.77.0.9" in run(soft, program, "10.77.0.9", expect=1).stderr


@pytest.mark.parametrize("by", ["pkg-config", "cmake"])
def test_fortran(soft: Wire, c_tree: Tree, tmp_path: Path, by: str) -> None:
    sources = (str(c_tree.prefix / "share" / "nacelle" / "nacelle.f90"), str(EXAMPLES / "03_fortran" / "main.f90"))
    command = ("gfortran", "-std=f2018", "-Wall", "-Wextra", "-pedantic", "-Werror", *sources)
    program = (
        c_tree.compile(tmp_path / "matmul", *command) if by == "pkg-config" else c_tree.cmake("03_fortran", tmp_path) / "matmul"
    )
    assert run(soft, program, ADDRESS).stdout == "the product of 20x30 is right\n"
    assert "no host at 10.77.0.9" in run(soft, program, "10.77.0.9", expect=1).stderr


def test_fortran_transfers(soft: Wire, c_tree: Tree, tmp_path: Path) -> None:
    sources = (str(c_tree.prefix / "share" / "nacelle" / "nacelle.f90"), str(CRATE / "tests" / "transfers.f90"))
    command = ("gfortran", "-std=f2018", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O2", "-g", "-fcheck=all", *sources)
    assert run(soft, c_tree.compile(tmp_path / "transfers", *command), ADDRESS).stdout == "0 failures\n"


def test_naaice(device: Wire, c_tree: Tree, tmp_path: Path) -> None:
    source = str(EXAMPLES / "04_naaice" / "main.c")
    program = c_tree.compile(tmp_path / "matmul", "gcc", "-std=gnu11", *WARNINGS, source, package="nacelle-naaice")
    said = run(device, program, NAA_SPEC=MATMUL_SPEC).stdout
    assert said == "".join(f"call {call}: 1024 bytes, 0 wrong\n" for call in (1, 2, 3))


def test_naaice_by_cmake(soft: Wire, c_tree: Tree, tmp_path: Path) -> None:
    program = c_tree.cmake("04_naaice", tmp_path) / "matmul"
    assert run(soft, program, NAA_SPEC=f"[::ffff:{ADDRESS}]:12345:16:3", NAA_LOCAL_IP="10.77.0.50").stdout.count("0 wrong") == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for addresses of its own")
def test_devices_are_reached_by_udp_and_by_ipv6(wire: Wire, namespace: list[str], c_tree: Tree, tmp_path: Path) -> None:
    for address in ("fd77::2", "fd77::3"):
        subprocess.run([*namespace, "ip", "address", "add", f"{address}/128", "dev", "lo", "nodad"], check=True)
    increment = c_tree.compile(tmp_path / "increment", "gcc", str(EXAMPLES / "01_c" / "main.c"))
    matmul = c_tree.compile(tmp_path / "matmul", "gcc", str(EXAMPLES / "04_naaice" / "main.c"), package="nacelle-naaice")
    udp = (("soft4", "127.0.0.2"), ("soft6", "fd77::2"))
    for name, address in udp:
        wire.start("device", "--soft", "--udp", address, "--no-shm", "--name", name, before=namespace)
    end = time.monotonic() + 10
    while sum(entry["alive"] for entry in wire.json("ls")) < len(udp):
        assert time.monotonic() < end, "the devices do not answer"
        time.sleep(0.1)
    inside = Path(namespace[0])
    for device in ("127.0.0.2", "soft4"):
        assert "HelloWorld" in run(wire, inside, *namespace[1:], str(increment), device).stdout
    command = (*namespace[1:], str(matmul))
    assert run(wire, inside, *command, NAA_SPEC="[fd77::2]::16:3", NAA_LOCAL_IP="fd77::3").stdout.count("0 wrong") == 3


def test_what_is_wrong_with_the_environment_is_told_on_stderr(soft: Wire, c_tree: Tree, tmp_path: Path) -> None:
    source = str(EXAMPLES / "04_naaice" / "main.c")
    program = c_tree.compile(tmp_path / "matmul", "gcc", source, package="nacelle-naaice")
    for spec, said in {
        "": "NAA_SPEC is not set",
        f"{ADDRESS}::16": "four fields",
        f"{ADDRESS}::1:3": "no device for function 16",
        f"{ADDRESS}::16:2": "16 at 10.77.0.2 has 2 inputs, the program gives 3",
        f"{ADDRESS}:999:16:3": "refused the connection",
        "[fd00::2::16:3": "the bracket is not closed",
        "10.77.0.9::16:3": "no host at 10.77.0.9",
    }.items():
        result = run(soft, program, expect=1, NAA_SPEC=spec)
        assert result.stderr.startswith("naa_create: ") and said in result.stderr and "; try: " in result.stderr, result.stderr
    assert run(soft, program, expect=1, NAA_SPEC="", NACELLE_LOG="off").stderr == ""


def test_misuse_gives_the_documented_results(soft: Wire, c_tree: Tree, tmp_path: Path) -> None:
    command = ("gcc", "-std=gnu11", *WARNINGS, *SANITIZE, "-pthread", str(CRATE / "tests" / "misuse.c"))
    program = c_tree.compile(tmp_path / "misuse", *command)
    assert run(soft, program, ADDRESS).stdout == "0 failures\n"


def test_the_cpp_wrapper(soft: Wire, c_tree: Tree, tmp_path: Path) -> None:
    command = ("g++", "-std=c++17", *WARNINGS, *SANITIZE, "-pthread", str(CRATE / "tests" / "wrapper.cpp"))
    assert run(soft, c_tree.compile(tmp_path / "wrapper", *command), ADDRESS).stdout == "0 failures\n"


def test_the_cpp_wrapper_refuses_what_a_device_cannot_use(c_tree: Tree, tmp_path: Path) -> None:
    """Elements that are more than bytes, constant outputs, and containers that are gone at once do not compile."""
    good = "std::vector<int> v(3); nacelle::output(v); int *p = v.data(); nacelle::input(nacelle::view(p, 2));"
    bad = ("std::vector<std::string> v(3); nacelle::input(v);", "const std::vector<int> v(3); nacelle::output(v);",
           "nacelle::input(std::vector<int>(3));")  # fmt: skip
    for body in (good, *bad):
        (tmp_path / "source.cpp").write_text(f"#include <nacelle.hpp>\nvoid test() {{ {body} }}\n")
        command = ["g++", "-std=c++17", "-fsyntax-only", f"-I{c_tree.prefix / 'include'}", str(tmp_path / "source.cpp")]
        assert (subprocess.run(command, capture_output=True).returncode == 0) == (body == good), body


@pytest.mark.parametrize(
    ("body", "compiles"),
    [("auto x = r.write(0, v); x = r.read(0, nacelle::view(v)); auto w = a.accept_incoming_read(1, v);", True),
     ("auto x = r.write(0, std::vector<int>(3));", False), ("auto w = a.accept_incoming_read(1, std::vector<int>(3));", False),
     ("const auto c = v; auto x = r.read(0, c);", False), ("r.write(0, v);", False)],
)  # fmt: skip
def test_the_cpp_wrapper_refuses_transfers_of_what_is_gone_at_once(c_tree: Tree, tmp_path: Path, body: str, compiles: bool) -> None:
    """Temporary containers, constant ones that are read into, and transfers that nobody keeps."""
    parameters = "nacelle::remote& r, nacelle::acceptor& a, std::vector<int>& v"
    source = f"#include <nacelle.hpp>\nvoid test({parameters}) {{ static_cast<void>(r); static_cast<void>(a); {body} }}\n"
    (tmp_path / "source.cpp").write_text(source)
    command = ["g++", "-std=c++17", *WARNINGS, "-fsyntax-only", f"-I{c_tree.prefix / 'include'}", str(tmp_path / "source.cpp")]
    assert (subprocess.run(command, capture_output=True).returncode == 0) == compiles


def test_misuse_of_naaice_gives_errors(soft: Wire, c_tree: Tree, tmp_path: Path) -> None:
    command = ("gcc", "-std=gnu11", *WARNINGS, *SANITIZE, str(CRATE / "tests" / "naaice_misuse.c"))
    program = c_tree.compile(tmp_path / "misuse", *command, package="nacelle-naaice")
    spec = ",".join(f"{ADDRESS}::{function}:1" for function in (1, 99, 16)) + f",{ADDRESS}::3:0"
    assert run(soft, program, NAA_SPEC=spec, NAA_LOCAL_IP="10.77.0.50/16").stdout == "0 failures\n"


def test_a_program_may_exit_with_a_call_under_way(soft: Wire, c_tree: Tree, tmp_path: Path) -> None:
    program = c_tree.compile(tmp_path / "misuse", "gcc", *SANITIZE, "-pthread", str(CRATE / "tests" / "misuse.c"))
    begin = time.monotonic()
    run(soft, program, ADDRESS, "exit")
    assert time.monotonic() - begin < 20
    (soft.folder / "in").write_bytes(b"abc")
    assert soft.run("run", "increment", "--device", ADDRESS, "in", "-o", "out").returncode == 0


@pytest.mark.parametrize("by", ["wire", "udp"])
def test_transfers_between_hosts_and_their_misuse(wire: Wire, c_tree: Tree, tmp_path: Path, by: str) -> None:
    command = ("gcc", "-std=gnu11", *WARNINGS, *SANITIZE, "-pthread", str(CRATE / "tests" / "transfers.c"))
    program = c_tree.compile(tmp_path / "transfers", *command)
    # Of a loopback address for each process, so that tests may run side by side.
    address = f"127.9.{os.getpid() >> 8 & 0xFF}.{os.getpid() & 0xFF or 1}" if by == "udp" else ""
    assert run(wire, program, address).stdout == "0 failures\n"


def test_a_program_may_fork_with_transfers_under_way(wire: Wire, c_tree: Tree, tmp_path: Path) -> None:
    program = c_tree.compile(tmp_path / "transfers", "gcc", "-pthread", str(CRATE / "tests" / "transfers.c"))
    run(wire, program, "", "fork")


def test_a_program_may_exit_with_transfers_under_way(wire: Wire, c_tree: Tree, tmp_path: Path) -> None:
    program = c_tree.compile(tmp_path / "transfers", "gcc", *SANITIZE, "-pthread", str(CRATE / "tests" / "transfers.c"))
    begin = time.monotonic()
    run(wire, program, "10.77.0.9/16", "exit")
    # Its name and its address are free again.
    run(wire, program, "10.77.0.9/16", "exit")
    assert time.monotonic() - begin < 20


def test_an_installed_tree_may_be_moved(soft: Wire, c_tree: Tree, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(c_tree.prefix, moved, symlinks=True)
    tree = Tree(moved)
    program = tree.compile(tmp_path / "increment", "gcc", str(EXAMPLES / "01_c" / "main.c"))
    assert str(moved) in subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    assert "HelloWorld" in run(soft, program, ADDRESS).stdout
    assert "HelloWorld" in run(soft, tree.cmake("01_c", tmp_path / "build") / "increment", ADDRESS).stdout


def test_the_library_has_a_soname_with_the_major_version(c_tree: Tree) -> None:
    said = subprocess.run(["readelf", "-d", str(c_tree.library)], capture_output=True, text=True, check=True).stdout
    assert "soname: [libnacelle.so.0]" in said
    assert os.readlink(c_tree.prefix / "lib" / "libnacelle.so.0") == c_tree.library.resolve().name


@pytest.mark.parametrize(("wanted", "found"), [("0.1", True), ("0.2", False), ("1.0", False), ("", True)])
def test_cmake_takes_a_version_that_fits(c_tree: Tree, tmp_path: Path, wanted: str, found: bool) -> None:
    text = f"cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES C)\nfind_package(nacelle {wanted} REQUIRED)\n"
    (tmp_path / "CMakeLists.txt").write_text(text)
    command = ["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "build"), f"-DCMAKE_PREFIX_PATH={c_tree.prefix}"]
    assert (subprocess.run(command, capture_output=True).returncode == 0) == found


# What the upstream programs need of their logger.
ULOG = """#include <stdio.h>
#define ULOG_BUILD_DISABLED
#define ulog_error(...) fprintf(stderr, __VA_ARGS__)
"""


@pytest.mark.skipif("NACELLE_NAAICE_SOURCES" not in os.environ, reason="NACELLE_NAAICE_SOURCES does not name upstream's sources")
def test_the_upstream_example_runs_unmodified(device: Wire, c_tree: Tree, tmp_path: Path) -> None:
    source = Path(os.environ["NACELLE_NAAICE_SOURCES"]) / "examples" / "naaice_client_ap2.c"
    (tmp_path / "ulog.h").write_text(ULOG)
    program = c_tree.compile(tmp_path / "client", "gcc", f"-I{tmp_path}", str(source), package="nacelle-naaice")
    said = run(device, program, "4", "64 128 256 512", NAA_SPEC=f"{ADDRESS}::1:4").stdout
    print(said)
    assert said.count(f"Bytes received: {64 + 128 + 512}, RPC Return code: 0\n") == 100
    # A hundred calls that add one to each byte of what comes back: all but region 2, which is an input only.
    assert [int(first) for first in re.findall(r"first element: (\d+)", said)] == [100, 101, 2, 103]


@pytest.mark.skipif("NACELLE_NAAICE_SOURCES" not in os.environ, reason="NACELLE_NAAICE_SOURCES does not name upstream's sources")
def test_the_upstream_measurement_runs_unmodified(device: Wire, c_tree: Tree, tmp_path: Path) -> None:
    source = Path(os.environ["NACELLE_NAAICE_SOURCES"]) / "tests" / "naaice_client_middleware_measurement.c"
    (tmp_path / "ulog.h").write_text(ULOG)
    program = c_tree.compile(tmp_path / "client", "gcc", f"-I{tmp_path}", str(source), package="nacelle-naaice")
    run(device, program, "4096", "log", NAA_SPEC=f"{ADDRESS}::3:1")
    assert (device.folder / "log").read_text().startswith("4096,")
