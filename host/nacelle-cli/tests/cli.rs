// SPDX-License-Identifier: Apache-2.0
//! The command, as people and scripts meet it: what it prints, what it exits with, and how every kind of bad input ends.

mod bench;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bench::{Bench, packets, stderr, stdout, wait_for};
use nacelle_wire::kernel::matmul::{Args, Dtype};
use serde_json::Value;

#[test]
fn matrices_in_files_are_multiplied() {
    let bench = Bench::new();
    let device = bench.device("");
    bench.floats("a.npy", "(2, 3)", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    bench.floats("b.npy", "(3, 1)", &[1.0, 10.0, 100.0]);
    let ip = &device.ip;
    let output = bench.good(&format!("run matmul --device {ip} a.npy b.npy -o c.npy --check --report"));
    assert_eq!(bench.words("c.npy"), [321.0f32, 654.0].map(f32::to_le_bytes));
    assert!(stderr(&output).contains("all 2 elements agree"));
    let steps = ["address resolution", "connect", "region set-up", "inputs", "compute", "outputs"];
    let report = stdout(&output);
    for (line, step) in report.lines().skip(1).zip(steps) {
        assert!(line.starts_with(step), "{report}");
        assert!(line.contains(" µs "), "device time is known: {report}");
    }

    // The same in Fortran order, and integers that wrap around.
    bench.npy("f.npy", "'<f4'", true, "(2, 3)", &[1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0].map(f32::to_le_bytes).concat());
    bench.good(&format!("run matmul --device {} f.npy b.npy -o c.npy", device.name));
    assert_eq!(bench.words("c.npy"), [321.0f32, 654.0].map(f32::to_le_bytes));
    let large = i32::MAX.to_le_bytes();
    bench.npy("i.npy", "'<i4'", false, "(1, 2)", &[large, large].concat());
    bench.npy("j.npy", "'<i4'", false, "(2, 1)", &[2i32.to_le_bytes(), 3i32.to_le_bytes()].concat());
    let result = bench.json(&format!("run matmul --device {ip} i.npy j.npy -o c.npy --check --capture c.pcapng"));
    assert_eq!(bench.words("c.npy"), [i32::MAX.wrapping_mul(2).wrapping_add(i32::MAX.wrapping_mul(3)).to_le_bytes()]);
    assert_eq!(
        (&result["shape"][0], &result["dtype"], &result["check"]["agree"]),
        (&1.into(), &"int32".into(), &1.into())
    );
    assert!(packets(&bench.file("c.pcapng")) > 10);
}

#[test]
fn files_that_cannot_be_multiplied_are_refused_by_name() {
    let bench = Bench::new();
    let device = bench.device("");
    bench.floats("a.npy", "(2, 3)", &[0.0; 6]);
    bench.floats("tall.npy", "(2, 2)", &[0.0; 4]);
    bench.floats("flat.npy", "(6,)", &[0.0; 6]);
    bench.floats("cut.npy", "(3, 1000000)", &[0.0; 6]);
    bench.floats("liar.npy", "(4294967296, 4294967296)", &[0.0; 6]);
    bench.floats("empty.npy", "(3, 0)", &[]);
    bench.npy("int.npy", "'<i4'", false, "(3, 1)", &[0; 12]);
    bench.npy("big.npy", "'>f4'", false, "(3, 1)", &[0; 12]);
    bench.npy("double.npy", "'<f8'", false, "(3, 1)", &[0; 24]);
    bench.npy("record.npy", "[('x', '<f4')]", false, "(3, 1)", &[0; 12]);
    fs::write(bench.file("text.npy"), "not a matrix").unwrap();
    fs::write(bench.file("nothing.npy"), "").unwrap();
    let cases: [(&str, &[&str]); 13] = [
        ("a.npy tall.npy", &["a.npy (2x3)", "tall.npy (2x2)", "3 columns meet 2 rows"]),
        ("a.npy int.npy", &["a.npy holds float32", "int.npy holds int32"]),
        ("a.npy flat.npy", &["flat.npy", "1 dimensions"]),
        ("a.npy cut.npy", &["cut.npy", "cut off"]),
        ("a.npy liar.npy", &["liar.npy", "cut off"]),
        ("a.npy empty.npy", &["empty.npy", "empty: 3x0"]),
        ("big.npy a.npy", &["big.npy", "big-endian"]),
        ("double.npy a.npy", &["double.npy", "<f8"]),
        ("record.npy a.npy", &["record.npy", "records"]),
        ("text.npy a.npy", &["text.npy", "no NumPy file"]),
        ("nothing.npy a.npy", &["nothing.npy", "no NumPy file"]),
        ("missing.npy a.npy", &["missing.npy", "No such file"]),
        (".  a.npy", &["directory"]),
    ];
    for (files, words) in cases {
        bench.bad(&format!("run matmul --device {} {files} -o c.npy", device.ip), 2, words);
    }
    bench.floats("column.npy", "(3, 1)", &[0.0; 3]);
    bench.bad(&format!("run matmul --device {} a.npy column.npy -o no/such/c.npy", device.ip), 2, &["no/such/c.npy"]);
    bench.bad(&format!("run increment --device {} missing -o c", device.ip), 2, &["missing"]);
    bench.bad(&format!("run increment --device {} nothing.npy -o c", device.ip), 2, &["0 bytes"]);
    assert!(!bench.file("c.npy").exists());
}

#[test]
fn arguments_that_cannot_be_are_refused() {
    let bench = Bench::new();
    assert_eq!(bench.run("").status.code(), Some(2));
    for line in [
        "dance",
        "device --ip 10.77.0.2",
        "device --ip 10.77.0.2/99",
        "device --loss 101",
        "device --mac 01:00:00:00:00:00",
        "device --soft --wave x",
        "device --soft --flip-bit 1",
        "device --soft --slot x",
        "device --soft --vhost-user x",
        "device --soft --slot-net x",
        "device --slot-net x --vhost-user y",
        "nic --guest-ip 10.77.1.2",
        "device --flip-two-bits 101",
        "device --line-rate 0",
        "device --kernel-time 16777216",
        "device --caller-memory 1048576",
        "device --caller-connections 65536",
        "run matmul a b -o c",
        "run matmul --device 10.77.0.2 a b",
        "ping 10.77.0.2 -c 0",
        "demo only-one.npy",
    ] {
        bench.bad(line, 2, &[]);
    }
    bench.bad("run matmul --device 10.77.0.2 a b", 2, &["--output <FILE>"]);
    assert!(!stderr(&bench.run("dance")).contains("Usage"), "one sentence and one hint");
    bench.bad("device --library none.so", 2, &["none.so", "no such file"]);
    bench.bad("device --workers 2", 2, &["--workers", "software device", "add --soft"]);
    bench.bad("device --memory 2", 2, &["--memory", "software device", "add --soft"]);
    bench.bad("nic --soft", 2, &["no network card", "leave --soft out"]);
    bench.bad("nic --library none.so --linux none", 2, &["none is no kernel", "user-mode-linux"]);
    bench.bad("nic --library none.so --ip 192.168.1.2/24", 2, &["no address 192.168.2.2", "--guest-ip"]);
    assert!(bench.good("--help").stdout.len() > 500);

    // Far from any build, there is no library to be found.
    let copy = bench.file("nacelle");
    fs::copy(env!("CARGO_BIN_EXE_nacelle"), &copy).unwrap();
    let mut command = Command::new(copy);
    command.arg("device").current_dir(bench.temp.path()).env("NACELLE_WIRE", bench.file("wire"));
    let output = command.env_remove("NACELLE_SIM_LIBRARY").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("libnacelle_sim_512.so"), "{}", stderr(&output));
}

#[test]
fn any_function_is_called_with_regions_in_the_order_of_the_command_line() {
    let bench = Bench::new();
    let device = bench.device("");
    let ip = &device.ip;
    let args = Args { dtype: Dtype::Int32, m: 1, n: 1, k: 2 };
    fs::write(bench.file("block"), args.to_bytes()).unwrap();
    fs::write(bench.file("a"), [3i32.to_le_bytes(), 4i32.to_le_bytes()].concat()).unwrap();
    fs::write(bench.file("b"), [5i32.to_le_bytes(), 6i32.to_le_bytes()].concat()).unwrap();
    // Four kinds of region: sorted by anything but their places, they would not multiply.
    let regions = "--single-send block --inout a --internal 4096 --input b --output 4";
    let called = bench.json(&format!("run function 16 --device {ip} {regions} -o a.out -o c"));
    assert_eq!(fs::read(bench.file("c")).unwrap(), 39i32.to_le_bytes());
    assert_eq!(fs::read(bench.file("a.out")).unwrap(), fs::read(bench.file("a")).unwrap());
    assert_eq!(called["function"], 16);
    assert_eq!(called["outputs"], serde_json::json!([{ "file": "a.out", "bytes": 8 }, { "file": "c", "bytes": 4 }]));
    assert!(called["report"]["steps"].as_array().is_some_and(|steps| !steps.is_empty()));

    // What comes back goes to the files in the regions' order, wherever the files are named.
    fs::write(bench.file("x"), b"HAL").unwrap();
    let regions = "-o first --output 2 -o second --inout x -o third --input a --output 1";
    let output = bench.good(&format!("run function 1 --device {} {regions} --report", device.name));
    let read = |name: &str| fs::read(bench.file(name)).unwrap();
    assert_eq!([read("first"), read("second"), read("third")], [vec![1, 1], b"IBM".to_vec(), vec![1]]);
    assert!(stderr(&output).contains("wrote second (3 bytes)") && stdout(&output).contains("compute"));

    // Nothing needs to come back.
    bench.good(&format!("run function 3 --device {ip} --input x"));
}

#[test]
fn calls_that_cannot_be_are_refused_and_write_nothing() {
    let bench = Bench::new();
    let device = bench.device("");
    fs::write(bench.file("x"), b"HAL").unwrap();
    fs::write(bench.file("empty"), b"").unwrap();
    let many = "--input x ".repeat(32);
    let cases: [(&str, i32, &[&str]); 21] = [
        ("0 --inout x -o o", 2, &["'0'", "1 to 127"]),
        ("128 --inout x -o o", 2, &["'128'", "1 to 127"]),
        ("increment --inout x -o o", 2, &["'increment'", "1 to 127"]),
        ("--inout x -o o", 2, &["<CODE>"]),
        ("1", 2, &["--input", "--inout", "--output"]),
        ("1 --internal 4096", 2, &["--input", "--inout", "--output"]),
        ("1 --inout x", 2, &["come back are 1", "named for them 0"]),
        ("1 --inout x --output 4 -o o", 2, &["come back are 2", "named for them 1"]),
        ("1 --input x -o o", 2, &["come back are 0", "named for them 1"]),
        ("1 --inout x --output 4 -o o -o o", 2, &["o is named for two"]),
        ("1 --inout missing -o o", 2, &["missing", "No such file"]),
        ("1 --inout empty -o o", 2, &["empty", "0 bytes"]),
        ("1 --single-send . --output 4 -o o", 2, &["cannot read ."]),
        ("1 --output 0 -o o", 2, &["'0'", "1 to 4294967295 bytes"]),
        ("1 --output 4294967296 -o o", 2, &["'4294967296'", "1 to 4294967295 bytes"]),
        ("1 --inout x --internal -5 -o o", 2, &["-5"]),
        ("1 --output o.bin -o o", 2, &["'o.bin'", "-o"]),
        ("1 --inout x -o no/such/o", 2, &["no/such/o"]),
        (&format!("1 {many}"), 2, &["32 regions", "31"]),
        ("99 --inout x -o o", 6, &["does not have function 99"]),
        ("16 --inout x -o o", 6, &["function 16", "0x10"]),
    ];
    for (words, exit_code, said) in cases {
        bench.bad(&format!("run function --device {} {words}", device.ip), exit_code, said);
        assert!(!bench.file("o").exists(), "{words}");
    }
    bench.bad("run function 1 --inout x -o o", 2, &["--device"]);
    bench.bad("run function 1 --device nobody --inout x -o o", 3, &["nobody"]);
    bench.bad(&format!("run function 1 --device {} --output 2000000000 -o o", device.ip), 4, &["refused the regions"]);
    bench.good(&format!("run function 1 --device {} --inout x -o o", device.ip));
    assert_eq!(fs::read(bench.file("o")).unwrap(), b"IBM");
}

#[test]
fn where_nobody_answers_is_unreachable() {
    let bench = Bench::new();
    fs::write(bench.file("data"), "data").unwrap();
    bench.bad("run increment --device 10.77.0.2 data -o out", 3, &["no device and no switch"]);
    bench.bad("ping 10.77.0.2", 3, &["no device and no switch"]);
    bench.bad("capture -o c.pcapng --seconds 1", 3, &["no device and no switch"]);
    let _device = bench.device("");
    bench.bad("run increment --device 10.77.200.7 data -o out", 3, &["10.77.200.7"]);
    bench.bad("run increment --device nobody data -o out", 3, &["nobody"]);
    bench.bad("ping 10.77.200.7 --timeout 0.3", 3, &["10.77.200.7"]);
    bench.bad("stop nobody", 3, &["nobody"]);
    bench.bad("stats nobody", 3, &["nobody"]);
    bench.bad("capture --device nobody -o c.pcapng --seconds 1", 3, &["nobody"]);
    assert!(!bench.file("out").exists());
}

#[test]
fn regions_that_are_too_large_are_refused_and_the_device_goes_on() {
    let bench = Bench::new();
    let device = bench.device("--memory 1");
    fs::write(bench.file("large"), vec![0; 1_100_000]).unwrap();
    fs::write(bench.file("small"), b"HAL").unwrap();
    bench.bad(&format!("run increment --device {} large -o out", device.ip), 4, &["refused the regions"]);
    bench.good(&format!("run increment --device {} small -o out", device.ip));
    assert_eq!(fs::read(bench.file("out")).unwrap(), b"IBM");
    assert_eq!(bench.json(&format!("stats {}", device.name))["counters"]["memory.bytes_held"], 0);
}

#[test]
fn a_service_that_is_not_there_is_refused() {
    let bench = Bench::new();
    let device = bench.device("");
    fs::write(bench.file("data"), "data").unwrap();
    bench.bad(
        &format!("run increment --device {} --port 9 data -o out", device.ip),
        4,
        &["refused the connection", "--port"],
    );
}

#[test]
fn a_device_that_is_killed_half_way_is_noticed() {
    let bench = Bench::new();
    let device = bench.device("--delay 50");
    fs::write(bench.file("data"), vec![7; 2_000_000]).unwrap();
    let line = format!("run increment --device {} data -o out --timeout 3 --ack-timeout 150", device.ip);
    let child = bench.command().args(line.split_whitespace()).stderr(Stdio::piped()).spawn().unwrap();
    let counted = || bench.json(&format!("stats {}", device.name))["counters"]["roce.rx_request"].as_u64().unwrap();
    wait_for("the first data", || counted() > 100);
    device.signal("-KILL");
    let started = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(3 | 5)), "{}", stderr(&output));
    assert!(stderr(&output).contains("in the step 'inputs'"), "{}", stderr(&output));
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(!bench.file("out").exists());

    // What it left behind is shown for what it is, and does not stand in the way of the next one.
    let devices = bench.json("ls");
    assert_eq!((&devices[0]["name"], &devices[0]["alive"]), (&device.name.as_str().into(), &false.into()));
    let next = bench.device("");
    assert_eq!((&next.name, &next.ip), (&device.name, &device.ip));
    bench.good(&format!("ping {} -c 1", next.ip));
}

#[test]
fn a_caller_that_is_killed_half_way_disturbs_nobody() {
    let bench = Bench::new();
    let device = bench.device("--delay 20");
    fs::write(bench.file("data"), vec![7; 4_000_000]).unwrap();
    let line = format!("run increment --device {} data -o out", device.ip);
    let mut child = bench.command().args(line.split_whitespace()).spawn().unwrap();
    let counters = || bench.json(&format!("stats {}", device.name))["counters"].clone();
    wait_for("the first data", || counters()["roce.rx_request"].as_u64().unwrap() > 100);
    child.kill().unwrap();
    child.wait().unwrap();
    fs::write(bench.file("small"), b"HAL").unwrap();
    bench.good(&format!("run increment --device {} small -o out", device.ip));
    assert_eq!(fs::read(bench.file("out")).unwrap(), b"IBM");
}

#[test]
fn losses_on_both_sides_change_no_byte() {
    let bench = Bench::new();
    let device = bench.device("--loss 2 --dup 1 --reorder 1 --corrupt 1 --seed 5");
    let data: Vec<u8> = (0..300_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
    fs::write(bench.file("data"), &data).unwrap();
    bench.good(&format!("run increment --device {} data -o out --loss 2 --seed 6 --ack-timeout 30", device.ip));
    let got = fs::read(bench.file("out")).unwrap();
    assert!(got.iter().zip(&data).all(|(got, sent)| *got == sent.wrapping_add(1)) && got.len() == data.len());
}

/// Compiles the example of a kernel in C, as its README says.
fn build_kernel(bench: &Bench) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("examples/kernel_c/README.md")).unwrap();
    let line = readme.lines().find(|line| line.starts_with("cc ")).unwrap();
    let library = bench.file("libhistogram.so");
    let line = line.replace("libhistogram.so", library.to_str().unwrap());
    let mut words = line.split_whitespace();
    let status = Command::new(words.next().unwrap()).args(words).current_dir(root).status().unwrap();
    assert!(status.success(), "{line}");
}

#[test]
fn kernels_come_from_libraries() {
    let bench = Bench::new();
    build_kernel(&bench);
    let device = bench.device("--kernel ./libhistogram.so");
    let listed = stdout(&bench.good("ls"));
    assert!(listed.contains("vector(64,65,66,67,68) histogram(81)"), "{listed}");
    fs::write(bench.file("data"), b"abca").unwrap();
    fs::write(bench.file("bins"), [0; 2048]).unwrap();
    bench.good(&format!("run function 81 --device {} --input data --inout bins -o counts", device.name));
    let counts = fs::read(bench.file("counts")).unwrap();
    let count = |byte: u8| u64::from_le_bytes(counts[8 * usize::from(byte)..][..8].try_into().unwrap());
    assert_eq!([b'a', b'b', b'c', b'd'].map(count), [2, 1, 1, 0]);
    let by_udp = bench.device("--udp --kernel ./libhistogram.so");
    bench.good(&format!("run function 81 --device {} --input data --inout bins -o counts-by-udp", by_udp.name));
    assert_eq!(fs::read(bench.file("counts-by-udp")).unwrap(), counts);
    fs::write(bench.file("bins"), [0; 2047]).unwrap();
    let small = format!("run function 81 --device {} --input data --inout bins -o counts", device.name);
    bench.bad(&small, 6, &["the bins have less than 2048 bytes"]);

    fs::write(bench.file("text.so"), "no library").unwrap();
    bench.bad("device --soft --kernel text.so", 2, &["text.so", "nacelle_kernel.h"]);
    bench.bad("device --soft --kernel none.so", 2, &["none.so", "No such file"]);
    let twice = "device --soft --kernel ./libhistogram.so --kernel ./libhistogram.so";
    bench.bad(twice, 2, &["two kernels histogram", "leave one"]);
    bench.bad("device --kernel ./libhistogram.so", 2, &["--kernel", "software device", "add --soft"]);
}

#[test]
fn devices_are_listed_pinged_counted_and_stopped() {
    let bench = Bench::new();
    assert_eq!(bench.json("ls").as_array().unwrap().len(), 0);
    let mut first = bench.device("");
    let mut second = bench.device("--name other --ip 10.77.5.5/16 --mac 02:00:00:00:05:05");
    let listed = stdout(&bench.good("ls"));
    assert!(listed.contains("soft0") && listed.contains("10.77.5.5/16") && listed.contains("matmul(16)"), "{listed}");
    assert_eq!(bench.json("ls")[0]["mac"], "02:00:00:00:05:05");
    bench.bad("device --soft --name soft0", 3, &["soft0", "used by another device"]);
    bench.bad("device --soft --ip 10.77.5.5/16", 3, &["10.77.5.5", "used by another device"]);

    let pings = bench.json(&format!("ping {} -c 3 -i 0 -s 1000", second.ip));
    assert_eq!((&pings["received"], pings["times_us"].as_array().unwrap().len()), (&3.into(), 3));
    assert_eq!(stdout(&bench.good("ping other -c 2 -i 0")).lines().count(), 2);
    assert_eq!(bench.json("stats other")["counters"]["roce.rx_echo_request"], 5);

    bench.good("stop soft0");
    assert!(first.child.wait().unwrap().success());
    second.signal("-TERM");
    assert!(second.child.wait().unwrap().success());
    assert!(bench.json("ls").as_array().unwrap().is_empty());
    let left: Vec<_> = fs::read_dir(bench.file("wire")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?} is left behind");
}

#[test]
fn a_device_whose_wire_is_removed_ends() {
    let bench = Bench::new();
    let mut device = bench.device("");
    fs::remove_dir_all(bench.file("wire")).unwrap();
    assert_eq!(device.child.wait().unwrap().code(), Some(3));
}

#[test]
fn captures_hold_what_passed() {
    let bench = Bench::new();
    let device = bench.device("--capture whole.pcapng");
    let mut on_wire = bench.command();
    let mut on_wire = on_wire.args(["capture", "-o", "wire.pcapng", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut at_device = bench.command();
    let mut at_device =
        at_device.args(["capture", "--device", &device.name, "-o", "device.pcapng", "--seconds", "2"]).spawn().unwrap();
    wait_for("the captures", || bench.file("wire.pcapng").exists() && bench.file("device.pcapng").exists());
    let at_start = packets(&bench.file("whole.pcapng"));
    bench.good(&format!("ping {} -c 5 -i 0", device.ip));
    assert!(at_device.wait().unwrap().success());
    let status = Command::new("kill").args(["-INT", &on_wire.id().to_string()]).status().unwrap();
    assert!(status.success());
    let mut line = String::new();
    std::io::Read::read_to_string(on_wire.stdout.as_mut().unwrap(), &mut line).unwrap();
    assert!(on_wire.wait().unwrap().success());
    let told: Value = serde_json::from_str(&line).unwrap();
    // Five pings and their answers, and the questions for addresses.
    assert!(packets(&bench.file("wire.pcapng")) >= 12);
    assert_eq!(told["frames"], packets(&bench.file("wire.pcapng")));
    assert!(packets(&bench.file("device.pcapng")) >= 12);
    assert_eq!(at_start, 0, "the device's own capture ended when another began");
}

#[test]
fn the_demo_ends_with_commands_that_work_as_printed() {
    let bench = Bench::new();
    let output = bench.good("demo --soft --size 20 --dtype int32");
    let said = stdout(&output);
    assert!(said.contains("correct: 400 of 400 elements agree"), "{said}");
    assert!(packets(&bench.file("nacelle-demo/demo.pcapng")) > 10);
    let mut commands = said.lines().filter(|line| line.starts_with("    ")).map(str::trim);
    let (run, stop) = (commands.next().unwrap(), commands.next().unwrap());
    assert!(run.contains(" run matmul --device 10.77.0.2 ") && stop.contains(" stop soft0"), "{said}");

    fs::remove_file(bench.file("nacelle-demo/c.npy")).unwrap();
    let shell = |line: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(bench.temp.path()).env("NACELLE_WIRE", bench.file("wire"));
        command.status().unwrap().success()
    };
    assert!(shell(run));
    assert_eq!(bench.words("nacelle-demo/c.npy").len(), 400);

    // Again, with the device that runs, and with the user's own files.
    bench.floats("a.npy", "(2, 3)", &[1.0; 6]);
    bench.floats("b.npy", "(3, 4)", &[1.0; 12]);
    let again = bench.json("demo --soft a.npy b.npy");
    assert_eq!((&again["device"]["name"], &again["check"]["agree"]), (&"soft0".into(), &8.into()));
    bench.bad("demo --soft b.npy a.npy", 2, &["4 columns meet 2 rows"]);
    assert!(shell(stop));
    assert_eq!(bench.json("ls").as_array().unwrap().len(), 0);
    bench.bad("demo --library none.so", 2, &["did not start", "none.so"]);
}

#[test]
fn a_wire_without_devices_joins_those_that_come() {
    let bench = Bench::new();
    let mut command = bench.command();
    let mut wire = command.args(["wire", "--json"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(wire.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("wire"));
    let device = bench.device("");
    bench.good(&format!("ping {} -c 1", device.ip));
    wire.kill().unwrap();
    wire.wait().unwrap();
    // The device takes over.
    wait_for("the new switch", || bench.run(&format!("ping {} -c 1 --timeout 0.5", device.ip)).status.success());
}
