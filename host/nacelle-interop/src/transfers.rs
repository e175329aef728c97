// SPDX-License-Identifier: Apache-2.0
//! One-sided transfers, by the library: a host whose windows a verbs program writes and reads, and a program that writes and reads memory
//! of its peer.

use core::net::Ipv4Addr;
use core::time::Duration;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use nacelle::memory::Shared;
use nacelle::{ConnectionOptions, Device, LinkChoice, Options};
use nacelle_device::{Acceptor, AcceptorOptions, Failure as Refusal, SoftPlace, Windows};
use nacelle_link::Impairments;

use crate::StationArgs;
use crate::failure::{Failure, Outcome, check};

/// Port of devices and hosts.
pub(crate) const PORT: u16 = nacelle_device::SERVICE_PORT;
/// What `nacelle_window_client` tells: three writes, one that is refused, a read.
pub(crate) const TOLD: u32 = 5;

/// How long a host stays after the last callback.
const LINGER: Duration = Duration::from_millis(500);
/// As in `interop/guest/nacelle_window_client.c`.
const WINDOW: u32 = 1;
const LONGEST: usize = 1 << 20;
const TABLE: usize = 100_000;
const TABLE_SEED: u64 = 7;
const REFUSED: u8 = 0x42;

/// The bytes that follow from a seed, as `fill` in `interop/guest/session.c` makes them.
fn fill(length: usize, seed: u64) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let step = |_| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 32) as u8
    };
    (0..length).map(step).collect()
}

/// What a peer has told, or what was wrong with it.
type Told = Mutex<Sender<Result<String, String>>>;

fn tell(told: &Told, what: Result<String, String>) -> Result<(), Refusal> {
    let right = what.is_ok();
    // When nobody listens any more, the run has ended.
    let _ = told.lock().map(|told| told.send(what));
    if right { Ok(()) } else { Err(Refusal::BAD_ARGUMENTS) }
}

/// Has windows until `count` writes and reads were told.
pub(crate) fn windows(args: &StationArgs, count: u32) -> Outcome {
    let place = SoftPlace::Wire(Some((args.ip.ip, args.ip.prefix)));
    let options =
        AcceptorOptions { wire: args.wire.clone(), name: Some(args.name.clone()), ..AcceptorOptions::at(place) };
    let windows = Windows::new();
    let (written, told) = channel();
    let read = Mutex::new(written.clone());
    let written: Told = Mutex::new(written);
    let _to_be_written = windows.accept_incoming_write(WINDOW, LONGEST, move |write| match write.label {
        0 => {
            tell(&written, Ok(format!("{} was refused", write.peer)))?;
            Err(Refusal::new(REFUSED).unwrap_or(Refusal::BAD_ARGUMENTS))
        }
        seed => {
            let length = write.bytes.len();
            let is_right = write.bytes == fill(length, seed.into());
            let what = format!("{} wrote {length} bytes, with the right contents", write.peer);
            tell(&written, if is_right { Ok(what) } else { Err(format!("{length} bytes are wrong")) })
        }
    })?;
    let table = Arc::new(Shared::new(fill(TABLE, TABLE_SEED)));
    let _to_be_read = windows.accept_incoming_read(WINDOW, &table, move |incoming| {
        tell(&read, Ok(format!("{} has read, label {}", incoming.peer, incoming.label)))
    })?;
    let _host = Acceptor::start(&options.with_windows(&windows))?;
    for _ in 0..count {
        let patience = Duration::from_secs_f64(args.timeout.clamp(0.1, 86400.0));
        let what = told.recv_timeout(patience).map_err(|_| Failure::Timeout("waiting for the peer".into()))?;
        println!("ok: {}", what.map_err(Failure::Wrong)?);
    }
    // The last answer is under way, and the peer disconnects.
    std::thread::sleep(LINGER);
    Ok(())
}

/// Writes and reads memory of the peer.
pub(crate) fn memory(args: &StationArgs, peer: Ipv4Addr, port: u16, size: usize) -> Outcome {
    let options = Options {
        link: LinkChoice::Wire,
        wire: args.wire.clone(),
        source: Some((args.ip.ip.into(), args.ip.prefix)),
        port: Some(port),
        mtu: Some(args.mtu),
        timeout: Duration::from_secs_f64(args.timeout.clamp(0.1, 86400.0)),
        capture: args.capture.clone(),
        impairments: Impairments { loss: args.loss / 100.0, seed: args.seed, ..Impairments::default() },
        ..Options::default()
    };
    let device = Device::connect(core::net::IpAddr::V4(peer), &options)?;
    let connection = device.open(&ConnectionOptions::default())?;
    let remote = connection.remote(size as u64)?;
    let sent = fill(size, 3);
    // In pieces that are under way together, and in another order than they are read.
    let pieces: Vec<usize> = (0..size).step_by(size.div_ceil(16)).collect();
    let piece = |at: usize| at..size.min(at + size.div_ceil(16));
    let written: Vec<_> =
        pieces.iter().rev().map(|&at| remote.write(at as u64, sent[piece(at)].to_vec())).collect::<Result<_, _>>()?;
    written.into_iter().try_for_each(|transfer| transfer.finish().map(drop))?;
    let reads: Vec<_> =
        pieces.iter().map(|&at| remote.read(at as u64, vec![0; piece(at).len()])).collect::<Result<_, _>>()?;
    let mut got = Vec::new();
    for read in reads {
        got.extend(read.finish()?.into_vec()?);
    }
    check(got == sent, || "what was read is not what was written".into())?;
    println!("ok: {size} bytes of {peer} written and read, with the right contents");
    Ok(())
}
