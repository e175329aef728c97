// SPDX-License-Identifier: Apache-2.0
//! How long packets to a device may be.
//!
//! RoCE has no discovery of the path MTU: a REQ names one, from the interface of the side that connects, and what is too long for
//! the other's is lost without a word. So it is asked for here, before there are connections.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use nacelle_wire::cm::PathMtu;

use crate::Error;
use crate::engine::Engine;

/// The longest IP packet unless [`Options::mtu`](crate::Options::mtu) says so, in bytes: the virtual wire carries such frames, and it
/// holds the largest path MTU.
pub(crate) const LONGEST: usize = 4200;
/// What every Ethernet carries.
pub(crate) const SAFE: PathMtu = PathMtu::Mtu1024;
/// How long a host may take to answer; one that does not answer pings costs as much at the first connection.
const PATIENCE: Duration = Duration::from_millis(500);
/// How much later than a short answer a long one may come, in times of the short one's, and at least.
const GRACE_TIMES: u32 = 4;
const GRACE: Duration = Duration::from_millis(20);
/// IP and UDP or ICMP headers, and what Linux sets aside for all headers of RoCE.
const LOWER_HEADERS: usize = 28;
const ALL_HEADERS: usize = 80;

/// The path MTU of connections to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path_mtu: PathMtu,
    /// Whether packets of that size are known to arrive.
    pub(crate) is_proven: bool,
}

impl Found {
    /// The path MTU in bytes, if it may be the cause of a loss.
    pub(crate) fn doubtful(self) -> Option<usize> {
        (!self.is_proven && self.path_mtu > SAFE).then_some(self.path_mtu.bytes())
    }
}

impl Engine {
    /// The largest path MTU that the link holds, if it holds one.
    pub(crate) fn largest_path_mtu(&self) -> Option<PathMtu> {
        self.lock().endpoint.largest_path_mtu()
    }

    /// Asks the host at `ip` by ICMP echo requests which packets arrive there and come back whole: the largest path MTU up to `most`
    /// that does, or what every Ethernet carries.
    ///
    /// # Errors
    /// [`Error::Link`] if the wire is broken.
    pub(crate) fn probe_path_mtu(&self, ip: Ipv4Addr, most: PathMtu) -> Result<PathMtu, Error> {
        let sizes: Vec<PathMtu> = PathMtu::ALL.into_iter().rev().filter(|&mtu| mtu > SAFE && mtu <= most).collect();
        if sizes.is_empty() {
            return Ok(most);
        }
        // Long ones first: when the answer to the short one is there, theirs could be.
        let lengths = sizes.iter().map(|mtu| mtu.bytes() + ALL_HEADERS - LOWER_HEADERS).chain([0]);
        let pings: Vec<_> = self.act(|state| {
            let now = state.now();
            let open = |length| {
                let (number, wake) = state.inbox.open_ping(0);
                let interface = state.endpoint.ethernet();
                let _unsent_is_unanswered =
                    interface.is_some_and(|interface| interface.ping(now, ip, number, length, PATIENCE));
                (number, wake)
            };
            lengths.map(open).collect()
        })?;
        let answer = |(number, wake): &(u16, _), deadline| {
            let number = *number;
            self.wait(wake, deadline, move |state| state.inbox.ping_outcome(number)).map(Option::flatten)
        };
        let (short, long) = (&pings[pings.len() - 1], &pings[0]);
        if let Some(round_trip) = answer(short, Instant::now() + PATIENCE)? {
            answer(long, Instant::now() + GRACE.max(round_trip * GRACE_TIMES))?;
        }
        let mut state = self.lock();
        let mut largest = SAFE;
        for (size, (number, _)) in sizes.iter().zip(&pings) {
            if state.inbox.ping_outcome(*number).flatten().is_some() {
                largest = largest.max(*size);
            }
        }
        pings.iter().for_each(|(number, _)| state.inbox.close_ping(*number));
        Ok(largest)
    }
}
