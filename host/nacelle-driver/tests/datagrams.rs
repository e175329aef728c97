// SPDX-License-Identifier: Apache-2.0
//! Which sends are written in the room of a link.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use nacelle_driver::{DatagramMedium, Medium};
use nacelle_link::{
    DatagramLink, Delivery, Icrc, Incoming, LinkError, LinkStats, MAX_BATCH, Outgoing, PcapngWriter, Placed,
};
use nacelle_roce::{
    Hop, Path, Transmit,
    wire::{Ecn, icrc},
};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// What was sent: whether in place, and the bytes.
type Sent = Arc<Mutex<Vec<(bool, Vec<u8>)>>>;

/// A link with room.
struct Roomy {
    room: Vec<u8>,
    has_room: bool,
    sent: Sent,
    never: UnixStream,
}

impl DatagramLink for Roomy {
    fn local(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, 4791).into()
    }
    fn max_segments(&self) -> usize {
        16
    }
    fn icrc(&self, to: IpAddr) -> Icrc {
        if to == PEER { Icrc::LeftOut } else { Icrc::Kept }
    }
    fn send(&mut self, outgoing: Outgoing<'_>) -> Result<Delivery, LinkError> {
        self.has_room = outgoing.bytes.len() != 20_001;
        self.sent.lock().unwrap().push((false, outgoing.bytes.to_vec()));
        Ok(Delivery::Done)
    }
    fn room(&mut self) -> Option<&mut [u8]> {
        self.has_room.then_some(&mut self.room)
    }
    fn send_placed(&mut self, placed: Placed) {
        assert_eq!((placed.to, placed.ecn, placed.segment_size), (PEER, Ecn::Ect0 as u8, None));
        self.sent.lock().unwrap().push((true, self.room[..placed.len].to_vec()));
    }
    fn recv(&mut self, _: &mut dyn FnMut(Incoming<'_>)) -> Result<bool, LinkError> {
        Ok(false)
    }
    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.never.as_fd()
    }
    fn stats(&self) -> LinkStats {
        LinkStats::default()
    }
}

fn medium() -> (DatagramMedium, Sent) {
    let sent = Sent::default();
    let (never, _) = UnixStream::pair().unwrap();
    let link = Roomy { room: vec![0; MAX_BATCH], has_room: true, sent: Arc::clone(&sent), never };
    (DatagramMedium::new(Box::new(link)), sent)
}

/// Sends so many bytes, each of them this one.
fn send(medium: &mut DatagramMedium, len: usize, byte: u8) {
    send_to(medium, PEER, len, byte);
}

fn send_to(medium: &mut DatagramMedium, remote: IpAddr, len: usize, byte: u8) {
    let path = Path { local: Ipv4Addr::LOCALHOST.into(), remote, hop: Hop::default() };
    let transmit = Transmit { path, source_port: 4791, dscp: 0, ecn: Ecn::Ect0, len, segment_size: None };
    let sent = medium.transmit(|buffer, batch| {
        assert_eq!((buffer.len(), batch.segments), (MAX_BATCH, 16));
        buffer[..len].fill(byte);
        Some(transmit)
    });
    assert!(sent.unwrap());
}

/// So many bytes, each of them this one but those of the ICRC.
fn unsealed(len: usize, byte: u8) -> Vec<u8> {
    let mut bytes = vec![byte; len];
    bytes[len - 4..].fill(0);
    bytes
}

/// Only what is sent over a network has an ICRC, and what a capture shows.
#[test]
fn packets_are_sealed_where_they_can_be_damaged() {
    let (mut medium, sent) = medium();
    let network = IpAddr::from([10, 0, 0, 3]);
    let dir = tempfile::tempdir().unwrap();
    send_to(&mut medium, PEER, 100, 1);
    send_to(&mut medium, network, 100, 1);
    let writer = PcapngWriter::create(&dir.path().join("a.pcapng"), &["test"], "a test").unwrap();
    medium.recorder().start(writer);
    send_to(&mut medium, PEER, 100, 1);
    let sent = sent.lock().unwrap();
    let right = |to| {
        let (from, to) = ((Ipv4Addr::LOCALHOST, 4791).into(), SocketAddr::new(to, 4791));
        let icrc = icrc::of_datagram(from, to, 0, &[1; 96]).unwrap();
        [&[1; 96][..], &icrc].concat()
    };
    let wanted = [unsealed(100, 1), right(network), right(PEER)];
    assert!(sent.iter().map(|(_, bytes)| bytes).eq(&wanted));
}

/// A short send is copied at once to where the other side looks. Behind a long one they are written in place, until a short one.
#[test]
fn long_sends_are_written_in_place() {
    let (mut medium, sent) = medium();
    let lens = [100, 100, 60_000, 60_000, 50_000, 200, 200, 20_001, 60_000, 100];
    for (byte, len) in lens.into_iter().enumerate() {
        send(&mut medium, len, byte as u8);
        assert!(!medium.transmit(|_, _| None).unwrap());
    }
    let sent = sent.lock().unwrap();
    assert!(sent.iter().zip(lens).enumerate().all(|(byte, ((_, got), len))| *got == unsealed(len, byte as u8)));
    // That of 20 001 bytes has left no room.
    let in_place: Vec<bool> = sent.iter().map(|(in_place, _)| *in_place).collect();
    assert_eq!(in_place, [false, false, false, true, true, true, false, false, false, true]);
}

/// What a capture has is what was sent, not what another may have made of it.
#[test]
fn nothing_is_written_in_place_while_a_capture_runs() {
    let (mut medium, sent) = medium();
    let dir = tempfile::tempdir().unwrap();
    send(&mut medium, 60_000, 1);
    let writer = PcapngWriter::create(&dir.path().join("a.pcapng"), &["test"], "a test").unwrap();
    medium.recorder().start(writer);
    send(&mut medium, 60_000, 2);
    assert!(medium.recorder().stop().unwrap());
    send(&mut medium, 60_000, 3);
    let in_place: Vec<bool> = sent.lock().unwrap().iter().map(|(in_place, _)| *in_place).collect();
    assert_eq!(in_place, [false, false, true]);
}
