// SPDX-License-Identifier: Apache-2.0
//! Endpoints on a virtual wire, driven by the loop.

use nacelle_driver::{Frames, Limits, Port, Pump, Station};
use nacelle_link::{Link, SwitchHost, VirtualWire, WireDir};
use nacelle_roce::{
    Access, Batch, ConnectOptions, Endpoint, EndpointConfig, Event, NetworkEvent, SendWr, WcStatus, wire::MacAddr,
};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

fn ip(number: u8) -> Ipv4Addr {
    [10, 0, 0, number].into()
}

fn endpoint(number: u8) -> Endpoint {
    Endpoint::new(EndpointConfig::new(MacAddr([2, 0, 0, 0, 0, number]), ip(number), [number; 32]))
}

fn wire() -> (tempfile::TempDir, WireDir, SwitchHost) {
    let temp = tempfile::tempdir().unwrap();
    let wire = WireDir::open(temp.path().join("wire")).unwrap();
    let switch = SwitchHost::start(&wire).unwrap();
    (temp, wire, switch)
}

fn port(wire: &WireDir, number: u8) -> Port<VirtualWire> {
    Port::new(endpoint(number), VirtualWire::join_anonymous(wire).unwrap())
}

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(2)
}

#[test]
fn a_write_from_one_port_to_another() {
    let (_temp, wire, _switch) = wire();
    let (mut client, mut server) = (port(&wire, 1), port(&wire, 2));
    server.endpoint.transport.listen(7);
    let now = client.now();
    let conn = client.endpoint.connect(now, ip(2), 7, ConnectOptions::default()).unwrap();
    let region = loop {
        client.turn(soon()).unwrap();
        server.turn(soon()).unwrap();
        if let Some(Event::ConnectRequest { conn, .. }) = server.poll_event() {
            let region = server.endpoint.transport.register(vec![0; 9000], Access::REMOTE_WRITE, Some(conn)).unwrap();
            let now = server.now();
            server.endpoint.transport.accept(now, conn, ConnectOptions::default()).unwrap();
            break region;
        }
    };
    // The event of the interface does not hide the one of the transport, nor does one that nothing waits for.
    let now = client.now();
    client.endpoint.interface.resolve(now, ip(2));
    let connected = |event: &Event| matches!(event, Event::Connected { .. }).then_some(());
    while client.take_event(connected).is_none() {
        client.turn(soon()).unwrap();
        server.turn(soon()).unwrap();
    }
    let mac = client.take_network_event(|event| match event {
        NetworkEvent::Resolved { mac, .. } => Some(*mac),
        _ => None,
    });
    assert_eq!(mac, Some(MacAddr([2, 0, 0, 0, 0, 2])));
    let data = vec![5; 9000];
    client.endpoint.transport.post_send(conn, SendWr::write(1, &data[..], region.addr, region.rkey)).unwrap();
    loop {
        client.turn(soon()).unwrap();
        server.turn(soon()).unwrap();
        if let Some(Event::Completion(done)) = client.poll_event() {
            assert_eq!(done.status, WcStatus::Success);
            break;
        }
    }
    assert_eq!(server.endpoint.transport.deregister(region.id).unwrap().into_vec().unwrap(), data);
}

#[test]
fn a_turn_sleeps_until_a_timer_expires_or_its_end() {
    let (_temp, wire, _switch) = wire();
    let mut alone = port(&wire, 1);
    let began = Instant::now();
    alone.turn(began + Duration::from_millis(50)).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(50), "{:?}", began.elapsed());
    // The request for an address is repeated after a second: the turn sends it, and sleeps until then at most.
    let now = alone.now();
    alone.endpoint.interface.resolve(now, ip(2));
    let began = Instant::now();
    alone.turn(began + Duration::from_secs(10)).unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

/// Counts frames, and takes some of them only.
struct Picky {
    room: usize,
    taken: Vec<Vec<u8>>,
    to_send: usize,
    worked: usize,
}

impl<L: Link> Station<Frames<L>> for Picky {
    fn is_ready(&mut self) -> bool {
        self.room > 0
    }
    fn receive(&mut self, _: Instant, frame: &[u8]) {
        self.room -= 1;
        self.taken.push(frame.to_vec());
    }
    fn work(&mut self, _: Instant) {
        self.worked += 1;
    }
    fn transmit(&mut self, _: Instant, frame: &mut [u8], _batch: Batch) -> Option<usize> {
        self.to_send = self.to_send.checked_sub(1)?;
        frame[..60].fill(0);
        frame[..6].fill(0xff);
        Some(60)
    }
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

#[test]
fn a_turn_keeps_its_limits_and_leaves_frames_to_a_station_that_is_not_ready() {
    let (_temp, wire, _switch) = wire();
    let mut other = VirtualWire::join_anonymous(&wire).unwrap();
    let mut pump = Pump::new(VirtualWire::join_anonymous(&wire).unwrap());
    let mut frame = [0; 60];
    frame[..6].fill(0xff);
    frame[6] = 2;
    for number in 0..5 {
        frame[20] = number;
        other.send(&frame).unwrap();
    }
    let mut station = Picky { room: 3, taken: Vec::new(), to_send: 4, worked: 0 };
    let limits = Limits { receive: 2, transmit: 3 };
    let deadline = Instant::now() + Duration::from_secs(5);
    while station.taken.len() < 3 && Instant::now() < deadline {
        let (before, left) = (station.taken.len(), station.to_send);
        pump.turn(Instant::now(), &mut station, limits).unwrap();
        assert!(station.taken.len() - before <= 2 && left - station.to_send <= 3);
    }
    assert!(station.worked >= 2);
    pump.turn(Instant::now(), &mut station, limits).unwrap();
    assert_eq!(station.taken.len(), 3, "it had room for three");
    station.room = 9;
    while station.taken.len() < 5 && Instant::now() < deadline {
        pump.turn(Instant::now(), &mut station, limits).unwrap();
    }
    let numbers: Vec<u8> = station.taken.iter().map(|frame| frame[20]).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    assert_eq!((station.to_send, pump.link().stats().tx_frames), (0, 4));
}
