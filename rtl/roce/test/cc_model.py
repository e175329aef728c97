# SPDX-License-Identifier: Apache-2.0
"""Congestion control in software, twice: the integer arithmetic of docs/reference/congestion.md, and the equations of the paper
(Zhu et al., SIGCOMM 2015, section 5) in floating point, independent of each other."""

from __future__ import annotations

from dataclasses import dataclass, field

LINE_MBPS = 100_000
CLOCK_HZ = 250_000_000
CYCLES_PER_US = CLOCK_HZ // 1_000_000

DEFAULTS = {
    "rp_enable": 1,
    "np_enable": 1,
    "clamp_tgt_rate": 1,
    "clamp_tgt_rate_after_time_inc": 1,
    "dce_tcp_g": 1019,
    "dce_tcp_rtt": 55,
    "initial_alpha_value": 1024,
    "rate_reduce_monitor_period": 50,
    "rate_to_set_on_first_cnp": 0,
    "rpg_ai_rate": 40,
    "rpg_hai_rate": 400,
    "rpg_byte_reset": 10_000_000,
    "rpg_time_reset": 55,
    "rpg_gd": 11,
    "rpg_min_dec_fac": 50,
    "rpg_min_rate": 1,
    "rpg_max_rate": 0,
    "rpg_threshold": 5,
    "min_time_between_cnps": 50,
}


@dataclass
class IntegerModel:
    """One QP's reaction point, step by step."""

    cfg: dict[str, int]
    burst: int = 4096
    round_log2: int = 10
    limited: bool = False
    cnp: bool = False
    rate: int = 0
    target: int = 0
    alpha: int = 0
    time_stage: int = 0
    byte_stage: int = 0
    bytes: int = 0
    time_at: int = 0
    alpha_at: int = 0
    cut_at: int = 0
    credit: int = 0
    seen: int = 0

    def ticks(self, name: str) -> int:
        return (self.cfg[name] * (CLOCK_HZ * 1024 // 1_000_000)) >> 10

    def mbps(self, name: str) -> int:
        return self.cfg[name] * 16

    @property
    def least(self) -> int:
        return max(self.mbps("rpg_min_rate"), 16)

    @property
    def most(self) -> int:
        line = LINE_MBPS * 16
        return min(self.mbps("rpg_max_rate"), line) if self.cfg["rpg_max_rate"] else line

    def _cut(self, rate: int, alpha: int) -> int:
        fmax = ((100 - min(self.cfg["rpg_min_dec_fac"], 100)) * 41943) >> 6
        factor = min((alpha << 10) >> self.cfg["rpg_gd"], fmax)
        return min(max(rate - ((rate * factor) >> 16), self.least), self.most)

    def _decay(self, alpha: int) -> int:
        return (alpha * self.cfg["dce_tcp_g"]) >> 10

    def _after_cut(self, now: int, alpha: int) -> None:
        self.cnp = False
        self.alpha = self._decay(alpha) + ((1024 - self.cfg["dce_tcp_g"]) << 6)
        self.time_stage = self.byte_stage = self.bytes = 0
        self.time_at = now + self.ticks("rpg_time_reset")
        self.alpha_at = now + self.ticks("dce_tcp_rtt")
        self.cut_at = now + self.ticks("rate_reduce_monitor_period")

    def _increase(self) -> None:
        stages = [s for s, on in ((self.time_stage, "rpg_time_reset"), (self.byte_stage, "rpg_byte_reset")) if self.cfg[on]]
        lo, hi, threshold = min(stages), max(stages), self.cfg["rpg_threshold"]
        if lo > threshold and hi >= threshold:
            self.target += (lo - threshold) * self.mbps("rpg_hai_rate")
        elif hi >= threshold:
            self.target += self.mbps("rpg_ai_rate")
        self.target = min(self.target, self.most)
        self.rate = min((self.target + self.rate + 1) >> 1, self.most)
        if self.rate == self.most:
            self.limited = False

    def step(self, now: int, sent: int = 0) -> bool:
        """One step; whether anything was due."""
        if not self.limited:
            if not self.cnp:
                return False
            self.limited = True
            self.target = self.most
            first = min(self.cfg["initial_alpha_value"], 1024) << 6
            if self.cfg["rate_to_set_on_first_cnp"]:
                wanted = min(self.mbps("rate_to_set_on_first_cnp"), self.most)
                self.rate = max(wanted, min(self.least, self.most))
            else:
                self.rate = self._cut(self.most, first)
            self._after_cut(now, first)
            self.credit, self.seen = 0, now
            return True
        cost = 8 * CLOCK_HZ // 62_500
        self.credit += self.rate * min(now - self.seen, (1 << 26) - 1) - sent * cost
        self.credit = max(min(self.credit, self.burst * cost + (self.rate << self.round_log2)), -(1 << 38))
        self.seen = now
        self.bytes = min(self.bytes + sent, (1 << 25) - 1)
        if not self.cfg["dce_tcp_rtt"]:
            self.alpha_at = now
        if not self.cfg["rpg_time_reset"]:
            self.time_at = now
        busy = decayed = False
        alpha = self.alpha
        if self.cfg["dce_tcp_rtt"] and now >= self.alpha_at:
            busy = decayed = True
            self.alpha_at = (now if alpha == 0 else self.alpha_at) + self.ticks("dce_tcp_rtt")
            self.alpha = self._decay(alpha)
        if self.cfg["rpg_time_reset"] and now >= self.time_at:
            busy = True
            self.time_at += self.ticks("rpg_time_reset")
            self.time_stage = min(self.time_stage + 1, 255)
            self._increase()
        elif self.cfg["rpg_byte_reset"] and self.bytes >= self.cfg["rpg_byte_reset"]:
            busy = True
            self.bytes -= self.cfg["rpg_byte_reset"]
            self.byte_stage = min(self.byte_stage + 1, 255)
            self._increase()
        elif self.cnp and now >= self.cut_at and not decayed:
            busy = True
            after_time = self.cfg["clamp_tgt_rate_after_time_inc"] and self.time_stage
            if self.cfg["clamp_tgt_rate"] or self.byte_stage or after_time:
                self.target = self.rate
            self.rate = self._cut(self.rate, alpha)
            self._after_cut(now, alpha)
        return busy

    def catch_up(self, now: int, sent: int = 0) -> None:
        """Steps at `now` until nothing is due."""
        while self.step(now, sent):
            sent = 0


@dataclass
class PaperModel:
    """Figure 7 of the paper, rates in Mb/s, times in us, for CNPs and sent bytes given by their time."""

    line: float = LINE_MBPS
    g: float = 5 / 1024
    alpha_timer: float = 55.0
    timer: float = 55.0
    byte_counter: float = 10e6
    f: int = 5
    r_ai: float = 40.0
    r_hai: float = 400.0
    r_min: float = 1.0
    now: float = 0.0
    alpha: float = 1.0
    rc: float = LINE_MBPS
    rt: float = LINE_MBPS
    t: int = 0
    bc: int = 0
    counted: float = 0.0
    next_alpha: float = field(default=float("inf"))
    next_t: float = field(default=float("inf"))

    def cnp(self) -> None:
        self.rt = self.rc
        self.rc = max(self.rc * (1 - self.alpha / 2), self.r_min)
        self.alpha = (1 - self.g) * self.alpha + self.g
        self.t = self.bc = 0
        self.counted = 0.0
        self.next_alpha = self.now + self.alpha_timer
        self.next_t = self.now + self.timer

    def _raise(self) -> None:
        if max(self.t, self.bc) < self.f:
            pass
        elif min(self.t, self.bc) > self.f:
            self.rt += (min(self.t, self.bc) - self.f) * self.r_hai
        else:
            self.rt += self.r_ai
        self.rt = min(self.rt, self.line)
        self.rc = (self.rt + self.rc) / 2

    def send(self, count: float) -> None:
        self.counted += count
        while self.counted >= self.byte_counter and self.next_t != float("inf"):
            self.counted -= self.byte_counter
            self.bc += 1
            self._raise()

    def until(self, when: float) -> None:
        while min(self.next_alpha, self.next_t) <= when:
            self.now = min(self.next_alpha, self.next_t)
            if self.next_alpha == self.now:
                self.alpha *= 1 - self.g
                self.next_alpha += self.alpha_timer
            if self.next_t == self.now:
                self.t += 1
                self.next_t += self.timer
                self._raise()
        self.now = when
