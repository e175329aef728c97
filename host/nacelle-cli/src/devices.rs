// SPDX-License-Identifier: Apache-2.0
//! `nacelle devices`: the devices of the network, those that make themselves known by multicast DNS and those of a list.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use nacelle::Description;
use nacelle_link::WireDir;
use serde::Serialize;

use crate::args::{Cli, DevicesArgs};
use crate::dns_sd::browse;
use crate::failure::Failure;
use crate::list::{description, kernels};
use crate::output::{print, print_json, table};

/// The port of a device of the list that names none.
const PORT: u16 = 12345;

/// Where a device is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Origin {
    Mdns,
    List,
    Both,
}

/// A device that is to be there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Known {
    /// What it calls itself; `None` if it has not made itself known.
    name: Option<String>,
    origin: Origin,
}

/// A device, and what it says of itself.
#[derive(Serialize)]
struct Listed {
    address: SocketAddr,
    #[serde(flatten)]
    known: Known,
    /// Whether it has answered when it was called.
    answers: bool,
    /// `None` if it has none, or did not answer.
    description: Option<Description>,
}

type Devices = BTreeMap<SocketAddr, Known>;

pub(crate) fn devices(cli: &Cli, args: &DevicesArgs) -> Result<(), Failure> {
    let mut devices = match &args.list {
        Some(path) => read_list(path)?,
        None => Devices::new(),
    };
    if !args.only_list {
        for (address, name) in browse(args.wait)? {
            let listed = devices.contains_key(&address);
            let origin = if listed { Origin::Both } else { Origin::Mdns };
            devices.insert(address, Known { name: Some(name), origin });
        }
    }
    let listed = ask_all(devices, args, &cli.wire()?);
    if cli.json {
        return print_json(&listed);
    }
    if listed.is_empty() {
        eprintln!(
            "no device has made itself known within {} s; routers do not pass multicast DNS on: name devices of other networks in --list FILE",
            args.wait.as_secs_f64()
        );
        return Ok(());
    }
    let mut rows = vec![["NAME", "ADDRESS", "PORT", "FOUND BY", "STATE", "FUNCTIONS"].map(str::to_owned).to_vec()];
    rows.extend(listed.iter().map(|one| {
        let functions = one.description.as_ref().map_or(&[][..], |description| &description.functions);
        let found = match one.known.origin {
            Origin::Mdns => "mdns",
            Origin::List => "list",
            Origin::Both => "mdns, list",
        };
        vec![
            one.known.name.clone().unwrap_or_else(|| "-".into()),
            one.address.ip().to_string(),
            one.address.port().to_string(),
            found.into(),
            if one.answers { "up" } else { "no answer" }.into(),
            kernels(functions),
        ]
    }));
    print(&table(&rows, 6))
}

/// The addresses in a file: one a line, with a port or without; what follows a `#` is passed over.
fn read_list(path: &Path) -> Result<Devices, Failure> {
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!("cannot read {}: {error}", path.display()), "is it there, and may you read it?")
    })?;
    let mut devices = Devices::new();
    for (number, line) in text.lines().enumerate() {
        let entry = line.split('#').next().unwrap_or_default().trim();
        if entry.is_empty() {
            continue;
        }
        let address = entry.parse().or_else(|_| entry.parse().map(|ip: IpAddr| SocketAddr::new(ip, PORT)));
        let address = address.map_err(|_| {
            Failure::usage(
                format!("{}:{}: {entry:?} is no address", path.display(), number + 1),
                "a line is ADDRESS or ADDRESS:PORT, with an IPv6 address in brackets before a port",
            )
        })?;
        devices.insert(address, Known { name: None, origin: Origin::List });
    }
    Ok(devices)
}

/// Calls one after the other, and asks what they are. By UDP all calls of this machine come from one port: not at the same time.
fn ask_all(devices: Devices, args: &DevicesArgs, wire: &WireDir) -> Vec<Listed> {
    let ask = |(address, known): (SocketAddr, Known)| {
        let mut options = args.link.options(wire, args.timeout);
        options.port = Some(address.port());
        let answer = description(address.ip(), &options);
        Listed { address, known, answers: answer.is_some(), description: answer.flatten() }
    };
    devices.into_iter().map(ask).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Result<Devices, Failure> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        read_list(file.path())
    }

    #[test]
    fn a_list_has_an_address_a_line() {
        let devices = list("# rack 1\n10.77.0.2\n 10.77.0.3:4000 # the old one\n\n[fe80::1]:5\nfe80::2\n").unwrap();
        let addresses: Vec<_> = devices.keys().map(ToString::to_string).collect();
        assert_eq!(addresses, ["10.77.0.2:12345", "10.77.0.3:4000", "[fe80::1]:5", "[fe80::2]:12345"]);
        assert!(devices.values().all(|known| known.name.is_none() && known.origin == Origin::List));
    }

    #[test]
    fn what_is_no_address_is_named_with_its_line() {
        for wrong in ["nacelle", "10.77.0", "10.77.0.2:70000", "fe80::1:port", "10.77.0.2 10.77.0.3"] {
            let failure = list(&format!("10.77.0.1\n{wrong}\n")).unwrap_err();
            let shown = failure.to_string();
            assert!(shown.contains(":2: ") && shown.contains(wrong), "{shown}");
        }
        assert!(read_list(Path::new("/does/not/exist")).unwrap_err().to_string().contains("/does/not/exist"));
    }
}
