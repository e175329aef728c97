// SPDX-License-Identifier: Apache-2.0
//! `nacelle run`: one function of one device.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use nacelle::{Device, FunctionCode, Options, Region, Report};
use nacelle_link::WireDir;
use serde::Serialize;

use crate::args::{CallerArgs, Cli, IncrementArgs, MatmulArgs, RunCommand};
use crate::failure::Failure;
use crate::list;
use crate::npy::{self, Agreement, Matrix};
use crate::output::{print, print_json, report};

/// The largest file that is incremented, in bytes: that of a region.
const MAX_REGION: u64 = u32::MAX as u64;

pub(crate) fn run(cli: &Cli, command: &RunCommand) -> Result<(), Failure> {
    match command {
        RunCommand::Matmul(args) => matmul(cli, args),
        RunCommand::Increment(args) => increment(cli, args),
    }
}

/// What a call did, for programs.
#[derive(Serialize)]
struct Outcome<'a> {
    device: Ipv4Addr,
    output: &'a Path,
    #[serde(flatten)]
    result: serde_json::Value,
    report: &'a Report,
}

fn reach(wire: &WireDir, args: &CallerArgs) -> Result<Device, Failure> {
    let mut options = Options {
        wire: Some(wire.path().to_owned()),
        source: args.source,
        port: args.port,
        mtu: usize::from(args.mtu),
        timeout: args.timeout,
        capture: args.capture.clone(),
        trace: args.report,
        impairments: args.impairments.rules(),
        ..Options::default()
    };
    options.connect.ack_timeout = Duration::from_millis(args.ack_timeout);
    options.connect.max_ack_timeout = options.connect.max_ack_timeout.max(options.connect.ack_timeout);
    let ip = list::address(wire, &args.device)?;
    if let Some(path) = &args.capture {
        writable(path)?;
    }
    Ok(Device::connect(ip, &options)?)
}

/// Refuses early what could not be written at the end.
fn writable(path: &Path) -> Result<(), Failure> {
    let cannot = |why: &str| {
        Err(Failure::usage(format!("cannot write {}: {why}", path.display()), "name a file in a directory that exists"))
    };
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() {
        return cannot("it is a directory");
    }
    if dir.is_dir() { Ok(()) } else { cannot("its directory does not exist") }
}

fn tell(cli: &Cli, args: &CallerArgs, outcome: &Outcome<'_>) -> Result<(), Failure> {
    if cli.json {
        print_json(outcome)
    } else if args.report {
        print(&report(outcome.report))
    } else {
        Ok(())
    }
}

fn matmul(cli: &Cli, args: &MatmulArgs) -> Result<(), Failure> {
    let (a, b) = (Matrix::read(&args.a)?, Matrix::read(&args.b)?);
    npy::check_pair((&a, &args.a), (&b, &args.b))?;
    writable(&args.output)?;
    let device = reach(&cli.wire()?, &args.caller)?;
    let (c, report) = npy::multiply_on(&device, &a, &b)?;
    c.write(&args.output)?;

    let agreement = args.check.then(|| Agreement::of(&a, &b, &c));
    let shape = [c.shape().0, c.shape().1];
    let result = serde_json::json!({ "shape": shape, "dtype": c.dtype(), "check": agreement });
    tell(cli, &args.caller, &Outcome { device: device.ip(), output: &args.output, result, report: &report })?;
    eprintln!("wrote {} ({}x{} {})", args.output.display(), shape[0], shape[1], c.dtype());
    match agreement {
        Some(check) if !check.is_good() => Err(Failure::check(format!(
            "{} of {} elements differ from the CPU's product, by {:e} at most",
            check.elements - check.agree,
            check.elements,
            check.largest_difference
        ))),
        Some(check) => {
            eprintln!("all {} elements agree with the CPU's product", check.elements);
            Ok(())
        }
        None => Ok(()),
    }
}

fn increment(cli: &Cli, args: &IncrementArgs) -> Result<(), Failure> {
    let unreadable = |why: &str| {
        Failure::usage(format!("cannot read {}: {why}", args.input.display()), "name a file of 1 byte to 4 GiB")
    };
    let length = std::fs::metadata(&args.input).map_err(|error| unreadable(&error.to_string()))?.len();
    if length == 0 || length > MAX_REGION {
        return Err(unreadable(&format!("it has {length} bytes")));
    }
    let bytes = std::fs::read(&args.input).map_err(|error| unreadable(&error.to_string()))?;
    writable(&args.output)?;
    let device = reach(&cli.wire()?, &args.caller)?;
    let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(bytes)])?;
    call.invoke()?;
    call.wait()?;
    let report = call.report().clone();
    let bytes = call.close()?.pop().unwrap_or_default();
    std::fs::write(&args.output, &bytes).map_err(|error| {
        Failure::usage(format!("cannot write {}: {error}", args.output.display()), "name another file with -o")
    })?;
    let result = serde_json::json!({ "bytes": bytes.len() });
    tell(cli, &args.caller, &Outcome { device: device.ip(), output: &args.output, result, report: &report })?;
    eprintln!("wrote {} ({} bytes)", args.output.display(), bytes.len());
    Ok(())
}
