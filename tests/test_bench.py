# SPDX-License-Identifier: Apache-2.0
"""The benchmark: its peers' interface, its report, and the program that takes samples. No figure is judged here."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("bench", "tools", "rtl/testing", "sim")]

import host_costs  # noqa: E402
import host_udp  # noqa: E402
import report  # noqa: E402
import source_table  # noqa: E402
from peers import grpc_python, iperf, libfabric, mpi, rust, ucx  # noqa: E402
from peers.compare import compare  # noqa: E402
from peers.peer import NotMeasured, Peer, free_port, output, server  # noqa: E402
from result import Result  # noqa: E402
from sampler import Sampler, SamplerError  # noqa: E402

ECHO = """
import socket, sys
here = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print(here.getsockname()[1], flush=True)
while True:
    there, _ = here.accept()
    there.send(there.recv(8))
"""
ASK = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as there:
    there.send(b"2.5")
    print(there.recv(8).decode())
"""


@dataclass(frozen=True)
class Echo(Peer):
    """Two processes of Python."""

    announces: bool
    name: ClassVar[str] = "echo"
    source: ClassVar[str] = "this test"

    def version(self) -> str:
        """Any."""
        return "1.0"

    def run(self) -> float:
        """What the server sends back."""
        port = 0 if self.announces else free_port()
        with server([sys.executable, "-c", ECHO, str(port)], port=port or None) as there:
            return float(output([sys.executable, "-c", ASK, str(there)], processor=0))


@dataclass(frozen=True)
class Absent(Echo):
    """One that is not installed."""

    def version(self) -> str:
        """None."""
        raise NotMeasured("absent is not installed: make setup-bench")


@pytest.mark.parametrize("announces", [True, False])
def test_a_peer_runs_as_two_processes_in_turn_with_ours(announces: bool) -> None:
    found = compare(lambda: 5.0, Echo("echo", "bytes", announces), rounds=2)
    assert (found.ratio, found.ours, found.peer) == (2.0, 5.0, 2.5)
    assert found.title == "echo 1.0 (this test): bytes"


def test_a_peer_whose_server_or_client_fails_is_not_measured() -> None:
    with pytest.raises(NotMeasured, match="does not start"), server([sys.executable, "-c", "raise SystemExit(3)"]):
        pass
    with pytest.raises(NotMeasured, match="status 3"):
        output([sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(NotMeasured, match="no-such-program"):
        output(["no-such-program"])


def test_a_peer_that_is_absent_keeps_no_other_away() -> None:
    peers = [host_udp.Beside(Absent("absent", "bytes", True), 1.0), host_udp.Beside(Echo("echo", "bytes", True), 1.0)]
    absent, found = host_udp.rates(lambda: 5.0, "host.udp.example", peers)
    assert (absent.name, absent.value, absent.met) == ("host.udp.example.ratio.absent", None, None)
    assert "not measured: absent is not installed" in absent.line()
    assert (found.name, found.value, found.met) == ("host.udp.example.ratio.echo", 2.0, True)
    assert found.peer and found.peer[0] == "echo 1.0 (this test): bytes, GB/s"


def test_without_what_is_installed_every_peer_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(grpc_python, "PYTHON", tmp_path / "python")
    monkeypatch.setattr(rust, "PROGRAM", tmp_path / "program")
    peers = [ucx.CALL, ucx.PUT, ucx.GET, libfabric.CALL, iperf.TCP, *iperf.UDP, mpi.TCP, grpc_python.CALL, rust.CALL, rust.QUIC]
    assert len({peer.key for peer in peers}) == len(peers)
    for peer in peers:
        for what in (peer.version, peer.run):
            with pytest.raises(NotMeasured, match="make setup-bench"):
                what()


def test_soft_roce_that_cannot_run_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> None:
        raise NotMeasured("there is no QEMU")

    monkeypatch.setattr(host_costs.soft_roce, "SoftRoce", absent)

    class Alike(Sampler):
        def __init__(self) -> None:
            pass

        def command(self, line: str) -> dict[str, list[float]]:
            return {"seconds": [0.25, 0.75]}

        def __exit__(self, *_: object) -> None:
            pass

    rows = {row.name: row for row in host_costs.loss(Alike())}
    assert rows["host.udp.goodput.share.loss1"].value == 100
    assert rows["host.udp.goodput.share.ratio.soft_roce.loss1"].reason == "there is no QEMU"


def test_the_report_names_peer_version_and_source_beside_each_ratio() -> None:
    results = [
        Result("host.x.ratio.echo", 0.5, "x", 1.0, "lower", "goals", "make bench", ("echo 1.0 (this test): bytes, us", 3.0)),
        Result("host.x.ratio.absent", None, "x", 1.0, "lower", "goals", "make bench", reason="not installed"),
        Result("host.y", 2.0, "x", 1.0, "lower", "goals", "make bench"),
    ]
    records = {result.name: json.loads(json.dumps(result.record())) for result in results}
    *head, echo, absent, plain = report.area_table(records, "host")
    assert head[0].count("|") == echo.count("|") == absent.count("|") == plain.count("|") == 5
    assert echo == "| `host.x.ratio.echo` | 0.5 x | ≤ 1 | echo 1.0 (this test): bytes, us: 3 |"
    assert "not measured: not installed" in absent
    assert "**missed**" in plain


def test_the_published_figures_have_ours_beside_them() -> None:
    values = {
        "host.udp.call.1B": 12.3,
        "rtl.call.1B.cycles": 109,
        "host.udp.transfer.call.1MiB": 9.0,
        "host.udp.transfer.call.4MiB": 3.0,
    }
    lines = source_table.table(values)
    assert lines[2] == "| call, 1B in | 4.6 µs | 2.95 µs | 12.3 µs | 0.436 µs |"
    assert lines[-1].endswith("| - | - | 9 Gb/s | - |")
    assert len({line.count("|") for line in lines}) == 1


def test_the_sampler_takes_samples_of_all_that_the_figures_need() -> None:
    folder = Path(os.environ.get("NACELLE_PROGRAMS", ROOT / "host" / "target" / "release"))
    program = folder / "examples" / "bench_udp"
    if not program.exists():
        pytest.skip("bench_udp is not built")
    with Sampler(str(program)) as sampler:
        for command in (
            "echo 8 3",
            "ping 44 3",
            "call 70000 3",
            "setup 4096 3",
            "exchange 4096 3",
            "connect 4096 3",
            "lossy 0.02 40000 3",
        ):
            assert len(sampler.seconds(command)) == 3, command
        assert all(seconds > 0 for verb in ("write", "read") for seconds in sampler.seconds(f"{verb} 4096 2 5"))
        many = sampler.command("connections 300 1")
        assert len(many["seconds"]) == 2 and len(many["memory"]) == 2
        assert sampler.cpu_seconds() > 0
        with pytest.raises(SamplerError, match="no such command"):
            sampler.command("guess")
        assert len(sampler.seconds("echo 8 1")) == 1
