// SPDX-License-Identifier: Apache-2.0
//! The station on the wire: an endpoint on a link, and waits that end with the run.

use crate::failure::{Failure, Outcome};
use core::net::{IpAddr, Ipv4Addr};
use nacelle_driver::Port;
use nacelle_link::Link;
use nacelle_roce::{
    Access, Completion, ConnId, ConnectFailure, ConnectOptions, DisconnectReason, Endpoint, Event, NetworkEvent,
    RecvWr, Region, RegionSlice, WcStatus, memory::AccessError, wire::MacAddr, wire::cm::RejReason,
};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Where the IPv4 protocol number is in a frame, and that of TCP.
const PROTOCOL: usize = 23;
const TCP: u8 = 6;

/// How long a station stays on the wire after its run, to reply to what the peer repeats.
const LINGER: Duration = Duration::from_millis(150);

pub(crate) struct Station {
    port: Port<Box<dyn Link>>,
    end: Instant,
    /// Received frames with TCP.
    pub(crate) segments: VecDeque<Vec<u8>>,
}

impl Station {
    pub(crate) fn new(ep: Endpoint, link: Box<dyn Link>, time: Duration) -> Self {
        Self { port: Port::new(ep, link), end: Instant::now() + time, segments: VecDeque::new() }
    }

    /// The endpoint.
    pub(crate) fn ep(&mut self) -> &mut Endpoint {
        &mut self.port.endpoint
    }

    /// The endpoint's time.
    pub(crate) fn now(&self) -> nacelle_roce::Instant {
        self.port.now()
    }

    /// One turn of the loop, until `until` at most.
    pub(crate) fn step(&mut self, until: Instant) -> Outcome {
        let segments = &mut self.segments;
        let is_tcp = |frame: &[u8]| frame.len() > PROTOCOL && frame[12..14] == [8, 0] && frame[PROTOCOL] == TCP;
        self.port.turn_filtered(until.min(self.end), |frame| {
            let tcp = is_tcp(frame);
            if tcp {
                segments.push_back(frame.to_vec());
            }
            !tcp
        })?;
        Ok(())
    }

    /// Sends a frame of another protocol.
    pub(crate) fn send(&mut self, frame: &[u8]) -> Outcome {
        Ok(self.port.link_mut().send(frame)?)
    }

    /// Steps until `done` gives something; `what` names it in the error if the run ends before.
    pub(crate) fn until<T>(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> Outcome<Option<T>>) -> Outcome<T> {
        loop {
            if let Some(result) = done(self)? {
                return Ok(result);
            }
            if Instant::now() >= self.end {
                return Err(Failure::Timeout(what.to_owned()));
            }
            self.step(Instant::now() + Duration::from_millis(100))?;
        }
    }

    /// The oldest event of the transport.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.port.poll_event()
    }

    /// Bytes of a region.
    pub(crate) fn bytes(&mut self, place: &RegionSlice) -> Outcome<Vec<u8>> {
        let mut bytes = vec![0; place.len];
        let memory = self.ep().transport.region(place.region);
        memory.ok_or(AccessError::Ended)?.read(place.offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Waits for an event of the transport that `wanted` makes something of.
    pub(crate) fn event<T>(&mut self, what: &str, mut wanted: impl FnMut(&Event) -> Option<T>) -> Outcome<T> {
        self.until(what, |s| Ok(s.port.take_event(&mut wanted)))
    }

    /// Lets time pass.
    pub(crate) fn pause(&mut self, time: Duration) -> Outcome {
        let end = Instant::now() + time;
        while Instant::now() < end.min(self.end) {
            self.step(end)?;
        }
        Ok(())
    }

    /// Ends all connections, and stays long enough to reply to what the peer repeats, also after the end of the run.
    pub(crate) fn leave(&mut self) -> Outcome {
        let begin = Instant::now();
        self.end = begin + Duration::from_secs(2);
        let (now, all) = (self.now(), self.ep().transport.connections().map(|(conn, _)| conn).collect::<Vec<_>>());
        for conn in all {
            self.ep().transport.disconnect(now, conn);
        }
        self.port.drop_events();
        while Instant::now() < self.end
            && (self.ep().transport.connections().next().is_some() || begin.elapsed() < LINGER)
        {
            self.step(Instant::now() + Duration::from_millis(50))?;
            self.port.drop_events();
        }
        Ok(())
    }

    /// The Ethernet address of a neighbour.
    pub(crate) fn resolve(&mut self, ip: Ipv4Addr) -> Outcome<MacAddr> {
        let now = self.now();
        self.ep().interface.resolve(now, ip);
        let wanted = |event: &NetworkEvent| match event {
            NetworkEvent::Resolved { mac, .. } => Some(Some(*mac)),
            NetworkEvent::Unreachable { .. } => Some(None),
            _ => None,
        };
        let found = self.until("resolving the address", |s| Ok(s.port.take_network_event(wanted)))?;
        found.ok_or(Failure::Connect(ConnectFailure::Unreachable))
    }

    /// Connects, repeatedly while no service listens there. `prepare` posts the receives of each attempt.
    pub(crate) fn connect<T>(
        &mut self,
        ip: Ipv4Addr,
        port: u16,
        options: &ConnectOptions,
        mut prepare: impl FnMut(&mut Endpoint, ConnId) -> Outcome<T>,
    ) -> Outcome<(ConnId, T)> {
        loop {
            let now = self.now();
            let conn = self.ep().connect(now, ip, port, options.clone())?;
            let prepared = prepare(self.ep(), conn)?;
            match self.connected(conn)? {
                Ok(_) => return Ok((conn, prepared)),
                Err(ConnectFailure::Rejected { reason: RejReason::INVALID_SERVICE_ID, .. })
                    if Instant::now() < self.end =>
                {
                    self.forget(conn);
                    self.pause(Duration::from_millis(200))?;
                }
                Err(reason) => return Err(Failure::Connect(reason)),
            }
        }
    }

    /// Waits until a connection is made, and returns the peer's private data, or why it could not be.
    pub(crate) fn connected(&mut self, conn: ConnId) -> Outcome<Result<Vec<u8>, ConnectFailure>> {
        self.event("connecting", |e| match e {
            Event::Connected { conn: c, private_data } if *c == conn => Some(Ok(private_data.clone())),
            Event::ConnectFailed { conn: c, reason } if *c == conn => Some(Err(reason.clone())),
            _ => None,
        })
    }

    /// Waits for a connection request on a port that is listened on.
    pub(crate) fn request(&mut self) -> Outcome<(ConnId, IpAddr)> {
        self.event("waiting for a connection request", |e| match e {
            Event::ConnectRequest { conn, peer, .. } => Some((*conn, *peer)),
            _ => None,
        })
    }

    /// Accepts a request, and waits until the connection is ready.
    pub(crate) fn accept(&mut self, conn: ConnId, options: ConnectOptions) -> Outcome {
        let now = self.now();
        self.ep().transport.accept(now, conn, options)?;
        self.connected(conn)?.map(|_| ()).map_err(Failure::Connect)
    }

    /// Waits for a successful completion of a connection that `wanted` takes; the end of the connection is a failure.
    pub(crate) fn completion(
        &mut self,
        what: &str,
        conn: ConnId,
        mut wanted: impl FnMut(&Completion) -> bool,
    ) -> Outcome<Completion> {
        self.event(what, |e| match e {
            Event::Completion(c) if c.conn == conn && c.status != WcStatus::Success => Some(Err(Failure::Work(*c))),
            Event::Completion(c) if c.conn == conn && wanted(c) => Some(Ok(*c)),
            Event::Disconnected { conn: c, reason, .. } if *c == conn => Some(Err(Failure::Ended(*reason))),
            _ => None,
        })?
    }

    /// Waits until the work request `id` is done.
    pub(crate) fn done(&mut self, what: &str, conn: ConnId, id: u64) -> Outcome {
        self.completion(what, conn, |c| !c.opcode.is_recv() && c.id == id).map(|_| ())
    }

    /// Ends a connection and waits until it has ended.
    pub(crate) fn disconnect(&mut self, conn: ConnId) -> Outcome {
        let now = self.now();
        self.ep().transport.disconnect(now, conn);
        self.ended(conn).map(|_| ())
    }

    /// Waits until a connection has ended. Receives that are flushed by it are dropped.
    pub(crate) fn ended(&mut self, conn: ConnId) -> Outcome<DisconnectReason> {
        let reason = self.event("waiting for the end of the connection", |e| match e {
            Event::Disconnected { conn: c, reason, .. } if *c == conn => Some(*reason),
            _ => None,
        })?;
        self.forget(conn);
        Ok(reason)
    }

    /// Removes what is left of a connection that has ended.
    fn forget(&mut self, conn: ConnId) {
        self.port.drop_completions(conn);
    }

    /// Waits until the peer has ended a connection, in order.
    pub(crate) fn ended_by_peer(&mut self, conn: ConnId) -> Outcome {
        match self.ended(conn)? {
            DisconnectReason::Remote | DisconnectReason::Local => Ok(()),
            reason => Err(Failure::Ended(reason)),
        }
    }
}

/// A receive queue of equal slots in a region.
pub(crate) struct Inbox {
    conn: ConnId,
    region: Region,
    slot: usize,
}

impl Inbox {
    /// Posts `slots` receives of `slot` bytes each.
    pub(crate) fn post(ep: &mut Endpoint, conn: ConnId, slots: usize, slot: usize) -> Outcome<Self> {
        let region = ep.transport.register(vec![0; slots * slot.max(1)], Access::LOCAL, None)?;
        let inbox = Self { conn, region, slot };
        for i in 0..slots {
            inbox.post_one(ep, i)?;
        }
        Ok(inbox)
    }

    fn post_one(&self, ep: &mut Endpoint, i: usize) -> Outcome {
        Ok(ep
            .transport
            .post_recv(self.conn, RecvWr { id: i as u64, slice: Some(self.region.slice(i * self.slot, self.slot)) })?)
    }

    /// The bytes of a received message; its receive is posted again.
    pub(crate) fn take(&self, station: &mut Station, c: &Completion) -> Outcome<Vec<u8>> {
        let i = c.id as usize;
        let bytes = station.bytes(&self.region.slice(i * self.slot, c.byte_len))?;
        self.post_one(station.ep(), i)?;
        Ok(bytes)
    }

    /// Waits for a message.
    pub(crate) fn recv(&self, station: &mut Station, what: &str) -> Outcome<Vec<u8>> {
        let c = station.completion(what, self.conn, |c| c.opcode.is_recv())?;
        self.take(station, &c)
    }
}
