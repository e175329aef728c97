// SPDX-License-Identifier: Apache-2.0
//! Calls to a software device: alone, with their set-up, with loss, and on many connections.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use nacelle::{Call, Connection, ConnectionOptions, Device, DeviceKind, FunctionCode, Options, Region};
use nacelle_device::{Host, Place, SoftConfig, SoftEngine};
use nacelle_driver::DatagramMedium;
use nacelle_link::{Impairments, UdpLink, WireDir};

use crate::process::{say, until_stdin_ends};
use crate::{Outcome, PATIENCE};

/// Connections that the device takes.
const CONNECTIONS: usize = 2048;
/// Connections of one caller, which can have 256.
const OF_ONE: usize = 250;

/// The other process: a software device on a loopback address.
pub(crate) fn device() -> Outcome {
    let stop = until_stdin_ends();
    let temp = tempfile::tempdir()?;
    let link = UdpLink::for_peer(Ipv4Addr::LOCALHOST.into())?;
    let wire = WireDir::open(temp.path().join("wire"))?;
    let medium = DatagramMedium::new(Box::new(link));
    let address = medium.local();
    let place = Place::by_udp(&wire, DeviceKind::Soft, None, address.ip())?;
    let config = SoftConfig { connections: CONNECTIONS, connections_per_caller: 0, ..SoftConfig::default() };
    let mut host = Host::by_udp(SoftEngine::new(config), &place, medium, 1)?;
    say(address)?;
    Ok(host.run(&stop)?)
}

/// Whether a region's memory is locked before the device gets to know it, as an RDMA NIC's driver does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pages {
    /// As the allocator gives them: there when they are first touched.
    Fresh,
    /// Locked into memory by mlock(2).
    Pinned,
}

fn pin(bytes: &[u8]) -> Outcome {
    // SAFETY: the range is that of a slice. Locking it changes no byte of it; unmapping ends the lock.
    #[allow(unsafe_code)]
    unsafe { rustix::mm::mlock(bytes.as_ptr().cast_mut().cast(), bytes.len()) }
        .map_err(|error| format!("mlock(2): {error}"))?;
    Ok(())
}

/// The time of each of `count` times `work`.
pub(crate) fn timed(count: usize, mut work: impl FnMut() -> Outcome) -> Outcome<Vec<f64>> {
    let one = |_| {
        let begin = Instant::now();
        work()?;
        Ok(begin.elapsed().as_secs_f64())
    };
    (0..count).map(one).collect()
}

/// One whole call.
fn run(call: &mut Call) -> Outcome {
    call.invoke()?;
    Ok(call.wait()?)
}

/// A caller of the device.
pub(crate) struct Caller {
    ip: IpAddr,
    device: Device,
    /// Calls that were set up, by their regions: bytes, and whether they come back.
    calls: HashMap<(usize, bool), Call>,
    /// Callers with loss, by the bits of the number.
    lossy: HashMap<u64, Call>,
}

fn options(loss: f64) -> Options {
    let impairments = Impairments { loss, seed: 7, ..Impairments::default() };
    // Between blocks of samples this caller is silent, and the device may end its connections.
    Options { timeout: PATIENCE, impairments, reconnect: true, ..Options::default() }
}

impl Caller {
    /// Reaches the device.
    pub(crate) fn reach(ip: IpAddr) -> Outcome<Self> {
        let device = Device::connect(ip, &options(0.0))?;
        Ok(Self { ip, device, calls: HashMap::new(), lossy: HashMap::new() })
    }

    /// A connection for calls with a set-up of their own. The device ends one whose caller is silent for long.
    fn open(&self) -> Outcome<Connection> {
        Ok(self.device.open(&ConnectionOptions::default())?)
    }

    /// Calls with one region of `length` bytes, set up once; it comes back with `back`.
    pub(crate) fn calls(&mut self, length: usize, back: bool, count: usize) -> Outcome<Vec<f64>> {
        if !self.calls.contains_key(&(length, back)) {
            let memory = vec![0; length];
            let region = if back { Region::inout(memory) } else { Region::input(memory) };
            let mut call = self.device.create(FunctionCode::EMPTY, vec![region])?;
            run(&mut call)?;
            self.calls.insert((length, back), call);
        }
        let call = self.calls.get_mut(&(length, back)).ok_or("no call")?;
        timed(count, || run(call))
    }

    /// Drops what was set up: large regions would be in each other's way.
    pub(crate) fn forget(&mut self) {
        self.calls.clear();
        self.lossy.clear();
    }

    /// Set-ups of a region of `length` bytes on an open connection.
    pub(crate) fn set_up(&self, length: usize, pages: Pages, count: usize) -> Outcome<Vec<f64>> {
        let connection = self.open()?;
        let mut times = Vec::new();
        for _ in 0..count {
            let memory: Vec<u8> = vec![0; length];
            let begin = Instant::now();
            if pages == Pages::Pinned {
                pin(&memory)?;
            }
            let call = connection.create(FunctionCode::EMPTY, vec![Region::input(memory)])?;
            times.push(begin.elapsed().as_secs_f64());
            call.close()?;
        }
        Ok(times)
    }

    /// One call each with the set-up of its region of `length` bytes.
    pub(crate) fn exchanges(&self, length: usize, count: usize) -> Outcome<Vec<f64>> {
        let connection = self.open()?;
        timed(count, || {
            let mut call = connection.create(FunctionCode::EMPTY, vec![Region::input(vec![1; length])])?;
            run(&mut call)?;
            call.close()?;
            Ok(())
        })
    }

    /// The same, each on a connection of its own.
    pub(crate) fn connects(&self, length: usize, count: usize) -> Outcome<Vec<f64>> {
        timed(count, || {
            let mut call = self.device.create(FunctionCode::EMPTY, vec![Region::input(vec![1; length])])?;
            run(&mut call)?;
            call.close()?;
            Ok(())
        })
    }

    /// Calls with an input of `length` bytes, of a caller that loses this share of what it sends, and of what it receives.
    pub(crate) fn lossy(&mut self, loss: f64, length: usize, count: usize) -> Outcome<Vec<f64>> {
        let key = loss.to_bits();
        if !self.lossy.contains_key(&key) {
            let mut options = options(loss);
            // What perftest asks of soft-RoCE.
            options.connect.ack_timeout = Duration::from_millis(67);
            let device = Device::connect(self.ip, &options)?;
            let mut call = device.create(FunctionCode::EMPTY, vec![Region::input(vec![0; length])])?;
            run(&mut call)?;
            self.lossy.insert(key, call);
        }
        let call = self.lossy.get_mut(&key).ok_or("no call")?;
        timed(count, || run(call))
    }

    /// Calls of 8 bytes on one of `count` connections of as many callers as that needs; the others are idle.
    pub(crate) fn beside_idle(&self, count: usize, calls: usize) -> Outcome<Vec<f64>> {
        let callers = self.callers(count)?;
        let mut open = open_on(&callers, count)?;
        let busy = open.first_mut().ok_or("no connection")?;
        run(busy)?;
        let times = timed(calls, || run(busy))?;
        close_all(open)?;
        Ok(times)
    }

    /// As many callers as `count` connections need.
    fn callers(&self, count: usize) -> Outcome<Vec<Device>> {
        (0..count.div_ceil(OF_ONE)).map(|_| Ok(Device::connect(self.ip, &options(0.0))?)).collect()
    }

    /// Opens `count` connections, of as many callers as that needs, makes a call of 8 bytes on each, `rounds` times, all of them under
    /// way at once, and closes them. Returns the times of opening and of each round, and the memory of the processes before and with
    /// them.
    pub(crate) fn connections(
        &self,
        count: usize,
        rounds: usize,
        processes: &[u32],
    ) -> Outcome<(Vec<f64>, Vec<[u64; 2]>)> {
        let callers = self.callers(count)?;
        let before = memory(processes)?;
        let begin = Instant::now();
        let mut calls = open_on(&callers, count)?;
        let mut times = vec![begin.elapsed().as_secs_f64()];
        times.extend(timed(rounds, || {
            calls.iter_mut().try_for_each(Call::invoke)?;
            Ok(calls.iter_mut().try_for_each(Call::wait)?)
        })?);
        let with = memory(processes)?;
        close_all(calls)?;
        Ok((times, before.into_iter().zip(with).map(|(before, with)| [before, with]).collect()))
    }
}

/// Sets a call of 8 bytes up on each of `count` connections.
fn open_on(callers: &[Device], count: usize) -> Outcome<Vec<Call>> {
    let open =
        |number: usize| Ok(callers[number / OF_ONE].create(FunctionCode::EMPTY, vec![Region::inout(vec![0; 8])])?);
    (0..count).map(open).collect()
}

fn close_all(calls: Vec<Call>) -> Outcome {
    for call in calls {
        call.close()?;
    }
    Ok(())
}

/// Memory that each process has, in bytes.
fn memory(processes: &[u32]) -> Outcome<Vec<u64>> {
    let of = |process: &u32| {
        let text = std::fs::read_to_string(format!("/proc/{process}/statm"))?;
        let pages: u64 = text.split_whitespace().nth(1).ok_or("no resident size")?.parse()?;
        Ok(pages * rustix::param::page_size() as u64)
    };
    processes.iter().map(of).collect()
}
