// SPDX-License-Identifier: Apache-2.0
//! RDMA WRITE and READ between two endpoints over UDP, without calls: what one-sided transfers of other libraries are beside.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nacelle_driver::{Clock, DatagramMedium, Limits, Pump, Station};
use nacelle_link::{Route, UdpLink};
use nacelle_roce::wire::{RemoteAddr, Rkey};
use nacelle_roce::{
    Access, Batch, ConnId, ConnectOptions, Datagrams, Endpoint, Event, NetworkLayer, SendWr, Transmit, TransportConfig,
    UdpInterface, WcStatus,
};

use crate::process::{Peer, say, until_stdin_ends};
use crate::{Outcome, PATIENCE};

/// The service that the other process listens on.
const PORT: u16 = 1;
/// The longest message: that much memory is registered on each side.
const LONGEST: usize = 64 << 20;
/// How long to wait for packets at a time.
const NAP: Duration = Duration::from_millis(5);

/// An endpoint and its clock.
struct End {
    endpoint: Endpoint<UdpInterface>,
    clock: Clock,
}

impl Station<DatagramMedium> for End {
    fn receive(&mut self, now: Instant, received: Datagrams<'_>) {
        // The endpoint's counters count what it discards.
        let _counted = self.endpoint.handle(self.clock.of(now), received);
    }

    fn transmit(&mut self, now: Instant, buffer: &mut [u8], batch: Batch) -> Option<Transmit> {
        self.endpoint.poll_transmit_batch(self.clock.of(now), buffer, batch)
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.endpoint.next_deadline().map(|at| self.clock.at(at))
    }
}

/// An endpoint on a socket.
struct Side {
    end: End,
    pump: Pump<DatagramMedium>,
}

impl Side {
    fn new(peer: IpAddr) -> Outcome<Self> {
        let medium = DatagramMedium::new(Box::new(UdpLink::for_peer(peer)?));
        let interface = UdpInterface::new(medium.local(), 4200.min(Route::to(peer)?.ip_mtu));
        let config =
            TransportConfig::new(interface.network(), fastrand::u64(..), std::array::from_fn(|_| fastrand::u8(..)));
        let end = End { endpoint: Endpoint::over_udp(interface, config), clock: Clock::start() };
        Ok(Self { end, pump: Pump::over(medium) })
    }

    fn local(&self) -> SocketAddr {
        self.pump.medium().local()
    }

    /// The next event, within a nap.
    fn event(&mut self) -> Outcome<Option<Event>> {
        let Self { end, pump } = self;
        if let Some(event) = end.endpoint.transport.poll_event() {
            return Ok(Some(event));
        }
        let now = Instant::now();
        if !pump.turn(now, end, Limits::default())? {
            let nap = now + NAP;
            let timer = end.endpoint.next_deadline().map(|at| end.clock.at(at));
            pump.sleep(now, [], timer.map_or(nap, |at| at.min(nap)))?;
        }
        Ok(end.endpoint.transport.poll_event())
    }

    /// The next event, or an error if none comes.
    fn wait(&mut self) -> Outcome<Event> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.event()? {
                Some(event) => return Ok(event),
                None if Instant::now() > deadline => return Err("nothing came from the other endpoint".into()),
                None => {}
            }
        }
    }
}

/// The other process: gives each connection memory to WRITE and to READ.
pub(crate) fn target() -> Outcome {
    let stop = until_stdin_ends();
    let mut side = Side::new(Ipv4Addr::LOCALHOST.into())?;
    side.end.endpoint.transport.listen(PORT);
    say(side.local())?;
    let mut regions = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        match side.event()? {
            Some(Event::ConnectRequest { conn, .. }) => {
                let access = Access::REMOTE_WRITE | Access::REMOTE_READ;
                let now = side.end.clock.now();
                let transport = &mut side.end.endpoint.transport;
                let region = transport.register(vec![0; LONGEST], access, Some(conn))?;
                let private_data = [&region.addr.0.to_be_bytes()[..], &region.rkey.0.to_be_bytes()].concat();
                transport.accept(now, conn, ConnectOptions { private_data, ..ConnectOptions::default() })?;
                regions.push((conn, region.id));
            }
            Some(Event::Disconnected { conn, .. }) => {
                for (_, region) in regions.extract_if(.., |(owner, _)| *owner == conn) {
                    side.end.endpoint.transport.deregister(region);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// What to transfer.
#[derive(Clone, Copy)]
pub(crate) enum Verb {
    /// WRITE.
    Write,
    /// READ.
    Read,
}

/// A connection to the other process.
pub(crate) struct Verbs {
    side: Side,
    conn: ConnId,
    local: nacelle_roce::Region,
    remote: (RemoteAddr, Rkey),
}

impl Verbs {
    /// Connects to the process.
    pub(crate) fn connect(target: &Peer) -> Outcome<Self> {
        let mut side = Side::new(target.address.ip())?;
        let now = side.end.clock.now();
        let conn = side.end.endpoint.connect(now, target.address.ip(), PORT, ConnectOptions::default())?;
        let Event::Connected { private_data, .. } = side.wait()? else { return Err("not connected".into()) };
        let (address, rest) = private_data.split_first_chunk().ok_or("the peer names no memory")?;
        let rkey = rest.first_chunk().ok_or("the peer names no key")?;
        let remote = (RemoteAddr(u64::from_be_bytes(*address)), Rkey(u32::from_be_bytes(*rkey)));
        let local = side.end.endpoint.transport.register(vec![0; LONGEST], Access::LOCAL, Some(conn))?;
        Ok(Self { side, conn, local, remote })
    }

    /// Transfers `count` messages of `length` bytes, `depth` at a time at most, and returns how long it took in all.
    pub(crate) fn transfer(&mut self, verb: Verb, length: usize, depth: usize, count: usize) -> Outcome<f64> {
        if length > LONGEST {
            return Err(format!("a message has at most {LONGEST} bytes").into());
        }
        let slice = self.local.slice(0, length);
        let (addr, rkey) = self.remote;
        let begin = Instant::now();
        let (mut posted, mut done) = (0, 0);
        while done < count {
            while posted < count && posted - done < depth {
                let request = match verb {
                    Verb::Write => SendWr::write(0, slice, addr, rkey),
                    Verb::Read => SendWr::read(0, slice, addr, rkey),
                };
                self.side.end.endpoint.transport.post_send(self.conn, request)?;
                posted += 1;
            }
            match self.side.wait()? {
                Event::Completion(completion) if completion.status == WcStatus::Success => done += 1,
                other => return Err(format!("a transfer failed: {other:?}").into()),
            }
        }
        Ok(begin.elapsed().as_secs_f64())
    }
}
