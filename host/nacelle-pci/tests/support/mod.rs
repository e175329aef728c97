// SPDX-License-Identifier: Apache-2.0
//! A device in a thread of its own.
#![allow(dead_code, unreachable_pub, reason = "each user takes a part")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nacelle_slot::{Server, ServerConfig};

#[path = "../../../nacelle-slot/tests/support/mod.rs"]
pub mod toy;

pub use toy::{Toy, register, status};

/// A slot with the small function in it, until it is dropped.
pub struct Slot {
    pub path: PathBuf,
    _dir: tempfile::TempDir,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<(Server, Toy)>>,
}

impl Slot {
    pub fn new(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("slot");
        let mut toy = Toy::new();
        let mut config = toy.config();
        change(&mut config);
        let mut server = Server::bind(&path, Toy::space(), config).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let begin = Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                server.poll(begin.elapsed(), Duration::from_millis(1), &mut toy).unwrap();
            }
            (server, toy)
        });
        Self { path, _dir: dir, stop, thread: Some(thread) }
    }

    /// Ends the device, and gives it for a look.
    pub fn end(mut self) -> (Server, Toy) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _a_failed_device_has_said_so = thread.join();
        }
    }
}
