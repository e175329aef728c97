// SPDX-License-Identifier: Apache-2.0
//! How a device is joined to its medium: by an Ethernet port, or by a UDP socket.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime};

use nacelle_driver::{DatagramMedium, Frames, Limits, Medium, Station};
use nacelle_link::{Direction, Link, Recorder};
use nacelle_manage::Trace;
use nacelle_roce::{Batch, Datagrams, Transmit};

use crate::{DatagramEngine, Engine, FrameEngine, PushError, Stamp, TraceLog, WakeFds};

/// A device with the medium that it is on.
pub trait Port: Station<Self::Medium> {
    /// What it sends and receives on.
    type Medium: Medium;
    /// The device.
    type Engine: Engine;

    /// How often one turn receives and sends at most.
    const LIMITS: Limits;

    /// The device.
    fn engine(&mut self) -> &mut Self::Engine;

    /// True if only time or a packet can change anything.
    fn is_idle(&self) -> bool;

    /// As [`Engine::wake_fds`].
    fn wake_fds(&self) -> WakeFds<'_>;

    /// Records what has passed since the last time.
    fn record(&mut self) {}

    /// What has passed from frame number `since` on; `None` if that is not stored.
    fn trace(&self, since: u64) -> Option<Trace>;

    /// The capture.
    fn recorder<'a>(&'a mut self, medium: &'a mut Self::Medium) -> &'a mut Recorder;
}

/// A device's Ethernet port: what it takes and sends, with a record of both.
pub struct EthernetPort<E> {
    engine: E,
    /// Cycles of device time in a second.
    clock_hz: f64,
    /// The system's time when the device's time was zero.
    epoch: SystemTime,
    /// A frame that the device did not take.
    waiting: Option<Vec<u8>>,
    /// Frames that the device took, and of which it has not said when.
    entering: VecDeque<Vec<u8>>,
    /// Frames that passed since the last record.
    passed: Vec<(Stamp, Direction, Vec<u8>)>,
    /// Room for frames, used again and again.
    room: Vec<Vec<u8>>,
    trace: TraceLog,
    recorder: Recorder,
}

impl<E: FrameEngine> EthernetPort<E> {
    pub(crate) fn new(engine: E, clock_hz: u32) -> Self {
        Self {
            engine,
            clock_hz: f64::from(clock_hz.max(1)),
            epoch: SystemTime::now(),
            waiting: None,
            entering: VecDeque::new(),
            passed: Vec::new(),
            room: Vec::new(),
            trace: TraceLog::default(),
            recorder: Recorder::default(),
        }
    }

    fn push(&mut self, frame: Vec<u8>) {
        match self.engine.push(&frame) {
            Ok(()) => self.entering.push_back(frame),
            Err(PushError::Full) => self.waiting = Some(frame),
            // The device's Ethernet port drops it too.
            Err(PushError::Length) => self.room.push(frame),
        }
    }

    /// A copy of a frame.
    fn keep(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut room = self.room.pop().unwrap_or_default();
        room.clear();
        room.extend_from_slice(frame);
        room
    }
}

impl<E: FrameEngine> Station<Frames<Box<dyn Link>>> for EthernetPort<E> {
    fn is_ready(&mut self) -> bool {
        if let Some(frame) = self.waiting.take() {
            self.push(frame);
        }
        self.waiting.is_none()
    }

    fn receive(&mut self, _now: Instant, frame: &[u8]) {
        let frame = self.keep(frame);
        self.push(frame);
    }

    fn work(&mut self, now: Instant) {
        self.engine.run(now);
    }

    fn transmit(&mut self, _now: Instant, frame: &mut [u8], _batch: Batch) -> Option<usize> {
        let (length, stamp) = self.engine.pull(frame)?;
        let frame = self.keep(&frame[..length]);
        self.passed.push((stamp, Direction::Outbound, frame));
        Some(length)
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.engine.wake_at()
    }
}

impl<E: FrameEngine> Port for EthernetPort<E> {
    type Medium = Frames<Box<dyn Link>>;
    type Engine = E;

    // All that the device has to send.
    const LIMITS: Limits = Limits { receive: 64, transmit: usize::MAX };

    fn engine(&mut self) -> &mut E {
        &mut self.engine
    }

    fn is_idle(&self) -> bool {
        self.engine.idle() && self.waiting.is_none()
    }

    fn wake_fds(&self) -> WakeFds<'_> {
        self.engine.wake_fds()
    }

    /// In the order of device time.
    fn record(&mut self) {
        while let Some(stamp) = self.engine.rx_stamp() {
            self.passed.extend(self.entering.pop_front().map(|frame| (stamp, Direction::Inbound, frame)));
        }
        self.passed.sort_unstable_by_key(|(stamp, direction, _)| (stamp.first_beat, *direction == Direction::Outbound));
        for (stamp, direction, frame) in self.passed.drain(..) {
            let at = self.epoch + Duration::from_secs_f64(stamp.first_beat as f64 / self.clock_hz);
            self.recorder.record(at, direction, &frame);
            self.trace.add(stamp, direction, &frame);
            self.room.push(frame);
        }
    }

    fn trace(&self, since: u64) -> Option<Trace> {
        Some(self.trace.since(since))
    }

    fn recorder<'a>(&'a mut self, _medium: &'a mut Self::Medium) -> &'a mut Recorder {
        &mut self.recorder
    }
}

/// A device on a UDP socket.
pub struct UdpPort<E> {
    engine: E,
}

impl<E: DatagramEngine> UdpPort<E> {
    pub(crate) const fn new(engine: E) -> Self {
        Self { engine }
    }
}

impl<E: DatagramEngine> Station<DatagramMedium> for UdpPort<E> {
    fn receive(&mut self, now: Instant, datagrams: Datagrams<'_>) {
        self.engine.receive(now, datagrams);
    }

    fn peer_gone(&mut self, peer: IpAddr) {
        self.engine.peer_gone(peer);
    }

    fn work(&mut self, now: Instant) {
        self.engine.run(now);
    }

    fn transmit(&mut self, now: Instant, buffer: &mut [u8], batch: Batch) -> Option<Transmit> {
        self.engine.transmit(now, buffer, batch)
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.engine.wake_at()
    }
}

impl<E: DatagramEngine> Port for UdpPort<E> {
    type Medium = DatagramMedium;
    type Engine = E;

    // One call receives all that fits its buffers: then an answer is due.
    const LIMITS: Limits = Limits { receive: 1, transmit: 64 };

    fn engine(&mut self) -> &mut E {
        &mut self.engine
    }

    fn is_idle(&self) -> bool {
        self.engine.idle()
    }

    fn wake_fds(&self) -> WakeFds<'_> {
        self.engine.wake_fds()
    }

    fn trace(&self, _since: u64) -> Option<Trace> {
        None
    }

    fn recorder<'a>(&'a mut self, medium: &'a mut DatagramMedium) -> &'a mut Recorder {
        medium.recorder()
    }
}
