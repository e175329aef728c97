// SPDX-License-Identifier: Apache-2.0
//! `nacelle explain`: codes of every kind, by number, by name and by words of a message.

mod bench;

use bench::{Bench, stdout};

#[test]
fn codes_are_explained_by_number_name_and_words() {
    let bench = Bench::new();
    let said = |line: &str| stdout(&bench.good(&format!("explain {line}")));
    let text = said("reject 8");
    assert!(text.starts_with("reject 8: INVALID_SERVICE_ID (reject reason (CM REJ))\n"), "{text}");
    for words in ["means  no service listens on this port", "cause  A wrong --port", "do     leave --port out"] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    // One number, several kinds.
    let text = said("8");
    for words in ["error 8: Timeout", "exit code 5", "reject 8:", "status 8: LOC_ACCESS_ERR"] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    assert!(said("syndrome 0x2c").contains("0x20 to 0x3f: RNR_NAK"));
    assert!(said("retry count exceeded").contains("status 12: RETRY_EXC_ERR"));
    assert_eq!(bench.json("explain unreachable")[0]["code"], 5);
    assert!(said("").lines().count() > 80 && said("result").lines().count() < 12);
    assert!(bench.json("explain status").as_array().unwrap().iter().all(|one| one["kind"] == "status"));
}

#[test]
fn the_code_in_an_error_of_the_command_is_explained() {
    let bench = Bench::new();
    let failed = bench.run("ping nobody --json");
    let error: serde_json::Value = serde_json::from_slice(&failed.stderr).unwrap();
    let code = error["error"]["code"].as_str().unwrap();
    let explained = bench.json(&format!("explain error {code}"));
    assert_eq!(explained[0]["name"], "NoSuchDevice");
    assert_eq!(explained[0]["advice"], error["error"]["try"], "one text for both");
}

#[test]
fn the_codes_of_devices_are_explained() {
    let bench = Bench::new();
    for (line, code, name) in [
        ("device --library none.so --json", "simulated-device", "SimulatedDevice"),
        ("device --soft --kernel none.so --json", "kernel-refused", "KernelRefused"),
        ("device --soft --udp 192.0.2.1 --json", "link", "Link"),
    ] {
        let failed = bench.run(line);
        let error: serde_json::Value = serde_json::from_slice(&failed.stderr).unwrap();
        assert_eq!(error["error"]["code"], code, "{error}");
        let explained = bench.json(&format!("explain error {code}"));
        assert_eq!(explained[0]["name"], name);
        assert_eq!(failed.status.code().map(i64::from), error["error"]["exit_code"].as_i64());
    }
    assert!(stdout(&bench.good("explain window-open")).contains("error 24: WindowOpen"));
}

#[test]
fn what_is_no_code_is_refused() {
    let bench = Bench::new();
    bench.bad("explain 4711", 2, &["4711"]);
    bench.bad("explain reject 34", 2, &["reject reason", "34"]);
    bench.bad("explain gobbledygook", 2, &["gobbledygook"]);
}
