// SPDX-License-Identifier: Apache-2.0
//! Leak check: a device without callers must hold what it held at the start, and grant as much.

use super::{Failure, run::Target};
use crate::{
    attack::quota::{MOST, close, fill},
    manage::{Holdings, Manage},
    peer::{Peer, Terms, region_request},
    station::{MAX_HOSTS, Station},
};
use core::{net::Ipv4Addr, time::Duration};
use nacelle_link::VirtualWire;
use nacelle_wire::mrsp;
use std::time::Instant;

/// First of the hosts that are reserved for this check.
const HOSTS: u16 = MAX_HOSTS - 1024;
/// A page of device memory, in bytes.
const PAGE: u32 = 4096;
/// Keep-alive time in ms that is set on a device with management, so that it detects dead callers early.
const KEEP_ALIVE_MS: u32 = 1000;
/// Interval of the checks on a device that is not simulated.
const PAUSE: Duration = Duration::from_millis(100);
/// First and longest interval of the checks on a simulated device. A check keeps the simulator from skipping idle time, in which the
/// timeouts of dead callers run out, so the interval doubles from check to check.
const REST: Duration = Duration::from_secs(2);
const LONGEST_REST: Duration = Duration::from_secs(16);

/// What a device grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Connections, by any number of callers.
    pub(super) connections: usize,
    /// Connections of one address.
    pub(super) share: usize,
    /// Pages of the largest region that is granted.
    pub(super) pages: u32,
}

/// The state of the device without callers, taken at the start.
pub(super) struct Quiet {
    manage: Option<Manage>,
    /// The keep-alive time that was set before, restored at the end.
    keep_alive: Option<u32>,
    before: Option<Holdings>,
    pub(super) room: Room,
}

impl Quiet {
    /// Records what the device holds and grants before the first run.
    ///
    /// # Errors
    /// The device does not answer.
    pub(super) fn begin(target: &Target) -> Result<Self, Failure> {
        let mut manage = Manage::find(&target.wire, target.device);
        let before = manage.as_mut().map(Manage::holdings).transpose()?;
        let room = Room::of(target)?;
        let keep_alive = manage.as_mut().map(|m| m.keep_alive(KEEP_ALIVE_MS)).transpose()?.flatten();
        Ok(Self { manage, keep_alive, before, room })
    }

    /// Waits until the device holds what it held at the start. A device without management is not checked.
    ///
    /// # Errors
    /// It still holds something else after `within`, or does not answer.
    pub(super) fn settle(&mut self, within: Duration) -> Result<(), Failure> {
        let Some(manage) = &mut self.manage else { return Ok(()) };
        let until = Instant::now() + within;
        let mut rest = if manage.is_simulated() { REST } else { PAUSE };
        loop {
            std::thread::sleep(rest);
            rest = (2 * rest).min(if manage.is_simulated() { LONGEST_REST } else { PAUSE });
            let now = manage.holdings()?;
            if Some(&now) == self.before.as_ref() {
                return Ok(());
            }
            if Instant::now() > until {
                let mut left: Vec<String> =
                    manage.queue_pairs()?.iter().map(|p| format!("{} {:?} {}", p.qpn, p.peer, p.state)).collect();
                left.truncate(20);
                let before = self.before.as_ref();
                return Err(Failure::Leaked(format!(
                    "when all was quiet for {within:?} the device holds {now:?}, at the start {before:?}; queue pairs {left:?}"
                )));
            }
        }
    }

    /// Checks after the last run that the device holds and grants what it did at the start.
    ///
    /// # Errors
    /// It does not within `within`, or does not answer.
    pub(super) fn end(mut self, target: &Target, within: Duration) -> Result<(), Failure> {
        self.settle(within)?;
        let until = Instant::now() + within;
        loop {
            let now = Room::of(target)?;
            if now == self.room {
                break;
            }
            if Instant::now() > until {
                return Err(Failure::Leaked(format!("the device has {now:?} to give, at the start {:?}", self.room)));
            }
            std::thread::sleep(10 * PAUSE);
        }
        self.settle(within)
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if let (Some(manage), Some(before)) = (&mut self.manage, self.keep_alive) {
            let _ = manage.keep_alive(before);
        }
    }
}

impl Room {
    /// Measures it: opens all connections that the device grants, and closes them.
    fn of(target: &Target) -> Result<Self, Failure> {
        let [a, b, c, _] = target.device.octets();
        let link = VirtualWire::join_anonymous(&target.wire)?;
        let mut station = Station::new(Box::new(link), Ipv4Addr::new(a, b, c, 251), target.device, target.patience)?;
        station.first_host = HOSTS;
        let mut peer = Peer::new(station, target.port, None);
        let pages = largest_region(&mut peer)?;
        peer.act_as_host(0);
        let (mut open, _) = fill(&mut peer, MOST)?;
        let share = open.len();
        // One address gets its share only: go on under further addresses until the device is full.
        for host in 1..MOST as u16 {
            peer.act_as_host(host);
            let (more, _) = fill(&mut peer, MOST - open.len())?;
            if more.is_empty() {
                break;
            }
            open.extend(more);
        }
        close(&mut peer, &open)?;
        Ok(Self { connections: open.len(), share, pages })
    }
}

/// Pages of the largest region that a caller is granted, by bisection; 0 if none.
fn largest_region(peer: &mut Peer) -> Result<u32, Failure> {
    let (mut least, mut most) = (0, u32::MAX / PAGE + 1);
    while least + 1 < most {
        let middle = least + (most - least) / 2;
        if grants(peer, middle * PAGE)? {
            least = middle;
        } else {
            most = middle;
        }
    }
    Ok(least)
}

/// Whether the device grants a region of this size. A refusal comes at once; a grant comes after the memory is cleared, which takes long
/// and is not waited for. Set-ups are served in order, so when that of a second caller is answered, a refusal has been sent.
fn grants(peer: &mut Peer, size: u32) -> Result<bool, Failure> {
    peer.act_as_host(0);
    let mut first = peer.connect(&Terms::default())?;
    peer.post_message(&mut first, &region_request(&[size]))?;
    peer.act_as_host(1);
    let mut second = peer.connect(&Terms::default())?;
    // It may be refused, because the first region takes all memory.
    let _ = peer.set_up_regions(&mut second, &[PAGE]);
    let refused = !peer
        .station
        .take(|p| {
            p.headers.bth.dest_qp() == first.own_qpn
                && matches!(mrsp::Message::parse(&p.payload), Ok(mrsp::Message::Err(_)))
        })?
        .is_empty();
    peer.disconnect(&first)?;
    peer.disconnect(&second)?;
    Ok(!refused)
}
