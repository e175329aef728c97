// SPDX-License-Identifier: Apache-2.0
//! A program on a pseudo-terminal.

#![allow(dead_code)] // not every test uses all of it

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::bench::{Bench, wait_for};

/// Lines and columns.
const SIZE: (u16, u16) = (12, 100);

/// A program on a terminal.
pub(crate) struct Terminal {
    pub(crate) child: Child,
    master: OwnedFd,
    /// The side of the program.
    slave: OwnedFd,
    /// All that it has written.
    written: Arc<Mutex<Vec<u8>>>,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Terminal {
    pub(crate) fn start(bench: &Bench, line: &str) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let slave =
            rustix::fs::open(ptsname(&master, Vec::new()).unwrap(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty());
        let slave = slave.unwrap();
        let (rows, columns) = SIZE;
        tcsetwinsize(&slave, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let (mut output, seen, all) =
            (File::from(master.try_clone().unwrap()), Arc::clone(&screen), Arc::clone(&written));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut bytes) {
                all.lock().unwrap().extend_from_slice(&bytes[..length]);
                seen.lock().unwrap().process(&bytes[..length]);
            }
        });
        let side = || Stdio::from(slave.try_clone().unwrap());
        let child = bench.command().args(line.split_whitespace()).stdin(side()).stdout(side()).stderr(side()).spawn();
        Self { child: child.unwrap(), master, slave, written, screen }
    }

    pub(crate) fn press(&self, keys: &[u8]) {
        File::from(self.master.try_clone().unwrap()).write_all(keys).unwrap();
    }

    pub(crate) fn contents(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// All that it has written, control sequences included.
    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// Whether it shows what is typed.
    pub(crate) fn echoes(&self) -> bool {
        tcgetattr(self.slave.as_fd()).unwrap().local_modes.contains(LocalModes::ECHO)
    }

    /// Waits until all of these words are on the screen.
    pub(crate) fn shows(&self, words: &[&str]) {
        wait_for(&format!("{words:?} on the screen"), || {
            let contents = self.contents();
            words.iter().all(|word| contents.contains(word))
        });
    }

    /// It ends well, and leaves the terminal as it was: with echo, on its first screen.
    pub(crate) fn ends(&mut self) {
        wait_for("the end", || self.child.try_wait().unwrap().is_some_and(|status| status.success()));
        wait_for("the first screen", || !self.screen.lock().unwrap().screen().alternate_screen());
        assert!(self.echoes());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
