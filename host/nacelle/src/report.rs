// SPDX-License-Identifier: Apache-2.0
//! What a call cost, step by step: time at the caller, cycles in the device, packets between them.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use serde::Serialize;

use nacelle_manage::{Control, FrameKind, TraceFrame};

use crate::Step;

/// One step of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepReport {
    /// Which one.
    pub step: Step,
    /// Time at the caller, whose clock is read once a turn of its loop: a step that begins and ends in one turn takes none.
    /// [`Step::Inputs`] ends with the last acknowledgement, or, if the outputs come before that, when a part
    /// of the inputs last left or was acknowledged; [`Step::Compute`] ends with the first packet of the outputs.
    pub wall: Duration,
    /// Cycles in the device, from the first beat of the first packet in to the last beat of the last packet out; for
    /// [`Step::Compute`] from the last beat of the inputs to the first of the outputs. Time in which the device waited for
    /// the caller to begin the step is not in it. `None` if the device could not be asked.
    pub cycles: Option<u64>,
    /// Packets that the caller sent.
    pub tx_packets: u64,
    /// Bytes of their frames, without preamble and FCS.
    pub tx_bytes: u64,
    /// Packets that the caller received.
    pub rx_packets: u64,
    /// Bytes of their frames.
    pub rx_bytes: u64,
}

/// What a call cost.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// The device's clock, in Hz; 0 if it could not be asked.
    pub clock_hz: u32,
    /// The steps in order. Those of setting up come once, the others are of the last call.
    pub steps: Vec<StepReport>,
}

impl Report {
    /// A device time in microseconds at the device's clock.
    #[must_use]
    pub fn micros(&self, cycles: u64) -> Option<f64> {
        (self.clock_hz != 0).then(|| cycles as f64 * 1e6 / f64::from(self.clock_hz))
    }
}

/// A moment at the caller: the time, and what has passed until then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    pub(crate) at: Instant,
    /// Packets and bytes sent, packets and bytes received.
    pub(crate) traffic: [u64; 4],
}

impl StepReport {
    /// A step that lasted from `began` to `ended`. The second is never taken for earlier than the first.
    pub(crate) fn between(step: Step, began: Mark, ended: Mark) -> Self {
        let [tx_packets, tx_bytes, rx_packets, rx_bytes] =
            std::array::from_fn(|i| ended.traffic[i].saturating_sub(began.traffic[i]));
        let wall = ended.at.saturating_duration_since(began.at);
        Self { step, wall, cycles: None, tx_packets, tx_bytes, rx_packets, rx_bytes }
    }
}

/// Asks a device for the frames that passed there.
pub(crate) struct Tracer {
    control: Control,
    pub(crate) clock_hz: u32,
    next: u64,
}

impl Tracer {
    /// Begins with the next frame. `None` if the device does not answer.
    pub(crate) fn start(mut control: Control, clock_hz: u32) -> Option<Self> {
        let next = control.trace(u64::MAX).ok()?.next;
        Some(Self { control, clock_hz, next })
    }

    /// The frames since the beginning, or since the last time.
    pub(crate) fn take(&mut self) -> Passed {
        let mut frames = Vec::new();
        while let Ok(mut page) = self.control.trace(self.next) {
            // Without the beginning, no step could be assigned for sure.
            if page.frames.is_empty() || page.lost != 0 {
                break;
            }
            self.next = page.next;
            frames.append(&mut page.frames);
        }
        Passed(frames)
    }
}

/// Frames that passed a device.
pub(crate) struct Passed(Vec<TraceFrame>);

impl Passed {
    fn first(&self, wanted: impl Fn(&TraceFrame) -> bool) -> Option<&TraceFrame> {
        self.0.iter().find(|frame| wanted(frame))
    }

    fn last(&self, wanted: impl Fn(&TraceFrame) -> bool) -> Option<&TraceFrame> {
        self.0.iter().rev().find(|frame| wanted(frame))
    }

    /// From the last question for `ip` that was answered, to its answer.
    pub(crate) fn resolution(&self, ip: IpAddr) -> Option<u64> {
        let reply =
            self.last(|f| !f.rx && matches!(f.kind, FrameKind::ArpReply { sender } if IpAddr::V4(sender) == ip))?;
        let request = self.last(|f| {
            f.rx && f.last_beat <= reply.first_beat
                && matches!(f.kind, FrameKind::ArpRequest { target, .. } if IpAddr::V4(target) == ip)
        })?;
        reply.last_beat.checked_sub(request.first_beat)
    }

    /// From the connection request to its answer.
    pub(crate) fn connect(&self) -> Option<u64> {
        let rep = self.last(|f| !f.rx && is_cm(f, "REP"))?;
        let req = self.last(|f| f.rx && is_cm(f, "REQ") && f.last_beat <= rep.first_beat)?;
        rep.last_beat.checked_sub(req.first_beat)
    }

    /// From the caller's regions to the device's. `device` and `caller` are the queue pairs of the two.
    pub(crate) fn region_setup(&self, device: u32, caller: u32) -> Option<u64> {
        let request = self.first(|f| f.rx && is_rc(f, device, "Send"))?;
        let answer = self.last(|f| !f.rx && is_rc(f, caller, "Send"))?;
        answer.last_beat.checked_sub(request.first_beat)
    }

    /// Inputs, compute and outputs of one call.
    pub(crate) fn call(&self, device: u32, caller: u32) -> [Option<u64>; 3] {
        let first_in = self.first(|f| f.rx && is_rc(f, device, "Write"));
        let last_in = self.last(|f| f.rx && is_rc(f, device, "Write") && has_immediate(f));
        let first_out = self.first(|f| !f.rx && is_rc(f, caller, "Write"));
        let last_out = self.last(|f| !f.rx && is_rc(f, caller, "Write") && has_immediate(f));
        let span = |from: Option<u64>, to: Option<u64>| to?.checked_sub(from?);
        [
            span(first_in.map(|f| f.first_beat), last_in.map(|f| f.last_beat)),
            span(last_in.map(|f| f.last_beat), first_out.map(|f| f.first_beat)),
            span(first_out.map(|f| f.first_beat), last_out.map(|f| f.last_beat)),
        ]
    }
}

fn is_cm(frame: &TraceFrame, name: &str) -> bool {
    matches!(&frame.kind, FrameKind::Cm { message } if message == name)
}

fn is_rc(frame: &TraceFrame, to: u32, operation: &str) -> bool {
    matches!(&frame.kind, FrameKind::Rc { opcode, qp, .. } if *qp == to && opcode.starts_with(operation))
}

fn has_immediate(frame: &TraceFrame) -> bool {
    matches!(&frame.kind, FrameKind::Rc { immediate: Some(_), .. })
}
