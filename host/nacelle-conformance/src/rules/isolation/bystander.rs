// SPDX-License-Identifier: Apache-2.0
//! A caller that takes no part in an attack, and must not be affected by it.

use crate::{
    Failure,
    failure::ensure,
    peer::{Peer, Qp, Terms},
    rules::pattern,
};
use nacelle_wire::cm::RejReason;
use std::time::{Duration, Instant};

/// What it asks of a device under attack: so many times as long as of a quiet one, and some more for a busy machine.
const FACTOR: u32 = 20;
const SLACK: Duration = Duration::from_millis(1500);
/// Regions that it calls with.
const SIZE: u32 = 256;

/// The host that it is.
const HOST: u16 = 4000;

/// A caller with a connection of its own, and what its work takes on the device when it is quiet.
pub(super) struct Bystander {
    qp: Qp,
    quiet: Duration,
}

impl Bystander {
    /// Connects, and measures.
    ///
    /// # Errors
    /// It is not served even now.
    pub(super) fn new(peer: &mut Peer) -> Result<Self, Failure> {
        let attacker = peer.ip;
        peer.act_as_host(HOST);
        let qp = peer.connect_with(&Terms::default(), &[SIZE])?;
        peer.act_as(attacker);
        let mut own = Self { qp, quiet: Duration::from_secs(3600) };
        let begin = Instant::now();
        own.works_on(peer)?;
        visits(peer, Instant::now() + own.quiet)?;
        own.quiet = begin.elapsed();
        Ok(own)
    }

    fn bound(&self) -> Duration {
        self.quiet * FACTOR + SLACK
    }

    /// It calls on its connection, and is answered in time, rightly.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn works_on(&mut self, peer: &mut Peer) -> Result<(), Failure> {
        let begin = Instant::now();
        let bytes = pattern(77, SIZE as usize);
        let region = self.qp.regions[0];
        peer.write_bytes(&mut self.qp, &region, 0, &bytes)?;
        let outputs = peer.outputs_of_nothing(&mut self.qp)?;
        ensure!(outputs == [bytes], "a bystander's call returned other bytes");
        let took = begin.elapsed();
        ensure!(took < self.bound(), "a bystander's call took {took:?}; without the attack {:?}", self.quiet);
        Ok(())
    }

    /// Another caller connects, calls and disconnects, in time.
    ///
    /// # Errors
    /// It cannot.
    pub(super) fn brings_another(&self, peer: &mut Peer) -> Result<(), Failure> {
        let begin = Instant::now();
        visits(peer, begin + self.bound())?;
        let took = begin.elapsed();
        ensure!(took < self.bound(), "a new caller was served in {took:?}; when all was quiet in {:?}", self.quiet);
        Ok(())
    }

    /// It disconnects.
    ///
    /// # Errors
    /// The device does not agree.
    pub(super) fn leaves(self, peer: &mut Peer) -> Result<(), Failure> {
        peer.disconnect(&self.qp)
    }
}

/// A caller connects, calls and disconnects. It retries if it is refused for lack of resources.
fn visits(peer: &mut Peer, deadline: Instant) -> Result<(), Failure> {
    let attacker = peer.ip;
    peer.act_as_host(HOST + 1);
    let mut qp = loop {
        match peer.try_connect(&Terms::default())? {
            Some(qp) => break qp,
            None if Instant::now() > deadline => return Err(Failure::Refused(RejReason::NO_RESOURCES)),
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    peer.act_as(attacker);
    peer.set_up_regions(&mut qp, &[SIZE])?;
    let outputs = peer.outputs_of_nothing(&mut qp)?;
    ensure!(outputs.len() == 1, "{} outputs came for one region", outputs.len());
    peer.disconnect_only(&qp)
}
