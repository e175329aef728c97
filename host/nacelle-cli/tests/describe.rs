// SPDX-License-Identifier: Apache-2.0
//! `nacelle describe`: a device by UDP and on the wire, one that tells nothing, and none at all.

mod bench;
#[path = "../../nacelle/tests/peer/mod.rs"]
mod peer;

use bench::{Bench, stdout};
use nacelle_link::{SwitchHost, VirtualWire, WireDir};
use peer::Manners;

#[test]
fn a_device_is_described_with_its_functions_limits_and_link() {
    let bench = Bench::new();
    for (options, link) in [
        ("--udp", "shared memory: soft0 runs on this machine and shares memory"),
        ("--udp --no-shm", "UDP: it is a loopback address"),
        ("", "wire: soft0 publishes it"),
    ] {
        let device = bench.device(options);
        let text = stdout(&bench.good(&format!("describe {}", device.name)));
        for words in [
            link,
            "contexts (8), long set-up, windows, selective repeat",
            "1024 MiB",
            "32 regions a connection, 8 calls at a time",
            "16 matmul(in arguments, in A, in B, out C)   kernel matmul 1.0",
            "Adds 1 to every byte",
            "result 0x11: a region is smaller",
        ] {
            assert!(text.contains(words), "no {words:?} in {text}");
        }
        let all = bench.json(&format!("describe {}", device.ip));
        assert_eq!(all["published"]["name"], device.name.as_str());
        assert_eq!(all["description"]["functions"][0]["name"], "increment");
        assert_eq!((&all["agreed"]["contexts"], &all["agreed"]["path_mtu"]), (&8.into(), &4096.into()));
        // By datagrams an acknowledgement may follow the answer, and there are no Ethernet addresses.
        assert_eq!(all["agreed"]["late_acknowledgement"], !options.is_empty());
        assert_eq!(all["agreed"]["mac"].is_string(), options.is_empty());
        let id = all["agreed"]["device_id"].as_str().unwrap();
        assert!(id.len() == 16 && text.contains(&format!("device id          {id}")), "{id}: {text}");
        // On the wire it is the EUI-64 of the MAC address.
        if let Some(mac) = all["agreed"]["mac"].as_str() {
            assert_eq!(
                (&id[2..6], &id[6..10], &id[10..]),
                (&mac.replace(':', "")[2..6], "fffe", &mac.replace(':', "")[6..])
            );
        }
        assert!(all["description"]["build"].as_str().unwrap().ends_with(env!("CARGO_PKG_VERSION")), "{all}");
    }
}

#[test]
fn a_smaller_mtu_is_agreed_on() {
    let bench = Bench::new();
    let device = bench.device("--udp");
    assert_eq!(bench.json(&format!("describe {} --mtu 1500", device.ip))["agreed"]["path_mtu"], 1024);
}

#[test]
fn a_device_that_tells_nothing_is_described_by_what_it_agrees_to() {
    let bench = Bench::new();
    let wire = WireDir::open(bench.file("wire")).unwrap();
    let _switch = SwitchHost::start(&wire).unwrap();
    let _peer = peer::serve(Box::new(VirtualWire::join(&wire, "peer").unwrap()), Manners::default());
    let text = stdout(&bench.good(&format!("describe {}", peer::IP)));
    assert!(text.contains("gives no description") && text.contains("10.77.0.0/16 is the subnet"), "{text}");
    let all = bench.json(&format!("describe {}", peer::IP));
    assert!(all["description"].is_null() && all["published"].is_null());
    assert_eq!(all["agreed"]["contexts"], 0);
}

#[test]
fn what_is_not_there_is_not_described() {
    let bench = Bench::new();
    bench.bad("describe nobody", 3, &["nobody"]);
    bench.bad("describe 127.0.9.99", 3, &["port unreachable", "nothing listens on its UDP port 4791"]);
}
