// SPDX-License-Identifier: Apache-2.0
//! Congestion control against the paper, written down once more in floating point.

use super::*;

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % n
    }
}

fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

fn on() -> Congestion {
    Congestion { rp_enable: true, np_enable: true, ..Congestion::default() }
}

/// The reaction point of the paper (section 3.1 and figure 7), in Mb/s, bytes and nanoseconds.
struct Paper {
    g: f64,
    line: f64,
    additive: f64,
    hyper: f64,
    timer: u64,
    alpha_timer: u64,
    gap: u64,
    byte_counter: u64,
    stages: u32,
    current: f64,
    goal: f64,
    alpha: f64,
    limited: bool,
    pending: bool,
    by_time: u32,
    by_bytes: u32,
    bytes: u64,
    last_cut: u64,
    last_alpha: u64,
    last_timer: u64,
}

impl Paper {
    fn new(p: &Congestion) -> Self {
        Self {
            g: 1.0 - f64::from(p.dce_tcp_g) / 1024.0,
            line: f64::from(p.line_rate),
            additive: f64::from(p.rpg_ai_rate),
            hyper: f64::from(p.rpg_hai_rate),
            timer: u64::from(p.rpg_time_reset) * 1000,
            alpha_timer: u64::from(p.dce_tcp_rtt) * 1000,
            gap: u64::from(p.rate_reduce_monitor_period) * 1000,
            byte_counter: p.rpg_byte_reset.into(),
            stages: p.rpg_threshold.into(),
            current: f64::from(p.line_rate),
            goal: f64::from(p.line_rate),
            alpha: 1.0,
            limited: false,
            pending: false,
            by_time: 0,
            by_bytes: 0,
            bytes: 0,
            last_cut: 0,
            last_alpha: 0,
            last_timer: 0,
        }
    }

    fn cut(&mut self, now: u64) {
        if self.limited {
            self.goal = self.current;
        } else {
            (self.goal, self.alpha, self.current) = (self.line, 1.0, self.line);
        }
        self.limited = true;
        self.pending = false;
        self.current = (self.current * (1.0 - self.alpha / 2.0)).max(1.0);
        self.alpha = (1.0 - self.g) * self.alpha + self.g;
        (self.by_time, self.by_bytes, self.bytes) = (0, 0, 0);
        (self.last_cut, self.last_alpha, self.last_timer) = (now, now, now);
    }

    fn raise(&mut self) {
        if self.by_time.max(self.by_bytes) >= self.stages {
            let beyond = self.by_time.min(self.by_bytes).saturating_sub(self.stages);
            self.goal += if beyond > 0 { f64::from(beyond) * self.hyper } else { self.additive };
        }
        self.goal = self.goal.min(self.line);
        self.current = (self.current + self.goal) / 2.0;
        // Halving never arrives; a sixteenth of a megabit is the integers' last step.
        self.limited = self.current < self.line - 1.0 / 16.0;
    }

    fn cnp(&mut self, now: u64) {
        if !self.limited || now >= self.last_cut + self.gap {
            self.cut(now);
        } else {
            self.pending = true;
        }
    }

    fn send(&mut self, bytes: u64) {
        if self.limited {
            self.bytes += bytes;
            while self.limited && self.bytes >= self.byte_counter {
                self.bytes -= self.byte_counter;
                self.by_bytes += 1;
                self.raise();
            }
        }
    }

    /// Lets the timers run up to `now`.
    fn run(&mut self, now: u64) {
        while self.limited {
            let cut = if self.pending { self.last_cut + self.gap } else { u64::MAX };
            let (alpha, timer) = (self.last_alpha + self.alpha_timer, self.last_timer + self.timer);
            let next = cut.min(alpha).min(timer);
            if next > now {
                return;
            }
            if next == alpha {
                self.alpha *= 1.0 - self.g;
                self.last_alpha = next;
            } else if next == timer {
                self.by_time += 1;
                self.last_timer = next;
                self.raise();
            } else {
                self.cut(next);
            }
        }
    }
}

#[test]
fn agrees_with_the_paper() {
    for seed in 0..200 {
        let mut rng = Rng(seed);
        let p = Congestion {
            line_rate: [1_000, 10_000, 100_000, 400_000][rng.below(4) as usize],
            rpg_byte_reset: 1 << (14 + rng.below(8)),
            rpg_time_reset: 40 + rng.below(300) as u16,
            // Not a divisor of other times: two things at one moment may come in any order.
            dce_tcp_rtt: 37 + rng.below(3) as u16 * 10,
            dce_tcp_g: if seed % 2 == 0 { 1019 } else { 1008 },
            ..on()
        };
        let (mut rp, mut paper) = (ReactionPoint::default(), Paper::new(&p));
        let (mut now, mut limited) = (0, 0);
        let calm = 1 + rng.below(3_000);
        for i in 0..4_000 {
            now += 1 + rng.below(4_000);
            rp.advance(&p, at(now));
            paper.run(now);
            if i == 0 || rng.below(calm) == 0 {
                rp.notified(&p, at(now));
                paper.cnp(now);
            } else {
                let bytes = 64 + rng.below(8_000);
                rp.sent(&p, at(now), bytes as usize);
                paper.send(bytes);
            }
            let line = f64::from(p.line_rate);
            let (own, expected) = (rp.rate().unwrap_or(line), if paper.limited { paper.current } else { line });
            // Each cut adds what rounding has taken from alpha.
            let close = (own - expected).abs() <= 0.5 + expected * 0.01;
            assert!(close, "seed {seed} at {now} ns: {own} instead of {expected}");
            limited += u32::from(rp.rate().is_some());
        }
        assert!(limited > 20, "seed {seed}: hardly ever limited");
    }
}

/// A course of events with precomputed rates, with the paper's parameters at 100 Gb/s.
#[test]
fn numbers_are_exact() {
    let p = on();
    let mut rp = ReactionPoint::default();
    let rate = |rp: &ReactionPoint| rp.limit.map(|l| (l.rate, l.target, l.alpha));
    rp.notified(&p, at(1_000));
    // fmax = 50 * 41943 >> 6 = 32767; 1600000 - (1600000 * 32767 >> 16) = 800025
    assert_eq!(rate(&rp), Some((800_025, 1_600_000, 65_536)));
    // Sooner than 50 us after the cut: when they are over. alpha 65536: 800025 - (800025 * 32767 >> 16) = 400025
    rp.notified(&p, at(2_000));
    assert_eq!(rate(&rp), Some((800_025, 1_600_000, 65_536)));
    rp.advance(&p, at(50_999));
    assert_eq!(rate(&rp), Some((800_025, 1_600_000, 65_536)));
    rp.advance(&p, at(51_000));
    assert_eq!(rate(&rp), Some((400_025, 800_025, 65_536)));
    // Fast recovery after 55 us, and alpha decays: 65536 * 1019 >> 10
    rp.advance(&p, at(106_000));
    assert_eq!(rate(&rp), Some((600_025, 800_025, 65_216)));
    // The next stages at once; the fifth increases additively.
    rp.advance(&p, at(51_000 + 4 * 55_000));
    assert_eq!(rate(&rp), Some((775_025, 800_025, 64_264)));
    rp.advance(&p, at(51_000 + 5 * 55_000));
    assert_eq!(rate(&rp), Some((787_845, 800_665, 63_950)));
}

/// A parameter by its name in the courses.
fn set(p: &mut Congestion, name: &str, value: u32) {
    let small = value as u16;
    match name {
        "clamp_tgt_rate" => p.clamp_tgt_rate = value != 0,
        "clamp_tgt_rate_after_time_inc" => p.clamp_tgt_rate_after_time_inc = value != 0,
        "dce_tcp_g" => p.dce_tcp_g = small,
        "dce_tcp_rtt" => p.dce_tcp_rtt = small,
        "initial_alpha_value" => p.initial_alpha_value = small,
        "rate_reduce_monitor_period" => p.rate_reduce_monitor_period = small,
        "rate_to_set_on_first_cnp" => p.rate_to_set_on_first_cnp = value,
        "rpg_ai_rate" => p.rpg_ai_rate = small,
        "rpg_hai_rate" => p.rpg_hai_rate = small,
        "rpg_byte_reset" => p.rpg_byte_reset = value,
        "rpg_time_reset" => p.rpg_time_reset = small,
        "rpg_gd" => p.rpg_gd = value as u8,
        "rpg_min_dec_fac" => p.rpg_min_dec_fac = value as u8,
        "rpg_min_rate" => p.rpg_min_rate = value,
        "rpg_max_rate" => p.rpg_max_rate = value,
        "rpg_threshold" => p.rpg_threshold = value as u8,
        _ => panic!("no parameter is called {name}"),
    }
}

/// The same courses as the RTL, bit by bit.
#[test]
fn courses_are_those_of_the_rtl() {
    let (mut p, mut rp, mut begun, mut events) = (on(), ReactionPoint::default(), 0, 0);
    let courses = include_str!("../../../../rtl/roce/test/data/cc_courses.txt");
    for (number, line) in courses.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        if let Some(parameters) = line.strip_prefix("course") {
            (p, rp, begun) = (on(), ReactionPoint::default(), begun + 1);
            for (name, value) in parameters.split_whitespace().filter_map(|word| word.split_once('=')) {
                set(&mut p, name, value.parse().unwrap());
            }
            continue;
        }
        let words: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        let &[time, bytes, rate, target, alpha] = &words[..] else { panic!("line {}: {line}", number + 1) };
        match bytes {
            0 => rp.notified(&p, at(time)),
            bytes => rp.sent(&p, at(time), bytes as usize),
        }
        let own = rp.limit.map_or((0, 0, 0), |limit| (limit.rate, limit.target, limit.alpha));
        assert_eq!(own, (rate as u32, target as u32, alpha as u32), "line {}: {line}", number + 1);
        events += 1;
    }
    assert!((begun, events) >= (40, 2_000), "{begun} courses, {events} events");
}

#[test]
fn hyper_increase_needs_time_and_bytes() {
    let p = Congestion { rpg_byte_reset: 1000, rpg_threshold: 1, ..on() };
    let target = |bytes: bool, time: bool| {
        let mut rp = ReactionPoint::default();
        rp.notified(&p, at(0));
        rp.notified(&p, at(1));
        rp.advance(&p, at(50_000));
        let before = rp.limit.unwrap().target;
        for i in 1..=3 {
            if time {
                rp.advance(&p, at(50_000 + 55_000 * i));
            }
            if bytes {
                rp.sent(&p, at(50_000 + if time { 55_000 * i } else { 0 }), 1000);
            }
        }
        (rp.limit.unwrap().target - before) / 16
    };
    assert_eq!(target(true, false), 3 * 40);
    assert_eq!(target(false, true), 3 * 40);
    // Stages (1,0) (1,1) (2,1): additive; (2,2): 400; (3,2): 400; (3,3): 800.
    assert_eq!(target(true, true), 3 * 40 + 400 + 400 + 800);
}

#[test]
fn parameters_bound_the_rate() {
    let after = |p: &Congestion, cnps: u64| {
        let mut rp = ReactionPoint::default();
        for i in 0..cnps {
            rp.notified(p, at(i * 50_000));
        }
        rp.rate()
    };
    assert_eq!(after(&on(), 0), None);
    assert_eq!(after(&on(), 1000), Some(1.0));
    assert_eq!(after(&Congestion { rpg_min_rate: 70_000, ..on() }, 1000), Some(70_000.0));
    assert_eq!(after(&Congestion { rpg_min_rate: 0, ..on() }, 1000), Some(1.0), "never nothing");
    assert_eq!(after(&Congestion { rate_to_set_on_first_cnp: 123, ..on() }, 1), Some(123.0));
    assert_eq!(after(&Congestion { rpg_min_dec_fac: 100, ..on() }, 9), Some(100_000.0));
    assert_eq!(after(&Congestion { rpg_gd: 15, ..on() }, 1), Some(f64::from(1_600_000 - 50_000) / 16.0));
    let half = after(&Congestion { rpg_max_rate: 10_000, ..on() }, 1).unwrap();
    assert!((5_000.0..5_002.0).contains(&half), "{half}");
    // With the largest values nothing overflows, and there is an end.
    let huge = Congestion {
        line_rate: u32::MAX,
        dce_tcp_g: u16::MAX,
        initial_alpha_value: u16::MAX,
        rpg_ai_rate: u16::MAX,
        rpg_hai_rate: u16::MAX,
        rpg_byte_reset: 1,
        rpg_gd: 255,
        rpg_min_dec_fac: 255,
        rpg_min_rate: u32::MAX,
        rpg_max_rate: u32::MAX,
        rpg_threshold: 0,
        ..on()
    };
    let mut rp = ReactionPoint::default();
    rp.notified(&huge, at(0));
    rp.sent(&huge, at(1), usize::MAX);
    rp.advance(&huge, at(u64::MAX));
    assert_eq!(rp.rate(), None);
}

/// The count of bytes has 25 bits and stays at its end: what is sent at once counts up to 2^25 - 1.
#[test]
fn the_count_of_bytes_is_bounded() {
    let p = Congestion { rpg_time_reset: 0, rpg_byte_reset: (1 << 24) - 1, rpg_ai_rate: 1, ..on() };
    for (sent, left) in [((1 << 25) - 2, 0), ((1 << 25) - 1, 1), (1 << 25, 1), ((1 << 25) + 1, 1), (usize::MAX, 1)] {
        let mut rp = ReactionPoint::default();
        rp.notified(&p, at(0));
        rp.sent(&p, at(0), sent);
        let limit = rp.limit.unwrap();
        assert_eq!((limit.byte_stage, limit.bytes), (2, left), "{sent}");
    }
}

/// Without a CNP the limit is removed, and the state of the queue pair is initialised.
#[test]
fn the_limit_ends() {
    let p = on();
    let mut rp = ReactionPoint::default();
    rp.notified(&p, at(0));
    let mut now = 0;
    while rp.rate().is_some() {
        now += 1_000_000;
        rp.advance(&p, at(now));
        assert!(now < 1_000_000_000);
    }
    assert_eq!((rp, rp.wait_until(&p, at(now))), (ReactionPoint::default(), None));
}

/// Sends as soon as allowed, for 20 ms, at a rate that nothing changes.
#[test]
fn pacing_keeps_the_rate() {
    for mbps in [1, 10, 333, 10_000] {
        let p =
            Congestion { rate_to_set_on_first_cnp: mbps, rpg_time_reset: 0, rpg_byte_reset: 0, dce_tcp_rtt: 0, ..on() };
        let mut rp = ReactionPoint::default();
        rp.notified(&p, at(0));
        let mut rng = Rng(mbps.into());
        let (mut now, mut bytes) = (0, 0);
        while now < 20_000_000 {
            rp.advance(&p, at(now));
            match rp.wait_until(&p, at(now)) {
                Some(ready) => now = ready.as_nanos(),
                None => {
                    let len = 64 + rng.below(1400) as usize;
                    rp.sent(&p, at(now), len);
                    bytes += len as u64;
                }
            }
        }
        let ideal = now * u64::from(mbps) / 8_000;
        assert!((ideal..ideal + 1500).contains(&bytes), "{mbps} Mb/s: {bytes} bytes instead of {ideal}");
    }
}

/// Idle time is not saved up beyond the burst.
#[test]
fn pacing_forgets_idle_time() {
    let p = Congestion { rate_to_set_on_first_cnp: 1, rpg_time_reset: 0, rpg_byte_reset: 0, ..on() };
    let mut rp = ReactionPoint::default();
    rp.notified(&p, at(0));
    rp.advance(&p, at(1_000_000_000));
    let mut bytes = 0;
    while rp.wait_until(&p, at(1_000_000_000)).is_none() {
        rp.sent(&p, at(1_000_000_000), 100);
        bytes += 100;
    }
    assert!((4096..4300).contains(&bytes), "{bytes}");
}

#[test]
fn cnps_keep_their_distance() {
    let mut np = NotificationPoint::default();
    let sent = (0..500).filter(|us| np.marked(&on(), at(us * 1_000))).collect::<Vec<_>>();
    assert_eq!(sent, [0, 50, 100, 150, 200, 250, 300, 350, 400, 450]);
    let every = Congestion { min_time_between_cnps: 0, ..on() };
    assert!((0..10).all(|_| np.marked(&every, at(500_000))));
    assert!(!NotificationPoint::default().marked(&Congestion::default(), at(0)), "off by default");
}
