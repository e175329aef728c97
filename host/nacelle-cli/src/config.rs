// SPDX-License-Identifier: Apache-2.0
//! `nacelle config`: the registers of a device by name.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};

use nacelle_manage::map::{Chain, ChainError, Found, NameError, Target};
use nacelle_manage::{Registers, discover};
use nacelle_wire::ipbus;
use serde::{Serialize, Serializer};

use crate::args::{Cli, ConfigCommand, RegistersArgs};
use crate::failure::Failure;
use crate::manage::control;
use crate::output::{print, print_json, table};
use crate::remote::{RemoteRegisters, Token};

pub(crate) fn config(cli: &Cli, command: &ConfigCommand) -> Result<(), Failure> {
    let (ConfigCommand::Blocks { at }
    | ConfigCommand::List { at, .. }
    | ConfigCommand::Get { at, .. }
    | ConfigCommand::Set { at, .. }) = command;
    let RegistersArgs { device, token_file, timeout } = at;
    match over_network(cli, device)? {
        Some(address) => {
            let token = Token::find(token_file.as_deref())?;
            act(cli, &mut RemoteRegisters::connect(address, *timeout, token.as_ref())?, command)
        }
        None => act(cli, &mut control(cli, device)?, command),
    }
}

/// Where IPbus reaches the device: it is named by an address and a port, or by an address that no device on the wire has.
pub(crate) fn over_network(cli: &Cli, device: &str) -> Result<Option<SocketAddr>, Failure> {
    if let Ok(address) = device.parse() {
        return Ok(Some(address));
    }
    let Ok(ip) = device.parse::<IpAddr>() else { return Ok(None) };
    let known = discover::published(&cli.wire()?).iter().any(|one| one.ip == ip);
    Ok((!known).then_some((ip, ipbus::PORT).into()))
}

fn act<R: Registers>(cli: &Cli, registers: &mut R, command: &ConfigCommand) -> Result<(), Failure>
where
    Failure: From<R::Error>,
    R::Error: Display,
{
    let blocks = Chain::new(registers).collect::<Result<Vec<_>, _>>().map_err(no_chain)?;
    match command {
        ConfigCommand::Blocks { .. } => show_blocks(cli, &blocks),
        ConfigCommand::List { block, .. } => list(cli, registers, &blocks, block.as_deref()),
        ConfigCommand::Get { name, .. } => get(cli, registers, &blocks, name),
        ConfigCommand::Set { name, value, .. } => set(cli, registers, &blocks, name, *value),
    }
}

fn no_chain<E: Display>(error: ChainError<E>) -> Failure
where
    Failure: From<E>,
{
    match error {
        // A device without registers, or one that does not answer.
        ChainError::Access { error, .. } => error.into(),
        error => Failure::check(error.to_string()),
    }
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Self {
        let hint = "list the blocks with 'nacelle config blocks DEVICE', their registers with 'nacelle config list DEVICE BLOCK'";
        Self::usage(error.to_string(), hint)
    }
}

/// A block, as JSON.
#[derive(Serialize)]
struct BlockRow {
    name: Option<String>,
    address: u32,
    #[serde(rename = "type")]
    kind: String,
    version: String,
}

fn show_blocks(cli: &Cli, blocks: &[Found]) -> Result<(), Failure> {
    let rows = blocks.iter().map(|found| BlockRow {
        name: found.name(blocks),
        address: found.address,
        kind: found.kind.escape_ascii().to_string(),
        version: format!("{}.{}", found.version >> 16, found.version & 0xffff),
    });
    if cli.json {
        return print_json(&rows.collect::<Vec<_>>());
    }
    let mut lines = vec![["NAME", "ADDRESS", "TYPE", "VERSION"].map(str::to_owned).to_vec()];
    lines.extend(rows.map(|row| {
        let name = row.name.unwrap_or_else(|| "(unknown)".into());
        vec![name, format!("{:#07x}", row.address), row.kind, row.version]
    }));
    print(&table(&lines, 4))
}

/// A register and its value, as JSON.
#[derive(Serialize)]
struct Row {
    name: String,
    address: u32,
    value: u32,
    /// Of a whole register that has named fields, from bit 0 on.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_map")]
    fields: Vec<(&'static str, u32)>,
}

fn as_map<S: Serializer>(fields: &[(&'static str, u32)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().copied())
}

impl Row {
    fn new(name: String, target: &Target, word: u32) -> Self {
        let fields = target.register.filter(|_| target.field.is_none()).map_or(&[][..], |register| register.fields);
        Self {
            name,
            address: target.address,
            value: target.field.map_or(word, |field| field.of(word)),
            fields: fields.iter().map(|field| (field.name, field.of(word))).collect(),
        }
    }
}

fn show(cli: &Cli, rows: &[Row]) -> Result<(), Failure> {
    if cli.json {
        return print_json(&rows);
    }
    let mut lines = vec![["NAME", "ADDRESS", "HEX", "VALUE"].map(str::to_owned).to_vec()];
    let line = |name: &str, address: u32, value: u32| {
        vec![name.to_owned(), format!("{address:#07x}"), format!("{value:#x}"), value.to_string()]
    };
    for row in rows {
        lines.push(line(&row.name, row.address, row.value));
        lines.extend(row.fields.iter().map(|(field, value)| line(&format!("  .{field}"), row.address, *value)));
    }
    print(&table(&lines, 2))
}

fn list<R: Registers>(cli: &Cli, registers: &mut R, blocks: &[Found], only: Option<&str>) -> Result<(), Failure>
where
    Failure: From<R::Error>,
{
    let named = |found: &&Found| only.is_none_or(|only| found.is_called(blocks, only));
    let wanted: Vec<&Found> = blocks.iter().filter(named).collect();
    if let (Some(only), []) = (only, &wanted[..]) {
        return Err(NameError::block(blocks, only).into());
    }
    let (mut rows, mut refused) = (Vec::new(), Vec::new());
    for found in wanted {
        let Some(block) = found.name(blocks) else { continue };
        let targets: Vec<(String, Target)> = found.targets().filter(|(_, target)| target.readable()).collect();
        let addresses: Vec<u32> = targets.iter().map(|(_, target)| target.address).collect();
        let mut values = Vec::with_capacity(addresses.len());
        match registers.read_all(&addresses) {
            Ok(words) => values.extend(words.into_iter().map(Some)),
            Err(error) => {
                // Some cannot be read; or the device does not answer, which its first register tells.
                registers.read(found.address).map_err(|_| Failure::from(error))?;
                read_allowed(registers, &addresses, &mut values)?;
            }
        }
        let full = |name: String| if found.address == 0 { name } else { format!("{block}.{name}") };
        for ((name, target), word) in targets.into_iter().zip(values) {
            match word {
                Some(word) => rows.push(Row::new(full(name), &target, word)),
                None => refused.push(full(name)),
            }
        }
    }
    show(cli, &rows)?;
    if !refused.is_empty() {
        eprintln!("left out, as the device has none such, or not for this client: {}", refused.join(" "));
    }
    Ok(())
}

/// Reads those of many registers that the device has, and lets this client read. It ends at the first other one: halves are tried.
fn read_allowed<R: Registers>(
    registers: &mut R,
    addresses: &[u32],
    values: &mut Vec<Option<u32>>,
) -> Result<(), Failure>
where
    Failure: From<R::Error>,
{
    match registers.read_all(addresses).map_err(Failure::from) {
        Ok(words) => values.extend(words.into_iter().map(Some)),
        Err(failure) if !failure.is_answer() => return Err(failure),
        Err(_) if addresses.len() == 1 => values.push(None),
        Err(_) => {
            let (first, second) = addresses.split_at(addresses.len() / 2);
            read_allowed(registers, first, values)?;
            read_allowed(registers, second, values)?;
        }
    }
    Ok(())
}

fn get<R: Registers>(cli: &Cli, registers: &mut R, blocks: &[Found], names: &[String]) -> Result<(), Failure>
where
    Failure: From<R::Error>,
{
    let targets = names.iter().map(|name| Target::find(blocks, name)).collect::<Result<Vec<_>, _>>()?;
    if let Some((name, _)) = names.iter().zip(&targets).find(|(_, target)| !target.readable()) {
        return Err(Failure::usage(
            format!("{name} cannot be read"),
            "its page in the reference says what can be done to it",
        ));
    }
    let addresses: Vec<u32> = targets.iter().map(|target| target.address).collect();
    let words = registers.read_all(&addresses)?;
    let rows = names.iter().zip(&targets).zip(words).map(|((name, target), word)| Row::new(name.clone(), target, word));
    show(cli, &rows.collect::<Vec<_>>())
}

fn set<R: Registers>(cli: &Cli, registers: &mut R, blocks: &[Found], name: &str, value: u32) -> Result<(), Failure>
where
    Failure: From<R::Error>,
{
    let target = Target::find(blocks, name)?;
    if !target.writable() {
        return Err(Failure::usage(
            format!("{name} cannot be written"),
            "its page in the reference says what can be done to it",
        ));
    }
    if value > target.max() {
        let most = format!("it holds 0 to {}", target.max());
        return Err(Failure::usage(format!("{value} does not fit {name}"), most));
    }
    target.write(registers, value)?;
    if target.readable() && target.read(registers)? != value {
        let hint = "it cannot be changed now: addresses only while CTRL.enable is 0, arguments only between commands";
        return Err(Failure::usage(format!("the device did not take {value} for {name}"), hint));
    }
    if cli.json {
        return print_json(&Row { name: name.to_owned(), address: target.address, value, fields: Vec::new() });
    }
    eprintln!("{name} is {value}");
    Ok(())
}
