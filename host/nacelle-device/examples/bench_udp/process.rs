// SPDX-License-Identifier: Apache-2.0
//! The processes of the benchmark: both sides of a comparison poll, each on a processor of its own.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::Outcome;

/// Another process of this program, in one of its roles.
pub(crate) struct Peer {
    child: Child,
    /// Where it can be reached.
    pub(crate) address: SocketAddr,
}

impl Peer {
    /// Starts it, and waits until it says where it can be reached.
    pub(crate) fn start(role: &str) -> Outcome<Self> {
        let mut child =
            Command::new(std::env::current_exe()?).arg(role).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no pipe")?).read_line(&mut line)?;
        Ok(Self { child, address: line.trim().parse()? })
    }

    /// The process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Ends with its standard input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Keeps this process on one processor, if there is one of that number: both sides poll, and must not wait for each other's.
pub(crate) fn pin(processor: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(processor);
    match sched_setaffinity(None, &set) {
        Err(Errno::INVAL) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Sets a flag when the program that started this one has ended, or wants this one to.
pub(crate) fn until_stdin_ends() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    thread::spawn(move || {
        let _ = io::stdin().read(&mut [0]);
        seen.store(true, Ordering::Relaxed);
    });
    stop
}

/// Tells the program that started this one where this one can be reached.
pub(crate) fn say(address: SocketAddr) -> io::Result<()> {
    println!("{address}");
    io::stdout().flush()
}
