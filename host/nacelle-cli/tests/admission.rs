// SPDX-License-Identifier: Apache-2.0
//! `nacelle admission`, and tokens from files and the environment.

mod bench;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use bench::{Bench, stdout};

#[test]
fn callers_need_a_token_when_it_is_on() {
    let bench = Bench::new();
    let device = bench.device("");
    let own = &device.name;
    let call = format!("run increment in -o out --device {}", device.ip);
    fs::write(bench.file("in"), [7; 100]).unwrap();
    let add = format!("admission add {own} --new-token token --connections 1 --memory 1 --time 1000 --handle 0x2a");
    assert_eq!(stdout(&bench.good(&add)), "0\n");
    assert_eq!(fs::metadata(bench.file("token")).unwrap().permissions().mode() & 0o777, 0o600);
    bench.good(&call);
    bench.good(&format!("admission on {own}"));
    bench.bad(&call, 4, &["does not admit this caller", "none was sent"]);
    bench.good(&format!("{call} --token-file token"));
    assert_eq!(fs::read(bench.file("out")).unwrap(), [8; 100]);
    let by_environment = bench.command().env("NACELLE_TOKEN_FILE", "token").args(call.split(' ')).output().unwrap();
    assert!(by_environment.status.success());
    bench.bad(&format!("{call} --token-file in"), 2, &["in"]);

    let listed = bench.json(&format!("admission list {own}"));
    assert_eq!(listed["enabled"], true);
    let entry = &listed["entries"][0];
    assert_eq!((&entry["state"], &entry["handle"], &entry["connections"]), (&"valid".into(), &42.into(), &1.into()));
    assert_eq!(entry["memory_kib"], 1024);
    assert!((900..=1000).contains(&entry["seconds_left"].as_u64().unwrap()), "{entry}");
    let token = fs::read_to_string(bench.file("token")).unwrap();
    let shown = stdout(&bench.good(&format!("admission list {own}")));
    assert!(shown.contains("valid") && !shown.contains(token.trim()), "{shown}");

    bench.bad(&add, 2, &["token"]);
    bench.bad(&format!("admission add {own}"), 2, &["needs a token"]);
    bench.bad(&format!("admission revoke {own} 3"), 2, &["no entry 3"]);
    bench.good(&format!("admission revoke {own} 0"));
    bench.bad(&format!("{call} --token-file token"), 4, &["was revoked"]);
    bench.good(&format!("admission remove {own} 0"));
    bench.bad(&format!("{call} --token-file token"), 4, &["does not know this token"]);
    bench.good(&format!("admission off {own}"));
    bench.good(&call);
}
