# SPDX-License-Identifier: Apache-2.0
"""The commands that developers use: what the Makefile offers, one unit's tests by name, and the waveform of a failure."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "rtl" / "testing")]

import unit  # noqa: E402
from nacelle_tb import waves  # noqa: E402

MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z][a-z-]*(?: [a-z-]+)*):", MAKEFILE, re.MULTILINE))
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def targets() -> set[str]:
    """Every target of the Makefile that has a name of its own."""
    return {target for line in TARGETS for target in line.split()}


def test_help_lists_every_target() -> None:
    said = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    listed = set(re.findall(r"^  make ([a-z-]+)", said, re.MULTILINE))
    assert listed == {target for target in targets() if not target.startswith("setup-")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_name_targets_that_there_are(page: Path) -> None:
    text = page.read_text()
    named = set(re.findall(r"(?:`|^\$ |^    )make ([a-z][a-z-]*)", text, re.MULTILINE))
    assert named <= targets(), f"{page.name} names {named - targets()}"


@pytest.mark.parametrize("file", [".ci/run", ".github/workflows/ci.yml"])
def test_continuous_integration_runs_the_readmes_command(file: str) -> None:
    text = (ROOT / file).read_text()
    assert "make test" in text or "bash .ci/run" in text


def test_a_unit_has_the_tests_of_its_name() -> None:
    assert [path.name for path in unit.files_of("roce_cm")][:1] == ["test_roce_cm.py"]
    assert "stream_fifo" in unit.known()


def test_a_unit_that_is_not_there_is_answered_with_its_neighbours() -> None:
    result = subprocess.run([sys.executable, "tools/unit.py", "roce_mc"], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode != 0
    assert "roce_mr" in result.stderr


def results(tmp_path: Path, outcome: str) -> Path:
    """cocotb's results of two tests, of which the second ended at 412 ns."""
    file = tmp_path / "results.xml"
    cases = "".join(
        f'<testcase name="{name}">{body}<properties><property name="sim_time_unit" value="ns" />'
        f'<property name="sim_time_stop" value="{stop}" /></properties></testcase>'
        for name, body, stop in (("first", "", "100.0"), ("second", outcome, "412.0"))
    )
    file.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    return file


def test_the_first_failure_is_found(tmp_path: Path) -> None:
    assert waves.first_failure(results(tmp_path, '<failure message="no" />')) == waves.Failure("second", 412_000)
    assert waves.first_failure(results(tmp_path, "")) is None


def test_a_failure_leads_to_its_waveform(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    dump = tmp_path / "dump.fst"
    dump.write_bytes(b"")
    waves.show_failure(results(tmp_path, "<error />"), dump, 4, "tb_x")
    said = capsys.readouterr().err
    assert "second failed at 412.00 ns, cycle 103" in said
    assert str(dump) in said
    saved = dump.with_suffix(".gtkw").read_text().splitlines()
    assert f'[dumpfile] "{dump}"' in saved
    assert any(line.startswith("*-13.0 412000 ") for line in saved)
    assert r"^tb_x\.[^.]+$" in dump.with_suffix(".tcl").read_text()
    assert "cursor_set 412000" in dump.with_suffix(".sucl").read_text()


def test_nothing_is_said_when_all_tests_passed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "dump.fst"
    dump.write_bytes(b"")
    waves.show_failure(results(tmp_path, ""), dump, 4, "tb_x")
    assert capsys.readouterr().err == ""
