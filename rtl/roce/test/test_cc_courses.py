# SPDX-License-Identifier: Apache-2.0
"""The courses that the host's congestion control is held against are those of the model that the RTL is held against."""

from __future__ import annotations

from itertools import pairwise

import cc_courses


def test_the_file_is_what_the_model_makes() -> None:
    assert cc_courses.FILE.read_text() == cc_courses.text(), "run `python rtl/roce/test/cc_courses.py`"


def test_the_courses_go_everywhere() -> None:
    rows = [list(map(int, line.split())) for line in cc_courses.text().splitlines() if line[0].isdigit()]
    cuts = [before[2] > after[2] > 0 for before, after in pairwise(rows)]
    rises = [0 < before[2] < after[2] for before, after in pairwise(rows)]
    free = [row[2] == 0 for row in rows]
    assert min(map(sum, (cuts, rises, free))) > 100
