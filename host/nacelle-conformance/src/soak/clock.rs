// SPDX-License-Identifier: Apache-2.0
//! The device's own time. A simulated device's time runs at the simulator's speed: it is read through the management socket a few times
//! a second and interpolated in between.

use crate::manage::Manage;
use core::{net::Ipv4Addr, time::Duration};
use nacelle_link::WireDir;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Instant,
};

/// Shortest interval between two readings.
const INTERVAL: Duration = Duration::from_millis(200);
/// The interval is at least this many times as long as a reading takes: one costs the simulator thousands of cycles.
const SHARE: u32 = 20;

/// The last two readings: when they came, and the device's time.
#[derive(Clone, Copy)]
struct Samples {
    before: (Instant, Duration),
    last: (Instant, Duration),
}

impl Samples {
    fn at(&self, now: Instant) -> Duration {
        let (span, passed) = (self.last.0.duration_since(self.before.0), self.last.1.saturating_sub(self.before.1));
        let rate = if span.is_zero() { 1.0 } else { passed.as_secs_f64() / span.as_secs_f64() };
        self.last.1 + now.duration_since(self.last.0).mul_f64(rate)
    }
}

/// The device's clock.
pub(super) struct Clock {
    begin: Instant,
    samples: Option<Arc<Mutex<Samples>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Clock {
    /// The clock of this device: its own if it is simulated and its management answers, else the host's.
    pub(super) fn start(wire: &WireDir, device: Ipv4Addr) -> Self {
        let begin = Instant::now();
        let mut own = Self { begin, samples: None, stop: Arc::default(), thread: None };
        let Some(mut manage) = Manage::find(wire, device).filter(Manage::is_simulated) else { return own };
        let Ok(time) = manage.time() else { return own };
        let samples = Arc::new(Mutex::new(Samples { before: (begin, time), last: (begin, time) }));
        own.samples = Some(Arc::clone(&samples));
        let stop = Arc::clone(&own.stop);
        own.thread = Some(std::thread::spawn(move || {
            let mut next = Instant::now() + INTERVAL;
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(INTERVAL / 10);
                if Instant::now() < next {
                    continue;
                }
                let asked = Instant::now();
                let answer = manage.time();
                next = Instant::now() + INTERVAL.max(asked.elapsed() * SHARE);
                let Ok(time) = answer else { continue };
                let mut samples = samples.lock().expect("no thread panics while it holds it");
                *samples = Samples { before: samples.last, last: (Instant::now(), time) };
            }
        }));
        own
    }

    /// The device's time since its start, or the host's since the start of this clock.
    pub(super) fn now(&self) -> Duration {
        match &self.samples {
            Some(samples) => samples.lock().expect("no thread panics while it holds it").at(Instant::now()),
            None => self.begin.elapsed(),
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
