// SPDX-License-Identifier: Apache-2.0
//! What the tests of this crate share.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the stand-in for the simulated device into `dir`, with the counters' names beside it.
pub(crate) fn build_mock(dir: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = dir.join("libnacelle_sim_mock.so");
    let status = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg("-I")
        .arg(here.join("../../sim"))
        .arg(here.join("tests/common/mock_sim.c"))
        .status()
        .expect("a C compiler is installed");
    assert!(status.success());
    let counters = r#"[{"name": "roce_rx.icrc_errors", "address": 1024, "description": "packets with a wrong ICRC"}]"#;
    std::fs::write(dir.join("counters.json"), counters).unwrap();
    library
}
