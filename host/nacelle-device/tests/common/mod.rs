// SPDX-License-Identifier: Apache-2.0
//! What the tests of this crate share.

#![allow(dead_code)] // not every test uses all of it

pub(crate) mod accepting;
pub(crate) mod caller;
pub(crate) mod datagrams;
pub(crate) mod gate;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use nacelle_device::{FrameEngine, Host, Place};
use nacelle_link::{SwitchHost, VirtualWire};

/// Compiles the stand-in for the simulated device into `dir`.
pub(crate) fn build_mock(dir: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = dir.join("libnacelle_sim_mock.so");
    let status = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg("-I")
        .arg(here.join("../../sim"))
        .arg("-I")
        .arg(here.join("../nacelle-capi/include"))
        .arg(here.join("tests/common/mock_sim.c"))
        .status()
        .expect("a C compiler is installed");
    assert!(status.success());
    library
}

/// A device that runs in a thread of this process.
pub(crate) struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts the engine that `make` makes. When this returns, the device answers.
    pub(crate) fn start<E: FrameEngine>(place: &Place, make: impl FnOnce() -> E + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, place) = (Arc::clone(&stop), place.clone());
        let (ready, started) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let _switch = SwitchHost::start(&place.wire).unwrap();
            let link = Box::new(VirtualWire::join(&place.wire, &place.name).unwrap());
            let mut host = Host::new(make(), &place, link, 1).unwrap();
            ready.send(()).unwrap();
            host.run(&seen).unwrap();
        });
        started.recv().unwrap();
        Self { stop, thread: Some(thread) }
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}
