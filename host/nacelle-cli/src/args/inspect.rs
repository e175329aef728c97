// SPDX-License-Identifier: Apache-2.0
//! Commands that look at a device by calling it, or explain what it says.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::parse::{parse_interval, parse_seconds};
use super::{LinkArgs, WayArgs};

/// The longest transfer of one work request, in bytes.
const MAX_TRANSFER: i64 = 1 << 31;

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A number or a name, such as 8, 0x63 or INVALID_SERVICE_ID, or words of the message. Before it, or alone for all codes of a
    /// kind: error, result, regions, reject, syndrome or status
    pub(crate) code: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DevicesArgs {
    /// A file that names devices, one a line: ADDRESS or ADDRESS:PORT
    #[arg(long, value_name = "FILE")]
    pub(crate) list: Option<PathBuf>,
    /// Ask nobody by multicast DNS
    #[arg(long, requires = "list")]
    pub(crate) only_list: bool,
    /// How long devices have to make themselves known
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = parse_seconds)]
    pub(crate) wait: Duration,
    #[command(flatten)]
    pub(crate) link: LinkArgs,
    /// A device that makes no progress for so long has not answered
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = parse_seconds)]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct DescribeArgs {
    /// The device's address, or its name on the wire
    pub(crate) device: String,
    #[command(flatten)]
    pub(crate) way: WayArgs,
    /// Fail when there is no progress for so long
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse_seconds)]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The device's address, or its name on the wire
    pub(crate) device: String,
    #[command(flatten)]
    pub(crate) way: WayArgs,
    /// How long each step may wait for the device
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = parse_seconds)]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// The device's address, or its name on the wire
    pub(crate) device: String,
    #[command(flatten)]
    pub(crate) way: WayArgs,
    /// Time for each measurement
    #[arg(long, value_name = "SECONDS", default_value = "0.2", value_parser = parse_seconds)]
    pub(crate) seconds: Duration,
    /// Bytes of the transfers whose throughput is measured
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "4096,65536,1048576,16777216",
          value_parser = clap::value_parser!(u32).range(1..=MAX_TRANSFER))]
    pub(crate) sizes: Vec<u32>,
    /// Fail when there is no progress for so long
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse_seconds)]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The device's name or address
    pub(crate) device: String,
    /// Print a table of one interval instead, without a terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Time between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = parse_interval)]
    pub(crate) interval: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Names or addresses of devices [default: all on the wire, also those that are started later]
    pub(crate) device: Vec<String>,
    /// Where Prometheus connects. Who reaches this address sees all that the devices count
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9797")]
    pub(crate) listen: SocketAddr,
    /// How long each device may take to answer; one that does not keep up does not delay the others
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = parse_interval)]
    pub(crate) timeout: Duration,
    /// Print the metrics once instead, without a server
    #[arg(long, conflicts_with = "listen")]
    pub(crate) once: bool,
}
