// SPDX-License-Identifier: Apache-2.0
//! `nacelle doctor`: healthy devices, and each reason why one cannot be called.

mod bench;
#[path = "../../nacelle/tests/peer/mod.rs"]
mod peer;

use std::net::UdpSocket;

use bench::{Bench, stderr, stdout};
use nacelle_link::{SwitchHost, VirtualWire, WireDir};
use nacelle_wire::cm::RejReason;
use peer::{Manners, Outgoing};
use serde_json::Value;

/// The steps of a diagnosis that finds nothing wrong.
fn healthy(bench: &Bench, line: &str) -> Vec<(String, String)> {
    let all = bench.json(&format!("doctor {line}"));
    assert_eq!(all["healthy"], true);
    let text = |step: &Value, key: &str| step[key].as_str().unwrap().to_owned();
    let steps = all["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["outcome"] == "ok"), "{steps:?}");
    steps.iter().map(|step| (text(step, "step"), text(step, "found"))).collect()
}

/// A diagnosis that finds a fault in `step`, saying these words, and stops there.
fn faulty(bench: &Bench, line: &str, step: &str, words: &[&str]) {
    let output = bench.run(&format!("doctor {line}"));
    let (out, said) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(1), "{line}: {out}{said}");
    let fails: Vec<_> = out.lines().filter(|line| line.starts_with("FAIL")).collect();
    assert!(fails.len() == 1 && fails[0].split_at(6).1.starts_with(step), "{line}: {out}");
    assert!(out.lines().last().unwrap().starts_with("-     round trip"), "{line}: {out}");
    assert!(said.starts_with(&format!("error: {step}: ")), "{line}: {said}");
    for word in words {
        assert!(said.contains(word), "{line}: no {word:?} in {said}");
    }
    let output = bench.run(&format!("doctor {line} --json"));
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let failed = all["steps"].as_array().unwrap().iter().find(|step| step["outcome"] == "fail").unwrap();
    assert_eq!((&all["healthy"], &failed["step"]), (&false.into(), &step.into()));
    assert!(failed["try"].as_str().is_some_and(|hint| said.contains(hint)), "{failed}");
}

#[test]
fn a_healthy_device_passes_every_step_on_each_link() {
    let bench = Bench::new();
    let device = bench.device("--udp");
    let steps = healthy(&bench, &device.name);
    assert_eq!(steps.len(), 8);
    assert!(steps[1].1.contains("soft0 runs on this machine and shares memory"), "{steps:?}");
    let steps = healthy(&bench, &format!("{} --link udp --mtu 1500", device.name));
    let names: Vec<_> = steps.iter().map(|(name, _)| name.as_str()).collect();
    let (way, end) = (["address", "link", "route", "interface", "path MTU", "local port", "device's host"], 7);
    assert_eq!(names[..end], way);
    assert_eq!(names[end..], ["connection", "description", "memory", "round trip"]);
    assert!(
        steps[1].1.contains("it is asked for") && steps[4].1.starts_with("1024 bytes at most: --mtu 1500"),
        "{steps:?}"
    );
    assert!(steps[7].1.contains("late acknowledgement"), "{steps:?}");

    let wired = bench.device("");
    let steps = healthy(&bench, &wired.ip);
    assert_eq!(steps.len(), 9);
    assert!(steps[1].1.contains("publishes it") && steps[7].1.contains("8192 bytes written and read"), "{steps:?}");
}

#[test]
fn absent_devices_are_told_apart() {
    let bench = Bench::new();
    faulty(&bench, "127.0.9.98", "device's host", &["port unreachable", "nacelle device --soft --udp"]);
    faulty(&bench, "nobody", "address", &["'nobody' is no address", "no device runs there"]);
    faulty(&bench, "10.77.0.2", "wire", &["no device and no switch"]);
    faulty(&bench, "224.0.0.1", "link", &["no address of a device"]);
    faulty(&bench, "::1 --link wire", "link", &["which carry IPv4 only"]);
    let mut device = bench.device("");
    faulty(&bench, "10.77.3.3 --timeout 0.5", "device's host", &["no host on the wire answers ARP for 10.77.3.3"]);
    faulty(&bench, "nobody", "address", &["there are soft0"]);
    device.child.kill().unwrap();
    device.child.wait().unwrap();
    faulty(&bench, "soft0", "address", &["soft0 is published at 10.77.0.2, but does not answer", "start"]);
}

#[test]
fn a_port_that_is_taken_is_named_with_its_owner() {
    let bench = Bench::new();
    let device = bench.device("--udp");
    let _other = UdpSocket::bind("127.0.9.97:4791").unwrap();
    let owner = format!("(process {})", std::process::id());
    faulty(
        &bench,
        &format!("{} --source 127.0.9.97", device.ip),
        "local port",
        &["UDP port 4791 of 127.0.9.97 is taken by", &owner],
    );
    faulty(&bench, &format!("{} --source 192.0.2.254", device.ip), "interface", &["192.0.2.254"]);
}

#[test]
fn a_peer_that_rejects_or_says_nothing_is_no_device() {
    let bench = Bench::new();
    let _silent = UdpSocket::bind("127.0.9.96:4791").unwrap();
    faulty(&bench, "127.0.9.96 --timeout 0.4", "connection", &["no answer (REP or REJ)", "firewalls"]);
    let device = bench.device("--udp");
    faulty(&bench, &format!("{} --port 9", device.ip), "connection", &["reason 8", "nacelle explain reject 8"]);

    let wire = WireDir::open(bench.file("wire")).unwrap();
    let _switch = SwitchHost::start(&wire).unwrap();
    let link = || Box::new(VirtualWire::join(&wire, "peer").unwrap());
    let peer = peer::serve(link(), Manners { refuses: Some(RejReason::CONSUMER), ..Manners::default() });
    let ip = peer::IP.to_string();
    faulty(&bench, &ip, "connection", &["refused by the application (reason 28)", "another service"]);
    drop(peer);
    // It accepts, and what is written is not acknowledged.
    let sends = Box::new(|frame| frame != Outgoing::Ack);
    let _peer = peer::serve(link(), Manners { sends, ..Manners::default() });
    faulty(&bench, &format!("{ip} --timeout 1"), "memory", &["full packets do not get through", "--mtu"]);
}
