// SPDX-License-Identifier: Apache-2.0
//! `nacelle describe`: what a device tells about itself, and what a connection to it agrees on.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use nacelle::description::{Function, RegionAccess, RegionInfo};
use nacelle::{Agreed, Chosen, ConnectionOptions, Description, Descriptor, Device, LinkKind, Load};
use nacelle_manage::{AddressState, Control, Ipv6State};
use serde::Serialize;

use crate::args::{Cli, DescribeArgs};
use crate::failure::Failure;
use crate::list;
use crate::output::{print, print_json, table};

/// How long the device may take to agree to the end of the connection.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);
const MIB: u64 = 1 << 20;

#[derive(Serialize)]
struct Described {
    device: IpAddr,
    #[serde(flatten)]
    chosen: Chosen,
    /// What it publishes on this machine's wire; `None` if it does not.
    published: Option<Descriptor>,
    /// What it tells over the network; `None` if it tells nothing.
    description: Option<Description>,
    agreed: Option<Agreed>,
    /// Its address by its registers, and where it has come from; `None` if they cannot be read from this machine.
    address: Option<AddressState>,
    /// Its IPv6 addresses, likewise; `None` also if it was built without IPv6.
    ipv6: Option<Ipv6State>,
    /// How busy it is; `None` if it does not say.
    load: Option<Load>,
}

pub(crate) fn describe(cli: &Cli, args: &DescribeArgs) -> Result<(), Failure> {
    let wire = cli.wire()?;
    let ip = list::address(&wire, &args.device)?;
    let chosen = args.way.link.to(ip, &wire);
    let device = Device::connect(ip, &args.way.options(&wire, args.timeout))?;
    let description = device.describe()?.cloned();
    // As many contexts as the device gives.
    let connection = device.open(&ConnectionOptions { contexts: u8::MAX })?;
    let agreed = connection.agreed();
    connection.close()?;
    let load = device.load()?;
    let _it_notices_by_itself_later = device.settle(CLOSE_WITHIN)?;
    let published = device.descriptor().cloned();
    let mut registers = published.as_ref().and_then(|published| Control::open(&wire, &published.name).ok());
    let address = registers.as_mut().and_then(|registers| AddressState::read(registers).ok());
    let ipv6 = registers.as_mut().and_then(|registers| Ipv6State::read(registers).ok().flatten());
    let described = Described { device: ip, chosen, published, description, agreed, address, ipv6, load };
    if cli.json { print_json(&described) } else { print(&described.text()) }
}

impl Described {
    fn text(&self) -> String {
        let mut rows = vec![row("address", self.device)];
        if let Some(published) = &self.published {
            rows.push(row("name", &published.name));
        }
        rows.extend(self.address.as_ref().map(|address| row("IPv4 address", address)));
        rows.extend(self.ipv6.as_ref().map(|ipv6| row("IPv6 addresses", ipv6)));
        let link = match self.chosen.link {
            LinkKind::Wire => "wire",
            LinkKind::Udp => "UDP",
            LinkKind::Shm => "shared memory",
            LinkKind::Packet => "packet socket",
            LinkKind::Xdp => "AF_XDP socket",
            LinkKind::Verbs => "RDMA NIC",
        };
        rows.push(row("link", format!("{link}: {}", self.chosen.why)));
        rows.extend(self.agreed.iter().flat_map(agreed));
        rows.extend(self.description.iter().flat_map(limits));
        rows.extend(self.load.as_ref().map(load));
        let mut text = table(&rows, 2);
        match &self.description {
            Some(description) => text.extend(description.functions.iter().map(function)),
            None => text.push_str("\nThe device gives no description of its functions.\n"),
        }
        text
    }
}

fn row(name: &str, value: impl ToString) -> Vec<String> {
    vec![name.to_owned(), value.to_string()]
}

/// What a connection has agreed on.
fn agreed(agreed: &Agreed) -> Vec<Vec<String>> {
    let mac = agreed.mac.iter().map(|mac| row("MAC address", mac));
    let id = agreed.device_id.iter().map(|id| row("device id", id));
    let rows = [
        row("source address", agreed.local),
        row("path MTU", format!("{} bytes", agreed.path_mtu)),
        row("READs outstanding", agreed.reads),
        row("extensions", extensions(agreed)),
    ];
    id.chain(mac).chain(rows).collect()
}

/// The extensions that were agreed on, in words.
pub(crate) fn extensions(agreed: &Agreed) -> String {
    let contexts = format!("contexts ({})", agreed.contexts);
    let all = [
        (agreed.contexts > 0, contexts.as_str()),
        (agreed.long_set_up, "long set-up"),
        (agreed.windows, "windows"),
        (agreed.selective_repeat, "selective repeat"),
        (agreed.late_acknowledgement, "late acknowledgement"),
    ];
    let agreed: Vec<_> = all.iter().filter_map(|(is_agreed, name)| is_agreed.then_some(*name)).collect();
    if agreed.is_empty() { "none".into() } else { agreed.join(", ") }
}

/// What the device has, and how much of it a connection may have.
fn limits(description: &Description) -> Vec<Vec<String>> {
    let Description { kind, data_w, clock_hz, .. } = description;
    let kind = serde_json::to_value(kind).ok().and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
    let width = if *data_w == 0 { String::new() } else { format!(", {data_w} bits at {} MHz", clock_hz / 1_000_000) };
    // A device that does not know contexts has one call at a time.
    let calls = match description.max_contexts {
        0 | 1 => "1 call".into(),
        contexts => format!("{contexts} calls"),
    };
    let limits = format!("{} regions a connection, {calls} at a time", description.max_regions);
    vec![
        row("build", format!("{} ({kind}{width}), description version {}", description.device, description.version)),
        row("build id", &description.build),
        row("memory", format!("{} MiB", description.memory_bytes / MIB)),
        row("limits", limits),
    ]
}

/// How busy the device is.
fn load(load: &Load) -> Vec<String> {
    let Load { connections, memory_held, calls, running, waiting, .. } = load;
    let held = memory_held.div_ceil(MIB);
    let text = format!(
        "connections {connections}, memory held {held} MiB, kernels running {running}, calls waiting {waiting}, calls so \
         far {calls}"
    );
    row("load", text)
}

/// A function with its arguments, and what its result codes mean.
fn function(function: &Function) -> String {
    let arguments: Vec<_> = function.regions.iter().map(argument).collect();
    let (major, minor) = function.kernel_version;
    let sockets = if function.sockets == 1 { String::new() } else { format!(", in {} sockets", function.sockets) };
    let mut text = format!(
        "\n{} {}({})   kernel {} {major}.{minor}{sockets}\n",
        function.code,
        function.name,
        arguments.join(", "),
        function.kernel,
    );
    let mut line = |what: std::fmt::Arguments<'_>| {
        // A String takes everything.
        let _ = writeln!(text, "    {what}");
    };
    if !function.doc.is_empty() {
        line(format_args!("{}", function.doc));
    }
    for region in function.regions.iter().filter(|region| !region.doc.is_empty()) {
        line(format_args!("{}: {}", region.name, region.doc));
    }
    for (code, meaning) in &function.errors {
        line(format_args!("result {code:#04x}: {meaning}"));
    }
    text
}

fn argument(region: &RegionInfo) -> String {
    let access = match region.access {
        RegionAccess::In => "in ",
        RegionAccess::Out => "out ",
        RegionAccess::Inout => "inout ",
        RegionAccess::Internal => "internal ",
        _ => "",
    };
    let more = if region.repeated { "..." } else { "" };
    format!("{access}{}{more}", region.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_shown_with_its_arguments_and_result_codes() {
        let mut matmul = Function::new(16, "matmul");
        matmul.doc = "Multiplies.".into();
        matmul.sockets = 2;
        matmul.errors.insert(0x11, "a region is too small".into());
        matmul.regions = vec![
            RegionInfo::new("a", RegionAccess::In, false, "the left matrix"),
            RegionInfo::new("c", RegionAccess::Inout, true, ""),
        ];
        let expected = "\n16 matmul(in a, inout c...)   kernel matmul 1.0, in 2 sockets\n    Multiplies.\n    \
                        a: the left matrix\n    result 0x11: a region is too small\n";
        assert_eq!(function(&matmul), expected);
    }
}
