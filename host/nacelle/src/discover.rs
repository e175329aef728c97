// SPDX-License-Identifier: Apache-2.0
//! Which devices are on a wire.
//!
//! Each device publishes `<wire>/<name>.device.json` while it runs. A file whose device does not answer on its management
//! socket belongs to a device that died: it is shown as such, never taken for a live one.

use std::fs;
use std::net::Ipv4Addr;
use std::time::Duration;

use nacelle_link::WireDir;
use nacelle_wire::MacAddr;
use serde::{Deserialize, Serialize};

use crate::control::Control;

/// How the names of descriptor files end.
pub const DESCRIPTOR_SUFFIX: &str = ".device.json";
/// How long a device may take to say that it runs when all are listed, and when it is the one that is meant.
const LISTED_WITHIN: Duration = Duration::from_secs(1);
const MEANT_WITHIN: Duration = Duration::from_secs(3);
/// Longest descriptor read, in bytes.
const MAX_DESCRIPTOR: u64 = 1 << 20;

/// What a device says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    /// Its name on the wire.
    pub name: String,
    /// What it is.
    pub kind: DeviceKind,
    /// Its IPv4 address.
    pub ip: Ipv4Addr,
    /// Length of its subnet's prefix, in bits.
    pub prefix_len: u8,
    /// Its MAC address.
    #[serde(with = "mac_text")]
    pub mac: MacAddr,
    /// The port that its service listens on, in the TCP port space of the RDMA connection manager.
    pub port: u16,
    /// Width of its data path, in bits; 0 if it has none.
    pub data_w: u32,
    /// The clock at which its cycles are converted to time, in Hz.
    pub clock_hz: u32,
    /// Device memory, in bytes.
    pub memory_bytes: u64,
    /// The process that runs it.
    pub pid: u32,
    /// What it can be called for.
    pub functions: Vec<FunctionInfo>,
}

/// What a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// The RTL, simulated.
    Rtl,
    /// The software device.
    Soft,
}

impl std::fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Rtl => "rtl",
            Self::Soft => "soft",
        })
    }
}

/// A function that a device offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionInfo {
    /// The code that selects it, 1 to 127.
    pub code: u8,
    /// The kernel's name.
    pub name: String,
    /// The kernel's version.
    pub version: u32,
    /// What it does and which regions it takes, for people; empty if unknown.
    pub doc: String,
}

impl FunctionInfo {
    /// A function of a kernel, with the description of those that are documented.
    #[must_use]
    pub fn known(code: u8, name: &str, version: u32) -> Self {
        let doc = match name {
            "increment" => "adds 1 to every byte of every region; any regions, outputs or inputs and outputs",
            "empty" => "does nothing; any regions",
            "matmul" => {
                "C = A x B, int32 or float32, row major; regions: argument block of 64 bytes (input), A (input), \
                 B (input), C (output)"
            }
            _ => "",
        };
        Self { code, name: name.to_owned(), version, doc: doc.to_owned() }
    }
}

/// A device found on a wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// What it says of itself.
    #[serde(flatten)]
    pub device: Descriptor,
    /// Whether it answers.
    pub alive: bool,
}

/// What the devices on a wire have published, by name, whether or not they still run. Files that are no descriptors are passed
/// over.
#[must_use]
pub fn published(wire: &WireDir) -> Vec<Descriptor> {
    let Ok(entries) = fs::read_dir(wire.path()) else { return Vec::new() };
    let mut found: Vec<Descriptor> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(DESCRIPTOR_SUFFIX))
        .filter(|entry| entry.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_DESCRIPTOR))
        .filter_map(|entry| serde_json::from_slice::<Descriptor>(&fs::read(entry.path()).ok()?).ok())
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// All devices that published themselves on a wire, by name. They are asked side by side whether they run, for a second at
/// most.
#[must_use]
pub fn list(wire: &WireDir) -> Vec<Found> {
    ask(wire, published(wire), LISTED_WITHIN)
}

/// The first of `devices` that answers; all are asked side by side, for 3 s at most.
#[must_use]
pub fn alive(wire: &WireDir, devices: Vec<Descriptor>) -> Option<Descriptor> {
    ask(wire, devices, MEANT_WITHIN).into_iter().find(|found| found.alive).map(|found| found.device)
}

fn ask(wire: &WireDir, devices: Vec<Descriptor>, patience: Duration) -> Vec<Found> {
    let alive: Vec<bool> = std::thread::scope(|scope| {
        let ask = |device: &Descriptor| {
            let name = device.name.clone();
            scope.spawn(move || Control::is_alive(wire, &name, patience))
        };
        let answers: Vec<_> = devices.iter().map(ask).collect();
        answers.into_iter().map(|answer| answer.join().unwrap_or_default()).collect()
    });
    devices.into_iter().zip(alive).map(|(device, alive)| Found { device, alive }).collect()
}

/// Reads a MAC address: six bytes of two hexadecimal digits, with colons between.
#[must_use]
pub fn parse_mac(text: &str) -> Option<MacAddr> {
    let mut bytes = text.split(':').map(|digits| {
        let hexadecimal = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        hexadecimal.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
    });
    let mut mac = [0; 6];
    for byte in &mut mac {
        *byte = bytes.next()??;
    }
    bytes.next().is_none().then_some(MacAddr(mac))
}

/// MAC addresses as people write them.
mod mac_text {
    use nacelle_wire::MacAddr;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(mac: &MacAddr, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(mac)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<MacAddr, D::Error> {
        let text = String::deserialize(deserializer)?;
        super::parse_mac(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is no MAC address")))
    }
}
