// SPDX-License-Identifier: Apache-2.0
//! Nodes, the network between them, and the time.

use std::collections::VecDeque;
use std::time::Duration;

use nacelle_roce::{Endpoint, Event, Instant, Transport};

use crate::network::Network;
use crate::node::{Device, Station};

/// Steps at one moment; more are a timer that does not move.
const MAX_STEPS: u32 = 100_000;
/// Room for the longest frame.
const FRAME: usize = 9100;

struct Node {
    /// None while it is down.
    station: Option<Station>,
    deadline: Option<Instant>,
    /// Something may have changed since it was last asked what to send.
    touched: bool,
}

/// All that is simulated.
pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) network: Network,
    /// Of endpoints, by node.
    pub(crate) events: VecDeque<(usize, Event)>,
    nodes: Vec<Node>,
    touched: Vec<usize>,
    buffer: Vec<u8>,
    steps: u32,
}

impl World {
    pub(crate) fn new(network: Network, nodes: usize) -> Self {
        let nodes = (0..nodes).map(|_| Node { station: None, deadline: None, touched: false }).collect();
        Self {
            now: Instant::from_nanos(1_000_000),
            network,
            events: VecDeque::new(),
            nodes,
            touched: Vec::new(),
            buffer: vec![0; FRAME],
            steps: 0,
        }
    }

    /// Starts what runs on a node.
    pub(crate) fn start(&mut self, node: usize, station: Station) {
        self.nodes[node].station = Some(station);
        self.touch(node);
    }

    /// Ends it, with all that it knew.
    pub(crate) fn stop(&mut self, node: usize) {
        (self.nodes[node].station, self.nodes[node].deadline) = (None, None);
        self.events.retain(|(at, _)| *at != node);
    }

    pub(crate) fn is_up(&self, node: usize) -> bool {
        self.nodes[node].station.is_some()
    }

    fn touch(&mut self, node: usize) {
        if !std::mem::replace(&mut self.nodes[node].touched, true) {
            self.touched.push(node);
        }
    }

    /// The endpoint of a node that is up, to change something.
    pub(crate) fn endpoint(&mut self, node: usize) -> &mut Endpoint {
        self.touch(node);
        match &mut self.nodes[node].station {
            Some(Station::Endpoint(endpoint)) => endpoint,
            _ => panic!("node {node} has no endpoint"),
        }
    }

    pub(crate) fn transport(&mut self, node: usize) -> &mut Transport {
        &mut self.endpoint(node).transport
    }

    /// The device of a node, if there is one and it is up.
    pub(crate) fn device(&mut self, node: usize) -> Option<&mut Device> {
        self.touch(node);
        match &mut self.nodes[node].station {
            Some(Station::Device(device)) => Some(device),
            _ => None,
        }
    }

    /// Lets every node send that something has happened to. Returns whether there is an event.
    pub(crate) fn settle(&mut self) -> bool {
        while let Some(number) = self.touched.pop() {
            let node = &mut self.nodes[number];
            node.touched = false;
            let Some(station) = &mut node.station else { continue };
            station.set_time(self.now);
            let network = &mut self.network;
            station.transmit(self.now, &mut self.buffer, |frame| network.send(self.now, number, frame));
            node.deadline = station.next_deadline();
            if let Station::Endpoint(endpoint) = station {
                self.events.extend(std::iter::from_fn(|| endpoint.transport.poll_event()).map(|event| (number, event)));
                while endpoint.interface.poll_event().is_some() {}
            }
        }
        !self.events.is_empty()
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Option<Instant> {
        let timers = self.nodes.iter().filter_map(|node| node.deadline);
        timers.chain(self.network.next()).min()
    }

    /// Lets the time pass until this moment, at which frames arrive and timers expire. Nothing may happen before.
    pub(crate) fn pass(&mut self, until: Instant) {
        self.steps = if until > self.now { 0 } else { self.steps + 1 };
        assert!(self.steps < MAX_STEPS, "a timer does not move");
        self.now = self.now.max(until);
        while let Some((to, frame)) = self.network.arrived(self.now) {
            if let Some(station) = &mut self.nodes[to].station {
                station.set_time(self.now);
                station.receive(self.now, &frame);
                self.touch(to);
            }
            self.network.give_back(frame);
        }
        for node in 0..self.nodes.len() {
            if self.nodes[node].deadline.is_some_and(|deadline| deadline <= self.now) {
                self.touch(node);
            }
        }
    }

    /// Runs until there is an event, for at most `time`, and returns the first.
    pub(crate) fn event(&mut self, time: Duration) -> Option<(usize, Event)> {
        let end = self.now + time;
        while !self.settle() {
            let Some(next) = self.next().filter(|&next| next <= end) else {
                self.now = end;
                return None;
            };
            self.pass(next);
        }
        self.events.pop_front()
    }

    /// What a node has left that should have nothing.
    pub(crate) fn left(&mut self, node: usize) -> Option<String> {
        match &mut self.nodes[node].station {
            None => None,
            Some(Station::Device(device)) => device.left(),
            Some(Station::Endpoint(endpoint)) => {
                let (connections, regions) =
                    (endpoint.transport.connections().count(), endpoint.transport.regions().count());
                let timer = endpoint.next_deadline();
                (connections + regions > 0 || timer.is_some())
                    .then(|| format!("{connections} connections, {regions} regions, timer {timer:?}"))
            }
        }
    }
}
