// SPDX-License-Identifier: Apache-2.0
//! Nodes: an endpoint or a software device, in one life after the other.

use nacelle_device::{Engine, FrameEngine, Identity, SoftConfig, SoftEngine};
use nacelle_driver::{Clock, ClockHand};
use nacelle_manage::Manage;
use nacelle_roce::{Endpoint, EndpointConfig, Instant};

use crate::network::{ip, mac};

/// Work of a device in one turn; more would be without end.
const MAX_TURNS: usize = 1000;

/// What runs on a node.
pub(crate) enum Station {
    Endpoint(Box<Endpoint>),
    Device(Box<Device>),
}

/// A software device, and its time.
pub(crate) struct Device {
    pub(crate) engine: SoftEngine,
    clock: Clock,
    hand: ClockHand,
}

impl Device {
    /// A device that has just started.
    pub(crate) fn start(node: usize, config: SoftConfig, random: [u8; 32]) -> Self {
        let (clock, hand) = Clock::set_by_hand();
        let mut engine = SoftEngine::simulated(config, clock.clone(), random);
        let identity = Identity { mac: mac(node), ip: ip(node), prefix_len: 24, gateway: None };
        engine.configure(&identity, 0).expect("a software device takes any address");
        Self { engine, clock, hand }
    }

    /// Callers that it has.
    pub(crate) fn callers(&mut self) -> u64 {
        self.counter("rpc.callers")
    }

    /// Waits until one of its threads has something for it, or until a moment of the system's time.
    pub(crate) fn wait(&self, until: std::time::Instant) {
        nacelle_link::wait_readable(self.engine.wake_fds(), Some(until)).expect("the system lets it wait");
    }

    fn counter(&mut self, name: &str) -> u64 {
        self.engine.counters().ok().and_then(|all| all.get(name).copied()).expect("the device counts it")
    }

    /// What it still holds though it should hold nothing.
    pub(crate) fn left(&mut self) -> Option<String> {
        let callers = self.callers();
        let bytes = self.counter("memory.bytes_held");
        let pairs = self.engine.queue_pairs().expect("the device answers").len();
        // Its description is a region, too, and stays.
        let regions = self.engine.regions().expect("the device answers").len() - 1;
        (callers + bytes > 0 || pairs + regions > 0)
            .then(|| format!("{callers} callers, {bytes} bytes, {pairs} queue pairs, {regions} regions"))
    }
}

impl Station {
    pub(crate) fn endpoint(node: usize, ip_mtu: usize, random: [u8; 32], retry: std::time::Duration) -> Self {
        let mut config = EndpointConfig::new(mac(node), ip(node), random);
        config.interface.ip_mtu = ip_mtu;
        config.interface.arp.retry_interval = retry;
        config.interface.arp.tries = 30;
        Self::Endpoint(Box::new(Endpoint::new(config)))
    }

    /// It is `now`.
    pub(crate) fn set_time(&mut self, now: Instant) {
        if let Self::Device(device) = self {
            device.hand.set(now);
        }
    }

    pub(crate) fn receive(&mut self, now: Instant, frame: &[u8]) {
        match self {
            Self::Endpoint(endpoint) => {
                // What is wrong with a frame, its counters say.
                let _ = endpoint.handle(now, frame);
            }
            Self::Device(device) => device.engine.push(frame).expect("a software device takes every frame"),
        }
    }

    /// Gives all that there is to send to `send`.
    pub(crate) fn transmit(&mut self, now: Instant, buffer: &mut [u8], mut send: impl FnMut(&[u8])) {
        match self {
            Self::Endpoint(endpoint) => {
                while let Some(length) = endpoint.poll_transmit(now, buffer) {
                    send(&buffer[..length]);
                }
            }
            Self::Device(device) => {
                while device.engine.rx_stamp().is_some() {}
                for turn in 0.. {
                    assert!(turn < MAX_TURNS, "a device works for ever");
                    device.engine.run(std::time::Instant::now());
                    let mut sent = false;
                    while let Some((length, _)) = device.engine.pull(buffer) {
                        send(&buffer[..length]);
                        sent = true;
                    }
                    if !sent {
                        break;
                    }
                }
            }
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Endpoint(endpoint) => endpoint.next_deadline(),
            Self::Device(device) => device.engine.wake_at().map(|at| device.clock.of(at)),
        }
    }
}
