// SPDX-License-Identifier: Apache-2.0
//! `nacelle bench`: figures that hang together, on each link, and devices that do not give all.

use std::time::Instant;

mod bench;
#[path = "../../nacelle/tests/peer/mod.rs"]
mod peer;

use bench::{Bench, stdout};
use nacelle_link::{SwitchHost, VirtualWire, WireDir};
use peer::Manners;
use serde_json::Value;

#[test]
fn a_device_is_measured_on_each_link() {
    let bench = Bench::new();
    for options in ["--udp", ""] {
        let device = bench.device(options);
        let began = Instant::now();
        let all = bench.json(&format!("bench {} --seconds 0.02 --sizes 100000,1000", device.name));
        let latencies = all["latencies"].as_array().unwrap();
        assert_eq!(latencies.len(), 5);
        for one in latencies {
            let time = |key: &str| one[key].as_f64().unwrap();
            assert!(time("p50_us") > 0.0 && time("p99_us") >= time("p50_us"), "{one}");
            assert!(one["runs"].as_u64().unwrap() >= 1, "{one}");
        }
        // From large to small: a larger one would be left out where the smaller one was slow.
        let rates = all["throughput"].as_array().unwrap();
        let bytes: Vec<_> = rates.iter().map(|rate| rate["bytes"].as_u64().unwrap()).collect();
        assert_eq!(bytes, [100_000, 1000]);
        // The command took longer than a transfer of any kind, however slow this machine is.
        let took = began.elapsed().as_secs_f64();
        for rate in rates {
            for way in ["write", "read"] {
                let bytes = rate["bytes"].as_f64().unwrap();
                assert!(rate[way].as_f64().is_some_and(|speed| speed > bytes / took), "{rate} {way}, {took} s");
            }
        }
        assert_eq!(all["notes"], Value::Array(vec![]));
    }
}

#[test]
fn what_a_device_does_not_give_is_named_and_not_measured() {
    let bench = Bench::new();
    let device = bench.device("--udp --memory 1");
    let output = bench.good(&format!("bench {} --seconds 0.01 --sizes 2000000,4096", device.ip));
    let (out, said) = (stdout(&output), bench::stderr(&output));
    assert!(said.contains("2000000 bytes are not measured") && said.contains("refused the regions"), "{said}");
    assert!(out.contains("READ of 8 bytes") && out.contains("Gbit/s"), "{out}");
    drop(device);

    let wire = WireDir::open(bench.file("wire")).unwrap();
    let _switch = SwitchHost::start(&wire).unwrap();
    let _peer = peer::serve(Box::new(VirtualWire::join(&wire, "peer").unwrap()), Manners::default());
    let output = bench.run(&format!("bench {} --seconds 0.01 --sizes 100", peer::IP));
    // This one lets callers WRITE only.
    assert_eq!(output.status.code(), Some(6), "{}", bench::stderr(&output));
    assert!(bench::stderr(&output).contains("remote access error"), "{}", bench::stderr(&output));
    bench.bad("bench nobody", 3, &["nobody"]);
    bench.bad("bench 127.0.0.2 --sizes 0", 2, &["0"]);
}
