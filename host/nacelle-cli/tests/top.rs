// SPDX-License-Identifier: Apache-2.0
//! `nacelle top`: on a pseudo-terminal, and as a table.

mod bench;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use bench::{Bench, stderr, stdout, wait_for};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

const SIZE: (u16, u16) = (24, 100);

/// A program on a terminal.
struct Terminal {
    child: Child,
    master: OwnedFd,
    /// The side of the program.
    slave: OwnedFd,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Terminal {
    fn start(bench: &Bench, line: &str) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let slave =
            rustix::fs::open(ptsname(&master, Vec::new()).unwrap(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty());
        let slave = slave.unwrap();
        let (rows, columns) = SIZE;
        tcsetwinsize(&slave, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let (mut output, seen) = (File::from(master.try_clone().unwrap()), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut bytes) {
                seen.lock().unwrap().process(&bytes[..length]);
            }
        });
        let side = || Stdio::from(slave.try_clone().unwrap());
        let child = bench.command().args(line.split_whitespace()).stdin(side()).stdout(side()).stderr(side()).spawn();
        Self { child: child.unwrap(), master, slave, screen }
    }

    fn press(&self, keys: &[u8]) {
        File::from(self.master.try_clone().unwrap()).write_all(keys).unwrap();
    }

    fn contents(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Waits until all of these words are on the screen.
    fn shows(&self, words: &[&str]) {
        wait_for(&format!("{words:?} on the screen"), || {
            let contents = self.contents();
            words.iter().all(|word| contents.contains(word))
        });
    }

    /// It ends well, and leaves the terminal as it was: with echo, on its first screen.
    fn ends(mut self) {
        wait_for("the end", || self.child.try_wait().unwrap().is_some_and(|status| status.success()));
        wait_for("the first screen", || !self.screen.lock().unwrap().screen().alternate_screen());
        assert!(tcgetattr(self.slave.as_fd()).unwrap().local_modes.contains(LocalModes::ECHO));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_device_is_watched_until_a_key_or_a_signal_ends_it() {
    let bench = Bench::new();
    std::fs::write(bench.file("x"), b"HAL").unwrap();
    let mut device = bench.device("");
    let terminal = Terminal::start(&bench, "top soft0 --interval 0.05");
    terminal.shows(&["soft0 at 10.77.0.2 (soft): up", "COUNTER", "PER SECOND", "every 0.05 s", "q: quit"]);
    assert!(!tcgetattr(terminal.slave.as_fd()).unwrap().local_modes.contains(LocalModes::ECHO), "keys are not echoed");
    bench.good("run increment --device soft0 x -o y");
    // Its counters do not fit the screen: the last ones are scrolled to.
    (0..100).for_each(|_| terminal.press(b"\x1b[B"));
    terminal.shows(&["rpc.calls"]);

    device.child.kill().unwrap();
    device.child.wait().unwrap();
    terminal.shows(&["soft0 at 10.77.0.2 (soft): dead", "no device named soft0 answers"]);
    let again = bench.device("");
    assert_eq!(again.name, "soft0");
    terminal.shows(&["soft0 at 10.77.0.2 (soft): up"]);
    terminal.press(b"q");
    terminal.ends();

    let terminal = Terminal::start(&bench, "top 10.77.0.2");
    terminal.shows(&["soft0 at 10.77.0.2 (soft): up"]);
    let status = std::process::Command::new("kill").args(["-TERM", &terminal.child.id().to_string()]).status();
    assert!(status.unwrap().success());
    terminal.ends();
}

#[test]
fn a_table_needs_no_terminal() {
    let bench = Bench::new();
    std::fs::write(bench.file("x"), b"HAL").unwrap();
    let mut device = bench.device("--udp");
    bench.good("run increment --device soft0 x -o y");
    let text = stdout(&bench.good("top soft0 --once --interval 0.1"));
    assert!(text.starts_with(&format!("soft0 at {} (soft): up\n\nCOUNTER", device.ip)), "{text}");
    let calls = text.lines().find(|line| line.starts_with("rpc.calls ")).unwrap();
    assert_eq!(calls.split_whitespace().collect::<Vec<_>>(), ["rpc.calls", "1", "0.0"]);
    let all = bench.json("top soft0 --once --interval 0.1");
    assert_eq!(all["alive"], true);
    assert!(all["seconds"].as_f64().unwrap() >= 0.1);
    assert!(all["counters"].as_array().unwrap().iter().any(|one| one["name"] == "rpc.calls" && one["total"] == 1));

    device.child.kill().unwrap();
    device.child.wait().unwrap();
    let output = bench.run("top soft0 --once");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stdout(&output).contains("(soft): dead") && stderr(&output).contains("soft0 is dead"));
    bench.bad("top nobody --once", 3, &["nobody"]);
    bench.bad("top soft0", 2, &["no terminal", "--once"]);
    bench.bad("top soft0 --interval 0", 2, &["interval"]);
}
