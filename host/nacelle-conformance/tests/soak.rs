// SPDX-License-Identifier: Apache-2.0
//! `nacelle-soak` against the software device: what it says when all is well, and when the device is lost.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nacelle::DeviceKind;
use nacelle_device::{Host, Place, SoftConfig, SoftEngine};
use nacelle_link::{SwitchHost, VirtualWire, WireDir};
use nacelle_roce::ConnectOptions;

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
            // Peers that vanished are noticed soon.
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

#[test]
fn a_good_device_passes_and_the_summary_tells_what_was_done() {
    let device = Device::start();
    let output = device.soak("--seeds 5 --connections 8 --operations 30 --restarts").wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.starts_with("the device takes 256 connections\n"), "{said}");
    assert_eq!(said.lines().filter(|line| line.starts_with("seed ")).count(), 5, "{said}");
    let [seeds, frames, faults] = [4, 3, 2].map(|back| said.lines().nth_back(back - 1).unwrap());
    assert!(seeds.starts_with("seeds 5, connections "), "{said}");
    assert!(faults.ends_with("hangs 0, wrong bytes 0, failed requests 0, leaked connections 0"), "{said}");
    let numbers =
        |line: &str| -> Vec<u64> { line.split([' ', ',', ':']).filter_map(|word| word.parse().ok()).collect() };
    assert!(numbers(faults)[0] > 0, "peers have come back: {said}");
    let [all, spoiled @ ..] = &numbers(frames)[..] else { panic!("{said}") };
    assert!(spoiled.len() == 4 && spoiled.iter().all(|count| (1..*all).contains(count)), "{said}");
}

#[test]
fn a_device_that_is_lost_ends_it_with_the_way_to_run_the_seed_again() {
    let mut device = Device::start();
    let mut soak = device.soak("--first 7 --minutes 5 --connections 4 --operations 1000000 --patience 3");
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
        "again: nacelle-soak {} --first 7 --seeds 1 --connections 4 --operations 1000000",
        device.place.identity.ip
    );
    assert!(said.lines().any(|line| line == again), "{said}");
    assert!(said.contains("hangs 1, wrong bytes 0") || said.contains("failed requests 1"), "{said}");
    assert!(said.lines().any(|line| line.starts_with("seeds 1, ")), "{said}");
}
