// SPDX-License-Identifier: Apache-2.0
//! `nacelle-soak` against the software device: what it says when all is well, and when the device is lost.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nacelle::DeviceKind;
use nacelle_device::{Host, Place, SoftConfig, SoftEngine};
use nacelle_link::{Link, MAX_FRAME, SwitchHost, VirtualWire, WireDir};
use nacelle_roce::{ConnectOptions, Endpoint, EndpointConfig, Event, wire::MacAddr};

/// A software device on a wire of its own.
struct Device {
    place: Place,
    _switch: SwitchHost,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _temp: tempfile::TempDir,
}

impl Device {
    fn start() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let wire = WireDir::open(temp.path().join("wire")).unwrap();
        let place = Place::find(&wire, DeviceKind::Soft, None, None).unwrap();
        let switch = SwitchHost::start(&wire).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, there) = (Arc::clone(&stop), place.clone());
        let (ready, started) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            // Vanished peers are detected soon.
            let connect = ConnectOptions {
                keepalive: Some(Duration::from_millis(300)),
                max_ack_timeout: Duration::from_millis(500),
                ..SoftConfig::default().connect
            };
            let engine = SoftEngine::new(SoftConfig { connect, connections_per_caller: 0, ..SoftConfig::default() });
            let link = Box::new(VirtualWire::join(&there.wire, &there.name).unwrap());
            let mut host = Host::new(engine, &there, link, 1).unwrap();
            ready.send(()).unwrap();
            host.run(&seen).unwrap();
        });
        started.recv().unwrap();
        Self { place, _switch: switch, stop, thread: Some(thread), _temp: temp }
    }

    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    fn soak(&self, options: &str) -> Child {
        Command::new(env!("CARGO_BIN_EXE_nacelle-soak"))
            .arg(self.place.identity.ip.to_string())
            .arg("--wire")
            .arg(self.place.wire.path())
            .args(options.split_whitespace())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The numbers in a line.
fn numbers(line: &str) -> Vec<u64> {
    line.split([' ', ',', ':']).filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn a_good_device_passes_and_the_summary_tells_what_was_done() {
    let device = Device::start();
    let output =
        device.soak("--seeds 5 --connections 8 --operations 30 --hostile 3 --restarts").wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.starts_with("the device takes 256 connections, 256 of one caller\n"), "{said}");
    assert_eq!(said.lines().filter(|line| line.starts_with("seed ")).count(), 5, "{said}");
    let line = |begin: &str| said.lines().rfind(|line| line.starts_with(begin)).unwrap_or_else(|| panic!("{said}"));
    assert!(numbers(line("seeds "))[..4].iter().all(|count| *count > 0), "{said}");
    assert_eq!(line("hangs "), "hangs 0, wrong bytes 0, failed requests 0, leaks 0", "{said}");
    assert_eq!(numbers(line("dead "))[3], 5, "the device was checked after each seed: {said}");
    let attacks: Vec<_> = said.lines().filter(|line| line.starts_with("attack ")).map(numbers).collect();
    let (all, cut) = attacks.iter().fold((0, 0), |(all, cut), one| (all + one[0], cut + one[1]));
    assert!(all >= 15 && cut < all, "most attacks come to their end: {said}");
    let [all, spoiled @ ..] = &numbers(line("frames "))[..] else { panic!("{said}") };
    assert!(spoiled.len() == 4 && spoiled.iter().all(|count| (1..*all).contains(count)), "{said}");
}

#[test]
fn a_device_that_is_lost_ends_it_with_the_way_to_run_the_seed_again() {
    let mut device = Device::start();
    let mut soak = device.soak("--first 7 --minutes 5 --connections 4 --operations 1000000 --hostile 1 --patience 3");
    let mut out = BufReader::new(soak.stdout.take().unwrap());
    let mut said = String::new();
    while !said.contains("seed 7") {
        assert!(out.read_line(&mut said).unwrap() > 0, "{said}");
    }
    device.stop();
    out.read_to_string(&mut said).unwrap();
    assert_eq!(soak.wait().unwrap().code(), Some(1), "{said}");
    assert!(said.contains("FAILED with seed 7: "), "{said}");
    let again = format!(
        "again: nacelle-soak {} --first 7 --seeds 1 --connections 4 --operations 1000000 --hostile 1",
        device.place.identity.ip
    );
    assert!(said.lines().any(|line| line == again), "{said}");
    assert!(said.contains("hangs 1, wrong bytes 0") || said.contains("failed requests 1"), "{said}");
    assert!(said.lines().any(|line| line.starts_with("seeds 1, ")), "{said}");
}

/// Connects with the device, and stays until `stop`.
fn stays(device: &Place, stop: &AtomicBool) {
    let mut link = VirtualWire::join_anonymous(&device.wire).unwrap();
    let config = EndpointConfig::new(MacAddr([2, 0, 0, 0, 0, 9]), [10, 77, 0, 99].into(), [7; 32]);
    let (mut endpoint, epoch) = (Endpoint::new(config), Instant::now());
    let now = || nacelle_roce::Instant::from_nanos(epoch.elapsed().as_nanos() as u64);
    endpoint.connect(now(), device.identity.ip, nacelle_wire::mrsp::DEFAULT_PORT, ConnectOptions::default()).unwrap();
    let (mut frame, mut connected) = (vec![0; MAX_FRAME], false);
    while !stop.load(Ordering::Relaxed) {
        while let Some(len) = endpoint.poll_transmit(now(), &mut frame) {
            link.send(&frame[..len]).unwrap();
        }
        if let Some(len) = link.recv(&mut frame, Instant::now() + Duration::from_millis(5)).unwrap() {
            let _ = endpoint.handle(now(), &frame[..len]);
        }
        connected |= core::iter::from_fn(|| endpoint.transport.poll_event())
            .any(|event| matches!(event, Event::Connected { .. }));
    }
    assert!(connected);
}

#[test]
fn what_a_device_does_not_give_back_is_a_leak() {
    let device = Device::start();
    let stop = AtomicBool::new(false);
    let output = std::thread::scope(|threads| {
        let mut soak = device.soak("--seeds 1000 --connections 4 --patience 2");
        let mut out = BufReader::new(soak.stdout.take().unwrap());
        let mut said = String::new();
        while !said.contains("seed 1") {
            assert!(out.read_line(&mut said).unwrap() > 0, "{said}");
        }
        threads.spawn(|| stays(&device.place, &stop));
        out.read_to_string(&mut said).unwrap();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(soak.wait().unwrap().code(), Some(1), "{said}");
        said
    });
    assert!(output.contains(": something leaked: when all was quiet for 4s the device holds"), "{output}");
    assert!(output.contains("10.77.0.99"), "the summary has the address of the connection: {output}");
    assert!(output.contains("hangs 0, wrong bytes 0, failed requests 0, leaks 1"), "{output}");
}
