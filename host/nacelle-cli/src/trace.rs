// SPDX-License-Identifier: Apache-2.0
//! `nacelle trace`: frames that a device records at its MAC.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nacelle_link::{Packet, PcapngWriter};
use nacelle_manage::event_log::ticks_since;
use nacelle_manage::frame_trace::{Direction, Frame, FrameTrace, Match, Recording, Settings, TraceError, Trigger};
use nacelle_manage::map::{BLOCKS, Mode, device};
use nacelle_manage::{DeviceKind, Error, FrameKind, Registers};
use serde::Serialize;

use crate::args::{Cli, DirectionArg, TraceArgs, TriggerArg};
use crate::config::over_network;
use crate::device::stop_on_signal;
use crate::failure::Failure;
use crate::manage::control;
use crate::output::{print, print_json, table};
use crate::remote::{RemoteRegisters, Token};

/// How often the device is asked whether it has stopped. Over the network the question is a frame that it sees.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long an interrupt may go unnoticed.
const TICK: Duration = Duration::from_millis(50);
/// Frames after a trigger, unless it is said how many.
const AFTER_TRIGGER: u16 = 16;
const NONE: &str = "use a device that was built with trace_bytes in its description";
const ETHERTYPE_IPV4: u16 = 0x0800;
/// The interfaces of a file.
const INTERFACES: [&str; 2] = ["rx", "tx"];

/// A frame, as JSON.
#[derive(Serialize)]
struct Row {
    direction: &'static str,
    number: u32,
    /// Since the device's reset.
    seconds: f64,
    length: u16,
    bad: bool,
    text: String,
}

/// What counts as a drop, and how often it happened meanwhile.
#[derive(Serialize)]
struct Drops {
    counter: &'static str,
    count: u32,
}

/// A trace, as JSON.
#[derive(Serialize)]
struct Traced {
    device: String,
    triggered: bool,
    recorded: [u32; 2],
    missed: [u32; 2],
    drops: Vec<Drops>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    frames: Vec<Row>,
}

pub(crate) fn trace(cli: &Cli, args: &TraceArgs) -> Result<(), Failure> {
    match over_network(cli, &args.device)? {
        Some(address) => {
            let token = Token::find(args.token_file.as_deref())?;
            let mut registers = RemoteRegisters::connect(address, args.timeout, token.as_ref())?;
            run(cli, args, &mut registers, true)
        }
        None => {
            let mut control = control(cli, &args.device)?;
            if control.info()?.kind == DeviceKind::Soft {
                return Err(Failure::refused(
                    "the software device records no frames",
                    format!("it writes them as they pass: nacelle capture --device {} -o FILE", args.device),
                ));
            }
            // The time of a simulation is its own.
            run(cli, args, &mut control, false)
        }
    }
}

fn run<R: Registers>(cli: &Cli, args: &TraceArgs, registers: &mut R, is_real: bool) -> Result<(), Failure>
where
    Failure: From<TraceError<R::Error>> + From<R::Error>,
{
    let settings = settings(args)?;
    let stop = stop_on_signal()?;
    let before = drops(registers)?;
    let mut trace = FrameTrace::new(registers)?;
    trace.start(&settings)?;
    let end = args.seconds.and_then(|time| Instant::now().checked_add(time));
    if end.is_none() && settings.after == 0 {
        eprintln!("recording until interrupted");
    }
    let outcome = wait(&mut trace, &stop, end);
    // Whatever came between: nobody is left who would stop it.
    trace.stop()?;
    outcome?;
    let recording = trace.recording()?;
    let hz = trace.ticks_hz();
    let after = drops(registers)?;
    let counted = before
        .iter()
        .zip(after)
        .map(|((counter, before), (_, after))| Drops { counter, count: after.wrapping_sub(*before) });
    let drops: Vec<Drops> = counted.filter(|drops| drops.count > 0).collect();
    let clock = Clock { hz, now: recording.now, anchor: is_real.then(SystemTime::now) };
    if let Some(path) = &args.output {
        write(path, &args.device, &recording, &drops, &clock)?;
    }
    tell(args, &recording, &drops);
    let rows = || recording.frames.iter().map(|frame| row(frame, &clock)).collect::<Vec<_>>();
    if cli.json {
        return print_json(&Traced {
            device: args.device.clone(),
            triggered: recording.status.triggered,
            recorded: recording.status.recorded,
            missed: recording.status.missed,
            drops,
            file: args.output.as_ref().map(|path| path.display().to_string()),
            frames: rows(),
        });
    }
    match &args.output {
        Some(path) => {
            eprintln!("{} frames in {}", recording.frames.len(), path.display());
            Ok(())
        }
        None => print(&lines(&rows())),
    }
}

/// Waits until the device stops, the time is over, or a signal comes.
fn wait<R: Registers>(
    trace: &mut FrameTrace<'_, R>,
    stop: &AtomicBool,
    end: Option<Instant>,
) -> Result<(), TraceError<R::Error>> {
    let mut look = Instant::now();
    while !stop.load(Ordering::Relaxed) && end.is_none_or(|end| Instant::now() < end) {
        if Instant::now() >= look {
            if !trace.status()?.records {
                break;
            }
            look = Instant::now() + LOOK_EVERY;
        }
        std::thread::sleep(TICK);
    }
    Ok(())
}

fn settings(args: &TraceArgs) -> Result<Settings, Failure> {
    let of_roce = args.qpn.is_some() || args.peer_qpn.is_some() || args.opcode.is_some();
    let roce = args.roce || of_roce;
    let is_ipv4 = roce || args.peer.is_some();
    if is_ipv4 && args.ethertype.is_some_and(|ethertype| ethertype != ETHERTYPE_IPV4) {
        return Err(Failure::usage("no frame has this EtherType and is IPv4", "leave --ethertype out"));
    }
    let filter = Match {
        ethertype: args.ethertype.or(is_ipv4.then_some(ETHERTYPE_IPV4)),
        roce,
        opcode: args.opcode,
        peer: args.peer,
        qpn: (args.qpn.is_some() || args.peer_qpn.is_some())
            .then_some([args.qpn.unwrap_or_default(), args.peer_qpn.unwrap_or_default()]),
    };
    // Of a direction for which no queue pair is named no frame is meant.
    let [mut rx, mut tx] = match args.direction {
        None => [true; 2],
        Some(direction) => [direction == DirectionArg::Rx, direction == DirectionArg::Tx],
    };
    let is_trigger = args.trigger == Some(TriggerArg::Match);
    if filter.qpn.is_some() && !is_trigger {
        rx &= args.qpn.is_some();
        tx &= args.peer_qpn.is_some();
    }
    if is_trigger && filter.is_any() {
        return Err(Failure::usage(
            "there is nothing to match",
            "say which frame is the trigger, as by --peer or --qpn",
        ));
    }
    if !rx && !tx {
        return Err(Failure::usage(
            "the queue pair is not one of this direction",
            "--qpn is of received frames, --peer-qpn of sent ones",
        ));
    }
    let trigger = match args.trigger {
        None => Trigger::None,
        Some(TriggerArg::Match) => Trigger::Match,
        Some(TriggerArg::Drop) => Trigger::Drop,
    };
    let after = args.frames.unwrap_or(if trigger == Trigger::None { 0 } else { AFTER_TRIGGER });
    let ring = args.ring || trigger != Trigger::None;
    Ok(Settings { trigger, ring, directions: [rx, tx], snap: args.snap, after, filter })
}

/// The counters of drops.
fn drops<R: Registers>(registers: &mut R) -> Result<Vec<(&'static str, u32)>, R::Error> {
    let counters = BLOCKS.iter().filter(|block| block.kind == device::BLOCK.kind).flat_map(|block| block.registers);
    let wanted: Vec<_> = counters
        .filter(|register| register.counter && register.mode == Mode::Read && register.name.contains("_drop_"))
        .collect();
    let addresses: Vec<u32> = wanted.iter().map(|register| register.at(device::BASE)).collect();
    let values = registers.read_all(&addresses)?;
    Ok(wanted.iter().map(|register| register.name).zip(values).collect())
}

/// What times of the device mean.
struct Clock {
    hz: u32,
    /// The device's ticks when it was read, and
    now: u64,
    /// the time then, if the device's goes as that of its host.
    anchor: Option<SystemTime>,
}

impl Clock {
    fn nanoseconds(&self, ticks: u64) -> u64 {
        let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(self.hz);
        u64::try_from(nanoseconds).unwrap_or(u64::MAX)
    }

    /// Since 1970, or since the device's reset.
    fn stamp(&self, ticks: u64) -> u64 {
        let Some(anchor) = self.anchor else { return self.nanoseconds(ticks) };
        let now = anchor.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        now.saturating_sub(self.nanoseconds(ticks_since(self.now, ticks)))
    }
}

fn write(path: &Path, device: &str, recording: &Recording, drops: &[Drops], clock: &Clock) -> Result<(), Failure> {
    let times = match clock.anchor {
        Some(_) => "by this host's clock, as good as the management network is fast",
        None => "since the device's reset, of simulated time",
    };
    let counted: Vec<String> = drops.iter().map(|drops| format!("{} {}", drops.counter, drops.count)).collect();
    let counted = if counted.is_empty() { "none".into() } else { counted.join(", ") };
    let comment =
        format!("recorded by the Nacelle device {device} at its MAC; times {times}; drops meanwhile: {counted}");
    let mut file = PcapngWriter::create(path, &INTERFACES, &comment)?;
    let mut put = || {
        let mut trigger = recording.trigger;
        for frame in &recording.frames {
            let mut notes = vec![];
            if frame.bad {
                notes.push("wrong FCS");
            }
            // The trigger is seen behind the frame that it is, so the next one is the first after it.
            if let Some(at) = trigger
                && ticks_since(recording.now, frame.ticks) <= ticks_since(recording.now, at)
            {
                notes.push("first frame that began after the trigger");
                trigger = None;
            }
            file.packet(&Packet {
                interface: frame.direction as u32,
                nanoseconds: clock.stamp(frame.ticks),
                direction: match frame.direction {
                    Direction::Rx => nacelle_link::Direction::Inbound,
                    Direction::Tx => nacelle_link::Direction::Outbound,
                },
                length: frame.length.into(),
                data: &frame.data,
                comment: &notes.join("; "),
            })?;
        }
        let status = recording.status;
        for direction in Direction::ALL {
            let at = direction as usize;
            let (recorded, missed) = (u64::from(status.recorded[at]), u64::from(status.missed[at]));
            let there = recording.frames.iter().filter(|frame| frame.direction == direction).count() as u64;
            file.statistics(at as u32, clock.stamp(recording.now), recorded + missed, recorded + missed - there)?;
        }
        Ok(())
    };
    put().map_err(|error: std::io::Error| {
        Failure::usage(format!("cannot write {}: {error}", path.display()), "name another file with -o")
    })
}

/// Says what is not shown, and what else happened.
fn tell(args: &TraceArgs, recording: &Recording, drops: &[Drops]) {
    let status = recording.status;
    for direction in Direction::ALL {
        let at = direction as usize;
        let name = INTERFACES[at];
        let there = recording.frames.iter().filter(|frame| frame.direction == direction).count() as u32;
        if status.missed[at] > 0 {
            let least = if status.missed[at] == 0xffff { "at least " } else { "" };
            eprintln!(
                "{name}: no room for {least}{} later frames: a smaller --snap or a filter makes room",
                status.missed[at]
            );
        }
        if status.recorded[at] > there {
            eprintln!("{name}: {} older frames were written over", status.recorded[at] - there);
        }
    }
    if args.trigger.is_some() && !status.triggered {
        eprintln!("the trigger did not come");
    }
    for drops in drops {
        eprintln!("dropped meanwhile: {} {}", drops.counter, drops.count);
    }
}

fn row(frame: &Frame, clock: &Clock) -> Row {
    let mut text = FrameKind::of_start(&frame.data, frame.length.into()).to_string();
    if frame.bad {
        text.push_str(", wrong FCS");
    }
    Row {
        direction: INTERFACES[frame.direction as usize],
        number: frame.number,
        seconds: clock.nanoseconds(frame.ticks) as f64 / 1e9,
        length: frame.length,
        bad: frame.bad,
        text,
    }
}

fn lines(rows: &[Row]) -> String {
    let line = |row: &Row| {
        vec![format!("{:15.9}", row.seconds), row.direction.into(), format!("{:5}", row.length), row.text.clone()]
    };
    table(&rows.iter().map(line).collect::<Vec<_>>(), 4)
}

impl From<TraceError<Error>> for Failure {
    fn from(error: TraceError<Error>) -> Self {
        match error {
            TraceError::Access(Error::Management { .. }) => Self::refused("the device has no trace of frames", NONE),
            TraceError::Access(error) => error.into(),
            other => other_than_access(&other),
        }
    }
}

impl From<TraceError<Self>> for Failure {
    fn from(error: TraceError<Self>) -> Self {
        match error {
            TraceError::Access(error) => error,
            other => other_than_access(&other),
        }
    }
}

fn other_than_access<E: std::fmt::Display>(error: &TraceError<E>) -> Failure {
    match error {
        TraceError::Access(error) => Failure::check(error.to_string()),
        TraceError::None => Failure::refused(error.to_string(), NONE),
        TraceError::Busy => Failure::refused(
            error.to_string(),
            "wait for who does, or stop it: nacelle config set DEVICE trace.COMMAND 2",
        ),
        TraceError::Snap { .. } => Failure::usage(error.to_string(), "give --snap less"),
    }
}
