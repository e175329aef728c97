// SPDX-License-Identifier: Apache-2.0
//! `nacelle log`: what has happened to a device.

use std::net::Ipv4Addr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nacelle_manage::event_log::{Details, Entry, EventLog, Kind, LogError, News, RINGS, ticks_since};
use nacelle_manage::{DeviceKind, Error, Registers, discover};
use serde::Serialize;

use crate::args::{Cli, LogArgs};
use crate::config::over_network;
use crate::failure::Failure;
use crate::manage::control;
use crate::output::{print, print_json, table};
use crate::remote::{RemoteRegisters, Token};

/// How often a log that is followed is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);
const DAY: u64 = 24 * 60 * 60;
/// What causes the entries of each ring.
const CAUSES: [&str; RINGS as usize] = ["the operator", "kernels and memory", "callers", "strangers"];

/// An entry, as JSON.
#[derive(Serialize)]
struct Row {
    ring: u32,
    number: u32,
    /// Since the device's reset.
    seconds: f64,
    /// Since 1970, if the device's time goes as that of its host.
    #[serde(skip_serializing_if = "Option::is_none")]
    unix_seconds: Option<f64>,
    kind: Kind,
    #[serde(flatten)]
    details: Details,
    text: String,
}

/// A log, as JSON.
#[derive(Serialize)]
struct Listed {
    device: String,
    lost: u32,
    missed: [u32; RINGS as usize],
    entries: Vec<Row>,
}

pub(crate) fn log(cli: &Cli, args: &LogArgs) -> Result<(), Failure> {
    let device = match &args.device {
        Some(device) => device.clone(),
        None => only(cli)?,
    };
    match over_network(cli, &device)? {
        Some(address) => {
            let token = Token::find(args.token_file.as_deref())?;
            let mut registers = RemoteRegisters::connect(address, args.timeout, token.as_ref())?;
            show_log(cli, args, device, &mut registers, true)
        }
        None => {
            let mut control = control(cli, &device)?;
            // The time of a simulation is its own.
            let is_real = control.info()?.kind == DeviceKind::Soft;
            show_log(cli, args, device, &mut control, is_real)
        }
    }
}

fn show_log<R: Registers>(
    cli: &Cli,
    args: &LogArgs,
    device: String,
    registers: &mut R,
    is_real: bool,
) -> Result<(), Failure>
where
    Failure: From<LogError<R::Error>>,
{
    let mut log = EventLog::new(registers)?;
    let news = log.news()?;
    let mut told = tell_gaps(&news, 0);
    let rows = rows(&log, &news, is_real);
    if !args.follow {
        if cli.json {
            return print_json(&Listed { device, lost: news.lost, missed: news.missed, entries: rows });
        }
        return print(&lines(&rows));
    }
    show(cli, &rows)?;
    loop {
        std::thread::sleep(LOOK_EVERY);
        let news = log.news()?;
        told = tell_gaps(&news, told);
        show(cli, &self::rows(&log, &news, is_real))?;
    }
}

/// The only device on the wire.
fn only(cli: &Cli) -> Result<String, Failure> {
    let mut names = discover::published(&cli.wire()?).into_iter().map(|device| device.name);
    match (names.next(), names.next()) {
        (Some(name), None) => Ok(name),
        (None, _) => Err(Failure::unreachable("there is no device on the wire")),
        _ => Err(Failure::usage("there are several devices on the wire", "name one: 'nacelle ls' lists them")),
    }
}

impl From<LogError<Error>> for Failure {
    fn from(error: LogError<Error>) -> Self {
        match error {
            LogError::Access(error @ Error::Management { .. }) => {
                Self::refused(format!("no event log: {error}"), "use a device of a version that has one")
            }
            LogError::Access(error) => error.into(),
            LogError::None => Self::refused(error.to_string(), "use a device of a version that has one"),
        }
    }
}

impl From<LogError<Self>> for Failure {
    fn from(error: LogError<Self>) -> Self {
        match error {
            LogError::Access(error) => error,
            LogError::None => Self::refused("the device has no event log", "use a device of a version that has one"),
        }
    }
}

/// Says which entries are not shown; returns how many events were lost in all.
fn tell_gaps(news: &News, told: u32) -> u32 {
    for (missed, cause) in news.missed.iter().zip(CAUSES).filter(|(missed, _)| **missed > 0) {
        eprintln!("{missed} older entries caused by {cause} were written over");
    }
    if news.lost != told {
        eprintln!("{} events came too fast to be taken down", news.lost.wrapping_sub(told));
    }
    news.lost
}

fn rows<R: Registers>(log: &EventLog<'_, R>, news: &News, is_real: bool) -> Vec<Row> {
    let here = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let row = |entry: &Entry| {
        let age = log.time(ticks_since(news.now, entry.ticks));
        let details = entry.details();
        Row {
            ring: entry.kind.ring(),
            number: entry.number,
            seconds: log.time(entry.ticks).as_secs_f64(),
            unix_seconds: is_real.then(|| here.saturating_sub(age).as_secs_f64()),
            kind: entry.kind,
            text: text(entry.kind, &details),
            details,
        }
    };
    news.entries.iter().map(row).collect()
}

/// Prints entries as they come: as lines of JSON each.
fn show(cli: &Cli, rows: &[Row]) -> Result<(), Failure> {
    if !cli.json {
        return print(&lines(rows));
    }
    for row in rows {
        let line = serde_json::to_string(row).map_err(|error| Failure::check(error.to_string()))?;
        print(&format!("{line}\n"))?;
    }
    Ok(())
}

fn lines(rows: &[Row]) -> String {
    let line = |row: &Row| {
        let mut cells = vec![format!("{:14.6}", row.seconds)];
        cells.extend(row.unix_seconds.map(time_of_day));
        cells.push(row.text.clone());
        cells
    };
    table(&rows.iter().map(line).collect::<Vec<_>>(), 3)
}

/// UTC.
fn time_of_day(unix_seconds: f64) -> String {
    let seconds = unix_seconds as u64 % DAY;
    format!("{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// An entry in words.
fn text(kind: Kind, details: &Details) -> String {
    let address = details.address.unwrap_or(Ipv4Addr::UNSPECIFIED);
    let qpn = details.qpn.unwrap_or_default();
    let entry = details.entry.unwrap_or_default();
    let socket = details.socket.unwrap_or_default();
    let count = details.count.unwrap_or_default();
    let counter = details.counter.as_deref().unwrap_or_default();
    let reason = details.reason.as_deref().unwrap_or_default();
    match kind {
        Kind::ENABLED => format!("device enabled at {address}"),
        Kind::DISABLED => "device disabled".into(),
        Kind::ENTRY_ADDED => format!("admission: entry {entry} added"),
        Kind::ENTRY_REVOKED => format!("admission: entry {entry} revoked"),
        Kind::ENTRY_TIME_OVER => format!("admission: the time of entry {entry} is over"),
        Kind::ENTRY_FREED => format!("admission: entry {entry} freed"),
        Kind::LOGIN => format!("registers: {address} has logged in"),
        Kind::SESSION_EXPIRED => "registers: a client was silent for too long, and is logged out".into(),
        Kind::KERNEL_REPLACED => format!("socket {socket} has image {}", details.image.unwrap_or_default()),
        Kind::KERNEL_TIMEOUT => format!("the kernel of socket {socket} took too long"),
        Kind::KERNEL_MEMORY => {
            format!("the kernel of socket {socket} reached beyond its memory, or this failed")
        }
        Kind::MEMORY_ERROR => format!("memory failed, {count} times so far"),
        Kind::COPY_STOPPED => format!("the copy engine has stopped, {count} descriptors in: {reason}"),
        Kind::STREAM_CUT => format!("the kernel on the path of the network card was cut off: {reason}"),
        Kind::OPENED => match details.entry {
            Some(entry) => format!("connection with {address} opened, queue pair {qpn}, by entry {entry}"),
            None => format!("connection with {address} opened, queue pair {qpn}"),
        },
        Kind::CLOSED => format!("connection with {address} closed, queue pair {qpn}: {reason}"),
        Kind::CONNECT_FAILED => format!("no connection to {address}: {reason}"),
        Kind::QP_FAILED => format!("queue pair {qpn} failed: {reason}"),
        Kind::REFUSED => format!("caller {address} refused: {reason}"),
        Kind::LOGIN_WRONG => format!("registers: {address} has tried to log in with a wrong token"),
        Kind::LOGIN_REFUSED => format!("registers: no room for {address} to log in"),
        Kind::DROPPED => format!("dropped: {counter}, {count} so far"),
        Kind::DUPLICATE => {
            let prefix = details.prefix.map(|prefix| prefix.to_string()).unwrap_or_default();
            format!("another host has the device's IPv6 address of {prefix}/64")
        }
        kind => {
            let [a, b] = details.words.unwrap_or_default();
            format!("{kind}: {a:#x} {b:#x}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_words() {
        let texts: std::collections::BTreeSet<String> =
            Kind::ALL.iter().map(|(kind, _)| text(*kind, &Details::default())).collect();
        assert_eq!(texts.len(), Kind::ALL.len());
        assert!(texts.iter().all(|text| !text.contains("0x")), "{texts:?}");
    }

    #[test]
    fn times_are_of_the_day() {
        assert_eq!(time_of_day(86_400.0 * 365.0 + 3_600.0 * 7.0 + 61.5), "07:01:01Z");
    }
}
