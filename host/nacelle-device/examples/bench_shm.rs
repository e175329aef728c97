// SPDX-License-Identifier: Apache-2.0
//! Times calls and WRITEs by shared memory between two processes that poll, and prints every sample as JSON. `bench/host_shm.py` runs
//! this beside UCX and makes figures of it; every wait in it has a deadline.
//!
//! As `bench_shm device` it is the other process, until its standard input ends.

#[path = "bench_udp/process.rs"]
mod process;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nacelle::{Call, Device, DeviceKind, FunctionCode, LinkChoice, Options, Region};
use nacelle_device::{Host, Place, SoftConfig, SoftEngine};
use nacelle_driver::DatagramMedium;
use nacelle_link::{DatagramLink, ShmHub, UdpLink, WireDir};
use process::{Peer, pin, say, until_stdin_ends};
use serde_json::json;

/// How long any one step may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Calls, and WRITEs of so many bytes.
const CALLS: usize = 12_000;
const WRITES: usize = 60;
const WRITE: usize = 32 << 20;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The wire of the measuring process `id`.
fn wire(id: u32) -> PathBuf {
    std::env::temp_dir().join(format!("nacelle-bench-{id}"))
}

/// A software device that shares memory.
fn device() -> Outcome {
    let stop = until_stdin_ends();
    let wire = WireDir::open(wire(std::os::unix::process::parent_id()))?;
    let link = UdpLink::for_peer(Ipv4Addr::LOCALHOST.into())?;
    let address = link.local();
    let place = Place::by_udp(&wire, DeviceKind::Soft, None, address.ip())?;
    let medium = DatagramMedium::new(Box::new(ShmHub::new(link, &wire, &place.name)?));
    let mut host = Host::by_udp(SoftEngine::new(SoftConfig::default()), &place, medium, 1)?;
    say(address)?;
    Ok(host.run(&stop)?)
}

/// The times of `count` calls.
fn timed(call: &mut Call, count: usize) -> Outcome<Vec<f64>> {
    let one = |_| {
        let begin = Instant::now();
        call.invoke()?;
        call.wait()?;
        Ok(begin.elapsed().as_secs_f64())
    };
    (0..count).map(one).collect()
}

fn measure() -> Outcome {
    let peer = Peer::start("device")?;
    let wire = Some(wire(std::process::id()));
    let options = Options { timeout: PATIENCE, link: LinkChoice::Shm, wire, ..Options::default() };
    let device = Device::connect(peer.address.ip(), &options)?;
    let rpc = timed(&mut device.create(FunctionCode::EMPTY, vec![Region::inout(vec![0; 8])])?, CALLS)?;
    let mut large = device.create(FunctionCode::EMPTY, vec![Region::input(vec![0; WRITE])])?;
    timed(&mut large, 1)?;
    let write = timed(&mut large, WRITES)?;
    println!("{}", json!({"processes": [std::process::id(), peer.id()], "rpc": rpc, "write": write, "bytes": WRITE}));
    Ok(())
}

fn main() -> Outcome {
    let is_device = std::env::args().nth(1).as_deref() == Some("device");
    pin(usize::from(is_device))?;
    if is_device {
        return device();
    }
    let outcome = measure();
    let _nothing_else_is_there = std::fs::remove_dir_all(wire(std::process::id()));
    outcome
}
