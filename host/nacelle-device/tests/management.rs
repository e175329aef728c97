// SPDX-License-Identifier: Apache-2.0
//! The management socket: which users are served, the answers, and the files.

mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::Command;

use common::caller::{Bench, Caller};
use nacelle_manage::{Access, Bytes, Completion, Control, Done, Progress, Request, Work};
use nacelle_roce::{ConnectOptions, Event, ProtectionDomain};

fn capture(bench: &Bench, path: &std::path::Path) -> Result<Done, nacelle_manage::Error> {
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
    let words = control.registers(vec![Access::Read { address: 0 }; 256]).unwrap();
    assert_eq!(words, vec![u32::from_be_bytes(*b"NACL"); 256]);
}

/// Gives the device's own connection something to do, and waits for its end.
fn work(caller: &mut Caller, control: &mut Control, connection: u16, work: Work) -> Completion {
    let Done {} = control.ask(&Request::Post { connection, work }).unwrap();
    for _ in 0..10_000 {
        caller.turn();
        let progress: Progress = control.ask(&Request::Poll { connection }).unwrap();
        if let [completion] = &progress.completions[..] {
            return completion.clone();
        }
    }
    panic!("the work did not end");
}

#[test]
fn a_device_reads_and_writes_memory_of_its_peer() {
    const PORT: u16 = 4242;
    let bench = Bench::new(|_| {});
    let mut caller = bench.caller(1);
    caller.ep.transport.listen(PORT);
    let memory: Vec<u8> = (0..3000u32).map(|index| (index * 7 + index / 256) as u8).collect();
    let rights = nacelle_roce::Access::REMOTE_READ | nacelle_roce::Access::REMOTE_WRITE;
    let region = caller.ep.transport.register(memory.clone(), rights, ProtectionDomain::DEFAULT).unwrap();
    let (address, rkey) = (region.addr.0, region.rkey.0);

    let mut control = Control::open(&bench.place.wire, &bench.place.name).unwrap();
    let connect = Request::Connect { peer: caller.ip.into(), port: PORT, private: Bytes::default(), mtu: Some(256) };
    let connection: u16 = control.ask(&connect).unwrap();
    let early = Request::Post { connection, work: Work::Read { address, rkey, length: 1 } };
    assert!(control.ask::<Done>(&early).is_err(), "it is not established");
    let conn = caller.wait(|event| match event {
        Event::ConnectRequest { conn, .. } => Some(*conn),
        _ => None,
    });
    caller.accept(conn, ConnectOptions::default());
    assert_eq!(caller.outcome(conn), Ok(()));

    let all = [(0, 0), (0, 1), (5, 255), (1, 256), (7, 2048)];
    for (offset, length) in all {
        let read = Work::Read { address: address + offset as u64, rkey, length: length as u32 };
        let done = work(&mut caller, &mut control, connection, read);
        assert!(done.ok && !done.receive, "{}", done.status);
        assert_eq!(done.data.0, memory[offset..offset + length]);
    }
    let write = Work::Write { data: Bytes(vec![9; 300]), address, rkey };
    let done = work(&mut caller, &mut control, connection, write);
    assert!(done.ok && done.data.0.is_empty(), "nothing of the READ before comes with it");
    assert_eq!(
        caller.ep.transport.region(region.id).unwrap().to_vec().unwrap()[..301],
        [&[9; 300], &memory[300..301]].concat()
    );

    let long = Request::Post { connection, work: Work::Read { address, rkey, length: 2049 } };
    let error = control.ask::<Done>(&long).unwrap_err();
    assert!(error.to_string().contains("at most 2048 bytes, not 2049"), "{error}");
    let outside = Work::Read { address: address + 3000, rkey, length: 1 };
    let done = work(&mut caller, &mut control, connection, outside);
    assert_eq!((done.ok, done.status.as_str(), done.data), (false, "remote access error", Bytes::default()));
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
    // Only root can change its user; and the test needs Python.
    if let (Some(own), Some(other)) = (ask(0), ask(65_533)) {
        assert_eq!(own.trim(), "100");
        assert_eq!(other.trim(), "0");
    }
}
