// SPDX-License-Identifier: Apache-2.0
//! `nacelle guest-time`: Linux guests in device time, each with the network card of one of two simulated devices on a line.

use std::fs::{self, DirBuilder, File};
use std::net::Ipv4Addr;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nacelle_device::{
    CardPair, DEFAULT_ADDRESS, DeviceCounters, DeviceError, FrameEngine, GuestTime, GuestTimeConfig, GuestTimeError,
    Identity, LineConfig, Listener, RtlEngine, SimConfig, SimInfo, SimLibrary, find_library,
};
use serde_json::{Value, json};

use crate::args::{Cli, GuestTimeArgs};
use crate::device::stop_on_signal;
use crate::failure::Failure;
use crate::guest::{INIT, beside, write_script};
use crate::output::print;

/// Where the kernel is, as `make setup-guest-time` leaves it, and beside it the library that gives it random numbers by a seed.
const KERNEL: &str = "build/guest/linux";
const SEEDED: &str = "seeded_random.so";
const BUILD_KERNEL: &str = "make setup-guest-time, or name a kernel with --linux";
/// How long all guests may sleep with nothing to wake them, in device time.
const SLEEP: Duration = Duration::from_secs(10);
/// The time of day with which guests begin: 1 January 2026, the same in all runs.
const TIME_OF_DAY: Duration = Duration::from_secs(1_767_225_600);
/// Lines of a console that are shown of a guest that has failed.
const TAIL: usize = 15;
/// How long a guest that has done all may take to end.
const END_WITHIN: Duration = Duration::from_secs(10);

/// A folder for sockets, scripts and consoles, removed with this value unless it is kept.
struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Folder {
    fn make(keep: Option<&Path>) -> Result<Self, Failure> {
        let named = format!("nacelle-guest-time-{}", std::process::id());
        let path = keep.map_or_else(|| std::env::temp_dir().join(named), Path::to_owned);
        let made = DirBuilder::new().mode(0o700).create(&path).and_then(|()| path.canonicalize());
        let path = made.map_err(|error| {
            let said = format!("cannot make the directory {}: {error}", path.display());
            Failure::usage(said, "name another one, that does not exist, with --keep")
        })?;
        Ok(Self { path, keep: keep.is_some() })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            let _gone_already_is_fine = fs::remove_dir_all(&self.path);
        }
    }
}

/// A guest's processes, which end with this value.
struct Guest {
    number: usize,
    child: Child,
    console: PathBuf,
    ended: bool,
}

impl Guest {
    fn start(
        args: &GuestTimeArgs,
        kernel: &Path,
        folder: &Path,
        number: usize,
        ip: (Ipv4Addr, u8),
    ) -> Result<Self, Failure> {
        let usage = |what: &str, error: std::io::Error| {
            Failure::usage(format!("cannot {what}: {error}"), "see that the files exist and can be read")
        };
        let script = &args.scripts[number];
        let script =
            script.canonicalize().map_err(|error| usage(&format!("read the script {}", script.display()), error))?;
        let console = folder.join(format!("guest{number}.console"));
        let file = File::create(&console).map_err(|error| usage("write a console", error))?;
        let errors = file.try_clone().map_err(|error| usage("write a console", error))?;
        let mut command = Command::new(kernel);
        command.args(
            [format!("mem={}M", args.memory), "root=/dev/root rootfstype=hostfs rootflags=/ ro quiet".into()]
                .iter()
                .flat_map(|part| part.split(' ')),
        );
        command.args([
            // The kernel's random numbers depend on its command line, so that has no path of this run: its own folder, by the host's /proc.
            "init=/proc/self/cwd/init".into(),
            format!("umid=guest{number}"),
            "uml_dir=./".into(),
            format!("virtio_uml.device=card{number}:1"),
            format!("time-travel=ext:{number}:clock"),
            format!("NIC_IP={}/{}", ip.0, ip.1),
            format!("NIC_MTU={}", args.mtu),
            format!("NIC_RUN={}", script.display()),
        ]);
        command.args(["con=null", "con0=null,fd:1", "con1=null", "ssl=null"]);
        let seeded = kernel.with_file_name(SEEDED);
        if seeded.is_file() {
            command.env("LD_PRELOAD", seeded).env("NIC_SEED", args.seed.wrapping_add(number as u64).to_string());
        }
        // A group of its own: it is several processes.
        let child =
            command.current_dir(folder).stdin(Stdio::null()).stdout(file).stderr(errors).process_group(0).spawn();
        let child = child.map_err(|error| usage(&format!("run the kernel {}", kernel.display()), error))?;
        Ok(Self { number, child, console, ended: false })
    }

    /// What it has written.
    fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.console).unwrap_or_default()).replace('\r', "")
    }

    /// The last of that.
    fn tail(&self) -> String {
        let said = self.said();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(TAIL)..].join("\n")
    }

    /// How its script has ended, if it has.
    fn status(&self) -> Option<i32> {
        self.said().lines().filter_map(|line| line.strip_prefix("guest: status ")?.trim().parse().ok()).next_back()
    }

    /// Whether it has ended since the last time.
    fn look(&mut self) -> Result<bool, GuestTimeError> {
        if self.ended || self.child.try_wait()?.is_none() {
            return Ok(false);
        }
        self.ended = true;
        if self.status().is_some() {
            return Ok(true);
        }
        let (number, tail) = (self.number, self.tail());
        Err(GuestTimeError::Died(format!("guest {number} has died; the last that it wrote:\n{tail}")))
    }

    /// Waits until its processes have ended.
    fn end(&mut self) {
        let deadline = Instant::now() + END_WITHIN;
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _it_may_have_ended = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _it_was_killed = self.child.wait();
    }
}

pub(crate) fn guest_time(cli: &Cli, args: &GuestTimeArgs) -> Result<(), Failure> {
    let kernel = kernel(args)?;
    let library = find_library(args.library.as_deref(), "nic", false)
        .map_err(|error| Failure::usage(error.to_string(), "build it with: make sim SIM_ARGS='--device nic'"))?;
    let library = SimLibrary::load(&library)?;
    let info = library.info();
    let stop = stop_on_signal()?;
    let folder = Folder::make(args.keep.as_deref())?;
    write_script(&folder.path.join("init"), INIT)?;

    let identities = [0, 1].map(identity);
    let engine = |number: usize| {
        let config = SimConfig {
            line_rate_mbps: args.line_rate.unwrap_or_default(),
            random_seed: args.seed + number as u64,
            ..SimConfig::default()
        };
        let mut engine = RtlEngine::new(&library, &config)?;
        engine.configure(&identities[number], args.seed as u32)?;
        Ok::<_, Failure>(engine)
    };
    let cycle_ns = 1_000_000_000 / u64::from(info.clock_hz.max(1));
    let line = LineConfig {
        delay_cycles: u64::from(args.delay).div_ceil(cycle_ns.max(1)) as u32,
        rate_mbps: args.rate,
        loss_ppm: (args.loss * 1e6).round() as u32,
        random_seed: args.seed,
    };
    let sockets = ["card0", "card1"].map(|name| folder.path.join(name));
    let devices = CardPair::new([engine(0)?, engine(1)?], &line, [&sockets[0], &sockets[1]], args.patience, |what| {
        eprintln!("{what}")
    })?;
    let clock = Listener::bind(&folder.path.join("clock")).map_err(DeviceError::from)?;
    let config = GuestTimeConfig {
        guests: args.scripts.len(),
        patience: args.patience,
        limit: args.limit.as_nanos() as u64,
        sleep: SLEEP.as_nanos() as u64,
        time_of_day: TIME_OF_DAY.as_nanos() as u64,
    };
    let began = Instant::now();
    let mut run = GuestTime::new(config, clock, devices);
    let mut guests = Vec::new();
    for (number, identity) in identities.iter().enumerate().take(args.scripts.len()) {
        let ip = beside(identity.ip, identity.prefix_len)?;
        guests.push(Guest::start(args, &kernel, &folder.path, number, ip)?);
    }
    let ended = run.run(&stop, || {
        let mut ended = Vec::new();
        for guest in &mut guests {
            if guest.look()? {
                ended.push(guest.number);
            }
        }
        Ok(ended)
    });
    if let Err(error) = ended {
        return Err(failure(&error, &guests));
    }
    guests.iter_mut().for_each(Guest::end);
    report(cli, args, &info, &run, &guests, began.elapsed())?;
    for guest in &guests {
        match guest.status() {
            Some(0) => {}
            Some(status) => {
                let said = format!("the script of guest {} has ended with status {status}", guest.number);
                return Err(Failure::usage(said, "see what the guest wrote"));
            }
            None => return Err(failure(&GuestTimeError::Died(format!("guest {} has died", guest.number)), &guests)),
        }
    }
    Ok(())
}

/// The kernel that is named, or that was built for this.
fn kernel(args: &GuestTimeArgs) -> Result<PathBuf, Failure> {
    if let Some(kernel) = &args.linux {
        let there = kernel.canonicalize().ok().filter(|path| path.is_file());
        return there.ok_or_else(|| Failure::usage(format!("there is no {}", kernel.display()), BUILD_KERNEL));
    }
    let (here, program) = (std::env::current_dir().ok(), std::env::current_exe().ok());
    let above = [here.as_deref(), program.as_deref()];
    let mut found = above.iter().flatten().flat_map(|start| start.ancestors()).map(|folder| folder.join(KERNEL));
    found.find(|path| path.is_file()).ok_or_else(|| {
        let said = "there is no User-mode Linux that can live in device time: Debian's is built without time travel";
        Failure::usage(said, BUILD_KERNEL)
    })
}

/// The addresses of a device: those that the first devices on a wire have.
fn identity(number: u8) -> Identity {
    let (first, prefix_len) = DEFAULT_ADDRESS;
    let ip = Ipv4Addr::from_bits(first.to_bits() + u32::from(number));
    let [_, b, c, d] = ip.octets();
    Identity { mac: [0x02, 0x4e, 0x41, b, c, d].into(), ip, prefix_len, gateway: None }
}

/// Why a run has ended, with what a guest that is to blame wrote last.
fn failure(error: &GuestTimeError, guests: &[Guest]) -> Failure {
    let mut said = error.to_string();
    if let GuestTimeError::Silent { guest, .. }
    | GuestTimeError::Protocol { guest, .. }
    | GuestTimeError::Untimed { guest } = error
        && let Some(guest) = guests.get(*guest)
    {
        said = format!("{said}; the last that it wrote:\n{}", guest.tail());
    }
    match error {
        GuestTimeError::Untimed { .. } => Failure::usage(said, BUILD_KERNEL),
        GuestTimeError::Silent { .. } => Failure::timeout(said, "give it longer with --patience, or mend its script"),
        GuestTimeError::Limit(_) => Failure::timeout(said, "give them longer with --limit, or less to do"),
        _ => Failure::timeout(said, "run it again with --keep DIR, and read the consoles there"),
    }
}

/// What has been counted of a device.
fn counters(counted: &DeviceCounters) -> Value {
    let DeviceCounters { sim, card, line, interrupts, refused, violations } = counted;
    json!({
        "cycles_simulated": sim.cycles_simulated, "rx_frames": sim.rx_frames, "rx_bytes": sim.rx_bytes,
        "tx_frames": sim.tx_frames, "tx_bytes": sim.tx_bytes, "kicks": card.kicks, "calls": card.calls,
        "interrupts": interrupts, "requests_refused": card.refused, "rings_lost": card.rings_lost,
        "memory_refused": refused, "violations": violations, "line_lost": line.lost, "line_overflowed": line.overflowed,
    })
}

fn report(
    cli: &Cli,
    args: &GuestTimeArgs,
    info: &SimInfo,
    run: &GuestTime,
    guests: &[Guest],
    took: Duration,
) -> Result<(), Failure> {
    let summary = run.summary();
    let parameters = json!({
        "data_w": info.data_w, "clock_hz": info.clock_hz, "line_rate_mbps": args.line_rate.unwrap_or(100_000),
        "delay_ns": args.delay, "rate_mbps": args.rate, "loss": args.loss, "mtu": args.mtu, "seed": args.seed,
    });
    if cli.json {
        let all = json!({
            "parameters": parameters,
            "time_ns": summary.now, "runs": summary.runs, "messages": summary.messages,
            "devices": [counters(&run.devices().counters(0)), counters(&run.devices().counters(1))],
            "guests": guests.iter().map(|guest| json!({ "status": guest.status(), "console": guest.said() })).collect::<Vec<_>>(),
            "host_seconds": took.as_secs_f64(),
        });
        return print(&format!("{all}\n"));
    }
    for guest in guests {
        print(&format!("--- guest {}\n{}", guest.number, guest.said()))?;
    }
    eprintln!(
        "{:.6} s of device time in {:.1} s: {} runs, {} messages of the calendar; {parameters}",
        summary.now as f64 / 1e9,
        took.as_secs_f64(),
        summary.runs,
        summary.messages,
    );
    for number in 0..2 {
        eprintln!("device {number}: {}", counters(&run.devices().counters(number)));
    }
    Ok(())
}
