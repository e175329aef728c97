// SPDX-License-Identifier: Apache-2.0
//! `nacelle capture`.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nacelle_link::{Captured, Link, MAX_FRAME, PcapngWriter, VirtualWire, WireDir};
use nacelle_manage::{Control, Done, Request};

use crate::args::{CaptureArgs, Cli};
use crate::device::stop_on_signal;
use crate::failure::Failure;
use crate::list;
use crate::output::print_json;

/// How long an interrupt may go unnoticed.
const TICK: Duration = Duration::from_millis(100);

pub(crate) fn capture(cli: &Cli, args: &CaptureArgs) -> Result<(), Failure> {
    let wire = cli.wire()?;
    let frames = match &args.device {
        Some(device) => at_device(&wire, device, args)?,
        None => on_wire(&wire, args)?,
    };
    if cli.json {
        return print_json(&serde_json::json!({ "file": args.output, "frames": frames }));
    }
    eprintln!("{frames} frames in {}", args.output.display());
    Ok(())
}

/// Listens to the whole wire.
fn on_wire(wire: &WireDir, args: &CaptureArgs) -> Result<u64, Failure> {
    let mut link = Captured::new(VirtualWire::join_mirror(wire)?);
    let comment = format!("everything on the Nacelle wire {}", wire.path().display());
    link.recorder().start(PcapngWriter::create(&args.output, &["wire"], &comment)?);
    let mut buffer = vec![0; MAX_FRAME];
    until_told(args, |until| while let Ok(Some(_)) = link.recv(&mut buffer, until) {})?;
    link.recorder().stop().map_err(|error| cannot_write(&args.output, &error.to_string()))?;
    Ok(link.stats().rx_frames)
}

/// Lets a device write its own.
fn at_device(wire: &WireDir, device: &str, args: &CaptureArgs) -> Result<u64, Failure> {
    let mut control = Control::open(wire, &list::find(wire, device)?.name)?;
    let path = absolute(&args.output)?;
    let before = control.trace(u64::MAX)?.next;
    let Done {} = control.ask(&Request::CaptureStart { path })?;
    until_told(args, |until| std::thread::sleep(until.saturating_duration_since(Instant::now())))?;
    let Done {} = control.ask(&Request::CaptureStop {})?;
    Ok(control.trace(u64::MAX)?.next - before)
}

/// Calls `work` with moments not far away, until the time is over or a signal comes.
fn until_told(args: &CaptureArgs, mut work: impl FnMut(Instant)) -> Result<(), Failure> {
    let stop = stop_on_signal()?;
    let end = args.seconds.and_then(|time| Instant::now().checked_add(time));
    if end.is_none() {
        eprintln!("capturing to {} until interrupted", args.output.display());
    }
    while !stop.load(Ordering::Relaxed) && end.is_none_or(|end| Instant::now() < end) {
        let tick = Instant::now() + TICK;
        work(end.map_or(tick, |end| end.min(tick)));
    }
    Ok(())
}

/// The path as any process on this machine understands it.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| cannot_write(path, &error.to_string()))
}

fn cannot_write(path: &Path, why: &str) -> Failure {
    Failure::usage(format!("cannot write {}: {why}", path.display()), "name another file with -o")
}
