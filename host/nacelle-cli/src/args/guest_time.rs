// SPDX-License-Identifier: Apache-2.0
//! What `nacelle guest-time` takes.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::parse::{parse_interval, parse_line_rate, parse_percent};

#[derive(Debug, Args)]
pub(crate) struct GuestTimeArgs {
    /// The shell script of each guest; one: the second device has no guest
    #[arg(required = true, num_args = 1..=2, value_name = "SCRIPT")]
    pub(crate) scripts: Vec<PathBuf>,
    /// The kernel, User-mode Linux with CONFIG_UML_TIME_TRAVEL_SUPPORT [default: build/guest/linux, here or above]
    #[arg(long, value_name = "FILE")]
    pub(crate) linux: Option<PathBuf>,
    /// The library of the simulated devices [default: build/sim/libnacelle_sim_512_nic.so, here or above]
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
    /// Where the guests' consoles are kept; the directory is made [default: they are not]
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// The MTU of the guests' interfaces
    #[arg(long, value_name = "BYTES", default_value = "1500")]
    pub(crate) mtu: u32,
    /// Memory of each guest, in MiB
    #[arg(long, value_name = "MIB", default_value = "128")]
    pub(crate) memory: u32,
    /// From one device to the other, in nanoseconds of device time
    #[arg(long, value_name = "NS", default_value = "1000")]
    pub(crate) delay: u32,
    /// The rate of a switch between the devices, in Mbit/s; 0: there is none
    #[arg(long, value_name = "MBPS", default_value = "0")]
    pub(crate) rate: u32,
    /// Lose this share of the frames between the devices
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = parse_percent)]
    pub(crate) loss: f64,
    /// The rate of the devices' Ethernet in Mbit/s, or "none" for one beat a cycle [default: 100000]
    #[arg(long, value_name = "MBPS", value_parser = parse_line_rate)]
    pub(crate) line_rate: Option<u32>,
    /// The seed of all chance, in the devices, between them and in the guests
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// When the run ends at the latest, in seconds of device time
    #[arg(long, value_name = "SECONDS", value_parser = parse_interval, default_value = "60")]
    pub(crate) limit: Duration,
    /// How long, by the clock on the wall, a guest may run without letting device time pass
    #[arg(long, value_name = "SECONDS", value_parser = parse_interval, default_value = "120")]
    pub(crate) patience: Duration,
}
