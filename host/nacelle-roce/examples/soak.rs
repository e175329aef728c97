// SPDX-License-Identifier: Apache-2.0
//! Runs the random network test for as many seeds as wanted: `cargo run --release --example soak -- --seeds 1000`.
//!
//! Options: `--seeds N` how many (default 100), `--first N` the first one (default 0), `--connections N` most connections
//! at once (default 64), `--operations N` work requests a side (default 30). A failure names its seed.
#![allow(unreachable_pub, dead_code)] // shared with the tests, which use more of it

#[path = "../tests/network/sim.rs"]
mod sim;
#[path = "../tests/network/soak.rs"]
mod soak;

fn main() -> Result<(), String> {
    let mut options = [("--seeds", 100u64), ("--first", 0), ("--connections", 64), ("--operations", 30)];
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().and_then(|v| v.parse().ok());
        let option = options.iter_mut().find(|(known, _)| *known == name);
        match (option, value) {
            (Some(option), Some(value)) => option.1 = value,
            _ => return Err(format!("{name}: use --seeds, --first, --connections or --operations with a number")),
        }
    }
    let [seeds, first, connections, operations] = options.map(|(_, value)| value);
    let mut total = soak::Report::default();
    for seed in first..first + seeds {
        let run = || soak::run(seed, connections as usize, operations as usize);
        let report = std::panic::catch_unwind(run).map_err(|_| format!("failed with seed {seed}"))?;
        total.add(report);
        println!("seed {seed}: {report:?}");
    }
    println!("{seeds} seeds: {total:?}");
    Ok(())
}
