// SPDX-License-Identifier: Apache-2.0
//! Arguments of `nacelle trace`.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use nacelle_manage::map;

use super::parse::{parse_ethertype, parse_interval, parse_opcode, parse_qpn, parse_seconds};

/// `SNAP` (docs/reference/trace.md) holds bytes: fewer than this.
const SNAP_END: i64 = map::trace::SNAP.mask as i64 + 1;

/// What a trace waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TriggerArg {
    /// A frame that the filter takes; all frames are recorded
    Match,
    /// A drop that the device counts
    Drop,
}

/// A direction, seen from the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DirectionArg {
    /// Received frames
    Rx,
    /// Sent frames
    Tx,
}

#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// The device's name or address on the wire; another address, or one with a port, is reached over the network by IPbus
    pub(crate) device: String,
    /// Write a pcapng file instead of showing the frames
    #[arg(short, long, value_name = "FILE", visible_short_alias = 'w')]
    pub(crate) output: Option<PathBuf>,
    /// Stop after so long [default: when interrupted, or by --frames]
    #[arg(long, value_parser = parse_seconds)]
    pub(crate) seconds: Option<Duration>,
    /// Stop after so many frames, with --trigger after it [default: with --trigger 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) frames: Option<u16>,
    /// Record in a ring until this happens, then go on for --frames
    #[arg(long, value_name = "WHAT")]
    pub(crate) trigger: Option<TriggerArg>,
    /// Keep the newest frames when there is no more room, instead of the first ones; --trigger does
    #[arg(long)]
    pub(crate) ring: bool,
    /// Record so many bytes of each frame
    #[arg(long, value_name = "BYTES", default_value = "384", value_parser = clap::value_parser!(u16).range(1..SNAP_END))]
    pub(crate) snap: u16,
    /// Record one direction only
    #[arg(long)]
    pub(crate) direction: Option<DirectionArg>,
    /// Filter: RoCEv2 frames
    #[arg(long)]
    pub(crate) roce: bool,
    /// Filter: frames from and to this IPv4 address
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) peer: Option<Ipv4Addr>,
    /// Filter: RoCEv2 frames that are received for this queue pair of the device
    #[arg(long, value_name = "QPN", value_parser = parse_qpn)]
    pub(crate) qpn: Option<u32>,
    /// Filter: RoCEv2 frames that are sent to this queue pair of a peer
    #[arg(long, value_name = "QPN", value_parser = parse_qpn)]
    pub(crate) peer_qpn: Option<u32>,
    /// Filter: RoCEv2 frames with this opcode of the BTH, as a number
    #[arg(long, value_name = "OPCODE", value_parser = parse_opcode)]
    pub(crate) opcode: Option<u8>,
    /// Filter: frames with this `EtherType`: a number, arp or ipv4
    #[arg(long, value_name = "TYPE", value_parser = parse_ethertype)]
    pub(crate) ethertype: Option<u16>,
    /// Over the network: log in with the token in this file, 32 hexadecimal digits [default: what $NACELLE_TOKEN has]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Over the network: fail when the device does not answer for so long
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = parse_interval)]
    pub(crate) timeout: Duration,
}
