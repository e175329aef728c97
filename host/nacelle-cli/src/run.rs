// SPDX-License-Identifier: Apache-2.0
//! `nacelle run`: one function of one device.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nacelle::{Device, FunctionCode, Memory, Options, Region, Report};
use nacelle_link::WireDir;
use serde::Serialize;

use crate::args::{CallerArgs, Cli, FunctionArgs, IncrementArgs, MatmulArgs, RunCommand};
use crate::failure::Failure;
use crate::list;
use crate::npy::{self, Agreement, Matrix};
use crate::output::{print, print_json, report};
use crate::progress;
use crate::regions::{self, RegionArg};
use crate::save::save;

/// How long the device may take to agree to the end of the connection, when everything else is done.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

pub(crate) fn run(cli: &Cli, command: &RunCommand) -> Result<(), Failure> {
    match command {
        RunCommand::Matmul(args) => matmul(cli, args),
        RunCommand::Increment(args) => increment(cli, args),
        RunCommand::Function(args) => function(cli, args),
    }
}

/// What a call did, for programs.
#[derive(Serialize)]
struct Outcome<'a> {
    device: IpAddr,
    #[serde(flatten)]
    result: serde_json::Value,
    report: &'a Report,
}

fn reach(wire: &WireDir, args: &CallerArgs) -> Result<Device, Failure> {
    let mut options = Options {
        capture: args.capture.clone(),
        trace: args.report,
        impairments: args.impairments.rules(),
        ..args.way.options(wire, args.timeout)
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

/// Waits, for a while, until the device has agreed to the end of the connection: with the result at its place, that is all
/// that is left to do.
fn leave(device: &Device) -> Result<(), Failure> {
    let _it_notices_by_itself_later = device.settle(CLOSE_WITHIN)?;
    Ok(())
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
    let (c, report) = npy::multiply_on(&device, &a, &b, |call| progress::wait(call, args.caller.no_progress))?;
    c.write(&args.output)?;

    let agreement = args.check.then(|| Agreement::of(&a, &b, &c));
    let shape = [c.shape().0, c.shape().1];
    let result = serde_json::json!({ "output": args.output, "shape": shape, "dtype": c.dtype(), "check": agreement });
    tell(cli, &args.caller, &Outcome { device: device.ip(), result, report: &report })?;
    eprintln!("wrote {} ({}x{} {})", args.output.display(), shape[0], shape[1], c.dtype());
    leave(&device)?;
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

/// A call that has ended, with what it wrote.
struct Called {
    device: Device,
    /// Bytes in each file.
    bytes: Vec<usize>,
    report: Report,
}

impl Called {
    fn tell(&self, cli: &Cli, args: &CallerArgs, files: &[PathBuf], result: serde_json::Value) -> Result<(), Failure> {
        tell(cli, args, &Outcome { device: self.device.ip(), result, report: &self.report })?;
        for (file, bytes) in files.iter().zip(&self.bytes) {
            eprintln!("wrote {} ({bytes} bytes)", file.display());
        }
        leave(&self.device)
    }
}

/// Calls a function once, and writes each region that comes back to its file.
fn call(
    cli: &Cli,
    args: &CallerArgs,
    function: FunctionCode,
    regions: &[RegionArg],
    files: &[PathBuf],
) -> Result<Called, Failure> {
    let regions = regions.iter().map(RegionArg::read).collect::<Result<Vec<_>, _>>()?;
    let come_back: Vec<bool> = regions.iter().map(regions::comes_back).collect();
    check_files(files, come_back.iter().filter(|comes_back| **comes_back).count())?;
    let device = reach(&cli.wire()?, args)?;
    let mut call = device.create(function, regions)?;
    call.invoke()?;
    progress::wait(&mut call, args.no_progress)?;
    let report = call.report().clone();
    let bytes = |memory: Memory| memory.into_vec().expect("the regions are heap memory");
    let regions: Vec<Vec<u8>> = call.close()?.into_iter().map(bytes).collect();
    let results = regions.iter().zip(come_back).filter_map(|(bytes, comes_back)| comes_back.then_some(bytes));
    let results: Vec<_> = files.iter().map(PathBuf::as_path).zip(results.map(Vec::as_slice)).collect();
    save(&results)?;
    let bytes = results.iter().map(|(_, bytes)| bytes.len()).collect();
    Ok(Called { device, bytes, report })
}

/// Refuses what would lose a result, for a call of which `come_back` regions come back.
fn check_files(files: &[PathBuf], come_back: usize) -> Result<(), Failure> {
    if files.len() != come_back {
        let what = format!("the regions that come back are {come_back}, the files named for them {}", files.len());
        return Err(Failure::usage(what, "name one file with -o for each --output and --inout, in their order"));
    }
    for (index, file) in files.iter().enumerate() {
        if files[..index].contains(file) {
            let what = format!("{} is named for two regions that come back", file.display());
            return Err(Failure::usage(what, "name another file with -o"));
        }
        writable(file)?;
    }
    Ok(())
}

fn increment(cli: &Cli, args: &IncrementArgs) -> Result<(), Failure> {
    let (region, file) = (RegionArg::File(args.input.clone(), Region::inout), std::slice::from_ref(&args.output));
    let called = call(cli, &args.caller, FunctionCode::INCREMENT, &[region], file)?;
    let result = serde_json::json!({ "output": args.output, "bytes": called.bytes[0] });
    called.tell(cli, &args.caller, file, result)
}

fn function(cli: &Cli, args: &FunctionArgs) -> Result<(), Failure> {
    let called = call(cli, &args.caller, args.code, &args.regions.0, &args.files)?;
    let outputs = args.files.iter().zip(&called.bytes);
    let outputs: Vec<_> = outputs.map(|(file, bytes)| serde_json::json!({ "file": file, "bytes": bytes })).collect();
    let result = serde_json::json!({ "function": args.code.get(), "outputs": outputs });
    called.tell(cli, &args.caller, &args.files, result)
}
