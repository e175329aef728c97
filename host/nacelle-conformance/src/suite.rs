// SPDX-License-Identifier: Apache-2.0
//! The conformance suite: one test for each rule of the transport that matters to a peer.
//!
//! It connects, asks for memory by the region protocol, and then says things in every right and wrong form, packet by packet, and
//! looks at what comes back.

use crate::{
    Failure,
    manage::Manage,
    peer::Peer,
    record,
    rules::{self, Rule, Scope},
    station::Station,
};
use clap::{Parser, ValueEnum};
use core::{net::Ipv4Addr, time::Duration};
use nacelle_link::{VirtualWire, WireDir};
use serde::Serialize;
use std::{path::PathBuf, process::ExitCode, time::Instant};

/// Judge a RoCEv2 device: one test for each rule of the transport that matters to a peer.
#[derive(Parser)]
#[command(name = "nacelle-conformance", version)]
struct Args {
    /// The device's IPv4 address.
    #[arg(required_unless_present = "list")]
    device: Option<Ipv4Addr>,
    /// Port of its service, in the RDMA IP CM port space TCP.
    #[arg(long, default_value_t = nacelle_wire::mrsp::DEFAULT_PORT)]
    port: u16,
    /// Folder of the virtual wire. Default: that of the nacelle command.
    #[arg(long)]
    wire: Option<PathBuf>,
    /// The address to take on the wire. Default: .253 of the device's network.
    #[arg(long)]
    ip: Option<Ipv4Addr>,
    /// What the device is: some rules do not bind everybody.
    #[arg(long, value_enum, default_value_t = Target::Nacelle)]
    target: Target,
    /// Seconds that an answer may take.
    #[arg(long, default_value_t = 3.0)]
    patience: f64,
    /// Only rules with this in their name.
    #[arg(long)]
    only: Vec<String>,
    /// List the rules and end.
    #[arg(long)]
    list: bool,
    /// Results as JSON on standard output.
    #[arg(long)]
    json: bool,
    /// Instead of trying rules, write to this file what the device answers to odd requests, a line of JSON for each case.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Cases to record.
    #[arg(long, default_value_t = 300, requires = "record")]
    cases: u64,
    /// What the cases are made from.
    #[arg(long, default_value_t = 1, requires = "record")]
    seed: u64,
    /// The first case.
    #[arg(long, default_value_t = 0, requires = "record")]
    first: u64,
}

/// What is judged.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    /// A Nacelle device: every rule.
    Nacelle,
    /// Linux soft-RoCE behind the project's own server: the rules of the standard that it keeps.
    Linux,
}

/// How one rule came out.
#[derive(Serialize)]
struct Verdict {
    rule: &'static str,
    source: &'static str,
    /// `ok`, `fail`, or `skip`.
    outcome: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    detail: String,
    seconds: f64,
}

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    let args = Args::parse();
    let chosen = rules::all().filter(|r| args.only.is_empty() || args.only.iter().any(|o| r.name.contains(o.as_str())));
    if args.list {
        for rule in chosen {
            println!("{:<72} {}", rule.name, rule.source);
        }
        return ExitCode::SUCCESS;
    }
    let chosen: Vec<&Rule> = chosen.collect();
    if chosen.is_empty() {
        eprintln!("nacelle-conformance: no rule has this in its name; --list shows them");
        return ExitCode::from(2);
    }
    let mut peer = match open(&args) {
        Ok(peer) => peer,
        Err(failure) => {
            eprintln!("nacelle-conformance: {failure}");
            return ExitCode::from(2);
        }
    };
    if let Some(path) = &args.record {
        let outcome = record::record(&mut peer, path, args.seed, args.first..args.first + args.cases);
        let outcome = outcome.and_then(|()| peer.tidy());
        if let Err(failure) = &outcome {
            eprintln!("nacelle-conformance: {failure}");
        }
        return if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(2) };
    }
    let verdicts: Vec<Verdict> = chosen.into_iter().map(|rule| judge(&mut peer, rule, &args)).collect();
    if let Err(failure) = peer.tidy() {
        eprintln!("nacelle-conformance: {failure}");
    }
    let failed = verdicts.iter().filter(|v| v.outcome == "fail").count();
    let passed = verdicts.iter().filter(|v| v.outcome == "ok").count();
    if args.json {
        println!("{}", serde_json::to_string_pretty(&verdicts).expect("verdicts are plain"));
    } else {
        println!("{passed} rules kept, {failed} broken, {} not tried", verdicts.len() - passed - failed);
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn open(args: &Args) -> Result<Peer, Failure> {
    let device = args.device.expect("clap demands it");
    let wire = WireDir::open(args.wire.clone().unwrap_or_else(WireDir::default_path)).map_err(Failure::Link)?;
    let link = VirtualWire::join_anonymous(&wire).map_err(Failure::Link)?;
    let [a, b, c, _] = device.octets();
    let ip = args.ip.unwrap_or(Ipv4Addr::new(a, b, c, 253));
    let patience = Duration::from_secs_f64(args.patience.clamp(0.01, 3600.0));
    let manage = Manage::find(&wire, device);
    Ok(Peer::new(Station::new(Box::new(link), ip, device, patience)?, args.port, manage))
}

fn judge(peer: &mut Peer, rule: &Rule, args: &Args) -> Verdict {
    let skip = match rule.scope {
        Scope::NotLinux(why) if args.target == Target::Linux => Some(why),
        Scope::Nacelle if args.target == Target::Linux => Some("binds Nacelle devices only"),
        _ => None,
    };
    let begin = Instant::now();
    let (outcome, detail) = match skip {
        Some(why) => ("skip", why.to_owned()),
        None => match peer.tidy().and_then(|()| (rule.test)(peer)) {
            Ok(()) => ("ok", String::new()),
            Err(Failure::NotTried(why)) => ("skip", why.to_owned()),
            Err(failure) => ("fail", failure.to_string()),
        },
    };
    let seconds = begin.elapsed().as_secs_f64();
    if !args.json {
        println!("{outcome:<4} {:<70} {seconds:6.2} s  {detail}", rule.name);
    }
    if outcome == "fail" && peer.recover().is_err() {
        eprintln!("nacelle-conformance: the wire failed");
    }
    Verdict { rule: rule.name, source: rule.source, outcome, detail, seconds }
}
