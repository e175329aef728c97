// SPDX-License-Identifier: Apache-2.0
//! The progress of long calls: on a terminal only, and only if they are long.

mod bench;
mod terminal;

use std::fs;

use bench::Bench;
use terminal::Terminal;

/// A device to which 2 MiB take about a second, there and back.
const SLOW: &str = "--delay 100";
const MIB: usize = 1 << 20;

#[test]
fn the_progress_of_a_long_call_is_shown_on_a_terminal() {
    let bench = Bench::new();
    let device = bench.device(SLOW);
    fs::write(bench.file("in"), vec![7; 5 * MIB]).unwrap();
    let mut terminal = Terminal::start(&bench, &format!("run increment --device {} in -o out", device.ip));
    terminal.shows(&["sending [=", "of 10.00 MiB"]);
    terminal.shows(&["receiving [=", "of 10.00 MiB"]);
    terminal.shows(&["wrote out (5242880 bytes)"]);
    terminal.ends();
    assert!(!terminal.contents().contains('['), "it is gone at the end: {}", terminal.contents());
    assert_eq!(fs::read(bench.file("out")).unwrap(), vec![8; 5 * MIB]);
}

#[test]
fn no_progress_is_shown_where_it_is_not_wanted() {
    let bench = Bench::new();
    let device = bench.device(SLOW);
    fs::write(bench.file("in"), vec![7; 3 * MIB]).unwrap();
    fs::write(bench.file("short"), b"HAL").unwrap();
    let ip = &device.ip;
    let mut unwanted = Terminal::start(&bench, &format!("run increment --device {ip} in -o out --no-progress"));
    let mut short = Terminal::start(&bench, &format!("run increment --device {ip} short -o short"));
    let piped = bench.good(&format!("run increment --device {ip} in -o piped"));
    assert_eq!(bench::stderr(&piped), "wrote piped (3145728 bytes)\n");
    for terminal in [&mut unwanted, &mut short] {
        terminal.shows(&["wrote"]);
        terminal.ends();
        assert!(!terminal.written().contains('['), "{}", terminal.written());
    }
}
