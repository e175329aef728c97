// SPDX-License-Identifier: Apache-2.0
//! Few seconds of hostile drivers. It needs the library of `devices/nic.toml` at 64 bits; without it this test does nothing.

use std::path::Path;
use std::process::Command;

/// The number before some words of a line.
fn before(line: &str, words: &str) -> u64 {
    let number = line.split(words).next().and_then(|head| head.split_whitespace().next_back());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no number before {words:?} in {line:?}"))
}

#[test]
fn nobody_notices_hostile_drivers() {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/sim/libnacelle_sim_64_nic.so");
    let library = std::env::var_os("NACELLE_TEST_NIC").map_or(built, Into::into);
    if !library.is_file() {
        eprintln!("not tested: there is no {}; build it with sim/build.py --data-w 64 --device nic", library.display());
        return;
    }
    let mut program = Command::new(env!("CARGO_BIN_EXE_nacelle-hostile"));
    program.arg("--library").arg(library).args(["--seconds", "8", "--rounds", "2", "--operations", "60"]);
    let ran = program.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    let last = said.lines().last().unwrap();
    for words in [" rounds", " hostile drivers", " transfers", " copies", " exchanges"] {
        assert!(before(last, words) > 0, "{last}");
    }
}

#[test]
fn a_library_that_is_not_there_is_no_fault_of_the_device() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_nacelle-hostile"));
    let ran = program.args(["--library", "/nowhere.so"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("there is no /nowhere.so; build it"));
}
