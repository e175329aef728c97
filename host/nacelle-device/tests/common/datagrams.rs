// SPDX-License-Identifier: Apache-2.0
//! A software device on a UDP socket, in a thread.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nacelle::{Device, DeviceKind, FunctionCode, Options, Region};
use nacelle_device::{Host, Place, SoftConfig, SoftEngine};
use nacelle_driver::DatagramMedium;
use nacelle_link::{DatagramLink, ShmHub, UdpLink, WireDir};
use nacelle_manage::Control;
use nacelle_roce::ConnectOptions;

/// A device on a loopback address, or another one of this machine.
pub(crate) struct Bench {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    pub(crate) place: Place<IpAddr>,
    _temp: tempfile::TempDir,
}

/// Times short enough for tests on a machine that is not slow.
pub(crate) fn quick() -> ConnectOptions {
    ConnectOptions {
        ack_timeout: Duration::from_millis(50),
        max_ack_timeout: Duration::from_millis(400),
        cm_timeout: Duration::from_millis(200),
        cm_retries: 5,
        ..ConnectOptions::default()
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::on(UdpLink::for_peer(Ipv4Addr::LOCALHOST.into()).unwrap())
    }

    pub(crate) fn on(link: UdpLink) -> Self {
        Self::start(link.local().ip(), |_| Box::new(link))
    }

    /// One that shares memory too.
    pub(crate) fn sharing(link: UdpLink) -> Self {
        Self::start(link.local().ip(), |place| Box::new(ShmHub::new(link, &place.wire, &place.name).unwrap()))
    }

    fn start(ip: IpAddr, link: impl FnOnce(&Place<IpAddr>) -> Box<dyn DatagramLink>) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let wire = WireDir::open(temp.path().join("wire")).unwrap();
        let place = Place::by_udp(&wire, DeviceKind::Soft, None, ip).unwrap();
        let link = link(&place);
        let mut bench = Self { stop: Arc::default(), thread: None, place, _temp: temp };
        bench.run(link);
        bench
    }

    fn run(&mut self, link: Box<dyn DatagramLink>) {
        let (seen, here) = (Arc::clone(&self.stop), self.place.clone());
        let (ready, started) = std::sync::mpsc::channel();
        self.thread = Some(std::thread::spawn(move || {
            let config =
                SoftConfig { connect: quick(), connections: 1000, connections_per_caller: 0, ..SoftConfig::default() };
            let engine = SoftEngine::new(config);
            let mut host = Host::by_udp(engine, &here, DatagramMedium::new(link), 1).unwrap();
            ready.send(()).unwrap();
            host.run(&seen).unwrap();
        }));
        started.recv().unwrap();
    }

    /// Ends the device.
    pub(crate) fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// Starts another that shares memory in its place.
    pub(crate) fn begin(&mut self) {
        self.stop.store(false, Ordering::Relaxed);
        let link = UdpLink::bind(self.place.identity).unwrap();
        self.run(Box::new(ShmHub::new(link, &self.place.wire, &self.place.name).unwrap()));
    }

    pub(crate) fn options(&self) -> Options {
        let wire = Some(self.place.wire.path().to_owned());
        Options { wire, connect: quick(), timeout: Duration::from_secs(20), ..Options::default() }
    }

    pub(crate) fn connect(&self) -> Device {
        Device::connect(self.place.identity, &self.options()).unwrap()
    }

    pub(crate) fn counter(&self, name: &str) -> u64 {
        Control::open(&self.place.wire, &self.place.name).unwrap().stats().unwrap().counters[name]
    }

    /// A call of the function that adds 1 to every byte.
    pub(crate) fn increments(&self, device: &Device, length: usize) {
        let bytes: Vec<u8> = (0..length as u32).map(|i| (i ^ i >> 8) as u8).collect();
        let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(bytes.clone())]).unwrap();
        for round in 1..=2 {
            call.invoke().unwrap();
            call.wait().unwrap();
            let mut now = vec![0; length];
            call.read(0, &mut now).unwrap();
            let right = bytes.iter().map(|byte| byte.wrapping_add(round));
            assert!(now.iter().copied().eq(right), "round {round}");
        }
        call.close().unwrap();
    }
}

impl Bench {
    /// Frames in a capture of a caller and of the device, each of which has a right ICRC.
    pub(crate) fn frames(&self, pcapng: &[u8]) -> (usize, usize) {
        let (mut rest, mut from_device, mut from_caller) = (pcapng, 0, 0);
        let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        while rest.len() >= 12 {
            let (kind, length) = (word(rest, 0), word(rest, 4) as usize);
            if kind == 6 {
                let frame = &rest[28..28 + word(rest, 20) as usize];
                let packet = nacelle_wire::RocePacket::parse(frame).unwrap();
                if IpAddr::V4(packet.headers.ip.src()) == self.place.identity {
                    from_device += 1;
                } else {
                    from_caller += 1;
                }
            }
            rest = &rest[length..];
        }
        (from_caller, from_device)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.end();
    }
}
