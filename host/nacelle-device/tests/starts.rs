// SPDX-License-Identifier: Apache-2.0
//! Devices that start at the same time: each has a name and an address of its own, or says why not.

mod common;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::{Arc, Barrier};

use common::Running;
use nacelle_device::{DeviceError, Place, SoftConfig, SoftEngine};
use nacelle_link::WireDir;
use nacelle_manage::{Control, DeviceKind, discover};

fn wire() -> (tempfile::TempDir, WireDir) {
    let temp = tempfile::tempdir().unwrap();
    let wire = WireDir::open(temp.path().join("wire")).unwrap();
    (temp, wire)
}

/// Looks for a place in 20 threads at once, and starts a device in each that was found.
fn start(
    wire: &WireDir,
    name: Option<&'static str>,
    address: Option<(Ipv4Addr, u8)>,
) -> Vec<Result<(Place, Running), DeviceError>> {
    let barrier = Arc::new(Barrier::new(20));
    let start = || {
        let (wire, barrier) = (wire.clone(), Arc::clone(&barrier));
        std::thread::spawn(move || {
            barrier.wait();
            let place = Place::find(&wire, DeviceKind::Soft, name, address)?;
            let device = Running::start(&place, || SoftEngine::new(SoftConfig::default()));
            Ok((place, device))
        })
    };
    let threads: Vec<_> = (0..20).map(|_| start()).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn twenty_that_start_at_once_are_twenty() {
    let (_temp, wire) = wire();
    let devices: Vec<_> = start(&wire, None, None).into_iter().map(Result::unwrap).collect();
    let names: BTreeSet<_> = devices.iter().map(|(place, _)| place.name.clone()).collect();
    let addresses: BTreeSet<_> = devices.iter().map(|(place, _)| place.identity.ip).collect();
    assert_eq!((names.len(), addresses.len()), (20, 20));
    for (place, _) in &devices {
        let said = Control::open(&wire, &place.name).unwrap().info().unwrap();
        assert_eq!((&said.name, said.ip), (&place.name, place.identity.ip.into()));
    }
    assert_eq!(discover::list(&wire).iter().filter(|found| found.alive).count(), 20);
}

#[test]
fn of_twenty_with_one_name_or_one_address_one_starts() {
    let (_temp, wire) = wire();
    for (name, address) in [(Some("mine"), None), (None, Some((Ipv4Addr::new(10, 77, 5, 5), 16)))] {
        let outcomes = start(&wire, name, address);
        let started = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        let taken = outcomes.iter().filter(|outcome| matches!(outcome, Err(DeviceError::Taken { .. }))).count();
        assert_eq!((started, taken), (1, 19));
    }
    // Names and addresses come back.
    Place::find(&wire, DeviceKind::Soft, Some("mine"), Some((Ipv4Addr::new(10, 77, 5, 5), 16))).unwrap();
}

/// What lies where a device writes is not followed and not written through.
#[test]
fn files_that_are_in_the_way_are_replaced() {
    let (temp, wire) = wire();
    let victim = temp.path().join("victim");
    std::fs::write(&victim, b"precious").unwrap();
    for name in [".mine.draft", "mine.device.json", "mine.ctl", ".switch.sock.lock"] {
        std::os::unix::fs::symlink(&victim, wire.file(name)).unwrap();
        let place = Place::find(&wire, DeviceKind::Soft, Some("mine"), None);
        if name == ".switch.sock.lock" {
            assert!(nacelle_link::SwitchHost::start(&wire).is_err());
            continue;
        }
        let device = Running::start(&place.unwrap(), || SoftEngine::new(SoftConfig::default()));
        assert!(Control::open(&wire, "mine").unwrap().info().is_ok());
        drop(device);
        let _gone = std::fs::remove_file(wire.file(".switch.sock.lock"));
    }
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
}
