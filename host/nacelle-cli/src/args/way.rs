// SPDX-License-Identifier: Apache-2.0
//! The way to a device.

use std::net::IpAddr;
use std::time::Duration;

use clap::Args;
use nacelle::{Chosen, LinkChoice, Options};
use nacelle_link::WireDir;
use nacelle_wire::admission::Token;

use super::parse::{parse_source, parse_token_file};

/// The link to a device, and the caller's place on it.
#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    /// The link to the device: auto, wire, udp, shm (memory shared with a device of the same user on this machine),
    /// packet:INTERFACE (frames of a network interface; needs CAP_NET_RAW, and an address by --source), xdp:INTERFACE (the same by an
    /// AF_XDP socket; needs CAP_NET_ADMIN and CAP_BPF, too), or verbs[:DEVICE] (an RDMA NIC, or Linux' soft-RoCE)
    #[arg(long, default_value = "auto")]
    pub(crate) link: LinkChoice,
    /// The caller's own address, on the wire with the length of its prefix [default: a free one in the device's subnet; by UDP
    /// a free loopback address, or the one that packets to the device leave from]
    #[arg(long, value_name = "ADDRESS/BITS", value_parser = parse_source)]
    pub(crate) source: Option<(IpAddr, u8)>,
}

/// The way to a device.
#[derive(Debug, Args)]
pub(crate) struct WayArgs {
    /// The service's port [default: what the device publishes, else 12345]
    #[arg(long)]
    pub(crate) port: Option<u16>,
    #[command(flatten)]
    pub(crate) link: LinkArgs,
    /// Longest IP packet, in bytes [default: the longest that is known to arrive, up to 4200]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(576..=9216))]
    pub(crate) mtu: Option<u16>,
    /// A file with the token that the device admits this caller by: 32 hexadecimal digits [default: $NACELLE_TOKEN_FILE]
    #[arg(long = "token-file", value_name = "FILE", value_parser = parse_token_file)]
    pub(crate) token: Option<Token>,
    /// Time that a device which is not Nacelle's gets between its answer and what follows [default: 16 times as long as it took to
    /// answer the region request, 100 at most]
    #[arg(long, value_name = "MS")]
    pub(crate) answer_gap: Option<u64>,
}

impl LinkArgs {
    /// Options by which a device is reached by this link, and which fail when nothing moves for `timeout`.
    pub(crate) fn options(&self, wire: &WireDir, timeout: Duration) -> Options {
        Options {
            link: self.link,
            wire: Some(wire.path().to_owned()),
            source: self.source,
            timeout,
            ..Options::default()
        }
    }

    /// By which link a device is reached, and why.
    pub(crate) fn to(&self, ip: IpAddr, wire: &WireDir) -> Chosen {
        self.link.resolve(ip, self.source.map(|(ip, _)| ip), Some(wire))
    }
}

impl WayArgs {
    /// Options by which a device is reached on this way, and which fail when nothing moves for `timeout`.
    pub(crate) fn options(&self, wire: &WireDir, timeout: Duration) -> Options {
        let mut options = Options {
            port: self.port,
            mtu: self.mtu.map(usize::from),
            answer_gap: self.answer_gap.map(Duration::from_millis),
            ..self.link.options(wire, timeout)
        };
        options.connect.token = self.token;
        options
    }
}
