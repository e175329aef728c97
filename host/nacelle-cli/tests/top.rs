// SPDX-License-Identifier: Apache-2.0
//! `nacelle top`: on a pseudo-terminal, and as a table.

mod bench;
mod terminal;

use bench::{Bench, stderr, stdout, wait_for};
use terminal::Terminal;

#[test]
fn a_device_is_watched_until_a_key_or_a_signal_ends_it() {
    let bench = Bench::new();
    std::fs::write(bench.file("x"), b"HAL").unwrap();
    let mut device = bench.device("");
    let mut terminal = Terminal::start(&bench, "top soft0 --interval 0.05");
    terminal.shows(&["soft0 at 10.77.0.2 (soft): up", "COUNTER", "PER SECOND", "every 0.05 s", "q: quit"]);
    assert!(!terminal.echoes(), "keys are not echoed");
    bench.good("run increment --device soft0 x -o y");
    // Its counters do not fit the screen: the last ones are scrolled to.
    (0..100).for_each(|_| terminal.press(b"\x1b[B"));
    wait_for("the last counters", || {
        let contents = terminal.contents();
        contents.contains("rpc.calls") && !contents.contains("roce.rdma_recvs")
    });

    device.child.kill().unwrap();
    device.child.wait().unwrap();
    terminal.shows(&["soft0 at 10.77.0.2 (soft): dead", "no device named soft0 answers"]);
    let again = bench.device("");
    assert_eq!(again.name, "soft0");
    terminal.shows(&["soft0 at 10.77.0.2 (soft): up"]);
    terminal.press(b"q");
    terminal.ends();

    let mut terminal = Terminal::start(&bench, "top 10.77.0.2");
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
