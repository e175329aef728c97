// SPDX-License-Identifier: Apache-2.0
//! `nacelle top`: what a device counts, how fast, and its queue pairs, as they change.

mod sample;
mod screen;

use std::io::IsTerminal;

use crate::args::{Cli, TopArgs};
use crate::failure::Failure;
use crate::output::{print, print_json, table};
use sample::{Change, Sampler};

pub(crate) fn top(cli: &Cli, args: &TopArgs) -> Result<(), Failure> {
    let mut sampler = Sampler::new(cli.wire()?, &args.device)?;
    if args.once {
        return once(cli, args, &mut sampler);
    }
    if cli.json {
        return Err(Failure::usage("--json prints one table", "add --once"));
    }
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::no_terminal());
    }
    screen::run(sampler, args.interval)
}

/// The change of one interval, as a table.
fn once(cli: &Cli, args: &TopArgs, sampler: &mut Sampler) -> Result<(), Failure> {
    let mut change = Change::default();
    change.take(sampler.sample());
    if change.is_alive() {
        std::thread::sleep(args.interval);
        change.take(sampler.sample());
    }
    if cli.json {
        print_json(&serde_json::json!({
            "device": sampler.device(),
            "alive": change.is_alive(),
            "seconds": change.seconds(),
            "counters": change.counters(),
            "queue_pairs": change.queue_pairs(),
            "queue_pair_rates": change.rates(),
            "sockets": change.sockets(),
        }))?;
    } else {
        print(&format!("{}: {}\n\n{}", sampler.title(), change.state(), table(&change.rows(), 1)))?;
        if !change.sockets().is_empty() {
            print(&format!("\n{}", table(&change.socket_rows(), 0)))?;
        }
        if !change.queue_pairs().is_empty() {
            print(&format!("\n{}", table(&change.pair_rows(), 5)))?;
        }
    }
    match change.error() {
        Some(error) => Err(Failure::unreachable(format!("{} is dead: {error}", sampler.device().name))),
        None => Ok(()),
    }
}
