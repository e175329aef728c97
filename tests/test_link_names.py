# SPDX-License-Identifier: Apache-2.0
"""Links that are named by text from C and Python, as by --link: packet and XDP sockets on a veth pair, and what cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from c_tree import CRATE, WARNINGS, Tree, run
from conftest import Wire
from python_package import Package
from test_packet import DEVICE, serve, veth

__all__ = ["veth"]
root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for network namespaces")

PROGRAM = """
import sys, nacelle
with nacelle.connect(sys.argv[1], link=sys.argv[2], source=sys.argv[3]) as device:
    print(device.increment(bytearray(b"HAL")).decode(), device.by_udp)
"""


@root
@pytest.mark.parametrize("link", ["packet", "xdp"])
def test_c_names_an_interface(wire: Wire, veth: list[str], c_tree: Tree, tmp_path: Path, link: str) -> None:
    serve(wire, veth, "packet")
    program = c_tree.compile(tmp_path / "links", "gcc", *WARNINGS, str(CRATE / "tests" / "links.c"))
    command = (*veth[1:], str(program), DEVICE, f"{link}:vb", "10.99.0.9/24")
    assert run(wire, Path(veth[0]), *command).stdout == "0 failures\n"


@root
@pytest.mark.parametrize("link", ["packet", "xdp"])
def test_python_names_an_interface(wire: Wire, veth: list[str], package: Package, link: str) -> None:
    serve(wire, veth, "packet")
    command = [*veth, sys.executable, "-c", PROGRAM, DEVICE, f"{link}:vb", "10.99.0.9/24"]
    environment = package.environment(wire.folder / "wire")
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert result.stdout == "IBM False\n", result.stderr


def test_python_is_told_what_is_wrong_with_a_link(package: Package) -> None:
    nacelle = package.load()
    for name in ("", "pigeon", "udp:eth0", "verbs:a/b"):
        with pytest.raises(nacelle.InvalidArgument):
            nacelle.connect(DEVICE, link=name)
    with pytest.raises(nacelle.Link, match="absent0"):
        nacelle.connect(DEVICE, link="packet:absent0", source="10.99.0.9/24")
