# SPDX-License-Identifier: Apache-2.0
"""Runs single cocotb tests of a simulator over and over, each in a process that is forked when all is loaded: see tools/mutate.py.

The simulator starts as usual, with `serve` in place of cocotb's regression (PYGPI_USERS). It reads one request a line,
{"test": name, "mutant": number, "cpu": seconds, "trace": file or ""}, and answers with the verdict, pass, fail or slow, and the
seconds of CPU time that it took. To an empty request it answers with the names of all tests.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
from typing import Any

from cocotb import regression

PASSED, FAILED = 42, 1  # exit codes; a simulator that stops by itself returns others
MEMORY = 8 << 30


def _become(request: dict[str, Any]) -> None:
    """The process that runs one test of one mutant: leaves with the first verdict."""
    os.environ["NACELLE_MUTANT"] = str(request["mutant"])  # read when the simulation starts
    os.environ["NACELLE_TRACE"] = request["trace"]
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, request["cpu"])
    signal.alarm(int(60 + 20 * request["cpu"]))  # what waits for ever takes no CPU time
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    manager: Any = regression._manager_inst

    def failed(*_: object, result: BaseException | None = None, **__: object) -> None:
        print(f"{request}: {type(result).__name__}: {result}", flush=True)
        os._exit(FAILED)

    manager._record_test_failed = manager._record_test_init_failed = failed
    manager._tear_down = lambda: os._exit(PASSED if manager.passed or manager.xfailed else FAILED)
    manager._filters = [re.compile(rf"^{re.escape(request['test'])}$")]
    manager.start_regression()


def serve() -> None:
    """Answers requests until there are no more; in a forked process it returns, and the test runs."""
    regression._setup_regression_manager()
    manager: Any = regression._manager_inst
    names = [
        test.fullname
        for test in manager._test_queue
        if not test.skip and (not manager._filters or any(wanted.search(test.fullname) for wanted in manager._filters))
    ]
    answers = os.fdopen(int(os.environ["NACELLE_ANSWERS"]), "w", buffering=1)
    requests = os.fdopen(int(os.environ["NACELLE_REQUESTS"]))
    while line := requests.readline():
        request = json.loads(line)
        if not request:
            answers.write(json.dumps(names) + "\n")
            continue
        child = os.fork()
        if child == 0:
            _become(request)
            return
        _, status, usage = os.wait4(child, 0)
        slow = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM)
        passed = os.WIFEXITED(status) and os.WEXITSTATUS(status) == PASSED
        verdict = "pass" if passed else "slow" if slow else "fail"
        answers.write(json.dumps([verdict, usage.ru_utime + usage.ru_stime]) + "\n")
    sys.stdout.flush()
    os._exit(0)
