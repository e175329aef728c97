// SPDX-License-Identifier: Apache-2.0
//! The conformance suite as a program.

fn main() -> std::process::ExitCode {
    nacelle_conformance::suite::main()
}
