// SPDX-License-Identifier: Apache-2.0
//! The UDP socket: batches there and back, addresses of callers, ports that are taken.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use nacelle_link::{
    DatagramLink, Delivery, ImpairedDatagrams, Impairments, Incoming, LinkError, Outgoing, ROCE_PORT, Route, UdpLink,
    wait_readable,
};

fn loopback() -> UdpLink {
    UdpLink::for_peer(Ipv4Addr::LOCALHOST.into()).unwrap()
}

/// Datagrams until there are `count`, each with what came with it: the sender, and how many came in the same piece.
fn receive(link: &mut dyn DatagramLink, count: usize) -> Vec<(IpAddr, u8, Vec<u8>)> {
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut all = Vec::new();
    while all.len() < count && Instant::now() < deadline {
        let came = link
            .recv(&mut |incoming| {
                let Incoming { from, ecn, bytes, stride } = incoming;
                all.extend(bytes.chunks(stride).map(|d| (from.ip(), ecn, d.source().to_vec())));
            })
            .unwrap();
        if !came {
            let until = link.next_event().map_or(deadline, |at| at.min(deadline));
            wait_readable([link.poll_fd()], Some(until)).unwrap();
        }
    }
    all
}

/// Sends a batch with a congestion mark and a datagram without; both arrive, the former with the mark `expected`.
fn batch(a: &mut UdpLink, b: &mut UdpLink, expected: u8) {
    let to = b.local().ip();
    let batch: Vec<u8> = (0..10u32 * 1000 + 300).map(|i| i as u8).collect();
    let outgoing = Outgoing { to, ecn: 2, bytes: &batch, segment_size: Some(1000) };
    assert!(a.max_segments() >= 11, "this kernel has no UDP_SEGMENT");
    assert_eq!(a.send(outgoing).unwrap(), Delivery::Done);
    assert_eq!(a.send(Outgoing { bytes: b"alone", segment_size: None, ecn: 0, ..outgoing }).unwrap(), Delivery::Done);
    let got = receive(b, 12);
    assert_eq!(got.len(), 12);
    for (index, (from, ecn, datagram)) in got.iter().enumerate() {
        assert_eq!(*from, a.local().ip());
        let (marked, sent) = batch.chunks(1000).nth(index).map_or((0, &b"alone"[..]), |chunk| (expected, chunk));
        assert!(datagram == sent, "datagram {index}");
        assert_eq!(*ecn, marked, "datagram {index}");
    }
    assert_eq!((a.stats().tx_frames, b.stats().rx_frames), (12, 12));
    assert_eq!(a.stats().tx_bytes, 10_305);
}

/// The loopback interface does without marks.
#[test]
fn a_batch_comes_as_its_datagrams() {
    batch(&mut loopback(), &mut loopback(), 0);
}

#[test]
fn an_interface_carries_marks() {
    let Ok(Route { local, .. }) = Route::to([192, 0, 2, 77].into()) else {
        eprintln!("this machine has no interface but the loopback");
        return;
    };
    if !local.is_loopback() {
        batch(&mut UdpLink::for_peer(local).unwrap(), &mut UdpLink::bind(local).unwrap(), 2);
    }
}

#[test]
fn a_datagram_that_is_too_long_is_dropped() {
    let mut link = loopback();
    let outgoing = Outgoing { to: link.local().ip(), ecn: 0, bytes: &[0; 65_535], segment_size: None };
    assert_eq!(link.send(outgoing).unwrap(), Delivery::Done);
    assert_eq!((link.stats().tx_frames, link.stats().tx_dropped), (0, 1));
}

#[test]
fn a_taken_port_names_its_owner() {
    let taken = loopback();
    let address = taken.local().ip();
    match UdpLink::bind(address) {
        Err(LinkError::PortTaken { address: named, by: Some(by) }) => {
            assert_eq!(named, address);
            assert!(by.contains(&format!("process {}", std::process::id())), "{by}");
        }
        other => panic!("{other:?}"),
    }
    // Unlike another port of the same address.
    UdpSocket::bind((address, 0)).unwrap();
}

#[test]
fn an_address_of_another_machine_cannot_be_bound() {
    for address in ["192.0.2.77", "0.0.0.0", "224.0.0.1", "2001:db8::7"] {
        let address: IpAddr = address.parse().unwrap();
        assert!(matches!(UdpLink::bind(address), Err(LinkError::NotLocal { .. })), "{address}");
    }
}

#[test]
fn a_caller_gets_a_loopback_address_of_its_own() {
    let links: Vec<UdpLink> = (0..20).map(|_| loopback()).collect();
    for (index, link) in links.iter().enumerate() {
        let IpAddr::V4(ip) = link.local().ip() else { panic!() };
        assert!(ip.is_loopback() && ip.octets()[1] != 0, "{ip}");
        assert_eq!(link.local().port(), ROCE_PORT);
        assert!(links[..index].iter().all(|other| other.local() != link.local()));
    }
    let route = Route::to(Ipv4Addr::LOCALHOST.into()).unwrap();
    assert!(route.ip_mtu >= 4200, "{route:?}");
}

#[test]
fn impairments_lose_double_and_damage_datagrams() {
    let (a, mut b) = (loopback(), loopback());
    let to = b.local().ip();
    let rules = Impairments { loss: 0.2, duplicate: 0.2, corrupt: 0.2, seed: 3, ..Impairments::default() };
    let mut a = ImpairedDatagrams::new(a, rules);
    let batch = Outgoing { to, ecn: 0, bytes: &[0; 20], segment_size: Some(10) };
    assert_eq!((a.send(batch).unwrap(), a.max_segments()), (Delivery::NotSegmented, 1));
    for _ in 0..200 {
        a.send(Outgoing { segment_size: None, ..batch }).unwrap();
    }
    let got = receive(&mut b, 150);
    let damaged = got.iter().filter(|(_, _, datagram)| *datagram != [0; 20]).count();
    assert!((150..220).contains(&got.len()), "{}", got.len());
    assert!((10..80).contains(&damaged), "{damaged}");
}
