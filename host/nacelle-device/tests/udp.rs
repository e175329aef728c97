// SPDX-License-Identifier: Apache-2.0
//! The client library and the software device over UDP sockets: without privileges, without a wire between them.

mod common;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use common::datagrams::{Bench, quick};
use nacelle::{Device, Error, FunctionCode, LinkChoice, LinkKind, Options, Region};
use nacelle_link::{DatagramLink, Impairments, ROCE_PORT, Route, UdpLink};
use nacelle_manage::{Control, discover};

#[test]
fn calls_of_every_size() {
    let bench = Bench::new();
    let device = bench.connect();
    assert!(device.is_by_udp());
    assert_eq!(device.descriptor().map(|said| (said.link, said.ip)), Some((LinkKind::Udp, bench.place.identity)));
    assert!(device.describe().unwrap().is_some());
    for length in [1, 8, 4096, 4097, 100_000, 3_000_001] {
        bench.increments(&device, length);
    }
    assert!(device.ping(1, 0, Duration::from_secs(5)).unwrap() < Duration::from_secs(5));
    assert_eq!((bench.counter("roce.discard_icrc"), bench.counter("roce.discard_malformed")), (0, 0));
    assert_eq!(discover::list(&bench.place.wire).len(), 1);
    // It stores no frames: there are none.
    assert!(Control::open(&bench.place.wire, &bench.place.name).unwrap().trace(0).is_err());
}

/// Many calls one after the other, where acknowledgements follow the answers, and then silence: none is left unacknowledged.
/// However slow this machine is, an acknowledgement waits for 200 µs, less the age of the time that the device read last, and a
/// repetition for a timeout.
#[test]
fn late_acknowledgements_come_all_the_same() {
    const LATE: Duration = Duration::from_micros(150);
    let bench = Bench::new();
    let device = bench.connect();
    let mut call = device.create(FunctionCode::EMPTY, vec![Region::inout(vec![0; 8])]).unwrap();
    let before = bench.counter("roce.tx_ack");
    let began = Instant::now();
    for _ in 0..500 {
        call.invoke().unwrap();
        call.wait().unwrap();
    }
    let took = began.elapsed();
    assert_eq!(bench.counter("rpc.calls"), 500);
    let fits = |wait: Duration| (took.as_nanos() / wait.as_nanos()) as u64;
    let (sent, repeated) = (bench.counter("roce.tx_ack") - before, bench.counter("roce.retransmitted"));
    // One that waited before the calls, and the last one.
    assert!(sent <= fits(LATE) + 2, "{sent} acknowledgements for 500 calls in {took:?}");
    assert!(repeated <= fits(quick().ack_timeout), "{repeated} packets sent again in {took:?}");
    call.close().unwrap();
    assert!(device.settle(Duration::from_secs(5)).unwrap());
}

/// All calls are under way at once; a connection beyond what the device takes is refused.
#[test]
fn a_thousand_connections_make_calls() {
    let bench = Bench::new();
    let callers: Vec<Device> = (0..4).map(|_| bench.connect()).collect();
    let open = |caller: &Device| caller.create(FunctionCode::INCREMENT, vec![Region::inout(vec![7; 8])]);
    let mut calls: Vec<_> = callers.iter().flat_map(|caller| (0..250).map(|_| open(caller).unwrap())).collect();
    assert!(matches!(open(&callers[0]), Err(Error::Refused { .. })));
    calls.iter_mut().for_each(|call| call.invoke().unwrap());
    for call in &mut calls {
        call.wait().unwrap();
        let mut bytes = [0; 8];
        call.read(0, &mut bytes).unwrap();
        assert_eq!(bytes, [8; 8]);
    }
    assert_eq!(bench.counter("rpc.calls"), 1000);
}

#[test]
fn a_bad_network_costs_time_but_no_byte() {
    let bench = Bench::new();
    let impairments =
        Impairments { loss: 0.02, duplicate: 0.02, reorder: 0.02, corrupt: 0.02, seed: 5, ..Impairments::default() };
    let device = Device::connect(bench.place.identity, &Options { impairments, ..bench.options() }).unwrap();
    bench.increments(&device, 1_000_000);
    assert!(bench.counter("roce.discard_icrc") > 0, "damage was noticed");
}

/// Whatever others send to the port: it is dropped and counted, and calls go on.
#[test]
fn foreign_datagrams_change_nothing() {
    let bench = Bench::new();
    let device = bench.connect();
    let to = SocketAddr::new(bench.place.identity, ROCE_PORT);
    let foreign = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    for length in 0..200 {
        foreign.send_to(&vec![length as u8; length], to).unwrap();
    }
    bench.increments(&device, 10_000);
    let dropped = bench.counter("roce.discard_icrc") + bench.counter("roce.discard_malformed");
    assert_eq!(dropped, 199, "all but the empty one");
}

#[test]
fn callers_side_by_side() {
    let bench = Bench::new();
    std::thread::scope(|scope| {
        for length in [100, 200_000, 500_000] {
            let bench = &bench;
            scope.spawn(move || bench.increments(&bench.connect(), length));
        }
    });
    assert_eq!(bench.counter("rpc.calls"), 6);
}

#[test]
fn where_no_device_is() {
    let free = UdpLink::for_peer(Ipv4Addr::LOCALHOST.into()).unwrap().local().ip(); // and closed again
    assert!(matches!(Device::connect(free, &Options::default()), Err(Error::PortClosed { .. })));
    let wrong = Options { source: Some((Ipv4Addr::new(127, 7, 7, 7).into(), 8)), ..Options::default() };
    let v6: IpAddr = "::1".parse().unwrap();
    assert!(matches!(Device::connect(v6, &wrong), Err(Error::InvalidArgument { .. })));
    let on_wire = Options { link: LinkChoice::Wire, ..Options::default() };
    assert!(matches!(Device::connect(v6, &on_wire), Err(Error::InvalidArgument { .. } | Error::Link(_))));
}

/// The capture has what passed, as an independent reader sees it.
#[test]
fn a_capture_has_what_passed() {
    let bench = Bench::new();
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("call.pcapng");
    let device =
        Device::connect(bench.place.identity, &Options { capture: Some(path.clone()), ..bench.options() }).unwrap();
    bench.increments(&device, 50_000);
    drop(device);
    let bytes = std::fs::read(&path).unwrap();
    let (caller, device) = bench.frames(&bytes);
    assert!(caller >= 26 && device >= 26, "{caller} {device}: 13 packets each way in each of two calls");
}

/// A device on an address of an interface, and a caller beside it on the same machine; over both families.
#[test]
fn an_address_of_an_interface() {
    let peers: [IpAddr; 2] = [[192, 0, 2, 77].into(), "2001:db8::77".parse().unwrap()];
    for peer in peers {
        let Ok(Route { local, .. }) = Route::to(peer) else {
            eprintln!("this machine has no route to {peer}");
            continue;
        };
        if local.is_loopback() {
            continue;
        }
        let bench = Bench::on(UdpLink::bind(local).unwrap());
        let options = Options { link: LinkChoice::Udp, ..bench.options() };
        let device = Device::connect(local, &options).unwrap();
        bench.increments(&device, 100_000);
    }
}
