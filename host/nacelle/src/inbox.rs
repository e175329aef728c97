// SPDX-License-Identifier: Apache-2.0
//! Events of the endpoint, filed by what they belong to: a connection, a ping, or the resolution of an address.
//!
//! Only this module takes events apart. Filing one wakes the thread that waits for it; one that no thread waits for is
//! dropped.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Condvar};
use std::time::{Duration, Instant};

use nacelle_roce::{Completion, ConnId, ConnectFailure, DisconnectReason, Endpoint, Event, NetworkEvent, WcStatus};
use nacelle_wire::MacAddr;

use crate::report::Mark;
use crate::{Error, Step};

/// Why a connection has ended.
#[derive(Debug, Clone)]
pub(crate) enum End {
    Failed(ConnectFailure),
    Disconnected(DisconnectReason),
    Completion(WcStatus),
}

/// What has happened on a connection.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// Notified when something has happened.
    pub(crate) wake: Arc<Condvar>,
    pub(crate) connected: bool,
    /// That of the device's REP.
    pub(crate) private_data: Vec<u8>,
    pub(crate) end: Option<End>,
    /// Work requests of the send queue that have not completed.
    pub(crate) sends: usize,
    /// Whether a receive is posted.
    pub(crate) receives: bool,
    /// The receive that was filled last.
    pub(crate) received: Option<Completion>,
    /// Of the call that runs, or ran last.
    pub(crate) timing: Option<Timing>,
}

/// When the steps of a call ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    payload_before: u64,
    /// Request packets that had left, repetitions aside.
    left: u64,
    /// When a part of the inputs left or was acknowledged last, before the first output.
    pub(crate) inputs: Mark,
    /// When the first output came.
    pub(crate) output: Option<Mark>,
    /// When the reply, or the last acknowledgement if that came later, was there.
    pub(crate) end: Mark,
}

impl Timing {
    /// Of a call on `conn` that begins now.
    pub(crate) fn begin(endpoint: &Endpoint, conn: ConnId, now: Mark) -> Self {
        let payload_before = endpoint.transport.stats(conn).map_or(0, |stats| stats.rx_payload);
        Self { payload_before, left: packets_left(endpoint, conn), inputs: now, output: None, end: now }
    }

    /// Bytes of outputs that have come since the call began.
    pub(crate) fn received(&self, endpoint: &Endpoint, conn: ConnId) -> u64 {
        let payload = endpoint.transport.stats(conn).map_or(0, |stats| stats.rx_payload);
        payload.saturating_sub(self.payload_before)
    }

    /// Notes what a frame that came or left at `now` means to the steps; `before` is the moment before the frame.
    fn note(&mut self, endpoint: &Endpoint, conn: ConnId, sends: usize, before: Mark, now: Mark) {
        let left = packets_left(endpoint, conn);
        // When all inputs are acknowledged, only a packet that asks whether the device is alive may leave.
        if sends > 0 && left != self.left {
            (self.left, self.inputs) = (left, now);
        }
        if endpoint.transport.stats(conn).is_some_and(|stats| stats.rx_payload > self.payload_before) {
            self.output = Some(before);
        }
    }

    fn completed(&mut self, received: bool, before: Mark, now: Mark) {
        if received {
            self.output.get_or_insert(before);
        } else if self.output.is_none() {
            self.inputs = now;
        }
        self.end = now;
    }
}

fn packets_left(endpoint: &Endpoint, conn: ConnId) -> u64 {
    endpoint.transport.stats(conn).map_or(0, |stats| stats.tx_requests.packets - stats.counters.retransmitted)
}

/// A ping under way.
#[derive(Debug, Default)]
struct Ping {
    wake: Arc<Condvar>,
    /// How it ended: the time that the answer took, or that none came.
    outcome: Option<Option<Duration>>,
}

/// Results of address resolution. One thread requests them, before there are calls.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    pub(crate) wake: Arc<Condvar>,
    /// An address that was probed, and the MAC address that uses it.
    pub(crate) probed: Option<(Ipv4Addr, Option<MacAddr>)>,
    /// The Ethernet address that was asked for, or that no host replied.
    pub(crate) resolved: Option<Option<MacAddr>>,
}

/// Everything that has happened and was not asked for yet.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    sessions: HashMap<ConnId, Session>,
    /// Connections whose calls wait for their first output.
    timed: Vec<ConnId>,
    pings: HashMap<u16, Ping>,
    pub(crate) addresses: Addresses,
}

impl Inbox {
    /// Files what happens on `conn` from now on.
    pub(crate) fn open(&mut self, conn: ConnId) -> Arc<Condvar> {
        Arc::clone(&self.sessions.entry(conn).or_default().wake)
    }

    pub(crate) fn session(&mut self, conn: ConnId) -> &mut Session {
        self.sessions.entry(conn).or_default()
    }

    /// Drops the events of `conn` from now on.
    pub(crate) fn forget(&mut self, conn: ConnId) {
        self.sessions.remove(&conn);
        self.timed.retain(|timed| *timed != conn);
    }

    /// Measures the steps of a call on `conn` from now on.
    pub(crate) fn time(&mut self, conn: ConnId, timing: Timing) {
        self.session(conn).timing = Some(timing);
        if !self.timed.contains(&conn) {
            self.timed.push(conn);
        }
    }

    /// A number for a ping that no outstanding one has: `wanted`, or the next free one.
    pub(crate) fn open_ping(&mut self, wanted: u16) -> (u16, Arc<Condvar>) {
        let mut numbers = (0..=u16::MAX).map(|offset| wanted.wrapping_add(offset));
        let number = numbers.find(|number| !self.pings.contains_key(number)).unwrap_or(wanted);
        (number, Arc::clone(&self.pings.entry(number).or_default().wake))
    }

    /// How a ping has ended, if it has.
    pub(crate) fn ping_outcome(&self, number: u16) -> Option<Option<Duration>> {
        self.pings.get(&number)?.outcome
    }

    /// Gives the number of a ping back.
    pub(crate) fn close_ping(&mut self, number: u16) {
        self.pings.remove(&number);
    }

    /// Takes all events of the endpoint, after a frame that came or left at `now`.
    pub(crate) fn take(&mut self, endpoint: &mut Endpoint, before: Mark, now: Mark) {
        self.timed.retain(|conn| {
            let Some(session) = self.sessions.get_mut(conn) else { return false };
            let Some(timing) = &mut session.timing else { return false };
            timing.note(endpoint, *conn, session.sends, before, now);
            timing.output.is_none()
        });
        while let Some(event) = endpoint.transport.poll_event() {
            self.file(event, before, now);
        }
        while let Some(event) = endpoint.interface.poll_event() {
            self.file_network(event);
        }
    }

    fn file(&mut self, event: Event, before: Mark, now: Mark) {
        match event {
            Event::Connected { conn, private_data } => self.note(conn, |session| {
                session.connected = true;
                session.private_data = private_data;
            }),
            Event::ConnectFailed { conn, reason } => {
                self.note(conn, |session| session.ended(End::Failed(reason)));
            }
            Event::Disconnected { conn, reason, .. } => {
                self.note(conn, |session| session.ended(End::Disconnected(reason)));
            }
            Event::Completion(completion) => {
                self.note(completion.conn, |session| session.complete(completion, before, now))
            }
            // A caller does not listen and creates no queue pairs without connection management.
            Event::ConnectRequest { .. } | Event::QpFatal { .. } | Event::SendQueueDrained { .. } => {}
        }
    }

    fn file_network(&mut self, event: NetworkEvent) {
        match event {
            NetworkEvent::EchoReply { sequence, rtt, .. } => self.end_ping(sequence, Some(rtt)),
            NetworkEvent::EchoTimeout { sequence, .. } => self.end_ping(sequence, None),
            NetworkEvent::AddressProbed { ip, owner } => {
                self.addresses.probed = Some((ip, owner));
                self.addresses.wake.notify_one();
            }
            NetworkEvent::Resolved { mac, .. } => self.end_resolution(Some(mac)),
            // A ping to such an address ends by its own timeout.
            NetworkEvent::Unreachable { .. } => self.end_resolution(None),
        }
    }

    fn note(&mut self, conn: ConnId, change: impl FnOnce(&mut Session)) {
        if let Some(session) = self.sessions.get_mut(&conn) {
            change(session);
            session.wake.notify_one();
        }
    }

    fn end_ping(&mut self, number: u16, outcome: Option<Duration>) {
        if let Some(ping) = self.pings.get_mut(&number) {
            ping.outcome = Some(outcome);
            ping.wake.notify_one();
        }
    }

    fn end_resolution(&mut self, outcome: Option<MacAddr>) {
        self.addresses.resolved = Some(outcome);
        self.addresses.wake.notify_one();
    }
}

impl Session {
    /// The first end is the one that counts.
    fn ended(&mut self, end: End) {
        self.end.get_or_insert(end);
    }

    fn complete(&mut self, completion: Completion, before: Mark, now: Mark) {
        let received = completion.opcode.is_recv();
        match completion.status {
            WcStatus::Success => {
                if received {
                    self.receives = false;
                    self.received = Some(completion);
                } else {
                    self.sends = self.sends.saturating_sub(1);
                }
                if let Some(timing) = &mut self.timing {
                    timing.completed(received, before, now);
                }
            }
            // What the end of the connection flushed says nothing that the end itself does not say better.
            WcStatus::WrFlushErr => {}
            status => self.ended(End::Completion(status)),
        }
    }
}

impl End {
    /// What the end of a connection to the device at `ip` means to a call in `step`.
    pub(crate) fn error(&self, ip: Ipv4Addr, step: Step, waited: Duration) -> Error {
        let status = match self {
            Self::Failed(ConnectFailure::Unreachable) => return Error::Unreachable { ip, waited },
            Self::Failed(ConnectFailure::Timeout) => return Error::Timeout { ip, step, waited },
            Self::Failed(ConnectFailure::Rejected { reason, .. }) => {
                return Error::Refused { ip, reason: reason.0, text: reason.text().to_owned() };
            }
            Self::Failed(ConnectFailure::BadReply) => {
                return Error::Protocol { ip, step, what: "its reply to the connection request is invalid".into() };
            }
            Self::Failed(ConnectFailure::Aborted) | Self::Disconnected(DisconnectReason::Local) => {
                return Error::Lost { ip, step, detail: "the connection was closed from this side".into() };
            }
            Self::Disconnected(DisconnectReason::Remote) => {
                return Error::Lost { ip, step, detail: "it closed the connection".into() };
            }
            Self::Disconnected(DisconnectReason::Error(status)) | Self::Completion(status) => *status,
        };
        match status {
            WcStatus::RetryExceeded => {
                Error::Lost { ip, step, detail: "it no longer acknowledges (transport retry count exceeded)".into() }
            }
            WcStatus::RnrRetryExceeded => {
                Error::Lost { ip, step, detail: "it was never ready to receive (RNR retry count exceeded)".into() }
            }
            WcStatus::LocQpOpErr | WcStatus::LocAccessErr | WcStatus::LocLenErr => {
                Error::Protocol { ip, step, what: status.to_string() }
            }
            _ => Error::Transport { ip, step, detail: status.to_string() },
        }
    }
}

/// The end of a wait that may take `time` from now.
pub(crate) fn deadline_in(time: Duration) -> Instant {
    let now = Instant::now();
    // A century is as good as never, where the clock does not reach further.
    now.checked_add(time).unwrap_or_else(|| now + Duration::from_secs(3_000_000_000))
}
