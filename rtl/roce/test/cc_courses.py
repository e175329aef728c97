# SPDX-License-Identifier: Apache-2.0
"""Courses of congestion control: what comes when, and the rate, target and alpha that follow.

They are computed by the integer model, which roce_cc_step is held against bit by bit (test_roce_cc_step.py), and are what the
host's endpoint must compute, too (host/nacelle-roce/src/cc/tests.rs).

    python rtl/roce/test/cc_courses.py    writes data/cc_courses.txt anew
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from cc_model import CLOCK_HZ, DEFAULTS, LINE_MBPS, IntegerModel

FILE = Path(__file__).resolve().parent / "data" / "cc_courses.txt"
SEED, COURSES, EVENTS = 20, 40, 50
TICK_NS = 1_000_000_000 // CLOCK_HZ
HEAD = f"""# SPDX-License-Identifier: Apache-2.0
# Courses of congestion control, made by rtl/roce/test/cc_courses.py. A course begins with the parameters that differ from the
# defaults, at a line rate of {LINE_MBPS} Mb/s. Each further line is an event: time in ns; bytes that were sent, or 0 for a CNP;
# and, once all that was due has been done, rate and target in 1/16 Mb/s and alpha in 1/65536, or 0 0 0 without a limit.
"""


def parameters(rng: random.Random) -> dict[str, int]:
    """Some of them at random, over their whole ranges, small and zero ones often."""

    def size(bits: int) -> int:
        return rng.getrandbits(rng.randint(0, bits))

    drawn = {
        "clamp_tgt_rate": rng.getrandbits(1), "clamp_tgt_rate_after_time_inc": rng.getrandbits(1),
        "dce_tcp_g": rng.choice((0, 1, 700, 1008, 1023, size(10))), "dce_tcp_rtt": rng.choice((0, 1, 55, size(12))),
        "initial_alpha_value": rng.choice((0, 512, 1023, 2047)), "rate_reduce_monitor_period": rng.choice((0, 4, size(10))),
        "rate_to_set_on_first_cnp": rng.choice((0, 10, 50_000, size(20))), "rpg_ai_rate": size(16), "rpg_hai_rate": size(16),
        "rpg_byte_reset": rng.choice((0, 1500, size(24))), "rpg_time_reset": rng.choice((0, 1, 300, size(12))),
        "rpg_gd": size(4), "rpg_min_dec_fac": rng.choice((0, 100, 127, size(7))), "rpg_min_rate": rng.choice((0, size(20))),
        "rpg_max_rate": rng.choice((0, 40_000, size(20))), "rpg_threshold": size(5),
    }  # fmt: skip
    return {name: value for name, value in drawn.items() if rng.random() < 0.4 and value != DEFAULTS[name]}


def due(model: IntegerModel) -> int | None:
    """When a step has something to do by itself; None: never."""
    if not model.limited:
        return model.seen if model.cnp else None
    events = [
        (model.cfg["dce_tcp_rtt"] and model.alpha, model.alpha_at),
        (model.cfg["rpg_time_reset"], model.time_at),
        (model.cfg["rpg_byte_reset"] and model.bytes >= model.cfg["rpg_byte_reset"], model.seen),
        (model.cnp, model.cut_at),
    ]
    moments = [at for waits, at in events if waits]
    return max(min(moments), model.seen) if moments else None


def advance(model: IntegerModel, now: int) -> None:
    """Does what is due until `now`, each at its time."""
    while (at := due(model)) is not None and at <= now:
        model.step(at)


def course(rng: random.Random) -> Iterator[str]:
    """One course, line by line."""
    chosen = parameters(rng)
    yield " ".join(["course", *(f"{name}={value}" for name, value in chosen.items())])
    model = IntegerModel({**DEFAULTS, **chosen})
    now, pace, calm = 0, rng.choice((2, 50, 500)), rng.choice((2, 5, 20))
    for event in range(EVENTS):
        now += rng.randrange(1, pace * CLOCK_HZ // 1_000_000)
        sent = 0 if event == 0 or rng.randrange(calm) == 0 else rng.choice((64, 1500, 4200, rng.randrange(1, 1 << 24)))
        advance(model, now)
        model.cnp = model.cnp or sent == 0
        model.step(now, sent)
        advance(model, now)
        state = (model.rate, model.target, model.alpha) if model.limited else (0, 0, 0)
        yield " ".join(map(str, (now * TICK_NS, sent, *state)))


def text() -> str:
    """All of them."""
    rng = random.Random(SEED)
    return HEAD + "".join(f"{line}\n" for _ in range(COURSES) for line in course(rng))


if __name__ == "__main__":
    FILE.write_text(text())
