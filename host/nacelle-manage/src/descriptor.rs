// SPDX-License-Identifier: Apache-2.0
//! What a device publishes of itself.

use std::net::IpAddr;

use nacelle_wire::MacAddr;
use serde::{Deserialize, Serialize};

/// What a device publishes of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    /// Its name on the wire.
    pub name: String,
    /// What it is.
    pub kind: DeviceKind,
    /// How callers reach it.
    #[serde(default)]
    pub link: LinkKind,
    /// Its address.
    pub ip: IpAddr,
    /// Length of its subnet's prefix, in bits.
    pub prefix_len: u8,
    /// Its MAC address; zeros if it is reached by UDP.
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

/// How a device is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkKind {
    /// By Ethernet frames on the wire.
    #[default]
    Wire,
    /// By UDP datagrams, through the kernel's network.
    Udp,
    /// By Ethernet frames of a network interface, as a host of its network.
    Packet,
    /// The same, but by an AF_XDP socket of the caller. No device publishes it: one that has such a socket is a host of an interface's
    /// network, which is [`Self::Packet`].
    Xdp,
    /// By memory that caller and device share, on one machine. No device publishes it: it is a way to one that publishes UDP.
    Shm,
    /// By an RDMA NIC of the caller. No device publishes it: it is a way to one that the NIC's network reaches.
    Verbs,
}

impl std::fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Rtl => "rtl",
            Self::Soft => "soft",
        })
    }
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
