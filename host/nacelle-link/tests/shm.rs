// SPDX-License-Identifier: Apache-2.0
//! Shared memory between a device's end and callers: batches both ways, sleep and wake, ends that vanish; and attacks from outside by
//! a peer that has the descriptors and keeps to no rule. It writes the shared memory as a file, so that this needs no unsafe code.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nacelle_link::{
    DatagramLink, Delivery, Icrc, Incoming, LinkError, LinkStats, MAX_BATCH, Outgoing, Placed, ShmHub, ShmLink,
    UdpLink, WireDir, offers_shm, wait_readable,
};
use nacelle_memory::Bytes;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketAddrUnix, SocketType,
};

const NAME: &str = "soft0";
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a ring, and of the words before its records; where the second ring is: the one to the caller.
const RING: u64 = 1 << 20;
const HEAD: u64 = 128;
const SECOND: u64 = (HEAD + RING).next_multiple_of(4096);
/// The version of the greeting.
const VERSION: u16 = 3;

struct Place {
    wire: WireDir,
    _temp: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        Self { wire: WireDir::open(temp.path().join("wire")).unwrap(), _temp: temp }
    }

    fn hub(&self) -> ShmHub<UdpLink> {
        ShmHub::new(UdpLink::for_peer(Ipv4Addr::LOCALHOST.into()).unwrap(), &self.wire, NAME).unwrap()
    }

    fn socket(&self) -> PathBuf {
        self.wire.file("soft0.shm")
    }
}

/// What a link receives: the sender, the marks, and each datagram.
type Got = Vec<(IpAddr, u8, Vec<u8>)>;

fn receive(link: &mut dyn DatagramLink) -> Got {
    let mut got = Vec::new();
    let mut take = |Incoming { from, ecn, bytes, stride }: Incoming<'_>| {
        got.extend(bytes.chunks(stride).map(|datagram| (from.ip(), ecn, datagram.source().to_vec())));
    };
    link.recv(&mut take).unwrap();
    got
}

/// Serves a hub until `done` gives something.
fn serve<T>(hub: &mut ShmHub<UdpLink>, mut done: impl FnMut(&mut ShmHub<UdpLink>, Got) -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let got = receive(hub);
        if let Some(found) = done(hub, got) {
            return found;
        }
        assert!(Instant::now() < deadline, "it did not come");
    }
}

/// A caller; the hub is served meanwhile.
fn join(place: &Place, hub: &mut ShmHub<UdpLink>) -> Result<ShmLink, LinkError> {
    join_with(place, hub, Icrc::LeftOut)
}

fn join_with(place: &Place, hub: &mut ShmHub<UdpLink>, icrc: Icrc) -> Result<ShmLink, LinkError> {
    let wire = place.wire.clone();
    let thread = std::thread::spawn(move || ShmLink::open(&wire, NAME, icrc));
    serve(hub, |_, _| thread.is_finished().then_some(()));
    thread.join().unwrap()
}

fn send(link: &mut dyn DatagramLink, to: IpAddr, bytes: &[u8]) {
    assert_eq!(link.send(Outgoing { to, ecn: 0, bytes, segment_size: None }).unwrap(), Delivery::Done);
}

#[test]
fn batches_pass_both_ways() {
    let place = Place::new();
    assert!(!offers_shm(&place.wire, NAME));
    let mut hub = place.hub();
    assert!(offers_shm(&place.wire, NAME));
    let mut caller = join(&place, &mut hub).unwrap();
    let (here, there) = (caller.local().ip(), hub.local().ip());
    assert_eq!((caller.device(), hub.callers()), (there, 1));
    // More than the ring has, so that it goes round.
    for round in 0..60u32 {
        let batch: Vec<u8> = (0..64_300).map(|byte| (byte + round) as u8).collect();
        let outgoing = Outgoing { to: there, ecn: 2, bytes: &batch, segment_size: Some(4096) };
        assert_eq!(caller.send(outgoing).unwrap(), Delivery::Done);
        let got = serve(&mut hub, |_, got| (!got.is_empty()).then_some(got));
        assert_eq!(got.len(), 16);
        assert!(got.iter().all(|(from, ecn, _)| *from == here && *ecn == 2));
        assert!(got.iter().map(|(.., datagram)| &datagram[..]).eq(batch.chunks(4096)), "round {round}");
        assert_eq!(hub.send(Outgoing { to: here, ecn: 1, ..outgoing }).unwrap(), Delivery::Done);
        let got = receive(&mut caller);
        assert!(got.iter().map(|(.., datagram)| &datagram[..]).eq(batch.chunks(4096)), "round {round}");
        assert!(got.iter().all(|(from, ecn, _)| *from == there && *ecn == 1));
    }
    let LinkStats { tx_frames, rx_frames, tx_dropped, .. } = hub.stats();
    assert_eq!((tx_frames, rx_frames, tx_dropped), (960, 960, 0));
    assert_eq!(caller.stats().rx_frames, 960);
}

/// Packets have no ICRC unless one end wants it. With it they are copied out and nothing is written in place, since it is computed
/// over what may not change.
#[test]
fn the_icrc_is_left_out_where_both_ends_agree() {
    let place = Place::new();
    for (device_wants, caller_wants) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut hub = if device_wants { place.hub().keeping_icrc() } else { place.hub() };
        let kept = |wants| if wants { Icrc::Kept } else { Icrc::LeftOut };
        let mut caller = join_with(&place, &mut hub, kept(caller_wants)).unwrap();
        let (here, there) = (caller.local().ip(), hub.local().ip());
        let wanted = kept(device_wants || caller_wants);
        assert_eq!((caller.icrc(there), hub.icrc(here)), (wanted, wanted));
        assert_eq!(hub.icrc(Ipv4Addr::LOCALHOST.into()), Icrc::Kept, "by UDP");
        assert_eq!(caller.room().is_some(), wanted == Icrc::LeftOut);
        send(&mut caller, there, b"to the device");
        send(&mut hub, here, b"to the caller");
        for link in [&mut hub as &mut dyn DatagramLink, &mut caller] {
            let mut is_shared = None;
            let mut take = |incoming: Incoming<'_>| is_shared = Some(matches!(incoming.bytes, Bytes::Shared(_)));
            while !link.recv(&mut take).unwrap() {}
            assert_eq!(is_shared, Some(wanted == Icrc::LeftOut));
        }
    }
}

/// A caller writes into the ring itself where that has room, and nothing is sent but what is placed.
#[test]
fn a_caller_writes_in_place() {
    let place = Place::new();
    let mut hub = place.hub();
    let mut caller = join(&place, &mut hub).unwrap();
    let (here, there) = (caller.local().ip(), hub.local().ip());
    let (mut placed, mut copied) = (0, 0);
    for round in 0..60u8 {
        let batch: Vec<u8> = (0..64_300u32).map(|byte| byte as u8 ^ round).collect();
        let wanted = Placed { to: there, ecn: 1, len: batch.len(), segment_size: Some(4096) };
        if let Some(room) = caller.room() {
            assert_eq!(room.len(), MAX_BATCH);
            room[..batch.len()].copy_from_slice(&batch);
            caller.send_placed(wanted);
            placed += 1;
        } else {
            let outgoing = Outgoing { to: there, ecn: 1, bytes: &batch, segment_size: wanted.segment_size };
            assert_eq!(caller.send(outgoing).unwrap(), Delivery::Done);
            copied += 1;
        }
        let got = serve(&mut hub, |_, got| (!got.is_empty()).then_some(got));
        assert!(got.iter().all(|(from, ecn, _)| *from == here && *ecn == 1));
        assert!(got.iter().map(|(.., datagram)| &datagram[..]).eq(batch.chunks(4096)), "round {round}");
    }
    assert_eq!((placed, copied), (60, 0));
    // What was written is not sent, or is for nobody.
    caller.room().unwrap().fill(7);
    caller.room().unwrap().fill(8);
    caller.send_placed(Placed { to: Ipv4Addr::LOCALHOST.into(), ecn: 0, len: 9, segment_size: None });
    send(&mut caller, there, b"the next");
    let got = serve(&mut hub, |_, got| (!got.is_empty()).then_some(got));
    assert_eq!(got, [(here, 0, b"the next".to_vec())]);
    assert_eq!((caller.stats().tx_frames, caller.stats().tx_no_carrier), (60 * 16 + 1, 1));
    // Nobody reads: there is room until the ring is full. Then the device is gone.
    let mut full = 0;
    while caller.room().is_some() {
        caller.send_placed(Placed { to: there, ecn: 0, len: MAX_BATCH, segment_size: None });
        full += 1;
    }
    assert!((2..17).contains(&full), "{full}");
    drop(hub);
    let deadline = Instant::now() + PATIENCE;
    while caller.poll_gone().is_none() {
        receive(&mut caller);
        assert!(Instant::now() < deadline, "the device is not gone");
    }
    assert!(caller.room().is_none());
}

/// Each caller gets what is for it; the link beside serves others, and nobody there has an address of a caller.
#[test]
fn several_callers_and_others() {
    let place = Place::new();
    let mut hub = place.hub();
    let device = hub.local().ip();
    let mut callers: Vec<ShmLink> = (0..5).map(|_| join(&place, &mut hub).unwrap()).collect();
    let mut other = UdpLink::for_peer(device).unwrap();
    for index in 0..5u8 {
        send(&mut callers[usize::from(index)], device, &[index; 9]);
    }
    send(&mut other, device, b"by UDP");
    let mut all = Vec::new();
    serve(&mut hub, |_, got| {
        all.extend(got);
        (all.len() == 6).then_some(())
    });
    for (from, _, datagram) in all {
        hub.send(Outgoing { to: from, ecn: 0, bytes: &datagram, segment_size: None }).unwrap();
    }
    for (index, caller) in callers.iter_mut().enumerate() {
        let got = receive(caller);
        assert_eq!(got, [(device, 0, vec![index as u8; 9])]);
    }
    let deadline = Instant::now() + PATIENCE;
    while receive(&mut other).is_empty() {
        assert!(Instant::now() < deadline, "the answer by UDP");
    }
    // Nobody has this address.
    send(&mut hub, Ipv4Addr::new(0, 9, 9, 9).into(), b"nobody");
    assert_eq!(hub.stats().tx_no_carrier, 1);
    // A caller reaches its device only.
    send(&mut callers[0], Ipv4Addr::LOCALHOST.into(), b"no");
    assert_eq!(callers[0].stats().tx_no_carrier, 1);
}

/// Either end sleeps after it has said so, and wakes when something comes.
#[test]
fn sleeping_ends_are_woken() {
    let place = Place::new();
    let mut hub = place.hub();
    let mut caller = join(&place, &mut hub).unwrap();
    let (device, here) = (hub.local().ip(), caller.local().ip());
    let thread = std::thread::spawn(move || {
        for round in 0..50 {
            std::thread::sleep(Duration::from_micros(round * 20));
            send(&mut caller, device, &[round as u8]);
            let deadline = Instant::now() + PATIENCE;
            while receive(&mut caller).is_empty() {
                assert!(Instant::now() < deadline, "round {round}");
                caller.arm();
                wait_readable([caller.poll_fd()], Some(deadline)).unwrap();
            }
        }
    });
    for round in 0..50u8 {
        let began = Instant::now();
        let got = loop {
            let got = receive(&mut hub);
            if !got.is_empty() {
                break got;
            }
            assert!(began.elapsed() < PATIENCE, "round {round}");
            hub.arm();
            wait_readable([hub.poll_fd()], Some(began + PATIENCE)).unwrap();
        };
        assert_eq!(got, [(here, 0, vec![round])]);
        std::thread::sleep(Duration::from_micros(u64::from(50 - round) * 20));
        send(&mut hub, here, b"answer");
    }
    thread.join().unwrap();
}

/// What an end has sent before it vanished still comes; then the other end is told, at once.
#[test]
fn ends_that_vanish_are_noticed() {
    let place = Place::new();
    let mut hub = place.hub();
    let device = hub.local().ip();
    let mut caller = join(&place, &mut hub).unwrap();
    let here = caller.local().ip();
    send(&mut caller, device, b"last words");
    drop(caller);
    let mut words = Vec::new();
    let began = Instant::now();
    let gone = serve(&mut hub, |hub, got| {
        words.extend(got);
        hub.poll_gone()
    });
    assert_eq!((gone, words), (here, vec![(here, 0, b"last words".to_vec())]));
    assert!(began.elapsed() < Duration::from_secs(1) && hub.callers() == 0);

    let mut caller = join(&place, &mut hub).unwrap();
    send(&mut hub, caller.local().ip(), b"good bye");
    drop(hub);
    caller.arm();
    wait_readable([caller.poll_fd()], Some(began + PATIENCE)).unwrap();
    assert_eq!(receive(&mut caller), [(device, 0, b"good bye".to_vec())]);
    assert!(receive(&mut caller).is_empty());
    assert_eq!((caller.poll_gone(), caller.poll_gone()), (Some(device), None));
    assert!(!offers_shm(&place.wire, NAME), "its socket is gone");

    // It is back under its address: what is sent opens the link again.
    send(&mut caller, device, b"nobody");
    assert_eq!(caller.stats().tx_no_carrier, 1);
    let mut hub = ShmHub::new(UdpLink::bind(device).unwrap(), &place.wire, NAME).unwrap();
    let here = caller.local().ip();
    let thread = std::thread::spawn(move || {
        let deadline = Instant::now() + PATIENCE;
        while caller.stats().tx_frames == 0 && Instant::now() < deadline {
            send(&mut caller, device, b"again");
            std::thread::sleep(Duration::from_millis(5));
        }
        caller
    });
    assert_eq!(serve(&mut hub, |_, got| got.first().cloned()), (here, 0, b"again".to_vec()));
    drop(thread.join().unwrap());
}

/// A ring that nobody reads delays its sender for a moment, once, and nobody else.
#[test]
fn a_caller_that_does_not_read_delays_nobody() {
    let place = Place::new();
    let mut hub = place.hub();
    let idle = join(&place, &mut hub).unwrap();
    let mut other = join(&place, &mut hub).unwrap();
    let (idle_ip, other_ip, bytes) = (idle.local().ip(), other.local().ip(), vec![7; 60_000]);
    let began = Instant::now();
    for _ in 0..2000 {
        send(&mut hub, idle_ip, &bytes);
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(hub.stats().tx_frames + hub.stats().tx_dropped, 2000);
    assert_eq!(hub.stats().tx_frames, RING / 60_008);
    send(&mut hub, other_ip, b"for the other");
    assert_eq!(receive(&mut other).len(), 1);
}

/// What a caller that keeps to no rule has: its socket, and the descriptors.
struct Attacker {
    _socket: OwnedFd,
    fds: Vec<OwnedFd>,
}

fn connect(place: &Place) -> OwnedFd {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    rustix::net::connect(&socket, &SocketAddrUnix::new(place.socket()).unwrap()).unwrap();
    socket
}

fn greeting(version: u16) -> Vec<u8> {
    let mut message = b"NCsm".to_vec();
    message.extend_from_slice(&version.to_ne_bytes());
    message.resize(24, 0);
    message
}

impl Attacker {
    fn join(place: &Place, hub: &mut ShmHub<UdpLink>) -> Self {
        let socket = connect(place);
        rustix::net::send(&socket, &greeting(VERSION), SendFlags::empty()).unwrap();
        let callers = hub.callers();
        serve(hub, |hub, _| (hub.callers() > callers).then_some(()));
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut message = [0; 64];
        rustix::net::recvmsg(&socket, &mut [IoSliceMut::new(&mut message)], &mut control, RecvFlags::empty()).unwrap();
        let rights = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        Self { fds: rights.flatten().collect(), _socket: socket }
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        rustix::io::pwrite(&self.fds[0], bytes, offset).unwrap();
    }

    fn read(&self, offset: u64) -> u64 {
        let mut word = [0; 8];
        rustix::io::pread(&self.fds[0], &mut word, offset).unwrap();
        u64::from_ne_bytes(word)
    }
}

/// Rings full of nonsense, at any time: whoever wrote it is dropped, or its nonsense comes as datagrams; the others go on.
#[test]
fn a_hostile_ring_costs_its_owner_only() {
    let place = Place::new();
    let mut hub = place.hub();
    let device = hub.local().ip();
    let mut honest = join(&place, &mut hub).unwrap();
    let here = honest.local().ip();
    let mut random = fastrand::Rng::with_seed(3);
    let interesting = [1u64, 8, 16, 64, RING, RING + 8, 1 << 63, u64::MAX, u64::MAX - 7];
    let mut dropped = 0;
    for round in 0..150u64 {
        let attacker = Attacker::join(&place, &mut hub);
        for _ in 0..20 {
            let value = if random.bool() { random.u64(..) } else { interesting[random.usize(..interesting.len())] };
            let words = [0, 64, HEAD, 136, 192, SECOND, SECOND + 64, SECOND + HEAD];
            attacker.write(words[random.usize(..words.len())], &value.to_ne_bytes());
            let callers = hub.callers();
            let _nonsense = receive(&mut hub);
            hub.arm();
            let addresses = (1..300u32).map(|host| IpAddr::V4(Ipv4Addr::from_bits(host)));
            for to in addresses.filter(|to| *to != here).take(200) {
                send(&mut hub, to, b"to whoever it is");
            }
            dropped += callers - hub.callers();
        }
        send(&mut honest, device, &round.to_ne_bytes());
        serve(&mut hub, |_, got| {
            got.into_iter().find(|(from, _, bytes)| *from == here && *bytes == round.to_ne_bytes())
        });
        drop(attacker);
        serve(&mut hub, |hub, _| (hub.callers() == 1).then_some(()));
    }
    assert!(dropped > 50, "{dropped}");
}

/// A record for each line of the ring, for ever: each look takes one, and others have their turn.
#[test]
fn a_ring_that_never_ends_delays_nobody() {
    let place = Place::new();
    let mut hub = place.hub();
    let device = hub.local().ip();
    let mut honest = join(&place, &mut hub).unwrap();
    let here = honest.local().ip();
    let attacker = Attacker::join(&place, &mut hub);
    // One byte each.
    let records: Vec<u8> =
        [1u64 << 24 | 1, 0, 0, 0, 0, 0, 0, 0].map(u64::to_ne_bytes).concat().repeat(RING as usize / 64);
    attacker.write(HEAD, &records);
    for round in 0..100 {
        send(&mut honest, device, b"honest");
        let began = Instant::now();
        let mut looks = 0;
        serve(&mut hub, |_, got| {
            looks += 1;
            got.iter().any(|(from, ..)| *from == here).then_some(())
        });
        assert!(looks < 40 && began.elapsed() < Duration::from_secs(1), "round {round}: {looks} looks");
    }
    // It goes on for as long as the memory says, and no longer when its socket is closed.
    drop(attacker);
    serve(&mut hub, |hub, _| (hub.callers() == 1).then_some(()));
}

/// A caller that changes a record while it is used, and one that says that it has no end: its bytes change and nothing else, or it is
/// dropped.
#[test]
fn a_record_that_changes_while_it_is_used_is_no_other_record() {
    let header = |len: u64, stride: u64| (len | stride << 24).to_ne_bytes();
    let place = Place::new();
    let mut hub = place.hub();
    let attacker = Attacker::join(&place, &mut hub);
    attacker.write(HEAD + 128, &header(9, 9));
    attacker.write(HEAD + 8, &[1; 100]);
    attacker.write(HEAD, &header(100, 40));
    let mut lens = Vec::new();
    let mut take = |incoming: Incoming<'_>| {
        for changed in [header(65_000, 1), header(0, 0), [0xff; 8]] {
            attacker.write(HEAD, &changed);
        }
        attacker.write(HEAD + 8 + 40, &[2; 40]);
        lens.extend(incoming.bytes.chunks(incoming.stride).map(|datagram| datagram.len()));
        let mut second = [0; 40];
        incoming.bytes.split_at(40).1.split_at(40).0.source().copy_to(&mut second);
        assert_eq!(second, [2; 40], "these are the caller's own bytes");
        assert_eq!(attacker.read(0), 0, "the record's place is not free yet");
    };
    while !hub.recv(&mut take).unwrap() {}
    assert_eq!((lens, attacker.read(0)), (vec![40, 40, 20], 128));
    assert_eq!(serve(&mut hub, |_, got| got.first().map(|(.., bytes)| bytes.len())), 9, "the next one is where it was");
    drop(attacker);
    serve(&mut hub, |hub, _| (hub.callers() == 0).then_some(()));
    // One that goes on behind the end of the ring.
    let attacker = Attacker::join(&place, &mut hub);
    let long = 65_472;
    for index in 0..RING / long {
        attacker.write(HEAD + index * long, &header(long - 8, long - 8));
    }
    attacker.write(HEAD + RING / long * long, &header(RING % long, 1));
    let mut taken = 0;
    serve(&mut hub, |hub, got| {
        taken += got.len() as u64;
        (hub.callers() == 0).then_some(())
    });
    assert_eq!(taken, RING / long);
}

#[test]
fn shared_memory_cannot_be_taken_away() {
    let place = Place::new();
    let mut hub = place.hub();
    let attacker = Attacker::join(&place, &mut hub);
    let memory = &attacker.fds[0];
    for length in [0, 1 << 30] {
        assert!(rustix::fs::ftruncate(memory, length).is_err(), "{length}");
    }
    // Counters at their end wake, and block nobody.
    for counter in &attacker.fds[1..] {
        rustix::io::write(counter, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    }
    attacker.write(SECOND + 64, &1u64.to_ne_bytes());
    let ip = Ipv4Addr::new(0, 0, 0, 1).into();
    let began = Instant::now();
    for _ in 0..100 {
        receive(&mut hub);
        hub.arm();
        send(&mut hub, ip, b"wake");
    }
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(hub.stats().tx_frames, 100);
}

#[test]
fn bad_greetings_are_turned_away() {
    let place = Place::new();
    let mut hub = place.hub();
    let silent: Vec<OwnedFd> = (0..20)
        .map(|_| {
            let socket = connect(&place);
            // The hub looks.
            hub.arm();
            receive(&mut hub);
            socket
        })
        .collect();
    for message in [vec![], vec![0], greeting(VERSION - 1), greeting(VERSION)[..23].to_vec(), vec![7; 4000]] {
        let socket = connect(&place);
        rustix::net::send(&socket, &message, SendFlags::NOSIGNAL).unwrap();
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(20) {
            receive(&mut hub);
        }
        assert_eq!(hub.callers(), 0);
    }
    // Those that say nothing keep their places for a moment only.
    let began = Instant::now();
    let mut caller = None;
    while caller.is_none() && began.elapsed() < PATIENCE {
        caller = join(&place, &mut hub).ok();
    }
    assert!(caller.is_some() && hub.callers() == 1);
    drop(silent);
}

#[test]
fn there_is_room_for_so_many_callers() {
    let place = Place::new();
    let mut hub = place.hub();
    let mut callers: Vec<ShmLink> = (0..64).map(|_| join(&place, &mut hub).unwrap()).collect();
    assert!(matches!(join(&place, &mut hub), Err(LinkError::Shm { .. })));
    callers.pop();
    serve(&mut hub, |hub, _| hub.poll_gone());
    join(&place, &mut hub).unwrap();
}

/// What a device that keeps to no rule offers: the caller says no, within bounded time.
#[test]
fn bad_offers_are_refused() {
    let place = Place::new();
    let path = place.socket();
    let listener = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    rustix::net::bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    rustix::net::listen(&listener, 4).unwrap();
    let size = 2 * SECOND as usize;
    let memory = |length: usize, seals: SealFlags| {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("test", flags).unwrap();
        rustix::fs::ftruncate(&file, length as u64).unwrap();
        rustix::fs::fcntl_add_seals(&file, seals).unwrap();
        file
    };
    let all = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    let good = memory(size, all);
    let short = memory(size - 4096, all);
    let open = memory(size, SealFlags::GROW | SealFlags::SEAL);
    let counter = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
    let offer = |address: [u8; 4]| {
        let mut message = greeting(VERSION);
        let mapped = |ip: [u8; 4]| Ipv4Addr::from(ip).to_ipv6_mapped().octets();
        message[8..24].copy_from_slice(&mapped(address));
        message.extend_from_slice(&mapped([127, 0, 0, 2]));
        message.extend_from_slice(&(size as u64).to_ne_bytes());
        message
    };
    let (right, foreign) = (offer([0, 0, 0, 1]), offer([10, 0, 0, 1]));
    let c = counter.as_fd();
    let cases: [(&[u8], Vec<BorrowedFd<'_>>, bool); 8] = [
        (&right, vec![good.as_fd(), c, c], true),
        (&right, vec![], false),
        (&right, vec![good.as_fd(), c], false),
        (&right, vec![good.as_fd(), c, c, c], false),
        (&right, vec![short.as_fd(), c, c], false),
        (&right, vec![open.as_fd(), c, c], false),
        (&right, vec![c, c, c], false),
        (&foreign, vec![good.as_fd(), c, c], false),
    ];
    for (index, (message, fds, is_good)) in cases.iter().enumerate() {
        let wire = place.wire.clone();
        let thread = std::thread::spawn(move || ShmLink::open(&wire, NAME, Icrc::LeftOut).map(|_| ()));
        let socket = rustix::net::accept(&listener).unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
        }
        rustix::net::sendmsg(&socket, &[IoSlice::new(message)], &mut control, SendFlags::empty()).unwrap();
        assert_eq!(thread.join().unwrap().is_ok(), *is_good, "case {index}");
    }
    // One that says nothing.
    let wire = place.wire.clone();
    let began = Instant::now();
    assert!(matches!(ShmLink::open(&wire, NAME, Icrc::LeftOut), Err(LinkError::Shm { .. })));
    assert!(began.elapsed() < PATIENCE);
}
