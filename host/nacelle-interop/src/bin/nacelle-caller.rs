// SPDX-License-Identifier: Apache-2.0
//! A caller that uses what the client library offers, against a software device: what is right on one link must be on another.
//!
//! Each case prints a line "case NAME ok", or "case NAME FAIL" and why.

#![warn(missing_docs)]

use clap::Parser;
use nacelle::memory::scope;
use nacelle::{
    Call, CallOptions, ConnectionOptions, Device, Error, FunctionCode, LinkChoice, LinkKind, Memory, Options, Region,
};
use nacelle_roce::wire::kernel::matmul::{Args, Dtype};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A caller that uses what the client library offers, against a software device.
///
/// Exit status: 0 if all cases are right, 1 if one is not.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// The device's address.
    device: IpAddr,
    /// The link, as that of `nacelle run`.
    #[arg(long, default_value = "verbs")]
    link: LinkChoice,
}

/// Why a case failed.
type Failure = Box<dyn std::error::Error>;
type Outcome = Result<(), Failure>;
/// Its name, and what it does.
type Case = (&'static str, fn(&Cli) -> Outcome);

/// Sides of matrices whose product takes longer than a millisecond.
const SIDE: u32 = 384;
/// Longer than a packet, and no multiple of one.
const LENGTH: usize = 10_001;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let cases: [Case; 8] = [
        ("the link is the one that was asked for", link),
        ("lent slices", lent_slices),
        ("calls side by side", side_by_side),
        ("cancel a call of several", cancel_one),
        ("cancel a call that is alone, and connect again", cancel_and_reconnect),
        ("a deadline", deadline),
        ("an event loop", event_loop),
        ("write and read a region without a call", one_sided),
    ];
    let mut all_right = true;
    for (name, case) in cases {
        match case(&cli) {
            Ok(()) => println!("case {} ok", name.replace(' ', "_")),
            Err(failure) => {
                println!("case {} FAIL {failure}", name.replace(' ', "_"));
                all_right = false;
            }
        }
    }
    if all_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn options(cli: &Cli) -> Options {
    Options { link: cli.link, timeout: Duration::from_secs(20), ..Options::default() }
}

fn connect(cli: &Cli) -> Result<Device, Error> {
    Device::connect(cli.device, &options(cli))
}

fn bytes() -> Vec<u8> {
    (0..LENGTH).map(|at| at as u8).collect()
}

fn check(is_right: bool, what: &str) -> Outcome {
    if is_right { Ok(()) } else { Err(what.into()) }
}

/// Whether a region was incremented `times`.
fn is_incremented(memory: Memory, times: u8) -> bool {
    let wanted: Vec<u8> = bytes().iter().map(|byte| byte.wrapping_add(times)).collect();
    memory.into_vec().is_ok_and(|got| got == wanted)
}

fn only(mut memories: Vec<Memory>) -> Memory {
    memories.pop().unwrap_or_else(|| Memory::zeroed(0))
}

fn link(cli: &Cli) -> Outcome {
    let device = connect(cli)?;
    let wanted = match cli.link {
        LinkChoice::Verbs(_) => LinkKind::Verbs,
        LinkChoice::Udp => LinkKind::Udp,
        LinkChoice::Shm => LinkKind::Shm,
        LinkChoice::Packet(_) => LinkKind::Packet,
        LinkChoice::Xdp(_) => LinkKind::Xdp,
        _ => LinkKind::Wire,
    };
    check(device.link() == wanted, "it is another")
}

fn lent_slices(cli: &Cli) -> Outcome {
    let device = connect(cli)?;
    let mut lent = bytes();
    let wanted: Vec<u8> = lent.iter().map(|byte| byte.wrapping_add(2)).collect();
    let kept = scope(|scope| {
        let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(scope.lend_mut(&mut lent))])?;
        for _ in 0..2 {
            call.invoke()?;
            call.wait()?;
        }
        // The call outlives the borrow.
        Ok::<Call, Error>(call)
    })?;
    check(lent == wanted, "the slice has other bytes")?;
    check(kept.read(0, &mut [0]).is_err(), "the memory can be read after its borrow")?;
    let mut kept = kept;
    check(kept.invoke().and_then(|()| kept.wait()).is_err(), "a call runs on memory whose borrow has ended")?;
    check(lent == wanted, "the slice was written after its borrow")
}

fn side_by_side(cli: &Cli) -> Outcome {
    let connection = connect(cli)?.open(&ConnectionOptions { contexts: 3 })?;
    check(connection.contexts() == 3, "the device gives fewer contexts")?;
    let create = |_| connection.create(FunctionCode::INCREMENT, vec![Region::inout(bytes())]);
    let mut calls = (0..3).map(create).collect::<Result<Vec<_>, _>>()?;
    for _ in 0..3 {
        calls.iter_mut().try_for_each(Call::invoke)?;
        calls.iter_mut().try_for_each(Call::wait)?;
    }
    for call in calls {
        check(is_incremented(only(call.close()?), 3), "a region has other bytes")?;
    }
    Ok(())
}

fn cancel_one(cli: &Cli) -> Outcome {
    let connection = connect(cli)?.open(&ConnectionOptions { contexts: 2 })?;
    check(connection.can_cancel(), "the device cannot cancel a call")?;
    let mut cancelled = connection.create(FunctionCode::INCREMENT, vec![Region::inout(vec![0; 1 << 20])])?;
    let mut other = connection.create(FunctionCode::INCREMENT, vec![Region::inout(bytes())])?;
    cancelled.invoke()?;
    cancelled.cancel()?;
    // Its end may have been under way.
    match cancelled.wait() {
        Ok(()) | Err(Error::Cancelled { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    other.invoke()?;
    other.wait()?;
    check(is_incremented(only(other.close()?), 1), "the other call's region has other bytes")
}

fn cancel_and_reconnect(cli: &Cli) -> Outcome {
    let options = Options { reconnect: true, ..options(cli) };
    let mut call =
        Device::connect(cli.device, &options)?.create(FunctionCode::INCREMENT, vec![Region::inout(bytes())])?;
    call.invoke()?;
    call.cancel()?;
    check(matches!(call.wait(), Err(Error::Cancelled { .. })), "the call was not cancelled")?;
    // What the device has written back of it, if anything, is no more than that.
    call.write(0, &bytes())?;
    call.invoke()?;
    call.wait()?;
    check(is_incremented(only(call.close()?), 1), "the region has other bytes")
}

fn deadline(cli: &Cli) -> Outcome {
    let connection = connect(cli)?.open(&ConnectionOptions::default())?;
    let options = CallOptions { deadline: Some(Duration::from_millis(1)) };
    let size = (SIDE * SIDE * 4) as usize;
    let matrix = || vec![1; size];
    let args = Args { dtype: Dtype::Int32, m: SIDE, n: SIDE, k: SIDE };
    let regions = vec![
        Region::input(args.to_bytes().to_vec()),
        Region::input(matrix()),
        Region::input(matrix()),
        Region::output(size),
    ];
    let mut call = connection.create_with(FunctionCode::MATMUL, regions, &options)?;
    call.invoke()?;
    check(matches!(call.wait(), Err(Error::DeadlineExceeded { .. })), "the call took longer than its deadline")
}

fn event_loop(cli: &Cli) -> Outcome {
    let device = connect(cli)?;
    let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(bytes())])?;
    let patience = Instant::now() + Duration::from_secs(20);
    let mut sleeps = 0;
    for _ in 0..3 {
        call.invoke()?;
        while !call.test()? {
            check(Instant::now() < patience, "the call does not end")?;
            let limit = Timespec { tv_sec: 5, tv_nsec: 0 };
            let found = poll(&mut [PollFd::from_borrowed_fd(device.fd()?, PollFlags::IN)], Some(&limit))?;
            check(found > 0, "the descriptor does not become readable")?;
            sleeps += 1;
            device.progress()?;
        }
    }
    check(sleeps > 0 && sleeps < 10_000, "the descriptor is always readable")?;
    check(is_incremented(only(call.close()?), 3), "the region has other bytes")
}

fn one_sided(cli: &Cli) -> Outcome {
    let mut call = connect(cli)?.create(FunctionCode::INCREMENT, vec![Region::inout(bytes())])?;
    call.write_region(0)?;
    call.write(0, &[0; LENGTH])?;
    call.read_region(0)?;
    check(is_incremented(only(call.close()?), 0), "other bytes come back")
}
