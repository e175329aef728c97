// SPDX-License-Identifier: Apache-2.0
//! The `nacelle` command.
//!
//! Data goes to stdout, talk to stderr. Exit codes: 0 done, 2 wrong arguments or files, 3 unreachable, 4 refused, 5 timeout,
//! 6 remote error.

#![forbid(unsafe_code)]

mod args;
mod capture;
mod demo;
mod device;
mod failure;
mod list;
mod npy;
mod output;
mod ping;
mod run;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.command {
        Command::Device(args) => device::device(&cli, args),
        Command::Wire(args) => device::wire(&cli, args),
        Command::Run(args) => run::run(&cli, args),
        Command::Ls => list::ls(&cli),
        Command::Ping(args) => ping::ping(&cli, args),
        Command::Capture(args) => capture::capture(&cli, args),
        Command::Stats { device } => list::stats(&cli, device),
        Command::Stop { device } => list::stop(&cli, device),
        Command::Demo(args) => demo::demo(&cli, args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell(cli.json);
            ExitCode::from(failure.exit_code())
        }
    }
}
