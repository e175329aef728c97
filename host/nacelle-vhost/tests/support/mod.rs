// SPDX-License-Identifier: Apache-2.0
//! A back end with a card of software behind it, in threads of their own, and a front end.
#![allow(dead_code, unreachable_pub, reason = "each user takes a part")]

pub mod card;
pub mod front;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nacelle_vhost::{Backend, BackendConfig, Counters, Listener};

use card::{Seen, Slot};
use front::{By, Front};

/// What back ends of this process have told.
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn tell(what: &str) {
    eprintln!("{what}");
    TOLD.lock().unwrap().push(what.to_owned());
}

/// Whether something with these words was told.
pub fn was_told(words: &str) -> bool {
    TOLD.lock().unwrap().iter().any(|what| what.contains(words))
}

pub struct World {
    pub path: PathBuf,
    pub seen: Arc<Seen>,
    _dir: tempfile::TempDir,
    slot: Option<Slot>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Counters>>,
}

impl World {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut BackendConfig)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vhost");
        let (slot, device) = Slot::new();
        let mut config = BackendConfig { tell, ..BackendConfig::default() };
        change(&mut config);
        let mut backend = Backend::new(Listener::bind(&path).unwrap(), device, config).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            backend.run(&stopped, |_| {}).unwrap();
            backend.counters()
        });
        Self { path, seen: Arc::clone(&slot.seen), _dir: dir, slot: Some(slot), stop, thread: Some(thread) }
    }

    pub fn front(&self, by: By) -> Front {
        Front::connect(&self.path, by, true)
    }

    /// The card has nothing of any front end.
    pub fn must_be_free(&self) {
        self.eventually("the card is free", || {
            self.seen.memory.load(Ordering::Relaxed) == 0 && !self.seen.running.load(Ordering::Relaxed)
        });
    }

    /// A front end that keeps to the rules is served.
    pub fn must_serve(&self) {
        self.must_be_free();
        let mut front = self.front(By::Eventfd);
        front.set_up(1 << 32, 1 << 3);
        front.must_work();
    }

    pub fn eventually(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends the back end, and gives what it counted.
    pub fn end(mut self) -> Counters {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _a_failed_back_end_has_said_so = thread.join();
        }
        self.slot = None;
    }
}
