// SPDX-License-Identifier: Apache-2.0
//! `nacelle demo`: a device, a multiplication, a check and a report, in one command.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nacelle::{Descriptor, Device, DeviceKind, Options, Report};
use nacelle_link::WireDir;
use nacelle_manage::discover;
use nacelle_manage::{Control, Done, Request};
use serde::Serialize;

use crate::args::{Cli, DemoArgs, DtypeArg};
use crate::capture::absolute;
use crate::failure::Failure;
use crate::npy::{self, Agreement, Matrix};
use crate::output::{print, print_json, quoted, report};

/// How long a device may take to start.
const START_WITHIN: Duration = Duration::from_secs(60);
/// How long it may take to agree to the end of the connection.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct Outcome<'a> {
    device: &'a Descriptor,
    shapes: [(usize, usize); 2],
    dtype: &'a str,
    check: Agreement,
    report: &'a Report,
    capture: &'a Path,
    next: &'a str,
    stop: &'a str,
}

pub(crate) fn demo(cli: &Cli, args: &DemoArgs) -> Result<(), Failure> {
    let wire = cli.wire()?;
    let dir = args
        .dir
        .clone()
        .unwrap_or_else(|| PathBuf::from(if Path::new("build").is_dir() { "build/demo" } else { "nacelle-demo" }));
    std::fs::create_dir_all(&dir).map_err(|error| {
        Failure::usage(format!("cannot make {}: {error}", dir.display()), "name another directory with --dir")
    })?;
    let (a_path, b_path) = matrices(args, &dir)?;
    let (a, b) = (Matrix::read(&a_path)?, Matrix::read(&b_path)?);
    npy::check_pair((&a, &a_path), (&b, &b_path))?;

    let found = start(cli, args, &wire, &dir)?;
    let mut control = Control::open(&wire, &found.name)?;
    let capture = absolute(&dir.join("demo.pcapng"))?;
    let Done {} = control.ask(&Request::CaptureStart { path: capture.clone() })?;
    let options = Options { wire: Some(wire.path().to_owned()), trace: true, ..Options::default() };
    let outcome = Device::connect(found.ip, &options).and_then(|device| {
        let product = npy::multiply_on(&device, &a, &b, nacelle::Call::wait)?;
        // The capture is to hold the end of the connection too.
        device.settle(CLOSE_WITHIN)?;
        Ok(product)
    });
    let Done {} = control.ask(&Request::CaptureStop {})?;
    let (c, steps) = outcome?;
    let c_path = dir.join("c.npy");
    c.write(&c_path)?;
    let check = Agreement::of(&a, &b, &c);

    let (program, wire_option) = (program(), wire_option(cli));
    let next = format!(
        "{program} run matmul --device {}{wire_option} {} {} -o {}",
        found.ip,
        quoted(&a_path),
        quoted(&b_path),
        quoted(&c_path)
    );
    let stop = format!("{program} stop {}{wire_option}", found.name);
    if cli.json {
        let shapes = [a.shape(), b.shape()];
        let (dtype, report) = (a.dtype(), &steps);
        let outcome =
            Outcome { device: &found, shapes, dtype, check, report, capture: &capture, next: &next, stop: &stop };
        print_json(&outcome)?;
    } else {
        let ((m, k), (_, n)) = (a.shape(), b.shape());
        let verdict = if check.is_good() { "correct" } else { "WRONG" };
        print(&format!(
            "\n{m}x{k} times {k}x{n}, {}, on {} at {} ({}):\n\n{}\n\
             {verdict}: {} of {} elements agree with the CPU (largest difference {:.1e})\n\
             packets: {} (open it with Wireshark)\n\n\
             {} keeps running. Now your own files:\n\n    {next}\n\nand to stop it:\n\n    {stop}\n",
            a.dtype(),
            found.name,
            found.ip,
            describe(&found),
            report(&steps),
            check.agree,
            check.elements,
            check.largest_difference,
            shortest(&capture).display(),
            found.name,
        ))?;
    }
    if check.is_good() { Ok(()) } else { Err(Failure::check("the device's product is not the CPU's")) }
}

fn describe(device: &Descriptor) -> String {
    match device.kind {
        DeviceKind::Rtl => {
            format!("simulated RTL, {} bits wide, {} MHz", device.data_w, f64::from(device.clock_hz) / 1e6)
        }
        DeviceKind::Soft => "software".into(),
    }
}

/// The user's matrices, or random ones that are written beside the results.
fn matrices(args: &DemoArgs, dir: &Path) -> Result<(PathBuf, PathBuf), Failure> {
    if let [a, b] = &args.files[..] {
        return Ok((a.clone(), b.clone()));
    }
    let mut random = fastrand::Rng::with_seed(args.seed);
    let side = args.size as usize;
    let paths = (dir.join("a.npy"), dir.join("b.npy"));
    for path in [&paths.0, &paths.1] {
        Matrix::random(args.dtype == DtypeArg::Float32, side, side, &mut random).write(path)?;
    }
    Ok(paths)
}

/// A device of the kind that is wanted: one that runs already, or a new one that outlives this program.
fn start(cli: &Cli, args: &DemoArgs, wire: &WireDir, dir: &Path) -> Result<Descriptor, Failure> {
    let kind = if args.soft { DeviceKind::Soft } else { DeviceKind::Rtl };
    let running = discover::list(wire).into_iter().find(|found| found.alive && found.device.kind == kind);
    if let Some(found) = running {
        eprintln!("using {}, which runs already", found.device.name);
        return Ok(found.device);
    }
    let log = dir.join("device.log");
    let cannot = |what: String| Failure::usage(what, format!("see what it says in {}", log.display()));
    let open = || File::create(&log).map_err(|error| cannot(format!("cannot write {}: {error}", log.display())));
    let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "nacelle".into()));
    command.args(["device", "--json", "--wire"]).arg(wire.path());
    if args.soft {
        command.arg("--soft");
    }
    if let Some(library) = &args.library {
        command.arg("--library").arg(library);
    }
    // In a process group of its own, so that an interrupt of this program does not end it.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(open()?).process_group(0);
    let mut child = command.spawn().map_err(|error| cannot(format!("cannot start a device: {error}")))?;
    let stdout = child.stdout.take().expect("it was asked for");
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line);
        // Its result is not needed after the deadline.
        let _ = sender.send(read.map(|_| line));
    });
    match receiver.recv_timeout(START_WITHIN) {
        Ok(Ok(line)) if !line.is_empty() => {
            let device: Descriptor = serde_json::from_str(&line).map_err(|error| cannot(error.to_string()))?;
            if !cli.json {
                eprintln!("started {} at {}", device.name, device.ip);
            }
            Ok(device)
        }
        Ok(_) => {
            let _ = child.wait();
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            Err(cannot(format!("the device did not start: {}", first_line(&said))))
        }
        Err(_) => {
            // It is of no use now, and would stay for ever.
            let _ = child.kill().and_then(|()| child.wait());
            Err(cannot(format!("the device did not start within {} s", START_WITHIN.as_secs())))
        }
    }
}

/// The error in a device's log, without what marks it as one.
fn first_line(log: &str) -> &str {
    let line = log.lines().find(|line| line.contains("error")).or(log.lines().next()).unwrap_or("it said nothing");
    line.trim_start_matches("error: ")
}

/// How this program is called from here: by its name, if the shell finds it by that.
fn program() -> String {
    let Ok(exe) = std::env::current_exe() else { return "nacelle".into() };
    let same = |dir: PathBuf| dir.join("nacelle").canonicalize().ok() == exe.canonicalize().ok();
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(same) { "nacelle".into() } else { quoted(&shortest(&exe)) }
}

fn wire_option(cli: &Cli) -> String {
    cli.wire.as_ref().map_or(String::new(), |wire| format!(" --wire {}", quoted(wire)))
}

/// A path seen from the current directory, if it lies there.
fn shortest(path: &Path) -> PathBuf {
    let here = std::env::current_dir().ok();
    here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned)).unwrap_or_else(|| path.to_owned())
}
