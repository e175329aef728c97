// SPDX-License-Identifier: Apache-2.0
//! The network card of the simulated RTL by vhost-user: a front end's frames to the wire and back, and what a front end can do to the
//! device. They need the library of `devices/nic.toml` at 64 bits.

#[path = "../../nacelle-vhost/tests/support/front.rs"]
#[allow(dead_code, unreachable_pub, reason = "each user takes a part")]
mod front;
#[path = "slot/library.rs"]
mod library;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use front::{By, Front};
use library::library;
use nacelle_device::{Engine, FrameEngine, Place, RtlEngine, SimConfig, SimLibrary};
use nacelle_link::WireDir;
use nacelle_manage::DeviceKind;
use nacelle_vhost::feature;
use nacelle_vhost::protocol::{protocol_feature, request};
use nacelle_wire::MacAddr;
use nacelle_wire::arp::ArpPacket;

const ACK: u64 = protocol_feature::REPLY_ACK;
const INBAND: u64 = protocol_feature::INBAND_NOTIFICATIONS | protocol_feature::BACKEND_REQ;
const FEATURES: u64 = feature::VERSION_1 | feature::MAC;
/// Another station of the network.
const STATION: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
/// Enough for a simulation on a machine with much other work.
const LONG: Duration = Duration::from_secs(100);
/// EtherType for experiments.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];

/// The device in a thread, with its network by channels.
struct Bench {
    socket: PathBuf,
    place: Place,
    to_device: Sender<Vec<u8>>,
    from_device: Receiver<Vec<u8>>,
    stop: Arc<AtomicBool>,
    device: Option<JoinHandle<()>>,
    _temp: tempfile::TempDir,
}

fn run(mut engine: RtlEngine, frames: &Receiver<Vec<u8>>, out: &Sender<Vec<u8>>, stop: &AtomicBool) {
    let mut frame = vec![0; 10_000];
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        while let Ok(frame) = frames.try_recv() {
            engine.push(&frame).unwrap();
        }
        engine.run(now);
        while let Some((len, _)) = engine.pull(&mut frame) {
            out.send(frame[..len].to_vec()).unwrap();
        }
        while engine.rx_stamp().is_some() {}
        if engine.idle() {
            std::thread::sleep(Duration::from_millis(1));
            engine.pass(now.elapsed());
        }
    }
    assert_eq!(engine.sim().slot_violation(), None, "the device keeps the rules of PCI Express");
}

impl Bench {
    fn new() -> Option<Self> {
        let library = library()?;
        let temp = tempfile::tempdir().unwrap();
        let wire = WireDir::open(temp.path().join("wire")).unwrap();
        let place = Place::find(&wire, DeviceKind::Rtl, None, None).unwrap();
        let socket = temp.path().join("vhost");
        let ((to_device, frames), (out, from_device)) = (channel(), channel());
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, started) = channel();
        let device = std::thread::spawn({
            let (place, socket, stop) = (place.clone(), socket.clone(), Arc::clone(&stop));
            move || {
                let library = SimLibrary::load(&library).unwrap();
                let engine = RtlEngine::new(&library, &SimConfig::default()).unwrap();
                let tell: fn(&str) = |what| eprintln!("{what}");
                let mut engine = engine.with_vhost_user(&socket, place.identity.mac, tell).unwrap();
                engine.configure(&place.identity, 1).unwrap();
                ready.send(()).unwrap();
                run(engine, &frames, &out, &stop);
            }
        });
        started.recv().unwrap();
        Some(Self { socket, place, to_device, from_device, stop, device: Some(device), _temp: temp })
    }

    /// The card's own address.
    fn card(&self) -> MacAddr {
        self.place.identity.network_card_mac()
    }

    /// The next frame that the device sends to an address, among others.
    fn sent_to(&self, to: MacAddr) -> Vec<u8> {
        let end = Instant::now() + LONG;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let frame = self.from_device.recv_timeout(left).expect("a frame comes");
            if frame[..6] == to.0 {
                return frame;
            }
        }
    }

    /// Frames of all lengths go from the front end to the station, and back.
    fn must_work(&self, front: &mut Front) {
        for len in [60, 1514, 61, 800] {
            let body: Vec<u8> = (14..len).map(|at| (at * 7) as u8).collect();
            let frame = |to: MacAddr, from: MacAddr| [&to.0[..], &from.0, &ETHERTYPE, &body].concat();
            let there = frame(STATION, self.card());
            front.send(&there);
            assert!(self.sent_to(STATION) == there, "{len} bytes are on the line as the guest has written them");
            let back = frame(self.card(), STATION);
            self.to_device.send(back.clone()).unwrap();
            assert!(front.receive() == back, "{len} bytes are in the guest's memory as they were on the line");
        }
    }

    /// The device itself answers its network.
    fn must_answer(&self) {
        let request = ArpPacket::request(STATION, [10, 77, 0, 99].into(), self.place.identity.ip);
        let mut frame = vec![0; 60];
        request.write(&mut frame).unwrap();
        self.to_device.send(frame).unwrap();
        let answer = self.sent_to(STATION);
        assert_eq!(answer[12..14], [8, 6], "it answers ARP");
    }

    fn front(&self, by: By, sealed: bool) -> Front {
        let mut front = Front::connect(&self.socket, by, sealed);
        front.set_up(FEATURES, ACK | if by == By::Message { INBAND } else { 0 });
        front
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(device) = self.device.take() {
            let ended = device.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the device has failed");
        }
    }
}

#[test]
fn frames_go_from_a_guests_memory_through_the_rtl_and_back() {
    let Some(bench) = Bench::new() else { return };
    for (by, sealed) in [(By::Eventfd, true), (By::Socket, false), (By::Message, false)] {
        let mut front = bench.front(by, sealed);
        bench.must_work(&mut front);
    }
}

/// The ring for commands is the card's: what is right is done, what is not is refused, and frames go on.
#[test]
fn a_guests_commands_reach_the_rtl() {
    let Some(bench) = Bench::new() else { return };
    for by in [By::Eventfd, By::Message] {
        let mut front = Front::connect(&bench.socket, by, true);
        let features = FEATURES | feature::CTRL_VQ | feature::CTRL_RX | feature::CTRL_VLAN;
        front.set_up(features, ACK | if by == By::Message { INBAND } else { 0 });
        front.start_ring(2);
        front.must(request::SET_VRING_ENABLE, &Front::state(2, 1), &[]);
        let one = [&[1, 0, 1, 0, 0, 0][..], &STATION.0, &[0; 4]].concat();
        let good: [&[u8]; 3] = [&[0, 0, 0], &one, &[2, 0, 5, 0]];
        for command in good {
            assert_eq!(front.command(2, command), 0, "{command:?}");
        }
        let bad: [&[u8]; 5] = [&[0, 0], &[0, 3, 1], &[9, 9, 9], &one[..9], &[2, 0, 5, 0x10]];
        for command in bad {
            assert_eq!(front.command(2, command), 1, "{command:?}");
        }
        bench.must_work(&mut front);
    }
}

#[test]
fn a_guest_of_the_rtl_costs_nobody_else_anything() {
    let Some(bench) = Bench::new() else { return };
    // It goes while frames are under way, both ways.
    let mut front = bench.front(By::Eventfd, true);
    let frame = [&STATION.0[..], &bench.card().0, &ETHERTYPE, &[1; 1000]].concat();
    let back = [&bench.card().0[..], &STATION.0, &ETHERTYPE, &[1; 1000]].concat();
    for _ in 0..10 {
        front.send(&frame);
        bench.to_device.send(back.clone()).unwrap();
    }
    drop(front);
    bench.must_answer();
    // Its memory goes: the ring is given up, and said to be.
    let mut front = bench.front(By::Eventfd, false);
    rustix::fs::ftruncate(&front.memory, 0).unwrap();
    front.kick(1);
    assert!(front::wait_for(&front.error, LONG), "the front end is told");
    bench.must_answer();
    assert_eq!(front.ask(request::GET_VRING_BASE, &Front::state(0, 0)).len(), 8);
    drop(front);
    // Its rings are nonsense.
    let mut front = bench.front(By::Eventfd, true);
    front.write(0x1000, &[0xff; 0x1000]);
    front.kick(1);
    assert!(front::wait_for(&front.error, LONG), "the front end is told");
    bench.must_answer();
    drop(front);
    let mut front = bench.front(By::Eventfd, true);
    bench.must_work(&mut front);
}
