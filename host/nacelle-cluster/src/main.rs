// SPDX-License-Identifier: Apache-2.0
//! Runs clusters in virtual time, for as many seeds as wanted. The first failure ends it, and says how to run its seed again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use nacelle_cluster::{Plan, Report, command, run};

/// Run random clusters of endpoints and software devices in virtual time, and check every byte and every end.
#[derive(Parser)]
#[command(name = "nacelle-cluster", version)]
struct Args {
    /// Runs, each with a seed of its own [default: 100, or with --minutes as many as there is time for]
    #[arg(long)]
    seeds: Option<u64>,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Begin no run after so many minutes.
    #[arg(long)]
    minutes: Option<f64>,
    /// Nodes, 2 to 64 [default: as the seed has it]
    #[arg(long, value_parser = clap::value_parser!(u8).range(2..=64))]
    nodes: Option<u8>,
    /// How many of them are devices; at least one is none [default: as the seed has it]
    #[arg(long)]
    devices: Option<u8>,
    /// Time after which a packet is sent again, in ms; all else follows [default: 1]
    #[arg(long)]
    unit: Option<f64>,
    /// Mean time between two operations of a side, in ms [default: a tenth of the unit]
    #[arg(long)]
    pace: Option<f64>,
    /// Virtual time in which things break, in ms [default: 300 units]
    #[arg(long)]
    time: Option<f64>,
}

impl Args {
    fn plan(&self, seed: u64) -> Plan {
        let mut plan = Plan::new(seed);
        let millis = |millis: f64| Duration::from_secs_f64(millis.max(0.001) / 1e3);
        if let Some(nodes) = self.nodes {
            plan.nodes = nodes.into();
        }
        plan.devices = self.devices.map_or(plan.devices, usize::from).min(plan.nodes - 1);
        if let Some(unit) = self.unit {
            plan.unit = millis(unit);
            (plan.pace, plan.time) = (plan.unit / 10, plan.unit * 300);
        }
        plan.pace = self.pace.map_or(plan.pace, millis);
        plan.time = self.time.map_or(plan.time, millis);
        plan
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let begin = Instant::now();
    let (mut total, mut runs) = (Report::default(), 0);
    let seeds = args.seeds.unwrap_or(if args.minutes.is_some() { u64::MAX } else { 100 });
    for seed in args.first..args.first.saturating_add(seeds) {
        if args.minutes.is_some_and(|minutes| begin.elapsed().as_secs_f64() > minutes * 60.0) {
            break;
        }
        let plan = args.plan(seed);
        let Ok(report) = catch_unwind(AssertUnwindSafe(|| run(&plan))) else {
            println!("FAILED with seed {seed}\nagain: {}", command(&plan));
            return ExitCode::FAILURE;
        };
        total.add(report);
        runs += 1;
    }
    let minutes = begin.elapsed().as_secs_f64() / 60.0;
    println!(
        "{total}\n{runs} seeds in {minutes:.2} minutes, {:.1} million frames a minute",
        total.frames as f64 / 1e6 / minutes
    );
    ExitCode::SUCCESS
}
