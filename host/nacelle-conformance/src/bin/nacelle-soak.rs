// SPDX-License-Identifier: Apache-2.0
//! Random long runs as a program.

fn main() -> std::process::ExitCode {
    nacelle_conformance::soak::main()
}
