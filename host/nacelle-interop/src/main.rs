// SPDX-License-Identifier: Apache-2.0
//! The other side of Linux' own RDMA tools: rping, ucmatose, perftest and ibv_rc_pingpong over the virtual wire; and of programs that write
//! and read windows.
//!
//! Each run joins the wire as one station, plays one role of one tool, checks what there is to check and ends.

#![warn(missing_docs)]

mod failure;
mod manners;
mod perftest;
mod pingpong;
mod rping;
mod station;
mod tcp;
mod transfers;
mod ucmatose;

use clap::{Args, Parser, Subcommand};
use core::{net::Ipv4Addr, str::FromStr, time::Duration};
use failure::{Failure, Outcome};
use nacelle_link::{Captured, Impaired, Impairments, Link, LinkError, PcapngWriter, VirtualWire, WireDir};
use nacelle_roce::{Endpoint, EndpointConfig, wire::MacAddr};
use station::Station;
use std::{path::PathBuf, process::ExitCode};

/// The other side of Linux' own RDMA tools, over the virtual wire.
///
/// A run without PEER is the tool's server: it waits for one client. With PEER it is the client, and repeats its request while no server
/// listens there. Every check prints a line that begins with "ok:"; the first that fails ends the run.
///
/// Exit status: 0 if all has passed, 1 if something was wrong, 2 if the command line was, 3 if the time was over.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    station: StationArgs,
    #[command(subcommand)]
    tool: Tool,
}

/// Where this side is on the wire.
#[derive(Args)]
struct StationArgs {
    /// Folder of the virtual wire, on which something must switch (`nacelle wire`). Default: $NACELLE_WIRE, as for `nacelle`.
    #[arg(long, global = true)]
    wire: Option<PathBuf>,
    /// Name of this station's socket on the wire.
    #[arg(long, global = true, default_value = "interop")]
    name: String,
    /// Address of this station and length of its network's prefix.
    #[arg(long, global = true, default_value = "10.77.0.9/16", value_name = "ADDRESS/LENGTH")]
    ip: Network,
    /// IP MTU of the link; 1500 gives a path MTU of 1024, 4200 one of 4096.
    #[arg(long, global = true, default_value_t = 1500)]
    mtu: usize,
    /// Seconds after which the run fails.
    #[arg(long, global = true, default_value_t = 60.0)]
    timeout: f64,
    /// Share of frames that are lost each way, in percent.
    #[arg(long, global = true, default_value_t = 0.0)]
    loss: f64,
    /// Seed of the losses.
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,
    /// File for what is sent and received (pcapng).
    #[arg(long, global = true)]
    capture: Option<PathBuf>,
}

/// An address with the length of its network's prefix.
#[derive(Clone, Copy)]
struct Network {
    ip: Ipv4Addr,
    prefix: u8,
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (ip, prefix) = text.split_once('/').unwrap_or((text, "24"));
        let ip = ip.parse().map_err(|_| format!("{ip} is no IPv4 address"))?;
        let prefix = prefix.parse().ok().filter(|p| *p <= 32).ok_or(format!("{prefix} is not 0 to 32"))?;
        Ok(Self { ip, prefix })
    }
}

/// The tools.
#[derive(Subcommand)]
enum Tool {
    /// `rping -s` or `rping -c`; give the other side the same -C and -S, and -V.
    Rping {
        /// The server; none: this side is the server.
        peer: Option<Ipv4Addr>,
        #[arg(short, long, default_value_t = rping::PORT)]
        port: u16,
        /// Pings (-C).
        #[arg(short = 'C', long, default_value_t = 5)]
        count: u32,
        /// Bytes of a ping (-S), 28 or more.
        #[arg(short = 'S', long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(28..=65536))]
        size: u32,
    },
    /// `ucmatose` or `ucmatose -s ADDRESS`; give the other side the same -C and -S.
    Ucmatose {
        /// The server; none: this side is the server.
        peer: Option<Ipv4Addr>,
        #[arg(short, long, default_value_t = ucmatose::PORT)]
        port: u16,
        /// Messages each way (-C).
        #[arg(short = 'C', long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
        count: u32,
        /// Bytes of a message (-S).
        #[arg(short = 'S', long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
        size: u32,
    },
    /// perftest with -R; give the other side the same -n and -s.
    Perftest {
        /// The program.
        tool: perftest::Tool,
        /// The server; none: this side is the server.
        peer: Option<Ipv4Addr>,
        #[arg(short, long, default_value_t = perftest::PORT)]
        port: u16,
        /// Messages (-n), 5 or more.
        #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(5..=100_000))]
        iterations: u32,
        /// Bytes of a message (-s); atomics have 8.
        #[arg(short = 's', long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=8 << 20))]
        size: u32,
    },
    /// `ibv_rc_pingpong -g 1`; give the other side the same -n and -s.
    Pingpong {
        /// The server; none: this side is the server.
        peer: Option<Ipv4Addr>,
        #[arg(short, long, default_value_t = pingpong::PORT)]
        port: u16,
        /// Messages each way (-n).
        #[arg(short = 'n', long, default_value_t = 100)]
        iterations: u32,
        /// Bytes of a message (-s).
        #[arg(short = 's', long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
        size: u32,
    },
    /// Listens and refuses.
    Reject {
        #[arg(short, long, default_value_t = rping::PORT)]
        port: u16,
        /// Requests to refuse.
        #[arg(short = 'C', long, default_value_t = 1)]
        count: u32,
        /// Reason, as in the standard; 28 is the application's own.
        #[arg(long, default_value_t = 28, value_parser = clap::value_parser!(u16).range(1..))]
        reason: u16,
        /// Seconds before each answer; the other side gets an MRA.
        #[arg(long, default_value_t = 0.0)]
        late: f64,
    },
    /// Listens, accepts, and disconnects at once.
    HangUp {
        #[arg(short, long, default_value_t = rping::PORT)]
        port: u16,
        /// Requests to accept.
        #[arg(short = 'C', long, default_value_t = 1)]
        count: u32,
        /// Seconds before each answer; the other side gets an MRA.
        #[arg(long, default_value_t = 0.0)]
        late: f64,
        /// Let the other side disconnect.
        #[arg(long)]
        wait: bool,
    },
    /// Connects where the peer refuses.
    Refused {
        /// The peer.
        peer: Ipv4Addr,
        #[arg(short, long, default_value_t = 9)]
        port: u16,
        /// Reason expected; 8: no service listens.
        #[arg(long, default_value_t = 8)]
        reason: u16,
    },
    /// Has windows until the peer has told of so many writes and reads: for `nacelle_window_client`.
    Windows {
        /// Writes and reads (-C).
        #[arg(short = 'C', long, default_value_t = transfers::TOLD)]
        count: u32,
    },
    /// Writes and reads memory of a device, or of `nacelle_verbs_server`, without a call.
    Memory {
        /// The peer.
        peer: Ipv4Addr,
        #[arg(short, long, default_value_t = transfers::PORT)]
        port: u16,
        /// Bytes.
        #[arg(short = 'S', long, default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1000..=64 << 20))]
        size: u32,
    },
    /// Connects and disconnects.
    Connect {
        /// The peer.
        peer: Ipv4Addr,
        #[arg(short, long, default_value_t = rping::PORT)]
        port: u16,
        /// Times.
        #[arg(short = 'C', long, default_value_t = 1)]
        count: u32,
    },
}

fn station(args: &StationArgs) -> Outcome<Station> {
    let dir = WireDir::open(args.wire.clone().unwrap_or_else(WireDir::default_path))?;
    let mut captured = Captured::new(VirtualWire::join(&dir, &args.name)?);
    if let Some(path) = &args.capture {
        captured.recorder().start(PcapngWriter::create(path, &[&args.name], "nacelle-interop")?);
    }
    let rules = Impairments { loss: args.loss / 100.0, seed: args.seed, ..Impairments::default() };
    let link: Box<dyn Link> =
        if rules.is_none() { Box::new(captured) } else { Box::new(Impaired::new(captured, rules)) };

    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|e| {
        Failure::Link(LinkError::Io { what: "get random bytes".into(), source: std::io::Error::other(e.to_string()) })
    })?;
    let [a, b, c, d] = args.ip.ip.octets();
    let mut config = EndpointConfig::new(MacAddr([0x02, 0x4e, a, b, c, d]), args.ip.ip, seed);
    config.interface.prefix_len = args.ip.prefix;
    config.interface.ip_mtu = args.mtu;
    Ok(Station::new(Endpoint::new(config), link, Duration::from_secs_f64(args.timeout.clamp(0.1, 86400.0))))
}

fn run(cli: &Cli) -> Outcome {
    // These are programs of the library, with an endpoint of their own.
    match cli.tool {
        Tool::Windows { count } => return transfers::windows(&cli.station, count),
        Tool::Memory { peer, port, size } => return transfers::memory(&cli.station, peer, port, size as usize),
        _ => {}
    }
    let s = &mut station(&cli.station)?;
    let outcome = play(s, cli);
    if outcome.is_err() {
        let counters: Vec<String> =
            s.ep().counters().iter().filter(|(_, n)| *n != 0).map(|(name, n)| format!("{name} {n}")).collect();
        eprintln!("counters: {}", counters.join(", "));
    }
    s.leave()?;
    outcome
}

fn play(s: &mut Station, cli: &Cli) -> Outcome {
    let late = |seconds: f64| Duration::from_secs_f64(seconds.clamp(0.0, 3600.0));
    match cli.tool {
        Tool::Rping { peer, port, count, size } => {
            let plan = rping::Plan { port, count, size: size as usize };
            match peer {
                Some(peer) => rping::client(s, peer, &plan),
                None => rping::server(s, &plan),
            }
        }
        Tool::Ucmatose { peer, port, count, size } => {
            let plan = ucmatose::Plan { port, count, size: size as usize };
            match peer {
                Some(peer) => ucmatose::client(s, peer, &plan),
                None => ucmatose::server(s, &plan),
            }
        }
        Tool::Perftest { tool, peer, port, iterations, size } => {
            let plan = perftest::Plan { tool, port, iterations, size: tool.size(size as usize) };
            match peer {
                Some(peer) => perftest::client(s, peer, &plan),
                None => perftest::server(s, &plan),
            }
        }
        Tool::Pingpong { peer, port, iterations, size } => {
            let plan = pingpong::Plan { port, iterations, size: size as usize };
            match peer {
                Some(peer) => pingpong::client(s, peer, &plan),
                None => pingpong::server(s, &plan),
            }
        }
        Tool::Reject { port, count, reason, late: seconds } => manners::reject(s, port, count, reason, late(seconds)),
        Tool::HangUp { port, count, late: seconds, wait } => manners::hang_up(s, port, count, late(seconds), wait),
        Tool::Refused { peer, port, reason } => manners::refused(s, peer, port, reason),
        Tool::Connect { peer, port, count } => manners::connect(s, peer, port, count),
        Tool::Windows { .. } | Tool::Memory { .. } => Ok(()),
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("nacelle-interop: {failure}");
            ExitCode::from(if matches!(failure, Failure::Timeout(_)) { 3 } else { 1 })
        }
    }
}
