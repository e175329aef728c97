// SPDX-License-Identifier: Apache-2.0
//! The management socket: who is served, what is told, and what is written where.

mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::Command;

use common::caller::Bench;
use nacelle::control::{Control, Done, Request};
use nacelle::management::Access;

fn capture(bench: &Bench, path: &std::path::Path) -> Result<Done, nacelle::Error> {
    let mut control = Control::open(&bench.place.wire, &bench.place.name).unwrap();
    control.ask(&Request::CaptureStart { path: path.to_owned() })
}

#[test]
fn a_capture_overwrites_nothing_but_captures() {
    let bench = Bench::new(|_| {});
    let temp = tempfile::tempdir().unwrap();
    let file = |name: &str| temp.path().join(name);
    fs::write(file("thesis"), b"years of work").unwrap();
    symlink(file("nothing"), file("link")).unwrap();
    assert!(capture(&bench, &file("thesis")).is_err());
    assert!(capture(&bench, &file("link")).is_err());
    assert!(capture(&bench, temp.path()).is_err());
    assert_eq!(fs::read(file("thesis")).unwrap(), b"years of work");
    assert!(!file("nothing").exists());
    // A new file, an empty one, and an earlier capture.
    fs::write(file("empty"), b"").unwrap();
    for name in ["new", "empty", "new"] {
        capture(&bench, &file(name)).unwrap();
        assert!(fs::read(file(name)).unwrap().starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]));
    }
    assert_eq!(fs::metadata(file("new")).unwrap().permissions().mode() & 0o777, 0o600);
}

/// A key is between a caller and the device.
#[test]
fn listings_show_no_key() {
    let bench = Bench::new(|_| {});
    let mut caller = bench.caller(1);
    let session = caller.connect(0);
    let given = caller.regions(session, &[100]).unwrap()[0];
    let mut control = Control::open(&bench.place.wire, &bench.place.name).unwrap();
    let said: serde_json::Value = control.ask(&Request::Regions {}).unwrap();
    let region = said.as_array().unwrap().iter().find(|region| region["address"] == given.address().0).unwrap();
    assert_eq!(region["length"], 100);
    for value in region.as_object().unwrap().values() {
        assert_ne!(*value, given.rkey().0);
    }
}

#[test]
fn a_request_has_a_bounded_number_of_accesses() {
    let bench = Bench::new(|_| {});
    let mut control = Control::open(&bench.place.wire, &bench.place.name).unwrap();
    let error = control.registers(vec![Access::Read { address: 0 }; 257]).unwrap_err();
    assert!(error.to_string().contains("257 accesses are more than 256"), "{error}");
    let error = control.registers(vec![Access::Read { address: 0 }; 256]).unwrap_err();
    assert!(error.to_string().contains("no registers"), "{error}");
}

/// Even if another user came as far as the socket.
#[test]
fn another_user_is_not_served() {
    let bench = Bench::new(|_| {});
    let wire = bench.place.wire.path();
    let socket = wire.join(format!("{}.ctl", bench.place.name));
    for path in [wire.parent().unwrap(), wire] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(&socket, Permissions::from_mode(0o777)).unwrap();
    let script = "import socket, sys\n\
                  s = socket.socket(socket.AF_UNIX)\n\
                  s.connect(sys.argv[1])\n\
                  s.settimeout(10)\n\
                  try:\n    s.sendall(b'{\"command\": \"info\"}\\n')\n    answer = s.recv(100)\n\
                  except (BrokenPipeError, ConnectionResetError):\n    answer = b''\n\
                  print(len(answer))\n";
    let ask = |user: u32| {
        let mut command = Command::new("python3");
        let output = command.args(["-c", script]).arg(&socket).uid(user).gid(user).output();
        output.ok().map(|output| String::from_utf8(output.stdout).unwrap())
    };
    // Only root can be somebody else; and without Python nobody asks.
    if let (Some(own), Some(other)) = (ask(0), ask(65_533)) {
        assert_eq!(own.trim(), "100");
        assert_eq!(other.trim(), "0");
    }
}
