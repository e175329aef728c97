// SPDX-License-Identifier: Apache-2.0
//! The `nacelle` command.
//!
//! Data goes to stdout, messages go to stderr. Exit codes: 0 done, 1 a fault that was looked for, 2 wrong arguments or files,
//! 3 unreachable, 4 refused, 5 timeout, 6 remote error.

#![forbid(unsafe_code)]

mod admission;
mod args;
mod bench;
mod capture;
mod config;
mod connect;
mod copy;
mod demo;
mod describe;
mod device;
mod devices;
mod dns_sd;
mod doctor;
mod explain;
mod export;
mod failure;
#[cfg(test)]
mod fake;
mod filter;
mod generate;
mod guest;
mod guest_time;
mod hub;
mod image;
mod kernel;
mod list;
mod log;
mod manage;
mod npy;
mod output;
mod ping;
mod progress;
mod regions;
mod remote;
mod run;
mod save;
mod sensors;
mod tap;
mod top;
mod trace;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use args::{Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => end(run(&cli), cli.json),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => error.exit(),
            // The option --json is lost with the rest of the line, but decides the form of the error.
            _ => end(Err(Failure::arguments(&error)), std::env::args_os().any(|argument| argument == "--json")),
        },
    }
}

fn run(cli: &Cli) -> Result<(), Failure> {
    match &cli.command {
        Command::Device(args) => device::device(cli, args),
        Command::Nic(args) => device::nic(cli, args),
        Command::GuestTime(args) => guest_time::guest_time(cli, args),
        Command::Wire(args) => device::wire(cli, args),
        Command::Run(args) => run::run(cli, args),
        Command::Ls => list::ls(cli),
        Command::Devices(args) => devices::devices(cli, args),
        Command::Describe(args) => describe::describe(cli, args),
        Command::Doctor(args) => doctor::doctor(cli, args),
        Command::Bench(args) => bench::bench(cli, args),
        Command::Top(args) => top::top(cli, args),
        Command::Export(args) => export::export(cli, args),
        Command::Explain(args) => explain::explain(cli, args),
        Command::Ping(args) => ping::ping(cli, args),
        Command::Capture(args) => capture::capture(cli, args),
        Command::Trace(args) => trace::trace(cli, args),
        Command::Stats { device } => list::stats(cli, device),
        Command::Log(args) => log::log(cli, args),
        Command::Sensors(args) => sensors::sensors(cli, args),
        Command::Stop { device } => list::stop(cli, device),
        Command::Qp(command) => manage::qp(cli, command),
        Command::Kernel(command) => kernel::kernel(cli, command),
        Command::Region(command) => manage::region(cli, command),
        Command::Admission(command) => admission::admission(cli, command),
        Command::Filter(command) => filter::filter(cli, command),
        Command::Config(command) => config::config(cli, command),
        Command::Copy(args) => copy::copy(cli, args),
        Command::Connect(args) => connect::connect(cli, args),
        Command::Hub(args) => hub::hub(args),
        Command::Demo(args) => demo::demo(cli, args),
        Command::Completions { shell } => generate::completions(*shell),
        Command::Man { dir } => generate::man(dir.as_deref()),
    }
}

fn end(outcome: Result<(), Failure>, json: bool) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell(json);
            ExitCode::from(failure.exit_code())
        }
    }
}
