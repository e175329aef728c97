// SPDX-License-Identifier: Apache-2.0
//! An endpoint on a link, for a program with one thread.

use crate::{Clock, Frames, Limits, Pump, Station};
use nacelle_link::{Link, LinkError};
use nacelle_roce::{Batch, ConnId, Endpoint, Event, NetworkEvent};
use std::collections::VecDeque;
use std::time::Instant;

/// An endpoint with its link, its clock, and the events that were not taken yet.
///
/// Nothing moves but in [`turn`](Self::turn): call it again and again while something is expected, and after the endpoint was
/// changed.
#[derive(Debug)]
pub struct Port<L> {
    /// The endpoint.
    pub endpoint: Endpoint,
    pump: Pump<Frames<L>>,
    clock: Clock,
    events: VecDeque<Event>,
    network_events: VecDeque<NetworkEvent>,
}

impl<L: Link> Port<L> {
    /// Puts an endpoint on a link.
    pub fn new(endpoint: Endpoint, link: L) -> Self {
        let (events, network_events) = (VecDeque::new(), VecDeque::new());
        Self { endpoint, pump: Pump::new(link), clock: Clock::start(), events, network_events }
    }

    /// This moment, as the endpoint counts it.
    pub fn now(&self) -> nacelle_roce::Instant {
        self.clock.now()
    }

    /// The link.
    pub fn link(&self) -> &L {
        self.pump.link()
    }

    /// The link, for frames that are not the endpoint's.
    pub fn link_mut(&mut self) -> &mut L {
        self.pump.link_mut()
    }

    /// One turn of the loop. If nothing is received and no event waits, sleeps then until a frame arrives, a timer expires, or
    /// `until`.
    ///
    /// # Errors
    /// If the link is broken.
    pub fn turn(&mut self, until: Instant) -> Result<(), LinkError> {
        self.turn_filtered(until, |_| true)
    }

    /// The same, with a filter for received frames: the endpoint gets those for which it returns true.
    ///
    /// # Errors
    /// If the link is broken.
    pub fn turn_filtered(&mut self, until: Instant, filter: impl FnMut(&[u8]) -> bool) -> Result<(), LinkError> {
        let Self { endpoint, pump, clock, .. } = self;
        let now = Instant::now();
        let moved = pump.turn(now, &mut Filtered { endpoint, clock, filter }, Limits::default())?;
        self.events.extend(std::iter::from_fn(|| self.endpoint.transport.poll_event()));
        self.network_events.extend(std::iter::from_fn(|| self.endpoint.interface.poll_event()));
        if moved || !self.events.is_empty() || !self.network_events.is_empty() {
            return Ok(());
        }
        let timer = self.endpoint.next_deadline().map(|at| self.clock.at(at));
        self.pump.sleep(now, [], timer.map_or(until, |at| at.min(until)))
    }

    /// The oldest event of the transport.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Takes the first event of the transport that `wanted` makes something of. Others stay.
    pub fn take_event<T>(&mut self, wanted: impl FnMut(&Event) -> Option<T>) -> Option<T> {
        take(&mut self.events, wanted)
    }

    /// Takes the first event of the interface that `wanted` makes something of. Others stay.
    pub fn take_network_event<T>(&mut self, wanted: impl FnMut(&NetworkEvent) -> Option<T>) -> Option<T> {
        take(&mut self.network_events, wanted)
    }

    /// Drops the completions of a connection that have not been taken.
    pub fn drop_completions(&mut self, conn: ConnId) {
        self.events.retain(|event| !matches!(event, Event::Completion(done) if done.conn == conn));
    }

    /// Drops all events that have not been taken.
    pub fn drop_events(&mut self) {
        self.events.clear();
        self.network_events.clear();
    }
}

fn take<E, T>(events: &mut VecDeque<E>, wanted: impl FnMut(&E) -> Option<T>) -> Option<T> {
    let (at, found) = events.iter().map(wanted).enumerate().find_map(|(at, found)| Some((at, found?)))?;
    events.remove(at);
    Some(found)
}

/// An endpoint that gets some of the frames.
struct Filtered<'a, F> {
    endpoint: &'a mut Endpoint,
    clock: &'a Clock,
    filter: F,
}

impl<L: Link, F: FnMut(&[u8]) -> bool> Station<Frames<L>> for Filtered<'_, F> {
    fn receive(&mut self, now: Instant, frame: &[u8]) {
        if (self.filter)(frame) {
            // The endpoint's counters count discarded frames by reason.
            let _counted = self.endpoint.handle(self.clock.of(now), frame);
        }
    }

    fn transmit(&mut self, now: Instant, frame: &mut [u8], _batch: Batch) -> Option<usize> {
        self.endpoint.poll_transmit(self.clock.of(now), frame)
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.endpoint.next_deadline().map(|at| self.clock.at(at))
    }
}
