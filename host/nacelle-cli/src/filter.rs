// SPDX-License-Identifier: Apache-2.0
//! `nacelle filter`: rules for received frames.

use std::io::Read;
use std::path::Path;

use nacelle_manage::classifier::{
    Classifier, ClassifierError, Meter, Metered, Placed, PlacedFlow, RuleError, RuleFile,
};
use nacelle_manage::{DeviceKind, Registers};
use serde::Serialize;

use crate::args::{Added, Cli, Deleted, FilterCommand, RegistersArgs};
use crate::config::over_network;
use crate::failure::Failure;
use crate::manage::control;
use crate::output::{print, print_json, table};
use crate::remote::{RemoteRegisters, Token};

const NONE: &str =
    "use a device that was built with classifier = true in [network] of its description, as devices/nic.toml";
/// Of an entry.
const OTHER: &str = "(written by other software)";
const SYNTAX: &str = "see docs/reference/classifier.md, or 'nacelle filter add --help'";

/// A rule, as JSON.
#[derive(Serialize)]
struct Row {
    position: usize,
    /// Without, other software has written the entry.
    priority: Option<u16>,
    rule: Option<String>,
    action: Option<String>,
    frames: u32,
    bytes: u64,
}

/// A flow, as JSON.
#[derive(Serialize)]
struct FlowRow {
    /// Without, other software has written it.
    flow: Option<String>,
    action: Option<String>,
    frames: u32,
    bytes: u64,
}

/// A meter, as JSON.
#[derive(Serialize)]
struct MeterRow {
    meter: u8,
    /// Bytes or frames per second.
    rate: u64,
    burst: u32,
    frames: bool,
    to_host: bool,
    /// Frames above the rate.
    over: u32,
}

/// All rules, flows and meters, as JSON.
#[derive(Serialize)]
struct Listed {
    offset: u8,
    rules: Vec<Row>,
    flows: Vec<FlowRow>,
    meters: Vec<MeterRow>,
}

pub(crate) fn filter(cli: &Cli, command: &FilterCommand) -> Result<(), Failure> {
    let RegistersArgs { device, token_file, timeout } = match command {
        FilterCommand::List(device) | FilterCommand::Set { device, .. } => device,
        FilterCommand::Add(args) => &args.device,
        FilterCommand::Delete(args) => &args.device,
    };
    match over_network(cli, device)? {
        Some(address) => {
            let token = Token::find(token_file.as_deref())?;
            run(cli, command, &mut RemoteRegisters::connect(address, *timeout, token.as_ref())?)
        }
        None => {
            let mut control = control(cli, device)?;
            if control.info()?.kind == DeviceKind::Soft {
                return Err(Failure::refused("this device has no classifier: it is the software device", NONE));
            }
            run(cli, command, &mut control)
        }
    }
}

fn run<R: Registers>(cli: &Cli, command: &FilterCommand, registers: &mut R) -> Result<(), Failure>
where
    Failure: From<ClassifierError<R::Error>>,
{
    // What is wrong with a rule is said before the device is asked.
    match command {
        FilterCommand::List(_) => list(cli, &mut Classifier::new(registers)?),
        FilterCommand::Add(args) => {
            match args.what()? {
                Added::Rule(rule) => say_moved(Classifier::new(registers)?.add(&rule)?, "rules"),
                Added::Meter(meter) => Classifier::new(registers)?.put_meter(&meter)?,
                Added::Flow(flow) => say_moved(Classifier::new(registers)?.add_flow(&flow)?, "flows"),
            }
            Ok(())
        }
        FilterCommand::Delete(args) => match args.what()? {
            Deleted::Positions(positions) => Ok(Classifier::new(registers)?.delete(&positions)?),
            Deleted::Flow(key) => Ok(Classifier::new(registers)?.delete_flow(&key)?),
            Deleted::Meter(number) => Ok(Classifier::new(registers)?.delete_meter(number)?),
        },
        FilterCommand::Set { file, .. } => {
            let RuleFile { rules, flows, meters, offset } = text(file)?.parse::<RuleFile>()?;
            let mut classifier = Classifier::new(registers)?;
            classifier.replace(&rules, offset)?;
            classifier.replace_meters(&meters)?;
            say_moved(classifier.replace_flows(&flows)?, "flows");
            Ok(())
        }
    }
}

fn say_moved(moved: usize, what: &str) {
    if moved > 0 {
        eprintln!("{moved} {what} have moved to make room; their counters begin at 0");
    }
}

fn text(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let outcome = if file == Path::new("-") {
        std::io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    outcome.map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display()), "name a file of rules"))
}

fn list<R: Registers>(cli: &Cli, classifier: &mut Classifier<'_, R>) -> Result<(), Failure>
where
    Failure: From<ClassifierError<R::Error>>,
{
    let found = classifier.rules()?;
    let mut rows = Vec::new();
    for Placed { position, rule, .. } in found.entries {
        let counts = classifier.counts(position)?;
        rows.push(Row {
            position,
            priority: rule.map(|rule| rule.priority),
            rule: rule.map(|rule| rule.to_string()),
            action: rule.map(|rule| rule.action.to_string()),
            frames: counts.frames,
            bytes: counts.bytes,
        });
    }
    let flows: Vec<FlowRow> = classifier
        .flows()?
        .into_iter()
        .map(|PlacedFlow { flow, counts }| FlowRow {
            flow: flow.map(|flow| flow.key.to_string()),
            action: flow.map(|flow| flow.action.to_string()),
            frames: counts.frames,
            bytes: counts.bytes,
        })
        .collect();
    let meters = classifier.meters()?;
    if cli.json {
        let meters = meters
            .into_iter()
            .map(|Metered { meter: Meter { number, rate, burst, frames, to_host }, over }| MeterRow {
                meter: number,
                rate,
                burst,
                frames,
                to_host,
                over,
            })
            .collect();
        return print_json(&Listed { offset: found.offset, rules: rows, flows, meters });
    }
    if rows.iter().any(|row| row.rule.as_ref().is_some_and(|rule| rule.contains("bytes "))) {
        eprintln!("bytes are those from offset {} of a frame on", found.offset);
    }
    let mut lines = vec![["POSITION", "RULE", "FRAMES", "BYTES"].map(str::to_owned).to_vec()];
    lines.extend(rows.into_iter().map(|row| {
        let rule = row.rule.unwrap_or_else(|| OTHER.into());
        vec![row.position.to_string(), rule, row.frames.to_string(), row.bytes.to_string()]
    }));
    lines.extend(flows.into_iter().map(|row| {
        let flow = row.flow.zip(row.action).map_or_else(|| OTHER.into(), |(flow, action)| format!("{flow} {action}"));
        vec!["flow".into(), flow, row.frames.to_string(), row.bytes.to_string()]
    }));
    print(&table(&lines, 2))?;
    if meters.is_empty() {
        return Ok(());
    }
    let mut lines = vec![["METER", "FRAMES ABOVE IT"].map(str::to_owned).to_vec()];
    lines.extend(meters.iter().map(|Metered { meter, over }| vec![meter.to_string(), over.to_string()]));
    print(&table(&lines, 1))
}

impl From<RuleError> for Failure {
    fn from(error: RuleError) -> Self {
        Self::usage(error.to_string(), SYNTAX)
    }
}

impl<E> From<ClassifierError<E>> for Failure
where
    Failure: From<E>,
    E: std::fmt::Display,
{
    fn from(error: ClassifierError<E>) -> Self {
        let hint = match error {
            ClassifierError::Access(error) => return error.into(),
            ClassifierError::None => return Self::refused(error.to_string(), NONE),
            ClassifierError::Unexpected(_) => "use a version that goes with the device",
            ClassifierError::NoCard(_) => "use device or drop, or a device with a network card",
            ClassifierError::NoSocket(_) => {
                "use a device that was built with a stream kernel in [network] of its description, as devices/nic.toml"
            }
            ClassifierError::NoQueue { .. } => "name a pair that there is",
            ClassifierError::Full { .. } => {
                "delete rules first; an empty file deletes all: nacelle filter set DEVICE /dev/null"
            }
            ClassifierError::NoPlace(_) => {
                "delete flows that are not needed, or make it a rule: the same without the word flow"
            }
            ClassifierError::NoRate(_) => "use another rate: bytes per second, or frames with the word frames",
            ClassifierError::NoRandom => "run it where getrandom(2) works",
            ClassifierError::NoRule(_) | ClassifierError::NoFlow(_) | ClassifierError::NoMeter(_) => {
                "see those that there are with 'nacelle filter list DEVICE'"
            }
        };
        Self::usage(error.to_string(), hint)
    }
}
