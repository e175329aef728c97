# SPDX-License-Identifier: Apache-2.0
"""tools/test.py, which runs the tests: its stages and lanes with stand-ins for the steps, and what it reads from cargo."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 60


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The program as a module; Python has another of its name. It sets variables."""
    for name in ("NACELLE_PROGRAMS", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    spec = importlib.util.spec_from_file_location("nacelle_steps", ROOT / "tools" / "test.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    yield module


def with_steps(runner: ModuleType, monkeypatch: pytest.MonkeyPatch, patient: bool = False, **steps: object) -> None:
    """Two lanes: steps whose names begin with f are in front, those with b behind."""
    front, behind = (tuple(name for name in steps if name[0] == letter) for letter in "fb")
    monkeypatch.setattr(runner, "STEPS", steps)
    monkeypatch.setattr(runner, "STAGES", [runner.Stage(front, behind=behind, patient=patient)])


def test_every_step_has_its_place(runner: ModuleType) -> None:
    placed = [name for stage in runner.STAGES for name in (*stage.front, *stage.behind)]
    assert sorted(placed) == sorted(runner.STEPS)


def test_lanes_run_side_by_side_and_print_one_after_the_other(
    runner: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    together = threading.Barrier(2)

    def step(name: str) -> object:
        def run(lane: object) -> object:
            lane.execute(["echo", f"{name} begins"])
            together.wait(PATIENCE)
            lane.execute(["echo", f"{name} ends"])
            together.wait(PATIENCE)
            return runner.Outcome(passed=[name])

        return run

    with_steps(runner, monkeypatch, front=step("front"), behind=step("behind"))
    results = runner.run_stages(runner.STEPS)
    assert {name: result["passed"] for name, result in results.items()} == {"front": ["front"], "behind": ["behind"]}
    said = capfd.readouterr().out
    assert "behind begins\nbehind ends\n    behind: 1 passed, 0 failed, 0 skipped" in said
    assert said.index("front begins") < said.index("front ends")


def test_a_patient_lane_gives_way_and_one_alone_does_not(runner: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def niceness(lane: object) -> object:
        return runner.Outcome(passed=[lane.execute(["nice"])[1].strip()])

    with_steps(runner, monkeypatch, patient=True, front=niceness, behind=niceness)
    mine = os.nice(0)
    both = runner.run_stages(runner.STEPS)
    assert int(both["front"]["passed"][0]) == mine
    assert int(both["behind"]["passed"][0]) == min(mine + 10, 19)
    alone = runner.run_stages(["behind"])
    assert int(alone["behind"]["passed"][0]) == mine


def test_steps_that_fail_or_do_nothing_have_failed_and_others_run(runner: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {
        "f_fails": runner.command("one", "two", run=["false"]),
        "f_works": runner.command("three", run=["true"]),
        "b_nothing": lambda lane: runner.Outcome(skipped=["four"]),
        "b_works": runner.command("five", run=["true"]),
    }
    with_steps(runner, monkeypatch, **steps)
    results = runner.run_stages(steps)
    assert list(results) == list(steps)
    assert results["f_fails"]["failed"] == ["one", "two"]
    assert results["b_nothing"]["failed"] == ["b_nothing: no test ran"]
    assert results["f_works"]["passed"] == ["three"] and results["b_works"]["passed"] == ["five"]


def test_a_step_that_cannot_run_ends_all(runner: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()

    def waits(lane: object) -> object:
        begun.set()
        time.sleep(0.5)  # the other lane has failed by then
        return runner.Outcome(passed=["waits"])

    def breaks(lane: object) -> object:
        assert begun.wait(PATIENCE)
        raise OSError("no such program")

    later = []
    with_steps(runner, monkeypatch, front=breaks, behind=waits, behind_too=later.append)
    with pytest.raises(OSError, match="no such program"):
        runner.run_stages(runner.STEPS)
    assert not later


def test_the_end_says_why_a_test_failed(runner: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runner, "BUILD", tmp_path)
    rules = {
        "kept": {"outcome": "ok"},
        "broken": {"outcome": "fail", "detail": "no answer within 1 s\nto the REQ"},
        "unjudged": {"outcome": "skip", "detail": "no function"},
    }

    class Judge(runner.Lane):
        def execute(self, *_: object, **__: str) -> tuple[int, str]:
            (tmp_path / "conformance.json").write_text(json.dumps({"rtl": rules}))
            return 1, ""

    (tmp_path / "reports").mkdir()
    test = tmp_path / "test_that_fails.py"
    test.write_text('def test_sum() -> None:\n    assert 1 + 1 == 3, "it is 2"\n\n\ndef test_other() -> None:\n    pass\n')
    results = {
        "conformance": vars(runner.conformance(Judge())),
        "python": vars(runner.pytest("python", str(test))(runner.Lane(behind=True))),
        "host": vars(runner.Outcome(failed=["host::fmt"])),
    }
    assert runner.failures(results) == [
        "conformance::rtl::broken: no answer within 1 s",
        "test_that_fails::test_sum: AssertionError: it is 2",
        "host::fmt",
    ]


def test_verdicts_of_cargo_have_the_names_of_what_was_tested(runner: ModuleType) -> None:
    outcome = runner.verdicts(
        """
     Running unittests src/lib.rs (target/debug/deps/nacelle_fuzz-49c987ea2ecb3366)
test tests::texts ... ok
     Running tests/udp.rs (target/debug/deps/udp-0011)
test calls_of_every_size ... FAILED
test too_long ... ignored, takes an hour
test overflows - should panic ... ok
   Doc-tests nacelle
test nacelle/src/call.rs - Call (line 12) - compile ... ok
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.06s
"""
    )
    assert outcome.passed == ["fuzz::tests::texts", "host::overflows", "host::nacelle/src/call.rs - Call (line 12) - compile"]
    assert outcome.failed == ["host::calls_of_every_size"]
    assert outcome.skipped == ["host::too_long"]


def test_few_that_failed_are_tried_again(
    runner: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """In real time alone. What fails again has failed, and the output says of each why it failed before."""
    monkeypatch.setattr(runner, "BUILD", tmp_path / "build")
    mark = tmp_path / "mark"
    (tmp_path / "test_it.py").write_text(
        "from pathlib import Path\n"
        "def test_right(): pass\n"
        "def test_at_the_second_try():\n"
        f"    mark = Path({str(mark)!r})\n"
        "    there = mark.exists()\n"
        "    mark.touch()\n"
        "    assert there, 'too late'\n"
        "def test_wrong(): assert False, 'never'\n"
    )
    options = (str(tmp_path), f"--rootdir={tmp_path}", "-o", f"cache_dir={tmp_path / 'cache'}")
    outcome = runner.pytest("tried-steps", *options, real_time=True)(runner.Lane())
    assert set(outcome.passed) == {"test_it::test_right", "test_it::test_at_the_second_try"}
    assert outcome.failed == ["test_it::test_wrong"] and "never" in outcome.reasons["test_it::test_wrong"]
    assert "tried again: test_it::test_at_the_second_try: AssertionError: too late" in capfd.readouterr().out
    mark.unlink()
    assert len(runner.pytest("tried-steps", *options)(runner.Lane()).failed) == 2


def test_many_that_failed_are_not_tried_again(runner: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """That is no matter of a busy machine."""
    monkeypatch.setattr(runner, "BUILD", tmp_path / "build")
    count = tmp_path / "count"
    lines = [
        f"def test_{number}():\n    open({str(count)!r}, 'a').write('x')\n    assert False\n" for number in range(runner.FEW + 1)
    ]
    (tmp_path / "test_it.py").write_text("".join(lines))
    options = (str(tmp_path), f"--rootdir={tmp_path}", "-o", f"cache_dir={tmp_path / 'cache'}")
    outcome = runner.pytest("tried-steps", *options, real_time=True)(runner.Lane())
    assert len(outcome.failed) == runner.FEW + 1 == len(count.read_text())


def test_a_rule_that_failed_is_tried_again_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import conformance

    tries: list[list[str]] = []

    def tried(device: str, rules: list[str]) -> list[dict[str, str]]:
        tries.append(rules)
        return [{"rule": rule, "outcome": "ok" if rule == "b" else "fail", "detail": "again"} for rule in rules]

    monkeypatch.setattr(conformance, "tried", tried)
    verdicts = [
        {"rule": rule, "outcome": outcome, "detail": "first"} for rule, outcome in (("a", "ok"), ("b", "fail"), ("c", "fail"))
    ]
    conformance.confirm("soft", verdicts)
    assert tries == [["b"], ["c"]] and [verdict["outcome"] for verdict in verdicts] == ["ok", "ok", "fail"]
    assert "b is tried again: first" in capsys.readouterr().out
