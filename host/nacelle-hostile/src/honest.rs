// SPDX-License-Identifier: Apache-2.0
//! The well-behaved, who check every byte: a peer that reads and writes the device's memory by RDMA, a driver of the copy engine, a driver
//! of the network card, and a station on the wire that watches what the card sends.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nacelle::{ConnectionOptions, Device, LinkChoice, Options};
use nacelle_copy::Slot;
use nacelle_link::{Link, MAX_FRAME, VirtualWire, WireDir};
use nacelle_pci::PciDevice;
use nacelle_virtio::{LinkConfig, VirtioLink};

use crate::arena::GUARD;
use crate::driver::connect;
use crate::{BOUND, Failure, PARTNER, STATION};

/// EtherTypes for experiments (IEEE 802, 9.2.3): of the station's frames, and of those whose every byte is compared.
const NOISE_TYPE: [u8; 2] = [0x88, 0xb5];
const COMPARED_TYPE: [u8; 2] = [0x88, 0xb6];
/// So many guard bytes behind each other are no accident.
const RUN: usize = 8;
/// Frames of the station for each transfer of the peer, and how long it waits for one: a simulation is slow, and must not have more to receive
/// than it can.
const FRAMES: u64 = 2;
const STATION_WAITS: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// When a frame is sent again, and where its number is.
const AGAIN: Duration = Duration::from_secs(3);
const NUMBER: std::ops::Range<usize> = 14..22;
/// A device that has much to simulate acknowledges late.
const MAX_ACK_TIMEOUT: Duration = Duration::from_secs(8);
const PEER_BYTES: usize = 64 << 10;
const COPY_BYTES: usize = 32 << 10;

/// What threads beside the rounds have seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// They are to end.
    pub(crate) stop: AtomicBool,
    /// Writes and reads of the peer that were right.
    pub(crate) transfers: AtomicU64,
    /// Frames from the card that came to the station for anybody but the partner, and to the partner.
    pub(crate) frames: AtomicU64,
    /// Frames that had to be sent again to the card's user or its partner.
    pub(crate) again: AtomicU64,
    /// Numbers of frames that were given.
    numbers: AtomicU64,
}

impl Seen {
    fn over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

fn wrong(what: &str, why: impl std::fmt::Display) -> Failure {
    Failure::Wrong(format!("{what}: {why}"))
}

/// A peer on the network: random writes into memory of the device, random reads, each compared with a copy.
pub(crate) fn peer(wire: &WireDir, device: std::net::Ipv4Addr, seed: u64, seen: &Seen) -> Result<(), Failure> {
    let failed = |error| wrong("the RDMA peer", error);
    let wire = Some(wire.path().to_owned());
    let mut options = Options { link: LinkChoice::Wire, wire, timeout: BOUND, ..Options::default() };
    options.connect.max_ack_timeout = MAX_ACK_TIMEOUT;
    let device = Device::connect(device, &options).map_err(failed)?;
    let connection = device.open(&ConnectionOptions::default()).map_err(failed)?;
    let remote = connection.remote(PEER_BYTES as u64).map_err(failed)?;
    let mut should = vec![0; PEER_BYTES];
    let mut random = fastrand::Rng::with_seed(seed);
    while !seen.over() {
        let len = if random.bool() { random.usize(1..100) } else { random.usize(1..4000) };
        let at = random.usize(..PEER_BYTES - len);
        if random.bool() {
            random.fill(&mut should[at..at + len]);
            remote.write(at as u64, should[at..at + len].to_vec()).and_then(|write| write.finish()).map_err(failed)?;
        } else {
            let read = remote.read(at as u64, vec![0; len]).and_then(|read| read.finish()).map_err(failed)?;
            if !read.into_vec().is_ok_and(|bytes| bytes == should[at..at + len]) {
                return Err(wrong("the RDMA peer", format!("{len} bytes at {at:#x} are wrong")));
            }
        }
        seen.transfers.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// A frame that the card has sent, as it should be.
fn watch(frame: &[u8], card: [u8; 6], seen: &Seen) -> Result<(), Failure> {
    if frame[6..12] == card && frame[..6] != PARTNER {
        seen.frames.fetch_add(1, Ordering::Relaxed);
        if frame.windows(RUN).any(|some| some == [GUARD; RUN]) {
            return Err(wrong(
                "the station",
                format!("a frame has bytes that were not given to the card: {frame:02x?}"),
            ));
        }
    }
    Ok(())
}

/// Sends frames to the card, wanted or not, and looks at what comes from it.
pub(crate) fn station(mut link: VirtualWire, card: [u8; 6], seed: u64, seen: &Seen) -> Result<(), Failure> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut frame = vec![0; MAX_FRAME];
    let (mut transfers, mut frames) = (0, FRAMES);
    let mut waits = Instant::now();
    while !seen.over() {
        let now = seen.transfers.load(Ordering::Relaxed);
        if now != transfers || waits.elapsed() > STATION_WAITS {
            (transfers, frames, waits) = (now, FRAMES, Instant::now());
        }
        let next = Instant::now() + LOOK_EVERY;
        while let Some(len) = link.recv(&mut frame, next).map_err(|error| wrong("the station", error))? {
            watch(&frame[..len], card, seen)?;
        }
        if frames == 0 {
            continue;
        }
        frames -= 1;
        let len = if random.u8(..4) == 0 { random.usize(60..1514) } else { random.usize(60..128) };
        let mut sent: Vec<u8> = (0..len).map(|_| random.u8(..0x80)).collect();
        sent[..6].copy_from_slice(&if random.u8(..4) == 0 { [0xff; 6] } else { card });
        sent[6..12].copy_from_slice(&STATION);
        sent[12..14].copy_from_slice(&NOISE_TYPE);
        link.send(&sent).map_err(|error| wrong("the station", error))?;
    }
    Ok(())
}

/// A driver of the copy engine: out and back, as often as `go_on` says, once at least.
///
/// If the slot goes wrong by chance (`chance`), copies may fail; what is copied is right all the same.
pub(crate) fn copier(
    path: &Path,
    chance: bool,
    random: &mut fastrand::Rng,
    mut go_on: impl FnMut() -> bool,
) -> Result<u64, Failure> {
    let options = nacelle_copy::Options { timeout: BOUND, ..nacelle_copy::Options::default() };
    let failed = |error| wrong("the copier", error);
    let end = Instant::now() + BOUND;
    let slot = loop {
        match Slot::open(path, &options) {
            Ok(slot) => break slot,
            Err(error) if Instant::now() > end => return Err(failed(error)),
            // The last client may not have been given up yet.
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let [from, to] = [slot.alloc_host(COPY_BYTES).map_err(failed)?, slot.alloc_host(COPY_BYTES).map_err(failed)?];
    let near = slot.alloc_device(COPY_BYTES as u64).map_err(failed)?;
    let mut right = 0;
    loop {
        let mut bytes = vec![0; COPY_BYTES];
        random.fill(&mut bytes);
        from.write(0, &bytes).map_err(failed)?;
        to.write(0, &vec![0; COPY_BYTES]).map_err(failed)?;
        match slot.copy(&from, &near).and_then(|()| slot.copy(&near, &to)) {
            Ok(()) => {
                let mut back = vec![0; COPY_BYTES];
                to.read(0, &mut back).map_err(failed)?;
                if back != bytes {
                    return Err(wrong("the copier", "bytes are wrong"));
                }
                right += 1;
            }
            Err(nacelle_copy::Error::Copy(nacelle_copy::CopyError::Gone { .. })) if !chance => {
                return Err(wrong("the copier", "the device has gone"));
            }
            Err(error) if !chance => return Err(failed(error)),
            Err(_) => {}
        }
        if !go_on() {
            return Ok(right);
        }
    }
}

/// Sends a frame from one link to another, until it has come: a frame may find no room anywhere, as the station sends as well. How often it was
/// sent again.
fn pass(from: &mut dyn Link, to: &mut dyn Link, frame: &[u8], what: &str, seen: Option<&Seen>) -> Result<u64, Failure> {
    let failed = |error| wrong(what, error);
    let end = Instant::now() + BOUND;
    let mut heard = vec![0; MAX_FRAME];
    let mut again = 0;
    while Instant::now() < end {
        from.send(frame).map_err(failed)?;
        let next = Instant::now() + AGAIN;
        while let Some(len) = to.recv(&mut heard, next).map_err(failed)? {
            let there = &heard[..len];
            if there[12..14] != COMPARED_TYPE {
                continue;
            }
            if let Some(seen) = seen {
                seen.frames.fetch_add(1, Ordering::Relaxed);
            }
            if there == frame {
                return Ok(again);
            }
            // One that was sent twice, and came twice.
            if there[NUMBER] == frame[NUMBER] {
                return Err(Failure::Bytes(format!("{what}: there is {there:02x?}, not {frame:02x?}")));
            }
        }
        again += 1;
    }
    Err(Failure::Hang(format!("{what}: a frame does not come")))
}

/// Counts what has come to the partner since: frames that were sent twice, and came twice.
pub(crate) fn count_late(partner: &mut VirtualWire, seen: &Seen) -> Result<(), Failure> {
    let mut frame = vec![0; MAX_FRAME];
    while let Some(len) = partner.recv(&mut frame, Instant::now()).map_err(|error| wrong("the partner", error))? {
        if len >= 14 && frame[12..14] == COMPARED_TYPE {
            seen.frames.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Gives a frame addresses, and a number of its own.
fn header<'a>(frame: &'a mut [u8], to: [u8; 6], from: [u8; 6], seen: &Seen) -> &'a [u8] {
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&from);
    frame[12..14].copy_from_slice(&COMPARED_TYPE);
    frame[NUMBER].copy_from_slice(&seen.numbers.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    frame
}

/// A driver of the card and its partner on the wire, which send each other frames, as often as `go_on` says, once at least.
///
/// If the slot goes wrong by chance, the card may give its rings up; what comes is right all the same.
pub(crate) fn card_user(
    path: &Path,
    partner: &mut VirtualWire,
    card: [u8; 6],
    chance: bool,
    random: &mut fastrand::Rng,
    seen: &Arc<Seen>,
    mut go_on: impl FnMut() -> bool,
) -> Result<u64, Failure> {
    let mut device = connect(path)?;
    // Whatever the last client has left.
    device.reset()?;
    let mut link = match VirtioLink::new(device, LinkConfig::default()) {
        Err(_) if chance => return Ok(0),
        link => link.map_err(|error| wrong("the card's user", error))?,
    };
    let mut right = 0;
    loop {
        let mut frame = vec![0; random.usize(60..1500)];
        random.fill(&mut frame);
        let mut both = || -> Result<(), Failure> {
            let to_partner = header(&mut frame, PARTNER, card, seen);
            let again = pass(&mut link, partner, to_partner, "from the card's user to its partner", Some(seen))?;
            let to_card = header(&mut frame, card, PARTNER, seen);
            let again = again + pass(partner, &mut link, to_card, "from the partner to the card's user", None)?;
            seen.again.fetch_add(again, Ordering::Relaxed);
            Ok(())
        };
        match both() {
            Err(wrong @ Failure::Bytes(_)) => return Err(wrong),
            Err(_) if chance => return Ok(right),
            both => both?,
        }
        right += 1;
        if !go_on() {
            return Ok(right);
        }
    }
}
