// SPDX-License-Identifier: Apache-2.0
//! A hostile caller: a random sequence of attacks beside honest callers, decided by the seed.

use super::{Failure, run::Shared};
use crate::{
    attack::{dead, flood, half_open, keys, quota, stale_key},
    peer::{EMPTY, Memory, Peer, Qp, Terms},
    record,
    rules::pattern,
    station::{Station, mac_of},
};
use core::{net::Ipv4Addr, sync::atomic::Ordering, time::Duration};
use nacelle_link::VirtualWire;
use nacelle_wire::{
    Rkey,
    arp::ArpPacket,
    bth::{Opcode, RnrTimer, Syndrome},
    cm::{Dreq, Message},
    transport::Ext,
};

/// Addresses of each hostile caller: the first [`LIVING`] answer, each of the others is used once as a dead one.
pub(super) const HOSTS: u16 = 8192;
const LIVING: u16 = 1024;
/// Longest wait for an answer. An attacker does not retransmit, so an answer may never come.
const PATIENCE: Duration = Duration::from_secs(5);
/// Silence after which no further answer is expected.
const LULL: Duration = Duration::from_millis(50);

type Play = fn(&mut Hostile, &Shared<'_>) -> Result<(), crate::Failure>;

/// Every attack, and the number of connections that it leaves behind: a dead caller's connection exists until its retries are used up.
const ATTACKS: [(&str, u16, Play); 18] = [
    ("write under an old key", 0, |h, _| {
        let when = [
            stale_key::When::RightBehind,
            stale_key::When::AfterTheError,
            stale_key::When::DuringTheNext,
            stale_key::When::AfterTheNext,
        ];
        stale_key::write(&mut h.peer, 0, when[h.rng.usize(..when.len())]).map(|_| ())
    }),
    ("read under an old key", 0, |h, _| stale_key::read(&mut h.peer, 0).map(|_| ())),
    ("atomics under an old key", 0, |h, _| stale_key::atomics(&mut h.peer, 0)),
    ("key after the end", 0, Hostile::key_after_the_end),
    ("key of another", 0, Hostile::key_of_another),
    ("odd requests", 0, |h, _| record::play(&mut h.peer, &mut h.rng)),
    ("flood of READs", 0, |h, _| h.flood(|h, qp| flood::reads(&mut h.peer, qp).map(|_| ()))),
    ("flood of atomics", 0, |h, _| h.flood(|h, qp| flood::atomics(&mut h.peer, qp).map(|_| ()))),
    ("flood of WRITEs", 0, |h, _| {
        h.flood(|h, qp| (0..h.rng.u32(1..=32)).try_for_each(|index| flood::write(&mut h.peer, qp, index)))
    }),
    ("flood of echoes", 0, Hostile::echoes),
    ("flood of ARP", 0, Hostile::arp),
    ("flood of CM", 0, Hostile::cm),
    ("half-open from nowhere", 16, Hostile::half_open),
    ("connect and close", 0, Hostile::connect_and_close),
    ("all connections", 0, Hostile::all_connections),
    ("vanish in mid-call", 16, Hostile::vanish),
    ("restart at the same address", 1, Hostile::restart),
    ("completions not taken", 4, Hostile::mute),
];

/// A hostile caller.
pub(super) struct Hostile {
    peer: Peer,
    rng: fastrand::Rng,
    /// Index of the last dead host.
    dead: u16,
    /// Connections that the attacks of this run may still leave behind.
    allowance: u16,
}

impl Hostile {
    /// The hostile caller `number` of the run with this seed, which may leave `allowance` connections behind.
    ///
    /// # Errors
    /// The device does not answer.
    pub(super) fn new(shared: &Shared<'_>, seed: u64, number: u8, allowance: u16) -> Result<Self, Failure> {
        let target = shared.target;
        let [a, b, c, _] = target.device.octets();
        let link = VirtualWire::join_anonymous(&target.wire)?;
        let own = Ipv4Addr::new(a, b, c, 240 + number);
        let mut station = Station::new(Box::new(link), own, target.device, target.patience)?;
        station.first_host = u16::from(number) * HOSTS;
        station.patience = PATIENCE.min(target.patience);
        let rng = fastrand::Rng::with_seed(seed.rotate_left(8) ^ u64::from(number + 1));
        // Each seed begins at other dead addresses.
        let dead = (seed.wrapping_mul(97) % u64::from(HOSTS - LIVING)) as u16;
        Ok(Self { peer: Peer::new(station, target.port, None), rng, dead, allowance })
    }

    /// Attacks until the honest callers have finished, at least once.
    ///
    /// # Errors
    /// An attack reached foreign memory, or the wire is broken.
    pub(super) fn run(&mut self, shared: &Shared<'_>) -> Result<(), Failure> {
        loop {
            self.attack(shared)?;
            // Simulated time passes slowly under attack, and with it the timeouts that free the connections of dead callers. So attacks
            // pause while an honest caller waits for a free connection.
            while shared.waiting.load(Ordering::Relaxed) > 0 && !shared.over() {
                self.peer.station.gather(Duration::from_millis(100))?;
            }
            if shared.over() {
                return Ok(());
            }
        }
    }

    fn attack(&mut self, shared: &Shared<'_>) -> Result<(), Failure> {
        let possible: Vec<_> = ATTACKS.iter().filter(|(_, leaves, _)| *leaves <= self.allowance).collect();
        let (name, leaves, play) = *possible[self.rng.usize(..possible.len())];
        self.allowance -= leaves;
        let outcome = play(self, shared);
        let cut_short = match &outcome {
            Ok(()) => false,
            Err(crate::Failure::Content(what)) => return Err(Failure::Content(format!("{name}: {what}"))),
            // No answer, or a refusal: both are allowed, because frames are lost and floods are dropped.
            Err(_) => true,
        };
        shared.tally(|tally| tally.attack(name, cut_short));
        self.peer.abandon()?;
        Ok(())
    }

    /// The next dead host, counted in the tally.
    fn dead_host(&mut self, shared: &Shared<'_>) -> u16 {
        self.dead = (self.dead + 1) % (HOSTS - LIVING);
        let host = LIVING + self.dead;
        let ip = self.peer.station.host(host);
        shared.tally(|tally| tally.dead(ip));
        host
    }

    fn key_after_the_end(&mut self, _: &Shared<'_>) -> Result<(), crate::Failure> {
        self.peer.act_as_host(2);
        let old = self.peer.connect_with(&Terms::default(), &[4096])?;
        self.peer.disconnect(&old)?;
        // On the closed queue pair, then on a new one.
        let nothing = Ext::Reth(old.regions[0].reth(0, 64));
        self.peer.send(&old, Opcode::WriteOnly, old.next, nothing, &pattern(66, 64))?;
        let qp = self.peer.connect_with(&Terms::default(), &[4096])?;
        let opcode = self.operation();
        keys::refused(&mut self.peer, &qp, opcode, &old.regions[0])?;
        self.peer.disconnect(&qp)
    }

    fn operation(&mut self) -> Opcode {
        keys::OPERATIONS[self.rng.usize(..keys::OPERATIONS.len())]
    }

    fn key_of_another(&mut self, _: &Shared<'_>) -> Result<(), crate::Failure> {
        self.peer.act_as_host(3);
        let mut owner = self.peer.connect_with(&Terms::default(), &[4096])?;
        let region = owner.regions[0];
        let bytes = pattern(self.rng.u8(..), 4096);
        self.peer.write_bytes(&mut owner, &region, 0, &bytes)?;
        self.peer.act_as_host(4);
        for _ in 0..self.rng.u8(1..=4) {
            let thief = self.peer.connect_with(&Terms::default(), &[4096])?;
            let step = if self.rng.bool() { 0 } else { self.rng.u32(..) };
            let guess = Rkey(region.rkey.0 ^ step);
            let opcode = self.operation();
            if guess != thief.regions[0].rkey {
                keys::refused(&mut self.peer, &thief, opcode, &Memory { rkey: guess, ..region })?;
            }
            self.peer.disconnect_only(&thief)?;
        }
        self.peer.expect_bytes(&mut owner, &region, 0, &bytes)?;
        self.peer.disconnect(&owner)
    }

    /// Opens some connections, floods each by `ask`, and closes them, with or without waiting for the answers.
    fn flood(&mut self, ask: impl Fn(&mut Self, &Qp) -> Result<(), crate::Failure>) -> Result<(), crate::Failure> {
        self.peer.act_as_host(5);
        let many = self.rng.usize(1..=6);
        let greedy = flood::greedy(&mut self.peer, many)?;
        for qp in &greedy {
            ask(self, qp)?;
        }
        if self.rng.bool() {
            while !self.peer.station.gather(LULL)?.is_empty() {}
        }
        for qp in &greedy {
            self.peer.disconnect_only(qp)?;
        }
        Ok(())
    }

    fn echoes(&mut self, _: &Shared<'_>) -> Result<(), crate::Failure> {
        let ip = self.peer.act_as_host(6);
        for sequence in 0..self.rng.u16(16..256) {
            let payload = vec![1; self.rng.usize(0..1400)];
            let frame = self.peer.station.echo(ip, sequence, &payload)?;
            self.peer.station.send_frame(&frame)?;
        }
        Ok(())
    }

    fn arp(&mut self, shared: &Shared<'_>) -> Result<(), crate::Failure> {
        for host in 0..self.rng.u16(16..256) {
            // Most of these addresses answer no ARP request.
            let ip = self.peer.station.host(LIVING + host);
            let asked = if self.rng.bool() { shared.target.device } else { self.peer.station.host(host) };
            let mut frame = [0; 60];
            ArpPacket::request(mac_of(ip), ip, asked).write(&mut frame)?;
            self.peer.station.send_frame(&frame)?;
        }
        Ok(())
    }

    /// DREQs for connections that do not exist.
    fn cm(&mut self, _: &Shared<'_>) -> Result<(), crate::Failure> {
        let ip = self.peer.act_as_host(7);
        for _ in 0..self.rng.u16(16..256) {
            let (own, theirs) = (self.rng.u32(..), self.rng.u32(..));
            let unknown = Dreq::new(own, theirs, nacelle_wire::Qpn::new(self.rng.u32(..0x100_0000)));
            let tid = self.rng.u64(..);
            self.peer.send_cm_from(ip, tid, Message::Dreq(&unknown))?;
        }
        Ok(())
    }

    fn half_open(&mut self, shared: &Shared<'_>) -> Result<(), crate::Failure> {
        for _ in 0..16 {
            let host = self.dead_host(shared);
            half_open::forged(&mut self.peer, host)?;
        }
        Ok(())
    }

    fn connect_and_close(&mut self, _: &Shared<'_>) -> Result<(), crate::Failure> {
        self.peer.act_as_host(8);
        for _ in 0..self.rng.u8(2..=16) {
            let mut qp = self.peer.connect(&Terms::default())?;
            match self.rng.u8(..4) {
                0 => self.peer.reject(&qp)?,
                1 => self.peer.disconnect(&qp)?,
                // During a set-up (2) or a call.
                2 => {
                    self.peer.post_message(&mut qp, &crate::peer::region_request(&[1 << 20]))?;
                    self.peer.disconnect(&qp)?;
                }
                _ => {
                    self.peer.set_up_regions(&mut qp, &[4096])?;
                    self.peer.post_immediate(&mut qp, EMPTY)?;
                    self.peer.disconnect(&qp)?;
                }
            }
        }
        Ok(())
    }

    fn all_connections(&mut self, _: &Shared<'_>) -> Result<(), crate::Failure> {
        self.peer.act_as_host(9);
        let most = self.rng.usize(1..=96);
        let (open, refusal) = quota::fill(&mut self.peer, most)?;
        if let Some(reason) = refusal.filter(|reason| !quota::is_full(*reason)) {
            let reason = reason.text();
            return Err(crate::Failure::Content(format!("a device that is full refuses for another reason: {reason}")));
        }
        quota::close(&mut self.peer, &open)
    }

    fn vanish(&mut self, shared: &Shared<'_>) -> Result<(), crate::Failure> {
        for _ in 0..16 {
            let host = self.dead_host(shared);
            let ip = self.peer.act_as_host(host);
            let outcome = dead::caller(&mut self.peer);
            self.peer.vanish(ip);
            outcome?;
        }
        Ok(())
    }

    fn restart(&mut self, shared: &Shared<'_>) -> Result<(), crate::Failure> {
        let host = self.dead_host(shared);
        let ip = self.peer.act_as_host(host);
        let first = dead::caller(&mut self.peer);
        self.peer.vanish(ip);
        first?;
        self.peer.act_as_host(host);
        let mut qp = self.peer.connect_with(&Terms::default(), &[4096])?;
        let region = qp.regions[0];
        let bytes = pattern(self.rng.u8(..), 4096);
        self.peer.write_bytes(&mut qp, &region, 0, &bytes)?;
        let outputs = self.peer.outputs_of_nothing(&mut qp)?;
        if outputs != [bytes] {
            return Err(crate::Failure::Content("the call of a caller that came back returned other bytes".into()));
        }
        self.peer.disconnect(&qp)?;
        self.peer.vanish(ip);
        Ok(())
    }

    /// Callers that answer ARP but never acknowledge the result of a call, some after several RNR NAKs.
    fn mute(&mut self, shared: &Shared<'_>) -> Result<(), crate::Failure> {
        for _ in 0..4 {
            let host = self.dead_host(shared);
            self.peer.act_as_host(host);
            let qp = dead::caller(&mut self.peer)?;
            if self.rng.bool() {
                for _ in 0..self.rng.u8(1..=6) {
                    let first = self.peer.request(&qp)?.headers.bth.psn();
                    self.peer.acknowledge(&qp, first, Syndrome::RnrNak(RnrTimer::new(self.rng.u8(1..12))))?;
                }
            }
            self.peer.leave(&qp);
        }
        Ok(())
    }
}
