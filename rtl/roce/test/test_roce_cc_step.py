# SPDX-License-Identifier: Apache-2.0
"""roce_cc_step, bit by bit against the integer model, with every parameter at random and a clock that jumps."""

from __future__ import annotations

import random

import cocotb
from cc_model import DEFAULTS, IntegerModel
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import Plain, run
from nacelle_tb.long import rounds
from nacelle_tb.streams import start, wait_cycles
from nacelle_tb.svtypes import struct

QPS, ROUND_LOG2 = 16, 6
SHORT, PLAIN, LONG = 2, 11, 21  # cycles to the result: no limit, nothing due, something due
COST_LOG2 = 15  # 2^15: what a byte costs, rounded up
SCALED, STEP = "roce_cc_pkg::cc_scaled_t", "roce_cc_pkg::cc_step_t"
RESULT, VIEW = "roce_cc_pkg::cc_result_t", "roce_cc_pkg::cc_view_t"
PARAMS = {"QPS": QPS, "ROUND_LOG2": ROUND_LOG2}
PORTS = {
    "now": Plain("input", "logic [47:0]"),
    "cfg": Plain("input", SCALED),
    "step_valid": Plain("input", "logic"),
    "ready": Plain("output", "logic"),
    "step": Plain("input", STEP),
    "sent_index": Plain("output", "roce_pkg::qp_index_t"),
    "sent_valid": Plain("input", "logic"),
    "sent": Plain("input", "roce_cc_pkg::cc_bytes_t"),
    "result_valid": Plain("output", "logic"),
    "result": Plain("output", RESULT),
    "view": Plain("output", VIEW),
}


def scaled(cfg: dict[str, int]) -> dict[str, int]:
    """What roce_cc_scale makes of the parameters."""
    model = IntegerModel(cfg)
    most = model.most
    low = min(model.least, most)
    return {
        "rp_enable": cfg["rp_enable"], "np_enable": cfg["np_enable"], "clamp": cfg["clamp_tgt_rate"],
        "clamp_after_time": cfg["clamp_tgt_rate_after_time_inc"], "alpha_timed": int(cfg["dce_tcp_rtt"] != 0),
        "time_counted": int(cfg["rpg_time_reset"] != 0), "byte_counted": int(cfg["rpg_byte_reset"] != 0),
        "first_fixed": int(cfg["rate_to_set_on_first_cnp"] != 0), "gd": cfg["rpg_gd"], "threshold": cfg["rpg_threshold"],
        "keep": cfg["dce_tcp_g"], "gain": (1024 - cfg["dce_tcp_g"]) << 6,
        "first_alpha": min(cfg["initial_alpha_value"], 1024) << 6,
        "max_factor": ((100 - min(cfg["rpg_min_dec_fac"], 100)) * 41943) >> 6, "max_rate": most, "min_rate": low,
        "first_rate": max(min(model.mbps("rate_to_set_on_first_cnp"), most), low), "ai_rate": model.mbps("rpg_ai_rate"),
        "hai_rate": model.mbps("rpg_hai_rate"), "byte_reset": cfg["rpg_byte_reset"], "alpha_ticks": model.ticks("dce_tcp_rtt"),
        "time_ticks": model.ticks("rpg_time_reset"), "monitor_ticks": model.ticks("rate_reduce_monitor_period"),
        "cnp_ticks": model.ticks("min_time_between_cnps"),
    }  # fmt: skip


def any_config(rng: random.Random) -> dict[str, int]:
    """Parameters over their whole ranges, small and zero ones often."""

    def size(bits: int) -> int:
        return rng.getrandbits(rng.randint(0, bits))

    return {
        "rp_enable": 1, "np_enable": 1, "clamp_tgt_rate": rng.getrandbits(1),
        "clamp_tgt_rate_after_time_inc": rng.getrandbits(1), "dce_tcp_g": rng.choice((0, 1, 700, 1019, 1023, size(10))),
        "dce_tcp_rtt": rng.choice((0, 1, 55, size(16))), "initial_alpha_value": rng.choice((0, 1023, 1024, 2047, size(11))),
        "rate_reduce_monitor_period": rng.choice((0, 4, size(16))),
        "rate_to_set_on_first_cnp": rng.choice((0, 0, 10, size(20))), "rpg_ai_rate": size(16), "rpg_hai_rate": size(16),
        "rpg_byte_reset": rng.choice((0, 1500, size(24))), "rpg_time_reset": rng.choice((0, 1, 55, size(16))),
        "rpg_gd": rng.choice((11, 10, 15, 0, size(4))), "rpg_min_dec_fac": rng.choice((50, 0, 100, 127, size(7))),
        "rpg_min_rate": rng.choice((0, 1, size(20))), "rpg_max_rate": rng.choice((0, 0, 40_000, size(20))),
        "rpg_threshold": size(5), "min_time_between_cnps": 4,
    }  # fmt: skip


@cocotb.test()
async def follows_the_model(dut) -> None:
    """Steps of random QPs, one after the other with and without a pause: every field of each result as the model has it, and
    the number of cycles that it takes."""
    rng = random.Random(random.getrandbits(64))
    step, result, view = struct(STEP), struct(RESULT), struct(VIEW)
    for signal in ("now", "cfg", "step_valid", "step", "sent", "sent_valid"):
        getattr(dut, signal).value = 0
    await start(dut)
    wrap = 1 << 48
    now = wrap - rng.getrandbits(32)  # passes the wrap on the way
    cuts = increases = blocked = released = 0
    for _ in range(rounds(40)):
        cfg = any_config(rng) if rng.random() < 0.8 else dict(DEFAULTS)
        dut.cfg.value = struct(SCALED).pack(**scaled(cfg))
        models = [IntegerModel(cfg, round_log2=ROUND_LOG2) for _ in range(QPS)]
        totals = [rng.getrandbits(21) for _ in range(QPS)]
        counted = list(totals)
        scale = rng.choice((1, 50, 1_000, 20_000, 1_000_000))
        for _ in range(360):
            for _ in range(rng.choice((0, 0, 1, 3))):
                await FallingEdge(dut.clk)
            index = rng.randrange(QPS)
            model = models[index]
            model.cnp = model.cnp or rng.random() < 0.2
            assert int(dut.ready.value)
            dut.step.value = step.pack(index=index, limited=int(model.limited), cnp=int(model.cnp), view=1)
            dut.step_valid.value = 1
            await FallingEdge(dut.clk)
            dut.step_valid.value = 0
            if rng.random() < 0.1:
                dut.sent_valid.value = 0
                await wait_cycles(dut, rng.randrange(1, 4))
                await FallingEdge(dut.clk)
            dut.sent_valid.value = 1
            # The step happens now.
            now += 1 if rng.random() < 0.7 else rng.randrange(20 * scale)
            dut.now.value = now % wrap
            totals[index] += rng.choice((0, 0, rng.randrange(2000), rng.randrange(1 << 21)))
            dut.sent.value = totals[index] % (1 << 21)
            sent = (totals[index] - counted[index]) % (1 << 21)
            before = (model.limited, model.cnp, model.rate)
            if before[0] or before[1]:
                counted[index] = totals[index]
            busy = model.step(now, sent)
            cuts += before[1] and not model.cnp
            increases += model.limited and before[0] and model.rate > before[2]
            released += before[0] and not model.limited
            blocked += model.limited and model.credit < 0
            cycles = 1
            while not int(dut.result_valid.value):
                assert cycles < LONG, "no result"
                await FallingEdge(dut.clk)
                cycles += 1
            assert cycles == (LONG if busy else PLAIN if before[0] or before[1] else SHORT)
            got = vars(result.unpack(int(dut.result.value)))
            got.pop("step")
            reach = got.pop("reach")
            assert got == {
                "limited": int(model.limited),
                "blocked": int(model.limited and model.credit < 0),
                "cnp_done": int(before[1] and not model.cnp),
                "busy": int(busy),
            }, f"{cfg}"
            if model.limited:
                allowed = -1 if model.credit < 0 else min(model.credit >> COST_LOG2, 1 << 19)
                assert reach == (totals[index] + allowed) % (1 << 21), f"{cfg}"
            shown = {"limited": 1, "rate": model.rate, "target": model.target, "alpha": model.alpha}
            if not model.limited:
                shown = dict.fromkeys(shown, 0)
            assert vars(view.unpack(int(dut.view.value))) == shown, f"{cfg}"
    assert now > wrap
    assert cuts > 500 and increases > 500 and blocked > 200 and released > 50, (cuts, increases, blocked, released)
    await RisingEdge(dut.clk)


def test_roce_cc_step() -> None:
    run("roce_cc_step", __file__, params=PARAMS, ports=PORTS, seed=1)
