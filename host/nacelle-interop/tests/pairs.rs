// SPDX-License-Identifier: Apache-2.0
//! Each tool's client against its own server, on a wire of their own: what is checked against Linux must at least hold here.

use nacelle_link::{SwitchHost, WireDir};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output, Stdio};

struct Wire {
    dir: tempfile::TempDir,
    _switch: SwitchHost,
}

impl Wire {
    fn new() -> Self {
        let own = Permissions::from_mode(0o700);
        let dir = tempfile::Builder::new().prefix("ni").permissions(own).tempdir_in("/tmp").unwrap();
        let switch = SwitchHost::start(&WireDir::open(dir.path()).unwrap()).unwrap();
        Self { dir, _switch: switch }
    }

    /// Starts a side; `arguments` are separated by spaces.
    fn start(&self, name: &str, ip: &str, arguments: &str) -> Child {
        let timeout: &[&str] = if arguments.contains("--timeout") { &[] } else { &["--timeout", "60"] };
        Command::new(env!("CARGO_BIN_EXE_nacelle-interop"))
            .args(timeout)
            .args(["--name", name, "--ip", ip, "--wire"])
            .arg(self.dir.path())
            .args(arguments.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// A server and its client to their ends.
    fn run(&self, server: &str, client: &str) -> [Output; 2] {
        let server = self.start("server", "10.9.0.1/24", server);
        let client = self.start("client", "10.9.0.2/24", client);
        [server, client].map(|child| child.wait_with_output().unwrap())
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

fn both_pass(server: &str, client: &str) {
    for (side, output) in ["server", "client"].iter().zip(Wire::new().run(server, client)) {
        assert_eq!(output.status.code(), Some(0), "{side} of {server}: {}", text(&output));
        assert!(text(&output).starts_with("ok: "), "{side} of {server} has checked nothing");
    }
}

#[test]
fn rping() {
    both_pass("rping -C 20 -S 100", "rping 10.9.0.1 -C 20 -S 100");
}

#[test]
fn ucmatose() {
    both_pass("ucmatose -C 50 -S 3000", "ucmatose 10.9.0.1 -C 50 -S 3000");
}

#[test]
fn perftest() {
    for tool in ["write_bw", "write_lat", "read_bw", "read_lat", "send_bw", "send_lat", "atomic_bw", "atomic_lat"] {
        let tool = format!("perftest ib_{tool}");
        both_pass(&format!("{tool} -n 100 -s 5000"), &format!("{tool} 10.9.0.1 -n 100 -s 5000"));
    }
}

#[test]
fn pingpong() {
    both_pass("pingpong -n 100", "pingpong 10.9.0.1 -n 100");
}

#[test]
fn manners() {
    both_pass("reject --reason 3", "refused 10.9.0.1 -p 7174 --reason 3");
    both_pass("reject --late 0.7", "refused 10.9.0.1 -p 7174 --reason 28");
    both_pass("hang-up --wait -C 3", "connect 10.9.0.1 -C 3");
}

#[test]
fn over_a_bad_wire() {
    both_pass("--loss 2 --seed 5 rping -C 5", "--loss 2 --seed 6 rping 10.9.0.1 -C 5");
    both_pass("--loss 2 --seed 7 ucmatose", "--loss 2 --seed 8 ucmatose 10.9.0.1");
}

/// A failed check and a timeout set the exit status.
#[test]
fn failures_are_told() {
    let wire = Wire::new();
    let [server, client] = wire.run("--timeout 3 ucmatose -S 10", "--timeout 3 ucmatose 10.9.0.1 -S 20");
    assert_eq!(client.status.code(), Some(1), "{}", text(&client));
    assert!(text(&client).contains("a message has 10 bytes"), "{}", text(&client));
    assert_ne!(server.status.code(), Some(0));

    let alone = wire.start("alone", "10.9.0.1/24", "--timeout 0.3 rping").wait_with_output().unwrap();
    assert_eq!(alone.status.code(), Some(3), "{}", text(&alone));
    assert!(text(&alone).contains("timeout while waiting for a connection request"), "{}", text(&alone));
    let nobody = wire.start("nobody", "10.9.0.1/24", "--timeout 20 rping 10.9.0.77").wait_with_output().unwrap();
    assert_eq!(nobody.status.code(), Some(1), "{}", text(&nobody));
}
