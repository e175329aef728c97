// SPDX-License-Identifier: Apache-2.0
//! Devices that run: listed, looked at, stopped, and found by what people call them.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use nacelle::description::Function;
use nacelle::{Description, Descriptor, Device, Options};
use nacelle_link::WireDir;
use nacelle_manage::discover::Found;
use nacelle_manage::{Control, Done, Error, Request, discover};
use serde::Serialize;

use crate::args::Cli;
use crate::failure::Failure;
use crate::output::{print, print_json, table};

/// How long reading the description of a device may make no progress.
const DESCRIBED_WITHIN: Duration = Duration::from_secs(3);
/// How long a device may take to end.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// The live device that has this name or address.
pub(crate) fn find(wire: &WireDir, device: &str) -> Result<Descriptor, Failure> {
    let mut named = discover::published(wire);
    named.retain(|one| one.name == device || Ok(one.ip) == device.parse());
    let alive = discover::alive(wire, named);
    alive.ok_or_else(|| Error::NoSuchDevice { name: device.into(), wire: wire.path().into() }.into())
}

/// The address that is meant: an address, known on the wire or not, or the name of a device there.
pub(crate) fn address(wire: &WireDir, device: &str) -> Result<IpAddr, Failure> {
    match device.parse() {
        Ok(ip) => Ok(ip),
        Err(_) => find(wire, device).map(|device| device.ip),
    }
}

/// A device on the wire, and what it says of itself.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    found: Found,
    /// `None` if it did not respond, or has none.
    description: Option<Description>,
}

/// What a device says of itself, if it says anything; `None` if it does not answer.
pub(crate) fn description(ip: IpAddr, options: &Options) -> Option<Option<Description>> {
    let device = Device::connect(ip, options).ok()?;
    let description = device.describe().ok()?.cloned();
    // The device frees the connection at once if it gets the DREQ.
    let _ = device.settle(options.timeout);
    Some(description)
}

/// Reads the descriptions of all devices that respond, over the network and in parallel.
fn described(wire: &WireDir, devices: Vec<Found>) -> Vec<Listed> {
    let describe = |found: &Found| {
        let options = Options { wire: Some(wire.path().to_owned()), timeout: DESCRIBED_WITHIN, ..Options::default() };
        description(found.device.ip, &options).flatten()
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = devices
            .into_iter()
            .map(|found| {
                let description = (found.alive && !found.device.ip.is_unspecified()).then(|| {
                    let found = found.clone();
                    scope.spawn(move || describe(&found))
                });
                (found, description)
            })
            .collect();
        let listed = running.into_iter().map(|(found, description)| Listed {
            found,
            description: description.and_then(|thread| thread.join().unwrap_or_default()),
        });
        listed.collect()
    })
}

pub(crate) fn ls(cli: &Cli) -> Result<(), Failure> {
    let wire = cli.wire()?;
    let devices = described(&wire, discover::list(&wire));
    if cli.json {
        return print_json(&devices);
    }
    if devices.is_empty() {
        eprintln!("no device on the wire {}", wire.path().display());
        return Ok(());
    }
    let mut rows = vec![["NAME", "ADDRESS", "KIND", "STATE", "FUNCTIONS"].map(str::to_owned).to_vec()];
    rows.extend(devices.iter().map(|Listed { found, description }| {
        let functions = description.as_ref().map_or(&[][..], |description| &description.functions);
        let device = &found.device;
        let kind =
            if device.data_w == 0 { device.kind.to_string() } else { format!("{}{}", device.kind, device.data_w) };
        let state = if found.alive { "up" } else { "dead" };
        let address =
            if device.ip.is_unspecified() { "none yet".into() } else { format!("{}/{}", device.ip, device.prefix_len) };
        vec![device.name.clone(), address, kind, state.into(), kernels(functions)]
    }));
    print(&table(&rows, 5))
}

/// The kernels, each with the codes of its functions: `increment(1,3) matmul(16)`.
pub(crate) fn kernels(functions: &[Function]) -> String {
    let mut kernels: Vec<(&str, Vec<String>)> = Vec::new();
    for Function { code, kernel, .. } in functions {
        match kernels.iter_mut().find(|(name, _)| name == kernel) {
            Some((_, codes)) => codes.push(code.to_string()),
            None => kernels.push((kernel, vec![code.to_string()])),
        }
    }
    let texts = kernels.iter().map(|(name, codes)| format!("{name}({})", codes.join(",")));
    texts.collect::<Vec<_>>().join(" ")
}

pub(crate) fn stats(cli: &Cli, device: &str) -> Result<(), Failure> {
    let wire = cli.wire()?;
    let stats = Control::open(&wire, &find(&wire, device)?.name)?.stats()?;
    if cli.json {
        return print_json(&stats);
    }
    let cycles = ("cycles".to_owned(), stats.cycles);
    let rows = std::iter::once(cycles).chain(stats.counters).map(|(name, value)| vec![name, value.to_string()]);
    print(&table(&rows.collect::<Vec<_>>(), 1))
}

pub(crate) fn stop(cli: &Cli, device: &str) -> Result<(), Failure> {
    let wire = cli.wire()?;
    let device = find(&wire, device)?;
    let Done {} = Control::open(&wire, &device.name)?.ask(&Request::Shutdown {})?;
    // It answers first, then leaves the wire.
    let deadline = Instant::now() + STOP_WITHIN;
    while discover::published(&wire).iter().any(|published| published.name == device.name) {
        if Instant::now() > deadline {
            return Err(Failure::timeout(
                format!("{} has not ended {} s after it was asked to", device.name, STOP_WITHIN.as_secs()),
                format!("end its process, {}", device.pid),
            ));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    if cli.json {
        return print_json(&serde_json::json!({ "stopped": device.name }));
    }
    eprintln!("{} is stopped", device.name);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_listed_by_kernel() {
        let functions = [(1, "increment"), (16, "matmul"), (3, "increment")];
        let functions = functions.map(|(code, name)| Function::new(code, name));
        assert_eq!(kernels(&functions), "increment(1,3) matmul(16)");
        assert_eq!(kernels(&[]), "");
    }
}
