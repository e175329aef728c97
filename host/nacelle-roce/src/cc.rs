// SPDX-License-Identifier: Apache-2.0
//! Congestion control by DCQCN (Zhu et al., *Congestion Control for Large-Scale RDMA Deployments*, SIGCOMM 2015).
//!
//! A switch marks packets (ECN); the receiver's [`NotificationPoint`] answers by congestion notification packets (CNP,
//! RoCEv2 annex A17.9); the sender's [`ReactionPoint`] lowers the rate of that queue pair, and raises it again while no
//! CNP comes. The integers are those of the page *Congestion control* of the reference, which a device computes as
//! well, bit by bit. Ticks are nanoseconds here.

#[cfg(test)]
mod tests;

use crate::Instant;
use core::time::Duration;

/// Parameters, with the names that Linux has for mlx5 in `/sys/class/net/<dev>/ecn/`, and the paper's values.
///
/// Values beyond the ranges count as the nearest in range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Congestion {
    /// The reaction point limits rates, and packets are sent with ECT(0). Default false.
    pub rp_enable: bool,
    /// The notification point answers marked packets by CNPs. Default false.
    pub np_enable: bool,
    /// Speed of the link in Mb/s, up to 1048575. Default 100000.
    pub line_rate: u32,
    /// Every cut takes the rate before it as the new target. Default true.
    pub clamp_tgt_rate: bool,
    /// Without `clamp_tgt_rate`: also if the timer, not only the byte counter, has raised the rate since the last cut.
    /// Default true.
    pub clamp_tgt_rate_after_time_inc: bool,
    /// 1 - g in 1/1024, where g is the gain of alpha; up to 1023. Default 1019.
    pub dce_tcp_g: u16,
    /// Time without a cut after which alpha decays, in µs; 0: never. Default 55.
    pub dce_tcp_rtt: u16,
    /// Alpha at the first CNP, in 1/1024, up to 1024. Default 1024.
    pub initial_alpha_value: u16,
    /// Least time between two cuts in µs; a CNP that comes sooner cuts when it is over. Default 50.
    pub rate_reduce_monitor_period: u16,
    /// Rate after the first CNP in Mb/s; 0: the maximum, cut as by any other CNP. Default 0.
    pub rate_to_set_on_first_cnp: u32,
    /// Additive increase in Mb/s. Default 40.
    pub rpg_ai_rate: u16,
    /// Hyper increase in Mb/s. Default 400.
    pub rpg_hai_rate: u16,
    /// Bytes sent between increases, up to 2^24 - 1; 0: not counted. Default 10 000 000.
    pub rpg_byte_reset: u32,
    /// Time between increases in µs; 0: not counted. Default 55.
    pub rpg_time_reset: u16,
    /// A cut takes alpha * 1024 / 2^`rpg_gd` of the rate, so that 11 is alpha / 2; up to 15. Default 11.
    pub rpg_gd: u8,
    /// A cut leaves at least this much of the rate, in percent. Default 50.
    pub rpg_min_dec_fac: u8,
    /// Lowest rate in Mb/s. Default 1.
    pub rpg_min_rate: u32,
    /// Highest rate in Mb/s: a queue pair that reaches it has no limit any more. 0: line rate. Default 0.
    pub rpg_max_rate: u32,
    /// F of the paper: stages of fast recovery. Default 5.
    pub rpg_threshold: u8,
    /// Least time between two CNPs of a queue pair in µs; 0: one for every marked packet. Default 50.
    pub min_time_between_cnps: u16,
    /// Differentiated services code point of CNPs, up to 63. Default 48.
    pub cnp_dscp: u8,
}

impl Default for Congestion {
    fn default() -> Self {
        Self {
            rp_enable: false,
            np_enable: false,
            line_rate: 100_000,
            clamp_tgt_rate: true,
            clamp_tgt_rate_after_time_inc: true,
            dce_tcp_g: 1019,
            dce_tcp_rtt: 55,
            initial_alpha_value: 1024,
            rate_reduce_monitor_period: 50,
            rate_to_set_on_first_cnp: 0,
            rpg_ai_rate: 40,
            rpg_hai_rate: 400,
            rpg_byte_reset: 10_000_000,
            rpg_time_reset: 55,
            rpg_gd: 11,
            rpg_min_dec_fac: 50,
            rpg_min_rate: 1,
            rpg_max_rate: 0,
            rpg_threshold: 5,
            min_time_between_cnps: 50,
            cnp_dscp: 48,
        }
    }
}

/// Credit that a byte costs: rates times nanoseconds.
const COST: i64 = 8 * 1_000_000_000 / 62_500;
/// Bytes that a queue pair may send at once to make up for being served late.
const BURST: i64 = 4096;
/// The same as a time, 2^14 ns.
const ROUND: u32 = 14;
const MAX_BYTES: u32 = (1 << 25) - 1;

/// A rate in 1/16 Mb/s from one in Mb/s.
const fn sixteenths(mbps: u32) -> u32 {
    (if mbps > 0xf_ffff { 0xf_ffff } else { mbps }) * 16
}

const fn micros(us: u16) -> Duration {
    Duration::from_micros(us as u64)
}

impl Congestion {
    /// Highest rate in 1/16 Mb/s.
    fn max(&self) -> u32 {
        let line = sixteenths(self.line_rate.max(1));
        if self.rpg_max_rate == 0 { line } else { sixteenths(self.rpg_max_rate).min(line) }
    }

    /// Lowest rate in 1/16 Mb/s.
    fn min(&self) -> u32 {
        sixteenths(self.rpg_min_rate.max(1)).min(self.max())
    }

    /// A rate after a cut.
    fn cut(&self, rate: u32, alpha: u32) -> u32 {
        let most = ((100 - u32::from(self.rpg_min_dec_fac.min(100))) * 41943) >> 6;
        let part = ((alpha << 10) >> self.rpg_gd.min(15)).min(most);
        let taken = (u64::from(rate) * u64::from(part)) >> 16;
        (rate - taken as u32).max(self.min()).min(self.max())
    }

    fn decay(&self, alpha: u32) -> u32 {
        (alpha * u32::from(self.dce_tcp_g.min(1023))) >> 10
    }

    fn gain(&self) -> u32 {
        (1024 - u32::from(self.dce_tcp_g.min(1023))) << 6
    }
}

/// The sender's half of congestion control for one queue pair: a rate limit that comes and goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReactionPoint {
    limit: Option<Limit>,
}

/// State of a queue pair that has a limit. Rates are in 1/16 Mb/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    rate: u32,
    target: u32,
    /// Extent of congestion; 65536 is 1.
    alpha: u32,
    time_stage: u8,
    byte_stage: u8,
    bytes: u32,
    /// A CNP waits for `cut_at`.
    cnp: bool,
    time_at: Instant,
    alpha_at: Instant,
    cut_at: Instant,
    /// Rate times nanoseconds that may be sent, or, below 0, that were sent in advance.
    credit: i64,
    seen: Instant,
}

impl ReactionPoint {
    /// A CNP has arrived.
    pub(crate) fn notified(&mut self, p: &Congestion, now: Instant) {
        self.advance(p, now);
        match &mut self.limit {
            None => self.limit = Some(Limit::first(p, now)),
            Some(limit) => {
                limit.cnp = true;
                self.step(p, now, 0);
                self.advance(p, now);
            }
        }
    }

    /// `bytes` were sent, from Ethernet header to ICRC.
    pub(crate) fn sent(&mut self, p: &Congestion, now: Instant, bytes: usize) {
        self.advance(p, now);
        if self.limit.is_some() {
            self.step(p, now, u32::try_from(bytes).unwrap_or(MAX_BYTES));
            self.advance(p, now);
        }
    }

    /// Brings the rate up to date, event by event.
    pub(crate) fn advance(&mut self, p: &Congestion, now: Instant) {
        while let Some(due) = self.limit.and_then(|limit| limit.due(p))
            && due <= now
        {
            self.step(p, due, 0);
        }
    }

    /// One step of the reference page for a limited queue pair.
    fn step(&mut self, p: &Congestion, now: Instant, sent: u32) {
        if let Some(limit) = &mut self.limit
            && limit.step(p, now, sent)
        {
            // A CNP that waited for its time is the first one again.
            self.limit = limit.cnp.then(|| Limit::first(p, now));
        }
    }

    /// When to look again whether the next packet may be sent; `None`: it may now. Call after [`Self::advance`].
    pub(crate) fn wait_until(&self, p: &Congestion, now: Instant) -> Option<Instant> {
        let limit = self.limit.filter(|limit| limit.credit < 0)?;
        let wait = limit.credit.unsigned_abs().div_ceil(limit.rate.into());
        let ready = limit.seen + Duration::from_nanos(wait);
        // The rate may change before.
        let look = limit.due(p).map_or(ready, |due| due.min(ready));
        (now < look).then_some(look)
    }

    /// The limit in Mb/s; `None` without one.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.limit.map(|limit| f64::from(limit.rate) / 16.0)
    }
}

impl Limit {
    /// The first cut.
    fn first(p: &Congestion, now: Instant) -> Self {
        let alpha = u32::from(p.initial_alpha_value.min(1024)) << 6;
        let rate = match p.rate_to_set_on_first_cnp {
            0 => p.cut(p.max(), alpha),
            rate => sixteenths(rate).min(p.max()).max(p.min()),
        };
        let mut limit = Self {
            rate,
            target: p.max(),
            alpha: p.decay(alpha) + p.gain(),
            time_stage: 0,
            byte_stage: 0,
            bytes: 0,
            cnp: false,
            time_at: now,
            alpha_at: now,
            cut_at: now,
            credit: 0,
            seen: now,
        };
        limit.restart(p, now);
        limit
    }

    /// Counts and times begin anew, as after every cut.
    fn restart(&mut self, p: &Congestion, now: Instant) {
        (self.time_stage, self.byte_stage, self.bytes) = (0, 0, 0);
        self.time_at = now + micros(p.rpg_time_reset);
        self.alpha_at = now + micros(p.dce_tcp_rtt);
        self.cut_at = now + micros(p.rate_reduce_monitor_period);
    }

    /// When a step has something to do by itself.
    fn due(&self, p: &Congestion) -> Option<Instant> {
        let bytes = p.rpg_byte_reset != 0 && self.bytes >= p.rpg_byte_reset;
        [
            // An alpha of 0 need not decay; the next cut sets it and its time anew.
            (p.dce_tcp_rtt != 0 && self.alpha != 0).then_some(self.alpha_at),
            (p.rpg_time_reset != 0).then_some(self.time_at),
            bytes.then_some(self.seen),
            self.cnp.then_some(self.cut_at),
        ]
        .into_iter()
        .flatten()
        .min()
        .map(|due| due.max(self.seen))
    }

    /// Returns whether the limit is over.
    fn step(&mut self, p: &Congestion, now: Instant, sent: u32) -> bool {
        let earned = i128::from(self.rate) * (now - self.seen).as_nanos() as i128;
        let most = i128::from(BURST * COST + (i64::from(self.rate) << ROUND));
        let credit = i128::from(self.credit) - i128::from(sent) * i128::from(COST) + earned;
        self.credit = credit.min(most) as i64;
        self.seen = self.seen.max(now);

        self.bytes = (self.bytes + sent).min(MAX_BYTES);
        let decayed = p.dce_tcp_rtt != 0 && now >= self.alpha_at;
        if decayed {
            let base = if self.alpha == 0 { now } else { self.alpha_at };
            self.alpha_at = base + micros(p.dce_tcp_rtt);
            self.alpha = p.decay(self.alpha);
        }
        if p.rpg_time_reset != 0 && now >= self.time_at {
            self.time_at = self.time_at + micros(p.rpg_time_reset);
            self.time_stage = self.time_stage.saturating_add(1);
            return self.increase(p);
        }
        if p.rpg_byte_reset != 0 && self.bytes >= p.rpg_byte_reset {
            self.bytes -= p.rpg_byte_reset;
            self.byte_stage = self.byte_stage.saturating_add(1);
            return self.increase(p);
        }
        if self.cnp && now >= self.cut_at && !decayed {
            self.cut(p, now);
        }
        false
    }

    /// Returns whether the highest rate is reached.
    fn increase(&mut self, p: &Congestion) -> bool {
        let (time, byte) = (self.time_stage, self.byte_stage);
        let (low, high) = match (p.rpg_time_reset != 0, p.rpg_byte_reset != 0) {
            (true, false) => (time, time),
            (false, true) => (byte, byte),
            _ => (time.min(byte), time.max(byte)),
        };
        if high >= p.rpg_threshold {
            self.target += match low.checked_sub(p.rpg_threshold) {
                None | Some(0) => sixteenths(p.rpg_ai_rate.into()),
                Some(beyond) => u32::from(beyond) * sixteenths(p.rpg_hai_rate.into()),
            };
        }
        self.target = self.target.min(p.max());
        self.rate = ((self.target + self.rate + 1) >> 1).min(p.max());
        self.rate == p.max()
    }

    fn cut(&mut self, p: &Congestion, now: Instant) {
        self.cnp = false;
        if p.clamp_tgt_rate || self.byte_stage != 0 || p.clamp_tgt_rate_after_time_inc && self.time_stage != 0 {
            self.target = self.rate;
        }
        self.rate = p.cut(self.rate, self.alpha);
        self.alpha = p.decay(self.alpha) + p.gain();
        self.restart(p, now);
    }
}

/// The receiver's half of congestion control for one queue pair: when to send a CNP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NotificationPoint {
    /// None before this moment.
    next: Option<Instant>,
}

impl NotificationPoint {
    /// A marked packet has arrived. Returns whether to send a CNP.
    pub(crate) fn marked(&mut self, p: &Congestion, now: Instant) -> bool {
        let due = p.np_enable && self.next.is_none_or(|next| next <= now);
        if due {
            self.next = Some(now + micros(p.min_time_between_cnps));
        }
        due
    }
}

/// Congestion control of one connection: both halves, and what they make wait.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    reaction: ReactionPoint,
    notification: NotificationPoint,
    cnp_due: bool,
    held_until: Option<Instant>,
}

impl Pace {
    /// A CNP has arrived. Returns whether it counts.
    pub(crate) fn notified(&mut self, p: &Congestion, now: Instant) -> bool {
        if p.rp_enable {
            self.reaction.notified(p, now);
        }
        p.rp_enable
    }

    /// A marked packet has arrived.
    pub(crate) fn marked(&mut self, p: &Congestion, now: Instant) {
        self.cnp_due |= self.notification.marked(p, now);
    }

    /// Whether a CNP waits to be sent.
    pub(crate) fn cnp_due(&self) -> bool {
        self.cnp_due
    }

    /// The same; from now on none waits.
    pub(crate) fn take_cnp(&mut self) -> bool {
        core::mem::take(&mut self.cnp_due)
    }

    /// Whether data may be sent now. If not, it is held until [`Self::held_until`].
    pub(crate) fn may_send(&mut self, p: &Congestion, now: Instant) -> bool {
        if !p.rp_enable {
            self.reaction = ReactionPoint::default();
        }
        self.reaction.advance(p, now);
        self.held_until = self.reaction.wait_until(p, now);
        self.held_until.is_none()
    }

    /// Data of this many bytes was sent.
    pub(crate) fn sent(&mut self, p: &Congestion, now: Instant, bytes: usize) {
        self.reaction.sent(p, now, bytes);
    }

    /// When data may be sent at the earliest.
    pub(crate) fn held_until(&self) -> Option<Instant> {
        self.held_until
    }

    /// Data is no longer held if the time has come.
    pub(crate) fn run_timers(&mut self, now: Instant) {
        self.held_until = self.held_until.filter(|&until| now < until);
    }

    /// The limit in Mb/s; `None` without one.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.reaction.rate()
    }

    /// Time that so many bytes take at the limit; `None` without one.
    pub(crate) fn time_for(&self, bytes: usize) -> Option<Duration> {
        let limit = self.reaction.limit?;
        Some(Duration::from_nanos(bytes as u64 * COST as u64 / u64::from(limit.rate)))
    }
}
