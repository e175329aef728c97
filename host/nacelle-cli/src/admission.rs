// SPDX-License-Identifier: Apache-2.0
//! `nacelle admission`: who may connect to a device.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nacelle_manage::Registers;
use nacelle_manage::admission::{Admission, AdmissionError, Entry, NewEntry};
use nacelle_wire::admission::Token;
use serde::Serialize;

use crate::args::{AddArgs, AdmissionCommand, Cli};
use crate::failure::Failure;
use crate::manage::control;
use crate::output::{print, print_json, table};

/// All that a device admits by.
#[derive(Serialize)]
struct Listed {
    enabled: bool,
    entries: Vec<Entry>,
}

/// An entry that was made.
#[derive(Serialize)]
struct Added {
    number: u8,
}

pub(crate) fn admission(cli: &Cli, command: &AdmissionCommand) -> Result<(), Failure> {
    let (AdmissionCommand::List { device }
    | AdmissionCommand::On { device }
    | AdmissionCommand::Off { device }
    | AdmissionCommand::Add(AddArgs { device, .. })
    | AdmissionCommand::Revoke { device, .. }
    | AdmissionCommand::Remove { device, .. }) = command;
    let registers = &mut control(cli, device)?;
    let mut table = Admission::new(registers)?;
    match command {
        AdmissionCommand::List { .. } => list(cli, device, &mut table),
        AdmissionCommand::On { .. } => Ok(table.turn(true)?),
        AdmissionCommand::Off { .. } => Ok(table.turn(false)?),
        AdmissionCommand::Add(args) => add(cli, args, &mut table),
        AdmissionCommand::Revoke { number, .. } => Ok(table.revoke(*number)?),
        AdmissionCommand::Remove { number, .. } => Ok(table.remove(*number)?),
    }
}

impl<E> From<AdmissionError<E>> for Failure
where
    Failure: From<E>,
    E: std::error::Error,
{
    fn from(error: AdmissionError<E>) -> Self {
        let hint = match error {
            AdmissionError::Access(error) => return error.into(),
            AdmissionError::None => "use a device of a version that has it",
            AdmissionError::Full => "remove one that is no longer valid: 'nacelle admission list DEVICE' shows them",
            AdmissionError::Invalid(_) => "see 'nacelle admission add --help'",
            AdmissionError::NoEntry(_) => "see those that there are with 'nacelle admission list DEVICE'",
            AdmissionError::InUse(_) => "remove it again later: its callers were told, and get no new connection",
        };
        Self::usage(error.to_string(), hint)
    }
}

fn list<R: Registers>(cli: &Cli, device: &str, admission: &mut Admission<'_, R>) -> Result<(), Failure>
where
    Failure: From<AdmissionError<R::Error>>,
{
    let listed = Listed { enabled: admission.is_on()?, entries: admission.entries()? };
    if cli.json {
        return print_json(&listed);
    }
    if !listed.enabled {
        eprintln!("admission is off: everybody may connect to {device}");
    }
    let heads = ["ENTRY", "STATE", "FROM", "HANDLE", "CONNECTIONS", "OF", "MIB", "SECONDS LEFT"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(listed.entries.iter().map(row));
    print(&table(&rows, 3))
}

fn row(entry: &Entry) -> Vec<String> {
    let no_limit = |value: u32| if value == 0 { "-".to_owned() } else { value.to_string() };
    let from = if entry.prefix == 0 { "anywhere".into() } else { format!("{}/{}", entry.address, entry.prefix) };
    vec![
        entry.number.to_string(),
        entry.state.to_string(),
        from,
        entry.handle.to_string(),
        entry.used.to_string(),
        no_limit(entry.connections.into()),
        no_limit(entry.memory_kib >> 10),
        entry.seconds_left.map_or_else(|| "-".into(), |left| left.to_string()),
    ]
}

fn add<R: Registers>(cli: &Cli, args: &AddArgs, admission: &mut Admission<'_, R>) -> Result<(), Failure>
where
    Failure: From<AdmissionError<R::Error>>,
{
    let token = match &args.new_token {
        Some(path) => Some(new_token(path)?),
        None => args.token,
    };
    let entry = NewEntry {
        token,
        network: args.network,
        connections: args.connections,
        memory_kib: args.memory << 10,
        time: args.time,
        handle: args.handle,
    };
    let number = admission.add(&entry)?;
    if cli.json {
        return print_json(&Added { number });
    }
    print(&format!("{number}\n"))
}

/// A random token in a new file that only its owner can read.
fn new_token(path: &Path) -> Result<Token, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::usage(
            format!("cannot make a token in {}: {error}", path.display()),
            "name a file that is not there yet",
        )
    };
    let mut bytes = [0; Token::LEN];
    getrandom::fill(&mut bytes).map_err(|error| failed(&error))?;
    let token = Token::new(bytes).ok_or_else(|| failed(&"the system's random numbers are zeros"))?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| writeln!(file, "{digits}"));
    written.map_err(|error| failed(&error))?;
    Ok(token)
}
