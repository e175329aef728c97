// SPDX-License-Identifier: Apache-2.0
//! The library of the simulated device in a slot.

use std::path::{Path, PathBuf};

/// That of `devices/nic.toml` at 64 bits: as the test steps name it, else the one that was built here. Without any, these tests do nothing.
pub(crate) fn library() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("NACELLE_TEST_NIC") {
        return Some(named.into());
    }
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/sim/libnacelle_sim_64_nic.so");
    if built.is_file() {
        return Some(built);
    }
    eprintln!("not tested: there is no {}; build it with sim/build.py --data-w 64 --device nic", built.display());
    None
}
